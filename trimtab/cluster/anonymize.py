"""The same cluster with nobody's names in it.

Every name, uid, image, and every label value that could be one, becomes another word: the same one wherever it stands,
and in the same order as before, so that selectors still select, owners still own, and whatever is decided by order is
decided alike. What belongs to Kubernetes and to the platform stays readable: well-known labels, resources, taint keys,
class names, label keys. Without the salt nobody can try names out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from msgspec import structs

from trimtab.cluster import cluster_autoscaler, recommendation
from trimtab.cluster.pool import CAPI_OWNER_KIND, OPENSHIFT_MACHINE, POOL_LABELS, machine_set_of
from trimtab.cluster.reason import Unreadable

Item = dict[str, Any]

KEPT = frozenset({"", "default", "kube-system", "kube-public", "kube-node-lease", "trimtab-system"})
KEPT_KINDS = frozenset({"RuntimeClass", "PriorityClass", "StorageClass", "ConfigMap"})
"""Objects whose own name is not somebody's; a ConfigMap here is ours, or the autoscaler's."""
NAMES = frozenset(
    {"name", "namespace", "generateName", "uid", "nodeName", "nominatedNodeName", "containerName", "claimName"}
    | {"volumeName", "volumeHandle", "image", "providerID", "resourceClaimName", "resourceClaimTemplateName"}
)  # fmt: skip
MAPS = frozenset({"labels", "matchLabels", "nodeSelector"})
PATHS = frozenset({"local", "hostPath"})
"""Sources of volumes on a node: that there is one decides, where it lies does not."""
SPOKEN = frozenset({"message"})
"""What programs say in words of their own, of conditions: names stand anywhere in it."""
PLATFORM = ("kubernetes.io", "k8s.io", "karpenter.sh", "cloud.google.com", "amazonaws.com", "azure.com", "trimtab.dev")
PERSONAL = ("app.kubernetes.io/", "batch.kubernetes.io/", "statefulset.kubernetes.io/")
PERSONAL_KEYS = frozenset({"kubernetes.io/hostname", "kubernetes.io/metadata.name", "metadata.name"})
LOCAL_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
_PLAIN = re.compile(r"-?\d+(\.\d+)?|true|false|")
_WORD = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_.]*")


@dataclass(frozen=True, slots=True)
class NameHasher:
    """Word → what stands for it."""

    known: Mapping[str, str]

    @classmethod
    def of(cls, words: Iterable[str], salt: bytes) -> NameHasher:
        """In order: the number comes first, the hash only tells captures apart."""
        return cls({word: f"{_place(word)}{n:06d}-{_hash(word, salt)}" for n, word in enumerate(sorted(set(words)))})

    def __call__(self, word: str) -> str:
        return self.known.get(word, word)

    def within(self, text: str) -> str:
        """Every whole word of a text."""
        return _WORD.sub(lambda found: self(found[0]), text)


def hashed(items: list[Item], salt: bytes) -> list[Item]:
    """The objects of a capture, renamed. Nothing is changed in place."""
    kept = KEPT | {word for item in items if _is_pool(item) for text in item["data"].values() for word in _words(text)}
    words = NameHasher.of(
        (w for item in items for w in _found(item) if w not in kept and not _PLAIN.fullmatch(w)), salt
    )
    pools = sorted({name for item in items for name in _pools(item)})
    return [_config_map(item, words, pools) if item["kind"] == "ConfigMap" else _renamed(item, words) for item in items]


def _place(word: str) -> str:
    """A first letter that keeps it where it was among the names that stay."""
    return "a" if word < "default" else "e" if word < "kube-" else "l" if word < "trimtab-system" else "u"


def _hash(word: str, salt: bytes) -> str:
    return hashlib.blake2b(word.encode(), key=salt[:64], digest_size=4).hexdigest()


def _words(text: str) -> list[str]:
    return _WORD.findall(text)


def _is_pool(item: Item) -> bool:
    return item["kind"] == "ConfigMap" and "trimtab.dev/pool" in item["metadata"].get("labels", {}) and "data" in item


def _pools(item: Item) -> Iterator[str]:
    """Names of pools, which stay readable."""
    labels = item["metadata"].get("labels", {}) if item["kind"] in ("Node", "ConfigMap") else {}
    yield from (labels[name] for name in POOL_LABELS if labels.get(name))


def _status(item: Item) -> cluster_autoscaler.Autoscaler | None:
    """What the autoscaler says of itself, where this is it; None too where that cannot be read."""
    text = item.get("data", {}).get("status", "") if item["metadata"]["name"] == cluster_autoscaler.NAME else ""
    found = cluster_autoscaler.read(text) if text else None
    return None if isinstance(found, Unreadable) else found


def _found(item: Item) -> Iterator[str]:
    """Every word of an object that is to be replaced."""
    around: list[str] = []
    if item["kind"] == "ConfigMap":
        _walk(_around(item), lambda word: around.append(word) or word)  # type: ignore[func-returns-value]
        yield from around
        for name, usage in _recommendations(item).items():
            namespace, _, workload = name.split("/", 2)
            yield from (namespace, workload, *usage)
            yield from (found.pod for one in usage.values() for found in (one.cpu, one.memory) if found and found.pod)
        status = _status(item)
        yield from (group.name for group in status.groups) if status else ()
        return
    own = {item["metadata"].get("name", "")} if item["kind"] in KEPT_KINDS else set()
    seen: list[str] = []
    _walk(item, lambda word: seen.append(word) or word)  # type: ignore[func-returns-value]
    yield from (word for word in seen if word not in own)


def _around(item: Item) -> Item:
    """Of a ConfigMap's metadata what is renamed: its own name is ours, of its annotations one moment stays."""
    return {name: part for name, part in item["metadata"].items() if name not in ("name", "annotations")}


def _renamed(item: Item, words: NameHasher) -> Item:
    found: Item = _walk(item, words)
    if item["kind"] in KEPT_KINDS:
        found["metadata"]["name"] = item["metadata"]["name"]
    return found


def _config_map(item: Item, words: NameHasher, pools: list[str]) -> Item:
    meta = {"name": item["metadata"]["name"], **_walk(_around(item), words)}
    if told := item["metadata"].get("annotations"):
        meta["annotations"] = {name: text for name, text in told.items() if name == cluster_autoscaler.UPDATED}
    return {**item, "metadata": meta, "data": _data(item, words, pools)}


def _data(item: Item, words: NameHasher, pools: list[str]) -> dict[str, str]:
    data: dict[str, str] = item.get("data", {})
    if usage := _recommendations(item):
        renamed = {
            _workload(name, words): {words(c): _with_renamed_pods(u, words) for c, u in each.items()}
            for name, each in usage.items()
        }
        return {recommendation.KEY: recommendation.encode(renamed)}
    if data and item["metadata"]["name"] == cluster_autoscaler.NAME:
        status = _status(item)
        return {"status": cluster_autoscaler.written(_regrouped(status, words, pools)) if status else "unreadable"}
    return data if _is_pool(item) else {name: words.within(text) for name, text in data.items()}


def _with_renamed_pods(usage: recommendation.ContainerUsage, words: NameHasher) -> recommendation.ContainerUsage:
    """The same recommendation; the pods it names have other names."""
    renamed = {
        resource: structs.replace(found, pod=words(found.pod))
        for resource in ("cpu", "memory")
        if (found := usage.of(resource)) is not None and found.pod
    }
    return structs.replace(usage, **renamed)


def _regrouped(
    found: cluster_autoscaler.Autoscaler, words: NameHasher, pools: list[str]
) -> cluster_autoscaler.Autoscaler:
    """A group belongs to the pools whose names are part of its own: those parts stay."""
    groups = tuple(
        replace(
            group,
            name="-".join((words(group.name), *(pool for pool in pools if cluster_autoscaler.belongs(group, pool)))),
        )
        for group in found.groups
    )
    return replace(found, groups=groups)


def _workload(name: str, words: NameHasher) -> str:
    namespace, kind, workload = name.split("/", 2)
    return f"{words(namespace)}/{kind}/{words(workload)}"


def _recommendations(item: Item) -> recommendation.Workloads:
    text = item.get("data", {}).get(recommendation.KEY, "")
    found = recommendation.decode("", text) if text else {}
    return {} if isinstance(found, Unreadable) else {k: v for k, v in found.items() if k.count("/") >= 2}


def _walk(value: Any, give: Any, key: str = "") -> Any:
    """The value with every word replaced by what `give` says."""
    if isinstance(value, list | tuple):
        return [give(v) if key == "namespaces" and isinstance(v, str) else _walk(v, give, key) for v in value]
    if not isinstance(value, dict):
        return value
    if key in MAPS:
        return {name: give(text) if _personal(name) else text for name, text in value.items()}
    if key == "annotations":
        return {name: _annotation(name, text, give) for name, text in value.items() if name != "trimtab.dev/changed"}
    if "operator" in value and "values" in value and "key" in value:
        return {**value, "values": [give(v) if _personal(value["key"]) else v for v in value["values"]]}
    if "key" in value and isinstance(value.get("value"), str):
        return {**value, "value": give(value["value"]) if _personal(value["key"]) else value["value"]}
    as_is = key in ("os", "drivers", "csi")
    return {name: _part(name, inner, give, as_is=as_is) for name, inner in value.items() if name not in SPOKEN}


def _part(name: str, inner: Any, give: Any, *, as_is: bool) -> Any:
    if name in PATHS and inner:
        return {"path": ""}
    return give(inner) if name in NAMES and isinstance(inner, str) and not as_is else _walk(inner, give, name)


def _annotation(name: str, text: str, give: Any) -> str:
    """Ours, and plain values, stay: they decide something. Lists of volumes are lists of names."""
    if name == LOCAL_VOLUMES:
        return ",".join(give(word.strip()) for word in text.split(","))
    if name == OPENSHIFT_MACHINE and (machine_set := machine_set_of(text)):
        return f"{give(text.partition('/')[0])}/{give(machine_set)}-aaaaa"
    if name == CAPI_OWNER_KIND:
        return text
    return text if name.startswith("trimtab.dev/") or _PLAIN.fullmatch(text) else give(text)


def _personal(label: str) -> bool:
    """May the value of this label be somebody's name?"""
    if label in PERSONAL_KEYS or label.startswith(PERSONAL):
        return True
    domain = label.partition("/")[0]
    return not ("/" in label and any(domain == d or domain.endswith(f".{d}") for d in PLATFORM))
