"""How does this YAML document change in place, so that nothing but what changed is another line?

A document is compared with what it is to be, value by value, and only the text of what differs is written again.
Comments, order, quotes, indentation and line breaks of everything else stay as they are. What several places share by
an alias or a merge key is written out where they part. The result is read again: where it is not what it was to be,
the whole document is written in a layout of its own.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import yaml

from trimtab.cluster import yaml_format
from trimtab.cluster.yaml_format import Span, spans
from trimtab.cluster.yaml_parser import LOADER, YamlComposer

_LIST_UNDER_KEY = re.compile(r"^( *)[^ #\-\n][^\n]*:[ \t]*\r?\n( *)- ", re.MULTILINE)
_UNKNOWN = object()


def edited(text: str, change: Callable[[Any], Any]) -> str:
    """The text of one document with its value changed. `change` gets a copy that shares nothing, and returns it."""
    before, after = value_of(text), change(value_of(text))
    if is_same(before, after):
        return text
    try:
        found = _Editor(text).edit(before, after)
        if is_same(value_of(found), after):
            return found
    except (_NotInPlace, ValueError, KeyError, yaml.YAMLError):
        pass
    return _written_anew(text, after)


def value_of(text: str) -> Any:
    """The plain value of the first document, its aliases copies of their own."""
    return _alone(YamlComposer("", takes_repeated_keys=True).document(_composed(text)))


def _composed(text: str) -> Any:
    return yaml.compose(text, Loader=LOADER)


def _alone(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _alone(item) for key, item in value.items()}
    return [_alone(item) for item in value] if isinstance(value, list) else value


def is_same(a: Any, b: Any) -> bool:
    """Equal, and of one type: 1 is neither true nor 1.0."""
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(is_same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(is_same, a, b))
    return type(a) is type(b) and (a == b or repr(a) == repr(b))


def _written_anew(text: str, after: Any) -> str:
    start = _composed(text).start_mark.index
    newline = "\r\n" if "\r\n" in text else "\n"
    head = text[:start] if not text[:start].strip() or text[:start].endswith("\n") else text[:start].rstrip() + newline
    return head + yaml_format.document(after).replace("\n", newline)


class _NotInPlace(Exception):
    """The text cannot be changed by lines here: the next larger value is written again instead."""


@dataclass(frozen=True, slots=True)
class _Slot:
    """Where a value stands."""

    column: int
    """Of its key, or of the dash of its list."""
    in_flow: bool = False
    key: Span | None = None


class _Editor:
    """The edits of one document."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.newline = "\r\n" if "\r\n" in text else "\n"
        found = _LIST_UNDER_KEY.search(text)
        self.list_offset = 2 if found and len(found[2]) > len(found[1]) else 0
        document = spans(text)
        self.root, self.has_anchors = document.root, document.has_anchors
        first = self.root.entries[0][0] if self.root.entries else None
        self.as_json = self.root.is_flow and first is not None and first.style == '"'
        self.edits: list[tuple[int, int, str]] = []
        self.now: dict[int, Any] = {}
        """What an anchor stands for once the edits are made."""

    def edit(self, before: Any, after: Any) -> str:
        self._visit(self.root, before, after, _Slot(0, self.root.is_flow))
        text, at, parts = self.text, 0, []
        for start, end, new in sorted(self.edits, key=lambda edit: edit[:2]):
            if start < at:
                raise _NotInPlace
            parts += [text[at:start], new]
            at = end
        return "".join([*parts, text[at:]])

    def _visit(self, span: Span, before: Any, after: Any, slot: _Slot) -> None:
        if span.kind == "alias":
            if not is_same(self.now.get(id(span.target), _UNKNOWN), after):
                self._replace(span, after, slot)
            return
        changes = not is_same(before, after)
        if not changes and not self.has_anchors:
            return
        made = len(self.edits)
        try:
            if span.kind == "mapping" and isinstance(after, dict) and (after or not changes):
                self._mapping(span, before, after)
            elif span.kind == "sequence" and isinstance(after, list) and (after or not changes):
                self._sequence(span, before, after)
            elif changes:
                raise _NotInPlace
        except _NotInPlace:
            del self.edits[made:]
            self._replace(span, after, slot)
        if span.has_anchor and id(span) not in self.now:
            self.now[id(span)] = after

    # ── mappings ──

    def _mapping(self, span: Span, before: dict[str, Any], after: dict[str, Any]) -> None:
        if not span.entries:
            if after:
                raise _NotInPlace
            return
        merges, own = _parted(span)
        merged = self._merged(merges)
        is_unrolled = any(key not in after for key in merged)
        if is_unrolled:
            merged = {}
        gone, first = set[int](), span.entries[0][0]
        for place, (key, value) in enumerate(span.entries):
            if place in merges:
                if is_unrolled:
                    gone.add(place)
            elif key.text not in after:
                gone.add(place)
            elif own[key.text] == place:
                slot = _Slot(self._column(first), span.is_flow, key)
                self._visit(value, before[key.text], after[key.text], slot)
        kept_text = {key for key in own if key in after}
        new = {
            key: item
            for key, item in after.items()
            if key not in kept_text and not (key in merged and is_same(merged[key], item))
        }
        if span.is_flow:
            self._flow_edit([(k.start, v.end) for k, v in span.entries], gone, self._flow_pairs(new), span)
            return
        for place in gone:
            key, value = span.entries[place]
            self._lose(value)
            if self._prefix(key):
                raise _NotInPlace
            self._cut_lines(key.start, value.end)
        if new:
            lines = yaml_format.block(new, self.list_offset)
            self._insert(self._after_line(span.end), lines, self._column(first))

    def _merged(self, merges: dict[int, Span]) -> dict[str, Any]:
        """What the merge keys bring once the edits are made."""
        found: dict[str, Any] = {}
        for value in merges.values():
            parts = value.items if value.kind == "sequence" else [value]
            one: dict[str, Any] = {}
            for part in reversed(parts):
                known = self.now.get(id(part.target), _UNKNOWN) if part.kind == "alias" else _UNKNOWN
                if not isinstance(known, dict):
                    raise _NotInPlace
                one |= known
            found |= one
        return found

    # ── sequences ──

    def _sequence(self, span: Span, before: list[Any], after: list[Any]) -> None:
        if not span.items:
            if after:
                raise _NotInPlace
            return
        pairs, gone, new = _aligned(before, after)
        dash = None if span.is_flow else self._dash(span.items[0])
        column = 0 if dash is None else dash - self._line_start(dash)
        for i, j in pairs:
            self._visit(span.items[i], before[i], after[j], _Slot(column, span.is_flow))
        if span.is_flow:
            if any(at < len(before) for at, _ in new):
                raise _NotInPlace
            texts = [self._flow(after[j]) for _, j in new]
            self._flow_edit([(item.start, item.end) for item in span.items], gone, texts, span)
            return
        for i in gone:
            self._lose(span.items[i])
            self._cut_lines(self._dash(span.items[i]), span.items[i].end)
        for at, j in new:
            is_last = at == len(before)
            place = self._after_line(span.end) if is_last else self._line_start(self._dash(span.items[at]))
            self._insert(place, yaml_format.block([after[j]], self.list_offset), column)

    def _dash(self, item: Span) -> int:
        """The offset of the dash before an item."""
        at = self.text.rfind("-", 0, item.start)
        between = self.text[at + 1 : item.start]
        if at < 0 or between.strip() or self.text[self._line_start(at) : at].strip(" "):
            raise _NotInPlace
        return at

    # ── text ──

    def _replace(self, span: Span, after: Any, slot: _Slot) -> None:
        """The whole value written again."""
        self._lose(span)
        text, is_block = self.text, span.kind in ("mapping", "sequence") and not span.is_flow
        if slot.in_flow or not isinstance(after, dict | list) or not after:
            style = '"' if slot.in_flow and self.as_json else span.style if span.style in ("'", '"') else None
            new = yaml_format.scalar(after, style) if not isinstance(after, dict | list) else self._flow(after)
            if is_block and slot.key is not None and "\n" in text[slot.key.end : span.start]:
                colon = text.index(":", slot.key.end) + 1
                self.edits.append((colon, colon, f" {new}"))
                self._cut_lines(span.start, span.end)
            else:
                space = " " if span.start == span.end and text[span.start - 1 : span.start] in ":-" else ""
                self.edits.append((span.start, span.end, space + new))
            return
        lines = yaml_format.block(after, self.list_offset)
        if is_block or slot.key is None:
            column = span.start - self._line_start(span.start)
            if slot.key is None and not is_block:
                column = slot.column + 2
            inset = self.newline + " " * column
            self.edits.append((span.start, span.end, inset.join(lines)))
            return
        start = len(text[: span.start].rstrip(" "))
        self.edits.append((start, span.end, ""))
        column = slot.column + (self.list_offset if isinstance(after, list) else 2)
        self._insert(self._after_line(span.end), lines, column)

    def _lose(self, span: Span) -> None:
        """Aliases can no longer name what is in here."""
        if self.has_anchors:
            for inner in span.anchored():
                self.now[id(inner)] = _UNKNOWN

    def _insert(self, place: int, lines: list[str], column: int) -> None:
        new = "".join(f"{' ' * column}{line}{self.newline}" for line in lines)
        if place == len(self.text) and self.text[place - 1 : place] != "\n":
            new = self.newline + new.removesuffix(self.newline)
        self.edits.append((place, place, new))

    def _cut_lines(self, start: int, end: int) -> None:
        first, last = self._line_start(start), self._after_line(end)
        if last == len(self.text) and self.text[last - 1 : last] != "\n":
            first -= len(self.newline)
        self.edits.append((max(first, 0), last, ""))

    def _flow_edit(self, parts: list[tuple[int, int]], gone: set[int], new: list[str], span: Span) -> None:
        if not gone and not new:
            return
        kept = [place for place in range(len(parts)) if place not in gone]
        if not kept:
            raise _NotInPlace
        for place in gone:
            self._lose(span.entries[place][1] if span.entries else span.items[place])
            if place > kept[0]:
                self.edits.append((parts[place - 1][1], parts[place][1], ""))
        if kept[0] > 0:
            self.edits.append((parts[0][0], parts[kept[0]][0], ""))
        start, end = parts[kept[-1]]
        is_spread = not self.text[self._line_start(start) : start].strip()
        apart = f",{self.newline}{' ' * (start - self._line_start(start))}" if is_spread else ", "
        if new:
            self.edits.append((end, end, "".join(apart + text for text in new)))

    def _flow_pairs(self, new: dict[str, Any]) -> list[str]:
        quotes = '"' if self.as_json else None
        return [f"{yaml_format.scalar(key, quotes)}: {self._flow(item)}" for key, item in new.items()]

    def _flow(self, value: Any) -> str:
        return yaml_format.flow(value, as_json=self.as_json)

    def _line_start(self, at: int) -> int:
        return self.text.rfind("\n", 0, at) + 1

    def _after_line(self, at: int) -> int:
        """Where the line after this place begins."""
        if at > 0 and self.text[at - 1] == "\n":
            return at
        found = self.text.find("\n", at)
        return len(self.text) if found < 0 else found + 1

    def _column(self, key: Span) -> int:
        return key.start - self._line_start(key.start)

    def _prefix(self, key: Span) -> str:
        return self.text[self._line_start(key.start) : key.start].strip()


def _parted(span: Span) -> tuple[dict[int, Span], dict[str, int]]:
    """The merge keys by their place; of every other key the last place, which counts."""
    merges, own = dict[int, Span](), dict[str, int]()
    for place, (key, value) in enumerate(span.entries):
        if key.kind != "scalar":
            raise _NotInPlace
        if key.text == "<<" and key.style is None:
            merges[place] = value
        else:
            own[key.text] = place
    return merges, own


def _aligned(before: list[Any], after: list[Any]) -> tuple[list[tuple[int, int]], set[int], list[tuple[int, int]]]:
    """Items that stay (before, after), places that go, and new ones with the place they come before."""
    if len(before) == len(after):
        return [(place, place) for place in range(len(before))], set(), []
    pairs, gone, new = list[tuple[int, int]](), set[int](), list[tuple[int, int]]()
    was, will = [repr(item) for item in before], [repr(item) for item in after]
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, was, will, autojunk=False).get_opcodes():
        if tag == "equal":
            pairs += zip(range(i1, i2), range(j1, j2), strict=True)
        else:
            gone |= set(range(i1, i2))
            new += [(i2, j) for j in range(j1, j2)]
    return pairs, gone, new
