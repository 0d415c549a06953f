"""What follows from an object of the cluster, worked out once for the object and not for each pod.

Whoever may create an autoscaler may create a large one, or thousands for one workload.

An attribute that is computed when it is first read, and kept.

`functools.cached_property` does so, too; up to Python 3.11 it takes a lock each time it computes, which costs more than
most of what is computed about one pod.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

MAX_CACHED_OBJECTS = 256
"""Objects whose outcome is kept at once."""


class Derived(Generic[K, V]):
    """`of(found)` is `make(found)`, made again only for another object. Objects never change; equal ones are two."""

    def __init__(self, make: Callable[[K], V]) -> None:
        self._make = make
        self._kept: dict[int, tuple[K, V]] = {}

    def value_for(self, found: K) -> V:
        """By identity: the object itself is kept beside the outcome, so that no other one gets its place."""
        kept = self._kept.get(id(found))
        if kept is not None and kept[0] is found:
            return kept[1]
        made = self._make(found)
        if len(self._kept) >= MAX_CACHED_OBJECTS:
            self._kept.clear()
        self._kept[id(found)] = (found, made)
        return made


T = TypeVar("T")


class computed_property(Generic[T]):
    """Computes an attribute of an object at its first reading, and keeps it with the object. For one thread."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute, self.__doc__ = compute, compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> T:
        # Kept where Python looks before it asks a class: this runs once for each object.
        found = instance.__dict__[self._name] = self._compute(instance)
        return found
