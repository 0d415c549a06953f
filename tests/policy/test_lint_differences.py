"""Policies of equal priority that want different values are found for every action."""

from dataclasses import fields

import pytest
from pydantic.alias_generators import to_camel

from tests.build import policies, policy
from tests.policy.test_every_action import EXAMPLES
from trimtab.policy.lint import lint
from trimtab.policy.podpolicy import Actions

OTHERS = {
    "runtime_class": "{name: kata}",
    "overhead": "{stray: deny}",
    "requests": "{cpu: {from: policy, otherwise: 60m}}",
    "limits": "{cpu: keep}",
    "pod_level_requests": "{cpu: {rule: p99}}",
    "placement": "{nodeSelector: {pool: spot}}",
    "safe_to_evict_volumes": "{volumes: [scratch]}",
    "disruption_terms": "{cost: 30}",
    "priority_class": "{name: low}",
    "topology_spread": "{constraints: [{topologyKey: zone, maxSkew: 3}]}",
    "scheduler_name": "{name: other, lease: none}",
    "termination_grace_period": "{maxSeconds: 90}",
    "empty_dirs": "{sizeLimit: 2Gi}",
    "labels": "{add: {team: b}}",
    "annotations": "{add: {team: b}}",
}
"""Field of `Actions` → settings that want another value than the example of that action."""


def conflicts(action: str, a: str, b: str) -> list[str]:
    two = policies(policy(f"{{{action}: {a}}}", name="a"), policy(f"{{{action}: {b}}}", name="b"))
    return [one.reason.sentence for one in lint(two) if one.reason.code.name == "policies-conflict"]


def test_every_action_has_settings_that_conflict() -> None:
    names = {field.name for field in fields(Actions)}
    assert OTHERS.keys() == names, f"add other settings to OTHERS: {names ^ OTHERS.keys()}"


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_two_policies_that_want_different_values_are_found(name: str) -> None:
    assert len(conflicts(to_camel(name), EXAMPLES[name], OTHERS[name])) == 1
    assert conflicts(to_camel(name), EXAMPLES[name], EXAMPLES[name]) == []


@pytest.mark.parametrize(
    ("action", "a", "b"),
    [
        ("requests", "{cpu: {otherwise: 1}}", "{containers: [{names: [proxy], cpu: {otherwise: 2}}]}"),
        (
            "requests",
            "{containers: [{names: ['istio-*'], cpu: {otherwise: 1}}]}",
            "{containers: [{names: [istio-proxy], cpu: {otherwise: 2}}]}",
        ),
        ("labels", "{fromNamespace: {team: team}}", "{add: {team: b}}"),
        ("placement", "{prefer: [{label: a, exists: true, weight: 1}]}", "{prefer: [{label: a, exists: true}]}"),
        (
            "placement",
            "{tolerate: [{key: a, effect: NoExecute, seconds: 5}]}",
            "{tolerate: [{key: a, effect: NoExecute}]}",
        ),
        ("emptyDirs", "{sizeLimit: 1Gi, medium: [Memory]}", "{sizeLimit: 2Gi}"),
        ("terminationGracePeriod", "{minSeconds: 10}", "{maxSeconds: 60}"),
    ],
)
def test_less_obvious_conflicts_are_found(action: str, a: str, b: str) -> None:
    assert len(conflicts(action, a, b)) == 1


@pytest.mark.parametrize(
    ("action", "a", "b"),
    [
        (
            "requests",
            "{containers: [{names: [app], cpu: {otherwise: 1}}]}",
            "{containers: [{names: [proxy], cpu: {otherwise: 2}}]}",
        ),
        (
            "requests",
            "{containers: [{roles: [init], cpu: {otherwise: 1}}]}",
            "{containers: [{roles: [main], cpu: {otherwise: 2}}]}",
        ),
        ("requests", "{cpu: {otherwise: 1}}", "{containers: [{names: [proxy], memory: {otherwise: 2Gi}}]}"),
        ("emptyDirs", "{sizeLimit: 1Gi, medium: [Memory]}", "{sizeLimit: 2Gi, medium: [disk]}"),
        ("overhead", "{stray: warn}", "{stray: strip}"),
        ("placement", "{prefer: [{label: a, exists: true}]}", "{prefer: [{label: b, exists: true}]}"),
    ],
)
def test_settings_that_do_not_touch_each_other_are_no_conflict(action: str, a: str, b: str) -> None:
    assert conflicts(action, a, b) == []
