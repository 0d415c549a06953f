"""What a replay makes of prices, of pools as they are configured, and of what Trimtab itself did meanwhile."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.autoscaling.replay.simulated_captures import encode_capture_file, namespace_object
from tests.autoscaling.replay.test_recording import MONDAY, Object, node, pod
from tests.cli.snapshots import pool, told
from tests.reasons import has_facts
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.inputs.capture_series import SeriesFolder
from trimtab.machines.prices import PRICE_LABEL

EVERY, ROUNDS = 60, 40
Report = dict[str, Any]


def machine(name: str, labels: Mapping[str, str], group: str = "web") -> Object:
    """A node with these labels in addition."""
    one = node(name, group=group)
    one["metadata"]["labels"] |= labels
    return one


def full(*machines: Object) -> list[Object]:
    """The nodes, each with pods that request three of its four cores: nothing can be removed."""
    names = [one["metadata"]["name"] for one in machines]
    pods = [pod(f"{name}-{number}", name) for name in names for number in range(3)]
    return [namespace_object("kube-system", "uid-1"), *machines, *pods]


def replay(folder: Path, objects: Sequence[Object], *options: str) -> Report:
    """The report of captures in which nothing changes."""
    series = SeriesFolder(folder / "captures", EVERY)
    for number in range(ROUNDS):
        series.append_round(MONDAY + number * EVERY, encode_capture_file(list(objects)))
    return told("replay", "--captures", str(folder / "captures"), *options)


def costs(report: Report) -> dict[str, float]:
    return {row["variant"]: row["cost"] for row in report["variants"]}


def test_each_node_of_a_pool_costs_what_it_costs(tmp_path: Path) -> None:
    nodes = (machine("a", {PRICE_LABEL: "1000000"}), machine("b", {PRICE_LABEL: "200000"}))
    report = replay(tmp_path, full(*nodes), "--preset", "careful")
    assert set(costs(report).values()) == {0.78}


def test_a_price_of_the_pool_counts_as_it_does_in_a_plan(tmp_path: Path) -> None:
    nodes = [machine(name, {"node.kubernetes.io/instance-type": "shelf-4"}) for name in ("a", "b")]
    settings = pool("web", "preset: careful\nprices: {shelf-4: 0.5}\n")
    report = replay(tmp_path, [*full(*nodes), settings], "--preset", "careful")
    assert set(costs(report).values()) == {0.65}


def test_machines_of_the_control_plane_are_not_removed(tmp_path: Path) -> None:
    of_the_control_plane = [
        machine(name, {"node-role.kubernetes.io/control-plane": ""}, group="cp") for name in ("c1", "c2", "c3")
    ]
    report = replay(tmp_path, full(machine("a", {})) + of_the_control_plane, "--preset", "careful")
    assert {row["nodeHours"] for row in report["variants"]} == {2.6}


def test_a_node_that_is_no_machine_has_neither_hours_nor_a_price(tmp_path: Path) -> None:
    virtual = machine("virtual", {"type": "virtual-kubelet"}, group="virtual")
    report = replay(tmp_path, [*full(machine("a", {PRICE_LABEL: "1000000"})), virtual], "--preset", "careful")
    assert {(row["nodeHours"], row["cost"]) for row in report["variants"]} == {(0.7, 0.65)}


def has_note(report: Report, *facts: str) -> bool:
    return any(has_facts(note, *facts) for note in report["notes"])


def test_a_recording_in_which_trimtab_drained_nodes_already_is_named(tmp_path: Path) -> None:
    drained = machine("b", {})
    drained["spec"]["unschedulable"] = True
    drained["metadata"]["annotations"] = {CORDONED_BY_US: "{}"}
    report = replay(tmp_path, [*full(machine("a", {})), drained], "--preset", "careful")
    assert report["ownDrains"] == 1
    assert has_note(report, "Trimtab drained 1 node")


def test_nodes_of_karpenter_and_a_cluster_that_never_changes_are_named(tmp_path: Path) -> None:
    report = replay(tmp_path, full(machine("a", {"karpenter.sh/nodepool": "web"})), "--preset", "careful")
    assert has_note(report, "Karpenter", "1 of 1 node", "drains none")
    assert has_note(report, "no autoscaler")


def test_guessed_prices_and_unknown_ones_are_named(tmp_path: Path) -> None:
    spot = machine("a", {"node.kubernetes.io/instance-type": "m6i.large", "eks.amazonaws.com/capacityType": "SPOT"})
    guessed = replay(tmp_path / "guessed", full(spot), "--preset", "careful")
    assert has_note(guessed, "1 node", "guessed spot price", "--prices")
    unknown = replay(tmp_path / "unknown", full(spot, machine("b", {})), "--preset", "careful")
    assert has_note(unknown, "money is left out", "web", "--prices")
    assert set(costs(unknown).values()) == {None}


def test_an_invalid_pool_is_named(tmp_path: Path) -> None:
    report = replay(tmp_path, [*full(machine("a", {})), pool("web", "preset: bold\n")], "--preset", "careful")
    assert has_note(report, "invalid pool", "bold")


def test_a_configured_pool_without_nodes_and_a_pool_without_settings_are_named(tmp_path: Path) -> None:
    objects = [*full(machine("a", {}), machine("b", {}, group="db")), pool("wbe", "preset: careful\n")]
    report = replay(tmp_path, objects, "--preset", "careful")
    assert has_note(report, "no node", "wbe", "'web'")
    assert has_note(report, "alone", "db, web")
    both = [*objects[:-1], pool("web", "preset: careful\n"), pool("db", "preset: careful\n")]
    assert not has_note(replay(tmp_path / "both", both, "--preset", "careful"), "alone")


def test_a_group_of_several_machine_types_is_named(tmp_path: Path) -> None:
    nodes = (machine(name, {"node.kubernetes.io/instance-type": f"shelf-{name}"}) for name in ("a", "b"))
    report = replay(tmp_path, full(*nodes), "--preset", "careful")
    assert any("machine types" in gap["what"] and "web" in gap["what"] for gap in report["missing"])
