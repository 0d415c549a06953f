"""Finds where each value is in a YAML text, and writes values as YAML.

Offsets count characters. The span of a scalar, an alias or a collection in brackets includes its anchor and tag. The
span of a block collection goes from its first entry to the end of its last one, without the comments that follow.

Kubernetes, which parses YAML 1.1, reads the written text back as the same values.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import yaml

from trimtab.cluster.control_characters import escape_in_json, has_control_characters, quote_for_yaml
from trimtab.cluster.yaml_parser import LOADER, line_beyond_max_depth


@dataclass(slots=True, eq=False, kw_only=True)
class Span:
    """Where one value or one key is in the text."""

    kind: Literal["scalar", "mapping", "sequence", "alias"]
    start: int
    end: int
    text: str = ""
    """The value, if it is a scalar."""
    style: str | None = None
    """How a scalar is written: its quotes, `|` or `>`; None: plain."""
    is_flow: bool = False
    has_anchor: bool = False
    entries: list[tuple["Span", "Span"]] = field(default_factory=list)
    """The keys and values of a mapping, in the order of the text."""
    items: list["Span"] = field(default_factory=list)
    target: "Span | None" = None
    """The span to which an alias refers; None for anything but an alias."""

    def anchored_spans(self) -> Iterator["Span"]:
        """Yields this span and every span inside it, as far as they have an anchor to which aliases can refer."""
        if self.has_anchor:
            yield self
        for child in (*(part for entry in self.entries for part in entry), *self.items):
            yield from child.anchored_spans()


@dataclass(frozen=True, slots=True)
class SpannedDocument:
    """The first document of a text, as a tree of spans."""

    root: Span
    has_anchors: bool


def parse_spans(text: str) -> SpannedDocument:
    """Returns the spans of the first document. Raises ValueError if there is no document, and yaml.YAMLError if the
    text is not valid YAML."""
    if line_beyond_max_depth(text):
        raise ValueError("the text has too many levels of nesting")
    builder = _Builder(text)
    return SpannedDocument(builder.build_document(), bool(builder.anchors))


class _Builder:
    """Builds the tree of spans from the events of the parser."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.anchors: dict[str, Span] = {}
        self._events: Iterator[Any] = iter(yaml.parse(text, Loader=LOADER))

    def build_document(self) -> Span:
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                return self._build_span(next(self._events))
        raise ValueError("the text contains no document")

    def _build_span(self, event: Any) -> Span:
        start, end = event.start_mark.index, event.end_mark.index
        if isinstance(event, yaml.AliasEvent):
            return Span(kind="alias", start=start, end=end, target=self.anchors[event.anchor or ""])
        if isinstance(event, yaml.ScalarEvent):
            if event.style in ("|", ">"):
                # The offset at which a block scalar ends: before the trailing line breaks, unless the scalar keeps
                # them (`|+`).
                header = self.text[start:end].split("\n", 1)[0].split(" #")[0]
                end = end if "+" in header else start + len(self.text[start:end].rstrip(" \r\n"))
            span = Span(kind="scalar", start=start, end=end, text=event.value, style=event.style or None)
            return self._register_anchor(span, event)
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        kind: Literal["mapping", "sequence"] = "mapping" if is_mapping else "sequence"
        span = self._register_anchor(Span(kind=kind, start=start, end=end, is_flow=bool(event.flow_style)), event)
        closing = self._read_children(span)
        if span.is_flow:
            span.end = closing.end_mark.index
        # The parser ends a block collection where the next token begins, after the comments: its last entry is the
        # better end.
        elif span.entries or span.items:
            span.end = (span.entries[-1][1] if span.entries else span.items[-1]).end
        return span

    def _register_anchor(self, span: Span, event: Any) -> Span:
        if event.anchor is not None:
            span.has_anchor = True
            self.anchors[event.anchor] = span
        return span

    def _read_children(self, span: Span) -> Any:
        """Adds the children of a collection to its span, and returns the event that closes the collection."""
        while not isinstance(event := next(self._events), yaml.CollectionEndEvent):
            if span.kind == "mapping":
                key = self._build_span(event)
                span.entries.append((key, self._build_span(next(self._events))))
            else:
                span.items.append(self._build_span(event))
        return event


_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./+@-]*(?: [A-Za-z0-9_./+@()-]+)*")
_RESOLVER = yaml.resolver.Resolver()
# Booleans to Kubernetes' parser; text to PyYAML.
_YES_OR_NO = ("y", "Y", "n", "N")


def needs_quotes(text: str) -> bool:
    """Returns whether YAML 1.1 reads this text, without quotes, as something other than text."""
    tag = _RESOLVER.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    return text in _YES_OR_NO or tag != "tag:yaml.org,2002:str"


def format_scalar(value: Any, quotes: str | None = None) -> str:
    """Returns a scalar as YAML on one line; `quotes` are those that the author of the document uses for such text."""
    if not isinstance(value, str):
        return json.dumps(value)
    if quotes == "'" and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    if quotes is None and _PLAIN.fullmatch(value) and not needs_quotes(value):
        return value
    # A JSON string is a valid double-quoted YAML scalar.
    return quote_for_yaml(value)


def format_flow(value: Any, *, as_json: bool) -> str:
    """Returns a value as YAML on one line, with collections in brackets; `as_json` writes it as JSON."""
    if as_json:
        return escape_in_json(json.dumps(value, ensure_ascii=False))
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{format_scalar(key)}: {format_flow(item, as_json=False)}" for key, item in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(format_flow(item, as_json=False) for item in value) + "]"
    return format_scalar(value)


def format_block(value: Any, list_offset: int) -> list[str]:
    """Returns the lines of a block collection without indentation; `list_offset` is the indentation of a list relative
    to its key."""
    lines: list[str] = []
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(item, dict | list) or not item:
                lines.append(f"{format_scalar(key)}: {format_flow(item, as_json=False)}")
            else:
                inset = " " * (list_offset if isinstance(item, list) else 2)
                lines += [f"{format_scalar(key)}:", *(inset + line for line in format_block(item, list_offset))]
        return lines
    for item in value:
        inner = (
            format_block(item, list_offset)
            if isinstance(item, dict | list) and item
            else [format_flow(item, as_json=False)]
        )
        lines += [f"- {inner[0]}", *(f"  {line}" for line in inner[1:])]
    return lines


_BEGINS_A_COMMAND = re.compile(r"\s::")
"""What a CI system would obey if a long text were divided before it."""


class PrintableDumper(yaml.SafeDumper):
    """Writes a text with control characters in double quotes, where they are escaped. PyYAML itself escapes only some
    of them: it writes a text with U+202E or U+0085 as it is."""

    def analyze_scalar(self, scalar: str) -> Any:
        analysis = super().analyze_scalar(scalar)
        if has_control_characters(scalar) or _BEGINS_A_COMMAND.search(scalar):
            analysis.allow_flow_plain = analysis.allow_block_plain = False
            analysis.allow_single_quoted = analysis.allow_block = False
        return analysis

    def write_double_quoted(self, text: str, split: bool = True) -> None:
        if has_control_characters(text) or _BEGINS_A_COMMAND.search(text):
            self.write_indicator(quote_for_yaml(text), need_whitespace=True)
        else:
            super().write_double_quoted(text, split)


class _Dumper(PrintableDumper):
    """Writes YAML without anchors, and puts quotes around text that Kubernetes would read as something other than
    text."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, data: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", data, style='"' if needs_quotes(data) else None)


_Dumper.add_representer(str, _represent_text)


def format_document(value: Any) -> str:
    """Returns a value as a new YAML document, in PyYAML's own layout."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1 << 16)
    return text
