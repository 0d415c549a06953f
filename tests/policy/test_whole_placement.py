"""Each policy's placement is applied as a whole, or not at all and with a reason."""

import json

import pytest

from tests.build import changed, codes, decided, facts, pod, policies, policy, runtime_class, toleration
from tests.policy.test_cases_placement import affinity, term
from tests.policy.test_field_owners import after
from trimtab.cluster.api.meta import SelectorRequirement
from trimtab.policy.field_owners import APPLIED

SPOT = policy("{placement: {tolerate: [{key: pool, value: spot, effect: NoSchedule}]}}", name="spot", priority=500)
BATCH_ACTIONS = (
    "{placement: {require: [{label: pool, in: [batch]}], tolerate: [{key: pool, value: batch, effect: NoSchedule}]}}"
)
BATCH = policy(BATCH_ACTIONS, name="batch", priority=400)


def test_two_policies_may_tolerate_the_same_key_with_different_values():
    """With only the first policy's toleration and the second one's affinity the pod would be Pending for ever."""
    decision = decided(pod(), policies(SPOT, BATCH))
    assert {(t.key, t.value) for t in decision.pod.spec.tolerations} == {("pool", "spot"), ("pool", "batch")}
    assert "nodeAffinity.required[pool]" in changed(decision)
    assert codes(decision) == set()


def test_five_pools_by_one_key_are_all_tolerated():
    rules = [
        policy(f"{{placement: {{tolerate: [{{key: dedicated, value: p{n}, effect: NoSchedule}}]}}}}", name=f"p{n}")
        for n in range(5)
    ]
    assert len(decided(pod(), policies(*rules)).pod.spec.tolerations) == 5


def test_deciding_again_changes_nothing():
    once = decided(pod(), policies(SPOT, BATCH)).pod
    assert decided(once, policies(SPOT, BATCH)).pod is once


OWN = {"key": "own", "operator": "Exists"}
REQUIRED = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
        }
    }
}
BARE = {"containers": [{"name": "a", "image": "i"}]}


@pytest.mark.parametrize("written", [{"tolerations": [OWN]}, {"affinity": REQUIRED}])
def test_a_bare_pod_that_kubectl_keeps_gets_all_of_a_placement_or_nothing(written):
    spec = {**BARE, **written}
    result = after(BATCH_ACTIONS, spec, annotations={APPLIED: json.dumps({"spec": spec})})
    assert result.decisions[0].changes == ()
    assert result.because == {"applied-as-written", "placement-not-whole"}


def daemon(**spec):
    return pod(owner="DaemonSet/agent", **spec)


KATA = policy("{runtimeClass: {name: kata}}")
CLASS = runtime_class("kata", node_selector={"pool": "kata"})


def test_a_class_that_selects_nodes_is_not_given_to_a_daemon():
    """The DaemonSet's pods would be Pending on all nodes that the class does not select."""
    decision = decided(daemon(), policies(KATA), facts(CLASS))
    assert (changed(decision), codes(decision, loud=True)) == ({}, {"daemonset-pod"})


def test_a_class_for_every_node_is_given_to_a_daemon():
    assert changed(decided(daemon(), policies(KATA), facts(runtime_class("kata")))) == {"runtimeClassName": "kata"}


def test_a_policy_that_names_daemons_gives_them_any_class():
    rule = policy("{runtimeClass: {name: kata}}", match="{owners: [DaemonSet]}")
    assert "runtimeClassName" in changed(decided(daemon(), policies(rule), facts(CLASS)))


def test_a_pod_on_its_node_gets_no_class():
    decision = decided(pod(node_name="n1"), policies(KATA), facts(runtime_class("kata")))
    assert (changed(decision), codes(decision)) == ({}, {"node-name-set"})


@pytest.mark.parametrize(
    "spec", [{"node_selector": {"kubernetes.io/os": "windows"}}, {"affinity": "windows"}], ids=["selector", "affinity"]
)
def test_windows_is_told_by_the_nodes_that_a_pod_asks_for(spec):
    if spec.get("affinity"):
        spec = {
            "affinity": affinity(term(SelectorRequirement(key="kubernetes.io/os", operator="In", values=("windows",))))
        }
    decision = decided(pod(**spec), policies(KATA), facts(runtime_class("kata")))
    assert (changed(decision), codes(decision)) == ({}, {"windows-pod"})


def test_tolerations_that_are_there_are_part_of_the_whole():
    came = pod(tolerations=(toleration("pool", operator="Exists"),))
    assert "nodeAffinity.required[pool]" in changed(decided(came, policies(BATCH)))
