"""Reads input files, and defines the errors with which a process cannot start.

Files, folders, standard input and the policies that are part of Trimtab are read as (name, bytes).

RuntimeFault                 the base class; the text is for the person who starts the process
├── InvalidInput             what the process reads at its start is invalid; `mistakes` has all of them
│   ├── SettingsError        the environment contains invalid settings
│   ├── UnreadableFiles      paths that cannot be read
│   └── InvalidPolicyFiles   the policies or the snapshot in files have mistakes
└── CannotServe              the server cannot start as configured
    └── MissingKeyPair       the configuration is valid, but the cluster provided no certificate in time
"""

import sys
from collections.abc import Iterable, Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from trimtab.cluster.config_error import ConfigError


class RuntimeFault(Exception):
    """A process cannot continue as configured."""


class InvalidInput(RuntimeFault):
    """What the process reads at its start is invalid; `mistakes` has all mistakes."""

    def __init__(self, mistakes: tuple[ConfigError, ...]) -> None:
        super().__init__("\n".join(map(str, mistakes)))
        self.mistakes = mistakes


class SettingsError(InvalidInput):
    """The environment contains invalid settings."""


class UnreadableFiles(InvalidInput):
    """Some paths cannot be read."""


class InvalidPolicyFiles(InvalidInput):
    """The policies or the snapshot in files have mistakes."""


class CannotServe(RuntimeFault):
    """The server cannot start as configured; the text says why."""


class MissingKeyPair(CannotServe):
    """The cluster provided no certificate in time; the text says why."""


Content = tuple[str, bytes]

ENDINGS = (".yaml", ".yml", ".json", ".yaml.gz", ".yml.gz", ".json.gz")


def read_files(paths: Iterable[str | Path], endings: tuple[str, ...] = ENDINGS) -> list[Content]:
    """Returns the content of every file of every path. Of folders, the files with these endings are read, in
    alphabetical order. Raises UnreadableFiles."""
    contents: list[Content] = []
    mistakes: list[ConfigError] = []
    for path in map(str, paths):
        try:
            contents += list(_read_path(path, endings))
        except OSError as error:
            got = (error.strerror or type(error).__name__).lower()
            mistakes.append(ConfigError(file=path, expected="a file or folder that can be read", got=got))
    if mistakes:
        raise UnreadableFiles(tuple(mistakes))
    return contents


def _read_path(path: str, endings: tuple[str, ...]) -> Iterator[Content]:
    # The same convention as `kubectl -f -`.
    if path == "-":
        yield "-", sys.stdin.buffer.read()
        return
    entry = Path(path)
    if not entry.is_dir():
        yield path, entry.read_bytes()
        return
    # A mounted ConfigMap has its files twice: behind `..data`, and as links to there.
    names = sorted(
        file for file in entry.rglob("*") if _is_input_file(file.relative_to(entry), endings) and file.is_file()
    )
    if not names:
        raise FileNotFoundError(2, f"a folder without {', '.join(endings[:3])} files")
    for file in names:
        yield str(file), file.read_bytes()


def _is_input_file(file: Path, endings: tuple[str, ...]) -> bool:
    return file.name.endswith(endings) and not any(part.startswith(".") for part in file.parts)


def shipped_policies(folder: str = "recommended") -> list[Content]:
    """Returns the policies that are part of Trimtab: `recommended`, or `library` for those from which users choose."""
    return sorted(_shipped_files(resources.files("policies") / folder, f"policies/{folder}"))


def _shipped_files(folder: Traversable, name: str) -> Iterator[Content]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _shipped_files(entry, f"{name}/{entry.name}")
        elif entry.name.endswith(ENDINGS):
            yield f"{name}/{entry.name}", entry.read_bytes()
