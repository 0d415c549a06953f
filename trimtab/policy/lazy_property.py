"""Caches values that are computed from immutable objects.

`Derived` computes a value once per object of the cluster, and not again for each pod. This matters because a user who
may create an autoscaler may create a large one, or thousands for one workload.

`computed_property` computes an attribute when it is first read. `functools.cached_property` does the same, but up to
Python 3.11 it takes a lock, which costs more time than most of what is computed about a pod.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

# Objects whose value is cached at once, unless there is room for more.
MAX_CACHED_OBJECTS = 256


class Derived(Generic[K, V]):
    """Caches `make(source)` for each object `source`. Sources must be immutable. Two equal objects are cached
    separately."""

    def __init__(self, make: Callable[[K], V], room: int = MAX_CACHED_OBJECTS) -> None:
        """`room` is the largest number of objects whose values are cached at the same time."""
        self._make, self._room = make, room
        self._cache: dict[int, tuple[K, V]] = {}

    def value_for(self, source: K) -> V:
        """Returns `make(source)`, from the cache if it was computed for this same object."""
        # The entry holds the object itself, so that Python cannot give its id to another object.
        entry = self._cache.get(id(source))
        if entry is not None and entry[0] is source:
            return entry[1]
        value = self._make(source)
        if len(self._cache) >= self._room:
            self._cache.clear()
        self._cache[id(source)] = (source, value)
        return value


T = TypeVar("T")


class computed_property(Generic[T]):
    """Computes an attribute of an object when it is first read, and stores it with the object. Only one thread may use
    the object."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute, self.__doc__ = compute, compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> T:
        # Python looks in the instance's `__dict__` before it calls a descriptor without `__set__`, so this runs once.
        value = instance.__dict__[self._name] = self._compute(instance)
        return value
