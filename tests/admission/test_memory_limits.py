"""A memory limit that we set is above what the container was seen to use; an author's own is never lowered."""

from tests.build import NAMESPACE, codes, container, facts, limit_range, pod, policies, policy, usage, workload
from trimtab.admission.pod_decision import decide_pod
from trimtab.cluster.api.meta import UNSET
from trimtab.policy.decide import decide
from trimtab.policy.pod_context import PodContext

WEB = (workload("ReplicaSet/web-1", owner="Deployment/web"), workload("Deployment/web", replicas=5))
FOLLOWS = policy("{requests: {memory: {from: usage, otherwise: 128Mi, when: always}}, limits: {memory: request}}")


def decided(came, rule):
    return decide_pod(PodContext(pod=came, namespace=NAMESPACE, facts=facts(*WEB)), policies(rule)).apply_to(came)


def memory(came, *world):
    decision = decide(came, policies(FOLLOWS), facts(*WEB, *world), NAMESPACE)
    resources = decision.pod.spec.containers[0].resources
    return dict(resources.requests).get("memory"), dict(resources.limits or {}).get("memory"), decision


def test_a_limit_that_follows_a_request_is_above_the_known_peak():
    """The request was P95, 300Mi, and so was the limit, although the container was seen to use 900Mi."""
    came = pod(container(requests={"memory": "1Gi"}), owner="ReplicaSet/web-1")
    request, limit, _ = memory(came, usage(memory=("100Mi", "300Mi", "900Mi")))
    assert (request, limit) == ("300Mi", "1035Mi")


def test_a_limit_never_follows_a_mere_default():
    came = pod(owner="ReplicaSet/web-1")
    decision = decide(came, policies(FOLLOWS), facts(*WEB), NAMESPACE)
    assert decision.pod.spec.containers[0].resources.requests == {"memory": "128Mi"}
    assert decision.pod.spec.containers[0].resources.limits is UNSET
    assert "limit-after-default" in codes(decision, loud=True)
    second_decision = decide(decision.pod, policies(FOLLOWS), facts(*WEB), NAMESPACE)
    assert second_decision.pod is decision.pod


def test_a_default_that_is_rounded_is_one_the_next_time_as_well():
    """What was committed got a limit that follows a mere default."""
    guess = policy("{requests: {memory: {otherwise: '1e9'}}, limits: {memory: request x 1.5}}")
    once = decided(pod(container(), owner="ReplicaSet/web-1"), guess)
    assert once.spec.containers[0].resources.requests["memory"] == "954Mi"
    committed = pod(container(requests={"memory": "954Mi"}), owner="ReplicaSet/web-1")
    assert decided(committed, guess) is committed


def test_an_authors_own_memory_limit_is_never_lowered():
    came = pod(container(requests={"memory": "1Gi"}, limits={"memory": "2Gi"}), owner="ReplicaSet/web-1")
    request, limit, result = memory(came, usage(memory=("100Mi", "300Mi", "500Mi")))
    assert (request, limit, "limit-not-lowered" in codes(result)) == ("300Mi", "2Gi", True)


def test_an_authors_own_limit_below_the_peak_is_told():
    came = pod(container(requests={"memory": "1Gi"}, limits={"memory": "1Gi", "cpu": "1"}), owner="ReplicaSet/web-1")
    rule = policy("{requests: {memory: {from: usage, when: always}}}")
    decision = decide(came, policies(rule), facts(*WEB, usage(memory=("100Mi", "300Mi", "3Gi"))), NAMESPACE)
    assert "limit-below-peak" in codes(decision, loud=True)


def test_where_a_limit_range_allows_no_limit_above_the_peak_none_is_set():
    came = pod(container(requests={"memory": "1Gi"}, limits={"memory": "1Gi"}), owner="ReplicaSet/web-1")
    world = (usage(memory=("100Mi", "300Mi", "1900Mi")), limit_range(max={"memory": "1Gi"}))
    _, limit, result = memory(came, *world)
    assert (limit, "limit-below-peak" in codes(result, loud=True)) == ("1Gi", True)
