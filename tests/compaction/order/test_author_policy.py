"""Whether the policy that ties authors to users is in force, as the API server has it."""

from copy import deepcopy
from typing import Any

import pytest

from trimtab.cluster.processes import COMPACTOR
from trimtab.compaction.order.author_policy import POLICY_NAME, PolicyReading, policy_problem
from trimtab.installation.processes.compactor import render_order_author_policy


def stored() -> tuple[dict[str, Any], dict[str, Any]]:
    """The two objects as an API server stores them, with its defaults."""
    policy, binding = (deepcopy(manifest) for manifest in render_order_author_policy())
    for item in (policy, binding):
        entry = {"manager": "trimtab", "time": "2026-01-01T00:00:00Z"}
        status = {"manager": "kube-controller-manager", "subresource": "status", "time": "2026-01-09T00:00:00Z"}
        item["metadata"] |= {"creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [entry, status]}
        item["metadata"] |= {"uid": f"uid-{item['kind']}", "generation": 1}
    policy["spec"]["matchConstraints"] |= {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
    return policy, binding


def test_what_an_installation_writes_is_in_force() -> None:
    policy, binding = stored()
    assert policy["metadata"]["name"] == POLICY_NAME
    assert policy_problem(policy, binding) == ""
    assert f":{COMPACTOR.account}'" in policy["spec"]["validations"][3]["expression"]


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("policy", {"failurePolicy": "Ignore"}),
        ("policy", {"validations": []}),
        ("policy", {"matchConditions": [{"name": "every-client", "expression": "false"}]}),
        ("policy", {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}),
        ("policy", {"matchConstraints": {"resourceRules": [], "matchPolicy": "Equivalent"}}),
        ("policy", {"variables": [{"name": "a", "expression": "1"}]}),
        ("binding", {"validationActions": ["Warn"]}),
        ("binding", {"validationActions": ["Deny", "Audit"]}),
        ("binding", {"policyName": "another"}),
        ("binding", {"paramRef": {"name": "x"}}),
        ("binding", {"matchResources": {"namespaceSelector": {"matchLabels": {"a": "b"}}}}),
    ],
)
def test_any_other_content_is_a_problem(kind: str, change: dict[str, Any]) -> None:
    policy, binding = stored()
    (policy if kind == "policy" else binding)["spec"] |= change
    assert policy_problem(policy, binding)


@pytest.mark.parametrize("key", ["excludeResourceRules", "namespaceSelector", "objectSelector"])
def test_a_policy_that_leaves_something_out_is_a_problem(key: str) -> None:
    policy, binding = stored()
    policy["spec"]["matchConstraints"][key] = (
        [{"a": "b"}] if key == "excludeResourceRules" else {"matchLabels": {"a": "b"}}
    )
    assert policy_problem(policy, binding)


def test_an_object_that_is_missing_is_a_problem() -> None:
    policy, binding = stored()
    assert policy_problem(None, binding)
    assert policy_problem(policy, None)
    assert policy_problem({}, {})


def test_objects_of_the_first_generation_have_not_changed_since_they_were_created() -> None:
    policy, binding = stored()
    first = PolicyReading(policy, binding).unchanged_since
    binding["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z"
    assert first is not None
    assert PolicyReading(policy, binding).unchanged_since == first + 86_400


@pytest.mark.parametrize("change", [{"generation": 3}, {"generation": None}, {"creationTimestamp": "yesterday"}])
def test_an_object_that_was_changed_or_does_not_say_so_proves_nothing(change: dict[str, Any]) -> None:
    """A client that narrows the policy and restores it leaves only a higher generation: to remove a field adds nothing
    to the managed fields."""
    policy, binding = stored()
    binding["metadata"] |= change
    assert PolicyReading(policy, binding).unchanged_since is None
    assert PolicyReading({}, {}).unchanged_since is None


def test_a_sighting_is_of_both_objects_and_of_their_generations() -> None:
    policy, binding = stored()
    sightings = {PolicyReading(policy, binding).sighting}
    for item, key in ((policy, "uid"), (binding, "uid"), (policy, "generation"), (binding, "generation")):
        before = item["metadata"][key]
        item["metadata"][key] = "other" if key == "uid" else 2
        sightings.add(PolicyReading(policy, binding).sighting)
        item["metadata"][key] = before
    assert len(sightings) == 5
    assert PolicyReading({}, {}).sighting is None


def test_another_owner_needs_what_a_delete_needs() -> None:
    """The garbage collector deletes an order whose owner does not exist, and may."""
    policy, _ = stored()
    delete, owners = (validation["expression"] for validation in policy["spec"]["validations"][4:6])
    assert "ownerReferences" in owners
    assert owners.endswith(delete.removeprefix("request.operation != 'DELETE' || "))


def test_a_delete_is_decided_by_the_policy() -> None:
    policy, _ = stored()
    [rule] = policy["spec"]["matchConstraints"]["resourceRules"]
    assert "DELETE" in rule["operations"]
