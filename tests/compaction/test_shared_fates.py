"""What the plan reads of others' intentions: capacity buffers, groups of pods, nodes in maintenance."""

from typing import Any

import pytest

from tests.cluster_of import Item, cluster, node, pod
from tests.compaction.plans import goes, keeper, planned
from tests.reasons import has_facts

LABELS = {"labels": {"trimtab.dev/price": "100000"}}
TWO = [node("a", "4"), node("b", "4"), pod("web-0", "a", "1"), pod("web-1", "b", "1")]


# ── capacity buffers ─────────────────────────────────────────────────────
def template(cpu: str, name: str = "chunk") -> Item:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    meta = {"name": name, "namespace": "default"}
    return {"kind": "PodTemplate", "metadata": meta, "template": {"spec": {"containers": [container]}}}


def buffer(replicas: int | None = 1, name: str = "chunk", **status: Any) -> Item:
    item = {"podTemplateRef": {"name": name}, **status}
    message = item if replicas is None else {**item, "replicas": replicas}
    return {"kind": "CapacityBuffer", "metadata": {"name": "spare", "namespace": "default"}, "status": message}


@pytest.mark.parametrize(
    ("chunks", "gone"),
    [
        ([], 1),
        ([template("2"), buffer()], 1),
        ([template("3"), buffer()], 0),
        ([template("1"), buffer(3)], 0),
        ([template("3"), buffer(4, consumedReplicas=4)], 1),
        ([template("3"), buffer(conditions=[{"type": "ReadyForProvisioning", "status": "False"}])], 1),
    ],
)
def test_a_node_whose_room_a_buffer_keeps_stays(chunks: list[Item], gone: int) -> None:
    assert len(goes(*TWO, *chunks)) == gone


def test_it_stays_for_the_buffer_by_name() -> None:
    refusals = planned(*TWO, template("3"), buffer()).refusals.values()
    assert "capacity-reserved" in {reason.code.name for reason in refusals}
    assert any("capacity buffer default/spare" in str(reason) for reason in refusals)


def test_what_a_buffer_asks_for_beyond_all_nodes_stops_no_pool_and_is_told() -> None:
    result = planned(*TWO, template("3"), buffer(5))
    assert result.pools == {}
    assert any(has_facts(note, "2 of 5 pods", "capacity buffer default/spare") for note in result.notes)


@pytest.mark.parametrize("replicas", [500, 2_000_000_000])
def test_a_buffer_of_any_number_of_pods_costs_no_more_than_its_room(replicas: int) -> None:
    large = [node("a", "4000", pods=5000), keeper("k", "a", "1")]
    result = planned(*large, node("b"), pod("web-0", "b"), template("10m"), buffer(replicas))
    assert [step.node for step in result.all_steps] == ["b"]
    assert any("500 of 2,000,000,000" in note for note in result.notes) is (replicas > 500)


@pytest.mark.parametrize("broken", [[buffer()], [template("3"), buffer(None)]])
def test_a_buffer_that_cannot_be_told_keeps_no_room_and_is_named(broken: list[Item]) -> None:
    result = planned(*TWO, *broken)
    assert len(result.all_steps) == 1
    assert any("capacity buffer default/spare" in note and "no room is reserved" in note for note in result.notes)


def test_what_is_not_resolved_yet_counts_as_the_buffer_says_itself() -> None:
    spec = {"podTemplateRef": {"name": "chunk"}, "replicas": 1}
    capacity_buffer = {"kind": "CapacityBuffer", "metadata": {"name": "spare", "namespace": "default"}, "spec": spec}
    assert goes(*TWO, template("3"), capacity_buffer) == []


# ── groups of pods ───────────────────────────────────────────────────────
GROUPED = [
    {"spec": {"schedulingGroup": {"podGroupName": "train"}}},
    {"spec": {"workloadRef": {"name": "train", "podGroup": "workers"}}},
    {"labels": {"scheduling.x-k8s.io/pod-group": "train"}},
    {"labels": {"pod-group.scheduling.sigs.k8s.io": "train"}},
    {"labels": {"kueue.x-k8s.io/pod-group-name": "train"}},
]


@pytest.mark.parametrize("group", GROUPED)
def test_a_group_on_several_nodes_keeps_them(group: dict[str, Any]) -> None:
    result = planned(node("a"), node("b"), pod("web-0", "a", **group), pod("web-1", "b", **group))
    assert result.all_steps == ()
    assert {reason.code.name for reason in result.pods.values()} == {"pod-group-spans-nodes"}


@pytest.mark.parametrize("group", GROUPED)
def test_a_group_on_one_node_moves_as_a_whole(group: dict[str, Any]) -> None:
    both = [pod(f"web-{n}", "a", **group) for n in range(2)]
    assert goes(node("a"), node("b"), *both, keeper("k", "b", "1")) == ["a"]


def test_groups_of_two_namespaces_are_two() -> None:
    both = [pod(f"web-{n}", "ab"[n], namespace=f"team-{n}", **GROUPED[0]) for n in range(2)]
    assert len(goes(node("a"), node("b"), *both)) == 1


def test_a_group_whose_other_pods_wait_keeps_its_node() -> None:
    assert goes(node("a"), node("b"), pod("web-0", "a", **GROUPED[0]), pod("web-1", "", "100", **GROUPED[0])) == ["b"]


# ── maintenance ──────────────────────────────────────────────────────────
def maintained(name: str, condition: str, status: str = "True") -> Item:
    described_node = node(name)
    described_node["status"]["conditions"].append({"type": condition, "status": status})
    return described_node


CONDITIONS = ["MaintenancePlanned", "MaintenanceInProgress", "DrainInProgress", "Drained"]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_node_in_maintenance_or_soon_to_be_receives_nothing(condition: str) -> None:
    result = planned(maintained("a", condition), node("b"), pod("web-0", "b"))
    assert result.all_moves == ()


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_that_is_false_says_nothing(condition: str) -> None:
    assert len(goes(maintained("a", condition, "False"), node("b"), pod("web-0", "b"), pod("web-1", "a"))) == 1


def test_a_node_whose_maintenance_is_planned_may_go_itself() -> None:
    assert goes(maintained("a", "MaintenancePlanned"), node("b"), pod("web-0", "a"), keeper("k", "b", "1")) == ["a"]


@pytest.mark.parametrize("condition", CONDITIONS[1:])
def test_a_node_that_another_client_drains_is_left_to_it(condition: str) -> None:
    result = planned(maintained("a", condition), node("b"), pod("web-0", "a"))
    assert result.refusals["a"].code.name == "node-in-maintenance"


def test_lifecycle_conditions_are_read() -> None:
    assert cluster(maintained("a", "MaintenancePlanned")).nodes[0].lifecycle == ("MaintenancePlanned",)
