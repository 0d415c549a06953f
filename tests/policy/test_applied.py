"""What its author wrote stays where the pod itself is kept by `kubectl apply`: it will be applied again."""

import json
from typing import Any

import pytest

from tests.policies.runner import Run, pods, run, world
from trimtab.policy.load import load_policies
from trimtab.policy.subject import APPLIED

HEAD = "apiVersion: trimtab.dev/v1alpha1\nkind: PodPolicy\nmetadata: {name: p}\nspec: {actions: %s}\n"
MATCH = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
WRITTEN: dict[str, Any] = {
    "containers": [{"name": "a", "image": "i", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}}],
    "nodeSelector": {"pool": "web"},
    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [MATCH]}}},
}
BARE: dict[str, Any] = {"containers": [{"name": "a", "image": "i"}]}
LIMITS = "{limits: {cpu: remove}}"
SIZES = "{requests: {cpu: {from: policy, otherwise: 50m, when: always}}}"
REQUIRE = "{placement: {require: [{label: spot, in: ['yes']}]}}"


def after(actions: str, spec: dict[str, Any], **metadata: Any) -> Run:
    pod = {"kind": "Pod", "metadata": {"name": "p", **metadata}, "spec": spec}
    ((found, namespace),) = pods(json.dumps(pod).encode())
    loaded = load_policies([("p", (HEAD % actions).encode())])
    assert loaded.mistakes == ()
    return run(found, namespace, loaded.policies.all, world(b""))


ANNOTATED = {"annotations": {APPLIED: "{}"}}
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "1", "controller": True}


@pytest.mark.parametrize("actions", [LIMITS, SIZES, REQUIRE])
def test_what_is_written_is_not_replaced(actions: str) -> None:
    found = after(actions, WRITTEN, **ANNOTATED)
    assert (found.because, found.decisions[0].changes) == ({"applied-as-written"}, ())
    assert all(left.loud for left in found.decisions[0].left)


@pytest.mark.parametrize("actions", [SIZES, REQUIRE])
def test_what_is_missing_is_added(actions: str) -> None:
    assert len(after(actions, BARE, **ANNOTATED).decisions[0].changes) == 1


@pytest.mark.parametrize("metadata", [{}, {**ANNOTATED, "ownerReferences": [OWNER]}])
@pytest.mark.parametrize("actions", [LIMITS, SIZES, REQUIRE])
def test_other_pods_are_changed(actions: str, metadata: dict[str, Any]) -> None:
    assert len(after(actions, WRITTEN, **metadata).decisions[0].changes) == 1
