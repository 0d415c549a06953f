"""The name of a new object, which must not be that of another one: an object that is applied replaces its namesake."""

from collections.abc import Container
from itertools import count


def choose_free_name(wanted: str, kind: str, taken: Container[str]) -> str:
    """Returns the wanted name; if it is taken, the name with the kind of the workload that the new object is for, and
    if need be with a number.

    `taken`: the names of other objects of the new object's kind in its namespace."""
    if wanted not in taken:
        return wanted
    longer = f"{wanted}-{kind.lower()}"
    return longer if longer not in taken else next(name for n in count(2) if (name := f"{longer}-{n}") not in taken)
