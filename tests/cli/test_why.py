"""`trimtab why pod` joins what is known of one pod."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.cli.snapshots import snapshot, trimtab
from tests.cli.test_running import POLICY, WEBHOOK, pod
from tests.reasons import has_facts
from trimtab.cli.why.live_traces import collapse_events, select_log_lines
from trimtab.cluster.api.pod import Pod
from trimtab.compaction.drain.pool_state import STATE_KEY, STATE_LABEL, HistoryEntry, PoolState, encode_state
from trimtab.policy.changed_annotation import ANNOTATION, write_annotation
from trimtab.policy.pod_changes import FieldChange
from trimtab.policy.reasons import LIMIT_REMOVED

NOW = 1_800_000_000


def changed_pod() -> dict[str, Any]:
    """A pod with the annotation that the webhook wrote when the pod had no name yet."""
    item = pod()
    submitted = msgspec.convert({**item, "metadata": {**item["metadata"], "name": ""}}, Pod)
    change = FieldChange(
        field="containers[app].limits.cpu", before="2", after=None, policy="no-limits", reason=LIMIT_REMOVED("r")
    )
    annotated, _ = write_annotation(submitted, "shop", None, [change])
    assert isinstance(annotated.metadata.annotations, dict)
    item["metadata"]["annotations"] = {ANNOTATION: annotated.metadata.annotations[ANNOTATION]}
    return item


def state(*records: HistoryEntry) -> dict[str, Any]:
    metadata = {"name": "trimtab-state-web", "namespace": "trimtab-system", "labels": {STATE_LABEL: "web"}}
    data = {STATE_KEY: encode_state(PoolState(ring=records))}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def why(folder: Path, *items: dict[str, Any], name: str = "shop/web-1-bcdfg") -> dict[str, Any]:
    result = trimtab("why", "pod", name, "--cluster", snapshot(folder, *items), "-o", "json")
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def test_what_the_annotation_says_and_what_policies_say_now_are_joined(tmp_path: Path) -> None:
    report = why(tmp_path, changed_pod(), POLICY, WEBHOOK)
    assert report["owners"] == ["ReplicaSet/web-1"]
    [change] = report["changes"]
    assert (change["policy"], change["field"], change["value"]) == (
        "no-limits",
        "containers[app].limits.cpu",
        "removed",
    )
    assert change["before"] is None
    assert has_facts(change["why"], "pod template", "not read")
    assert [(one["policy"], one["what"]) for one in report["findings"]] == [("sizes", "unpatched")]


def test_a_pod_without_an_annotation_was_not_changed(tmp_path: Path) -> None:
    assert why(tmp_path, pod(), POLICY, WEBHOOK)["changes"] is None
    text = trimtab("why", "pod", "web-1-bcdfg", "-n", "shop", "--cluster", snapshot(tmp_path, pod(), WEBHOOK)).stdout
    assert has_facts(text, "webhook did not change")
    assert has_facts(text, "snapshot", "neither Events")


def test_who_is_not_in_a_rollout_is_said(tmp_path: Path) -> None:
    out = {**POLICY, "spec": {**POLICY["spec"], "rollout": "0%"}}
    codes = [one["reason"]["code"] for one in why(tmp_path, pod(), out, WEBHOOK)["findings"]]
    assert codes == ["not-in-rollout"]


def test_decisions_about_the_pod_and_its_predecessors_are_joined(tmp_path: Path) -> None:
    records = [
        HistoryEntry(at=NOW + n, pool="web", what="evicted", code="pod-evicted", why=f"w{n}", pod=name, owner=owner)
        for n, (name, owner) in enumerate(
            [
                ("shop/web-1-older", "ReplicaSet/web-1"),
                ("shop/web-1-bcdfg", ""),
                ("shop/cart", "ReplicaSet/cart"),
                ("else/web-1-x", "ReplicaSet/web-1"),
            ]
        )
    ]
    decisions = why(tmp_path, pod(), WEBHOOK, state(*records))["decisions"]
    assert [one["why"] for one in decisions] == ["w0", "w1"]


def test_a_pod_that_does_not_exist_is_answered_with_the_nearest(tmp_path: Path) -> None:
    result = trimtab("why", "pod", "shop/web-1-bcdf", "--cluster", snapshot(tmp_path, pod(), WEBHOOK))
    assert result.exit_code == 2
    assert "did you mean 'shop/web-1-bcdfg'?" in result.stderr


def test_lines_of_the_log_are_found_by_name_prefix_and_owner() -> None:
    lines = [
        '{"namespace":"shop","pod":"web-1-bcdfg","event":"a"}',
        '{"namespace":"shop","pod":"web-1-","event":"b"}',
        '{"namespace":"shop","pod":"","owner":"Deployment/web","event":"c"}',
        '{"namespace":"else","pod":"web-1-","event":"d"}',
        '{"namespace":"shop","pod":"","owner":"","event":"e"}',
        '{"namespace":"shop","pod":"web-2-","event":"f"}',
        "not json",
        "[" * 5000,
    ]
    objects = list(select_log_lines("\n".join(lines), "shop", "web-1-bcdfg", "Deployment/web"))
    assert objects == lines[:3]


NO_LIMITS = {
    "apiVersion": "trimtab.dev/v1alpha1",
    "kind": "PodPolicy",
    "metadata": {"name": "no-limits"},
    "spec": {"actions": {"limits": {"cpu": "remove"}}},
}


def replica_set(cpu: str = "2") -> dict[str, Any]:
    containers = [{"name": "app", "image": "app:1", "resources": {"limits": {"cpu": cpu}, "requests": {"cpu": "1"}}}]
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web-1", "namespace": "shop"},
        "spec": {"replicas": 1, "template": template},
    }


def test_each_change_has_the_value_that_the_author_wrote_and_the_reason(tmp_path: Path) -> None:
    [change] = why(tmp_path, changed_pod(), replica_set(), NO_LIMITS, WEBHOOK)["changes"]
    assert (change["before"], change["value"]) == ("2", "removed")
    assert has_facts(change["why"], "policy removes", "limit")
    path = snapshot(tmp_path, changed_pod(), replica_set(), NO_LIMITS, WEBHOOK)
    assert "2 → removed" in trimtab("why", "pod", "shop/web-1-bcdfg", "--cluster", path).stdout


def test_a_policy_that_is_gone_explains_no_change_any_more(tmp_path: Path) -> None:
    [change] = why(tmp_path, changed_pod(), replica_set(), POLICY, WEBHOOK)["changes"]
    assert change["before"] is None
    assert has_facts(change["why"], "present policy", "not make")


def test_a_pod_that_is_gone_is_explained_by_decisions_and_by_another_pod_of_its_owner(tmp_path: Path) -> None:
    entry = HistoryEntry(
        at=NOW,
        pool="web",
        what="evicted",
        code="pod-evicted",
        why="w",
        pod="shop/web-1-zzzzz",
        node="n7",
        owner="ReplicaSet/web-1",
    )
    items = (changed_pod(), replica_set(), NO_LIMITS, WEBHOOK, state(entry))
    report = why(tmp_path, *items, name="shop/web-1-zzzzz")
    assert (report["exists"], report["owners"], report["node"]) == (False, ["ReplicaSet/web-1"], "n7")
    assert [one["what"] for one in report["decisions"]] == ["evicted"]
    assert report["changes"][0]["before"] == "2"
    assert has_facts(report["notes"], "web-1-bcdfg", "ReplicaSet/web-1")
    text = trimtab("why", "pod", "shop/web-1-zzzzz", "--cluster", snapshot(tmp_path, *items)).stdout
    assert has_facts(text, "not exist any more")


def test_a_pod_that_is_gone_is_found_by_its_name_and_what_is_not_known_is_said(tmp_path: Path) -> None:
    report = why(tmp_path, replica_set(), NO_LIMITS, WEBHOOK, name="shop/web-1-zzzzz")
    assert report["owners"] == ["ReplicaSet/web-1"]
    assert report["changes"] is None
    text = " ".join(report["notes"])
    assert has_facts(text, "No other pod", "ReplicaSet/web-1")
    assert has_facts(text, "No stored decision", "this pod")
    assert has_facts(text, "keeps Events", "an hour")


def test_equal_events_are_one_line_with_their_number_and_times() -> None:
    def event(at: int, message: str, reason: str = "FailedScheduling", **more: Any) -> dict[str, Any]:
        return {"reason": reason, "message": message, "lastTimestamp": f"2026-11-26T15:{at:02}:00Z", **more}

    items = [event(n, f"0/{n} nodes are available") for n in range(3, 30)]
    items.append(event(40, "last", firstTimestamp="2026-11-26T15:01:00Z", count=5))
    items += [event(2, "Pulled a", "Pulled", involvedObject={"fieldPath": f"spec.containers{{{n}}}"}) for n in "ab"]
    [first, second, failed] = collapse_events(json.dumps({"items": items}).encode())
    assert [first.reason, second.reason, first.count] == ["Pulled", "Pulled", 1]
    assert (failed.count, failed.note) == (32, "last")
    assert (failed.first[11:16], failed.at[11:16]) == ("15:01", "15:40")


def pending(item: dict[str, Any]) -> dict[str, Any]:
    return {**item, "status": {"phase": "Pending"}}


def test_a_pending_pod_has_a_verdict(tmp_path: Path) -> None:
    assert why(tmp_path, pod(), WEBHOOK)["pending"] == ""
    assert has_facts(why(tmp_path, pending(pod()), WEBHOOK)["pending"], "Pending", "Trimtab did not change")
    assert has_facts(why(tmp_path, pending(changed_pod()), WEBHOOK)["pending"], "neither its placement", "requests")
    text = trimtab("why", "pod", "web-1-bcdfg", "-n", "shop", "--cluster", snapshot(tmp_path, pending(pod()))).stdout
    assert has_facts(text, "Pending", "Trimtab did not change")


def test_a_pending_pod_is_the_successor_of_a_pod_that_the_compactor_evicted(tmp_path: Path) -> None:
    created = 1_793_577_600
    assert pod()["metadata"]["creationTimestamp"] == "2026-11-02T00:00:00Z"

    def verdict(seconds_before: int, **more: Any) -> Any:
        entry = HistoryEntry(
            at=created - seconds_before,
            pool="web",
            what="evicted",
            code="pod-evicted",
            why="w",
            pod="shop/web-1-older",
            owner="ReplicaSet/web-1",
            **more,
        )
        return why(tmp_path, pending(pod()), WEBHOOK, state(entry))["pending"]

    assert has_facts(verdict(60), "successor", "shop/web-1-older", "2026-11-01T23:59:00Z")
    for other in (verdict(3600), verdict(-60), verdict(60, rehearsed=True)):
        assert has_facts(other, "Trimtab did not change")


def test_a_placement_that_the_webhook_took_back_is_withheld_not_unpatched(tmp_path: Path) -> None:
    spot = {**POLICY, "spec": {"actions": {"placement": {"nodeSelector": {"pool": "spot"}}}}}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1", "labels": {"pool": "web"}},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }
    [finding] = why(tmp_path, pod(), spot, WEBHOOK, node)["findings"]
    assert (finding["what"], finding["reason"]["code"]) == ("withheld", "no-node-could-run-it")


@pytest.mark.parametrize("name", ["single-replica", "keep.headroom", "L35"])
def test_a_code_or_a_setting_is_explained_in_the_words_of_explain(name: str) -> None:
    why, explained = (trimtab(verb, name) for verb in ("why", "explain"))
    assert (why.exit_code, explained.exit_code) == (0, 0)
    assert why.output == explained.output


def test_a_word_that_is_neither_an_object_nor_a_code_is_a_mistake() -> None:
    result = trimtab("why", "no-such-code")
    assert result.exit_code == 2
    assert has_facts(result.output, "node", "pod")
