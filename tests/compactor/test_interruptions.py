"""Whatever is interrupted, and wherever: the next process ends it well."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compactor.played import ACT, TERMS, Played, process, run
from trimtab.compactor.soft_taint import SOFT_TAINTS

FAULTS = st.sampled_from(["killed", "lost", "failed", "changed"])


def three_pods() -> Played:
    """A node of three pods, one of them the only one of its workload, and a node with room for them."""
    played = Played().with_nodes("n1").with_nodes("n2", cpu="8")
    played.with_app("web", "n1", "n2", allowed=1).with_app("api", "n1", "n2").with_app("one", "n1")
    played.with_app("big", "n2", "n2", cpu="2")
    played.pools = (replace(ACT, single_replicas=True),)
    return played


def is_sound(played: Played) -> None:
    assert played.short == [], "a budget was broken"
    assert played.refused == 0
    assert set(played.cordoned) == set(played.noted), "a cordon and its note come and go together"
    for name in played.noted:
        assert played.on(name) == [], "what is still cordoned is empty"
    assert {app: len(played.healthy(app)) for app in played.wanted} == played.wanted
    assert played.wanted.get("one", 1) == 1, "what was surged is back"


def writes_of_a_drain() -> int:
    played = three_pods()
    run(played, 40)
    is_sound(played)
    assert played.cordoned == ["n1"]
    return len(played.writes)


@pytest.mark.parametrize("fault", ["killed", "lost", "failed", "changed"])
def test_a_process_that_dies_or_is_refused_at_any_write_leaves_nothing_behind(fault: str) -> None:
    for number in range(0, writes_of_a_drain(), 1 if fault == "killed" else 3):
        played = three_pods()
        played.faults = {number: fault}
        run(played, 45)
        is_sound(played)
        assert played.cordoned == ["n1"], f"and the drain came to its end ({fault} at write {number})"


@settings(max_examples=15, deadline=None)
@given(
    st.dictionaries(st.integers(0, 60), FAULTS, max_size=12),
    st.lists(st.tuples(st.sampled_from(["n1", "n2", "n3", "n4", "n5"]), st.integers(0, 2)), min_size=4, max_size=14),
    st.integers(0, 10),
)
def test_no_interleaving_of_faults_breaks_a_budget_or_strands_a_node(
    faults: dict[int, str], places: list[tuple[str, int]], slow: int
) -> None:
    played = Played(ready_after=slow).with_nodes("n1", "n2", "n3", "n4", "n5")
    for app in range(3):
        on = [name for name, whose in places if whose == app]
        if on:
            played.with_app(f"app{app}", *on, allowed=1 if app else None)
    played.faults = dict(faults)
    loop = run(played, 45)
    played.faults = {}
    played.paused = "enough"
    run(played, 10, loop)
    is_sound(played)
    fresh = process(played, TERMS)
    fresh.run_round()
    fresh.shut_down()
    assert not [
        taint for item in played.nodes.values() for taint in item["spec"]["taints"] if taint["key"] in SOFT_TAINTS
    ]
