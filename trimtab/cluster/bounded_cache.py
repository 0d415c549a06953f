"""Caches the results of functions whose argument is a string from a user: only results for short strings are kept, so
that long strings cannot fill the memory."""

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def cache_short_strings(max_length: int, max_entries: int) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """Returns a decorator that caches a function's results for strings of at most `max_length` characters.

    A cache helps because the same few names appear in many pods. Longer strings are not cached, because users choose
    the names: a thousand names of a megabyte each must not stay in memory. When the cache has `max_entries` entries, it
    is emptied.
    """

    def decorate(compute: Callable[[str], T]) -> Callable[[str], T]:
        # The dict's own method: a cached result is returned without any bytecode.
        return _Results(compute, max_length, max_entries).__getitem__

    return decorate


class _Results(dict[str, T]):
    """The cached results by string. Threads may share the cache: at worst, two of them compute the same result."""

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
