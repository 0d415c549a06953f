"""Every action of the language is described, compiled or refused, and checked: none is left out in silence."""

from dataclasses import fields

import pytest
from pydantic.alias_generators import to_camel

from tests.build import policies, policy
from trimtab.cli.policies.describe import describe_actions
from trimtab.policy.actions import empty_dirs
from trimtab.policy.actions.action import Action
from trimtab.policy.all_actions import ACTIONS
from trimtab.policy.compiled.mutating_policy import compile_mutating_policy
from trimtab.policy.podpolicy import Actions
from trimtab.policy.validating_policy import compile_validating_policy

EXAMPLES = {
    "runtime_class": "{name: gvisor}",
    "overhead": "{stray: strip}",
    "requests": "{cpu: {from: policy, otherwise: 50m}}",
    "limits": "{cpu: remove}",
    "pod_level_requests": "{cpu: {rule: p95}}",
    "placement": "{nodeSelector: {pool: batch}}",
    "safe_to_evict_volumes": "{volumes: [cache]}",
    "disruption_terms": "{cost: 20, windows: sat 02:00-06:00}",
    "priority_class": "{name: batch}",
    "topology_spread": "{constraints: [{topologyKey: zone}]}",
    "scheduler_name": "{name: packing, lease: none}",
    "termination_grace_period": "{maxSeconds: 60}",
    "empty_dirs": "{sizeLimit: 1Gi}",
    "labels": "{add: {team: a}}",
    "annotations": "{add: {team: a}}",
}
"""Field of `Actions` → settings that change a pod. A new action needs an example here."""

NOT_COMPILED = {"priority_class", "pod_level_requests"}

EACH_ACTION = pytest.mark.parametrize("name", sorted(EXAMPLES))


def of_action(name: str):
    return policies(policy(f"{{{to_camel(name)}: {EXAMPLES[name]}}}", name="one")).all[0]


def test_every_action_has_an_example_and_changes_pods() -> None:
    names = {field.name for field in fields(Actions)}
    assert EXAMPLES.keys() == names, f"add an example to EXAMPLES: {names ^ EXAMPLES.keys()}"
    assert names == {action.name for action in ACTIONS}, "add YOURS.ACTION to trimtab/policy/all_actions.py"


@EACH_ACTION
def test_an_action_is_described(name: str) -> None:
    assert describe_actions(of_action(name)) != []


@EACH_ACTION
def test_an_action_is_compiled_or_the_report_names_it(name: str) -> None:
    one = of_action(name)
    compiled = compile_mutating_policy(one, (one,), with_parameters=True)
    if name in NOT_COMPILED:
        assert compiled.problem.startswith(f"spec.actions.{to_camel(name)}: ")
    else:
        assert (len(compiled.manifests), compiled.problem) == (2, "")


@pytest.mark.parametrize("part", [field.name for field in fields(Action)])
def test_an_action_without_one_of_its_parts_cannot_be_made(part: str) -> None:
    parts = {field.name: getattr(empty_dirs.ACTION, field.name) for field in fields(Action)}
    del parts[part]
    with pytest.raises(TypeError, match=part):
        Action(**parts)


@EACH_ACTION
def test_a_required_action_is_compiled_or_the_report_names_it(name: str) -> None:
    settings = EXAMPLES[name][:-1] + ", required: true}"
    match = "{namespaces: {include: [team-a]}}"
    one = policies(policy(f"{{{to_camel(name)}: {settings}}}", name="one", match=match)).all[0]
    compiled = compile_validating_policy(one)
    assert compiled.problem.startswith(f"spec.actions.{to_camel(name)}") or compiled.manifests
