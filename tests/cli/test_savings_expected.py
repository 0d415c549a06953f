"""`trimtab savings --expected`: what drains promised, and what came of them."""

from io import StringIO

from rich.console import Console

from tests.reasons import has_facts
from trimtab.cli.reporting.draw import draw_report
from trimtab.cli.savings.expected import EXPECTED_VIEW, ExpectedSavingsReport, build_expected_report
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


def answer(report: ExpectedSavingsReport) -> str:
    text = StringIO()
    draw_report(Console(file=text, width=200), report, EXPECTED_VIEW)
    return text.getvalue().partition("\n")[0]


def test_drains_that_began_before_the_period_are_not_taken_for_promises_of_it() -> None:
    state = PoolState()
    for node in "abc":
        state = begin(state, node, NOW - 5 * DAY)
    state = begin(release(remove(state, "a", NOW), "b", NOW), "d", NOW)
    report = expected(state, NOW - DAY)
    assert (report.total.begun, report.total.removed, report.total.unkept, report.total.under_way) == (1, 1, 1, 2)
    assert report.begun_before == 3
    assert has_facts(report.notes, "3 drains", "began before")
    assert expected(state).begun_before == 0


def test_a_drain_that_only_ended_in_the_period_is_no_empty_history() -> None:
    state = release(begin(PoolState(), "a", NOW - 5 * DAY), "a", NOW)
    assert "nothing was promised" not in answer(expected(state, NOW - DAY))
    assert "nothing was promised" in answer(expected(PoolState()))


def test_what_has_no_amount_is_left_out_of_the_answer() -> None:
    state = PoolState().with_drain("a", "drain-a", ("", 0), {"shop": 1}).with_promise(("", 0), NOW)
    assert "–" not in answer(expected(state))


def test_a_source_without_any_state_is_named() -> None:
    assert has_facts(build_expected_report({}, NOW - DAY, NOW).notes, "state of a pool")
    assert expected(PoolState()).notes == []
