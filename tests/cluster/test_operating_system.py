"""One function decides whether a pod runs on Windows, and everything that depends on it asks this function."""

import json
from typing import Any

import msgspec
import pytest

from tests.build import admission_context, changed, codes, facts, policies, policy, review, runtime_class
from tests.windows_specs import NOT_ON_WINDOWS, ON_WINDOWS
from trimtab.admission.handler import answer_review
from trimtab.autoscaling.lint import check_snapshot
from trimtab.autoscaling.read_snapshot import read_lint_snapshot
from trimtab.autoscaling.rules import RULES_BY_CODE
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.operating_system import runs_on_windows
from trimtab.cluster.resizable_pod import read_resizable_pods
from trimtab.cluster.yaml_documents import read_documents

AMOUNTS = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "2Gi"}}
NO_LIMITS = policies(policy("{limits: {cpu: remove, memory: remove}}"))
HOST_PROCESS = {"securityContext": {"windowsOptions": {"hostProcess": True}}}
WORLDS = [
    *(pytest.param(spec, True, id=f"windows-{name}") for name, spec in ON_WINDOWS.items()),
    *(pytest.param(spec, False, id=f"other-{name}") for name, spec in NOT_ON_WINDOWS.items()),
]


def manifest(spec: dict[str, Any], **container: Any) -> dict[str, Any]:
    app = {"name": "app", "image": "registry.example.com/pay:1", "resources": AMOUNTS, **container}
    return {"metadata": {"name": "pay"}, "spec": {**spec, "containers": [app]}}


def is_windows(spec: dict[str, Any], **container: Any) -> bool:
    return runs_on_windows(msgspec.convert(manifest(spec, **container), Pod).spec)


def rules_about_limits(*manifests: dict[str, Any]) -> set[str]:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)})
    snapshot = read_lint_snapshot(read_documents("web.json", text.encode()).documents).snapshot
    findings = check_snapshot(snapshot, [RULES_BY_CODE[code] for code in ("L35", "L36")]).findings
    return {finding.rule for finding in findings}


def deployment(spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "pay"},
        "spec": {"template": manifest(spec)},
    }


@pytest.mark.parametrize(("spec", "expected"), WORLDS)
def test_what_says_that_a_pod_runs_on_windows(spec: dict[str, Any], expected: bool) -> None:
    assert is_windows(spec) is expected


def test_a_container_that_is_a_process_of_the_host_runs_on_windows() -> None:
    assert (is_windows({}, **HOST_PROCESS), is_windows({}, securityContext={"privileged": True})) == (True, False)


def test_a_template_whose_class_selects_windows_runs_there() -> None:
    spec = msgspec.convert(manifest({"runtimeClassName": "windows"}), Pod).spec
    assert (runs_on_windows(spec, {"kubernetes.io/os": "windows"}), runs_on_windows(spec)) == (True, False)


@pytest.mark.parametrize(("spec", "expected"), WORLDS)
def test_a_policy_removes_no_limit_on_windows(spec: dict[str, Any], expected: bool) -> None:
    record = answer_review(review(manifest(spec)), admission_context(NO_LIMITS, facts())).record
    assert record is not None
    assert record.decision is not None
    assert ("windows-pod" in codes(record.decision), bool(changed(record.decision))) == (expected, not expected)


def test_a_policy_sees_that_a_container_is_a_process_of_the_host() -> None:
    record = answer_review(review(manifest({}, **HOST_PROCESS)), admission_context(NO_LIMITS, facts())).record
    assert record is not None
    assert record.decision is not None
    assert (codes(record.decision), changed(record.decision)) == ({"windows-pod"}, {})


def test_a_required_removal_holds_on_windows_too() -> None:
    required = policies(
        policy("{limits: {memory: remove, required: true}}", match="{namespaces: {include: ['team-*']}}")
    )
    record = answer_review(review(manifest(ON_WINDOWS["os"])), admission_context(required, facts())).record
    assert record is not None
    assert record.decision is not None
    assert changed(record.decision) == {"containers[app].limits.memory": None}


def test_a_class_that_selects_windows_is_known_to_a_policy() -> None:
    known = facts(runtime_class("windows", node_selector={"kubernetes.io/os": "windows"}))
    record = answer_review(
        review(manifest({"runtimeClassName": "windows"})), admission_context(NO_LIMITS, known)
    ).record
    assert record is not None
    assert record.decision is not None
    assert (codes(record.decision), changed(record.decision)) == ({"windows-pod"}, {})


@pytest.mark.parametrize(("spec", "expected"), WORLDS)
def test_no_pod_on_windows_is_resized(spec: dict[str, Any], expected: bool) -> None:
    [pod] = read_resizable_pods([msgspec.convert(manifest({**spec, "nodeName": "n"}), Pod)])
    assert bool(pod.obstacle) is expected


@pytest.mark.parametrize(("spec", "expected"), WORLDS)
def test_no_rule_advises_to_remove_a_limit_on_windows(spec: dict[str, Any], expected: bool) -> None:
    assert rules_about_limits(deployment(spec)) == (set() if expected else {"L35", "L36"})


def test_no_rule_advises_to_remove_a_limit_of_a_class_for_windows() -> None:
    windows = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "windows"},
        "handler": "x",
        "scheduling": {"nodeSelector": {"kubernetes.io/os": "windows"}},
    }
    assert rules_about_limits(deployment({"runtimeClassName": "windows"}), windows) == set()
