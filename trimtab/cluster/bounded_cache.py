"""Caches functions of strings that others write: only short strings are kept."""

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def cache_short_strings(max_length: int, max_entries: int) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """Returns a decorator that caches a function's results for strings up to `max_length` characters.

    Pods repeat a small number of names, so a cache pays. Their authors choose the names, so a thousand names of a
    megabyte each must not stay in memory: the function computes those each time. A full cache is emptied.
    """

    def decorate(compute: Callable[[str], T]) -> Callable[[str], T]:
        # The dict's own method: a cached result is returned without any bytecode.
        return _Results(compute, max_length, max_entries).__getitem__

    return decorate


class _Results(dict[str, T]):
    """Results by string. Threads may share it: at worst two of them compute a result twice."""

    def __init__(self, compute: Callable[[str], T], max_length: int, max_entries: int) -> None:
        super().__init__()
        self._compute, self._max_length, self._max_entries = compute, max_length, max_entries

    def __missing__(self, text: str) -> T:
        result = self._compute(text)
        if len(text) <= self._max_length:
            if len(self) >= self._max_entries:
                self.clear()
            self[text] = result
        return result
