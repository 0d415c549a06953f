"""`plan --resize` and `simulate --resize`: what is freed if running pods shrink first."""

import hashlib
import json
from pathlib import Path
from typing import Any

from tests.cli.snapshots import config_map, snapshot, told, trimtab
from tests.cli.test_plan_policies import KEEN
from tests.cluster_of import Item, node, pod
from tests.reasons import has_facts

POLICY: Item = {
    "apiVersion": "trimtab.dev/v1alpha1",
    "kind": "PodPolicy",
    "metadata": {"name": "follow"},
    "spec": {"match": {"namespaces": {"include": ["team"]}}, "actions": {"requests": {"cpu": {"running": "resize"}}}},
}


def template(name: str) -> Item:
    container = {"name": "c", "image": "pause", "resources": {"requests": {"memory": "64Mi"}}}
    spec = {"replicas": 1, "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "team"},
        "spec": spec,
        "status": {"replicas": 1, "readyReplicas": 1},
    }


def recommendations(**p95: str) -> Item:
    workloads: dict[str, Any] = {
        f"team/ReplicaSet/{name}": {
            "c": {
                "cpu": {"p5": "10m", "p50": "50m", "p95": amount, "max": amount, "confidence": 1},
                "days": 14,
                "confidence": 1,
            }
        }
        for name, amount in p95.items()
    }
    checksum = hashlib.sha256(json.dumps(workloads, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    payload = json.dumps({"schema": 2, "checksum": checksum, "workloads": workloads})
    return config_map(
        "trimtab-recommendations-00",
        {"recommendations.json": payload},
        namespace="trimtab-system",
        labels={"trimtab.dev/recommendations": "v1"},
    )


def two_nodes(*more: Item) -> tuple[Item, ...]:
    """A pod of 600m on one node, one of 500m on another; both nodes have one core."""
    pods = [pod("x-1", "a", "600m", "64Mi", namespace="team"), pod("k-1", "b", "500m", "64Mi", namespace="team")]
    return (node("a", cpu="1"), node("b", cpu="1"), *pods, template("x"), template("k"), *more)


def report_of(tmp_path: Path, *more: Item, verb: str = "plan") -> dict[str, Any]:
    report: dict[str, Any] = told(verb, "--resize", "--cluster", snapshot(tmp_path, *two_nodes(*more)), *KEEN)
    return report


def test_a_plan_shows_what_is_freed_if_pods_shrink_first(tmp_path: Path) -> None:
    report = report_of(tmp_path, POLICY, recommendations(x="600m", k="200m"))
    assert report["evictions"] == 0
    resize = report["resize"]
    assert (resize["without"]["nodes"], resize["withResizes"]["nodes"]) == (0, 1)
    (only,) = resize["resizes"]
    assert (only["pod"], only["changes"], only["policies"]) == ("team/k-1", ["c cpu 500m → 200m"], ["follow"])
    assert only["frees"] in ("a", "b")
    assert has_facts(resize["text"], "1 pod", "shrinks", "1 node", "drained", 0)


def test_a_simulation_shows_it_too(tmp_path: Path) -> None:
    resize = report_of(tmp_path, POLICY, recommendations(x="600m", k="200m"), verb="simulate")["resize"]
    assert (resize["without"]["nodesAfter"], resize["withResizes"]["nodesAfter"]) == (2, 1)


def test_without_the_word_nothing_is_resized(tmp_path: Path) -> None:
    resize = report_of(tmp_path, recommendations(k="200m"))["resize"]
    assert has_facts(resize["text"], "No policy", "running: resize", "nothing is resized")


def test_without_the_option_nothing_is_said(tmp_path: Path) -> None:
    items = two_nodes(POLICY, recommendations(k="200m"))
    assert told("plan", "--cluster", snapshot(tmp_path, *items), *KEEN)["resize"] is None


def test_pods_that_are_not_resized_are_counted_by_reason(tmp_path: Path) -> None:
    hpa = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "k", "namespace": "team"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "k"}, "maxReplicas": 3},
    }
    resize = report_of(tmp_path, POLICY, recommendations(x="600m", k="200m"), hpa)["resize"]
    assert [(each["code"], each["pods"]) for each in resize["refusals"]] == [("resize-hpa-divides", ["team/k-1"])]


def test_the_table_names_the_resizes(tmp_path: Path) -> None:
    items = two_nodes(POLICY, recommendations(x="600m", k="200m"))
    result = trimtab("plan", "--resize", "--cluster", snapshot(tmp_path, *items), *KEEN)
    assert result.exit_code == 0, result.output
    assert has_facts(result.output, "team/k-1 on b", "c cpu", "500m → 200m")
    assert "with resizes" in result.output
