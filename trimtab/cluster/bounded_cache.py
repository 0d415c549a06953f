"""Caches functions of strings that others write: only short strings are kept."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

T = TypeVar("T")


def cache_short_strings(max_length: int, max_entries: int) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """Returns a decorator that caches a function's results for strings up to `max_length` characters.

    Pods repeat a small number of names, so a cache pays. Their authors choose the names, so a thousand names of a
    megabyte each must not stay in memory: the function computes those each time.
    """

    def decorate(compute: Callable[[str], T]) -> Callable[[str], T]:
        cached = lru_cache(maxsize=max_entries)(compute)

        @wraps(compute)
        def call(text: str) -> T:
            return cached(text) if len(text) <= max_length else compute(text)

        return call

    return decorate
