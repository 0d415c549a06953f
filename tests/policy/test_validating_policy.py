"""The manifests for policies with a required action, and the parts that CEL cannot express."""

import pytest

from tests.build import policies, policy
from trimtab.policy.validating_policy import compile_validating_policy

TEAM = "{namespaces: {include: ['team-*'], exclude: [team-x]}}"


def compiled(actions="{runtimeClass: {name: kata, required: true}}", *, match=TEAM, enforce=False, **spec):
    spec = {"optOut": "nobody", **spec}
    return compile_validating_policy(
        policies(policy(actions, name="sandbox", match=match, **spec)).all[0], enforce=enforce
    )


def test_a_policy_and_its_binding_that_only_warns():
    built, binding = compiled().manifests
    assert built["spec"]["matchConstraints"]["resourceRules"][0]["operations"] == ["CREATE"]
    assert built["spec"]["validations"] == [
        {
            "expression": 'has(object.spec.runtimeClassName) && object.spec.runtimeClassName == "kata"',
            "message": "sandbox requires runtimeClassName of the pod, but the pod lacks it. `trimtab explain required` "
            "says what to do",
        }
    ]
    assert binding["spec"] == {"policyName": built["metadata"]["name"], "validationActions": ["Warn", "Audit"]}


def test_to_enforce_is_to_deny():
    assert compiled(enforce=True).manifests[1]["spec"]["validationActions"] == ["Deny"]
    # By this label the command lists and removes them.
    assert {manifest["metadata"]["labels"]["trimtab.dev/policy"] for manifest in compiled().manifests} == {"sandbox"}


def conditions(**given):
    return [result["expression"] for result in compiled(**given).manifests[0]["spec"]["matchConditions"]]


def test_the_same_namespaces_are_meant():
    assert 'request.namespace.matches("^(team\\\\-.*)$")' in conditions()
    assert '!request.namespace.matches("^(team\\\\-x)$")' in conditions()


@pytest.mark.parametrize(("opt_out", "count"), [("nobody", 0), ("namespace", 1), ("pod", 1)])
def test_a_namespace_that_may_opt_out_is_spared(opt_out, count):
    [result] = compiled(optOut=opt_out).manifests[0]["spec"]["validations"]
    assert ("opt-out" in result["expression"]) is bool(count)


@pytest.mark.parametrize(
    ("match", "spec", "where"),
    [
        (TEAM, {"rollout": "50%"}, "spec.rollout"),
        (TEAM, {"mode": "warn"}, "spec.mode"),
        ("{namespaces: {include: [a]}, runtimeClasses: [none]}", {}, "spec.match.runtimeClasses"),
        ("{namespaces: {include: [a]}, hpa: utilization}", {}, "spec.match.hpa"),
        ("{namespaces: {include: [a]}, containers: {roles: [init]}}", {}, "spec.match.containers.roles"),
        ("{namespaces: {include: [a]}, exclude: [{podSelector: {matchLabels: {a: b}}}]}", {}, "spec.match.exclude[0]"),
    ],
)
def test_what_cel_cannot_say_of_a_match_is_named(match, spec, where):
    assert compiled(match=match, **spec).problem.startswith(f"{where}: ")


@pytest.mark.parametrize(
    ("actions", "where"),
    [
        ("{limits: {cpu: keep, required: true}}", "spec.actions.limits.cpu"),
        ("{overhead: {required: true}}", "spec.actions.overhead"),
        ("{requests: {cpu: {otherwise: 1m}, required: true}}", "spec.actions.requests"),
        ("{placement: {tolerate: [{key: a}], required: true}}", "spec.actions.placement.tolerate"),
    ],
)
def test_what_cel_cannot_say_of_an_action_is_named(actions, where):
    assert compiled(actions).problem.startswith(f"{where}: ")
