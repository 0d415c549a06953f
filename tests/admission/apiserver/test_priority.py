import pytest

from tests.build import NAMESPACE, facts, pod, priority_class
from trimtab.admission.apiserver import pod_classes
from trimtab.admission.apiserver.outcome import PodRejected
from trimtab.cluster.api.pod import Pod
from trimtab.policy.cluster_facts import ClusterFacts

HIGH = priority_class("high", 1000)
NEVER = priority_class("never", 500, preemption_policy="Never")
COMPUTED = "must not be provided in pod spec; priority admission controller computed"


def admit(given_pod: Pod, *classes) -> Pod | PodRejected:
    return pod_classes.resolve_priority(given_pod, facts(HIGH, NEVER, *classes), NAMESPACE)


@pytest.mark.parametrize(
    ("name", "value", "policy"),
    [
        ("high", 1000, "PreemptLowerPriority"),
        ("never", 500, "Never"),
        ("system-node-critical", 2000001000, "PreemptLowerPriority"),
        ("system-cluster-critical", 2000000000, "PreemptLowerPriority"),
    ],
)
def test_a_class_brings_its_number_and_policy(name, value, policy):
    created_pod = admit(pod(priority_class_name=name))
    assert created_pod == pod(priority_class_name=name, priority=value, preemption_policy=policy)


def test_without_a_class_it_is_zero():
    assert admit(pod()) == pod(priority=0, preemption_policy="PreemptLowerPriority")


def test_the_lowest_global_default_is_named():
    defaults = [priority_class(name, value, global_default=True) for name, value in (("b", 20), ("a", 10))]
    assert admit(pod(), *defaults) == pod(
        priority_class_name="a", priority=10, preemption_policy="PreemptLowerPriority"
    )


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"priority_class_name": "nope"}, "no PriorityClass with name nope was found"),
        ({"priority": 5}, f"the integer value of priority (5) {COMPUTED} 0 from the given PriorityClass name"),
        (
            {"priority_class_name": "never", "preemption_policy": "PreemptLowerPriority"},
            f"the string value of PreemptionPolicy (PreemptLowerPriority) {COMPUTED} Never"
            " from the given PriorityClass name",
        ),
    ],
)
def test_what_contradicts_the_class_is_forbidden(spec, message):
    assert admit(pod(**spec)) == PodRejected(403, "Priority", message)


def test_the_same_number_is_no_contradiction():
    assert isinstance(admit(pod(priority_class_name="high", priority=1000)), Pod)


def test_classes_never_listed_are_not_missing():
    named = pod(priority_class_name="high")
    assert pod_classes.resolve_priority(named, ClusterFacts(listed_kinds=frozenset()), NAMESPACE) is named
