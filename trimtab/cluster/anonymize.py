"""Replaces the names in a capture of a cluster, so that the capture can be shared.

Every name, uid and image, and every label value that could be a name, is replaced by another word. The same word gets
the same replacement everywhere, and replacements sort as the names did. So selectors still select, owners still own,
and every decision that depends on the order of names stays the same. Words of Kubernetes and of the platform stay
readable: well-known labels, resources, taint keys, class names, label keys. The replacement of a name cannot be guessed
without the salt.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from msgspec import structs

from trimtab.cluster import cluster_autoscaler, recommendation
from trimtab.cluster.pool import CAPI_OWNER_KIND, OPENSHIFT_MACHINE, machine_set_of
from trimtab.cluster.pool_labels import POOL_LABELS
from trimtab.cluster.reason import Unreadable

Item = dict[str, Any]

KEPT = frozenset({"", "default", "kube-system", "kube-public", "kube-node-lease", "trimtab-system"})
KEPT_KINDS = frozenset({"RuntimeClass", "PriorityClass", "StorageClass", "ConfigMap"})
"""Kinds whose objects keep their own name, because the name identifies neither a person nor a team. The only ConfigMaps
in a capture are those of Trimtab and of the cluster autoscaler."""
NAMES = frozenset(
    {"name", "namespace", "generateName", "uid", "nodeName", "nominatedNodeName", "containerName", "claimName"}
    | {"volumeName", "volumeHandle", "image", "providerID", "resourceClaimName", "resourceClaimTemplateName"}
)  # fmt: skip
MAPS = frozenset({"labels", "matchLabels", "nodeSelector"})
PATHS = frozenset({"local", "hostPath"})
"""Volume sources that name a path on the node. The source is kept, because it decides whether its pod may move. The
path is removed, because it decides nothing."""
# Free text of controllers, such as the message of a condition, can contain names anywhere, so it is dropped.
SPOKEN = frozenset({"message"})
PLATFORM = ("kubernetes.io", "k8s.io", "karpenter.sh", "cloud.google.com", "amazonaws.com", "azure.com", "trimtab.dev")
PERSONAL = ("app.kubernetes.io/", "batch.kubernetes.io/", "statefulset.kubernetes.io/")
PERSONAL_KEYS = frozenset({"kubernetes.io/hostname", "kubernetes.io/metadata.name", "metadata.name"})
# The cluster autoscaler reads the value as a comma-separated list of volume names.
LOCAL_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
_PLAIN = re.compile(r"-?\d+(\.\d+)?|true|false|")
_WORD = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_.]*")


@dataclass(frozen=True, slots=True)
class NameHasher:
    """Maps each name to its replacement."""

    replacements: Mapping[str, str]

    @classmethod
    def from_words(cls, words: Iterable[str], salt: bytes) -> NameHasher:
        """Returns the mapping for these words. A replacement has the word's position in sorted order and a hash of the
        word. The hash is made with the salt, so it differs from capture to capture."""
        return cls(
            {
                word: f"{_sort_prefix(word)}{n:06d}-{_salted_hash(word, salt)}"
                for n, word in enumerate(sorted(set(words)))
            }
        )

    def __call__(self, word: str) -> str:
        return self.replacements.get(word, word)

    def replace_in_text(self, text: str) -> str:
        """Returns the text with every whole word that has a replacement replaced."""
        return _WORD.sub(lambda found: self(found[0]), text)


def hash_names(items: list[Item], salt: bytes) -> list[Item]:
    """Returns copies of the objects of a capture, with their names replaced."""
    preserved = KEPT | {
        word for item in items if _is_pool(item) for text in item["data"].values() for word in _words_of(text)
    }
    # All words are collected before any is replaced, because the numbers in the replacements follow the order of all.
    words = NameHasher.from_words(
        (w for item in items for w in _words_to_replace(item) if w not in preserved and not _PLAIN.fullmatch(w)), salt
    )
    pools = sorted({name for item in items for name in _pool_names(item)})
    return [
        _rename_config_map(item, words, pools) if item["kind"] == "ConfigMap" else _rename_object(item, words)
        for item in items
    ]


def _sort_prefix(word: str) -> str:
    """Returns the first letter of a word's replacement. It keeps the word's order relative to the names that are not
    replaced."""
    # The preserved names are "default", "kube-…" and "trimtab-system"; each letter sorts between two of them.
    return "a" if word < "default" else "e" if word < "kube-" else "l" if word < "trimtab-system" else "u"


def _salted_hash(word: str, salt: bytes) -> str:
    return hashlib.blake2b(word.encode(), key=salt[:64], digest_size=4).hexdigest()


def _words_of(text: str) -> list[str]:
    return _WORD.findall(text)


def _is_pool(item: Item) -> bool:
    return item["kind"] == "ConfigMap" and "trimtab.dev/pool" in item["metadata"].get("labels", {}) and "data" in item


def _pool_names(item: Item) -> Iterator[str]:
    """Yields the names of pools in the object's labels. These names are not replaced."""
    labels = item["metadata"].get("labels", {}) if item["kind"] in ("Node", "ConfigMap") else {}
    yield from (labels[name] for name in POOL_LABELS if labels.get(name))


def _autoscaler_status(item: Item) -> cluster_autoscaler.Autoscaler | None:
    """Returns the cluster autoscaler's status if the object is the status ConfigMap. Returns None for any other object,
    and for a status that cannot be parsed."""
    text = item.get("data", {}).get("status", "") if item["metadata"]["name"] == cluster_autoscaler.STATUS_NAME else ""
    status = cluster_autoscaler.parse_status(text) if text else None
    return None if isinstance(status, Unreadable) else status


def _words_to_replace(item: Item) -> Iterator[str]:
    """Yields every word of an object that is to be replaced."""
    metadata_words: list[str] = []
    if item["kind"] == "ConfigMap":
        _replace_words(_metadata_to_rename(item), lambda word: metadata_words.append(word) or word)  # type: ignore[func-returns-value]
        yield from metadata_words
        for name, usage in _recommendations(item).items():
            namespace, _, workload = name.split("/", 2)
            yield from (namespace, workload, *usage)
            yield from (
                percentiles.pod
                for one in usage.values()
                for percentiles in (one.cpu, one.memory)
                if percentiles and percentiles.pod
            )
        status = _autoscaler_status(item)
        yield from (group.name for group in status.groups) if status else ()
        return
    own = {item["metadata"].get("name", "")} if item["kind"] in KEPT_KINDS else set()
    words: list[str] = []
    # `append` returns None, so the callback records the word and gives it back unchanged.
    _replace_words(item, lambda word: words.append(word) or word)  # type: ignore[func-returns-value]
    yield from (word for word in words if word not in own)


def _metadata_to_rename(item: Item) -> Item:
    """Returns the part of a ConfigMap's metadata in which names are replaced. The ConfigMap's own name and its
    annotations are not in it. Of the annotations, only one timestamp is kept in the capture."""
    return {name: part for name, part in item["metadata"].items() if name not in ("name", "annotations")}


def _rename_object(item: Item, words: NameHasher) -> Item:
    renamed: Item = _replace_words(item, words)
    if item["kind"] in KEPT_KINDS:
        renamed["metadata"]["name"] = item["metadata"]["name"]
    return renamed


def _rename_config_map(item: Item, words: NameHasher, pools: list[str]) -> Item:
    meta = {"name": item["metadata"]["name"], **_replace_words(_metadata_to_rename(item), words)}
    if annotations := item["metadata"].get("annotations"):
        meta["annotations"] = {
            name: text for name, text in annotations.items() if name == cluster_autoscaler.UPDATED_ANNOTATION
        }
    return {**item, "metadata": meta, "data": _rename_data(item, words, pools)}


def _rename_data(item: Item, words: NameHasher, pools: list[str]) -> dict[str, str]:
    data: dict[str, str] = item.get("data", {})
    if usage := _recommendations(item):
        renamed = {
            _rename_workload(name, words): {words(c): _with_renamed_pods(u, words) for c, u in each.items()}
            for name, each in usage.items()
        }
        return {recommendation.PAYLOAD_KEY: recommendation.encode(renamed)}
    if data and item["metadata"]["name"] == cluster_autoscaler.STATUS_NAME:
        status = _autoscaler_status(item)
        return {
            "status": cluster_autoscaler.format_status(_rename_groups(status, words, pools)) if status else "unreadable"
        }
    return data if _is_pool(item) else {name: words.replace_in_text(text) for name, text in data.items()}


def _with_renamed_pods(usage: recommendation.ContainerUsage, words: NameHasher) -> recommendation.ContainerUsage:
    """Returns a container's usage with the names of its pods replaced."""
    renamed = {
        resource: structs.replace(percentiles, pod=words(percentiles.pod))
        for resource in ("cpu", "memory")
        if (percentiles := usage.percentiles_of(resource)) is not None and percentiles.pod
    }
    return structs.replace(usage, **renamed)


def _rename_groups(
    status: cluster_autoscaler.Autoscaler, words: NameHasher, pools: list[str]
) -> cluster_autoscaler.Autoscaler:
    """Returns the autoscaler's status with the names of its node groups replaced. The parts of a group's name that are
    names of pools stay, because they show to which pools the group belongs."""
    groups = tuple(
        replace(
            group,
            name="-".join(
                (words(group.name), *(pool for pool in pools if cluster_autoscaler.is_group_of_pool(group, pool)))
            ),
        )
        for group in status.groups
    )
    return replace(status, groups=groups)


def _rename_workload(name: str, words: NameHasher) -> str:
    namespace, kind, workload = name.split("/", 2)
    return f"{words(namespace)}/{kind}/{words(workload)}"


def _recommendations(item: Item) -> recommendation.Workloads:
    text = item.get("data", {}).get(recommendation.PAYLOAD_KEY, "")
    workloads = recommendation.decode("", text) if text else {}
    return {} if isinstance(workloads, Unreadable) else {k: v for k, v in workloads.items() if k.count("/") >= 2}


def _replace_words(value: Any, rename: Any, key: str = "") -> Any:
    """Returns the value with every word replaced by the result of `rename`."""
    if isinstance(value, list | tuple):
        return [
            rename(v) if key == "namespaces" and isinstance(v, str) else _replace_words(v, rename, key) for v in value
        ]
    if not isinstance(value, dict):
        return value
    if key in MAPS:
        return {name: rename(text) if _may_hold_a_name(name) else text for name, text in value.items()}
    if key == "annotations":
        return {
            name: _replace_annotation(name, text, rename)
            for name, text in value.items()
            if name != "trimtab.dev/changed"
        }
    # A label selector requirement or a node selector requirement: its values are names only if its key is personal.
    if "operator" in value and "values" in value and "key" in value:
        return {**value, "values": [rename(v) if _may_hold_a_name(value["key"]) else v for v in value["values"]]}
    # A toleration or a taint.
    if "key" in value and isinstance(value.get("value"), str):
        return {**value, "value": rename(value["value"]) if _may_hold_a_name(value["key"]) else value["value"]}
    as_is = key in ("os", "drivers", "csi")
    return {
        name: _replace_field(name, inner, rename, as_is=as_is) for name, inner in value.items() if name not in SPOKEN
    }


def _replace_field(name: str, inner: Any, rename: Any, *, as_is: bool) -> Any:
    if name in PATHS and inner:
        return {"path": ""}
    return (
        rename(inner) if name in NAMES and isinstance(inner, str) and not as_is else _replace_words(inner, rename, name)
    )


def _replace_annotation(name: str, text: str, rename: Any) -> str:
    """Returns the annotation's text with names replaced. Trimtab's own annotations and plain values such as `true`
    stay, because decisions depend on them; a list of volumes is read as a list of names."""
    if name == LOCAL_VOLUMES:
        return ",".join(rename(word.strip()) for word in text.split(","))
    if name == OPENSHIFT_MACHINE and (machine_set := machine_set_of(text)):
        # A Machine's name is its MachineSet's name with a generated suffix; `machine_set_of` must still find the
        # MachineSet.
        return f"{rename(text.partition('/')[0])}/{rename(machine_set)}-aaaaa"
    if name == CAPI_OWNER_KIND:
        return text
    return text if name.startswith("trimtab.dev/") or _PLAIN.fullmatch(text) else rename(text)


def _may_hold_a_name(label: str) -> bool:
    """Returns whether the label's value may be the name of a person or a team. True for every label except those of the
    platform."""
    if label in PERSONAL_KEYS or label.startswith(PERSONAL):
        return True
    domain = label.partition("/")[0]
    return not ("/" in label and any(domain == d or domain.endswith(f".{d}") for d in PLATFORM))
