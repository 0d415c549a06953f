"""`trimtab admit --running` as its users call it."""

import json
from pathlib import Path
from typing import Any

import yaml

from tests.cli.snapshots import snapshot, told, trimtab
from tests.reasons import has_facts

POLICY = {
    "apiVersion": "trimtab.dev/v1alpha1",
    "kind": "PodPolicy",
    "metadata": {"name": "sizes", "creationTimestamp": "2026-11-01T00:00:00Z"},
    "spec": {"actions": {"requests": {"cpu": {"from": "policy", "otherwise": "50m"}}}},
}
WEBHOOK = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "MutatingWebhookConfiguration",
    "metadata": {"name": "trimtab", "creationTimestamp": "2026-01-01T00:00:00Z"},
}


def pod(name: str = "web-1-bcdfg", created: str = "2026-11-02T00:00:00Z", **spec: Any) -> dict[str, Any]:
    meta = {
        "name": name,
        "generateName": "web-1-",
        "namespace": "shop",
        "creationTimestamp": created,
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "controller": True}],
    }
    containers = [{"name": "app", "image": "app:1"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": containers, **spec},
        "status": {"phase": "Running"},
    }


def findings(*items: dict[str, Any], folder: Path) -> list[tuple[str, str, str, int]]:
    report = told("admit", "--cluster", snapshot(folder, *items), "--running")
    return [(f["what"], f["policy"], f["reason"]["code"], f["pods"]) for f in report["findings"]]


def test_pods_the_webhook_missed_are_named_with_what_they_lack(tmp_path: Path) -> None:
    report = told("admit", "--cluster", snapshot(tmp_path, pod(), POLICY, WEBHOOK), "--running")
    [finding] = report["findings"]
    assert (finding["owner"], finding["names"]) == ("ReplicaSet/web-1", ["web-1-bcdfg"])
    assert finding["reason"]["code"] == "missed-by-webhook"
    assert has_facts(finding["reason"]["text"], "Trimtab was paused")
    assert [(c["field"], c["after"]) for c in finding["changes"]] == [("containers[app].requests.cpu", "50m")]
    assert [(p["policy"], p["matched"], p["unpatched"]) for p in report["policies"]] == [("sizes", 1, 1)]


def test_pods_are_told_by_the_value_of_an_annotation(tmp_path: Path) -> None:
    spec = {**POLICY["spec"], "match": {"annotations": {"example.com/class": "low"}}}  # type: ignore[dict-item]
    low, high = pod("web-1-bbbbb"), pod("web-1-ccccc")
    low["metadata"]["annotations"] = {"example.com/class": "low"}
    high["metadata"]["annotations"] = {"example.com/class": "high"}
    actual_findings = findings(low, high, {**POLICY, "spec": spec}, WEBHOOK, folder=tmp_path)
    assert actual_findings == [("unpatched", "sizes", "missed-by-webhook", 1)]


def test_pods_from_before_the_policy_are_told_apart(tmp_path: Path) -> None:
    old = pod("web-1-zzzzz", created="2026-10-01T00:00:00Z")
    assert findings(pod(), old, POLICY, WEBHOOK, folder=tmp_path) == [
        ("unpatched", "sizes", "missed-by-webhook", 1),
        ("unpatched", "sizes", "created-before-policy", 1),
    ]


def test_policies_named_count_before_the_clusters(tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(yaml.safe_dump({**POLICY, "metadata": {"name": "other"}}))
    report = told("admit", "--cluster", snapshot(tmp_path, pod(), POLICY), "--running", "--policies", other)
    assert [f["policy"] for f in report["findings"]] == ["other"]


def test_without_policies_in_the_cluster_the_recommended_ones_are_taken_and_that_is_said(tmp_path: Path) -> None:
    report = told("admit", "--cluster", snapshot(tmp_path, pod(), WEBHOOK), "--running")
    assert "recommended" in report["notes"][0]


def test_overhead_that_is_not_the_classs(tmp_path: Path) -> None:
    kata = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "handler": "kata",
        "metadata": {"name": "kata", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "overhead": {"podFixed": {"cpu": "500m"}},
    }
    stale = pod(runtimeClassName="kata", overhead={"cpu": "250m"})
    assert ("overhead", "", "overhead-stale", 1) in findings(stale, kata, POLICY, WEBHOOK, folder=tmp_path)


def test_a_missing_overhead_shows_a_wrong_setting(tmp_path: Path) -> None:
    kata = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "handler": "kata",
        "metadata": {"name": "kata", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "overhead": {"podFixed": {"cpu": "500m"}},
    }
    where = snapshot(tmp_path, pod(runtimeClassName="kata"), kata, POLICY, WEBHOOK)
    report = told("admit", "--cluster", where, "--running")
    assert report["overhead"]["filledBy"] == "webhook"
    assert report["overhead"]["wrong"]["code"] == "overhead-setting-wrong"
    assert told("admit", "--cluster", where, "--running", "--overhead", "webhook")["overhead"]["wrong"] is None


def test_the_table_says_how_many_lack_what(tmp_path: Path) -> None:
    result = trimtab("admit", "--cluster", snapshot(tmp_path, pod(), POLICY, WEBHOOK), "--running")
    assert has_facts(result.output, "1 of 1", "running pod lacks")
    assert "sizes" in result.output


def test_strict_exits_with_one_where_something_is_lacking(tmp_path: Path) -> None:
    lacking, well = (snapshot(tmp_path, *items, WEBHOOK) for items in ((pod(), POLICY), (POLICY,)))
    assert trimtab("admit", "--cluster", lacking, "--running", "--strict").exit_code == 1
    assert trimtab("admit", "--cluster", well, "--running", "--strict").exit_code == 0


def test_what_is_asked_must_make_sense(tmp_path: Path) -> None:
    where = snapshot(tmp_path, pod(), POLICY)
    for arguments, expected in (
        (("--running",), "expected --cluster together with --running"),
        (("--running", "--cluster", where, "-f", where), "expected --filename or --running"),
        (("--cluster", where), "expected --filename FILE, or --running"),
    ):
        result = trimtab("admit", *arguments)
        assert result.exit_code == 2
        assert expected in result.output


def test_a_broken_policy_of_the_cluster_is_told_and_left_out(tmp_path: Path) -> None:
    broken = json.loads(json.dumps(POLICY).replace("50m", "much"))
    report = told("admit", "--cluster", snapshot(tmp_path, pod(), broken, WEBHOOK), "--running")
    assert any(has_facts(note, "invalid policy") for note in report["notes"])
