import pytest

from tests.build import NAMESPACE, container, facts, pod, runtime_class, toleration
from trimtab.admission.apiserver import pod_classes
from trimtab.admission.apiserver.outcome import PodRejected
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.resources import QoS, qos_class
from trimtab.policy.cluster_facts import ClusterFacts

MISMATCH = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
STRAY = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
SMALL = {"cpu": "100m", "memory": "1"}


def admit(given_pod: Pod, *classes) -> Pod | PodRejected:
    return pod_classes.apply_runtime_class(given_pod, facts(*classes), NAMESPACE)


def validate(given_pod: Pod, *classes) -> Pod | PodRejected:
    return pod_classes.check_overhead(given_pod, facts(*classes), NAMESPACE)


def of_kata(**spec) -> Pod:
    return pod(runtime_class_name="kata", **spec)


def test_a1_overhead_comes_from_the_class():
    assert admit(of_kata(), runtime_class(overhead=SMALL)) == of_kata(overhead=SMALL)


def test_a2_a_guaranteed_pod_stays_guaranteed():
    same = {"cpu": "1", "memory": "10"}
    given_pod = pod(container(requests=same, limits=same), runtime_class_name="kata")
    created_pod = admit(given_pod, runtime_class(overhead=SMALL))
    assert isinstance(created_pod, Pod)
    assert (created_pod.spec.overhead, qos_class(created_pod.spec)) == (SMALL, QoS.GUARANTEED)


def test_a3_another_overhead_than_the_classs_is_refused():
    kata = runtime_class(overhead={"cpu": "10", "memory": "10G"})
    assert admit(of_kata(overhead=SMALL), kata) == PodRejected(403, "RuntimeClass", MISMATCH)


def test_a5_overhead_with_a_class_that_has_none_is_refused_in_the_end():
    stray = of_kata(overhead=SMALL)
    assert (admit(stray, runtime_class()), validate(stray, runtime_class())) == (
        stray,
        PodRejected(403, "RuntimeClass", STRAY),
    )


def test_a8_an_empty_overhead_without_class_is_refused():
    # cases/webhook.md A8 says accepted; kube-apiserver 1.36.3 answers 403, the map is there.
    assert validate(pod(overhead={})) == PodRejected(403, "RuntimeClass", STRAY)


def test_an_empty_overhead_with_a_class_is_filled():
    assert admit(of_kata(overhead={}), runtime_class(overhead=SMALL)) == of_kata(overhead=SMALL)


def test_equal_values_written_otherwise_are_equal():
    kata = runtime_class(overhead={"cpu": "100m", "memory": "64Mi"})
    pod = admit(of_kata(overhead={"memory": "67108864", "cpu": "0.1"}), kata)
    assert pod == of_kata(overhead={"cpu": "100m", "memory": "64Mi"})


def test_an_overhead_finer_than_a_thousandth_is_kept_rounded_up():
    assert admit(of_kata(), runtime_class(overhead={"cpu": "250u"})) == of_kata(overhead={"cpu": "1m"})


def test_part_of_the_overhead_is_a_mismatch():
    kata = runtime_class(overhead={"cpu": "100m", "memory": "64Mi"})
    assert admit(of_kata(overhead={"cpu": "100m"}), kata) == PodRejected(403, "RuntimeClass", MISMATCH)


def test_a_pod_that_lost_its_classs_overhead_is_refused_in_the_end():
    # knowledge/webhook.md 1.1 says accepted on a current server; kube-apiserver 1.36.3 answers 403.
    assert validate(of_kata(), runtime_class(overhead=SMALL)) == PodRejected(403, "RuntimeClass", MISMATCH)


@pytest.mark.parametrize("step", [pod_classes.apply_runtime_class, pod_classes.check_overhead])
def test_a_missing_class_is_refused(step):
    assert step(of_kata(), facts(), NAMESPACE) == PodRejected(
        403, "RuntimeClass", 'pod rejected: RuntimeClass "kata" not found'
    )


@pytest.mark.parametrize("step", [pod_classes.apply_runtime_class, pod_classes.check_overhead])
def test_classes_never_listed_are_not_missing(step):
    assert step(of_kata(), ClusterFacts(listed_kinds=frozenset()), NAMESPACE) == of_kata()


def test_a13_a_selector_that_contradicts_the_classs_is_refused():
    kata = runtime_class(node_selector={"foo": "conflict"})
    assert admit(of_kata(node_selector={"foo": "bar"}), kata) == PodRejected(
        403,
        "RuntimeClass",
        "conflict: runtimeClass.scheduling.nodeSelector[foo] = conflict; pod.spec.nodeSelector[foo] = bar",
    )


def test_selectors_are_merged():
    pod = admit(of_kata(node_selector={"a": "1", "b": "2"}), runtime_class(node_selector={"b": "2", "c": "3"}))
    assert pod == of_kata(node_selector={"a": "1", "b": "2", "c": "3"})


def test_a15_a_toleration_that_is_there_is_not_added_again():
    foo, fizz = toleration("foo", "bar", "NoSchedule", operator="Equal"), toleration("fizz", "buzz", operator="Equal")
    pod = admit(of_kata(tolerations=(foo,)), runtime_class(tolerations=(foo, fizz)))
    assert pod == of_kata(tolerations=(foo, fizz))


def test_a_class_with_nothing_changes_nothing():
    given_pod = of_kata(tolerations=(toleration("a", operator="Exists"),) * 2)
    assert admit(given_pod, runtime_class()) == given_pod
