"""`trimtab savings`: by pool, team and day, from what the compactor stored."""

from io import StringIO

import pytest
from rich.console import Console

from tests.reasons import has_facts
from trimtab.cli.reporting.draw import draw_report
from trimtab.cli.savings.report import VIEW, build_savings_report
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.compaction.drain.savings import MONEY

NOW = 1_800_000_000
HOUR, DAY = 3600, 86_400


def removed(state: PoolState, at: int, amount: int, pods: dict[str, int], unit: str = MONEY) -> PoolState:
    return state.with_drain("n", "d", (unit, amount), pods).with_success("n", at)


WEB = removed(removed(PoolState(), NOW - 10 * DAY, 200_000, {"shop": 3, "data": 1}), NOW - DAY, 100_000, {"shop": 1})
DB = removed(PoolState(), NOW - 40 * DAY, 4000, {"data": 1}, "millicores")
STATES = {"web": WEB, "db": DB}


def by_name(parts: object) -> dict[str, tuple[int | None, list[tuple[float, str]], float | None]]:
    return {
        part.name: (part.nodes, [(each.amount, each.unit) for each in part.saves], part.dollars_so_far)
        for part in parts  # type: ignore[attr-defined]
    }


def test_pools_and_teams_are_summed_since_a_day() -> None:
    report = build_savings_report(STATES, NOW - 30 * DAY, NOW, str)
    # 0.2 dollars an hour for 240 hours, and 0.1 for 24.
    assert by_name(report.pools) == {"db": (0, [], None), "web": (2, [(219.0, "dollars a month")], 50.4)}
    assert by_name(report.teams) == {
        "shop": (None, [(182.5, "dollars a month")], 38.4),
        "data": (None, [(36.5, "dollars a month")], 12.0),
    }
    assert len(report.days) == 2
    assert by_name([report.total])["total"] == by_name(report.pools)["web"]


def test_a_longer_time_has_the_older_days_too() -> None:
    report = build_savings_report(STATES, NOW - 60 * DAY, NOW, str)
    assert by_name(report.pools)["db"] == (1, [(4.0, "cores")], None)
    assert by_name(report.teams)["data"] == (None, [(36.5, "dollars a month"), (4.0, "cores")], 12.0)


def test_a_team_is_what_a_label_of_its_namespaces_says() -> None:
    report = build_savings_report({"web": WEB}, 0, NOW, lambda namespace: "everyone")
    assert by_name(report.teams) == {"everyone": (None, [(219.0, "dollars a month")], 50.4)}


def test_the_teams_of_a_day_add_up_to_its_pools() -> None:
    report = build_savings_report(STATES, 0, NOW, str)
    teams = sum(each.amount for part in report.teams for each in part.saves if each.unit == "dollars a month")
    pools = sum(each.amount for part in report.pools for each in part.saves if each.unit == "dollars a month")
    assert teams == pytest.approx(pools, abs=0.02)


def test_nodes_that_were_removed_before_days_were_stored_are_named_and_not_summed() -> None:
    old = PoolState(saved=5, worth={MONEY: 500_000})
    report = build_savings_report({"web": old}, 0, NOW, str)
    assert report.total.nodes == 0
    assert has_facts(report.notes[1], "5 nodes", "before the first day")


def test_one_pool_can_be_asked_for_alone() -> None:
    report = build_savings_report(STATES, 0, NOW, str, only="db")
    assert [part.name for part in report.pools] == ["db"]


def test_what_is_drawn_says_the_total_first_and_that_it_is_a_bound() -> None:
    text = StringIO()
    draw_report(Console(file=text, width=120), build_savings_report(STATES, NOW - 30 * DAY, NOW, str), VIEW)
    lines = text.getvalue().splitlines()
    assert has_facts(lines[0], "2 nodes", "$219 a month", "at most $50.40")
    assert any(line.split() == ["web", "2", "$219", "a", "month", "$50.40"] for line in lines)
    assert "upper bound" in lines[-1]
