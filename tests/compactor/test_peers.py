"""What went wrong with those who did this before us, and does not here."""

from dataclasses import replace

from tests.cluster_of import ALL, NOW, cluster, node, pod
from tests.compactor.played import ACT, Played, process, run
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import make_plan
from trimtab.scheduling.cluster_model import build_cluster_model

UNDER_HALF = replace(ACT, under={"cpu": 50}, drains=1)


def two_quiet_and_one_full() -> Played:
    played = Played().with_nodes("n1", "n2", "n3")
    played.pools = (UNDER_HALF,)
    return played.with_app("web", "n1", "n2").with_app("full", *["n3"] * 6)


def test_a_node_that_became_busy_since_it_was_chosen_is_not_picked() -> None:
    """estafette's compactor takes the mark off a copy, and picks the node all the same."""
    played = two_quiet_and_one_full()
    loop = process(played)
    loop.run_round()
    [chosen] = [step.node for step in loop.planner.pending_steps.steps]  # type: ignore[union-attr]
    played.tick()
    played.with_app("late", *[chosen] * 5)
    run(played, 3, loop)
    assert chosen not in played.cordoned
    assert chosen not in [record.node for record in played.records if record.what == "started"]
    assert played.told("abandoned")


def test_the_same_node_goes_where_it_stays_quiet() -> None:
    played = two_quiet_and_one_full()
    loop = process(played)
    loop.run_round()
    [chosen] = [step.node for step in loop.planner.pending_steps.steps]  # type: ignore[union-attr]
    played.tick()
    run(played, 10, loop)
    assert chosen in played.cordoned


def goes(**system: str) -> list[tuple[str, list[str]]]:
    """Nodes that go with their pods, where a pod of kube-system is on one of two."""
    pods = [pod(f"big-{number}", "b", "400m") for number in range(5)]
    dns = pod("dns-1", "a", "100m", namespace="kube-system", **system)
    actual_cluster = cluster(node("a"), node("b"), pod("web-1", "a"), dns, *pods)
    plan = make_plan(build_cluster_model(actual_cluster), [ALL], PlanningContext(now=NOW))
    return [(step.node, sorted(move.pod for move in step.moves)) for step in plan.all_steps]


def test_system_pods_move_with_their_node_or_keep_it_but_are_never_left_on_an_emptied_one() -> None:
    """estafette's compactor leaves them, and the autoscaler then leaves the node."""
    assert goes() == [("a", ["default/web-1", "kube-system/dns-1"])]
    assert [node for node, _ in goes(created="2026-01-02T23:30:00Z")] != ["a"]
