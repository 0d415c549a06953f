"""Bytes of the API server → shapes of `trimtab.cluster.api`.

An item is decoded by itself, so that a page of 500 is never held as objects; what cannot be decoded is named, never
left out in silence: a pod nobody sees is a node that looks empty.
"""

from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Raw

from trimtab.cluster.api.meta import ApiObject, Metadata, change
from trimtab.cluster.api.workload import Workload
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.snapshot import without_nulls
from trimtab.kube.errors import ApiStatus, InvalidResponse
from trimtab.kube.resources import PLACES, SHAPES

Key = tuple[str, str]
"""(namespace, name); the namespace is empty for what has none."""


class ListMetadata(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class ListPage(msgspec.Struct, frozen=True):
    """One page of a list; `items` are views into the answer's bytes, to be decoded before it is let go."""

    metadata: ListMetadata = ListMetadata()
    items: list[Raw] | None = None


class Event(msgspec.Struct, frozen=True):
    """One line of a watch; `object` is a view too."""

    type: str
    object: Raw = Raw()


class _Mark(msgspec.Struct, frozen=True, rename="camel"):
    """So little that also an object with nonsense in it has it."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class _Marked(msgspec.Struct, frozen=True):
    metadata: _Mark = _Mark()


class _OfKind(msgspec.Struct, frozen=True, rename="camel"):
    kind: str = ""
    api_version: str = ""


_page = msgspec.json.Decoder(ListPage)
_event = msgspec.json.Decoder(Event)
_marked = msgspec.json.Decoder(_Marked)
_status = msgspec.json.Decoder(ApiStatus)
_typed = {
    kind: msgspec.json.Decoder(msgspec.defstruct(f"{kind}Event", [("type", str), ("object", shape)], frozen=True))
    for kind, shape in SHAPES.items()
}
_by_kind = {kind: msgspec.json.Decoder(shape) for kind, shape in SHAPES.items()}


ODD = frozenset({"ReplicationController"})
"""Its selector is a plain map of labels, everybody else's is a LabelSelector."""


@dataclass(frozen=True, slots=True)
class UndecodableObject:
    """An object that is there and makes no sense."""

    metadata: Metadata
    why: Unreadable


def page(body: bytes, doing: str) -> ListPage:
    """Raises Garbled."""
    try:
        return _page.decode(body)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise InvalidResponse(f"{doing}: this is no list: {error}") from error


def event(line: bytes, doing: str) -> Event:
    """Raises Garbled: also for a line that was cut short."""
    try:
        return _event.decode(line)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise InvalidResponse(f"{doing}: this is no event: {error}") from error


def changed(kind: str, line: bytes) -> tuple[bool, ApiObject] | None:
    """The quick way for what nearly every line is: an object that came, changed or (True) went.

    None: look closer, with `event`.
    """
    if kind in ODD:
        return None
    try:
        found: Any = _typed[kind].decode(bare(line))
    except (msgspec.DecodeError, UnicodeError):
        return None
    return (found.type == "DELETED", _named(kind, found.object)) if found.type in _CHANGES else None


def bare(line: bytes) -> bytes:
    """The line without `managedFields`: half of an object that nobody here reads, and letter by letter it costs most.

    There is no array in them, so the first "]" is their end, where it ends the metadata and the spec comes next: that
    is how the API server writes. No text looks like that, since quotes inside of texts are escaped; a "]" in a text,
    another order, a space: and the line stays as it is.
    """
    begin = line.find(b',"managedFields":[')
    end = line.find(b"]", begin) if begin > 0 else -1
    return line[:begin] + line[end + 1 :] if end > 0 and line.startswith(b'},"spec":{', end + 1) else line


_CHANGES = frozenset({"ADDED", "MODIFIED", "DELETED"})


def status(raw: Raw) -> ApiStatus:
    """The Status an ERROR event carries; an empty one where it is none."""
    try:
        return _status.decode(raw)
    except (msgspec.DecodeError, UnicodeError):
        return ApiStatus()


def metadata(raw: Raw) -> Metadata:
    """Name, namespace and version of whatever this is: a bookmark, or an object that has just broken its decoder."""
    try:
        found = _marked.decode(raw).metadata
        return Metadata(name=found.name, namespace=found.namespace, resource_version=found.resource_version)
    except (msgspec.DecodeError, UnicodeError):
        return Metadata()


def item(kind: str, raw: Raw) -> ApiObject | UndecodableObject:
    """One object of a kind in `SHAPES`. Nulls are taken for absence, as the API server takes them."""
    try:
        if kind not in ODD:
            return _named(kind, _by_kind[kind].decode(raw))
    except (msgspec.DecodeError, UnicodeError):
        pass
    try:
        plain: Any = without_nulls(msgspec.json.decode(raw))
        if kind in ODD:
            _legible(plain)
        return _named(kind, msgspec.convert(plain, SHAPES[kind]))
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError) as error:
        found = metadata(raw)
        where = f"{kind} {found.namespace}/{found.name}" if found.namespace else f"{kind} {found.name}"
        return UndecodableObject(found, Unreadable(where, str(error)))


def _legible(plain: Any) -> None:
    """As `cluster.snapshot` reads it from a file."""
    spec = plain.get("spec") if isinstance(plain, dict) else None
    if isinstance(spec, dict) and isinstance(spec.get("selector"), dict):
        spec["selector"] = {"matchLabels": spec["selector"]}


def _named(kind: str, found: ApiObject) -> ApiObject:
    """The items of a list carry no kind; workloads, which share a shape, are told apart by it."""
    return change(found, kind=kind, api_version=PLACES[kind].group_version) if isinstance(found, Workload) else found


def key(found: Metadata) -> Key:
    return (found.namespace, found.name)
