"""Changes a YAML document in place: every line whose value does not change stays as it is.

The document is compared with its new value, and only the text of what differs is written again. The comments, order,
quotes, indentation and line breaks of everything else stay. Where several places share a value by an alias or a merge
key and then become different, each gets its own text. The result is parsed again; if it is not the intended value, the
whole document is written in a new layout.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import yaml

from trimtab.cluster import yaml_format
from trimtab.cluster.yaml_format import Span, parse_spans
from trimtab.cluster.yaml_parser import LOADER, YamlComposer

_LIST_UNDER_KEY = re.compile(r"^( *)[^ #\-\n][^\n]*:[ \t]*\r?\n( *)- ", re.MULTILINE)
_CHOMPING = re.compile(r"(?:^|(?<=\s))[|>][1-9]?([+-]?)[1-9]?[ \t]*(?:#[^\n]*)?\r?$", re.MULTILINE)
"""Matches the header of a block scalar. Its group says which line breaks at the end belong to the text."""
_SURROGATES = re.compile(r"((?<!\\)(?:\\\\)*)\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})", re.IGNORECASE)
_UNKNOWN = object()


def edit_yaml(text: str, change: Callable[[Any], Any]) -> str:
    """Returns the text of one document with its value changed. `change` gets a copy of the value in which no parts are
    shared, and returns the new value."""
    try:
        before = value_of(text)
    except yaml.YAMLError:
        # The text as YAML reads it: JSON may write a character in two escapes, which YAML refuses.
        text = _SURROGATES.sub(
            lambda pair: pair[1] + chr(0x10000 + ((int(pair[2], 16) - 0xD800) << 10) + int(pair[3], 16) - 0xDC00), text
        )
        before = value_of(text)
    after = change(_copy_without_sharing(before))
    if is_same(before, after):
        return text
    try:
        # The result is parsed to check it: whatever the editor overlooks must not reach the author's file.
        result = _Editor(text).apply_edits(before, after)
        if is_same(value_of(result), after):
            return result
    except (_NotInPlace, ValueError, KeyError, yaml.YAMLError):
        pass
    return _rewrite(text, after)


def value_of(text: str) -> Any:
    """Returns the value of the first document of a text as plain dicts and lists. Each alias becomes a copy of the
    value to which it refers."""
    return _copy_without_sharing(YamlComposer("", takes_repeated_keys=True).plain_value(_compose_first(text)))


def _compose_first(text: str) -> Any:
    return yaml.compose(text, Loader=LOADER)


def _copy_without_sharing(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy_without_sharing(item) for key, item in value.items()}
    return [_copy_without_sharing(item) for item in value] if isinstance(value, list) else value


def is_same(a: Any, b: Any) -> bool:
    """Returns whether two values are equal and of one type: 1 equals neither true nor 1.0."""
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(is_same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(is_same, a, b))
    return type(a) is type(b) and (a == b or repr(a) == repr(b))


def _rewrite(text: str, after: Any) -> str:
    start = _compose_first(text).start_mark.index
    newline = "\r\n" if "\r\n" in text else "\n"
    head = text[:start] if not text[:start].strip() or text[:start].endswith("\n") else text[:start].rstrip() + newline
    return head + yaml_format.format_document(after).replace("\n", newline)


class _NotInPlace(Exception):
    """Raised when a value cannot be edited in place. The value that contains it is then written again as a whole."""


@dataclass(frozen=True, slots=True)
class _Slot:
    """Where a value is in the text, and how it is indented."""

    column: int
    """The column of the value's key, or of the dash of its list item."""
    in_flow: bool = False
    key: Span | None = None


class _Editor:
    """Collects the edits of one document and applies them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.newline = "\r\n" if "\r\n" in text else "\n"
        list_match = _LIST_UNDER_KEY.search(text)
        # New lists are indented like the first list of the document.
        self.list_offset = 2 if list_match and len(list_match[2]) > len(list_match[1]) else 0
        document = parse_spans(text)
        self.root, self.has_anchors = document.root, document.has_anchors
        first = self.root.entries[0][0] if self.root.entries else None
        self.as_json = self.root.is_flow and first is not None and first.style == '"'
        self.edits: list[tuple[int, int, str]] = []
        self.now: dict[int, Any] = {}
        """Id of an anchored span → its value after the edits."""

    def apply_edits(self, before: Any, after: Any) -> str:
        """Returns the text after the edits that turn the value `before` into the value `after`."""
        self._edit_value(self.root, before, after, _Slot(0, self.root.is_flow))
        self._keep_open_end()
        text, offset, parts = self.text, 0, []
        # Edits are collected first and applied in the order of the text; two that overlap cannot both be right.
        for start, end, new in sorted(self.edits, key=lambda edit: edit[:2]):
            if start < offset:
                raise _NotInPlace
            parts += [text[offset:start], new]
            offset = end
        return "".join([*parts, text[offset:]])

    def _edit_value(self, span: Span, before: Any, after: Any, slot: _Slot) -> None:
        """Edits the text of one value. If it cannot be edited in place, the whole value is written again."""
        if span.kind == "alias":
            if not is_same(self.now.get(id(span.target), _UNKNOWN), after):
                self._replace(span, after, slot)
            return
        changes = not is_same(before, after)
        if not changes and not self.has_anchors:
            return
        # Edits made inside the value before it turned out that it must be written again as a whole are dropped.
        edit_count = len(self.edits)
        try:
            if span.kind == "mapping" and isinstance(after, dict) and (after or not changes):
                self._edit_mapping(span, before, after)
            elif span.kind == "sequence" and isinstance(after, list) and (after or not changes):
                self._edit_sequence(span, before, after)
            elif changes:
                raise _NotInPlace
        except _NotInPlace:
            del self.edits[edit_count:]
            self._replace(span, after, slot)
        # Aliases come after their anchor in the text, so its new value is known before they are visited.
        if span.has_anchor and id(span) not in self.now:
            self.now[id(span)] = after

    # ── mappings ──

    def _edit_mapping(self, span: Span, before: dict[str, Any], after: dict[str, Any]) -> None:
        """Edits the entries of a mapping that differ, deletes those that `after` lacks, and appends new ones."""
        if not span.entries:
            if after:
                raise _NotInPlace
            return
        merges, own = _merge_and_own_keys(span)
        merged = self._merged_values(merges)
        # A key that only a merge provides cannot be deleted alone: the merge is replaced by the keys that stay.
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
                slot = _Slot(self._column_of(first), span.is_flow, key)
                self._edit_value(value, before[key.text], after[key.text], slot)
        kept_keys = {key for key in own if key in after}
        new = {
            key: item
            for key, item in after.items()
            if key not in kept_keys and not (key in merged and is_same(merged[key], item))
        }
        if span.is_flow:
            quotes = '"' if self.as_json else None
            self._edit_flow(
                [(k.start, v.end) for k, v in span.entries],
                gone,
                [f"{yaml_format.format_scalar(key, quotes)}: {self._flow_text(item)}" for key, item in new.items()],
                span,
            )
            return
        for place in gone:
            key, value = span.entries[place]
            self._forget_anchors(value)
            if self.text[self._line_start(key.start) : key.start].strip():
                raise _NotInPlace
            self._delete_lines(key.start, value.end)
        if new:
            lines = yaml_format.format_block(new, self.list_offset)
            self._insert_lines(self._next_line(span.end), lines, self._column_of(first))

    def _merged_values(self, merges: dict[int, Span]) -> dict[str, Any]:
        """Returns the entries that the mapping gets from its merge keys (`<<`) after the edits."""
        merged: dict[str, Any] = {}
        for value in merges.values():
            parts = value.items if value.kind == "sequence" else [value]
            values: dict[str, Any] = {}
            # The first mapping of a merge list takes precedence, so it is applied last.
            for part in reversed(parts):
                anchored = self.now.get(id(part.target), _UNKNOWN) if part.kind == "alias" else _UNKNOWN
                if not isinstance(anchored, dict):
                    raise _NotInPlace
                values |= anchored
            merged |= values
        return merged

    # ── sequences ──

    def _edit_sequence(self, span: Span, before: list[Any], after: list[Any]) -> None:
        """Edits the items of a sequence that differ, deletes those that `after` lacks, and inserts new ones."""
        if not span.items:
            if after:
                raise _NotInPlace
            return
        pairs, gone, new = _align_items(before, after)
        dash = None if span.is_flow else self._dash_offset(span.items[0])
        column = 0 if dash is None else dash - self._line_start(dash)
        for i, j in pairs:
            self._edit_value(span.items[i], before[i], after[j], _Slot(column, span.is_flow))
        if span.is_flow:
            # Flow sequences only grow at their end.
            if any(position < len(before) for position, _ in new):
                raise _NotInPlace
            texts = [self._flow_text(after[j]) for _, j in new]
            self._edit_flow([(item.start, item.end) for item in span.items], gone, texts, span)
            return
        for i in gone:
            self._forget_anchors(span.items[i])
            self._delete_lines(self._dash_offset(span.items[i]), span.items[i].end)
        for position, j in new:
            is_last = position == len(before)
            place = self._next_line(span.end) if is_last else self._line_start(self._dash_offset(span.items[position]))
            self._insert_lines(place, yaml_format.format_block([after[j]], self.list_offset), column)

    def _dash_offset(self, item: Span) -> int:
        """Returns the offset of the dash before an item."""
        dash = self.text.rfind("-", 0, item.start)
        between = self.text[dash + 1 : item.start]
        if dash < 0 or between.strip() or self.text[self._line_start(dash) : dash].strip(" "):
            raise _NotInPlace
        return dash

    # ── text ──

    def _replace(self, span: Span, after: Any, slot: _Slot) -> None:
        """Replaces the text of a value by newly written text."""
        self._forget_anchors(span)
        text, is_block = self.text, span.kind in ("mapping", "sequence") and not span.is_flow
        if slot.in_flow or not isinstance(after, dict | list) or not after:
            style = '"' if slot.in_flow and self.as_json else span.style if span.style in ("'", '"') else None
            new = (
                yaml_format.format_scalar(after, style)
                if not isinstance(after, dict | list)
                else self._flow_text(after)
            )
            # A block value becomes a scalar or an empty collection, which belongs on the line of its key.
            if is_block and slot.key is not None and "\n" in text[slot.key.end : span.start]:
                colon = text.index(":", slot.key.end) + 1
                self.edits.append((colon, colon, f" {new}"))
                self._delete_lines(span.start, span.end)
            else:
                space = " " if span.start == span.end and text[span.start - 1 : span.start] in ":-" else ""
                self.edits.append((span.start, span.end, space + new))
            return
        lines = yaml_format.format_block(after, self.list_offset)
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
        self._insert_lines(self._next_line(span.end), lines, column)

    def _forget_anchors(self, span: Span) -> None:
        """Marks the anchors inside a span as unknown, so that no alias is written that refers to them."""
        if self.has_anchors:
            for inner in span.anchored_spans():
                self.now[id(inner)] = _UNKNOWN

    def _insert_lines(self, place: int, lines: list[str], column: int) -> None:
        new = "".join(f"{' ' * column}{line}{self.newline}" for line in lines)
        # The last line has no line break: the break goes before the new lines, not after them.
        if place == len(self.text) and self.text[place - 1 : place] != "\n":
            new = self.newline + new.removesuffix(self.newline)
        self.edits.append((place, place, new))

    def _keep_open_end(self) -> None:
        """Marks the last block scalar as ending without a line break (`|-`), if the text ends inside it without a line
        break. Without the mark, lines that are inserted after the scalar would add a line break to its value."""
        last = self.root
        while last.entries or last.items:
            last = last.entries[-1][1] if last.entries else last.items[-1]
        if last.style not in ("|", ">") or last.text.endswith("\n"):
            return
        header = _CHOMPING.search(self.text, last.start, last.end)
        end = len(self.text)
        if header is None or not any(start == end and new for start, _, new in self.edits):
            return
        at = header.start(1)
        if not any(start <= at < stop for start, stop, _ in self.edits):
            self.edits.append((at, header.end(1), "-"))

    def _delete_lines(self, start: int, end: int) -> None:
        first, last = self._line_start(start), self._next_line(end)
        if last == len(self.text) and self.text[last - 1 : last] != "\n":
            first -= len(self.newline)
        self.edits.append((max(first, 0), last, ""))

    def _edit_flow(self, parts: list[tuple[int, int]], gone: set[int], new: list[str], span: Span) -> None:
        """Deletes entries of a collection in brackets and appends new ones, with the separators that the text already
        uses."""
        if not gone and not new:
            return
        remaining = [place for place in range(len(parts)) if place not in gone]
        if not remaining:
            raise _NotInPlace
        for place in gone:
            self._forget_anchors(span.entries[place][1] if span.entries else span.items[place])
            if place > remaining[0]:
                self.edits.append((parts[place - 1][1], parts[place][1], ""))
        if remaining[0] > 0:
            self.edits.append((parts[0][0], parts[remaining[0]][0], ""))
        start, end = parts[remaining[-1]]
        is_spread = not self.text[self._line_start(start) : start].strip()
        separator = f",{self.newline}{' ' * (start - self._line_start(start))}" if is_spread else ", "
        if new:
            self.edits.append((end, end, "".join(separator + text for text in new)))

    def _flow_text(self, value: Any) -> str:
        return yaml_format.format_flow(value, as_json=self.as_json)

    def _line_start(self, at: int) -> int:
        return self.text.rfind("\n", 0, at) + 1

    def _next_line(self, at: int) -> int:
        """Returns the offset at which the next line begins; `at` itself if a line begins there."""
        if at > 0 and self.text[at - 1] == "\n":
            return at
        line_break = self.text.find("\n", at)
        return len(self.text) if line_break < 0 else line_break + 1

    def _column_of(self, key: Span) -> int:
        return key.start - self._line_start(key.start)


def _merge_and_own_keys(span: Span) -> tuple[dict[int, Span], dict[str, int]]:
    """Returns two mappings for a YAML mapping: position of each merge key (`<<`) → its value; and other key → position
    of its last occurrence, which is the one that counts."""
    merges, own = dict[int, Span](), dict[str, int]()
    for place, (key, value) in enumerate(span.entries):
        if key.kind != "scalar":
            raise _NotInPlace
        if key.text == "<<" and key.style is None:
            merges[place] = value
        else:
            own[key.text] = place
    return merges, own


def _align_items(before: list[Any], after: list[Any]) -> tuple[list[tuple[int, int]], set[int], list[tuple[int, int]]]:
    """Compares two versions of a list and returns three collections:

    - pairs of positions (before, after) of the items that stay;
    - the positions of deleted items;
    - for each new item, its position and the old position before which it is inserted."""
    # The same length: most likely items changed in place, as containers do.
    if len(before) == len(after):
        return [(place, place) for place in range(len(before))], set(), []
    pairs, gone, new = list[tuple[int, int]](), set[int](), list[tuple[int, int]]()
    old_texts, new_texts = [repr(item) for item in before], [repr(item) for item in after]
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old_texts, new_texts, autojunk=False).get_opcodes():
        if tag == "equal":
            pairs += zip(range(i1, i2), range(j1, j2), strict=True)
        else:
            gone |= set(range(i1, i2))
            new += [(i2, j) for j in range(j1, j2)]
    return pairs, gone, new
