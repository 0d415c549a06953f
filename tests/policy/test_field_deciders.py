"""Who decides a field of `match` is written once, and no field that a pod's author decides exempts a pod."""

import pytest

from trimtab.policy.conditions import Conditions, Containers, Match
from trimtab.policy.field_deciders import CONDITION_FIELDS, CONTAINER_FIELDS, is_decided_by_author
from trimtab.policy.lint import EXCLUDE_CHOSEN, is_avoidable, lint
from trimtab.policy.load import load_policies

POLICY = """
apiVersion: trimtab.dev/v1alpha1
kind: PodPolicy
metadata: {name: sandbox}
spec:
  match: {namespaces: {include: ["team-*"]}, %s}
  actions: {runtimeClass: {name: gvisor, required: %s}}
"""
VALUES = {
    "namespaces": "{include: [team-a]}",
    "podLabels": "{tier: trusted}",
    "podSelector": "{matchLabels: {tier: trusted}}",
    "owners": "[Deployment]",
    "containers": "{names: [a]}",
    "runtimeClasses": "[kata]",
    "priorityClasses": "[high]",
    "requests": "{cpu: {exists: true}}",
    "annotations": "{a: b}",
    "serviceAccounts": "[ci]",
    "vpa": "managed",
    "hpa": "utilization",
}
ADMIN = {"namespaces"}
STORABLE = sorted(VALUES.keys() - ADMIN - {"owners", "priorityClasses", "requests", "annotations"})
"""The fields that a stored policy with a required action may have."""


def loaded(match, *, required="true", is_authoring=True):
    return load_policies([("p.yaml", (POLICY % (match, required)).encode())], is_authoring=is_authoring)


def mistakes(match, **options):
    return [mistake.field for mistake in loaded(match, **options).mistakes]


def codes(match):
    return [finding.reason.code.name for finding in lint(loaded(match, is_authoring=False).policies)]


def test_every_field_of_the_language_has_a_decider():
    assert CONDITION_FIELDS.keys() == set(Conditions.__dataclass_fields__)
    assert CONTAINER_FIELDS.keys() == set(Containers.__dataclass_fields__)
    assert Match.__dataclass_fields__.keys() - CONDITION_FIELDS.keys() == {"exclude"}
    assert len(VALUES) == len(CONDITION_FIELDS)


def test_a_field_without_a_decider_counts_as_the_authors():
    assert is_decided_by_author("a_field_of_the_future")


@pytest.mark.parametrize("field", VALUES)
def test_a_required_action_is_not_avoided_by_what_the_author_decides(field):
    is_refused = mistakes(f"exclude: [{{{field}: {VALUES[field]}}}]") == [f"spec.match.exclude[0].{field}"]
    assert is_refused is (field not in ADMIN)


@pytest.mark.parametrize("field", STORABLE)
def test_a_namespace_beside_it_changes_nothing(field):
    match = f"exclude: [{{namespaces: {{include: [team-a]}}, {field}: {VALUES[field]}}}]"
    assert mistakes(match) == [f"spec.match.exclude[0].{field}"]


@pytest.mark.parametrize("field", STORABLE)
def test_a_stored_policy_stays_in_force_with_a_finding(field):
    stored = loaded(f"exclude: [{{{field}: {VALUES[field]}}}]", is_authoring=False)
    assert [finding.reason.code for finding in lint(stored.policies)] == [EXCLUDE_CHOSEN]
    assert is_avoidable(stored.policies.all[0])


@pytest.mark.parametrize("field", STORABLE)
def test_a_match_by_it_has_a_finding(field):
    assert codes(f"{field}: {VALUES[field]}") == ["match-chosen-by-author"]


@pytest.mark.parametrize("field", VALUES)
def test_an_action_that_is_not_required_may_be_avoided(field):
    assert mistakes(f"exclude: [{{{field}: {VALUES[field]}}}]", required="false") == []
