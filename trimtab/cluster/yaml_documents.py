"""Reads YAML or JSON as plain values that know the lines from which they were read.

The input is one document, several documents, or a List, with or without gzip compression. YAML is parsed as Kubernetes
parses it (version 1.1: yes and no are booleans; dates stay text). Duplicate keys are mistakes, and a document whose
aliases would multiply its size is rejected before they are expanded.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import yaml

from trimtab.cluster.bounded_decode import BytesRefused, unpack
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.kinds import GroupKind, group_kind, kind_of_object
from trimtab.cluster.yaml_parser import (
    LOADER,
    MAX_DEPTH,
    Path,
    YamlComposer,
    child_node,
    line_beyond_max_depth,
    position_of,
)

MAX_UNPACKED_BYTES = 2 << 30
"""The maximum size of a file after decompression, in bytes. Real snapshots are smaller; a gzip bomb is larger."""
# Characters of JSON up to which mistakes get a line: what people write by hand is shorter, and a snapshot must be fast.
_MAX_PLACED_CHARACTERS = 256 << 10


class Document:
    """One YAML or JSON document."""

    __slots__ = ("_value", "file", "index", "is_derived", "kind", "node", "root", "text", "within")

    def __init__(
        self, *, file: str, index: int, value: Any = None, node: Any = None, root: Any = None, within: Path = ()
    ) -> None:
        self.file = file
        self.index = index
        """0-based within the file; the items of a List count as documents of their own."""
        self.node = node
        self.root = root
        """The node of the whole document that contains this one, such as a List, or None if it has no lines."""
        self.within = within
        """The path of this one in it."""
        self.text: msgspec.Raw | None = None
        """JSON that is not decoded yet: an object that names its own `kind`. None if there is a value."""
        self.kind = kind_of_object(value)
        """The kind of API object that it names, with its group, or None if it names none."""
        self._value = value
        self.is_derived = False
        """Whether a controller creates the object from the one that the file has, so that the file has no such
        fields."""

    @property
    def value(self) -> Any:
        """The document as dicts, lists, str, int, float, bool and None. Every mapping key is a str."""
        if self.text is not None and self._value is None:
            self._value = _decode_or_none(self.text)
        return self._value

    def with_value(self, value: Any) -> "Document":
        """Returns a document with another value that reports mistakes at the same place of the same file."""
        return Document(
            file=self.file, index=self.index, value=value, node=self.node, root=self.root, within=self.within
        )

    def with_derived_value(self, value: Any) -> "Document":
        """Returns the object that a controller creates from this one, at the place of this one."""
        derived = self.with_value(value)
        derived.is_derived = True
        return derived

    def position_of(self, path: Path) -> tuple[int, int] | tuple[None, None]:
        """Returns the line and column, counted from 1, of the value at `path`, or of its nearest parent that exists."""
        return position_of(self.node, path) if self.node is not None else (None, None)

    def value_at(self, path: Path) -> Any:
        """Returns the value at `path`, or None if there is none."""
        return value_at(self.value, path)

    def text_at(self, path: Path) -> str:
        """Returns the scalar at `path` as its author wrote it, such as Off for false; empty if that is not known."""
        node = self.node
        for step in path:
            node = child_node(node, step)
        return node.value if isinstance(node, yaml.ScalarNode) else ""

    @property
    def entry_name(self) -> str:
        """The document as "Kind name", or as "document N" if it has no name."""
        value = self.value if isinstance(self.value, dict) else {}
        metadata_value = value.get("metadata")
        metadata = metadata_value if isinstance(metadata_value, dict) else {}
        name = metadata.get("name") or metadata.get("generateName")
        return f"{value.get('kind')} {name}" if name and value.get("kind") else f"document {self.index + 1}"

    def error_at(
        self, path: Path, expected: str, got: str = "", todo: str = "", *, at: Path | None = None
    ) -> ConfigError:
        """Returns a mistake at `path` of this document. If `at` is given, the line is that of the value at `at`."""
        line, column = self.position_of(path if at is None else at)
        return ConfigError(
            file=self.file,
            entry=self.entry_name,
            line=line,
            column=column,
            field=format_path(path),
            expected=expected,
            got=got,
            todo=todo,
        )


class UndecodedItem(Document):
    """An item of a long JSON List, whose `value` is decoded only when it is read. Large clusters have tens of thousands
    of them, so nothing else is set than what differs."""

    __slots__ = ()
    node = None
    root = None
    is_derived = False

    def __init__(self, file: str, index: int, text: msgspec.Raw, kind: GroupKind | None, within: Path = ()) -> None:
        self.file, self.index, self.text, self.kind, self.within, self._value = file, index, text, kind, within, None


@dataclass(frozen=True, slots=True)
class ParseResult:
    """The documents that could be parsed, and the mistakes."""

    documents: tuple[Document, ...] = ()
    mistakes: tuple[ConfigError, ...] = ()
    repeated: tuple[ConfigError, ...] = ()
    """A mistake for each key that appears twice, where the last one is accepted."""


def value_at(value: Any, path: Path) -> Any:
    """Returns the value at this path within `value`, or None if there is none."""
    for step in path:
        if isinstance(value, list):
            value = value[step] if isinstance(step, int) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def format_path(path: Path) -> str:
    """Returns a path such as ("spec", "containers", 0, "name") as text: spec.containers[0].name. Keys with dots or
    slashes are quoted."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif "." in step or "/" in step:
            text += f"[{step!r}]"
        else:
            text += f".{step}" if text else step
    return text


def read_documents(file: str, content: bytes, *, takes_repeated_keys: bool = False) -> ParseResult:
    """Returns every document of one file. Empty documents are skipped. Nothing is raised: what cannot be read is
    reported as a mistake.

    With `takes_repeated_keys`, the last of several equal keys counts, as in kubectl; otherwise a repeated key is a
    mistake.
    """
    try:
        text = unpack_gzip(content).decode("utf-8-sig")
    except BytesRefused as error:
        return _single_mistake(
            file, "a complete gzip file", str(error), "copy the file again, because it was cut short or damaged"
        )
    except UnicodeDecodeError as error:
        return _single_mistake(
            file,
            "UTF-8 text",
            f"byte {error.object[error.start]:#04x} at offset {error.start}",
            "save the file as UTF-8",
        )
    # JSON is read by a parser that is many times as fast as YAML's.
    reader = _read_json if text.lstrip()[:1] in ("{", "[") else _read_yaml
    result = reader(file, text, takes_repeated_keys)
    line = _template_line(text, result.mistakes)
    if line is None:
        return result
    todo = "render the template first, for example with `helm template`"
    return _single_mistake(file, "YAML", "a template ({{ … }})", todo, line)


def _template_line(text: str, mistakes: Sequence[ConfigError]) -> int | None:
    """Returns the line with a template's `{{` that causes the first mistake, or None if no template causes it.

    The line is that of the mistake or the line before. `{{` inside quotes is text, and causes no mistake."""
    lines = text.split("\n") if mistakes and "{{" in text else []
    at = mistakes[0].line if lines else None
    candidates = () if at is None else (at, at - 1)
    return next((n for n in candidates if 0 < n <= len(lines) and "{{" in lines[n - 1]), None)


def unpack_gzip(content: bytes) -> bytes:
    """Returns the content, decompressed if it is gzip. Raises BytesRefused."""
    return unpack(content, MAX_UNPACKED_BYTES) if content[:2] == b"\x1f\x8b" else content


def _single_mistake(
    file: str, expected: str, got: str, todo: str = "", line: int | None = None, column: int | None = None
) -> ParseResult:
    return ParseResult((), (ConfigError(file=file, line=line, column=column, expected=expected, got=got, todo=todo),))


class _LongList(msgspec.Struct, gc=False, rename="camel"):
    kind: str
    items: list[msgspec.Raw]
    api_version: Any = None


class _Head(msgspec.Struct, gc=False, rename="camel"):
    kind: str
    api_version: Any = None
    unreadable: msgspec.Raw | None = None


_OBJECT_HEAD = re.compile(rb'\{\s*"apiVersion":\s*"([\w./-]*)",\s*"kind":\s*"(\w+)"\s*,\s*"metadata"')
"""Matches the beginning of an object as API clients write it. Its version and kind are there, so the rest need not be
decoded."""
_UNREADABLE = '"unreadable"'
_LIST_DECODER, _HEAD_DECODER = msgspec.json.Decoder(_LongList), msgspec.json.Decoder(_Head)


def _read_json(file: str, text: str, takes_repeated_keys: bool) -> ParseResult:
    """Returns the documents of a JSON text. If the text is not valid JSON, it is read as YAML in flow style, whose
    mistakes have lines."""
    if len(text) > _MAX_PLACED_CHARACTERS:
        try:
            long_list = _LIST_DECODER.decode(text)
            if long_list.kind.endswith("List"):
                # From the end: CPython's `in` takes three times as long for this word.
                return ParseResult(
                    tuple(_undecoded_items(file, long_list, has_unreadable=text.rfind(_UNREADABLE) >= 0)), ()
                )
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            pass
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return _read_yaml(file, text, takes_repeated_keys)
    node = _compose_json(text)
    if node is not None:
        # JSON parsers accept a repeated key silently; its author did not intend it.
        builder = YamlComposer(file, takes_repeated_keys=takes_repeated_keys)
        builder.plain_value(node)
        if builder.mistakes:
            return ParseResult((), tuple(builder.mistakes))
        return ParseResult(tuple(_documents_of(file, value, node)), (), tuple(builder.repeated))
    return ParseResult(tuple(_documents_of(file, value, node)))


def _undecoded_items(file: str, long_list: _LongList, *, has_unreadable: bool) -> Iterator[Document]:
    """Yields the items of a List. An item that names its kind is not decoded yet; any other item is."""
    # The head of the last item, and its kind: nearly every item begins as the one before.
    last_head, kind = b"", None
    for index, item in enumerate(long_list.items):
        within: Path = ("items", index)
        content = bytes(item)
        if not (has_unreadable and _UNREADABLE.encode() in content):
            if not (last_head and content.startswith(last_head)):
                head = _OBJECT_HEAD.match(content)
                last_head, kind = (b"", None) if head is None else (head[0], _kind_of_head(head))
            if kind is not None:
                # Decoded later, straight into its struct, and not at all if its kind is ignored.
                yield UndecodedItem(file, index, item, kind, within)
                continue
        try:
            # A slower look at the item: its keys may be in another order, or it may have spaces elsewhere.
            decoded_head = _HEAD_DECODER.decode(item)
        except msgspec.ValidationError:
            value = msgspec.json.decode(item)
            yield Document(
                file=file, index=index, value=_with_kind(value, long_list.kind, long_list.api_version), within=within
            )
            continue
        if decoded_head.kind.endswith("List"):
            # The items of a List within the List have no index of their own in the file.
            for place, value, _ in _objects_of(msgspec.json.decode(item), None, within):
                yield Document(file=file, index=index, value=value, within=place)
        elif decoded_head.kind and decoded_head.unreadable is None:
            version = decoded_head.api_version if isinstance(decoded_head.api_version, str) else ""
            yield UndecodedItem(file, index, item, group_kind(version, decoded_head.kind), within)
        else:
            yield Document(file=file, index=index, value=msgspec.json.decode(item), within=within)


def _kind_of_head(head: re.Match[bytes]) -> GroupKind | None:
    """Returns the kind that the beginning of an object names, or None for that of a List."""
    name = head[2].decode()
    return None if name.endswith("List") else group_kind(head[1].decode(), name)


def _decode_or_none(text: msgspec.Raw) -> Any:
    """Returns the JSON value, or None if the text is not valid JSON. The mistake is reported later, when the text is
    decoded into a struct."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def _with_kind(item: Any, list_kind: str, version: Any) -> Any:
    """Returns the item with the kind and the version of its List added, because the API server leaves them out of the
    items."""
    if not isinstance(item, dict) or "kind" in item:
        return item
    return {"apiVersion": version, "kind": list_kind.removesuffix("List"), **item}


def _compose_json(text: str) -> Any:
    """Returns JSON parsed as YAML nodes, which know their lines, or None if the text is too long or YAML cannot parse
    it."""
    try:
        return (
            None
            if len(text) > _MAX_PLACED_CHARACTERS or line_beyond_max_depth(text)
            else yaml.compose(text, Loader=LOADER)
        )
    except yaml.YAMLError:
        return None


def _read_yaml(file: str, text: str, takes_repeated_keys: bool) -> ParseResult:
    try:
        deep = line_beyond_max_depth(text)
        if deep is not None:
            return _single_mistake(
                file, f"at most {MAX_DEPTH} levels of nesting", "more", "write the document with fewer levels", deep
            )
        nodes = list(yaml.compose_all(text, Loader=LOADER))
    except yaml.MarkedYAMLError as error:
        return _yaml_mistake(file, text, error)
    except yaml.YAMLError as error:
        return _single_mistake(file, "YAML", str(error).splitlines()[0])
    documents: list[Document] = []
    mistakes: list[ConfigError] = []
    repeated: list[ConfigError] = []
    has_anchors = "&" in text
    for node in (node for node in nodes if node is not None):
        builder = YamlComposer(file, takes_repeated_keys=takes_repeated_keys, has_anchors=has_anchors)
        value = builder.plain_value(node)
        mistakes += builder.mistakes
        repeated += builder.repeated if takes_repeated_keys else ()
        # A document with mistakes is left out as a whole: without a part it could mean something else.
        if not builder.mistakes and value is not None:
            documents += _documents_of(file, value, node, len(documents))
    return ParseResult(tuple(documents), tuple(mistakes), tuple(repeated))


def _yaml_mistake(file: str, text: str, error: yaml.MarkedYAMLError) -> ParseResult:
    """Returns the mistake for a YAML error, with advice for tabs and for a file that ends early."""
    # libyaml gives some errors, such as an open bracket, only the place where the context began.
    mark: Any = error.problem_mark if error.problem_mark is not None else error.context_mark
    line = mark.line + 1 if mark else None
    rows = text.splitlines()
    row = rows[line - 1] if line is not None and line <= len(rows) else ""
    if row[: len(row) - len(row.lstrip())].count("\t"):
        return _single_mistake(
            file,
            "spaces for indentation",
            "a tab",
            "YAML does not allow tabs: replace them by spaces",
            line,
            row.index("\t") + 1,
        )
    todo = (
        "the file seems to be cut short, or is not YAML"
        if line is not None and line >= len(rows) and text[-1:] != "\n"
        else ""
    )
    problem = " ".join(part for part in (error.problem, error.context) if part)
    return _single_mistake(file, "YAML", problem, todo, line, mark.column + 1 if mark else None)


def _documents_of(file: str, value: Any, node: Any, start: int = 0) -> Iterator[Document]:
    """Yields the objects of a List, also of Lists within it; otherwise the document itself."""
    for index, (within, item, item_node) in enumerate(_objects_of(value, node, ())):
        yield Document(file=file, index=start + index, value=item, node=item_node, root=node, within=within)


def _objects_of(value: Any, node: Any, within: Path) -> Iterator[tuple[Path, Any, Any]]:
    """Yields the path, value and node of each object. The API server takes a List within a List, and so do clients
    (k8s.io/cli-runtime/pkg/resource, `FlattenListVisitor`)."""
    if not within and value in (None, {}, []):
        return
    items = value.get("items") if isinstance(value, dict) and str(value.get("kind", "")).endswith("List") else None
    if isinstance(items, list):
        version = value.get("apiVersion")
        for index, item in enumerate(items):
            path = (*within, "items", index)
            item_node = child_node(child_node(node, "items"), index)
            yield from _objects_of(_with_kind(item, value["kind"], version), item_node, path)
    elif isinstance(value, list) and not within:
        for index, item in enumerate(value):
            yield (index,), item, child_node(node, index)
    else:
        yield within, value, node
