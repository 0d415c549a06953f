"""Replaces the names in a capture of a cluster, so that the capture can be shared.

Every text is replaced by another word, except in a list of fields (`READABLE_FIELDS`). The same word gets
the same replacement everywhere, and replacements sort as the names did. So selectors still select, owners still own,
and every decision that depends on the order of names stays the same. Words of Kubernetes and of the platform stay
readable: the values of some labels (`PUBLIC_LABELS`), resources, taint keys, class names, label keys, names of pools.
The replacement of a name cannot be guessed without the salt.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from msgspec import convert, structs, to_builtins

from trimtab.cluster import cluster_autoscaler, recommendation
from trimtab.cluster import disruption_terms as terms
from trimtab.cluster.kinds import GROUPS_BY_KIND
from trimtab.cluster.node import CAPACITY_TYPE_LABEL
from trimtab.cluster.node_nature import SIGN_ANNOTATIONS, SIGN_KEYS
from trimtab.cluster.pool import ALL_NODES, CAPI_OWNER_KIND, NODE_LABELS, OPENSHIFT_MACHINE, PLACEMENTS, machine_set_of
from trimtab.cluster.pool_config import SETTINGS_KEY, read_settings
from trimtab.cluster.pool_labels import POOL_LABELS
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.runtime_signs import SIGNS_FIELD, RuntimeSign, can_name_runtime, container_signs, is_runtime_word
from trimtab.cluster.yaml_documents import read_documents
from trimtab.cluster.yaml_format import format_document

Item = dict[str, Any]

COMMON_WORDS = frozenset(
    {
        "",
        "true",
        "false",
        "default",
        "kube-system",
        "kube-public",
        "kube-node-lease",
        "trimtab-system",
        "default-scheduler",
    }
    | {"cpu", "memory", "ephemeral-storage", "linux", "windows", "0.0.0.0", "::"}  # noqa: S104  a word
)
"""Words that every cluster has, so that they tell nothing of this one."""
KINDS_WITH_PUBLIC_NAMES = frozenset({"CSIDriver", "RuntimeClass", "PriorityClass", "StorageClass", "ConfigMap"})
"""Kinds whose objects keep their own name, because the name identifies neither a person nor a team. The only ConfigMaps
in a capture are those of Trimtab and of the cluster autoscaler."""
READABLE_FIELDS = frozenset(
    # Enumerations of the API.
    {"accessModes", "action", "allocationMode", "controlledResources", "controlledValues", "effect", "medium", "mode"}
    | {"nodeAffinityPolicy", "nodeTaintsPolicy", "operator", "phase", "preemptionPolicy", "protocol", "restartPolicy"}
    | {"recursiveReadOnly", "declaredFeatures"}
    | {"scopeName", "scopes", "selectPolicy", "status", "supplementalGroupsPolicy", "unhealthyPodEvictionPolicy"}
    | {"updateMode", "volumeBindingMode", "whenUnsatisfiable"}
    # Versions and platforms of nodes.
    | {"architecture", "containerRuntimeVersion", "kubeletVersion", "operatingSystem"}
    # Names of resources, and keys of labels and taints: the settings of pools and policies name them.
    | {"resource", "resourceName", "resources", "key", "matchLabelKeys", "mismatchLabelKeys", "topologyKey"}
    # What shows a container's runtime, in Trimtab's own words.
    | {"frees", "runtime", "shownBy"}
    # Names of classes and drivers.
    | {"deviceClassName", "driver", "priorityClassName", "provisioner", "runtimeClassName", "storageClassName"}
)
"""The fields whose text stays as it is. The text of every other field is replaced, also that of a field that is added
later: whoever adds one decides here."""
WORD_FIELDS = frozenset({"kind", "reason", "type"})
"""Fields whose text stays if it is one of `KNOWN_WORDS`: an owner's kind, and why a controller did something, may be
any text."""
KNOWN_WORDS = frozenset(
    {*GROUPS_BY_KIND, "MachineSet", "MachineDeployment", "MachinePool", "KubeadmControlPlane"}
    # Types of conditions: k8s.io/api/core/v1, autoscaling/v2 and apps/v1.
    | {"Ready", "ContainersReady", "Initialized", "PodScheduled", "PodReadyToStartContainers", "DisruptionTarget"}
    | {"PodResizePending", "PodResizeInProgress", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"}
    | {"AbleToScale", "ScalingActive", "ScalingLimited", "RecommendationProvided", "Available", "Progressing"}
    | {"Complete", "Failed", "Suspended", "SuccessCriteriaMet", "FailureTarget", "DisruptionAllowed"}
    | {"ReadyForProvisioning"}
    # Reasons: k8s.io/api/core/v1, pkg/kubelet and pkg/scheduler.
    | {"Unschedulable", "SchedulingGated", "Deferred", "Infeasible", "Error", "Completed", "Evicted", "OOMKilled"}
    | {"CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "ContainerCreating", "PodInitializing", "NodeLost"}
    | {"CreateContainerConfigError", "CreateContainerError", "ContainerCannotRun", "DeadlineExceeded", "Preempting"}
    | {"KubeletReady", "KubeletNotReady", "NodeStatusUnknown", "Terminated", "NodeShutdown", "OutOfcpu", "OutOfmemory"}
    # Types of metrics, strategies, policies and limits.
    | {"Resource", "ContainerResource", "Pods", "Object", "External", "Utilization", "AverageValue", "Value", "Percent"}
    | {"RollingUpdate", "Recreate", "OnDelete", "Container", "Pod", "PersistentVolumeClaim", "Directory", "File"}
)
MAPS = frozenset({"labels", "matchLabels", "nodeSelector"})
PATHS = frozenset({"local", "hostPath"})
"""Volume sources that name a path on the node. The source is kept, because it decides whether its pod may move. The
path is removed, because it decides nothing."""
MESSAGE_FIELDS = frozenset({"message"})
"""Free text of controllers, such as the message of a condition, can contain names anywhere, so it is dropped."""
PLATFORM = ("kubernetes.io", "k8s.io", "karpenter.sh", "cloud.google.com", "amazonaws.com", "azure.com", "trimtab.dev")
"""Domains of the groups of public APIs."""
PUBLIC_LABELS = frozenset(
    {*POOL_LABELS}
    # k8s.io/api/core/v1/well_known_labels.go.
    | {f"{prefix}kubernetes.io/{name}" for prefix in ("", "beta.") for name in ("os", "arch")}
    | {f"{prefix}.kubernetes.io/instance-type" for prefix in ("node", "beta")}
    | {
        f"{domain}/{name}"
        for domain in ("topology.kubernetes.io", "failure-domain.beta.kubernetes.io")
        for name in ("zone", "region")
    }
    | {"node.kubernetes.io/windows-build", "endpointslice.kubernetes.io/managed-by"}
    # How a node is paid for, and what it is: documentation of Karpenter, EKS, AKS and GKE.
    | SIGN_KEYS
    | {CAPACITY_TYPE_LABEL, "eks.amazonaws.com/capacityType"}
    | {"kubernetes.azure.com/scalesetpriority", "cloud.google.com/gke-spot", "cloud.google.com/gke-preemptible"}
    | {"cloud.google.com/gke-tpu-topology", "cloud.google.com/gke-accelerator"}
    | {"cloud.google.com/gke-provisioning", "cloud.google.com/machine-family"}
    # Trimtab's own: amounts, versions and shards.
    | {f"trimtab.dev/{name}" for name in ("state", "recommendations", "reservations", "price", "keep", "legacy")}
)
"""The labels whose values stay readable, also in selectors, and as keys of taints: each value is a word of the
platform, an amount, or the name of a pool. The value of every other label may be the name of a person or a customer."""
QUANTITY_MAPS = frozenset(
    {"allocatable", "allocatedResources", "capacity", "default", "defaultRequest", "hard", "limits", "lowerBound"}
    | {"max", "maxAllowed", "maxLimitRequestRatio", "min", "minAllowed", "overhead", "podFixed", "requests", "target"}
    | {"uncappedTarget", "upperBound", "usage", "used"}
)
"""The fields that map resources to quantities."""
PLAIN_FIELDS = frozenset(
    # Quantities, and numbers or percentages of pods.
    {"averageValue", "maxSurge", "maxUnavailable", "minAvailable", "sizeLimit", "tolerance"}
    # Times and durations.
    | {"creationTimestamp", "deletionTimestamp", "lastScaleTime", "lastTransitionTime", "startTime", "timeAdded"}
    | {"startedAt", "finishedAt", "time", "timestamp", "window"}
)
"""The other fields whose text stays if it is a plain value (`_PLAIN`). Elsewhere, a number may be a name: that of a
customer, for example."""
PLAIN_ANNOTATIONS = frozenset(
    {"trimtab.dev/price", "trimtab.dev/price-per-gib-month", "trimtab.dev/resumed-at", "trimtab.dev/reserved-target"}
    | {"autoscaling.keda.sh/paused-replicas", terms.DELETION_COST_ANNOTATION, terms.COST_ANNOTATION}
    | {terms.PER_DAY_ANNOTATION}
    | {f"deployment.kubernetes.io/{name}" for name in ("revision", "desired-replicas", "max-replicas")}
    | {cluster_autoscaler.UPDATED_ANNOTATION}
)
"""The annotations whose text stays if it is a plain value."""
# The cluster autoscaler reads the value as a comma-separated list of volume names.
LOCAL_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
_PLAIN = re.compile(
    # A boolean, a quantity or a percentage, a duration, or a time: none of them is a name.
    r"true|false||[-+]?\d+(\.\d+)?([eE][-+]?\d+|[numkMGTPE]|[KMGTPE]i|%|s)?"
    r"|\d{4}-\d\d-\d\d[T ][0-9:.]+ ?(Z|[-+][0-9:]+)?( UTC)?"
)
_VERSION = re.compile(r"v\d+((alpha|beta)\d+)?")
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
    # All words are collected before any is replaced, because the numbers in the replacements follow the order of all.
    words = NameHasher.from_words(
        (word for item in items for word in _words_to_replace(item) if word not in COMMON_WORDS), salt
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


def _is_pool(item: Item) -> bool:
    return item["kind"] == "ConfigMap" and "trimtab.dev/pool" in item["metadata"].get("labels", {}) and "data" in item


def _pool_names(item: Item) -> Iterator[str]:
    """Yields the names of pools in the object's labels. These names are not replaced."""
    labels = item["metadata"].get("labels", {}) if item["kind"] in ("Node", "ConfigMap") else {}
    yield from (labels[name] for name in POOL_LABELS if labels.get(name))


def _autoscaler_status(item: Item) -> cluster_autoscaler.Autoscaler | None:
    """Returns a cluster autoscaler's status if the object is a ConfigMap with one, whatever its name is. Returns None
    for any other object, and for a status that cannot be parsed."""
    text = item.get("data", {}).get("status", "") if item["kind"] == "ConfigMap" else ""
    status = cluster_autoscaler.parse_status(text) if text else None
    return None if isinstance(status, Unreadable) else status


def _words_to_replace(item: Item) -> Iterator[str]:
    """Yields every word of an object that is to be replaced."""
    metadata_words: list[str] = []
    if item["kind"] == "ConfigMap":
        _replace_words(_metadata_to_rename(item), lambda word: metadata_words.append(word) or word)  # type: ignore[func-returns-value]
        _rename_settings(item, lambda word: metadata_words.append(word) or word)  # type: ignore[func-returns-value]
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
    own = {item["metadata"].get("name", "")} if item["kind"] in KINDS_WITH_PUBLIC_NAMES else set()
    words: list[str] = []
    # `append` returns None, so the callback records the word and gives it back unchanged.
    _replace_words(_without_type(item), lambda word: words.append(word) or word)  # type: ignore[func-returns-value]
    yield from (word for word in words if word not in own)


def _metadata_to_rename(item: Item) -> Item:
    """Returns the part of a ConfigMap's metadata in which names are replaced. The ConfigMap's own name and its
    annotations are not in it. Of the annotations, only one timestamp is kept in the capture."""
    return {name: part for name, part in item["metadata"].items() if name not in ("name", "annotations")}


def _rename_object(item: Item, hasher: NameHasher) -> Item:
    renamed: Item = {
        **{name: item[name] for name in _TYPE if name in item},
        **_replace_words(_without_type(item), hasher),
    }
    if item["kind"] in KINDS_WITH_PUBLIC_NAMES:
        renamed["metadata"]["name"] = item["metadata"]["name"]
    return renamed


_TYPE = ("apiVersion", "kind")


def _without_type(item: Item) -> Item:
    """Returns the object without its kind, which is one that Trimtab reads."""
    return {name: value for name, value in item.items() if name not in _TYPE}


def _rename_config_map(item: Item, hasher: NameHasher, pools: list[str]) -> Item:
    meta = {"name": item["metadata"]["name"], **_replace_words(_metadata_to_rename(item), hasher)}
    if annotations := item["metadata"].get("annotations"):
        meta["annotations"] = {
            name: text for name, text in annotations.items() if name == cluster_autoscaler.UPDATED_ANNOTATION
        }
    return {**item, "metadata": meta, "data": _rename_data(item, hasher, pools)}


def _rename_data(item: Item, hasher: NameHasher, pools: list[str]) -> dict[str, str]:
    data: dict[str, str] = item.get("data", {})
    if usage := _recommendations(item):
        renamed = {
            _rename_workload(name, hasher): {hasher(c): _with_renamed_pods(u, hasher) for c, u in each.items()}
            for name, each in usage.items()
        }
        return {recommendation.PAYLOAD_KEY: recommendation.encode(renamed)}
    status = _autoscaler_status(item)
    if data and (status is not None or item["metadata"]["name"] == cluster_autoscaler.STATUS_NAME):
        return {
            "status": cluster_autoscaler.format_status(_rename_groups(status, hasher, pools))
            if status
            else "unreadable"
        }
    return (
        _rename_settings(item, hasher)
        if _is_pool(item)
        else {name: hasher.replace_in_text(text) for name, text in data.items()}
    )


_UNREADABLE_SETTINGS = "unreadable: true\n"


def _rename_settings(item: Item, rename: Any) -> dict[str, str]:
    """Returns a pool's settings with the values of labels and the names of schedulers replaced; every other text in
    them is a word of Trimtab's own. They are written from what they say, so that no comment remains. Settings with a
    mistake, which might be a name, stay a mistake and nothing else."""
    text = item["data"].get(SETTINGS_KEY, "") if _is_pool(item) else ""
    reading = read_documents("", text.encode())
    if not reading.documents and not reading.mistakes:
        return {SETTINGS_KEY: ""}
    document = reading.documents[0] if len(reading.documents) == 1 and not reading.mistakes else None
    if document is None or read_settings(document, "pool")[0] is None:
        return {SETTINGS_KEY: _UNREADABLE_SETTINGS}
    settings = dict(document.value) if isinstance(document.value, dict) else {}
    if isinstance(nodes := settings.get(ALL_NODES.key), dict):
        settings[ALL_NODES.key] = _replace_words({NODE_LABELS.key: nodes.get(NODE_LABELS.key, {})}, rename)
    if schedulers := settings.get(PLACEMENTS.key):
        settings[PLACEMENTS.key] = {rename(name): placement for name, placement in schedulers.items()}
    return {SETTINGS_KEY: format_document(settings)}


def _with_renamed_pods(usage: recommendation.ContainerUsage, hasher: NameHasher) -> recommendation.ContainerUsage:
    """Returns a container's usage with the names of its pods replaced."""
    renamed = {
        resource: structs.replace(percentiles, pod=hasher(percentiles.pod))
        for resource in ("cpu", "memory")
        if (percentiles := usage.percentiles_of(resource)) is not None and percentiles.pod
    }
    return structs.replace(usage, **renamed)


def _rename_groups(
    autoscaler: cluster_autoscaler.Autoscaler, hasher: NameHasher, pools: list[str]
) -> cluster_autoscaler.Autoscaler:
    """Returns the autoscaler's status with the names of its node groups replaced. The parts of a group's name that are
    names of pools stay, because they show to which pools the group belongs."""
    groups = tuple(
        replace(
            group,
            name="-".join(
                (hasher(group.name), *(pool for pool in pools if cluster_autoscaler.is_group_of_pool(group, pool)))
            ),
        )
        for group in autoscaler.groups
    )
    return replace(autoscaler, groups=groups)


def _rename_workload(name: str, hasher: NameHasher) -> str:
    namespace, kind, workload = name.split("/", 2)
    return f"{hasher(namespace)}/{_replace_text('kind', kind, hasher)}/{hasher(workload)}"


def _recommendations(item: Item) -> recommendation.Workloads:
    text = item.get("data", {}).get(recommendation.PAYLOAD_KEY, "")
    workloads = recommendation.decode("", text) if text else {}
    return {} if isinstance(workloads, Unreadable) else {k: v for k, v in workloads.items() if k.count("/") >= 2}


def _replace_words(value: Any, rename: Any, key: str = "") -> Any:
    """Returns the value with every text replaced by the result of `rename`, except in the fields that stay readable.
    `key` is the field that holds the value."""
    if isinstance(value, str):
        return _replace_text(key, value, rename)
    if isinstance(value, list | tuple):
        # A list, such as that of requests for devices, is no map of quantities.
        return [_replace_words(one, rename, "" if key in QUANTITY_MAPS else key) for one in value]
    if not isinstance(value, dict):
        return value
    if key in QUANTITY_MAPS and not _METRIC_TARGET & value.keys():
        return {name: _replace_plain(inner, rename) for name, inner in value.items()}
    if key in PATHS and value:
        return {"path": ""}
    if key in MAPS:
        return {
            name: text if name in PUBLIC_LABELS or (can_name_runtime(name) and is_runtime_word(text)) else rename(text)
            for name, text in value.items()
        }
    if key == "annotations":
        return {
            name: _replace_annotation(name, text, rename)
            for name, text in value.items()
            if name != "trimtab.dev/changed"
        }
    if key in ("containers", "initContainers") and isinstance(value.get("image"), str):
        # The container with what its image shows of its runtime, because the image itself is replaced.
        stored = convert(value.get(SIGNS_FIELD, ()), tuple[RuntimeSign, ...])
        signs = to_builtins(container_signs(stored, value["image"]))
        value = {**value, SIGNS_FIELD: signs} if signs else value
    return {
        name: _replace_field(name, inner, value, rename, as_is=key in ("os", "drivers", "csi"))
        for name, inner in value.items()
        if name not in MESSAGE_FIELDS
    }


_METRIC_TARGET = frozenset({"type", "requests"})
"""Fields of structs that have the name of a map of quantities: the target of a metric, the capacity of a device."""


def _replace_plain(value: Any, rename: Any) -> Any:
    """Returns a value at a place of plain values. A text that is none is replaced."""
    return value if isinstance(value, str) and _PLAIN.fullmatch(value) else _replace_words(value, rename)


def _replace_field(name: str, inner: Any, siblings: Item, rename: Any, *, as_is: bool) -> Any:
    """Returns the value of a field. Its siblings say whether `value` and `values` are those of a label of the platform,
    or of a scope of quotas, which names classes."""
    if name in ("value", "values") and ("scopeName" in siblings or siblings.get("key") in PUBLIC_LABELS):
        return inner
    # The names of a system and of CSI drivers.
    if as_is and name == "name":
        return inner
    return _replace_words(inner, rename, name)


def _replace_text(field: str, text: str, rename: Any) -> str:
    if field in READABLE_FIELDS or (field in WORD_FIELDS and text in KNOWN_WORDS):
        return text
    if field in PLAIN_FIELDS:
        return str(_replace_plain(text, rename))
    if field == "apiVersion":
        group, slash, version = text.rpartition("/")
        is_version = _VERSION.fullmatch(version) is not None
        is_public = group in GROUPS_BY_KIND.values() or any(
            group == project or group.endswith(f".{project}") for project in PLATFORM
        )
        if is_version and is_public:
            return text
        return f"{rename(group)}{slash}{version}" if is_version else str(rename(text))
    return str(rename(text))


def _replace_annotation(name: str, text: str, rename: Any) -> str:
    """Returns the annotation's text with names replaced. Plain values such as `true` stay: decisions depend on them."""
    if name == LOCAL_VOLUMES:
        return ",".join(rename(word.strip()) for word in text.split(","))
    if name == OPENSHIFT_MACHINE and (machine_set := machine_set_of(text)):
        # A Machine's name is its MachineSet's name with a generated suffix; `machine_set_of` must still find the
        # MachineSet.
        return f"{rename(text.partition('/')[0])}/{rename(machine_set)}-aaaaa"
    if name == CAPI_OWNER_KIND:
        return _replace_text("kind", text, rename)
    if text.startswith("{") and isinstance(parsed := _parse_json(text), dict):
        # A note of the compactor. Its signature is not valid for other names, and nothing trusts it.
        return json.dumps(_replace_in_note(parsed, rename))
    is_sign = text in SIGN_ANNOTATIONS.get(name, ())
    is_sign = is_sign or (
        name == terms.WINDOWS_ANNOTATION and not isinstance(terms.parse_windows(text), terms.TermMistake)
    )
    return text if is_sign else str(_replace_plain(text, rename) if name in PLAIN_ANNOTATIONS else rename(text))


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _replace_in_note(value: Any, rename: Any) -> Any:
    """Returns a value of JSON with all texts replaced, and with those keys of mappings that name an object as
    namespace/name."""
    if isinstance(value, str):
        return value if value in KNOWN_WORDS else "/".join(str(rename(part)) for part in value.split("/"))
    if isinstance(value, list):
        return [_replace_in_note(one, rename) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        _replace_in_note(name, rename) if "/" in name else name: _replace_in_note(inner, rename)
        for name, inner in value.items()
    }
