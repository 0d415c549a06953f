"""What is true of an HPA is true of the HPA that KEDA creates, and of an HPA of every API version."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.report_runs import read_report, run_verb
from tests.reasons import has_facts

WORKLOAD = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: i, resources: {requests: {cpu: 100m}}}]}
---
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
---
"""
SCALED = """
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {name: web}
  triggers: [{type: cpu, metricType: Utilization, metadata: {value: "60"}}]
"""
OLD = """
apiVersion: autoscaling/v2beta1
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 5
  metrics: [{type: Resource, resource: {name: cpu, targetAverageUtilization: 60}}]
"""
V1 = """
apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxReplicas: 5}
"""
HALVE = """
apiVersion: trimtab.dev/v1alpha1
kind: PodPolicy
metadata: {name: halve}
spec:
  match: {hpa: unaffected}
  actions: {requests: {cpu: {from: request, percent: 50, when: always}}}
"""
AUTOSCALERS = pytest.mark.parametrize("autoscaler", [SCALED, OLD, V1], ids=["keda", "v2beta1", "v1"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "policy.yaml").write_text(HALVE)
    return tmp_path


def lint(file: Path) -> Any:
    """The report of the file; lint ends with 1 if there is an error."""
    return json.loads(run_verb("lint", "-f", file, "-o", "json").stdout)


@AUTOSCALERS
def test_lint_sees_the_hpa_beside_the_vpa(folder: Path, autoscaler: str) -> None:
    (folder / "m.yaml").write_text(WORKLOAD + autoscaler)
    assert "L01" in {finding["rule"] for finding in lint(folder / "m.yaml")["findings"]}


@AUTOSCALERS
def test_a_policy_for_pods_without_an_hpa_leaves_the_request(folder: Path, autoscaler: str) -> None:
    (folder / "m.yaml").write_text(WORKLOAD + autoscaler)
    report = read_report("admit", "-f", folder / "m.yaml", "--policies", folder / "policy.yaml")
    assert report["pods"][0]["changes"] == []
    assert not any("whether they create pods" in note for note in report["notes"])


def test_the_fix_does_not_write_an_hpa_that_keda_would_write_anew(folder: Path) -> None:
    (folder / "m.yaml").write_text(WORKLOAD + SCALED)
    run_verb("lint", "-f", folder / "m.yaml", "--fix", folder / "fixed")
    assert (folder / "fixed" / "m.yaml").read_text().endswith(SCALED)


def test_objects_that_no_rule_reads_are_named(folder: Path) -> None:
    (folder / "m.yaml").write_text(WORKLOAD + "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n")
    assert has_facts(json.dumps(lint(folder / "m.yaml")["notes"]), "not read", "Secret (1)")


SEVERAL = SCALED.replace("  triggers:", "  minReplicaCount: 3\n  idleReplicaCount: 0\n  triggers:")


@pytest.mark.parametrize(("keda", "says"), [(SEVERAL, True), (SEVERAL.replace("  idleReplicaCount: 0\n", ""), False)])
def test_an_idle_count_is_said_beside_the_minimum(tmp_path: Path, keda: str, says: bool) -> None:
    (tmp_path / "all.yaml").write_text(WORKLOAD + keda)
    findings = lint(tmp_path / "all.yaml")["findings"]
    (sentence,) = [finding["sentence"] for finding in findings if finding["rule"] == "L29"]
    assert has_facts(sentence, "at least 3 replicas", "minimum")
    assert has_facts(sentence, "none otherwise") is says
