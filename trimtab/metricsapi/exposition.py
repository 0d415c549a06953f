"""Reads some series of a scraped body in Prometheus' text format, while it arrives.

A body may have 20 MB, of which a rule needs a few lines: names are searched for in whole blocks, and only lines that
begin with one of them are parsed. A line of a wanted series that is not valid spoils all values of that series, because
a sum with a part missing is a wrong number.

Format: https://prometheus.io/docs/instrumenting/exposition_formats/ (version 0.0.4).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from trimtab.cluster.reason import Reason
from trimtab.metricsapi.reasons import BODY_MALFORMED, BODY_TOO_LARGE, SERIES_MISSING

MAX_BODY_BYTES = 20 * 1024 * 1024
"""The largest unpacked body. An API server with many resources exposes about as much."""
MAX_LINE_BYTES = 1024 * 1024
MAX_SERIES = 10_000
"""The most series of one name in one body. Each costs about a hundred bytes until the next scrape."""
MAX_LINES = 100_000
"""The most lines of wanted series in one body, whatever their labels: each is parsed, and the author of a pod writes
them."""
MAX_VALUE = float(2**63)
"""A Quantity of Kubernetes holds no larger number."""

START_TIME = b"process_start_time_seconds"
"""The series by which client libraries expose when a process started: another value means that counters began at 0."""


@dataclass(frozen=True, slots=True)
class SeriesFilter:
    """A series by its name, and labels that it must have."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


SeriesValues = Mapping[int, float]
"""Labels of a series as a number → its value. The order of labels does not matter; the number is of this process."""


@dataclass(frozen=True, slots=True)
class ScrapedBody:
    """What was read of one body."""

    values: tuple[SeriesValues | Reason, ...]
    """For each filter the matching series, or the reason why there is none."""
    started: float | None
    """`process_start_time_seconds`, or None where the body has none."""


class BodyReader:
    """Reads one body part by part: `read_part` for each, then `finish_body`."""

    def __init__(self, filters: tuple[SeriesFilter, ...]) -> None:
        self._filters = filters
        self._by_name: dict[bytes, list[int]] = {}
        for number, one in enumerate(filters):
            self._by_name.setdefault(one.name.encode(), []).append(number)
        self._found: list[dict[int, float]] = [{} for _ in filters]
        self._problems: dict[int, Reason] = {}
        self._started: float | None = None
        self._rest = b""
        self._size = self._lines = 0

    def read_part(self, part: bytes) -> Reason | None:
        """Reads the next part; returns a reason where nothing of this body can be used."""
        self._size += len(part)
        if self._size > MAX_BODY_BYTES:
            return BODY_TOO_LARGE(f"the body has more than {MAX_BODY_BYTES} bytes")
        if b"\0" in part:
            return BODY_MALFORMED("the body contains a zero byte, so it is not text")
        end = part.rfind(b"\n") + 1
        if not end:
            self._rest += part
        else:
            self._read_lines(self._rest + part[:end])
            self._rest = part[end:]
        if len(self._rest) > MAX_LINE_BYTES:
            return BODY_TOO_LARGE(f"a line has more than {MAX_LINE_BYTES} bytes")
        if self._lines > MAX_LINES:
            return BODY_TOO_LARGE(f"the body has more than {MAX_LINES} lines of the series that are read")
        return None

    def finish_body(self) -> ScrapedBody:
        """Returns what was found, after the last part."""
        self._read_lines(self._rest)
        self._rest = b""
        return ScrapedBody(tuple(self._outcome_of(number) for number in range(len(self._filters))), self._started)

    def _outcome_of(self, number: int) -> SeriesValues | Reason:
        one = self._filters[number]
        if (problem := self._problems.get(number)) is not None:
            return problem
        if not self._found[number]:
            return SERIES_MISSING(f"the body of {self._size} bytes has no series {one.name}{dict(one.labels) or ''}")
        return self._found[number]

    def _read_lines(self, block: bytes) -> None:
        for name, numbers in self._by_name.items():
            for line in _lines_of_series(block, name):
                self._lines += 1
                if self._lines > MAX_LINES:
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
            problem = BODY_MALFORMED(f"this line is not a sample with a finite value: {text!r}")
            self._problems |= dict.fromkeys(numbers, problem)
            return
        key: int | None = None
        for number in numbers:
            wanted = self._filters[number].labels
            if wanted and not wanted.items() <= parse_label_pairs(sample[1] or b"").items():
                continue
            key = hash(frozenset((sample[1] or b"").split(b","))) if key is None else key
            found = self._found[number]
            found[key] = found.get(key, 0.0) + value
            if len(found) > MAX_SERIES:
                self._problems[number] = BODY_TOO_LARGE(f"{name.decode()} has more than {MAX_SERIES} series")
                found.clear()


_SAMPLE = re.compile(
    rb'[ \t]*+(?:\{((?:[^"{}]|"(?:[^"\\]|\\.)*+")*+)\})?+[ \t]*+([^ \t\r\n]++)(?:[ \t]++-?[0-9]++)?+[ \t]*+\r?\n?'
)
"""What follows a series' name: its labels, the value, and perhaps a timestamp. Possessive: linear in the line."""
_NUMBER = re.compile(rb"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]{1,4})?")
_PAIR = re.compile(rb'[ \t]*+([a-zA-Z_][a-zA-Z0-9_]*+)[ \t]*+=[ \t]*+"((?:[^"\\]|\\.)*+)"[ \t]*+,?')
_ESCAPED = re.compile(r"\\(.)")


def _is_number(text: bytes) -> bool:
    """Returns whether it is a finite number. NaN and infinities are valid in the format, and nothing that could be
    served."""
    return len(text) <= 64 and _NUMBER.fullmatch(text) is not None


def _lines_of_series(block: bytes, name: bytes) -> Iterator[bytes]:
    """Yields the rest of each line that begins with exactly this name, after the name; without the line's end."""
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
"""What may follow a name: anything else makes it another name. The last three lack a value, which is a mistake."""


def parse_label_pairs(text: bytes) -> dict[str, str]:
    """Returns the labels between the braces; a part that is no pair ends them."""
    pairs: dict[str, str] = {}
    at = 0
    while (pair := _PAIR.match(text, at)) is not None:
        value = _ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], pair[2].decode(errors="replace"))
        pairs[pair[1].decode()] = value
        at = pair.end()
    return pairs
