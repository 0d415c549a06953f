"""A sign of life for long work: on standard error, only on a terminal, only when there is much to do."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from rich.console import Console
from rich.progress import track

T = TypeVar("T")

MUCH = 200
"""Items that take long enough for somebody to wonder."""


def progress(items: Sequence[T], doing: str) -> Iterable[T]:
    """The items, with a bar that goes away when they are done."""
    console = Console(stderr=True)
    if len(items) < MUCH or not console.is_terminal:
        return items
    return track(items, doing, console=console, transient=True)
