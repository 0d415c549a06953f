"""What the commands say about clusters with serverless nodes, and about clusters whose nodes name no pool."""

from pathlib import Path

import pytest

from tests.cli.snapshots import snapshot, told, trimtab
from tests.cluster_of import Item, node, pod
from tests.reasons import has_facts

AUTOPILOT = [node(f"gk3-c-pool-{n}", provider=f"gce://p/z/gk3-c-pool-{n}") for n in range(3)]
VIRTUAL = node("v", "10k", labels={"type": "virtual-kubelet"}, taints=[{"key": "virtual", "effect": "NoSchedule"}])


def reported(tmp_path: Path, verb: str, *items: Item) -> Item:
    report: Item = told(verb, "--cluster", snapshot(tmp_path, *items), "--preset", "all=keen")
    return report


@pytest.mark.parametrize("verb", ["plan", "simulate"])
def test_a_virtual_node_counts_in_no_number_of_the_report(tmp_path: Path, verb: str) -> None:
    report = reported(tmp_path, verb, VIRTUAL, node("a"), node("b"), pod("web-0", "a"), pod("web-1", "b"))
    assert (report["nodesBefore"], report["nodesAfter"], report["saves"]["amount"]) == (2, 1, 4)
    assert [one["name"] for one in report["nodes"]] == ["a", "b"]


def test_a_cluster_without_machines_has_nothing_to_plan(tmp_path: Path) -> None:
    report = told("plan", "--cluster", snapshot(tmp_path, *AUTOPILOT, pod("web-0", "gk3-c-pool-0")))
    assert (report["nodesBefore"], report["nodesAfter"]) == (0, 0)
    assert has_facts(report["notes"], "no node", "a machine", "nothing to plan")


def test_a_cluster_without_machines_has_no_machine_types(tmp_path: Path) -> None:
    items = (*AUTOPILOT, pod("web-0", "gk3-c-pool-0"))
    answer = trimtab("machines", "profile", "--cluster", snapshot(tmp_path, *items))
    assert answer.exit_code == 2
    assert "only serverless nodes" in answer.stderr


def test_without_a_pool_label_the_labels_that_divide_the_nodes_are_named(tmp_path: Path) -> None:
    nodes = [node(f"n{n}", labels={"acme.io/pool-id": "ab"[n % 2]}) for n in range(4)]
    notes = told("plan", "--cluster", snapshot(tmp_path, *nodes, pod("web-0", "n0")))["notes"]
    assert any("acme.io/pool-id (2 values)" in note and "trimtab.dev/pool" in note for note in notes)


def test_a_simulated_node_is_planned_like_a_machine_and_a_note_says_what_it_is(tmp_path: Path) -> None:
    fake = {"annotations": {"kwok.x-k8s.io/node": "fake"}}
    pods = [pod(f"web-{number}", on=f"n{number}") for number in range(2)]
    report = told(
        "plan", "--cluster", snapshot(tmp_path, node("n0", **fake), node("n1"), *pods), "--preset", "all=keen"
    )
    assert report["evictions"] == 1
    assert has_facts(report["notes"], "1 node", "KWOK", "n0", "saves no money")
