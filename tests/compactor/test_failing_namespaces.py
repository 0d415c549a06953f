"""Whose failures close a pool: those of one namespace leave the pool open for all others."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.cluster_of import NOW
from tests.compactor.played import ACT, Played, process, run
from trimtab.compaction.drain.pool_state import STATE_KEY, PoolState, decode_state, encode_state
from trimtab.compactor.loop import Loop

EMPTY = PoolState()


def with_endless(*namespaces: str) -> Played:
    """Six half-empty nodes with one pod of the shop each; the first four also hold a pod that never ends, of these
    namespaces in turn. Only one node is drained at a time."""
    played = Played().with_nodes("n1", "n2", "n3", "n4", "n5", "n6")
    played.with_app("web", "n1", "n2", "n3", "n4", "n5", "n6", namespace="shop")
    for number, namespace in enumerate(namespaces):
        own = [f"n{node}" for node in range(1, 5) if node % len(namespaces) == number]
        played.with_app(f"hold{number}", *own, cpu="100m", namespace=namespace)
    played.endless = tuple(app for app in played.wanted if app.startswith("hold"))
    played.pools, played.takes_after = (replace(ACT, drains=1),), 10
    return played


def refusals(loop: Loop) -> set[str]:
    assert loop.planner.last_plan is not None
    reasons = loop.planner.last_plan.refusals
    return {node for node, reason in reasons.items() if reason.code.name == "drain-failed-before"}


def test_pods_of_one_namespace_that_never_end_close_no_pool() -> None:
    played = with_endless("mallory")
    run(played, 600)
    assert played.told("released")[:2] == ["drain-pod-stuck", "drain-pod-stuck"]
    assert played.told("closed") == []
    assert played.told("emptied") != [], "nodes without these pods are drained"


def test_no_node_with_pods_of_the_namespace_is_drained_for_a_while() -> None:
    played = with_endless("mallory")
    loop = process(played)
    while len(played.told("released")) < 2:
        run(played, 1, loop)
    run(played, 30, loop)
    holding = {item["spec"]["nodeName"] for item in played.pods.values() if item["metadata"]["namespace"] == "mallory"}
    assert holding & {"n1", "n2", "n3", "n4"} <= refusals(loop)
    assert not holding & set(played.cordoned)


def test_pods_of_two_namespaces_that_never_end_close_the_pool() -> None:
    played = with_endless("mallory", "trudy")
    run(played, 300)
    assert played.told("released")[:2] == ["drain-pod-stuck", "drain-pod-stuck"]
    assert played.told("closed") == ["pool-closed"]


def test_a_resumed_pool_drains_the_nodes_of_the_namespace_again() -> None:
    played = with_endless("mallory")
    loop = process(played)
    loop.pool_states.set_state("all", PoolState(failing={"mallory": (2, NOW - 1)}))
    loop.reopened_at = {"all": NOW}.get
    loop.run_round()
    assert loop.pool_states.state_of("all").failing == {}


def failed(*namespaces: str, before: PoolState = EMPTY) -> PoolState:
    for number, namespace in enumerate(namespaces):
        before = before.with_failure(f"n{number}", NOW, strike=True, namespace=namespace)
    return before


@given(st.lists(st.sampled_from(["a", "b", "c", ""])))
def test_the_strikes_of_a_pool_are_its_failing_namespaces_and_its_failures_without_one(namespaces: list[str]) -> None:
    actual_namespaces = {namespace for namespace in namespaces if namespace}
    assert failed(*namespaces).strikes == len(actual_namespaces) + namespaces.count("")


def test_strikes_that_were_stored_without_namespaces_count_as_before() -> None:
    earlier = decode_state("all", {STATE_KEY: '{"strikes":1,"v":1}'})
    assert isinstance(earlier, PoolState)
    assert failed("a", "a", before=earlier).strikes == 2


def test_an_earlier_version_reads_as_many_strikes_as_this_one_counts() -> None:
    assert '"strikes":1' in encode_state(failed("a", "a", "a"))


def test_a_drain_that_succeeds_ends_the_count_of_the_namespaces_whose_pods_it_moved() -> None:
    drained = failed("a", "b").with_drain("n9", "d", ("", 0), {"a": 1}).with_success("n9", NOW)
    assert (drained.strikes, drained.strike_namespaces, set(drained.failing)) == (0, (), {"b"})
