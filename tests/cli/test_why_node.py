"""`trimtab why node` says which client cordoned a node, since when, and how to undo it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import Result

from tests.cli.recommending import kubeconfig
from tests.cli.snapshots import pool, snapshot, trimtab
from tests.cli.test_why import state
from tests.cluster_of import budget, cluster, node, pod
from tests.golden.recorded_api import serve_objects
from tests.golden.snapshots import load_snapshot
from tests.reasons import has_facts
from trimtab.cluster.signature import SigningKeys
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.compaction.drain.annotation import DrainAnnotation, OrderMark, PodToEvict, encode_annotation
from trimtab.compaction.drain.order_entry import ORDERS, OrderEntry
from trimtab.compaction.drain.pool_state import STATE_KEY, STATE_LABEL, HistoryEntry, PoolState, encode_state
from trimtab.compaction.order.record import ORDER_ANNOTATION, OrderRecord, encode_record

NOW = 1_800_000_000
LABELS = {"cloud.google.com/gke-nodepool": "web"}


def drained(**more: Any) -> Any:
    [on] = cluster(node("n1")).nodes
    annotation = DrainAnnotation(drain="d7", pool="web", since=NOW, home="trimtab-system", **more)
    text = encode_annotation(annotation, on, SigningKeys(b"k" * 32))
    return node("n1", labels=LABELS, cordoned=True, annotations={CORDONED_BY_US: text})


def why(folder: Path, *items: Any, name: str = "n1", form: str = "json") -> Result:
    return trimtab("why", "node", name, "--cluster", snapshot(folder, *items), "-o", form)


def report(folder: Path, *items: Any) -> Any:
    result = why(folder, *items)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_node_that_our_compactor_drains_is_named_as_ours_with_the_way_back(tmp_path: Path) -> None:
    entry = HistoryEntry(at=NOW, pool="web", what="started", code="drain-started", why="w", node="n1")
    actual_report = report(tmp_path, drained(), pool("web", "mode: act"), state(entry))
    assert actual_report["cordon"]["by"] == "trimtab"
    assert actual_report["cordon"]["since"] == "2027-01-15T08:00:00Z"
    assert has_facts(
        actual_report["cordon"]["text"], "namespace trimtab-system cordoned this node", "pool web", "drain d7"
    )
    assert actual_report["cordon"]["undo"][0].removeprefix("trimtab ").startswith("compactor release --yes n1")
    assert [one["what"] for one in actual_report["decisions"]] == ["started"]
    text = why(tmp_path, drained(), pool("web", "mode: act"), form="table").stdout
    assert has_facts(text, "Node n1", "pool web, cordoned")
    assert "To undo the cordon:" in text


def test_a_node_of_a_drain_order_names_the_order_and_how_to_end_it(tmp_path: Path) -> None:
    entry = OrderEntry(name="kernel", since=NOW, digest="d", nodes={"n1": "uid-n1"})
    metadata = {"name": "trimtab-state-orders", "namespace": "trimtab-system", "labels": {STATE_LABEL: ORDERS}}
    data = {STATE_KEY: encode_state(PoolState(orders={"u-1": entry}))}
    orders = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    held = drained(order=OrderMark(order="u-1", waits=True))
    cordon = report(tmp_path, held, orders)["cordon"]
    assert cordon["by"] == "trimtab"
    assert has_facts(cordon["text"], "DrainOrder kernel", "waits for its wave")
    assert cordon["undo"][0].split()[1:6] == ["delete", "drainorder", "kernel", "-n", "trimtab-system"]
    emptied = drained(order=OrderMark(order="u-1", was_cordoned=True), emptied=NOW + 60)
    assert has_facts(report(tmp_path, emptied, orders)["cordon"]["text"], "stays cordoned", "had cordoned")
    assert "uid u-1" in report(tmp_path, held)["cordon"]["text"]


def test_a_drain_names_the_budget_that_allows_no_eviction(tmp_path: Path) -> None:
    moves = tuple(PodToEvict(f"default/web-{n}", f"uid-web-{n}") for n in (1, 2))
    pods = [pod(f"web-{n}", "n1") for n in (1, 2)]
    text = report(tmp_path, drained(moves=moves), *pods, budget("web", 0))["cordon"]["text"]
    assert has_facts(text, "2 of 2 pods are left", "budget default/web", "allows 0 disruptions")
    assert report(tmp_path, drained(moves=moves), *pods, budget("web", 1))["cordon"]["text"].endswith("pods are left")


def test_an_empty_node_waits_for_the_autoscaler(tmp_path: Path) -> None:
    text = report(tmp_path, drained(emptied=NOW + 60))["cordon"]["text"]
    assert has_facts(text, "no pods to evict", "since 2027-01-15T08:01:00Z", "waits for", "cluster autoscaler")


def test_a_cordon_of_another_client_is_not_ours_and_its_field_manager_is_named(tmp_path: Path) -> None:
    item = node("n1", cordoned=True)
    item["metadata"]["managedFields"] = [
        {"manager": "kubelet", "fieldsV1": {"f:status": {}}},
        {"manager": "kubectl-cordon", "time": "2026-11-26T13:00:00Z", "fieldsV1": {"f:spec": {"f:unschedulable": {}}}},
    ]
    cordon = report(tmp_path, item)["cordon"]
    assert (cordon["by"], cordon["since"]) == ("other", "2026-11-26T13:00:00Z")
    assert "field manager kubectl-cordon" in cordon["text"]
    assert cordon["undo"] == ["kubectl uncordon n1"]
    assert "does not show which" in report(tmp_path, node("n1", cordoned=True))["cordon"]["text"]


def test_a_node_that_an_autoscaler_deletes_is_called_so(tmp_path: Path) -> None:
    taints = [{"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"}]
    cordon = report(tmp_path, node("n1", taints=taints))["cordon"]
    assert (cordon["by"], cordon["undo"]) == ("autoscaler", [])


def test_an_open_node_was_cordoned_by_none_and_a_node_without_a_pool_is_called_so(tmp_path: Path) -> None:
    actual_report = report(tmp_path, node("n1", labels=LABELS), pool("batch", "mode: act"))
    assert actual_report["cordon"]["by"] == "none"
    assert has_facts(actual_report["notes"][0], "pool web", "has no ConfigMap", "never drains")


def test_a_node_that_does_not_exist_is_answered_with_the_nearest(tmp_path: Path) -> None:
    result = why(tmp_path, node("node-1"), name="node-2")
    assert result.exit_code == 2
    assert "did you mean 'node-1'?" in result.stderr


def entry(at: int, what: str, **more: Any) -> HistoryEntry:
    return HistoryEntry(at=NOW + at, pool="web", what=what, code="c", why="w", node="web-7", drain="d7", **more)


def test_a_node_that_was_drained_and_is_gone_is_answered_from_the_history(tmp_path: Path) -> None:
    history = state(entry(0, "started"), entry(60, "emptied"), entry(600, "removed"))
    report = report_of_gone(tmp_path, node("web-8"), history)
    assert (report["exists"], report["pools"], report["cordon"]["by"]) == (False, ["web"], "trimtab")
    assert has_facts(
        report["cordon"]["text"],
        "compactor drained this node",
        "pool web",
        "drain d7",
        "begun at 2027-01-15T08:00:00Z",
        "was gone at 2027-01-15T08:10:00Z",
    )
    assert [one["what"] for one in report["decisions"]] == ["started", "emptied", "removed"]
    result = why(tmp_path, node("web-8"), history, name="web-7", form="table")
    assert has_facts(result.stdout, "Node web-7", "pool web", "does not exist")
    assert "did you mean" not in result.output


def test_a_node_that_is_gone_and_was_not_drained_is_not_called_drained(tmp_path: Path) -> None:
    report = report_of_gone(tmp_path, state(entry(0, "started", rehearsed=True)))
    assert has_facts(report["cordon"]["text"], "no stored decision", "drained this node")
    text = report_of_gone(tmp_path, state(entry(0, "started"), entry(9, "abandoned")))["cordon"]["text"]
    assert has_facts(text, "ended the drain", "2027-01-15T08:00:09Z: w")


def report_of_gone(folder: Path, *items: Any) -> Any:
    result = why(folder, *items, name="web-7")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_the_record_of_an_order_says_who_ordered_the_drain_and_how_to_undo_it(tmp_path: Path) -> None:
    text = encode_record(OrderRecord(order="o1", since=NOW, by="ann", why="kernel 6.12", nodes=("n1",)))
    cordon = report(tmp_path, node("n1", cordoned=True, annotations={ORDER_ANNOTATION: text}))["cordon"]
    assert cordon["by"] == "other"
    assert has_facts(cordon["text"], "order o1", "by ann", "kernel 6.12")
    assert [undo.split()[1:3] for undo in cordon["undo"]] == [["drain", "--release"]]


def test_why_and_plan_give_the_same_reasons(tmp_path: Path) -> None:
    cluster_file = snapshot(
        tmp_path, node("n1", labels=LABELS), node("n2", labels=LABELS), pod("web-0", "n1", owner="")
    )
    planned = json.loads(trimtab("plan", "--cluster", cluster_file, "--explain", "node", "n1", "-o", "json").stdout)
    [explained] = planned["explained"]
    report = json.loads(trimtab("why", "node", "n1", "--cluster", cluster_file, "-o", "json").stdout)
    assert report["chain"] == explained["chain"]
    moved = json.loads(trimtab("why", "pod", "default/web-0", "--cluster", cluster_file, "-o", "json").stdout)
    planned = json.loads(
        trimtab("plan", "--cluster", cluster_file, "--explain", "pod", "default/web-0", "-o", "json").stdout
    )
    assert moved["chain"] == planned["explained"][0]["chain"]


def test_a_cluster_without_pools_is_not_said_to_have_a_node_outside_of_them(tmp_path: Path) -> None:
    """A plan assumes pools then, so `in no pool` would contradict it."""
    [note, *_] = report(tmp_path, node("n1", labels=LABELS), pod("web-0", "n1"))["notes"]
    assert has_facts(note, "no pool of Trimtab", "preset balanced")
    assert "is in no pool" not in note


def test_objects_that_allow_no_plan_say_why(tmp_path: Path) -> None:
    [sentence] = report(tmp_path, node("n1", labels=LABELS))["chain"]
    assert has_facts(sentence, "no plan", "pods")


def test_a_node_of_the_live_cluster_has_the_reasons_of_a_plan_without_being_asked(tmp_path: Path) -> None:
    golden = load_snapshot("pools")
    with serve_objects((*golden.objects, *golden.policies)) as url:
        login = ("--kubeconfig", kubeconfig(tmp_path, url), "-o", "json")
        stays, drains = (json.loads(trimtab("why", "node", name, *login).stdout) for name in ("web-1", "web-5"))
    assert any(sentence.startswith("node web-1 ") for sentence in stays["chain"])
    assert (drains["cordon"]["by"], drains["chain"]) == ("trimtab", [])
