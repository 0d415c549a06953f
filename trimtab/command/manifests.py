"""Manifests as their authors wrote them, to be written out again: order of keys and comments kept."""

import re
from collections.abc import Iterator
from io import StringIO
from itertools import takewhile
from typing import Any

from ruamel.yaml import YAML

from trimtab.command.files import Content

_LIST_UNDER_KEY = re.compile(r"^( *)[^ #\-][^\n]*:\n( *)- ", re.MULTILINE)


class Manifests:
    """The documents of one file. `objects` are those that `documents.read` finds, in the same order."""

    def __init__(self, content: Content) -> None:
        _, raw = content
        text = raw.decode("utf-8-sig")
        # What stands above the first `---` belongs to the file, not to a document.
        self._header = "".join(takewhile(lambda line: line[:1] in "#\n", text.splitlines(keepends=True)))
        self._yaml = YAML()
        self._yaml.preserve_quotes = True
        self._yaml.width = 4096
        # YAML 1.1, as Kubernetes reads it: a plain `yes` is a boolean there.
        self._yaml.version = (1, 1)
        self._yaml.indent(mapping=2, sequence=4 if _offset(text) else 2, offset=_offset(text))
        self._documents = [found for found in self._yaml.load_all(text) if found not in (None, {}, [])]

    @property
    def objects(self) -> list[Any]:
        return [item for document in self._documents for item in _items(document)]

    def text(self) -> str:
        """YAML, documents apart."""
        body = "---\n".join(self._dump(document) for document in self._documents)
        return body if body.startswith(self._header) else self._header + "---\n" + body

    def _dump(self, document: Any) -> str:
        out = StringIO()
        self._yaml.version = None
        self._yaml.dump(document, out)
        return out.getvalue()


def _offset(text: str) -> int:
    """How far this author indents a list below its key: 0 or 2."""
    found = _LIST_UNDER_KEY.search(text)
    return 2 if found and len(found[2]) > len(found[1]) else 0


def _items(document: Any) -> Iterator[Any]:
    if isinstance(document, list):
        yield from document
    elif str(document.get("kind", "")).endswith("List") and isinstance(document.get("items"), list):
        yield from document["items"]
    else:
        yield document
