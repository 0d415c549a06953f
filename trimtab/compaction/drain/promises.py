"""Records what drains promised and what became of them, by day, so that the two can be compared later.

A drain promises the saving of the plan that chose its node. The promise is kept when the node has been removed, and not
kept when the drain ends in another way. A setback is a pod that waits, or a node that is added, because of a drain.
"""

from collections.abc import Callable, Mapping

import msgspec
from msgspec.structs import replace as change

from trimtab.cluster.timestamps import Seconds, format_timestamp
from trimtab.compaction.drain.savings import MAX_DAYS, add_amounts


class DayPromises(msgspec.Struct, frozen=True, omit_defaults=True):
    """The drains of a pool on one day (UTC): those that began on it, and those that ended on it."""

    begun: int = 0
    promised: dict[str, int] = {}
    """Unit → the sum of what the drains that began promise to save."""
    kept: int = 0
    """The number of drained nodes that were removed."""
    saved: dict[str, int] = {}
    """Unit → the sum of what the removed nodes had promised to save."""
    at: Seconds = 0
    """The mean time of the removals, in seconds since 1970; 0 without a removal."""
    unkept: int = 0
    """The number of drains that ended without a removal."""
    setbacks: int = 0


Days = Mapping[str, DayPromises]
"""UTC date → the drains of that day."""


def add_promise(days: Days, now: Seconds, saving: tuple[str, int]) -> dict[str, DayPromises]:
    """Returns the days with a drain that begins now. `saving`: (unit, amount) that it promises."""
    return _change_day(
        days, now, lambda day: change(day, begun=day.begun + 1, promised=_add_saving(day.promised, saving))
    )


def withdraw_promise(days: Days, now: Seconds, saving: tuple[str, int]) -> dict[str, DayPromises]:
    """Returns the days without a drain that was added just now, because its node could not be cordoned."""
    unit, amount = saving

    def withdraw(day: DayPromises) -> DayPromises:
        promised = {name: sum_ for name, sum_ in _add_saving(day.promised, (unit, -amount)).items() if sum_ > 0}
        return change(day, begun=max(0, day.begun - 1), promised=promised)

    return _change_day(days, now, withdraw)


def add_kept_promise(days: Days, now: Seconds, saving: tuple[str, int]) -> dict[str, DayPromises]:
    """Returns the days with a drained node that is removed now."""

    def add_removal(day: DayPromises) -> DayPromises:
        at = (day.at * day.kept + now) // (day.kept + 1)
        return change(day, kept=day.kept + 1, at=at, saved=_add_saving(day.saved, saving))

    return _change_day(days, now, add_removal)


def add_unkept_promise(days: Days, now: Seconds) -> dict[str, DayPromises]:
    """Returns the days with a drain that ends now without a removal."""
    return _change_day(days, now, lambda day: change(day, unkept=day.unkept + 1))


def add_setback(days: Days, now: Seconds) -> dict[str, DayPromises]:
    """Returns the days with a setback that is noticed now."""
    return _change_day(days, now, lambda day: change(day, setbacks=day.setbacks + 1))


def _change_day(days: Days, now: Seconds, change_day: Callable[[DayPromises], DayPromises]) -> dict[str, DayPromises]:
    name = format_timestamp(now)[:10]
    changed = {**days, name: change_day(days.get(name, DayPromises()))}
    return {name: changed[name] for name in sorted(changed)[-MAX_DAYS:]}


def _add_saving(sums: Mapping[str, int], saving: tuple[str, int]) -> dict[str, int]:
    unit, amount = saving
    return add_amounts((sums, {unit: amount})) if unit else dict(sums)
