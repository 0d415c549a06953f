"""What is in the cluster, as one value?

A `Snapshot` is what `kubectl get nodes,pods,… -A -o yaml|json` printed (a List, several documents, gzip, any number
of files), decoded into shapes that name only what we read. Kinds we have no use for are counted, not kept.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

import msgspec

from trimtab.cluster.api import autoscaling, core, devices, pod, storage, workload
from trimtab.cluster.api.meta import ApiObject, Labels, Metadata
from trimtab.cluster.config_error import ConfigError, shown
from trimtab.cluster.yaml_documents import Document, read

S = TypeVar("S", bound=ApiObject)


class ConfigMap(ApiObject, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    data: Labels = {}


KINDS: dict[str, type[ApiObject]] = {
    "Pod": pod.Pod,
    "Node": core.Node,
    "Namespace": core.Namespace,
    "RuntimeClass": core.RuntimeClass,
    "LimitRange": core.LimitRange,
    "ResourceQuota": core.ResourceQuota,
    "PriorityClass": core.PriorityClass,
    "VerticalPodAutoscaler": autoscaling.VerticalPodAutoscaler,
    "HorizontalPodAutoscaler": autoscaling.HorizontalPodAutoscaler,
    "ConfigMap": ConfigMap,
    "PodDisruptionBudget": workload.PodDisruptionBudget,
    "PersistentVolume": storage.PersistentVolume,
    "PersistentVolumeClaim": storage.PersistentVolumeClaim,
    "StorageClass": storage.StorageClass,
    "CSINode": storage.CSINode,
    **dict.fromkeys(
        ("Deployment", "ReplicaSet", "StatefulSet", "Job", "CronJob", "ReplicationController"),
        workload.Workload,
    ),
    "DaemonSet": workload.DaemonSet,
    "CapacityBuffer": autoscaling.CapacityBuffer,
    "PodTemplate": autoscaling.PodTemplate,
    "ResourceClaim": devices.ResourceClaim,
    "ResourceSlice": devices.ResourceSlice,
    "DeviceClass": devices.DeviceClass,
}
"""Kind → the shape it is decoded into. A kind that is not here is counted and ignored."""


DISPENSABLE_KINDS = ("CapacityBuffer", "DeviceClass", "PodTemplate", "ResourceClaim", "ResourceSlice")
"""Kinds that a plan can do without where the user may not list them: it says so, and blocks what hangs on them."""
FORBIDDEN_KIND = "ForbiddenKind"
"""The kind of a capture's items that name a kind which its user was not allowed to list. No API object is called so."""
UNREADABLE = "unreadable"
"""Beside kind and metadata in a capture: why nothing else of this object is there. No API object has such a field."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Objects by kind, in the order they were read."""

    objects: Mapping[str, tuple[ApiObject, ...]] = field(default_factory=dict)
    ignored: Mapping[str, int] = field(default_factory=dict)
    """Kinds nobody here reads, with how many there were."""
    forbidden: frozenset[str] = frozenset()
    """Of `DISPENSABLE_KINDS` those that the user was not allowed to list: nothing is known of them."""

    def all(self, shape: type[S], kind: str | None = None) -> tuple[S, ...]:
        """Every object of a kind; the kind's name is only needed where several share a shape (workloads)."""
        return self.objects.get(kind or shape.__name__, ())  # type: ignore[return-value]

    def workloads(self) -> Iterable[tuple[str, workload.Workload]]:
        """Every owner of pods with its kind."""
        for kind, shape in KINDS.items():
            if issubclass(shape, workload.Workload):
                for found in self.objects.get(kind, ()):
                    yield kind, found  # type: ignore[misc]


@dataclass(frozen=True, slots=True)
class SnapshotReading:
    snapshot: Snapshot
    mistakes: tuple[ConfigError, ...] = ()


def load(files: Iterable[tuple[str, bytes]]) -> SnapshotReading:
    """One snapshot from (name, content) pairs; every mistake of every file."""
    documents: list[Document] = []
    mistakes: list[ConfigError] = []
    for name, content in files:
        reading = read(name, content)
        documents += reading.documents
        mistakes += reading.mistakes
    built = build(documents)
    return SnapshotReading(built.snapshot, (*mistakes, *built.mistakes))


def build(documents: Iterable[Document]) -> SnapshotReading:
    """Documents that are read already → a snapshot."""
    objects: dict[str, list[ApiObject]] = {}
    ignored: Counter[str] = Counter()
    forbidden: set[str] = set()
    mistakes: list[ConfigError] = []
    for document in documents:
        kind = document.kind
        if kind == FORBIDDEN_KIND:
            forbidden.add(document.entry.removeprefix(f"{FORBIDDEN_KIND} "))
        elif kind is None:
            mistakes.append(
                document.mistake((), "an API object with a kind", shown(document.value), "is this a manifest?")
            )
        elif kind not in KINDS:
            ignored[kind] += 1
        elif document.text is None and UNREADABLE in document.value:
            mistakes.append(_unreadable(document))
        else:
            found = decode(_legible(document) if kind == "ReplicationController" else document, KINDS[kind])
            if isinstance(found, ConfigError):
                mistakes.append(found)
            else:
                objects.setdefault(kind, []).append(found)
    kept = {kind: _once(found) for kind, found in objects.items()}
    return SnapshotReading(Snapshot(kept, dict(ignored), frozenset(forbidden)), tuple(mistakes))


def _name(shape: ApiObject) -> tuple[str, str]:
    metadata: Metadata = shape.metadata  # type: ignore[attr-defined]
    return metadata.namespace, metadata.name


def _once(found: list[ApiObject]) -> tuple[ApiObject, ...]:
    """What two files tell of the same object in the same words counts once; what they tell otherwise stays apart."""
    names = [shape.metadata for shape in found]  # type: ignore[attr-defined]
    if len({(metadata.namespace, metadata.name) for metadata in names}) == len(found):
        return tuple(found)
    seen: dict[tuple[str, str], list[ApiObject]] = {}
    for shape in found:
        same = seen.setdefault(_name(shape), [])
        if shape not in same:
            same.append(shape)
    return tuple(shape for same in seen.values() for shape in same)


def _unreadable(document: Document) -> ConfigError:
    meta = document.value.get("metadata")
    namespace = meta.get("namespace") if isinstance(meta, dict) else None
    got = f"{document.value[UNREADABLE]}{f' (namespace {namespace})' if namespace else ''}"
    return document.mistake((), "an object that could be read when it was captured", got)


def _legible(document: Document) -> Document:
    """A ReplicationController's selector is a plain map of labels, everybody else's is a LabelSelector."""
    spec = document.value.get("spec")
    if not isinstance(spec, dict) or not isinstance(spec.get("selector"), dict):
        return document
    return document.with_value({**document.value, "spec": {**spec, "selector": {"matchLabels": spec["selector"]}}})


def decode(document: Document, shape: type[S]) -> S | ConfigError:
    """One document as its shape, nulls taken for absence as the API server takes them."""
    if document.text is not None:
        try:
            found: S = _decoder(shape).decode(document.text)
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            pass
        else:
            return found
    try:
        return msgspec.convert(document.value, shape)
    except msgspec.ValidationError:
        pass
    try:
        return msgspec.convert(without_nulls(document.value), shape)
    except msgspec.ValidationError as error:
        sentence, _, where = str(error).partition(" - at `$")
        path = _path(where.rstrip("`"))
        if missing := _MISSING.fullmatch(sentence):
            return document.mistake((*path, missing[1]), "a value", "nothing")
        return document.mistake(path, _lower(sentence))


@cache
def _decoder(shape: type[S]) -> msgspec.json.Decoder[S]:
    return msgspec.json.Decoder(shape)


def without_nulls(value: Any) -> Any:
    """Mapping entries that are null are absent to the API server."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


_MISSING = re.compile(r"Object missing required field `(\w+)`")


def _lower(sentence: str) -> str:
    return sentence.removeprefix("Expected ").replace("`", "").replace(", got ", ", not ")


def _path(where: str) -> tuple[str | int, ...]:
    """msgspec's `.spec.containers[0].name` as steps; "[...]" (any key of a mapping) ends it."""
    steps: list[str | int] = []
    for part in where.replace("[", ".[").split("."):
        if part.startswith("["):
            inner = part[1:-1]
            if not inner.isdigit():
                break
            steps.append(int(inner))
        elif part:
            steps.append(part)
    return tuple(steps)
