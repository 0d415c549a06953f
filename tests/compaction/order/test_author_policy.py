"""Whether the policy that ties authors to users is in force, as the API server has it."""

from copy import deepcopy
from typing import Any

import pytest

from trimtab.cluster.processes import COMPACTOR
from trimtab.compaction.order.author_policy import POLICY_NAME, in_force_since, policy_problem
from trimtab.installation.processes.compactor import render_order_author_policy


def stored() -> tuple[dict[str, Any], dict[str, Any]]:
    """The two objects as an API server stores them, with its defaults."""
    policy, binding = (deepcopy(manifest) for manifest in render_order_author_policy())
    for item in (policy, binding):
        entry = {"manager": "trimtab", "time": "2026-01-01T00:00:00Z"}
        status = {"manager": "kube-controller-manager", "subresource": "status", "time": "2026-01-09T00:00:00Z"}
        item["metadata"] |= {"creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [entry, status]}
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


def test_it_is_in_force_since_its_last_write_and_not_since_a_write_of_the_status() -> None:
    policy, binding = stored()
    first = in_force_since(policy, binding)
    binding["metadata"]["managedFields"][0]["time"] = "2026-01-02T00:00:00Z"
    assert first is not None
    assert in_force_since(policy, binding) == first + 86_400


def test_a_time_that_cannot_be_read_is_not_known() -> None:
    policy, binding = stored()
    policy["metadata"]["managedFields"][0]["time"] = "yesterday"
    assert in_force_since(policy, binding) is None
    assert in_force_since({}, {}) is None
