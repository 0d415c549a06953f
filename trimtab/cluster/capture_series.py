"""The format of a series of captures: a cluster as it was at many times, of which only the changes are written.

A series is a folder of files. A file is made of rounds, and a round is one line that begins it, one line for each
object that changed or is gone, and one line that ends it. The first round of a file is whole: it has every object, so
that each file can be read without the others. A round without its last line, or with another number of lines than that
line says, was broken off and counts as if it were not there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

import msgspec

from trimtab.cluster.timestamps import Seconds, format_timestamp, parse_timestamp

API_VERSION = "trimtab.dev/v1alpha1"
ROUND_KIND, GONE_KIND, END_KIND = "CaptureRound", "CaptureGone", "CaptureRoundEnd"
CLUSTER_NAMESPACE = "kube-system"
"""The namespace whose uid identifies the cluster: it is created once, and is never deleted."""
SERIES_ENDING = ".rounds.gz"
"""How the name of each file of a series ends."""

ObjectKey = tuple[str, str, str]
"""Kind, namespace and name of an object."""


class _Meta(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""


class SeriesLine(msgspec.Struct, frozen=True, rename="camel"):
    """What a reader of a series looks at in each line, whatever else it has."""

    kind: str = ""
    metadata: _Meta = _Meta()
    at: str = ""
    cluster: str = ""
    whole: bool = False
    every_seconds: int = 0
    of: str = ""
    """For an object that is gone, its kind."""
    lines: int = -1
    """For the end of a round, the number of the lines between its begin and its end."""

    @property
    def key(self) -> ObjectKey:
        """The object that the line is about."""
        return self.of or self.kind, self.metadata.namespace, self.metadata.name


_LINES = msgspec.json.Decoder(SeriesLine)


def read_line(line: bytes) -> SeriesLine | None:
    """Returns what a reader needs of the line; None if it is no line of a series."""
    try:
        return _LINES.decode(line)
    except (msgspec.DecodeError, UnicodeError):
        return None


# resourceVersion changes with every heartbeat of a node, and nothing that reads captures reads it. In a text, the
# quotes would be escaped, so that only fields match.
_VERSION = re.compile(
    rb'"resourceVersion":"[^"]*",|,"resourceVersion":"[^"]*"(?=})|(?<=\{)"resourceVersion":"[^"]*"(?=})'
)


def list_capture_lines(content: bytes) -> Iterator[bytes]:
    """Yields the objects of a capture file, one JSON text for each, without their resourceVersions. `content`: what
    `trimtab capture` writes."""
    for line in content.split(b"\n")[1:-2]:
        yield _VERSION.sub(b"", line.removesuffix(b","))


@dataclass(slots=True)
class RoundWriter:
    """Encodes the rounds of one file of a series, one after the other."""

    every_seconds: int
    digests: dict[ObjectKey, bytes] = field(default_factory=dict)
    """Object → the digest of its last line."""
    has_round: bool = False

    def encode_round(self, at: Seconds, content: bytes) -> tuple[bytes, int]:
        """Returns (the lines of the next round, how many objects changed or are gone) for a capture that was taken at
        this time."""
        present: dict[ObjectKey, bytes] = {}
        changed: list[bytes] = []
        cluster = ""
        for line in list_capture_lines(content):
            head = read_line(line) or SeriesLine()
            if head.key == ("Namespace", "", CLUSTER_NAMESPACE):
                cluster = head.metadata.uid
            digest = present[head.key] = blake2b(line, digest_size=16).digest()
            if self.digests.get(head.key) != digest:
                changed.append(line)
        gone = [
            _encode_line(GONE_KIND, of=kind, metadata={"namespace": namespace, "name": name})
            for kind, namespace, name in sorted(self.digests.keys() - present.keys())
        ]
        begin = _encode_line(
            ROUND_KIND,
            at=format_timestamp(at),
            cluster=cluster,
            whole=not self.has_round,
            everySeconds=self.every_seconds,
        )
        lines = [*changed, *gone]
        self.digests, self.has_round = present, True
        return b"\n".join((begin, *lines, _encode_line(END_KIND, lines=len(lines)), b"")), len(lines)


def _encode_line(kind: str, **values: object) -> bytes:
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": kind, **values})


@dataclass(frozen=True, slots=True)
class SeriesRound:
    """One whole round of a file, as it was written."""

    at: Seconds
    cluster: str
    """The uid of the namespace kube-system; empty if the capture did not have it."""
    is_whole: bool
    """Whether it has every object, so that what it does not have is not there."""
    every_seconds: int
    lines: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class BrokenRound:
    """The place where a file was broken off, or has something else than a round."""

    line: int
    """The number of the line, from 1."""
    because: str


MAX_LINE_BYTES, MAX_ROUND_BYTES = 16 << 20, 512 << 20
"""The largest size of a line, and of a round, in bytes of memory: more is not read. An API server takes no object of
more than 3 MiB."""
_LINE_BYTES = 64
"""The memory that a line takes beside its text, in bytes."""


def split_lines(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the lines of a text that comes in parts, without their ends. A line that is too long ends the text."""
    rest: list[bytes] = []
    size = 0
    for part in parts:
        *whole, last = part.split(b"\n")
        if whole:
            yield b"".join((*rest, whole[0]))
            yield from whole[1:]
            rest, size = [], 0
        rest.append(last)
        size += len(last)
        if size > MAX_LINE_BYTES:
            break
    if any(rest):
        yield b"".join(rest)


def split_rounds(lines: Iterable[bytes]) -> Iterator[SeriesRound | BrokenRound]:
    """Yields the rounds of a file. After the first that is broken off nothing more of the file is read, because what
    changed in it is not known. Only one round is in memory at a time."""
    begin: SeriesLine | None = None
    body: list[bytes] = []
    number = size = count = 0
    for number, line in enumerate(lines, 1):
        head = read_line(line)
        size += len(line) + _LINE_BYTES
        if head is None or (begin is None) != (head.kind == ROUND_KIND):
            yield BrokenRound(number, "it is no line of a round" if begin is not None else "no round begins there")
            return
        if size > MAX_ROUND_BYTES:
            yield BrokenRound(number, "the round is too large")
            return
        if begin is None:
            begin, body, size = head, [], 0
            # What has not changed since an earlier round is not known without that round.
            if not count and not begin.whole:
                yield BrokenRound(number, "the file does not begin with every object")
                return
        elif head.kind == END_KIND:
            at = parse_timestamp(begin.at)
            if head.lines != len(body) or at is None:
                yield BrokenRound(number, "the round has no time" if at is None else "lines of the round are missing")
                return
            yield SeriesRound(at, begin.cluster, begin.whole, begin.every_seconds, tuple(body))
            begin, count = None, count + 1
        else:
            body.append(line)
    if begin is not None:
        yield BrokenRound(number, "the round has no end")


@dataclass(frozen=True, slots=True)
class ClusterChange:
    """What changed in the cluster from one round to the next."""

    at: Seconds
    changed: Mapping[ObjectKey, bytes]
    """Object → its JSON text, for the objects that are new or different."""
    gone: tuple[ObjectKey, ...]

    @classmethod
    def from_texts(cls, at: Seconds, texts: Mapping[ObjectKey, bytes | None]) -> ClusterChange:
        """Returns the change with these `texts`."""
        return cls(
            at,
            {key: text for key, text in texts.items() if text is not None},
            tuple(key for key, text in texts.items() if text is None),
        )

    @property
    def texts(self) -> dict[ObjectKey, bytes | None]:
        """Object → its JSON text; None: it is gone."""
        return {**dict.fromkeys(self.gone), **self.changed}


@dataclass(frozen=True, slots=True)
class RoundGap:
    """A time of which nothing is known."""

    begin: Seconds
    end: Seconds


@dataclass(slots=True)
class SeriesState:
    """Joins the rounds of several files to changes. It remembers which objects there are, and not the objects."""

    digests: dict[ObjectKey, bytes] = field(default_factory=dict)
    skipped: dict[ObjectKey, bytes | None] = field(default_factory=dict)
    """What changed with the rounds that were left out since the last one that counts: object → its JSON text; None: it
    is gone."""

    def skip_round(self, one: SeriesRound) -> None:
        """Leaves the round out: what changed with it is part of the next one."""
        self.skipped.update(self._compare_round(one).texts)

    def apply_round(self, one: SeriesRound) -> ClusterChange:
        """Returns what changed with this round, and with those before it that were left out."""
        change = self._compare_round(one)
        if not self.skipped:
            return change
        self.skipped.update(change.texts)
        joined, self.skipped = ClusterChange.from_texts(one.at, self.skipped), {}
        return joined

    def _compare_round(self, one: SeriesRound) -> ClusterChange:
        changed: dict[ObjectKey, bytes] = {}
        gone: list[ObjectKey] = []
        present: set[ObjectKey] = set()
        for line in one.lines:
            head = read_line(line) or SeriesLine()
            key = head.key
            if head.kind == GONE_KIND:
                if self.digests.pop(key, None) is not None:
                    gone.append(key)
                continue
            digest = blake2b(line, digest_size=16).digest()
            present.add(key)
            if self.digests.get(key) != digest:
                self.digests[key] = digest
                changed[key] = line
        if one.is_whole:
            missing = self.digests.keys() - present
            gone += sorted(missing)
            for key in missing:
                del self.digests[key]
        return ClusterChange(one.at, changed, tuple(gone))
