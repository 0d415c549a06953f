"""The objects of a cluster as one value.

A `Snapshot` holds the output of `kubectl get nodes,pods,… -A -o yaml|json` (a List, several documents, gzip, any number
of files), decoded into structs with only the fields that Trimtab reads. Objects of other kinds are counted and dropped.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from operator import attrgetter
from typing import TypeVar

import msgspec

from trimtab.cluster.api import autoscaling, core, devices, pod, storage, workload
from trimtab.cluster.api.meta import ApiObject, Labels, Metadata, without_nulls
from trimtab.cluster.config_error import ConfigError, quote_value
from trimtab.cluster.kinds import GroupKind, built_in
from trimtab.cluster.scaled_objects import add_keda_hpas
from trimtab.cluster.yaml_documents import Document, read_documents

S = TypeVar("S", bound=ApiObject)


class ConfigMap(ApiObject, frozen=True, kw_only=True):
    """A ConfigMap with its text data; binary data is not read."""

    metadata: Metadata = Metadata()
    data: Labels = {}


SHAPES_BY_KIND: dict[str, type[ApiObject]] = {
    "Pod": pod.MountingPod,
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
    "CSIDriver": storage.CSIDriver,
    **dict.fromkeys(
        ("Deployment", "ReplicaSet", "StatefulSet", "Job", "CronJob", "ReplicationController"), workload.Workload
    ),
    "DaemonSet": workload.DaemonSet,
    "CapacityBuffer": autoscaling.CapacityBuffer,
    "PodTemplate": autoscaling.PodTemplate,
    "ResourceClaim": devices.ResourceClaim,
    "ResourceSlice": devices.ResourceSlice,
    "DeviceClass": devices.DeviceClass,
}
"""Kind → the struct into which its objects are decoded. Objects of other kinds are only counted."""


DISPENSABLE_KINDS = ("CSIDriver", "CapacityBuffer", "DeviceClass", "PodTemplate", "ResourceClaim", "ResourceSlice")
"""Kinds that a plan can do without if the user may not list them. The plan then names the kinds that are missing, and
blocks whatever depends on them."""
FORBIDDEN_KIND = "ForbiddenKind"
"""The kind of a placeholder in a capture. Each placeholder names a kind whose objects the user may not list. No API
object has this kind."""
CAPTURE_KIND = "Capture"
"""The kind of an item that each capture has: all namespaces were listed. No API object has this kind."""
UNREADABLE_FIELD = "unreadable"
"""A field of an object in a capture, beside kind and metadata: the reason why the rest of the object is missing. No API
object has it."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The objects of a cluster by kind, in the order in which they were read."""

    objects: Mapping[str, tuple[ApiObject, ...]] = field(default_factory=dict)
    ignored: Mapping[str, int] = field(default_factory=dict)
    """Kind → number of objects that Trimtab does not read."""
    forbidden: frozenset[str] = frozenset()
    """The kinds of `DISPENSABLE_KINDS` that the user may not list: nothing is known about them."""
    is_capture: bool = False
    """Whether `trimtab capture` wrote it, so that it has the objects of all namespaces."""

    def objects_of(self, shape: type[S], kind: str | None = None) -> tuple[S, ...]:
        """Returns every object of a kind; `kind` must be given only where several kinds share a struct (workloads)."""
        return self.objects.get(kind or shape.__name__, ())  # type: ignore[return-value]

    def iterate_workloads(self) -> Iterable[tuple[GroupKind, workload.Workload]]:
        """Yields every owner of pods with its kind."""
        for kind, shape in SHAPES_BY_KIND.items():
            if issubclass(shape, workload.Workload):
                for owner in self.objects.get(kind, ()):
                    yield built_in(kind), owner  # type: ignore[misc]


@dataclass(frozen=True, slots=True)
class SnapshotReading:
    """A snapshot, and the mistakes in its files."""

    snapshot: Snapshot
    mistakes: tuple[ConfigError, ...] = ()


def load_snapshot(files: Iterable[tuple[str, bytes]]) -> SnapshotReading:
    """Returns one snapshot from (name, content) pairs, with every mistake of every file."""
    documents: list[Document] = []
    mistakes: list[ConfigError] = []
    for name, content in files:
        reading = read_documents(name, content)
        documents += reading.documents
        mistakes += reading.mistakes
    reading_of_all = build_snapshot(documents)
    return SnapshotReading(reading_of_all.snapshot, (*mistakes, *reading_of_all.mistakes))


def build_snapshot(documents: Iterable[Document]) -> SnapshotReading:
    """Returns the snapshot of parsed documents, with every mistake in them."""
    objects: defaultdict[str, list[ApiObject]] = defaultdict(list)
    ignored: Counter[str] = Counter()
    forbidden: set[str] = set()
    is_capture = False
    mistakes: list[ConfigError] = []
    all_documents: Iterable[Document] = tuple(documents)
    if "ScaledObject" in map(attrgetter("kind"), all_documents):
        all_documents = add_keda_hpas(all_documents)
    # In a List, objects of one kind follow each other.
    quick_kind: str | None = None
    decode_quickly: Callable[[msgspec.Raw], ApiObject] | None = None
    for document in all_documents:
        kind, text = document.kind, document.text
        if kind != quick_kind:
            quick_kind, decode_quickly = kind, _quick_decoder(kind)
        # The quick way of `decode_object`, without its calls: a large cluster has tens of thousands of such objects.
        if text is not None and kind is not None and decode_quickly is not None:
            try:
                quickly_decoded = decode_quickly(text)
            except (msgspec.DecodeError, RecursionError, UnicodeError):
                pass
            else:
                objects[kind].append(quickly_decoded)
                continue
        shape = SHAPES_BY_KIND.get(kind) if kind is not None else None
        if kind is None:
            mistakes.append(
                document.error_at(
                    (),
                    "an API object with a kind",
                    quote_value(document.value),
                    "check whether the file is a Kubernetes manifest",
                )
            )
        elif shape is not None:
            decoded = _decode(document, shape)
            if isinstance(decoded, ConfigError):
                mistakes.append(decoded)
            else:
                objects[kind].append(decoded)
        elif kind == FORBIDDEN_KIND:
            # `trimtab capture` writes such an item for each kind that it may not list, so that an offline plan knows
            # the gap.
            forbidden.add(document.entry_name.removeprefix(f"{FORBIDDEN_KIND} "))
        elif kind == CAPTURE_KIND:
            is_capture = True
        else:
            # `kubectl get all` returns many kinds that no decision needs; their number is reported.
            ignored[kind] += 1
    distinct = {kind: _without_repetitions(shapes) for kind, shapes in objects.items()}
    return SnapshotReading(Snapshot(distinct, dict(ignored), frozenset(forbidden), is_capture), tuple(mistakes))


def _quick_decoder(kind: str | None) -> Callable[[msgspec.Raw], ApiObject] | None:
    """Returns what decodes the JSON of an object of this kind, or None if no such object can be decoded as it is."""
    # The selector of a ReplicationController is rewritten first.
    shape = SHAPES_BY_KIND.get(kind) if kind is not None and kind != "ReplicationController" else None
    return None if shape is None else _decoder(shape).decode


def _decode(document: Document, shape: type[ApiObject]) -> ApiObject | ConfigError:
    if document.text is None and UNREADABLE_FIELD in document.value:
        return _capture_mistake(document)
    return decode_object(
        _with_label_selector(document) if document.kind == "ReplicationController" else document, shape
    )


def _key_of(shape: ApiObject) -> tuple[str, str]:
    metadata: Metadata = shape.metadata  # type: ignore[attr-defined]
    return metadata.namespace, metadata.name


def _without_repetitions(shapes: list[ApiObject]) -> tuple[ApiObject, ...]:
    """Returns the objects without repetitions: an object that two files contain with the same content counts once.
    Objects of one name with different content all stay."""
    metadata_of_all = [shape.metadata for shape in shapes]  # type: ignore[attr-defined]
    # Nearly always no name repeats, and comparing whole objects is slow. The names of pods do not even repeat in
    # different namespaces, and texts are compared faster than pairs of them.
    if len({metadata.name for metadata in metadata_of_all}) == len(shapes):
        return tuple(shapes)
    if len({(metadata.namespace, metadata.name) for metadata in metadata_of_all}) == len(shapes):
        return tuple(shapes)
    shapes_by_key: dict[tuple[str, str], list[ApiObject]] = {}
    for shape in shapes:
        shapes_of_key = shapes_by_key.setdefault(_key_of(shape), [])
        # Different contents both stay: the planner then refuses to decide by either of them.
        if shape not in shapes_of_key:
            shapes_of_key.append(shape)
    return tuple(shape for shapes_of_key in shapes_by_key.values() for shape in shapes_of_key)


def _capture_mistake(document: Document) -> ConfigError:
    meta = document.value.get("metadata")
    namespace = meta.get("namespace") if isinstance(meta, dict) else None
    got = f"{document.value[UNREADABLE_FIELD]}{f' (namespace {namespace})' if namespace else ''}"
    return document.error_at((), "an object that `trimtab capture` was able to read", got)


def _with_label_selector(document: Document) -> Document:
    """Returns the document of a ReplicationController with its selector, a plain map of labels, rewritten as a
    LabelSelector."""
    spec = document.value.get("spec")
    if not isinstance(spec, dict) or not isinstance(spec.get("selector"), dict):
        return document
    # To all readers of owners the selector then has one form (core/v1 predates LabelSelector).
    return document.with_value({**document.value, "spec": {**spec, "selector": {"matchLabels": spec["selector"]}}})


def decode_object(document: Document, shape: type[S]) -> S | ConfigError:
    """Returns the document decoded as `shape`, or the mistake in it. A null counts as an absent field, as for the API
    server."""
    # The quick way: undecoded JSON goes straight into the struct, without plain values in between.
    if document.text is not None:
        try:
            decoded: S = _decoder(shape).decode(document.text)
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            pass
        else:
            return decoded
    try:
        # The quick way may fail because of a null; the text is then decoded into plain values.
        return msgspec.convert(document.value, shape)
    except msgspec.ValidationError:
        pass
    try:
        # Nulls are removed only now, because that copies the document, and few documents have them.
        return msgspec.convert(without_nulls(document.value), shape)
    except msgspec.ValidationError as error:
        # msgspec reports the place as a path from the root at the end of its sentence.
        sentence, _, where = str(error).partition(" - at `$")
        path = _parse_path(where.rstrip("`"))
        if missing := _MISSING_FIELD.fullmatch(sentence):
            return document.error_at((*path, missing[1]), "a value", "nothing")
        return _type_error(document, path, sentence)


@cache
def _decoder(shape: type[S]) -> msgspec.json.Decoder[S]:
    return msgspec.json.Decoder(shape)


_MISSING_FIELD = re.compile(r"Object missing required field `(\w+)`")


_TYPE_SENTENCE = re.compile(r"Expected `([^`]*)`, got `(\w+)`")
_TYPE_WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": "a mapping",
    "array": "a list",
    "null": "nothing",
}


def _type_error(document: Document, path: tuple[str | int, ...], sentence: str) -> ConfigError:
    """Returns the mistake that msgspec's sentence about a type describes, with the value that the document has."""
    types = _TYPE_SENTENCE.fullmatch(sentence)
    if types is None:
        return document.error_at(path, sentence.removeprefix("Expected ").replace("`", ""))
    expected = " or ".join(_TYPE_WORDS.get(name, name) for name in types[1].split(" | "))
    value, written = document.value_at(path), document.text_at(path)
    if isinstance(value, bool) and written not in ("", "true", "false"):
        got = f"a bare {written}, which Kubernetes reads as {quote_value(value)}"
    else:
        got = _TYPE_WORDS.get(types[2], types[2]) if isinstance(value, dict | list) else quote_value(value)
    quoted = f'write "{written or quote_value(value)}"' if "str" in types[1] and isinstance(value, bool | int) else ""
    return document.error_at(path, expected, got, quoted)


def _parse_path(where: str) -> tuple[str | int, ...]:
    """Returns msgspec's path, such as `.spec.containers[0].name`, as a tuple of keys and indexes. The path ends before
    "[...]", which stands for any key."""
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
