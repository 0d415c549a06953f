"""`trimtab savings --expected`: what drains promised, and what came of them."""

from trimtab.cli.savings.expected import ExpectedSavingsReport, build_expected_report
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.compaction.drain.promises import DayPromises
from trimtab.compaction.drain.savings import MONEY

HOUR, DAY = 3600, 86_400
NOW = 1_800_000_000 - 1_800_000_000 % DAY + 12 * HOUR
SAVING = (MONEY, 100_000)
DOLLARS = [(73.0, "dollars a month")]


def begin(state: PoolState, node: str, at: int) -> PoolState:
    return state.with_drain(node, f"drain-{node}", SAVING, {"shop": 1}).with_promise(SAVING, at)


def remove(state: PoolState, node: str, at: int) -> PoolState:
    return state.with_success(node, at).with_ended_drain(node, f"drain-{node}", at)


def release(state: PoolState, node: str, at: int) -> PoolState:
    return state.with_unkept_promise(node, at).with_ended_drain(node, f"drain-{node}", at)


def expected(state: PoolState, since: int = NOW - 30 * DAY) -> ExpectedSavingsReport:
    return build_expected_report({"web": state}, since, NOW)


def amounts(parts: object) -> list[tuple[float, str]]:
    return [(one.amount, one.unit) for one in parts]  # type: ignore[attr-defined]


def test_what_was_promised_stands_beside_what_came() -> None:
    state = PoolState()
    for node in "abc":
        state = begin(state, node, NOW - 2 * DAY)
    state = release(remove(state, "a", NOW - DAY), "b", NOW - DAY)
    total = expected(state).total
    assert (total.begun, total.removed, total.unkept, total.under_way) == (3, 1, 1, 1)
    assert amounts(total.promised) == [(219.0, "dollars a month")]
    assert amounts(total.saves) == DOLLARS
    assert total.node_hours == 24.0


def test_a_drain_counts_on_the_days_on_which_it_began_and_ended() -> None:
    days = expected(remove(begin(PoolState(), "a", NOW - 2 * DAY), "a", NOW - DAY)).days
    assert [(day.begun, day.removed, day.under_way) for day in days] == [(1, 0, None), (0, 1, None)]


def test_a_cordon_that_failed_promised_nothing() -> None:
    state = begin(PoolState(), "a", NOW).without_drain("a").without_promise(SAVING, NOW)
    assert state.promise_days == {"2027-01-15": DayPromises()}
    assert expected(state).total.promised == []


def test_a_drain_that_the_state_does_not_know_breaks_no_promise() -> None:
    assert PoolState().with_unkept_promise("a", NOW) == PoolState()


def test_setbacks_are_counted_once_each() -> None:
    state = PoolState().with_setback("drain-a", NOW).with_setback("drain-a", NOW).with_setback("node-b", NOW)
    assert expected(state).total.setbacks == 2


def test_days_before_the_first_record_are_named_and_not_compared() -> None:
    # As an earlier version stored it: without promises.
    old = PoolState().with_drain("o", "d", SAVING).with_success("o", NOW - 9 * DAY)
    state = PoolState(saved_days=old.saved_days)
    assert (expected(state).total.removed, expected(state).unrecorded) == (0, 1)
    later = remove(begin(state, "a", NOW - DAY), "a", NOW - DAY)
    report = expected(later)
    assert (report.total.begun, report.total.removed, report.unrecorded) == (1, 1, 1)
    assert len(report.notes) == 2
    assert expected(later, NOW - 3 * DAY).unrecorded == 0


def test_without_any_history_nothing_is_made_up() -> None:
    report = build_expected_report({}, NOW - DAY, NOW)
    assert (report.total.begun, report.total.node_hours, report.pools, report.unrecorded) == (0, 0.0, [], 0)


def test_a_quarter_of_a_year_is_stored() -> None:
    state = PoolState()
    for number in range(120):
        state = begin(state, f"n{number}", NOW - number * DAY)
    assert len(state.promise_days) == 92
