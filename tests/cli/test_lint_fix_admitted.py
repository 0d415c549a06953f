"""What `trimtab lint --fix` writes is admitted by the API server, and a second run leaves it alone."""

import json
from pathlib import Path

import pytest

from tests.cli.report_runs import run_verb

MANIFESTS = """
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: shop}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {pod}
---
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {{name: web, namespace: shop}}
spec:
  targetRef: {{apiVersion: apps/v1, kind: Deployment, name: web}}
  updatePolicy: {{updateMode: Recreate}}
  resourcePolicy: {{containerPolicies: [{policy}]}}
"""
SMALL = "{containers: [{name: app, image: i, resources: {requests: {memory: 100Mi}, limits: {memory: 200Mi}}}]}"
EQUAL = "{containers: [{name: app, image: i, resources: {limits: {memory: 100Mi, cpu: 5m}}}]}"
WHOLE_POD = (
    "{resources: {requests: {memory: 150Mi}, limits: {memory: 220Mi}}, "
    "containers: [{name: app, image: i, resources: {requests: {memory: 100Mi}}}]}"
)
SIDECAR = (
    "{initContainers: [{name: s, image: i, restartPolicy: Always, resources: {requests: {cpu: 1m}}}], "
    "containers: [{name: app, image: i, resources: {requests: {cpu: 1m, memory: 1Mi}, limits: {cpu: 2m}}}]}"
)
LARGE_MINIMUM = "{containerName: app, minAllowed: {memory: 1Gi, cpu: 2}}"


def errors_of(folder: Path) -> list[str]:
    """What the API server says against the pods, without Trimtab."""
    pods = json.loads(run_verb("admit", "-f", folder, "-o", "json").stdout)["pods"]
    return [pod["refusedWithoutUs"]["message"] for pod in pods if pod["refusedWithoutUs"]]


@pytest.mark.parametrize("pod", [SMALL, EQUAL, WHOLE_POD, SIDECAR], ids=["small", "equal", "whole-pod", "sidecar"])
@pytest.mark.parametrize(
    "policy",
    ["", "{containerName: '*', controlledValues: RequestsOnly}", LARGE_MINIMUM],
    ids=["default", "requests-only", "minimum"],
)
@pytest.mark.parametrize("rules", [(), ("--only", "L18")], ids=["all", "L18"])
def test_a_fix_is_admitted_and_final(tmp_path: Path, pod: str, policy: str, rules: tuple[str, ...]) -> None:
    (tmp_path / "m.yaml").write_text(MANIFESTS.format(pod=pod, policy=policy))
    run_verb("lint", "-f", tmp_path / "m.yaml", *rules, "--fix", tmp_path / "fixed")
    if not (tmp_path / "fixed" / "m.yaml").exists():
        return  # The API server would refuse each fix, so there is none.
    assert errors_of(tmp_path / "fixed") == []
    second_result = run_verb("lint", "-f", tmp_path / "fixed", *rules, "--fix", tmp_path / "again")
    assert "Wrote 0 files" in second_result.stderr


def test_a_vpa_that_scales_limits_keeps_their_ratio_to_the_request(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(MANIFESTS.format(pod=SMALL, policy=""))
    run_verb("lint", "-f", tmp_path / "m.yaml", "--only", "L18", "--fix", tmp_path / "fixed")
    assert "{requests: {memory: 250Mi}, limits: {memory: 500Mi}}" in (tmp_path / "fixed" / "m.yaml").read_text()


def test_a_vpa_of_requests_only_is_bound_by_the_limit(tmp_path: Path) -> None:
    policy = "{containerName: '*', controlledValues: RequestsOnly}"
    (tmp_path / "m.yaml").write_text(MANIFESTS.format(pod=SMALL, policy=policy))
    run_verb("lint", "-f", tmp_path / "m.yaml", "--only", "L18", "--fix", tmp_path / "fixed")
    assert "{requests: {memory: 200Mi}, limits: {memory: 200Mi}}" in (tmp_path / "fixed" / "m.yaml").read_text()
