"""What did this file say, and on which line?

Bytes of YAML or JSON (one document, several, a List; gzip or not) → plain values that know their lines. YAML is
read as Kubernetes reads it (1.1: yes/no are booleans; dates stay text), duplicate keys are mistakes, and an
alias bomb is refused before it is ever expanded.
"""

import gzip
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import msgspec
import yaml

from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.yaml_parser import LOADER, MOST_DEPTH, Path, YamlComposer, child, mark_of, too_deep

MOST_BYTES = 2 << 30
"""Nobody's snapshot is larger once unpacked; a gzip bomb is."""
_MOST_PLACED = 256 << 10
"""Characters of JSON whose mistakes get a line: what people write by hand is shorter, and a snapshot must be fast."""


class Document:
    """One YAML or JSON document. What stands in a long JSON List is decoded only when its `value` is asked for."""

    __slots__ = ("_value", "file", "index", "kind", "node", "root", "text", "within")

    def __init__(
        self, *, file: str, index: int, value: Any = None, node: Any = None, root: Any = None, within: Path = (),
        text: msgspec.Raw | None = None, kind: str | None = None,
    ) -> None:  # fmt: skip
        self.file = file
        self.index = index
        """0-based within the file; the items of a List count as documents of their own."""
        self.node = node
        self.root = root
        """The node of the whole document that holds this one, such as a List; None where it has no lines."""
        self.within = within
        """Where this one stands in it."""
        self.text = text
        """JSON that nobody has decoded yet: an object that names its own `kind`. None where there is a value."""
        self.kind = kind if text is not None else kind_of(value)
        """What kind of API object it says it is; None where it says nothing."""
        self._value = value

    @property
    def value(self) -> Any:
        """dicts, lists, str, int, float, bool, None; every mapping key is a str."""
        if self.text is not None and self._value is None:
            self._value = _decoded(self.text)
        return self._value

    def with_value(self, value: Any) -> "Document":
        """The same place in the same file, saying something else."""
        return Document(
            file=self.file, index=self.index, value=value, node=self.node, root=self.root, within=self.within
        )

    def mark(self, path: Path) -> tuple[int, int] | tuple[None, None]:
        """1-based line and column of the value at `path`, or of its nearest parent that is there."""
        return mark_of(self.node, path) if self.node is not None else (None, None)

    @property
    def entry(self) -> str:
        """ "Kind name", or "document N" where it has none."""
        value = self.value if isinstance(self.value, dict) else {}
        found = value.get("metadata")
        metadata = found if isinstance(found, dict) else {}
        name = metadata.get("name") or metadata.get("generateName")
        return f"{value.get('kind')} {name}" if name and value.get("kind") else f"document {self.index + 1}"

    def mistake(
        self, path: Path, expected: str, got: str = "", todo: str = "", *, at: Path | None = None
    ) -> ConfigError:
        """A mistake at `path` of this document (its line taken from `at` where that is the better place)."""
        line, column = self.mark(path if at is None else at)
        return ConfigError(
            file=self.file, entry=self.entry, line=line, column=column, field=dotted(path),
            expected=expected, got=got, todo=todo,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ParseResult:
    """All that could be read, and all that could not."""

    documents: tuple[Document, ...] = ()
    mistakes: tuple[ConfigError, ...] = ()
    repeated: tuple[ConfigError, ...] = ()
    """Keys that stand twice, where the reader was asked to take the last one."""


def kind_of(value: Any) -> str | None:
    """The kind that an API object names; None where it names none."""
    kind = value.get("kind") if isinstance(value, dict) else None
    return kind if isinstance(kind, str) and kind else None


def dotted(path: Path) -> str:
    """("spec", "containers", 0, "name") → spec.containers[0].name; odd keys are quoted."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif "." in step or "/" in step:
            text += f"[{step!r}]"
        else:
            text += f".{step}" if text else step
    return text


def read(file: str, content: bytes, *, takes_repeated_keys: bool = False) -> ParseResult:
    """Every document of one file. Empty documents are skipped; nothing is raised.

    takes_repeated_keys: of a key that stands twice the last one counts, as for kubectl; otherwise it is a mistake."""
    try:
        text = unpacked(content).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error) as error:
        return _nothing(file, "a whole gzip file", str(error), "copy it again; it was cut short or damaged")
    except UnicodeDecodeError as error:
        return _nothing(
            file,
            "UTF-8 text",
            f"byte {error.object[error.start]:#04x} at offset {error.start}",
            "save it as UTF-8",
        )
    reader = _json if text.lstrip()[:1] in ("{", "[") else _yaml
    return reader(file, text, takes_repeated_keys)


def unpacked(content: bytes) -> bytes:
    """The bytes as they were before gzip, where they went through it. Raises as gzip does, and OSError for a bomb."""
    if content[:2] != b"\x1f\x8b":
        return content
    with gzip.GzipFile(fileobj=BytesIO(content)) as packed:
        text = packed.read(MOST_BYTES)
        if packed.read(1):
            raise OSError(f"it unpacks to more than {MOST_BYTES >> 30} GiB")
        return text


def _nothing(
    file: str, expected: str, got: str, todo: str = "", line: int | None = None, column: int | None = None
) -> ParseResult:
    return ParseResult((), (ConfigError(file=file, line=line, column=column, expected=expected, got=got, todo=todo),))


class _LongList(msgspec.Struct, gc=False, rename="camel"):
    kind: str
    items: list[msgspec.Raw]
    api_version: Any = None


class _Head(msgspec.Struct, gc=False):
    kind: str
    unreadable: msgspec.Raw | None = None


_BEGINS = re.compile(rb'\{\s*"apiVersion":\s*"[\w./]*",\s*"kind":\s*"(\w+)"\s*,\s*"metadata"')
"""How clients write an object: what kind it is stands at its head."""
_UNREADABLE = b'"unreadable"'
_LONG_LIST, _HEAD = msgspec.json.Decoder(_LongList), msgspec.json.Decoder(_Head)


def _json(file: str, text: str, takes_repeated_keys: bool) -> ParseResult:
    """JSON the fast way; what is not JSON after all may still be YAML in flow style, and YAML has lines."""
    if len(text) > _MOST_PLACED:
        try:
            found = _LONG_LIST.decode(text)
            if found.kind.endswith("List"):
                return ParseResult(tuple(_items_as_text(file, found)), ())
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            pass
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return _yaml(file, text, takes_repeated_keys)
    node = _node(text)
    if node is not None:
        # JSON readers take a key that stands twice without a word; whoever wrote it did not mean that.
        builder = YamlComposer(file, takes_repeated_keys=takes_repeated_keys)
        builder.document(node)
        if builder.mistakes:
            return ParseResult((), tuple(builder.mistakes))
        return ParseResult(tuple(_items(file, value, node)), (), tuple(builder.repeated))
    return ParseResult(tuple(_items(file, value, node)))


def _items_as_text(file: str, found: _LongList) -> Iterator[Document]:
    """Items that say what they are stay text; all others are decoded as ever."""
    for index, item in enumerate(found.items):
        within: Path = ("items", index)
        begins = _BEGINS.match(item)
        if begins is not None and _UNREADABLE not in bytes(item):
            yield Document(file=file, index=index, text=item, kind=begins[1].decode(), within=within)
            continue
        try:
            head = _HEAD.decode(item)
        except msgspec.ValidationError:
            value = msgspec.json.decode(item)
            yield Document(
                file=file, index=index, value=_with_kind(value, found.kind, found.api_version), within=within
            )
            continue
        if head.kind and head.unreadable is None:
            yield Document(file=file, index=index, text=item, kind=head.kind, within=within)
        else:
            yield Document(file=file, index=index, value=msgspec.json.decode(item), within=within)


def _decoded(text: msgspec.Raw) -> Any:
    """None for text that is not even JSON: nothing can be made of it, and whoever asks for a shape is told so."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def _with_kind(item: Any, list_kind: str, version: Any) -> Any:
    """The API server leaves kind and version out of the items of a PodList."""
    if not isinstance(item, dict) or "kind" in item:
        return item
    return {"apiVersion": version, "kind": list_kind.removesuffix("List"), **item}


def _node(text: str) -> Any:
    """JSON as YAML sees it, which has lines; None where the text is long, or YAML cannot read it."""
    try:
        return None if len(text) > _MOST_PLACED or too_deep(text) else yaml.compose(text, Loader=LOADER)
    except yaml.YAMLError:
        return None


def _yaml(file: str, text: str, takes_repeated_keys: bool) -> ParseResult:
    try:
        deep = too_deep(text)
        if deep is not None:
            return _nothing(file, f"at most {MOST_DEPTH} levels of nesting", "more", "flatten it", deep)
        nodes = list(yaml.compose_all(text, Loader=LOADER))
    except yaml.MarkedYAMLError as error:
        return _broken(file, text, error)
    except yaml.YAMLError as error:
        return _nothing(file, "YAML", str(error).splitlines()[0])
    documents: list[Document] = []
    mistakes: list[ConfigError] = []
    repeated: list[ConfigError] = []
    for node in (node for node in nodes if node is not None):
        builder = YamlComposer(file, takes_repeated_keys=takes_repeated_keys)
        value = builder.document(node)
        mistakes += builder.mistakes
        repeated += builder.repeated if takes_repeated_keys else ()
        if not builder.mistakes and value is not None:
            documents += _items(file, value, node, len(documents))
    return ParseResult(tuple(documents), tuple(mistakes), tuple(repeated))


def _broken(file: str, text: str, error: yaml.MarkedYAMLError) -> ParseResult:
    mark: Any = error.problem_mark if error.problem_mark is not None else error.context_mark
    line = mark.line + 1 if mark else None
    rows = text.splitlines()
    row = rows[line - 1] if line is not None and line <= len(rows) else ""
    if row[: len(row) - len(row.lstrip())].count("\t"):
        return _nothing(
            file, "spaces for indentation", "a tab", "YAML does not allow tabs: replace them by spaces", line,
            row.index("\t") + 1,
        )  # fmt: skip
    todo = "the file seems cut short" if line is not None and line >= len(rows) and text[-1:] != "\n" else ""
    problem = " ".join(part for part in (error.problem, error.context) if part)
    return _nothing(file, "YAML", problem, todo, line, mark.column + 1 if mark else None)


def _items(file: str, value: Any, node: Any, start: int = 0) -> Iterator[Document]:
    """The document itself, or what a List of it holds."""
    items = value.get("items") if isinstance(value, dict) and str(value.get("kind", "")).endswith("List") else None
    if value in (None, {}, []):
        return
    if not isinstance(items, list):
        found = value if isinstance(value, list) else [value]
        nodes = node.value if isinstance(value, list) and node is not None else [node] * len(found)
    else:
        found, listed = items, child(node, "items")
        nodes = listed.value if listed is not None and len(listed.value) == len(found) else [None] * len(found)
    for index, (item, item_node) in enumerate(zip(found, nodes, strict=True)):
        told = _with_kind(item, value["kind"], value.get("apiVersion")) if found is items else item
        within: Path = ("items", index) if found is items else (index,) if found is value else ()
        yield Document(file=file, index=start + index, value=told, node=item_node, root=node, within=within)
