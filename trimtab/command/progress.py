"""A sign of life for long work: on standard error, only on a terminal, only when there is much to do."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.progress import Progress, track

T = TypeVar("T")

MUCH = 200
"""Items that take long enough for somebody to wonder."""


def progress(items: Sequence[T], doing: str) -> Iterable[T]:
    """The items, with a bar that goes away when they are done."""
    console = Console(stderr=True)
    if len(items) < MUCH or not console.is_terminal:
        return items
    return track(items, doing, console=console, transient=True)


@contextmanager
def working(doing: str) -> Iterator[None]:
    """Something turns while a work of unknown length is done."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(f"{doing} …"):
        yield


@contextmanager
def counted(total: int, doing: str) -> Iterator[Callable[[int], None]]:
    """A bar for parts that take long one by one: whoever works says how many are done."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done: None
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task(doing, total=total)
        yield lambda done: bar.update(task, completed=done)
