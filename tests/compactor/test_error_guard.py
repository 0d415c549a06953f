"""An error nobody foresaw, in the middle of a round: the others' work goes on, and nothing stays closed for it."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry

from tests.compactor.played import ACT, Played, process, run
from trimtab.cluster.reason import NotYet
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compactor.loop import MAX_BLIND_ROUNDS, Loop
from trimtab.compactor.metrics import Metrics
from trimtab.runtime.metrics import render_metrics


class Odd(tuple[str, ...]):
    """What nobody foresaw."""

    __slots__ = ()

    def __iter__(self) -> Iterator[str]:
        raise ZeroDivisionError("what nobody foresaw")


def two_pools() -> Played:
    """Two pools of two nodes; one node of each could go."""
    played = Played().with_nodes("a1", "a2", labels={"pool": "a"}).with_nodes("b1", "b2", labels={"pool": "b"})
    for name in "ab":
        played.with_app(
            f"app{name}", f"{name}1", f"{name}2", spec={"nodeSelector": {"pool": name}}, annotations={"x": "y"}
        )
    played.pools = tuple(replace(ACT, name=name, everything=False, labels={"pool": name}) for name in "ab")
    return played


def with_odd(played: Played, **odd: Odd) -> None:
    """From now on there is a bug in all that has to do with pool a."""
    played.pools = (replace(played.pools[0], **odd), played.pools[1])  # type: ignore[arg-type]


def drained_both(played: Played) -> Loop:
    """A node of each pool is being emptied."""
    loop = process(played)
    while len(played.cordoned) < 2:
        loop.run_round()
        played.tick(1)
    return loop


@pytest.mark.parametrize("where", ["windows", "keep_pods", "keep_nodes"])
def test_a_pool_that_cannot_be_planned_keeps_no_other_from_being_emptied(where: str) -> None:
    played = two_pools()
    with_odd(played, **{where: Odd(("x",))})
    loop = run(played, 30)
    assert [name[0] for name in played.cordoned] == ["b"]
    assert played.on(played.cordoned[0]) == []
    assert loop.planner.last_plan is not None
    assert loop.planner.last_plan.pools["a"].code.name == "pool-not-planned"
    assert "Traceback" in played.log.getvalue()
    assert loop.error_guard.kinds["plan"] > 0


def test_a_drain_that_cannot_be_decided_is_given_back_and_the_others_go_on() -> None:
    played = two_pools()
    loop = drained_both(played)
    with_odd(played, keep_pods=Odd(("x",)))
    run(played, 20, loop)
    assert [name[0] for name in played.cordoned] == ["b"]
    assert "drain-internal-error" in played.told("released")
    assert played.told("emptied") == ["node-drained"]
    assert played.noted == played.cordoned


def test_nothing_begins_in_a_round_in_which_a_drain_failed_for_an_error_of_ours() -> None:
    played = two_pools()
    loop = drained_both(played)
    with_odd(played, keep_pods=Odd(("x",)))
    before = len(played.told("started"))
    loop.run_round()
    assert len(played.told("started")) == before
    assert loop.problem.startswith("drain")


def test_a_round_that_cannot_look_is_told_and_the_next_one_goes_on() -> None:
    played = two_pools()
    loop = process(played)
    view = loop.read_view

    def odd() -> ClusterView | NotYet:
        raise ZeroDivisionError("what nobody foresaw")

    loop.read_view = odd
    assert loop.run_round() == loop.tick
    assert "what nobody foresaw" in loop.problem
    loop.read_view = view
    run(played, 30, loop)
    assert len(played.cordoned) == 2
    assert loop.problem == ""


def test_who_cannot_look_for_some_rounds_gives_back_what_is_not_empty() -> None:
    played = two_pools()
    loop = drained_both(played)
    loop.run_round()

    def odd() -> ClusterView | NotYet:
        raise ZeroDivisionError("what nobody foresaw")

    loop.read_view = odd
    for _ in range(MAX_BLIND_ROUNDS - 1):
        loop.run_round()
    assert len(played.cordoned) == 2
    loop.run_round()
    assert (played.cordoned, played.noted) == ([], [])


def test_errors_of_ours_are_counted_by_what_was_being_done() -> None:
    played = two_pools()
    loop = process(played)
    numbers = Metrics(CollectorRegistry(), lambda: True, lambda: 3.0)
    with_odd(played, windows=Odd(("x",)))
    loop.run_round()
    numbers.update_errors(loop.error_guard)
    numbers.update_errors(loop.error_guard)
    page = render_metrics(numbers.registry).decode()
    assert 'trimtab_compactor_errors_total{kind="plan"} 2.0' in page
    assert 'trimtab_compactor_errors_total{kind="look"} 0.0' in page
