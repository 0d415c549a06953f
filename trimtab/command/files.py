"""What is in these paths? Files, folders, standard input and the shipped policies, as (name, bytes)."""

import sys
from collections.abc import Iterable, Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from trimtab.cluster.mistake import Mistake
from trimtab.command.main import Wrong

Content = tuple[str, bytes]

_ENDINGS = (".yaml", ".yml", ".json", ".yaml.gz", ".yml.gz", ".json.gz")


def read(paths: Iterable[str]) -> list[Content]:
    """Every file of every path, folders in alphabetical order. Raises Wrong naming all that cannot be read."""
    found: list[Content] = []
    mistakes: list[Mistake] = []
    for path in paths:
        try:
            found += list(_read(path))
        except OSError as error:
            came = error.strerror or type(error).__name__
            mistakes.append(Mistake(file=path, expected="a file or folder that can be read", came=came.lower()))
    if mistakes:
        raise Wrong(mistakes)
    return found


def _read(path: str) -> Iterator[Content]:
    if path == "-":
        yield "-", sys.stdin.buffer.read()
        return
    place = Path(path)
    if not place.is_dir():
        yield path, place.read_bytes()
        return
    names = sorted(file for file in place.rglob("*") if file.name.endswith(_ENDINGS) and file.is_file())
    if not names:
        raise FileNotFoundError(2, f"no {', '.join(_ENDINGS[:3])} file in the folder")
    for file in names:
        yield str(file), file.read_bytes()


def shipped(folder: str = "recommended") -> list[Content]:
    """The policies we ship: `recommended`, or `library` for those to choose from."""
    return sorted(_within(resources.files("policies") / folder, f"policies/{folder}"))


def _within(place: Traversable, name: str) -> Iterator[Content]:
    for entry in place.iterdir():
        if entry.is_dir():
            yield from _within(entry, f"{name}/{entry.name}")
        elif entry.name.endswith(_ENDINGS):
            yield f"{name}/{entry.name}", entry.read_bytes()
