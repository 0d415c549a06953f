"""Reviews that nobody should send: a sound one, damaged. The same seed gives the same bytes on every machine."""

import contextlib
import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

Json = Any
Dice = random.Random

QUANTITIES = (
    "1e309",
    "-5",
    "0.0000000001",
    "1Zi",
    "",
    " 1",
    "1 ",
    "NaN",
    "inf",
    "9" * 400,
    "1e-400",
    "0x10",
    "١",
    "1Ki1",
    "+",
    "--1",
    "1000000000000000000000n",
    "5E",
    "5Ei",
    "u",
    True,
    None,
    -1,
    1.5,
    10**30,
    [],
    {"a": 1},
)
KEYS = (
    "a/b",
    "a~b",
    "~1",
    "~0~1/",
    "/",
    "",
    "a" * 300,
    "ключ",
    "\u0000",
    "__class__",
    "kind",
    "é/~",
    "trimtab.dev/changed",
)
JUNK = (
    None,
    True,
    False,
    0,
    -1,
    2**63,
    10**40,
    1.5e308,
    "",
    "x" * 3000,
    "\ud800",
    "\u0000",
    [],
    {},
    [[]],
    [None],
    {"": {}},
)
VERSIONS = ("admission.k8s.io/v1beta1", "v1", "", None, 7, "admission.k8s.io/v2")
KINDS = ("AdmissionReviews", "Pod", "", None, [], "admissionreview")
OPERATIONS = ("UPDATE", "DELETE", "CONNECT", "create", "", None, 5)
OBJECTS = (
    None,
    [],
    "pod",
    3,
    {},
    {"kind": "Node"},
    {"spec": None},
    {"spec": []},
    {"metadata": [], "spec": {"containers": {}}},
)


def pod() -> Json:
    """With everything in it that a policy of ours looks at or changes."""
    resources = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    meta = {
        "generateName": "web-",
        "labels": {"app": "web", "a/b~c": "x"},
        "annotations": {"k~/": "v"},
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "controller": True}],
    }
    term = {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["a"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    spec = {
        "containers": [
            {"name": "app", "image": "app:1", "resources": resources, "volumeMounts": [{"name": "d"}]},
            {"name": "side", "image": "docker.io/library/envoy@sha256:00", "resources": {"limits": {"cpu": "2"}}},
        ],
        "initContainers": [{"name": "init", "image": "i", "restartPolicy": "Always"}],
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "affinity": affinity,
        "volumes": [{"name": "d", "emptyDir": {}}],
        "nodeSelector": {"disk": "ssd"},
        "priorityClassName": "low",
        "overhead": {},
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def review(uid: str, manifest: Json) -> Json:
    request = {
        "uid": uid,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "namespace": "team-a",
        "operation": "CREATE",
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "dryRun": False,
        "object": manifest,
        "userInfo": {"username": "u"},
        "oldObject": None,
        "options": {"kind": "CreateOptions"},
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def damaged(count: int, seed: int = 1) -> Iterator[bytes]:
    """So many bodies, the odd one large."""
    dice = random.Random(seed)
    for number in range(count):
        yield _one(dice, f"u-{number}")


def _one(dice: Dice, uid: str) -> bytes:
    value = review(uid, pod())
    for _ in range(dice.choice((0, 1, 1, 1, 2, 3))):
        dice.choice(VALUES)(dice, value)
    text = _text(value, ascii_only=dice.random() < 0.7)
    for _ in range(dice.choice((0, 0, 0, 1, 1, 2))):
        text = dice.choice(BYTES)(dice, text)
    return text


def _text(value: Json, *, ascii_only: bool) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=ascii_only).encode(errors="surrogatepass")
    except RecursionError:  # deeper than Python itself can write; what no parser can read is made of bytes below
        return b"[" * 5_000


# ── damage to values ─────────────────────────────────────────────────────────────────────────────────


def _places(value: Json) -> list[tuple[Json, Any]]:
    results, waiting = [], [value]
    while waiting:
        here = waiting.pop()
        for key in here if isinstance(here, dict) else range(len(here)):
            results.append((here, key))
            if isinstance(here[key], dict | list):
                waiting.append(here[key])
    return results


def _junk(dice: Dice, value: Json) -> None:
    here, key = dice.choice(_places(value))
    here[key] = copy.deepcopy(dice.choice(JUNK))


def _lost(dice: Dice, value: Json) -> None:
    here, key = dice.choice(_places(value))
    del here[key]


def _renamed(dice: Dice, value: Json) -> None:
    here, key = dice.choice(_places(value))
    if isinstance(here, dict):
        here[dice.choice(KEYS)] = here.pop(key)


def _quantity(dice: Dice, value: Json) -> None:
    names = ("cpu", "memory")
    rows = [(here, key) for here, key in _places(value) if key in names] or _places(value)
    here, key = dice.choice(rows)
    here[key] = dice.choice(QUANTITIES)


def _swapped(dice: Dice, value: Json) -> None:
    (a, key), (b, other) = (dice.choice(_places(value)) for _ in range(2))
    with contextlib.suppress(RecursionError):
        a[key] = copy.deepcopy(b[other])


def _deep(dice: Dice, value: Json) -> None:
    here, key = dice.choice(_places(value))
    inner: Json = 1
    for _ in range(dice.choice((10, 90, 400))):
        inner = [inner] if dice.random() < 0.5 else {"a": inner}
    here[key] = inner


def _many(dice: Dice, value: Json) -> None:
    here = value
    for key in ("request", "object", "spec", "containers"):
        here = here.get(key) if isinstance(here, dict) else None
    if isinstance(here, list) and here and isinstance(here[0], dict):
        count = 300 if dice.random() < 0.03 else 12
        here += [{**here[0], "name": f"c{number}"} for number in range(count)]


def _header(dice: Dice, value: Json) -> None:
    field, words = dice.choice((("apiVersion", VERSIONS), ("kind", KINDS)))
    value[field] = dice.choice(words)


def _request(dice: Dice, value: Json) -> None:
    request = value.get("request")
    if isinstance(request, dict):
        field, words = dice.choice((("operation", OPERATIONS), ("object", OBJECTS), ("uid", JUNK), ("resource", JUNK)))
        request[field] = copy.deepcopy(dice.choice(words))


VALUES: tuple[Callable[[Dice, Json], None], ...] = (
    _junk,
    _junk,
    _junk,
    _lost,
    _renamed,
    _quantity,
    _quantity,
    _swapped,
    _deep,
    _many,
    _header,
    _request,
)

# ── damage to bytes ──────────────────────────────────────────────────────────────────────────────────


def _flipped(dice: Dice, text: bytes) -> bytes:
    place = dice.randrange(len(text))
    return text[:place] + bytes([dice.randrange(256)]) + text[place + 1 :]


def _cut(dice: Dice, text: bytes) -> bytes:
    return text[: dice.randrange(1, len(text) + 1)]


def _inserted(dice: Dice, text: bytes) -> bytes:
    place = dice.randrange(len(text))
    return (
        text[:place]
        + dice.choice((b"\xff", b"\x00", b'"', b"{", b"]", b",", b"\\u", b"\xed\xa0\x80", b"1e999"))
        + text[place:]
    )


def _doubled(dice: Dice, text: bytes) -> bytes:
    """A key twice: what comes last counts, for the API server and for us."""
    key = dice.choice((b'"uid": ', b'"spec": ', b'"containers": ', b'"cpu": ', b'"kind": ', b'"object": '))
    value = dice.choice((b"null, ", b"{}, ", b'"twice", ', b"[], ", b"7, "))
    return text.replace(key, key + value + key, 1)


def _encoded(dice: Dice, text: bytes) -> bytes:
    return dice.choice(
        (b"\xef\xbb\xbf" + text, text.decode(errors="replace").encode("utf-16"), text + b"\n{}", text * 2)
    )


def _nested(dice: Dice, text: bytes) -> bytes:
    """Deeper than any parser's stack, if it has one."""
    return text.replace(b'"object": ', b'"object": ' + b"[" * dice.choice((2_000, 100_000)), 1)


def _large(dice: Dice, text: bytes) -> bytes:
    return text if dice.random() < 0.97 else text + b" " * (10_000_000 if dice.random() < 0.1 else 100_000)


BYTES: tuple[Callable[[Dice, bytes], bytes], ...] = (
    _flipped,
    _flipped,
    _cut,
    _inserted,
    _inserted,
    _doubled,
    _doubled,
    _encoded,
    _nested,
    _large,
)
