"""A node is not drained if a pod that it loses may come back to it, because the pod tolerates the cordon."""

from typing import Any

import pytest

from tests.cluster_of import ALL, HOST, Item, cluster, node, pod
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import make_plan
from trimtab.compaction.plan_types import Plan
from trimtab.compaction.simulate import simulate_rounds
from trimtab.scheduling.cluster_model import build_cluster_model

CORDON = "node.kubernetes.io/unschedulable"
COVERING: list[Item] = [
    {"operator": "Exists"},
    {"operator": "Exists", "effect": "NoSchedule"},
    {"key": CORDON, "operator": "Exists"},
    {"key": CORDON, "operator": "Exists", "effect": "NoSchedule"},
    {"key": CORDON},
    {"key": CORDON, "value": ""},
]
OTHER: list[Item] = [
    {"operator": "Exists", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists"},
    {"key": CORDON, "operator": "Exists", "effect": "NoExecute"},
    {"key": CORDON, "value": "true"},
    {"key": "team", "operator": "Exists"},
]


def plan_for(*items: Item, **context: Any) -> Plan:
    return make_plan(build_cluster_model(cluster(*items)), [ALL], PlanningContext(**context))


def world(*tolerations: Item, label: str = "x", **more: Any) -> list[Item]:
    """Node n0 with one small pod that has these tolerations, and two nodes with little room."""
    spec = {"tolerations": list(tolerations), **more.pop("spec", {})}
    return [
        node("n0", labels={"lane": label}),
        node("n1"),
        node("n2"),
        pod("web-0", "n0", spec=spec, **more),
        pod("web-1", "n1", "3"),
        pod("db-0", "n2", "3"),
    ]


def drained(plan: Plan) -> list[str]:
    return [step.node for step in plan.all_steps]


@pytest.mark.parametrize("toleration", COVERING)
def test_a_pod_that_tolerates_the_cordon_keeps_its_node(toleration: Item) -> None:
    plan = plan_for(*world(toleration))
    reason = plan.refusals["n0"]
    assert ("n0" in drained(plan), reason.code.name) == (False, "pod-must-stay")
    assert plan.pods["default/web-0"].code.name == "pod-tolerates-cordon"


@pytest.mark.parametrize("toleration", OTHER)
def test_other_tolerations_keep_nothing(toleration: Item) -> None:
    assert drained(plan_for(*world(toleration))) == ["n0"]


def test_a_daemon_set_pod_that_tolerates_everything_keeps_nothing() -> None:
    agent = pod("agent-0", "n0", owner="DaemonSet", spec={"tolerations": [{"operator": "Exists"}]})
    assert drained(plan_for(*world(), agent)) == ["n0"]


def test_a_pod_whose_selector_the_node_no_longer_matches_does_not_come_back() -> None:
    selecting = {"nodeSelector": {"lane": "y"}}
    items = world({"operator": "Exists"}, spec=selecting)
    items[1] = node("n1", labels={"lane": "y"})
    assert drained(plan_for(*items)) == ["n0"]


def test_a_pod_without_an_owner_has_no_successor_that_comes_back() -> None:
    safe = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}
    assert drained(plan_for(*world({"operator": "Exists"}, owner="", annotations=safe))) == ["n0"]


def test_a_pod_that_selects_its_node_by_name_comes_back() -> None:
    affinity = {"nodeSelector": {HOST: "n0"}}
    plan = plan_for(*world({"operator": "Exists"}, spec=affinity))
    assert plan.pods["default/web-0"].code.name == "pod-tolerates-cordon"


def test_the_plan_is_made_as_if_a_pod_that_is_waived_did_not_come_back() -> None:
    plan = plan_for(*world({"operator": "Exists"}), waived_pods=frozenset({"default/web-0"}))
    assert drained(plan) == ["n0"]


def test_a_simulation_keeps_the_node_too() -> None:
    done = simulate_rounds(cluster(*world({"operator": "Exists"})), [ALL])
    assert done.last.refusals["n0"].code.name == "pod-must-stay"
    assert "n0" in {one.name for one in done.after.nodes}
