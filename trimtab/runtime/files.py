"""What is in these paths? Files, folders, standard input and the policies we ship, as (name, bytes).

What a process of ours cannot start with, as one tree.

RuntimeFault                 all of them; the text is for the person who starts the process
├── SettingsError            the environment asks for something we don't understand; `mistakes` has all of it
└── CannotServe              the server cannot be brought up as asked
    └── NoPair               it was asked well; the cluster gave no certificate in time
"""

import sys
from collections.abc import Iterable, Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from trimtab.cluster.config_error import ConfigError


class RuntimeFault(Exception):
    """A process cannot go on as it was asked to."""


class SettingsError(RuntimeFault):
    """All mistakes of one environment, together."""

    def __init__(self, mistakes: tuple[ConfigError, ...]) -> None:
        super().__init__("\n".join(str(mistake) for mistake in mistakes))
        self.mistakes = mistakes


class CannotServe(RuntimeFault):
    """The server cannot be brought up as asked; the text says why."""


class MissingKeyPair(CannotServe):
    """No certificate could be had from the cluster in time; the text says why."""


Content = tuple[str, bytes]

ENDINGS = (".yaml", ".yml", ".json", ".yaml.gz", ".yml.gz", ".json.gz")


class UnreadableFiles(RuntimeFault):
    """Paths that cannot be read: all of them, together."""

    def __init__(self, mistakes: tuple[ConfigError, ...]) -> None:
        super().__init__("\n".join(map(str, mistakes)))
        self.mistakes = mistakes


def read(paths: Iterable[str | Path], endings: tuple[str, ...] = ENDINGS) -> list[Content]:
    """Every file of every path, folders in alphabetical order: of those, files that end so. Raises UnreadableFiles."""
    found: list[Content] = []
    mistakes: list[ConfigError] = []
    for path in map(str, paths):
        try:
            found += list(_read(path, endings))
        except OSError as error:
            got = (error.strerror or type(error).__name__).lower()
            mistakes.append(ConfigError(file=path, expected="a file or folder that can be read", got=got))
    if mistakes:
        raise UnreadableFiles(tuple(mistakes))
    return found


def _read(path: str, endings: tuple[str, ...]) -> Iterator[Content]:
    if path == "-":
        yield "-", sys.stdin.buffer.read()
        return
    place = Path(path)
    if not place.is_dir():
        yield path, place.read_bytes()
        return
    # A mounted ConfigMap holds its files twice: behind `..data` and as links to there.
    names = sorted(file for file in place.rglob("*") if _counts(file.relative_to(place), endings) and file.is_file())
    if not names:
        raise FileNotFoundError(2, f"no {', '.join(endings[:3])} file in the folder")
    for file in names:
        yield str(file), file.read_bytes()


def _counts(file: Path, endings: tuple[str, ...]) -> bool:
    return file.name.endswith(endings) and not any(part.startswith(".") for part in file.parts)


def shipped(folder: str = "recommended") -> list[Content]:
    """The policies we ship: `recommended`, or `library` for those to choose from."""
    return sorted(_within(resources.files("policies") / folder, f"policies/{folder}"))


def _within(place: Traversable, name: str) -> Iterator[Content]:
    for entry in place.iterdir():
        if entry.is_dir():
            yield from _within(entry, f"{name}/{entry.name}")
        elif entry.name.endswith(ENDINGS):
            yield f"{name}/{entry.name}", entry.read_bytes()
