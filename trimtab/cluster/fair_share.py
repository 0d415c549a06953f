"""Shares something limited between its users, such as namespaces, so that none takes it from another.

All of it is max-min fairness (https://en.wikipedia.org/wiki/Max-min_fairness): a user that wants little gets it, and
the others share the rest equally. Nothing here is thread-safe.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
_MISSING = object()


def take_turns(items: Iterable[V], user_of: Callable[[V], str]) -> list[V]:
    """Returns the items in an order in which users take turns: the first item of each user, then the second of each.
    The items of one user keep their order."""
    by_user: dict[str, list[V]] = {}
    for item in items:
        by_user.setdefault(user_of(item), []).append(item)
    rounds = zip_longest(*by_user.values(), fillvalue=_MISSING)
    return [item for one_round in rounds for item in one_round if item is not _MISSING]  # type: ignore[misc]


@dataclass(slots=True)
class _UserCounts:
    """How much each user holds, and who holds the most. Every operation takes constant time."""

    total: int = 0
    _count_by_user: dict[str, int] = field(default_factory=dict)
    _users_by_count: dict[int, dict[str, None]] = field(default_factory=dict)
    _greatest_count: int = 0

    def count_of(self, user: str) -> int:
        """Returns how much a user holds."""
        return self._count_by_user.get(user, 0)

    def greatest_user(self, preferred: str | None = None) -> str:
        """Returns the user that holds the most, of several the preferred one. There must be one."""
        users = self._users_by_count[self._greatest_count]
        return preferred if preferred in users else next(iter(users))

    def has_less_than_greatest(self, user: str) -> bool:
        """Returns whether a user that got one more would not hold more than the greatest that lost one."""
        return self.count_of(user) + 1 < self._greatest_count

    def add_one(self, user: str) -> None:
        """Records that a user holds one more."""
        self._set_count(user, self.count_of(user) + 1)
        self.total += 1

    def remove_one(self, user: str) -> None:
        """Records that a user holds one less."""
        self._set_count(user, self.count_of(user) - 1)
        self.total -= 1

    def _set_count(self, user: str, count: int) -> None:
        before = self._count_by_user.pop(user, 0)
        if before:
            users = self._users_by_count[before]
            del users[user]
            if not users:
                del self._users_by_count[before]
        if count:
            self._count_by_user[user] = count
            self._users_by_count.setdefault(count, {})[user] = None
        # A count changes by one, so the greatest does too.
        self._greatest_count = max(count, self._greatest_count)
        if self._greatest_count not in self._users_by_count:
            self._greatest_count -= 1


@dataclass(slots=True)
class FairQueue(Generic[V]):
    """A queue from which users take turns, with a limit for the number of all waiting items.

    An item for a full queue replaces the newest item of the user with the most, unless its own user has as many.
    """

    max_items: int
    _by_user: dict[str, deque[V]] = field(default_factory=dict)
    """User → its waiting items. The user whose turn is next comes first."""
    _counts: _UserCounts = field(default_factory=_UserCounts)

    def __len__(self) -> int:
        return self._counts.total

    def put_item(self, user: str, item: V) -> V | None:
        """Adds an item at the end of its user's items. Returns the item that has no place: None, an earlier item of
        another user, or the new one."""
        refused: V | None = None
        if self._counts.total >= self.max_items:
            if not self._counts.has_less_than_greatest(user):
                return item
            greatest = self._counts.greatest_user()
            refused = self._by_user[greatest].pop()
            self._counts.remove_one(greatest)
        self._by_user.setdefault(user, deque()).append(item)
        self._counts.add_one(user)
        return refused

    def take_item(self) -> V | None:
        """Removes and returns the first item of the user whose turn it is, or None if nothing waits."""
        if not self._by_user:
            return None
        user = next(iter(self._by_user))
        items = self._by_user.pop(user)
        item = items.popleft()
        if items:
            self._by_user[user] = items
        self._counts.remove_one(user)
        return item


@dataclass(eq=False, slots=True)
class FairSlot:
    """A slot that is in use."""

    user: str
    is_lost: bool = False
    """Whether another user has got the slot: the present one must end its use."""


@dataclass(slots=True)
class FairSlots:
    """Slots that can be taken from the user that holds the most."""

    max_slots: int
    _by_user: dict[str, dict[FairSlot, None]] = field(default_factory=dict)
    _counts: _UserCounts = field(default_factory=_UserCounts)

    def take_slot(self, user: str) -> FairSlot | None:
        """Returns a slot, or None if all are in use and no user holds at least two more than this one. If all are in
        use, the oldest slot of the user with the most is lost."""
        if self._counts.total >= self.max_slots:
            if not self._counts.has_less_than_greatest(user):
                return None
            lost = next(iter(self._by_user[self._counts.greatest_user()]))
            lost.is_lost = True
            self._remove(lost)
        slot = FairSlot(user)
        self._by_user.setdefault(user, {})[slot] = None
        self._counts.add_one(user)
        return slot

    def release_slot(self, slot: FairSlot) -> None:
        """Ends the use of a slot. A lost one is no longer counted."""
        if not slot.is_lost:
            self._remove(slot)

    def _remove(self, slot: FairSlot) -> None:
        slots = self._by_user[slot.user]
        del slots[slot]
        self._counts.remove_one(slot.user)
        if not slots:
            del self._by_user[slot.user]


@dataclass(slots=True)
class FairCache(Generic[K, V]):
    """A mapping with a limited number of entries: for a new one, the oldest entry of the user with the most is
    dropped, and the user's own if no other has more."""

    max_entries: int
    _entries_by_user: dict[str, OrderedDict[K, V]] = field(default_factory=dict)
    _counts: _UserCounts = field(default_factory=_UserCounts)

    def __len__(self) -> int:
        return self._counts.total

    def entries(self) -> list[V]:
        """Returns the values of all users."""
        return [value for entries in self._entries_by_user.values() for value in entries.values()]

    def find_entry(self, user: str, key: K) -> V | None:
        """Returns the value of a user's entry, or None if there is none."""
        entries = self._entries_by_user.get(user)
        return None if entries is None else entries.get(key)

    def store_entry(self, user: str, key: K, value: V) -> None:
        """Stores a user's entry as its newest one, and drops another one if there are too many."""
        self.drop_entry(user, key)
        while self._counts.total >= max(1, self.max_entries):
            greatest = self._counts.greatest_user(preferred=user)
            self.drop_entry(greatest, next(iter(self._entries_by_user[greatest])))
        self._entries_by_user.setdefault(user, OrderedDict())[key] = value
        self._counts.add_one(user)

    def drop_entry(self, user: str, key: K) -> V | None:
        """Drops a user's entry and returns its value, or None if there is none."""
        entries = self._entries_by_user.get(user)
        if entries is None or key not in entries:
            return None
        value = entries.pop(key)
        self._counts.remove_one(user)
        if not entries:
            del self._entries_by_user[user]
        return value
