"""What is being read, for who waits: silent, until a command chooses where it is shown."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Protocol


class Progress(Protocol):
    """Shows work that takes long."""

    def show_object(self, name: str) -> None:
        """Shows the name of what is read now, until the next call replaces it."""

    def show_work(self, doing: str) -> AbstractContextManager[None]:
        """Shows that work of unknown length goes on, until the context ends."""

    def show_parts(self, total: int, doing: str) -> AbstractContextManager[Callable[[int], None]]:
        """Shows how many of `total` parts are done; the function that the context yields takes that number."""


class _NoProgress:
    def show_object(self, name: str) -> None:
        pass

    def show_work(self, doing: str) -> AbstractContextManager[None]:
        return nullcontext()

    def show_parts(self, total: int, doing: str) -> AbstractContextManager[Callable[[int], None]]:
        return nullcontext(_ignore_parts)


def _ignore_parts(done: int) -> None:
    pass


_SILENT = _NoProgress()
_progress: ContextVar[Progress] = ContextVar("progress")


def progress() -> Progress:
    """Returns where progress is shown."""
    return _progress.get(_SILENT)


def show_progress_by(shown: Progress) -> None:
    """Sets where the progress of all further reading of this command is shown."""
    _progress.set(shown)
