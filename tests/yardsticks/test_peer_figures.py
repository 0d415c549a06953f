"""The figures of a peer follow from a history, and each peer meets the same machines."""

from tests.bench.peer_figures import count_nodes, find_last_change, judge_phase, sum_not_ready
from tests.bench.peer_scenario import (
    COOLDOWN_SECONDS,
    FLAGS,
    create_deployment,
    create_node_claims,
    draw_scenario,
    list_karpenter_types,
)
from trimtab.autoscaling.churn.churn_history import ChurnRecord, NodeGone, NodeSeen, PodGone, PodSeen
from trimtab.autoscaling.churn.churn_script import MACHINES
from trimtab.autoscaling.churn.pod_shapes import generate_shapes
from trimtab.autoscaling.churn.stand_in_rules import StandInFlags
from trimtab.cluster.quantity import to_milli
from trimtab.compaction.drain.timeouts import DrainTimeouts

SCENARIO = draw_scenario(80, generate_shapes())
HISTORY: list[ChurnRecord] = [
    NodeSeen(0, "a", 8000, 400_000),
    NodeSeen(0, "b", 8000, 400_000),
    PodSeen(0, "web-1", "web", "a", is_ready=True),
    PodSeen(10, "web-1", "web", "a", is_evicted=True, is_leaving=True),
    PodSeen(11, "web-2", "web"),
    PodGone(12, "web-1"),
    PodSeen(15, "web-2", "web", "b"),
    PodSeen(25, "web-2", "web", "b", is_ready=True),
    NodeGone(30, "a"),
    NodeSeen(40, "b", 8000, 400_000, is_cordoned=True),
    NodeSeen(60, "c", 16000, 800_000),
]


def test_a_phase_has_what_its_nodes_cost_and_what_it_disturbed() -> None:
    phase = judge_phase(HISTORY, 1, 50)
    assert (phase.nodes, phase.dollars, phase.seconds, phase.evictions, phase.bought) == (1, 0.4, 29, 1, 0)
    assert (phase.pending_seconds, phase.longest_wait, phase.not_ready_seconds) == (4, 4, 14)
    later = judge_phase(HISTORY, 50, 100)
    assert (later.nodes, later.dollars, later.bought, later.evictions) == (2, 1.2, 1, 0)


def test_nodes_are_counted_at_a_time() -> None:
    assert [count_nodes(HISTORY, at) for at in (1, 31, 61)] == [(2, 800_000), (1, 400_000), (2, 1_200_000)]


def test_a_cordon_is_no_change_after_which_a_peer_has_to_rest() -> None:
    assert find_last_change(HISTORY, 50) == 30
    assert find_last_change([], 50) == 0


def test_a_pod_that_is_never_ready_counts_to_the_end() -> None:
    history: list[ChurnRecord] = [PodSeen(5, "x", "web"), PodSeen(0, "y", "web", is_ready=True)]
    assert sum_not_ready(history, 0, 50) == 45
    assert sum_not_ready(history, 20, 50) == 30


def test_karpenters_machines_hold_as_much_as_those_of_the_others() -> None:
    for machine, described in zip(MACHINES, list_karpenter_types(), strict=True):
        assert to_milli(described["resources"]["cpu"]) == 100 + machine.millicores
        assert described["offerings"][0]["Price"] * 1e6 == machine.price


def test_each_node_of_the_beginning_is_one_claim_of_its_type() -> None:
    types = [claim["spec"]["requirements"][1]["values"] for claim in create_node_claims(SCENARIO)]
    by_group = {machine.group: machine.instance_type for machine in MACHINES}
    assert types == [[by_group[group]] for group in SCENARIO.churn.nodes]


def test_the_load_that_returns_and_the_protected_workloads_are_drawn_once() -> None:
    assert draw_scenario(80, generate_shapes()) == SCENARIO
    assert len(SCENARIO.protected) == 2
    assert len(SCENARIO.grown) == -(-len(SCENARIO.churn.workloads) // 2)
    [protected, *_] = [one for one in SCENARIO.churn.workloads if one.name in SCENARIO.protected]
    annotations = create_deployment(SCENARIO, protected)["spec"]["template"]["metadata"]["annotations"]
    assert sorted(annotations) == ["cluster-autoscaler.kubernetes.io/safe-to-evict", "karpenter.sh/do-not-disrupt"]


def test_the_cooldown_is_as_much_shorter_as_the_waits_of_the_autoscaler() -> None:
    assert DrainTimeouts().rest / COOLDOWN_SECONDS == StandInFlags().unneeded_seconds / FLAGS.unneeded_seconds
