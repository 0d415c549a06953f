"""Paths of the command line, read; what cannot be read is a mistake of whoever asked."""

from collections.abc import Iterable
from pathlib import Path

from trimtab.command.main import Wrong
from trimtab.runtime.files import ENDINGS, Content, UnreadableFiles, shipped
from trimtab.runtime.files import read as read_files

__all__ = ["Content", "read", "shipped"]


def read(paths: Iterable[str | Path], endings: tuple[str, ...] = ENDINGS) -> list[Content]:
    """Every file of every path. Raises Wrong naming all that cannot be read."""
    try:
        return read_files(paths, endings)
    except UnreadableFiles as error:
        raise Wrong(error.mistakes) from None
