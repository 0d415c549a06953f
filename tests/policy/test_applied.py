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


def after(actions: str, spec: dict[str, Any], cluster: bytes = b"", /, **metadata: Any) -> Run:
    pod = {"kind": "Pod", "metadata": {"name": "p", **metadata}, "spec": spec}
    ((found, namespace),) = pods(json.dumps(pod).encode())
    loaded = load_policies([("p", (HEAD % actions).encode())])
    assert loaded.mistakes == ()
    return run(found, namespace, loaded.policies.all, world(cluster))


ANNOTATED = {"annotations": {APPLIED: "{}"}}
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "1", "controller": True}


@pytest.mark.parametrize("actions", [LIMITS, SIZES, REQUIRE])
def test_what_is_written_is_not_replaced(actions: str) -> None:
    found = after(actions, WRITTEN, **ANNOTATED)
    assert (found.because, found.decisions[0].changes) == ({"applied-as-written"}, ())
    assert all(left.loud for left in found.decisions[0].left)


def test_what_stays_is_named() -> None:
    (left,) = after(LIMITS, WRITTEN, **ANNOTATED).decisions[0].left
    assert left.reason.sentence.startswith("containers[a].limits.cpu stays as it is written")


@pytest.mark.parametrize("actions", [SIZES, REQUIRE])
def test_what_is_missing_is_added(actions: str) -> None:
    assert len(after(actions, BARE, **ANNOTATED).decisions[0].changes) == 1


@pytest.mark.parametrize("metadata", [{}, {**ANNOTATED, "ownerReferences": [OWNER]}])
@pytest.mark.parametrize("actions", [LIMITS, SIZES, REQUIRE])
def test_other_pods_are_changed(actions: str, metadata: dict[str, Any]) -> None:
    assert len(after(actions, WRITTEN, **metadata).decisions[0].changes) == 1


TOLERATE = "{placement: {tolerate: [{key: pool, value: web, effect: NoSchedule}]}}"
OWN = {"key": "other", "operator": "Exists"}
GIVEN = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
KATA = b"""
kind: RuntimeClass
apiVersion: node.k8s.io/v1
metadata: {name: kata}
handler: kata
scheduling: {tolerations: [{key: kata, operator: Exists}]}
"""


def applied(written: Any) -> dict[str, Any]:
    return {"annotations": {APPLIED: json.dumps(written)}}


@pytest.mark.parametrize("written", [{"spec": {"tolerations": [OWN]}}, "odd", {"spec": {"tolerations": "odd"}}])
def test_nothing_is_added_to_tolerations_that_are_written_because_they_are_compared_as_a_whole(written: Any) -> None:
    spec = {**BARE, "tolerations": [OWN, GIVEN]}
    assert after(TOLERATE, spec, **applied(written)).because == {"applied-as-written"}
    assert after("{runtimeClass: {name: kata}}", spec, KATA, **applied(written)).because == {"applied-as-written"}


def test_tolerations_that_only_the_server_gave_may_have_others_beside_them() -> None:
    spec, metadata = {**BARE, "tolerations": [GIVEN]}, applied({"spec": BARE})
    assert len(after(TOLERATE, spec, **metadata).decisions[0].changes) == 1
    assert len(after("{runtimeClass: {name: kata}}", spec, KATA, **metadata).decisions[0].changes) == 1


def test_a_class_that_brings_nothing_new_is_chosen() -> None:
    spec = {**BARE, "tolerations": [{"operator": "Exists"}]}
    found = after("{runtimeClass: {name: kata}}", spec, KATA, **applied({"spec": spec}))
    assert len(found.decisions[0].changes) == 1
