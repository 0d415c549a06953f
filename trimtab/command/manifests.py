"""Manifests as their authors wrote them, to be written out again: order of keys and comments kept."""

import re
from collections import Counter
from collections.abc import Iterator
from io import StringIO
from itertools import takewhile
from typing import Any

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.anchor import Anchor
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.constructor import RoundTripConstructor
from ruamel.yaml.mergevalue import merge_attrib
from ruamel.yaml.representer import RoundTripRepresenter
from ruamel.yaml.scalarstring import PlainScalarString

from trimtab.cluster.documents import unpacked
from trimtab.command.files import Content

_LIST_UNDER_KEY = re.compile(r"^( *)[^ #\-][^\n]*:\n( *)- ", re.MULTILINE)


class Manifests:
    """The documents of one file. `objects` are those that `documents.read` finds, in the same order."""

    def __init__(self, content: Content) -> None:
        text = unpacked(content[1]).decode("utf-8-sig")
        # What stands above the first `---` belongs to the file, not to a document.
        self._header = "".join(takewhile(lambda line: line[:1] in "#\n", text.splitlines(keepends=True)))
        # Read as YAML 1.2, where a plain `yes` or `1:30` is text and comes out as it came in.
        self._yaml = YAML()
        self._yaml.Constructor, self._yaml.Representer = _AsWritten, _Quoting
        self._yaml.preserve_quotes = True
        self._yaml.width = 4096
        self._yaml.indent(mapping=2, sequence=4 if _offset(text) else 2, offset=_offset(text))
        self._documents = [found for found in self._yaml.load_all(text) if found not in (None, {}, [])]

        self._places = [(place, at) for place, found in enumerate(self._documents) for at in _places(found)]
        self._times = Counter(id(self._at(*place)) for place in self._places)

    @property
    def objects(self) -> list[Any]:
        return [self._at(*place) for place in self._places]

    def own(self, index: int) -> Any:
        """The object at this index to be edited: what it shares with others by alias or merge is written out in it,
        so that no change reaches further than it was decided for."""
        place, at = self._places[index]
        manifest = self._at(place, at)
        if self._times[id(manifest)] == 1 and not _shares(manifest):
            return manifest
        alone = _alone(manifest)
        if at is None:
            self._documents[place] = alone
        else:
            _listed(self._documents[place])[at] = alone  # type: ignore[index]
        return alone

    def _at(self, place: int, at: int | None) -> Any:
        document = self._documents[place]
        return document if at is None else _listed(document)[at]  # type: ignore[index]

    def text(self) -> str:
        """YAML, documents apart."""
        body = "---\n".join(self._dump(document) for document in self._documents)
        return body if body.startswith(self._header) else self._header + "---\n" + body

    def _dump(self, document: Any) -> str:
        out = StringIO()
        self._yaml.dump(document, out)
        return out.getvalue()


class _AsWritten(RoundTripConstructor):
    """Marks plain text as its author's, so that it stays plain."""

    def construct_scalar(self, node: Any) -> Any:
        found = super().construct_scalar(node)
        return PlainScalarString(found) if type(found) is str and _is_odd(found) else found


class _Quoting(RoundTripRepresenter):
    """Text of ours that Kubernetes (which reads YAML 1.1) would take for a boolean or a number gets quotes."""

    def represent_str(self, data: str) -> Any:
        return self.represent_scalar("tag:yaml.org,2002:str", data, style='"' if _is_odd(data) else None)


_Quoting.add_representer(str, _Quoting.represent_str)
_RESOLVER = yaml.resolver.Resolver()


def _is_odd(text: str) -> bool:
    """Is this text, without quotes, something else to YAML 1.1?"""
    tag = _RESOLVER.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    return text in _YES_OR_NO or tag != "tag:yaml.org,2002:str"


_YES_OR_NO = ("y", "Y", "n", "N")
"""Booleans to Kubernetes' reader; text to PyYAML."""


def _offset(text: str) -> int:
    """How far this author indents a list below its key: 0 or 2."""
    found = _LIST_UNDER_KEY.search(text)
    return 2 if found and len(found[2]) > len(found[1]) else 0


def _places(document: Any) -> Iterator[int | None]:
    """Where its objects stand in the list it is; None where it is one itself."""
    listed = _listed(document)
    yield from [None] if listed is None else range(len(listed))


def _listed(document: Any) -> list[Any] | None:
    """The list that holds the objects; None where the document is one itself."""
    if isinstance(document, list):
        return document
    items = document.get("items") if str(document.get("kind", "")).endswith("List") else None
    return items if isinstance(items, list) else None


def _shares(node: Any) -> bool:
    """Is something in here named by an anchor, or merged in?"""
    if not isinstance(node, CommentedMap | CommentedSeq):
        return False
    if node.yaml_anchor() is not None or getattr(node, "merge", None):
        return True
    return any(_shares(child) for child in (node.values() if isinstance(node, CommentedMap) else node))


def _alone(node: Any) -> Any:
    """A copy that shares nothing: no anchors, no aliases, merged keys as its own; comments and style are kept."""
    if not isinstance(node, CommentedMap | CommentedSeq):
        return node
    copy: Any = type(node)()
    node.copy_attributes(copy)
    for attribute in (Anchor.attrib, merge_attrib):
        if hasattr(copy, attribute):
            delattr(copy, attribute)
    if isinstance(node, CommentedMap):
        copy.update({key: _alone(value) for key, value in node.items()})
    else:
        copy.extend(_alone(item) for item in node)
    return copy
