"""Reads some series from a scraped body in Prometheus' text format, while the body arrives.

A body may have 20 MB, of which a rule needs a few lines. So names are searched for in whole blocks, and only lines that
begin with one of them are parsed. If a line of a wanted series is not valid, no value of that series is used, because a
sum with a missing part is a wrong number.

Formats: https://prometheus.io/docs/instrumenting/exposition_formats/ (version 0.0.4), which is requested, and
https://prometheus.io/docs/specs/om/open_metrics_spec/ (1.0), which some servers send all the same: there a timestamp
may be a fraction, and an exemplar may follow.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from trimtab.cluster.reason import Reason
from trimtab.metricsapi.reasons import BODY_MALFORMED, BODY_TOO_LARGE, SERIES_MISSING

MAX_BODY_BYTES = 20 * 1024 * 1024
"""The largest size of a body in bytes after decompression. An API server with many resources exposes about as much."""
BLOCK_BYTES = 64 * 1024
"""So many bytes are searched at once: parts are small where a page is compressed or sent in chunks."""
MAX_LINE_BYTES = 1024 * 1024
MAX_SERIES = 10_000
"""The maximum number of series of one name in a body. Each needs about a hundred bytes until the next scrape."""
MAX_LINES = 100_000
"""The maximum number of lines of wanted series in a body, whatever their labels are. Without it, the author of a pod
could make the process parse any number of lines."""
MAX_LABEL_BYTES = 8 * 1024 * 1024
"""The maximum number of bytes of labels that are parsed in a body, for rules that select series by their labels."""
MAX_VALUE = float(2**63)
"""The largest number that a Kubernetes Quantity can hold."""

START_TIME = b"process_start_time_seconds"
"""The name of the series in which client libraries expose the start time of a process. If it changes, the counters have
begun at 0."""


@dataclass(frozen=True, slots=True)
class SeriesFilter:
    """Selects series by their name, and by labels that they must have."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


SeriesValues = Mapping[int, float]
"""Value of each series, by its labels, which are represented by a number. The order of the labels does not matter; the
numbers are valid only in this process."""


@dataclass(frozen=True, slots=True)
class ScrapedBody:
    """What was read from one body."""

    values: tuple[SeriesValues | Reason, ...]
    """For each filter, the matching series, or the reason why there are none."""
    started: float | None
    """The value of `process_start_time_seconds`, or None if the body does not have it."""


class BodyReader:
    """Reads one body part by part: call `read_part` for each part, and then `finish_body`."""

    def __init__(self, filters: tuple[SeriesFilter, ...]) -> None:
        self._filters = filters
        self._by_name: dict[bytes, list[int]] = {}
        for number, one in enumerate(filters):
            self._by_name.setdefault(one.name.encode(), []).append(number)
        self._found: list[dict[int, float]] = [{} for _ in filters]
        self._problems: dict[int, Reason] = {}
        self._started: float | None = None
        self._rest = b""
        """The last lines of the blocks so far, without their ends."""
        self._parts: list[bytes] = []
        """What has arrived since then."""
        self._waiting_bytes = self._size = self._lines = self._label_bytes = 0

    def read_part(self, part: bytes) -> Reason | None:
        """Reads the next part. Returns a reason if nothing of this body can be used, otherwise None."""
        self._size += len(part)
        if self._size > MAX_BODY_BYTES:
            return BODY_TOO_LARGE(f"the body has more than {MAX_BODY_BYTES} bytes")
        if b"\0" in part:
            return BODY_MALFORMED("the body contains a zero byte, so it is not text")
        self._parts.append(part)
        self._waiting_bytes += len(part)
        return None if self._waiting_bytes < BLOCK_BYTES else self._read_block()

    def _read_block(self) -> Reason | None:
        """Reads the complete lines of what has arrived. Returns a reason if nothing of this body can be used."""
        block = b"".join((self._rest, *self._parts))
        end = block.rfind(b"\n") + 1
        self._read_lines(block[:end])
        self._rest, self._parts, self._waiting_bytes = block[end:], [], 0
        if len(self._rest) > MAX_LINE_BYTES:
            return BODY_TOO_LARGE(f"a line has more than {MAX_LINE_BYTES} bytes")
        if self._lines > MAX_LINES:
            return BODY_TOO_LARGE(f"the body has more than {MAX_LINES} lines of the series that are read")
        if self._label_bytes > MAX_LABEL_BYTES:
            return BODY_TOO_LARGE(f"the series that are read have more than {MAX_LABEL_BYTES} bytes of labels")
        return None

    def finish_body(self, *, may_be_cut: bool = False) -> ScrapedBody | Reason:
        """Returns what was read, after the last part, or a reason if nothing of this body can be used.

        may_be_cut: nothing but the end of the last line shows that the body is whole. The format demands this end, but
        not every server writes it."""
        if (problem := self._read_block()) is not None:
            return problem
        if may_be_cut and self._rest:
            return BODY_MALFORMED("the connection ended within a line")
        self._read_lines(self._rest)
        return ScrapedBody(tuple(self._outcome_of(number) for number in range(len(self._filters))), self._started)

    def _outcome_of(self, number: int) -> SeriesValues | Reason:
        one = self._filters[number]
        if (problem := self._problems.get(number)) is not None:
            return problem
        if not self._found[number]:
            return SERIES_MISSING(
                f"the body of {self._size} bytes contains no series {one.name}{dict(one.labels) or ''}"
            )
        return self._found[number]

    def _read_lines(self, block: bytes) -> None:
        for name, numbers in self._by_name.items():
            for line in _lines_of_series(block, name):
                self._lines += 1
                if self._lines > MAX_LINES or self._label_bytes > MAX_LABEL_BYTES:
                    return
                self._read_sample(name, line, numbers)
        for line in _lines_of_series(block, START_TIME):
            self._lines += 1
            sample = _SAMPLE.fullmatch(line)
            self._started = float(sample[2]) if sample is not None and _is_number(sample[2]) else None

    def _read_sample(self, name: bytes, line: bytes, numbers: list[int]) -> None:
        sample = _SAMPLE.fullmatch(line)
        value = float(sample[2]) if sample is not None and _is_number(sample[2]) else None
        if sample is None or value is None or abs(value) >= MAX_VALUE:
            text = (name + line)[:120].decode(errors="replace").rstrip()
            problem = BODY_MALFORMED(f"this line of the series is not a sample with a finite value: {text!r}")
            self._problems |= dict.fromkeys(numbers, problem)
            return
        labels = sample[1] or b""
        pairs: dict[str, str] | None = None
        key: int | None = None
        for number in numbers:
            wanted = self._filters[number].labels
            if wanted:
                if pairs is None:
                    # Once for all filters: a line costs what its bytes cost, however many rules read it.
                    self._label_bytes += len(labels)
                    pairs = parse_label_pairs(labels)
                if not wanted.items() <= pairs.items():
                    continue
            key = hash(frozenset(labels.split(b","))) if key is None else key
            samples = self._found[number]
            # Of a series that is there twice, the first counts, as for Prometheus: some proxies merge pages.
            samples.setdefault(key, value)
            if len(samples) > MAX_SERIES:
                self._problems[number] = BODY_TOO_LARGE(f"{name.decode()} has more than {MAX_SERIES} series")
                samples.clear()


_LABELS = rb'\{((?:[^"{}]|"(?:[^"\\]|\\.)*+")*+)\}'
_TIME = rb"[ \t]++-?[0-9]++(?:\.[0-9]*+)?+(?:[eE][+-]?[0-9]++)?+"
_EXEMPLAR = rb"[ \t]++#[ \t]*+" + _LABELS.replace(rb"((?:", rb"(?:(?:", 1) + rb"[^\r\n]*+"
_SAMPLE = re.compile(
    rb"[ \t]*+(?:" + _LABELS + rb")?[ \t]*+([^ \t\r\n]++)(?:" + _TIME + rb")?(?:" + _EXEMPLAR + rb")?[ \t]*+\r?\n?"
)
"""Matches what follows the name of a series: labels, the value, and perhaps a timestamp and an exemplar. Its
parts are possessive, so matching takes linear time. The optional groups are not: Python 3.11.2 does not match a
possessive group that follows another one. What matches with a group left out has no number as its value."""
_NUMBER = re.compile(rb"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]{1,4})?")
_PAIR = re.compile(rb'[ \t]*+([a-zA-Z_][a-zA-Z0-9_]*+)[ \t]*+=[ \t]*+"((?:[^"\\]|\\.)*+)"[ \t]*+,?')
_ESCAPED = re.compile(r"\\(.)")


def _is_number(text: bytes) -> bool:
    """Returns whether the text is a finite number. The format also allows NaN and infinities, but these cannot be
    served."""
    return len(text) <= 64 and _NUMBER.fullmatch(text) is not None


def _lines_of_series(block: bytes, name: bytes) -> Iterator[bytes]:
    """Yields, for each line that begins with exactly this name, the rest of the line without its end."""
    at = block.find(name)
    while at >= 0:
        start, after = block.rfind(b"\n", 0, at) + 1, at + len(name)
        end = block.find(b"\n", after)
        end = len(block) if end < 0 else end
        # A longer name, a comment or a label's value may contain this one.
        if block[after : after + 1] in _AFTER_NAME and not block[start:at].strip(b" \t"):
            yield block[after:end]
        at = block.find(name, end)


_AFTER_NAME = (b" ", b"\t", b"{", b"\r", b"\n", b"")
"""The characters that may follow a name; after any other character it is a longer name. After the last three the value
is missing, which is a mistake."""


def parse_label_pairs(text: bytes) -> dict[str, str]:
    """Returns the labels between the braces. Reading stops at the first part that is not a label."""
    pairs: dict[str, str] = {}
    at = 0
    while (pair := _PAIR.match(text, at)) is not None:
        value = _ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], pair[2].decode(errors="replace"))
        pairs[pair[1].decode()] = value
        at = pair.end()
    return pairs
