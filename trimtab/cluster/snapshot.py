"""What is in the cluster, as one value?

A `Snapshot` is what `kubectl get nodes,pods,… -A -o yaml|json` printed (a List, several documents, gzip, any number
of files), decoded into shapes that name only what we read. Kinds we have no use for are counted, not kept.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import msgspec

from trimtab.cluster.api import budget, node, pod, rules, scaling, storage, workload
from trimtab.cluster.api.meta import Labels, Metadata, Shape
from trimtab.cluster.documents import Document, read
from trimtab.cluster.mistake import Mistake, shown

S = TypeVar("S", bound=Shape)


class ConfigMap(Shape, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    data: Labels = {}


KINDS: dict[str, type[Shape]] = {
    "Pod": pod.Pod,
    "Node": node.Node,
    "Namespace": rules.Namespace,
    "RuntimeClass": rules.RuntimeClass,
    "LimitRange": rules.LimitRange,
    "ResourceQuota": rules.ResourceQuota,
    "PriorityClass": rules.PriorityClass,
    "VerticalPodAutoscaler": scaling.VerticalPodAutoscaler,
    "HorizontalPodAutoscaler": scaling.HorizontalPodAutoscaler,
    "ConfigMap": ConfigMap,
    "PodDisruptionBudget": budget.PodDisruptionBudget,
    "PersistentVolume": storage.PersistentVolume,
    "PersistentVolumeClaim": storage.PersistentVolumeClaim,
    "StorageClass": storage.StorageClass,
    "CSINode": storage.CSINode,
    **dict.fromkeys(
        ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicationController"),
        workload.Workload,
    ),
}
"""Kind → the shape it is decoded into. A kind that is not here is counted and ignored."""


UNREADABLE = "unreadable"
"""Beside kind and metadata in a capture: why nothing else of this object is there. No API object has such a field."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Objects by kind, in the order they were read."""

    objects: Mapping[str, tuple[Shape, ...]] = field(default_factory=dict)
    ignored: Mapping[str, int] = field(default_factory=dict)
    """Kinds nobody here reads, with how many there were."""

    def all(self, shape: type[S], kind: str | None = None) -> tuple[S, ...]:
        """Every object of a kind; the kind's name is only needed where several share a shape (workloads)."""
        return self.objects.get(kind or shape.__name__, ())  # type: ignore[return-value]

    def workloads(self) -> Iterable[tuple[str, workload.Workload]]:
        """Every owner of pods with its kind."""
        for kind, shape in KINDS.items():
            if shape is workload.Workload:
                for found in self.objects.get(kind, ()):
                    yield kind, found  # type: ignore[misc]


@dataclass(frozen=True, slots=True)
class SnapshotReading:
    snapshot: Snapshot
    mistakes: tuple[Mistake, ...] = ()


def load(files: Iterable[tuple[str, bytes]]) -> SnapshotReading:
    """One snapshot from (name, content) pairs; every mistake of every file."""
    documents: list[Document] = []
    mistakes: list[Mistake] = []
    for name, content in files:
        reading = read(name, content)
        documents += reading.documents
        mistakes += reading.mistakes
    built = build(documents)
    return SnapshotReading(built.snapshot, (*mistakes, *built.mistakes))


def build(documents: Iterable[Document]) -> SnapshotReading:
    """Documents that are read already → a snapshot."""
    objects: dict[str, list[Shape]] = {}
    ignored: Counter[str] = Counter()
    mistakes: list[Mistake] = []
    for document in documents:
        kind = kind_of(document.value)
        if kind is None:
            mistakes.append(
                document.mistake((), "an API object with a kind", shown(document.value), "is this a manifest?")
            )
        elif kind not in KINDS:
            ignored[kind] += 1
        elif UNREADABLE in document.value:
            mistakes.append(_unreadable(document))
        else:
            found = decode(_legible(document), KINDS[kind])
            if isinstance(found, Mistake):
                mistakes.append(found)
            else:
                objects.setdefault(kind, []).append(found)
    kept = {kind: _once(found) for kind, found in objects.items()}
    return SnapshotReading(Snapshot(kept, dict(ignored)), tuple(mistakes))


def _name(shape: Shape) -> tuple[str, str]:
    metadata: Metadata = shape.metadata  # type: ignore[attr-defined]
    return metadata.namespace, metadata.name


def _once(found: list[Shape]) -> tuple[Shape, ...]:
    """What two files tell of the same object in the same words counts once; what they tell otherwise stays apart."""
    if len(set(map(_name, found))) == len(found):
        return tuple(found)
    seen: dict[tuple[str, str], list[Shape]] = {}
    for shape in found:
        same = seen.setdefault(_name(shape), [])
        if shape not in same:
            same.append(shape)
    return tuple(shape for same in seen.values() for shape in same)


def _unreadable(document: Document) -> Mistake:
    meta = document.value.get("metadata")
    namespace = meta.get("namespace") if isinstance(meta, dict) else None
    came = f"{document.value[UNREADABLE]}{f' (namespace {namespace})' if namespace else ''}"
    return document.mistake((), "an object that could be read when it was captured", came)


def _legible(document: Document) -> Document:
    """A ReplicationController's selector is a plain map of labels, everybody else's is a LabelSelector."""
    spec = document.value.get("spec") if kind_of(document.value) == "ReplicationController" else None
    if not isinstance(spec, dict) or not isinstance(spec.get("selector"), dict):
        return document
    return replace(document, value={**document.value, "spec": {**spec, "selector": {"matchLabels": spec["selector"]}}})


def kind_of(value: Any) -> str | None:
    kind = value.get("kind") if isinstance(value, dict) else None
    return kind if isinstance(kind, str) and kind else None


def decode(document: Document, shape: type[S]) -> S | Mistake:
    """One document as its shape, nulls taken for absence as the API server takes them."""
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
