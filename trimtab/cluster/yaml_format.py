"""Where does each value of a YAML document stand in its text? Text → a tree of spans.

Offsets count characters. Scalars, aliases and flow collections are spanned whole, with anchor and tag; a block
collection goes from its first entry to the end of its last one, without the comments after it.

How is this value written as YAML that Kubernetes, which reads YAML 1.1, takes for the same value?
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import yaml

from trimtab.cluster.yaml_parser import LOADER, too_deep


@dataclass(slots=True, eq=False, kw_only=True)
class Span:
    """One value, or one key, where it is written."""

    kind: Literal["scalar", "mapping", "sequence", "alias"]
    start: int
    end: int
    text: str = ""
    """Of a scalar: its value."""
    style: str | None = None
    """Of a scalar: its quotes, `|` or `>`; None: plain."""
    is_flow: bool = False
    has_anchor: bool = False
    entries: list[tuple["Span", "Span"]] = field(default_factory=list)
    """Of a mapping: keys and values in the order of the text."""
    items: list["Span"] = field(default_factory=list)
    target: "Span | None" = None
    """Of an alias: what it stands for."""

    def anchored(self) -> Iterator["Span"]:
        """This and everything in it that an alias may name."""
        if self.has_anchor:
            yield self
        for child in (*(part for entry in self.entries for part in entry), *self.items):
            yield from child.anchored()


@dataclass(frozen=True, slots=True)
class SpannedDocument:
    """The first document of a text."""

    root: Span
    has_anchors: bool


def spans(text: str) -> SpannedDocument:
    """The tree of spans of the first document. Raises ValueError where there is none, and yaml.YAMLError."""
    if too_deep(text):
        raise ValueError("nested too deeply")
    builder = _Builder(text)
    return SpannedDocument(builder.document(), bool(builder.anchors))


class _Builder:
    def __init__(self, text: str) -> None:
        self.text = text
        self.anchors: dict[str, Span] = {}
        self._events: Iterator[Any] = iter(yaml.parse(text, Loader=LOADER))

    def document(self) -> Span:
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                return self._node(next(self._events))
        raise ValueError("no document")

    def _node(self, event: Any) -> Span:
        start, end = event.start_mark.index, event.end_mark.index
        if isinstance(event, yaml.AliasEvent):
            return Span(kind="alias", start=start, end=end, target=self.anchors[event.anchor or ""])
        if isinstance(event, yaml.ScalarEvent):
            if event.style in ("|", ">"):
                end = self._end_of_block_scalar(start, end)
            found = Span(kind="scalar", start=start, end=end, text=event.value, style=event.style or None)
            return self._named(found, event)
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        kind: Literal["mapping", "sequence"] = "mapping" if is_mapping else "sequence"
        found = self._named(Span(kind=kind, start=start, end=end, is_flow=bool(event.flow_style)), event)
        closing = self._fill(found)
        if found.is_flow:
            found.end = closing.end_mark.index
        elif found.entries or found.items:
            found.end = (found.entries[-1][1] if found.entries else found.items[-1]).end
        return found

    def _named(self, found: Span, event: Any) -> Span:
        if event.anchor is not None:
            found.has_anchor = True
            self.anchors[event.anchor] = found
        return found

    def _fill(self, found: Span) -> Any:
        """Everything up to the event that closes the collection; that event."""
        while not isinstance(event := next(self._events), yaml.CollectionEndEvent):
            if found.kind == "mapping":
                key = self._node(event)
                found.entries.append((key, self._node(next(self._events))))
            else:
                found.items.append(self._node(event))
        return event

    def _end_of_block_scalar(self, start: int, end: int) -> int:
        """Without the line breaks after its last line, unless it keeps them (`|+`)."""
        header = self.text[start:end].split("\n", 1)[0].split(" #")[0]
        return end if "+" in header else start + len(self.text[start:end].rstrip(" \r\n"))


_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./+@-]*(?: [A-Za-z0-9_./+@()-]+)*")
_RESOLVER = yaml.resolver.Resolver()
_YES_OR_NO = ("y", "Y", "n", "N")
"""Booleans to Kubernetes' reader; text to PyYAML."""


def is_odd(text: str) -> bool:
    """Is this text, without quotes, something else to YAML 1.1?"""
    tag = _RESOLVER.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    return text in _YES_OR_NO or tag != "tag:yaml.org,2002:str"


def scalar(value: Any, quotes: str | None = None) -> str:
    """One line. quotes: those that the author uses for such text."""
    if not isinstance(value, str):
        return json.dumps(value)
    if quotes == "'" and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    if quotes is None and _PLAIN.fullmatch(value) and not is_odd(value):
        return value
    return json.dumps(value, ensure_ascii=not value.isprintable())


def flow(value: Any, *, as_json: bool) -> str:
    """On one line, between brackets."""
    if as_json:
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{scalar(key)}: {flow(item, as_json=False)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(item, as_json=False) for item in value) + "]"
    return scalar(value)


def block(value: Any, list_offset: int) -> list[str]:
    """The lines of a collection, not indented. list_offset: how far lists stand in from their key."""
    lines: list[str] = []
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(item, dict | list) or not item:
                lines.append(f"{scalar(key)}: {flow(item, as_json=False)}")
            else:
                inset = " " * (list_offset if isinstance(item, list) else 2)
                lines += [f"{scalar(key)}:", *(inset + line for line in block(item, list_offset))]
        return lines
    for item in value:
        inner = block(item, list_offset) if isinstance(item, dict | list) and item else [flow(item, as_json=False)]
        lines += [f"- {inner[0]}", *(f"  {line}" for line in inner[1:])]
    return lines


class _Dumper(yaml.SafeDumper):
    """Quotes what Kubernetes would take for something else; names nothing by an anchor."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, data: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", data, style='"' if is_odd(data) else None)


_Dumper.add_representer(str, _text)


def document(value: Any) -> str:
    """A whole document of its own layout."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1 << 16)
    return text
