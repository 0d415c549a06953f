"""`trimtab policies list --cluster`: the cluster's own policies, and what its API server evaluates itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.build import policies, policy
from tests.cli.snapshots import snapshot, told, trimtab
from tests.reasons import has_facts
from trimtab.policy.compiled.mutating_policy import compile_mutating_policy
from trimtab.policy.validating_policy import compile_validating_policy

ACTIONS = "{labels: {add: {cost: low}, required: true}}"


def document(name: str, **spec: Any) -> dict[str, Any]:
    spec = {"actions": {"limits": {"cpu": "remove"}}, **spec}
    return {"apiVersion": "trimtab.dev/v1alpha1", "kind": "PodPolicy", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    source = policies(policy(ACTIONS, name="cost", match="{namespaces: {include: [shop]}}")).all[0]
    enforced = compile_validating_policy(source, enforce=True).manifests
    mutating, _binding = compile_mutating_policy(source).manifests
    return snapshot(tmp_path, document("b", priority=1), document("a", priority=9), *enforced, mutating)


def test_the_policies_of_a_cluster_are_listed_in_the_order_in_which_they_decide(cluster: Path) -> None:
    assert [one["name"] for one in told("policies", "list", "--cluster", cluster)["policies"]] == ["a", "b"]


def test_compiled_policies_are_listed_with_what_they_do(cluster: Path) -> None:
    compiled = told("policies", "list", "--cluster", cluster)["compiled"]
    assert [(one["kind"], one["policy"], one["bound"], one["denies"]) for one in compiled] == [
        ("MutatingAdmissionPolicy", "cost", False, False),
        ("ValidatingAdmissionPolicy", "cost", True, True),
    ]
    text = trimtab("policies", "list", "--cluster", cluster).stdout
    assert "denies pods" in text
    assert has_facts(text, "nothing", "no binding")
    names = trimtab("policies", "list", "--cluster", cluster, "-o", "name").stdout.split()
    assert names[-1] == "validatingadmissionpolicy/trimtab-requires-cost"


def test_a_policy_with_a_mistake_is_named_and_left_out(tmp_path: Path) -> None:
    result = trimtab("policies", "list", "--cluster", snapshot(tmp_path, document("a"), document("b", mode="aply")))
    assert result.exit_code == 0
    assert has_facts(result.stderr, "invalid policy", "PodPolicy b spec.mode")
    assert "did you mean 'apply'?" in result.stderr


def test_files_and_a_cluster_are_not_listed_together(cluster: Path) -> None:
    result = trimtab("policies", "list", cluster, "--cluster", cluster)
    assert (result.exit_code, has_facts(result.stderr, "PATH", "policies", "--cluster")) == (2, True)


@pytest.mark.parametrize("name", ["Trimtab", "a/b", "a\nb", "-", "x" * 64])
def test_parameters_are_read_from_a_namespace_that_can_exist(tmp_path: Path, name: str) -> None:
    result = trimtab("policies", "compile", "--to", "mutatingadmissionpolicy", f"--params-namespace={name}", tmp_path)
    assert result.exit_code == 2
    assert has_facts(result.output, "--params-namespace")
