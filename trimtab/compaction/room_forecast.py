"""How much room a pool needs soon, from its own history: what is not free then would be bought again.

The history has, for each slot of ten minutes, the largest sum of the requests of the pool's pods. The room that a slot
needed is by how much the requests rose within the hour after it. The forecast for now is the largest room that
comparable slots needed:

- the same slot of earlier weeks, and its neighbours, if there are two weeks of history;
- the same slot of earlier days, and its neighbours, if there are three days;
- in a younger history, the slots that are most like the present one in how much was requested and how that changed.

With less than three hours of history there is no forecast, and nothing is kept free because of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace as change

from trimtab.cluster.reason import NotYet
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.reasons import YOUNG_HISTORY

SLOT_SECONDS = 600
HORIZON = 6
"""How many slots are looked ahead: an hour, within which a node that is bought again was removed in vain."""
DAY, WEEK = 144, 1008
"""Slots."""
MAX_SLOTS = 4 * WEEK
MIN_SLOTS = 18
"""Three hours."""
MIN_WEEKS, MIN_DAYS = 2, 3
LIKE_COUNT = 8
"""How many slots of a young history are compared with the present one."""
UNKNOWN = -1
"""The amount of a slot in which the compactor did not look."""


class DemandHistory(msgspec.Struct, frozen=True, omit_defaults=True):
    """The largest requests of the pods of one pool, slot by slot."""

    first: int = 0
    """The number of the first slot, counted from 1970."""
    cpu: tuple[int, ...] = ()
    """Millicores."""
    memory: tuple[int, ...] = ()
    """Mebibytes."""
    judged: int = 0
    """How many forecasts have been compared with what happened."""
    kept: int = 0
    """How many of them were large enough, for cpu and for memory."""
    made: tuple[tuple[int, int, int], ...] = ()
    """(slot, millicores, mebibytes) of forecasts whose hour has not passed yet."""

    def with_demand(self, now: Seconds, cpu: int, memory: int) -> "DemandHistory":
        """Returns the history with what is requested now. When a slot ends, its forecast is made, and the forecast of
        an hour ago is judged."""
        slot = now // SLOT_SECONDS
        if not self.cpu or slot < self.first:
            return change(self, first=slot, cpu=(cpu,), memory=(memory,), made=())
        last = self.first + len(self.cpu) - 1
        if slot <= last:
            place = slot - self.first
            return change(self, cpu=_raised(self.cpu, place, cpu), memory=_raised(self.memory, place, memory))
        gap = (UNKNOWN,) * min(slot - last - 1, MAX_SLOTS)
        cpus, memories = (*self.cpu, *gap, cpu)[-MAX_SLOTS:], (*self.memory, *gap, memory)[-MAX_SLOTS:]
        longer = change(self, first=slot - len(cpus) + 1, cpu=cpus, memory=memories)
        return longer._with_judgement(slot)

    def _with_judgement(self, slot: int) -> "DemandHistory":
        """Judges the forecasts whose hour has passed, and makes one for the slot that begins."""
        room = forecast_room(self, slot * SLOT_SECONDS)
        judged, kept, made = self.judged, self.kept, []
        for at, cpu, memory in self.made:
            if at + HORIZON >= slot:
                made.append((at, cpu, memory))
                continue
            needed = [_rise(series, at - self.first) for series in (self.cpu, self.memory)]
            if None not in needed:
                judged += 1
                kept += all(had >= (need or 0) for had, need in zip((cpu, memory), needed, strict=True))
        if isinstance(room, NeededRoom):
            made.append((slot, room.millicores, room.mebibytes))
        return change(self, judged=judged, kept=kept, made=tuple(made))


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededRoom:
    """What has to be free in a pool so that its pods find room within the next hour."""

    millicores: int
    mebibytes: int
    basis: str
    """With which slots of the history the present one was compared."""

    @property
    def is_none(self) -> bool:
        """Whether the pool needs no more than its pods request already."""
        return not (self.millicores or self.mebibytes)

    def amount_of(self, resource: str) -> int:
        """Returns the room for cpu or memory in the scheduler's units."""
        return self.millicores if resource == "cpu" else self.mebibytes << 20


def forecast_room(history: DemandHistory, now: Seconds) -> NeededRoom | NotYet:
    """Returns the room that the pool needs in the hour after `now`, or what the history lacks."""
    known = sum(amount != UNKNOWN for amount in history.cpu)
    if known < MIN_SLOTS:
        return NotYet(
            reason=YOUNG_HISTORY("the history of the pool is too short for a forecast"),
            have=f"{known * SLOT_SECONDS // 60} minutes of history",
            need=f"{MIN_SLOTS * SLOT_SECONDS // 60} minutes of history",
        )
    present = now // SLOT_SECONDS - history.first
    for period, minimum, basis in ((WEEK, MIN_WEEKS, "hour of the week"), (DAY, MIN_DAYS, "hour of the day")):
        if present >= period * minimum:
            cpu, memory = (_rises(series, _same_slots(present, period)) for series in (history.cpu, history.memory))
            if len(cpu) >= minimum and len(memory) >= minimum:
                return NeededRoom(millicores=max(cpu), mebibytes=max(memory), basis=basis)
    cpu, memory = (_rises(series, _like_slots(series, present)) for series in (history.cpu, history.memory))
    return NeededRoom(millicores=max(cpu, default=0), mebibytes=max(memory, default=0), basis="alike moments")


def _raised(series: tuple[int, ...], place: int, amount: int) -> tuple[int, ...]:
    if series[place] >= amount:
        return series
    return (*series[:place], amount, *series[place + 1 :])


def _same_slots(present: int, period: int) -> Iterator[int]:
    """Yields the slots of the same time in earlier periods, and their neighbours."""
    for slot in range(present - period, -1, -period):
        yield from (slot - 1, slot, slot + 1)


def _like_slots(series: Sequence[int], present: int) -> list[int]:
    """Returns the slots that are most like the present one: in what was requested, and in how that had changed within
    the half hour before."""
    lag = HORIZON // 2
    now = min(present, len(series) - 1)
    if now < lag or UNKNOWN in (series[now], series[now - lag]):
        return list(range(len(series)))
    change_now = series[now] - series[now - lag]

    def rank(slot: int) -> tuple[int, int]:
        """Of slots that are equally like the present one, the latest come first."""
        distance = abs(series[slot] - series[now]) + 2 * abs(series[slot] - series[slot - lag] - change_now)
        return distance, -slot

    known = [slot for slot in range(lag, now - HORIZON) if series[slot] != UNKNOWN and series[slot - lag] != UNKNOWN]
    return sorted(known, key=rank)[:LIKE_COUNT]


def _rises(series: Sequence[int], slots: Sequence[int] | Iterator[int]) -> list[int]:
    return [rise for slot in slots if (rise := _rise(series, slot)) is not None]


def _rise(series: Sequence[int], slot: int) -> int | None:
    """Returns by how much the requests rose within the hour after the slot, at least 0; None if that is not known."""
    if slot < 0 or slot + HORIZON >= len(series) or series[slot] == UNKNOWN:
        return None
    following = [amount for amount in series[slot + 1 : slot + 1 + HORIZON] if amount != UNKNOWN]
    return max(0, max(following) - series[slot]) if following else None
