"""Decodes bytes from the API server into the types of `trimtab.cluster.api`.

Items are decoded one at a time, so that a page of 500 items is never in memory as objects. An item that cannot be
decoded is reported by its name and never silently left out, because a node would look empty without the pods that run
on it.
"""

from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Raw

from trimtab.cluster.api.meta import ApiObject, Metadata, change, without_nulls
from trimtab.cluster.api.pod import PlannerPod
from trimtab.cluster.api.workload import Workload
from trimtab.cluster.reason import Unreadable
from trimtab.kube.errors import ApiStatus, InvalidResponse
from trimtab.kube.resources import LIST_SOURCES, SHAPES

Key = tuple[str, str]
"""(namespace, name); the namespace is empty for a cluster-scoped object."""


class ListMetadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class ListPage(msgspec.Struct, frozen=True):
    """One page of a list. `items` are views into the bytes of the response, and must be decoded before the page is
    released."""

    metadata: ListMetadata = ListMetadata()
    items: list[Raw] | None = None


class Event(msgspec.Struct, frozen=True):
    """One line of a watch; `object` is a view into the bytes of the line."""

    type: str
    object: Raw = Raw()


class _MinimalMetadata(msgspec.Struct, frozen=True, rename="camel"):
    """A few fields that can be decoded even if other fields of the object are not valid."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class _MinimalObject(msgspec.Struct, frozen=True):
    metadata: _MinimalMetadata = _MinimalMetadata()


_page_decoder = msgspec.json.Decoder(ListPage)
_event_decoder = msgspec.json.Decoder(Event)
_minimal_decoder = msgspec.json.Decoder(_MinimalObject)
_status_decoder = msgspec.json.Decoder(ApiStatus)


def _event_decoder_of(shape: type[ApiObject]) -> msgspec.json.Decoder[Any]:
    """Returns the decoder of watch events with objects of this type."""
    fields = [("type", str), ("object", shape)]
    return msgspec.json.Decoder(msgspec.defstruct(f"{shape.__name__}Event", fields, frozen=True))


_typed_event_decoders = {kind: _event_decoder_of(shape) for kind, shape in SHAPES.items()}
_shape_decoders = {kind: msgspec.json.Decoder(shape) for kind, shape in SHAPES.items()}
_planner_pod_event_decoder = _event_decoder_of(PlannerPod)
_planner_pod_decoder = msgspec.json.Decoder(PlannerPod)


PLAIN_SELECTOR_KINDS = frozenset({"ReplicationController"})
"""Kinds whose selector is a plain map of labels; all others have a LabelSelector."""


@dataclass(frozen=True, slots=True)
class UndecodableObject:
    """An object that exists and cannot be decoded."""

    metadata: Metadata
    unreadable: Unreadable


def decode_page(body: bytes, doing: str) -> ListPage:
    """Returns a page of a list. Raises InvalidResponse."""
    try:
        return _page_decoder.decode(body)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise InvalidResponse(f"{doing}: the response is not a list: {error}") from error


def decode_event(line: bytes, doing: str) -> Event:
    """Returns the event in a line of a watch. Raises InvalidResponse, also if the line is incomplete."""
    try:
        return _event_decoder.decode(line)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise InvalidResponse(f"{doing}: the line is not a watch event: {error}") from error


def decode_change(kind: str, line: bytes, *, skip_env: bool = False) -> tuple[bool, ApiObject] | None:
    """Returns (whether the object was deleted, the object) for a line that is a plain change, as nearly every line is.

    Returns None for any other line; `decode_event` decodes such a line. With `skip_env`, which is for pods only, the
    object is a `PlannerPod`.
    """
    if kind in PLAIN_SELECTOR_KINDS:
        return None
    try:
        decoder = _planner_pod_event_decoder if skip_env else _typed_event_decoders[kind]
        # The managers of an HPA say who writes its bounds.
        text = line if kind == "HorizontalPodAutoscaler" else without_managed_fields(line)
        watch_event: Any = decoder.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return None
    return (
        (watch_event.type == "DELETED", _with_kind(kind, watch_event.object))
        if watch_event.type in _CHANGE_TYPES
        else None
    )


def without_managed_fields(line: bytes) -> bytes:
    """Returns the line without `managedFields`, which are half of an object and the slowest part to parse, and which
    are read of HorizontalPodAutoscalers alone.

    `managedFields` contain no array, so they end at the first "]", provided that the metadata ends there and the spec
    follows, as the API server writes objects. No string can look like this end, because quotes inside strings are
    escaped. The line is returned unchanged if a string contains "]", or if the order or the spaces are different.
    """
    begin = line.find(b',"managedFields":[')
    end = line.find(b"]", begin) if begin > 0 else -1
    return line[:begin] + line[end + 1 :] if end > 0 and line.startswith(b'},"spec":{', end + 1) else line


_CHANGE_TYPES = frozenset({"ADDED", "MODIFIED", "DELETED"})


def decode_status(raw: Raw) -> ApiStatus:
    """Returns the Status of an ERROR event; an empty one if the bytes are not a Status."""
    try:
        return _status_decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeError):
        return ApiStatus()


def decode_metadata(raw: Raw) -> Metadata:
    """Returns the name, namespace and version of any object, also of a bookmark and of an object that could not be
    decoded."""
    try:
        minimal = _minimal_decoder.decode(raw).metadata
        return Metadata(name=minimal.name, namespace=minimal.namespace, resource_version=minimal.resource_version)
    except (msgspec.DecodeError, UnicodeError):
        return Metadata()


def decode_item(kind: str, raw: Raw, *, skip_env: bool = False) -> ApiObject | UndecodableObject:
    """Returns the object of a kind in `SHAPES`, or an `UndecodableObject`. A null counts as an absent field, as for the
    API server. With `skip_env`, which is for pods only, the object is a `PlannerPod`."""
    try:
        if kind not in PLAIN_SELECTOR_KINDS:
            decoder: Any = _planner_pod_decoder if skip_env else _shape_decoders[kind]
            return _with_kind(kind, decoder.decode(raw))
    except (msgspec.DecodeError, UnicodeError):
        pass
    try:
        # The fast decoder refuses nulls and plain selectors: only then is the object decoded as plain values.
        plain: Any = without_nulls(msgspec.json.decode(raw))
        if kind in PLAIN_SELECTOR_KINDS:
            # A plain map of labels becomes a LabelSelector, as `cluster.snapshot` does for files.
            spec = plain.get("spec") if isinstance(plain, dict) else None
            if isinstance(spec, dict) and isinstance(spec.get("selector"), dict):
                spec["selector"] = {"matchLabels": spec["selector"]}
        return _with_kind(kind, msgspec.convert(plain, PlannerPod if skip_env else SHAPES[kind]))
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError) as error:
        meta = decode_metadata(raw)
        where = f"{kind} {meta.namespace}/{meta.name}" if meta.namespace else f"{kind} {meta.name}"
        return UndecodableObject(meta, Unreadable(where, str(error)))


def _with_kind(kind: str, shape: ApiObject) -> ApiObject:
    """Returns the object with its kind. The items of a list lack the kind, and workloads need it because all of their
    kinds are decoded into one type."""
    return (
        change(shape, kind=kind, api_version=LIST_SOURCES[kind].group_version) if isinstance(shape, Workload) else shape
    )


def object_key(meta: Metadata) -> Key:
    """Returns (namespace, name) of an object."""
    return (meta.namespace, meta.name)
