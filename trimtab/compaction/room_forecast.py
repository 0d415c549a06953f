"""How much room a pool needs soon, from its own history: what is not free then would be bought again.

The history has, for each slot of ten minutes, the largest sum of the requests of the pool's pods. The room that a slot
needed is by how much the requests rose within the horizon after it: the time for which a removed node has to stay away
so that its removal pays. The forecast for now is the largest of these:

- the room that comparable slots needed: the same slot of earlier weeks, and its neighbours, if there are two weeks of
  history; the same slot of earlier days if there are three days; in a younger history of three hours or more, the slots
  that are most like the present one in how much was requested and how that changed;
- by how much the requests rise within an hour if they go on as in the last half hour;
- in a history of less than a day, what was requested within the last half hour and is not any more.

With less than half an hour of history there is no forecast, and nothing is kept free because of it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace as change

from trimtab.cluster.format_count import format_count
from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import NotYet
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.reasons import YOUNG_HISTORY

SLOT_SECONDS = 600
HORIZON = 6
"""How many slots are looked ahead if nothing else is said: an hour."""
TREND_SLOTS = 6
"""For how many slots the requests are expected to go on rising."""
LAG = 3
"""From how many slots before the present one a trend is computed: half an hour."""
DAY, WEEK = 144, 1008
"""Slots."""
MAX_SLOTS = 4 * WEEK
MIN_SLOTS = LAG + 1
CAREFUL_SLOTS = 18
"""With less history than three hours, no slot is compared with the present one."""
MIN_WEEKS, MIN_DAYS = 2, 3
LIKE_COUNTS = (3, 8)
"""The smallest and the largest number of slots of a young history that are compared with the present one."""
LIKE_SHARE = 16
"""One in so many slots of a young history is compared with the present one, within these numbers."""
LIKE_RANGE = 4
"""A slot that differs from the present one by this part of the whole range more than the nearest one is left out."""
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
    """(slot, millicores, mebibytes) of forecasts whose horizon has not passed yet."""
    slot_seconds: int = SLOT_SECONDS
    """How long a slot is."""

    def with_demand(self, now: Seconds, cpu: int, memory: int, horizon: int = HORIZON) -> "DemandHistory":
        """Returns the history with what is requested now. When a slot ends, its forecast is made, and the forecast
        whose horizon has passed is judged. `horizon`: the number of slots that forecasts look ahead."""
        slot = now // self.slot_seconds
        if not self.cpu or slot < self.first:
            return change(self, first=slot, cpu=(cpu,), memory=(memory,), made=())
        last = self.first + len(self.cpu) - 1
        if slot <= last:
            place = slot - self.first
            return change(self, cpu=_raised(self.cpu, place, cpu), memory=_raised(self.memory, place, memory))
        gap = (UNKNOWN,) * min(slot - last - 1, MAX_SLOTS)
        cpus, memories = (*self.cpu, *gap, cpu)[-MAX_SLOTS:], (*self.memory, *gap, memory)[-MAX_SLOTS:]
        longer = change(self, first=slot - len(cpus) + 1, cpu=cpus, memory=memories)
        return longer._with_judgement(slot, horizon)

    def _with_judgement(self, slot: int, horizon: int) -> "DemandHistory":
        """Judges the forecasts whose horizon has passed, and makes one for the slot that begins."""
        room = forecast_room(self, slot * self.slot_seconds, horizon)
        judged, kept, made = self.judged, self.kept, []
        for at, cpu, memory in self.made:
            if at + horizon >= slot:
                made.append((at, cpu, memory))
                continue
            needed = [_rise(series, at - self.first, horizon) for series in (self.cpu, self.memory)]
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


def forecast_room(history: DemandHistory, now: Seconds, horizon: int = HORIZON) -> NeededRoom | NotYet:
    """Returns the room that the pool needs in the `horizon` slots after `now`, or what the history lacks."""
    known = sum(amount != UNKNOWN for amount in history.cpu)
    if known < MIN_SLOTS:
        return NotYet(
            reason=YOUNG_HISTORY("the history of the pool is too short for a forecast"),
            have=f"{known * history.slot_seconds // 60} minutes of history",
            need=f"{MIN_SLOTS * history.slot_seconds // 60} minutes of history",
        )
    present = now // history.slot_seconds - history.first
    basis, cpu, memory = _compare_slots(history, present, horizon, known)
    is_young = known < DAY
    return NeededRoom(
        millicores=max(cpu, _trend(history.cpu, present), _recent_fall(history.cpu, present) if is_young else 0),
        mebibytes=max(
            memory, _trend(history.memory, present), _recent_fall(history.memory, present) if is_young else 0
        ),
        basis=basis,
    )


def count_horizon_slots(pool: Pool, history: DemandHistory) -> int:
    """Returns how many slots of the history the forecasts of this pool look ahead."""
    return max(1, -(-pool.payback // history.slot_seconds))


def forecast_rooms(
    histories: Mapping[str, DemandHistory], pools: Iterable[Pool], now: Seconds
) -> Mapping[str, NeededRoom]:
    """Returns pool → the room that it needs, for the pools that keep it and whose history is long enough."""
    keeping = {pool.name: pool for pool in pools if pool.keeps_forecast and pool.name in histories}
    rooms = {
        name: forecast_room(histories[name], now, count_horizon_slots(pool, histories[name]))
        for name, pool in keeping.items()
    }
    return {name: room for name, room in rooms.items() if isinstance(room, NeededRoom)}


def describe_forecast(pool: Pool, room: NeededRoom, history: DemandHistory) -> str:
    """Returns the forecast of a pool, and how good earlier ones were, as a sentence without a full stop."""
    amount = (
        "no more than they request now"
        if room.is_none
        else f"up to {room.millicores / 1000:.1f} cores and {room.mebibytes / 1024:.1f} GiB more"
    )
    quality = f"; {history.kept} of {history.judged} forecasts so far were large enough" if history.judged else ""
    return (
        f"the pods of pool {pool.name} will request {amount} within {format_count(pool.payback // 60, 'minute')}, "
        f"by its history ({room.basis}){quality}"
    )


def _compare_slots(history: DemandHistory, present: int, horizon: int, known: int) -> tuple[str, int, int]:
    """Returns (with which slots the present one was compared, the millicores and the mebibytes that those needed)."""
    for period, minimum, basis in ((WEEK, MIN_WEEKS, "hour of the week"), (DAY, MIN_DAYS, "hour of the day")):
        if present >= period * minimum:
            cpu, memory = (
                _rises(series, _same_slots(present, period), horizon) for series in (history.cpu, history.memory)
            )
            if len(cpu) >= minimum and len(memory) >= minimum:
                return basis, max(cpu), max(memory)
    if known < CAREFUL_SLOTS:
        return "the last half hour", 0, 0
    cpu, memory = (
        _rises(series, _like_slots(series, present, horizon), horizon) for series in (history.cpu, history.memory)
    )
    return "alike moments", max(cpu, default=0), max(memory, default=0)


def _trend(series: Sequence[int], present: int) -> int:
    """Returns by how much the requests rise within an hour if they go on as in the last half hour; at least 0."""
    now = min(present, len(series) - 1)
    if now < LAG or UNKNOWN in (series[now], series[now - LAG]):
        return 0
    return max(0, (series[now] - series[now - LAG]) * TREND_SLOTS // LAG)


def _recent_fall(series: Sequence[int], present: int) -> int:
    """Returns by how much more was requested within the last half hour than now."""
    now = min(present, len(series) - 1)
    return max(series[max(0, now - LAG) : now + 1]) - series[now] if series[now] != UNKNOWN else 0


def _raised(series: tuple[int, ...], place: int, amount: int) -> tuple[int, ...]:
    if series[place] >= amount:
        return series
    return (*series[:place], amount, *series[place + 1 :])


def _same_slots(present: int, period: int) -> Iterator[int]:
    """Yields the slots of the same time in earlier periods, and their neighbours."""
    for slot in range(present - period, -1, -period):
        yield from (slot - 1, slot, slot + 1)


def _like_slots(series: Sequence[int], present: int, horizon: int) -> list[int]:
    """Returns the slots that are most like the present one: in what was requested, and in how that had changed within
    the half hour before."""
    now = min(present, len(series) - 1)
    if now < LAG or UNKNOWN in (series[now], series[now - LAG]):
        return list(range(len(series)))
    change_now = series[now] - series[now - LAG]

    known = [slot for slot in range(LAG, now - horizon) if series[slot] != UNKNOWN and series[slot - LAG] != UNKNOWN]
    # Of slots that are equally like the present one, the latest come first.
    ranked = sorted(
        (abs(series[slot] - series[now]) + 2 * abs(series[slot] - series[slot - LAG] - change_now), -slot)
        for slot in known
    )
    least, most = LIKE_COUNTS
    chosen = ranked[: max(least, min(most, len(series) // LIKE_SHARE))]
    known_amounts = [amount for amount in series if amount != UNKNOWN]
    farthest = chosen[0][0] + (max(known_amounts) - min(known_amounts)) // LIKE_RANGE if chosen else 0
    return [-slot for distance, slot in chosen if distance <= farthest]


def _rises(series: Sequence[int], slots: Iterable[int], horizon: int) -> list[int]:
    return [rise for slot in slots if (rise := _rise(series, slot, horizon)) is not None]


def _rise(series: Sequence[int], slot: int, horizon: int) -> int | None:
    """Returns by how much the requests rose within the horizon after the slot, at least 0; None if that is not
    known."""
    if slot < 0 or slot + horizon >= len(series) or series[slot] == UNKNOWN:
        return None
    following = [amount for amount in series[slot + 1 : slot + 1 + horizon] if amount != UNKNOWN]
    return max(0, max(following) - series[slot]) if following else None
