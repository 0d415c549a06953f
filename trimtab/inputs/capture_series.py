"""Writes and reads the files of a series of captures. A series is read round by round, so memory holds one round."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trimtab.cluster.bounded_decode import BytesRefused, unpack_parts
from trimtab.cluster.capture_series import (
    SERIES_ENDING,
    BrokenRound,
    ClusterChange,
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


@dataclass(frozen=True, slots=True)
class SeriesGap:
    """A time about which the series says nothing: what happened in it is not known."""

    begin: Seconds
    end: Seconds
    because: str


@dataclass(slots=True)
class SeriesReader:
    """Reads the files of a series in the order of their first rounds. What it could not use is in `notes`."""

    files: tuple[Path, ...]
    notes: list[str] = field(default_factory=list)
    cluster: str = ""
    every_seconds: int = 0

    def iterate_changes(self) -> Iterator[ClusterChange | SeriesGap]:
        """Yields what changed from round to round, with a gap wherever rounds are missing. Raises UsageError if the
        files are of two clusters, or have no round."""
        state, last, earlier = SeriesState(), None, list[Seconds]()
        for file in self.files:
            for one in self._read_file(file):
                self._check_cluster(one, file)
                self.every_seconds = one.every_seconds or self.every_seconds
                if last is not None and one.at <= last:
                    earlier.append(one.at)
                    # What changed meanwhile is part of the next round that counts.
                    state.apply_round(one)
                    yield SeriesGap(last, last, "the clock went back")
                    continue
                if last is not None and one.at - last > 3 * max(1, self.every_seconds):
                    gap = SeriesGap(last, one.at, "no round was written, or the clock jumped")
                    self.notes.append(
                        f"nothing is known from {format_timestamp(last)} to {format_timestamp(one.at)}: {gap.because}"
                    )
                    yield gap
                self._note_earlier_rounds(file, earlier)
                last = one.at
                yield state.apply_round(one)
            self._note_earlier_rounds(file, earlier)
        if last is None:
            raise UsageError(
                [
                    ConfigError(
                        file=str(self.files[0].parent), expected="a round of `trimtab capture --every`", got="none"
                    )
                ]
            )

    def _note_earlier_rounds(self, file: Path, times: list[Seconds]) -> None:
        """Adds one note for rounds that are not later than those before them, and forgets them."""
        if times:
            rounds = format_count(len(times), "round is", "rounds are")
            self.notes.append(
                f"{file.name}: {rounds} left out, from {format_timestamp(times[0])} to {format_timestamp(times[-1])}: "
                "the clock went back, or another file has this time already"
            )
            times.clear()

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
        except BytesRefused:
            broken = BrokenRound(0)
        except OSError as error:
            got = (error.strerror or type(error).__name__).lower()
            raise UsageError([ConfigError(file=str(file), expected="a file that can be read", got=got)]) from None
        if broken is not None:
            self.notes.append(f"{file.name} is broken off after {format_count(count, 'round')}")

    def _check_cluster(self, one: SeriesRound, file: Path) -> None:
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


def find_series_files(paths: Sequence[str]) -> tuple[Path, ...]:
    """Returns the files of the series in these folders and files, the earliest first. Raises UsageError if there are
    none."""
    files: list[Path] = []
    for path in map(Path, paths):
        files += sorted(path.glob(f"*{SERIES_ENDING}")) if path.is_dir() else [path]
    missing = [file for file in files if not file.is_file()]
    if missing or not files:
        where = str(missing[0]) if missing else ", ".join(paths)
        raise UsageError(
            [
                ConfigError(
                    file=where or "command line",
                    expected=f"a folder with files that end in {SERIES_ENDING}",
                    got="none",
                    todo="`trimtab capture --every 5m --for 7d -O FOLDER` writes such a folder",
                )
            ]
        )
    # The name of a file begins with the time of its first round.
    return tuple(sorted(files, key=lambda file: file.name))
