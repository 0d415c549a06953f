"""What did this file say, and on which line?

Bytes of YAML or JSON (one document, several, a List; gzip or not) → plain values that know their lines. YAML is
read as Kubernetes reads it (1.1: yes/no are booleans; dates stay text), duplicate keys are mistakes, and an
alias bomb is refused before it is ever expanded.
"""

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import msgspec
import yaml

from trimtab.cluster.mistake import Mistake
from trimtab.cluster.yaml_text import LOADER, MOST_DEPTH, Path, Values, child, mark_of, too_deep

MOST_BYTES = 2 << 30
"""Nobody's snapshot is larger once unpacked; a gzip bomb is."""
_MOST_PLACED = 256 << 10
"""Characters of JSON whose mistakes get a line: what people write by hand is shorter, and a snapshot must be fast."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One YAML or JSON document."""

    file: str
    index: int
    """0-based within the file; the items of a List count as documents of their own."""
    value: Any
    """dicts, lists, str, int, float, bool, None; every mapping key is a str."""
    node: Any = field(default=None, repr=False)

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

    def mistake(self, path: Path, expected: str, came: str = "", todo: str = "", *, at: Path | None = None) -> Mistake:
        """A mistake at `path` of this document (its line taken from `at` where that is the better place)."""
        line, column = self.mark(path if at is None else at)
        return Mistake(
            file=self.file, entry=self.entry, line=line, column=column, field=dotted(path),
            expected=expected, came=came, todo=todo,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reading:
    """All that could be read, and all that could not."""

    documents: tuple[Document, ...] = ()
    mistakes: tuple[Mistake, ...] = ()


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


def read(file: str, content: bytes) -> Reading:
    """Every document of one file. Empty documents are skipped; nothing is raised."""
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
    return _json(file, text) if text.lstrip()[:1] in ("{", "[") else _yaml(file, text)


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
    file: str, expected: str, came: str, todo: str = "", line: int | None = None, column: int | None = None
) -> Reading:
    return Reading((), (Mistake(file=file, line=line, column=column, expected=expected, came=came, todo=todo),))


def _json(file: str, text: str) -> Reading:
    """JSON the fast way; what is not JSON after all may still be YAML in flow style, and YAML has lines."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return _yaml(file, text)
    node = _node(text)
    if node is not None:
        # JSON readers take a key that stands twice without a word; whoever wrote it did not mean that.
        builder = Values(file)
        builder.document(node)
        if builder.mistakes:
            return Reading((), tuple(builder.mistakes))
    return Reading(tuple(_items(file, value, node)), ())


def _node(text: str) -> Any:
    """JSON as YAML sees it, which has lines; None where the text is long, or YAML cannot read it."""
    try:
        return None if len(text) > _MOST_PLACED or too_deep(text) else yaml.compose(text, Loader=LOADER)
    except yaml.YAMLError:
        return None


def _yaml(file: str, text: str) -> Reading:
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
    mistakes: list[Mistake] = []
    for node in (node for node in nodes if node is not None):
        builder = Values(file)
        value = builder.document(node)
        mistakes += builder.mistakes
        if not builder.mistakes and value is not None:
            documents += _items(file, value, node, len(documents))
    return Reading(tuple(documents), tuple(mistakes))


def _broken(file: str, text: str, error: yaml.MarkedYAMLError) -> Reading:
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
        if found is items and isinstance(item, dict) and "kind" not in item:
            # The API server leaves kind and version out of the items of a PodList.
            item = {"apiVersion": value.get("apiVersion"), "kind": value["kind"].removesuffix("List"), **item}
        yield Document(file=file, index=start + index, value=item, node=item_node)
