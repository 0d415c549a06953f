"""What a pool needs soon, from what its pods requested before."""

from collections.abc import Iterable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from tests.cluster_of import ALL, cluster, node, pod
from trimtab.cluster.pool import Headroom, Pool
from trimtab.cluster.reason import NotYet
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import make_plan
from trimtab.compaction.reasons import NEEDED_AGAIN
from trimtab.compaction.room_forecast import (
    CAREFUL_SLOTS,
    DAY,
    HORIZON,
    MAX_SLOTS,
    MIN_SLOTS,
    SLOT_SECONDS,
    WEEK,
    DemandHistory,
    NeededRoom,
    forecast_room,
)
from trimtab.scheduling.cluster_model import build_cluster_model

BEGIN = 1_800_000_000 // SLOT_SECONDS
HOUR = 6


def history(cpus: Sequence[int]) -> DemandHistory:
    """One amount a slot."""
    return DemandHistory(first=BEGIN, cpu=tuple(cpus), memory=tuple(cpus))


def room(cpus: Sequence[int], horizon: int = HORIZON) -> NeededRoom | NotYet:
    """The forecast at the last slot."""
    return forecast_room(history(cpus), (BEGIN + len(cpus) - 1) * SLOT_SECONDS, horizon)


def needed_millicores(cpus: Sequence[int], horizon: int = HORIZON) -> int:
    result = room(cpus, horizon)
    assert isinstance(result, NeededRoom)
    return result.millicores


def day(morning: int) -> list[int]:
    """1000 by night, and from eight o'clock until noon 1000 more than that, times the morning."""
    return [1000 + morning * 1000 * (8 * HOUR <= slot < 12 * HOUR) for slot in range(DAY)]


def test_a_young_history_has_no_forecast() -> None:
    assert isinstance(room([100] * (MIN_SLOTS - 1)), NotYet)
    assert isinstance(room([]), NotYet)
    assert room([100] * MIN_SLOTS) == NeededRoom(millicores=0, mebibytes=0, basis="the last half hour")
    assert room([100] * CAREFUL_SLOTS) == NeededRoom(millicores=0, mebibytes=0, basis="alike moments")


def test_requests_that_rise_are_expected_to_rise_for_another_hour() -> None:
    assert needed_millicores([100, 110, 120, 130]) == 60
    assert needed_millicores([*[100] * 40, 110, 120, 130]) == 60


def test_in_the_first_day_the_last_half_hour_may_come_again() -> None:
    assert needed_millicores([500, 500, 400, 300]) == 200
    assert needed_millicores([500, 300, 300, 300, 300]) == 0


def test_a_longer_payback_looks_further_ahead() -> None:
    before_eight = [*day(1) * 3, *day(1)[: 8 * HOUR - 7]]
    assert [needed_millicores(before_eight, horizon) for horizon in (6, 12)] == [0, 1000]


def test_only_slots_that_are_much_alike_are_compared() -> None:
    # Twice the requests fell like now, and did not rise again; at the same height they also rose.
    falls = [900, 700, 500, 300, 100, 100, 100, 300, 500, 700] * 3
    assert needed_millicores([*falls, 900, 700, 500]) <= 400


def test_a_moment_like_an_earlier_one_needs_what_that_needed() -> None:
    # Six times the requests rose from 100 to 500; now they have just begun to.
    wave = [100] * 10 + [200, 300, 400, 500] + [300] * 6
    found = room([*wave * 6, *[100] * 10, 200])
    assert isinstance(found, NeededRoom)
    assert 300 <= found.millicores <= 400
    quiet = room([*wave * 6, 300, 300, 300])
    assert isinstance(quiet, NeededRoom)
    assert quiet.millicores == 0


def test_the_hour_of_the_day_counts_after_three_days() -> None:
    before_eight, at_ten = 8 * HOUR - 2, 10 * HOUR
    days = [amount for morning in (1, 2, 1) for amount in day(morning)]
    assert room([*days, *day(1)[: before_eight + 1]]) == NeededRoom(
        millicores=2000, mebibytes=2000, basis="hour of the day"
    )
    assert room([*days, *day(1)[: at_ten + 1]]) == NeededRoom(millicores=0, mebibytes=0, basis="hour of the day")


def test_the_hour_of_the_week_counts_after_two_weeks() -> None:
    week = [amount for number in range(7) for amount in day(int(number < 5))]
    saturday, monday = 5 * DAY + 8 * HOUR - 2, 8 * HOUR - 2
    found = [room([*week, *week, *week[: slot + 1]]) for slot in (saturday, monday)]
    assert [one.millicores for one in found if isinstance(one, NeededRoom)] == [0, 1000]
    assert {one.basis for one in found if isinstance(one, NeededRoom)} == {"hour of the week"}


def recorded(amounts: Iterable[tuple[int, int]]) -> DemandHistory:
    """(slot, millicores) as they were observed."""
    result = DemandHistory()
    for slot, cpu in amounts:
        result = result.with_demand((BEGIN + slot) * SLOT_SECONDS + 5, cpu, cpu)
    return result


def test_a_slot_has_the_most_that_was_seen_in_it() -> None:
    assert recorded([(0, 5), (0, 9), (0, 7), (1, 3)]).cpu == (9, 3)


def test_a_slot_without_a_look_is_unknown_and_needs_no_guess() -> None:
    found = recorded([(0, 5), (3, 7)])
    assert found.cpu == (5, -1, -1, 7)
    assert isinstance(forecast_room(found, (BEGIN + 3) * SLOT_SECONDS), NotYet)


def test_forecasts_are_judged_when_their_hour_has_passed() -> None:
    steady = recorded((slot, 100) for slot in range(40))
    assert steady.judged == steady.kept > 0
    risen = recorded((slot, 100 if slot < 30 else 900) for slot in range(45))
    assert 0 < risen.kept < risen.judged


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 10_000)), min_size=1, max_size=60))
def test_a_history_never_grows_beyond_its_limit_and_never_needs_less_than_nothing(
    steps: list[tuple[int, int]],
) -> None:
    slot, found = 0, DemandHistory()
    for gap, cpu in steps:
        slot += gap
        found = found.with_demand((BEGIN + slot) * SLOT_SECONDS, cpu, cpu)
        needed = forecast_room(found, (BEGIN + slot) * SLOT_SECONDS)
        assert isinstance(needed, NotYet) or min(needed.millicores, needed.mebibytes) >= 0
    assert len(found.cpu) == len(found.memory) == slot + 1 - (found.first - BEGIN)
    assert len(found.made) <= HORIZON + 1
    assert found.kept <= found.judged


def test_four_weeks_are_remembered() -> None:
    found = history([1] * MAX_SLOTS).with_demand((BEGIN + MAX_SLOTS + 3) * SLOT_SECONDS, 2, 2)
    assert len(found.cpu) == MAX_SLOTS == 4 * WEEK
    assert found.cpu[-1] == 2


# ── in a plan ────────────────────────────────────────────────────────────────
WORLD = cluster(node("a"), node("b"), node("c"), pod("web-1", "a"), pod("web-2", "b"), pod("api-1", "c", "3"))


def drained(context: PlanningContext, pool: Pool = ALL) -> set[str]:
    return {step.node for step in make_plan(build_cluster_model(WORLD), [pool], context).all_steps}


def needing(cores: int) -> PlanningContext:
    return PlanningContext(
        needed_room={"all": NeededRoom(millicores=cores * 1000, mebibytes=0, basis="hour of the day")}
    )


def test_a_plan_leaves_the_room_that_is_needed_again() -> None:
    assert [len(drained(context)) for context in (PlanningContext(), needing(1), needing(6), needing(9))] == [
        2,
        1,
        0,
        0,
    ]
    refusals = make_plan(build_cluster_model(WORLD), [ALL], needing(6)).refusals
    assert {reason.code for reason in refusals.values()} >= {NEEDED_AGAIN}


def test_room_is_counted_once_and_not_in_addition_to_the_headroom() -> None:
    half = Pool(name="all", everything=True, min_nodes=0, single_replicas=True, headroom=Headroom(percent=40))
    assert len(drained(needing(3), half)) == len(drained(PlanningContext(), half)) == 1
