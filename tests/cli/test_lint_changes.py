"""`trimtab lint -f FILE --cluster SNAPSHOT`: what applying the file does to the cluster."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.report_runs import run_verb

CLUSTER = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: i, resources: {requests: {cpu: 100m}}}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: other, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: other}}
  template:
    metadata: {labels: {app: other}}
    spec: {containers: [{name: app, image: i, resources: {requests: {cpu: 100m}, limits: {cpu: 1}}}]}
"""
HPA = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 5
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}]
"""
UNREQUESTED = CLUSTER.split("---")[0].replace(", resources: {requests: {cpu: 100m}}", "").replace("  replicas: 3\n", "")


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    (tmp_path / "cluster.yaml").write_text(CLUSTER + "---" + HPA)
    return tmp_path / "cluster.yaml"


def lint(cluster: Path, text: str, *more: str) -> tuple[int, Any]:
    """The exit code and the report of a change."""
    change = cluster.with_name("change.yaml")
    change.write_text(text)
    result = run_verb("lint", "-f", change, "--cluster", cluster, *more, "-o", "json")
    return result.exit_code, json.loads(result.stdout)


def test_a_change_that_breaks_what_is_in_the_cluster_is_an_error_with_its_line(cluster: Path) -> None:
    """The Deployment of the file has no request any more, which the HPA of the cluster needs."""
    code, report = lint(cluster, UNREQUESTED)
    assert code == 1
    (error,) = (finding for finding in report["findings"] if finding["severity"] == "error")
    assert (error["rule"], error["kind"]) == ("L03", "HorizontalPodAutoscaler")
    assert not any(finding["name"] == "other" for finding in report["findings"])


def test_what_a_change_mends_is_gone(cluster: Path) -> None:
    fixed = CLUSTER.split("---")[1].replace(", limits: {cpu: 1}", "")
    code, report = lint(cluster, fixed)
    assert (code, report["findings"]) == (0, [])
    assert [(one["rule"], one["name"]) for one in report["comparison"]["gone"]] == [("L35", "other")]


def test_the_same_objects_change_nothing(cluster: Path) -> None:
    code, report = lint(cluster, CLUSTER + "---" + HPA)
    assert (code, report["findings"], report["comparison"]["gone"]) == (0, [], [])
    assert report["comparison"]["same"] > 0


def test_a_new_object_has_its_file_and_line(cluster: Path) -> None:
    limited = CLUSTER.split("---")[1].replace("other", "third")
    _, report = lint(cluster, limited)
    (finding,) = (one for one in report["findings"] if one["rule"] == "L35")
    assert (Path(finding["file"]).name, finding["line"]) == ("change.yaml", 10)


def test_a_count_that_the_manifest_does_not_set_stays_that_of_the_cluster(cluster: Path) -> None:
    """Otherwise the Deployment would have one replica, and other rules would find it."""
    vpa = (
        "---\napiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\nmetadata: {name: o, namespace: shop}\n"
        "spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: other}}\n"
    )
    _, report = lint(cluster, CLUSTER.split("---")[1].replace("  replicas: 3\n", "") + vpa, "--only", "L26")
    assert report["findings"] == []


def test_a_fix_needs_to_know_what_to_write(cluster: Path) -> None:
    answer = run_verb("lint", "-f", cluster, "--cluster", cluster, "--fix", cluster.parent / "fixed")
    assert (answer.exit_code, "--fix" in answer.stderr) == (2, True)
