"""Annotations of nodes that grow in one direction each, as a kubelet could write them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trimtab.compaction.candidates import CORDONED_BY_US, DELAY_DELETION_PREFIX

LIMIT = 256 * 1024
"""Bytes of all annotations of one object."""
_BEGIN = '"drain":"d","pool":"all","since":1'


@dataclass(frozen=True, slots=True)
class Text:
    """One direction in which the annotation of a drain may grow."""

    name: str
    make: Callable[[int], str]
    most: int
    """The largest n that an API server takes, or close to it."""


@dataclass(frozen=True, slots=True)
class Annotated:
    """One direction in which a node's annotations may grow."""

    name: str
    make: Callable[[int], dict[str, str]]


def _said(what: str) -> str:
    return f'{{"note":{{{_BEGIN}{what}}},"signature":"00"}}'


def _many(name: str, entry: str, count: int, brackets: str = "[]") -> str:
    entries = ",".join(entry.replace("#", str(at)) for at in range(count))
    return _said(f',"{name}":{brackets[0]}{entries}{brackets[1]}')


NOTES: tuple[Text, ...] = (
    Text("nothing", lambda n: " " * n, LIMIT),
    Text("words", lambda n: "a" * n, LIMIT),
    Text("signature", lambda n: '{"note":{},"signature":"' + "0" * n + '"}', 260_000),
    Text("escapes", lambda n: '{"note":{},"signature":"' + "\\u00e4" * n + '"}', 43_000),
    Text("controls", lambda n: "\x1b[2J" * n, 65_000),
    Text("depth", lambda n: '{"note":' + "[" * n, 260_000),
    Text("whole-depth", lambda n: '{"note":' + '{"a":' * n + "1" + "}" * (n + 1), 43_000),
    Text("digits", lambda n: _said(',"saves":' + "9" * (n + 1)), 260_000),
    Text("fraction", lambda n: _said(',"emptied":1.' + "9" * (n + 1)), 260_000),
    Text("exponent", lambda n: _said(',"emptied":1e' + "9" * (n + 1)), 260_000),
    Text("name", lambda n: _said(',"home":"' + "h" * n + '"'), 260_000),
    Text("unknown", lambda n: _said("".join(f',"x{at}":1' for at in range(n))), 20_000),
    Text("again", lambda n: _said(',"since":1' * n), 26_000),
    Text("moves", lambda n: _many("moves", '{"pod":"a/p#","uid":"u#"}', n), 8_000),
    Text("odd-moves", lambda n: _many("moves", "#", n), 35_000),
    Text("surges", lambda n: _many("surges", '"a/d#":1', n, "{}"), 17_000),
    Text("surged", lambda n: _many("surged", '"a/d#":1', n, "{}"), 17_000),
    Text("notes", lambda n: "{" + '"note":{},' * n + '"signature":""}', 26_000),
)

ANNOTATIONS: tuple[Annotated, ...] = (
    *(Annotated(f"note-{text.name}", lambda n, text=text: {CORDONED_BY_US: text.make(n)}) for text in NOTES),
    Annotated("keys", lambda n: {f"example.com/k{at}": "v" for at in range(n)}),
    Annotated("values", lambda n: {f"example.com/k{at}": f"a/{at}" for at in range(n)}),
    Annotated("delays", lambda n: {f"{DELAY_DELETION_PREFIX}{at}": "" for at in range(n)}),
    Annotated("keep", lambda n: {"trimtab.dev/do-not-disrupt": "y" * n}),
)
