"""Writes and reads the files of a series of captures. A series is read round by round, so memory holds one round."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trimtab.cluster.bounded_decode import BytesRefused, unpack_parts
from trimtab.cluster.capture_series import (
    CLUSTER_NAMESPACE,
    SERIES_ENDING,
    BrokenRound,
    ClusterChange,
    RoundGap,
    RoundWriter,
    SeriesRound,
    SeriesState,
    split_lines,
    split_rounds,
)
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.format_count import format_count
from trimtab.cluster.timestamps import Seconds, format_timestamp, parse_timestamp
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.private_file import append_private_bytes, create_private_file

DAY_SECONDS = 86_400
_FILE_NAME = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d)(\d\d)(\d\d)Z")
"""How the name of a file begins: the time of its first round."""
_PART_BYTES = 1 << 20
"""How much of a file is read and unpacked at once."""


@dataclass(slots=True)
class SeriesFolder:
    """A folder to which rounds are appended, in a file for each day (UTC) and for each start of the process.

    Each round is one member of a gzip file and is on the disk before the next begins, so that a crash costs at most the
    round that is being written. A file that was there before is never continued.
    """

    path: Path
    every_seconds: int
    file: Path | None = None
    _day: int = -1
    _writer: RoundWriter = field(init=False)

    def __post_init__(self) -> None:
        self._writer = RoundWriter(self.every_seconds)

    def append_round(self, at: Seconds, content: bytes) -> int:
        """Writes the next round, and returns how many objects changed. `content`: what `trimtab capture` writes.
        Raises UsageError if the folder cannot be written."""
        try:
            if at // DAY_SECONDS != self._day:
                self._begin_file(at)
            text, changed = self._writer.encode_round(at, content)
            assert self.file is not None
            append_private_bytes(self.file, gzip.compress(text, mtime=0))
        except OSError as error:
            got = (error.strerror or type(error).__name__).lower()
            raise UsageError([ConfigError(file=str(self.path), expected="a folder to write to", got=got)]) from None
        return changed

    def delete_files(self, before: Seconds) -> list[str]:
        """Deletes the files of the folder that were begun before this time, and returns their names. Files that are not
        of a series stay, and so does the file that is being written. Raises UsageError if a file cannot be deleted."""
        deleted = []
        for file in sorted(self.path.glob(f"*{SERIES_ENDING}")):
            match = _FILE_NAME.match(file.name)
            begun = parse_timestamp("{}T{}:{}:{}Z".format(*match.groups())) if match else None
            if begun is None or begun >= before or file == self.file:
                continue
            try:
                file.unlink()
            except OSError as error:
                got = (error.strerror or type(error).__name__).lower()
                raise UsageError([ConfigError(file=str(file), expected="a file to delete", got=got)]) from None
            deleted.append(file.name)
        return deleted

    def _begin_file(self, at: Seconds) -> None:
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = format_timestamp(at).replace(":", "")
        number = 0
        while True:
            candidate = self.path / f"{name}{f'-{number}' if number else ''}{SERIES_ENDING}"
            if create_private_file(candidate):
                break
            number += 1
        self.file, self._day, self._writer = candidate, at // DAY_SECONDS, RoundWriter(self.every_seconds)


SHOWN_GAPS = 3
"""So many gaps are named one by one; more of them, together."""


def describe_gaps(gaps: Sequence[tuple[Seconds, Seconds]], because: str) -> list[str]:
    """Returns the gaps, (begin, end), as sentences: each of a few, or the number and the longest of many."""
    if len(gaps) > SHOWN_GAPS:
        hours = sum(end - begin for begin, end in gaps) / 3600
        begin, end = max(gaps, key=lambda one: one[1] - one[0])
        times = f"{len(gaps)} times, {hours:,.1f} h together, the longest"
        return [f"nothing is known of {times} from {format_timestamp(begin)} to {format_timestamp(end)}: {because}"]
    return [
        f"nothing is known from {format_timestamp(begin)} to {format_timestamp(end)}: {because}" for begin, end in gaps
    ]


@dataclass(slots=True)
class SeriesReader:
    """Reads the files of a series in the order of their first rounds. What it could not use is in `notes`."""

    files: tuple[Path, ...]
    notes: list[str] = field(default_factory=list)
    """What could not be used, as sentences; complete once all changes were read."""
    cluster: str = ""
    every_seconds: int = 0
    _gaps: list[tuple[Seconds, Seconds]] = field(default_factory=list)
    _unnamed: int = 0
    """How many rounds do not say of which cluster they are."""

    def iterate_changes(self) -> Iterator[ClusterChange | RoundGap]:
        """Yields what changed from round to round, with a gap wherever rounds are missing. Raises UsageError if the
        files are of two clusters, or have no round."""
        state, last = SeriesState(), None
        for file in self.files:
            left_out: list[Seconds] = []
            for one in self._read_file(file):
                self._check_cluster(one, file)
                # Where another process goes on, what it says about the time between two rounds may differ.
                longest_seconds = 3 * max(1, self.every_seconds, one.every_seconds)
                self.every_seconds = one.every_seconds or self.every_seconds
                if last is not None and one.at <= last:
                    left_out.append(one.at)
                    state.skip_round(one)
                    yield RoundGap(last, last)
                    continue
                if last is not None and one.at - last > longest_seconds:
                    self._gaps.append((last, one.at))
                    yield RoundGap(last, one.at)
                last = one.at
                yield state.apply_round(one)
            if left_out:
                self.notes.append(_describe_left_out(file, left_out))
        self.notes += describe_gaps(self._gaps, _GAP)
        if self._unnamed:
            self.notes.append(
                f"{format_count(self._unnamed, 'round')} without the namespace {CLUSTER_NAMESPACE}, by whose uid "
                "clusters differ: whether they are of one cluster was not checked"
            )
        if last is None:
            raise UsageError(
                [
                    ConfigError(
                        file=", ".join(map(str, self.files[:3])),
                        expected="a file of rounds of a series of captures",
                        got="; ".join(self.notes[:3]) or "none",
                        todo=_TODO,
                    )
                ]
            )

    def _read_file(self, file: Path) -> Iterator[SeriesRound]:
        broken: BrokenRound | None = None
        count = 0
        try:
            with file.open("rb") as packed:
                parts = iter(lambda: packed.read(_PART_BYTES), b"")
                for one in split_rounds(split_lines(unpack_parts(parts, _PART_BYTES))):
                    if isinstance(one, BrokenRound):
                        broken = one
                        break
                    count += 1
                    yield one
        except BytesRefused as error:
            broken = BrokenRound(0, str(error))
        except OSError as error:
            got = (error.strerror or type(error).__name__).lower()
            raise UsageError([ConfigError(file=str(file), expected="a file that can be read", got=got)]) from None
        if broken is not None:
            place = f"{file.name}:{broken.line}" if broken.line else file.name
            self.notes.append(f"{place} is broken off ({broken.because}) after {format_count(count, 'round')}")

    def _check_cluster(self, one: SeriesRound, file: Path) -> None:
        self._unnamed += not one.cluster
        if one.cluster and self.cluster and one.cluster != self.cluster:
            raise UsageError(
                [
                    ConfigError(
                        file=str(file),
                        expected=f"captures of one cluster (kube-system has the uid {self.cluster})",
                        got=f"a capture of another cluster, with the uid {one.cluster}",
                        todo="give the captures of each cluster a folder of their own",
                    )
                ]
            )
        self.cluster = self.cluster or one.cluster


_GAP = "no round was written, or the clock jumped"
_TODO = "`trimtab capture --every 5m --for 7d -O FOLDER` writes such a folder"


def _describe_left_out(file: Path, times: Sequence[Seconds]) -> str:
    span = f"from {format_timestamp(min(times))} to {format_timestamp(max(times))}"
    because = "the clock went back, or another capture ran at the same time"
    return f"{file.name}: {format_count(len(times), 'round')} {span} left out: {because}"


def find_series_files(paths: Sequence[str]) -> tuple[Path, ...]:
    """Returns the files of the series in these folders and files, each once, the earliest first. Raises UsageError if
    there are none, or if a folder cannot be read."""
    files: dict[Path, Path] = {}
    missing: list[Path] = []
    for path in map(Path, paths):
        try:
            present = sorted(path.iterdir()) if path.is_dir() else [path]
            one_by_one = [file for file in present if file == path or file.name.endswith(SERIES_ENDING)]
            files |= {file.resolve(): file for file in one_by_one if file.is_file()}
            missing += [file for file in one_by_one if not file.is_file()]
        except OSError as error:
            got = (error.strerror or type(error).__name__).lower()
            raise UsageError([ConfigError(file=str(path), expected="a folder that can be read", got=got)]) from None
    if missing or not files:
        where = str(missing[0]) if missing else ", ".join(paths)
        raise UsageError(
            [
                ConfigError(
                    file=where or "command line",
                    expected=f"a folder with files that end in {SERIES_ENDING}",
                    got="none",
                    todo=_TODO,
                )
            ]
        )
    return tuple(sorted(files.values(), key=_order_of))


def _order_of(file: Path) -> tuple[str, int, str]:
    """Returns the time of the first round of the file, as its name has it, and the number of the file in that second;
    of a file with another name, the name."""
    match = _FILE_NAME.match(file.name)
    number = re.match(r"-(\d+)\.", file.name[match.end() :]) if match else None
    return match[0] if match else file.name, int(number[1]) if number else 0, file.name
