"""Requests that replace the author's, compiled: where their parameters must be, and what is refused by name."""

import pytest

from tests.build import policies, policy
from trimtab.policy.compiled.mutating_policy import CompiledMutation, compile_mutating_policy

ALWAYS = "{requests: {cpu: {from: usage, when: always}}}"


def compiled(actions: str, *, with_parameters: bool = True, own: str = "") -> CompiledMutation:
    one = policies(policy(actions, name="one")).all[0]
    return compile_mutating_policy(one, (one,), with_parameters=with_parameters, parameters_namespace=own)


def test_usage_replaces_a_request_only_with_parameters_where_no_tenant_writes() -> None:
    assert compiled(ALWAYS).problem.startswith("spec.actions.requests.cpu.when: ")
    assert "--params-namespace" in compiled(ALWAYS).problem
    mutating, binding = compiled(ALWAYS, own="trimtab-system").manifests
    assert binding["spec"]["paramRef"] == {
        "namespace": "trimtab-system",
        "selector": {"matchLabels": {"trimtab.dev/parameters": "v1"}},
        "parameterNotFoundAction": "Allow",
    }
    first = mutating["spec"]["matchConditions"][0]["expression"]
    assert "trimtab-requests." in first
    assert first.endswith("+ request.namespace")


def test_a_policy_that_reads_no_parameters_has_none_in_either_place() -> None:
    (mutating, binding) = compiled("{labels: {add: {team: a}}}", own="trimtab-system").manifests
    assert "paramKind" not in mutating["spec"]
    assert "paramRef" not in binding["spec"]


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        ("from: usage, when: always, minPercent: 50%", "minPercent"),
        ("from: usage, when: always, maxPercent: 100%", "maxPercent"),
        ("from: usage, when: always, minConfidence: 0.7", "minConfidence"),
        ("from: limit, percent: 50%, when: always", "from"),
        ("from: usage, when: always, round: 10m", "round"),
    ],
)
def test_what_the_parameters_do_not_hold_is_refused_by_name(rule: str, field: str) -> None:
    problem = compiled(f"{{requests: {{cpu: {{{rule}}}}}}}", own="trimtab-system").problem
    assert problem.startswith(f"spec.actions.requests.cpu.{field}: ")


def test_a_fixed_number_needs_no_parameters_of_usage() -> None:
    fixed = "{requests: {cpu: {from: policy, otherwise: 50m, when: always}}}"
    assert compiled(fixed).problem == ""
    assert compiled(fixed, with_parameters=False).problem != ""
