"""Is this PodPolicy or pool one that may enter the cluster? Bytes of a review in, bytes of the answer out.

What the CRD's schema can say the API server has refused before; everything deeper is refused here, with the loaders'
own messages. Pools are ConfigMaps with the label `trimtab.dev/pool`; no other ConfigMap is any of our business.
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from trimtab.admission import admission_review as wire
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.pool import LABEL
from trimtab.cluster.pool_config import pools
from trimtab.cluster.yaml_documents import Document
from trimtab.policy.load import load_document
from trimtab.policy.podpolicy import KIND
from trimtab.policy.schema import GROUP, PLURAL


def validate(body: bytes) -> tuple[int, bytes]:
    """HTTP status and body. 400 for what is no review; a review always gets its answer."""
    try:
        review = wire.decode(body)
    except wire.NotAReview as error:
        return 400, msgspec.json.encode({"error": str(error)})
    problem = _problem(review.request)
    if problem is None:
        return 200, wire.encode(review, wire.allow(b"", (), {}))
    return 200, wire.encode(review, wire.deny(problem, {}, code=422, reason="Invalid"))


def _problem(request: wire.AdmissionRequest) -> str | None:
    """Why the object must not be stored; None: it may, or it is none of our business."""
    asked = request.resource
    wrong = _CHECKS.get((asked.group, asked.resource))
    if wrong is None or request.operation not in ("CREATE", "UPDATE"):
        return None
    if request.sub_resource:  # a status changes no policy
        return None
    raw = bytes(request.object)
    try:
        found = _object(raw)
        if found.metadata.deletion_timestamp:  # then only its finalizers change, and that must not be held up
            return None
        over = _excess(found, raw)
        if over:
            return over
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return f"the object cannot be read: {error}"
    return "\n".join(map(_told, wrong(value))) or None


MAX_ENTRIES = 4_000
"""Of lists and mappings in a policy's spec, at any depth. The largest we ship has a hundred."""


def _policy(value: Any) -> Iterable[ConfigError]:
    document = Document(file=KIND, index=0, value=value)
    entries = _entries(value.get("spec") if isinstance(value, dict) else None)
    if entries > MAX_ENTRIES:
        return [document.mistake(("spec",), f"at most {MAX_ENTRIES} entries of lists and mappings", str(entries))]
    return load_document(document)[1]


def _entries(value: Any) -> int:
    """Of all lists and mappings in it. Each entry may be a mistake of its own, and each costs what telling it costs."""
    count, inside = 0, [value]
    while inside:
        found = inside.pop()
        if isinstance(found, dict | list):
            count += len(found)
            inside += found.values() if isinstance(found, dict) else found
    return count


def _pool(value: Any) -> Iterable[ConfigError]:
    return pools([Document(file="", index=0, value=value)]).mistakes


_CHECKS: dict[tuple[str, str], Callable[[Any], Iterable[ConfigError]]] = {
    (GROUP, PLURAL): _policy,
    ("", "configmaps"): _pool,
}
"""(group, resource) → what is wrong with an object of it."""


def _told(mistake: ConfigError) -> str:
    """With its place where it has a line: that is one of the settings inside a ConfigMap."""
    return str(mistake).strip() if mistake.line else mistake.sentence


MAX_BYTES = 64 * 1024
"""Of the settings of a pool, or of a policy's spec. The largest we ship has four thousand."""
_MAX_WHOLE_BYTES = 4 * MAX_BYTES
"""With metadata and managed fields, which repeat the names of all fields."""


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    labels: dict[str, str] | None = None
    deletion_timestamp: str | None = None


class _Object(msgspec.Struct, frozen=True):
    """What is read of an object before all of it is."""

    metadata: _Metadata = _Metadata()
    spec: msgspec.Raw = msgspec.Raw()
    data: msgspec.Raw = msgspec.Raw()


_objects = msgspec.json.Decoder(_Object)


def _object(raw: bytes) -> _Object:
    """What is not of these types is told with its place once all of it is read."""
    try:
        return _objects.decode(raw)
    except msgspec.ValidationError:
        return _Object()


def _excess(found: _Object, raw: bytes) -> str:
    """Why the object is too large to be checked; empty where it is not, or where it is neither pool nor policy."""
    is_policy = bool(len(found.spec))
    if len(raw) <= MAX_BYTES or not (is_policy or LABEL in (found.metadata.labels or {})):
        return ""
    written = len(found.spec) if is_policy else len(found.data)
    if written > MAX_BYTES:
        return f"{'spec' if is_policy else 'data'}: expected at most {MAX_BYTES} bytes, got {written}"
    if len(raw) > _MAX_WHOLE_BYTES:
        return f"metadata: expected at most {_MAX_WHOLE_BYTES} bytes of the whole object, got {len(raw)}"
    return ""
