"""Remembers of the latest values that they occurred, in little memory."""

from collections.abc import Hashable

MAX_HASHES = 4096


class RecentHashes:
    """The hashes of the latest different values, up to `MAX_HASHES`. Of two values with the same hash, the second one
    counts as an earlier one: use it only where that does no harm."""

    def __init__(self) -> None:
        self._hashes: dict[int, None] = {}

    def is_first(self, value: Hashable) -> bool:
        """Returns whether the value did not occur lately. It has occurred from now on."""
        number = hash(value)
        if number in self._hashes:
            return False
        if len(self._hashes) >= MAX_HASHES:
            del self._hashes[next(iter(self._hashes))]
        self._hashes[number] = None
        return True
