"""Acceptance cases, section G: pods of every shape."""

import pytest

from tests.build import (
    admission_context,
    changed,
    codes,
    container,
    decided,
    facts,
    pod,
    policies,
    policy,
    resources,
    review,
    runtime_class,
    stored,
    toleration,
    usage,
)
from trimtab.admission.handler import AdmissionOutcome, answer_review
from trimtab.admission.json_patch import diff_pods
from trimtab.cluster.api.meta import Metadata, OwnerReference, change
from trimtab.cluster.api.pod import PodOS
from trimtab.cluster.resources import QoS, qos_class

FILL = policies(policy("{requests: {cpu: {from: policy, otherwise: 100m}}}"))
NO_LIMITS = policies(policy("{limits: {cpu: remove, memory: remove}}"))
MANIFEST = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "app", "image": "a"}]}}


def test_g1_an_init_container_gets_its_request_from_the_rule_for_its_role():
    rule = policies(
        policy(
            "{requests: {cpu: {from: policy, otherwise: 100m},"
            " containers: [{roles: [init], cpu: {from: policy, otherwise: 20m}}]}}"
        )
    )
    decision = changed(decided(pod(init=(container("prepare"),)), rule))
    assert decision == {"containers[app].requests.cpu": "100m", "initContainers[prepare].requests.cpu": "20m"}


def test_g2_a_sidecar_is_a_container_of_its_own_role():
    rule = policies(
        policy("{requests: {cpu: {from: policy, otherwise: 30m}}}", match="{containers: {roles: [sidecar]}}")
    )
    came = pod(init=(container("proxy", restart_policy="Always"), container("prepare")))
    assert changed(decided(came, rule)) == {"initContainers[proxy].requests.cpu": "30m"}


def test_g3_ephemeral_containers_are_none_of_our_business():
    body = review(MANIFEST, operation="UPDATE", subResource="ephemeralcontainers")
    assert answer_review(body, admission_context(FILL, facts())).record.outcome is AdmissionOutcome.NOT_OURS


def test_g4_a_mirror_pod_is_left_alone():
    came = pod(annotations={"kubernetes.io/config.mirror": "x"})
    decision = decided(came, FILL)
    assert (decision.pod, decision.skipped.code.name) == (came, "mirror-pod")


def test_g5_containers_below_pod_level_requests_get_none():
    came = pod(container(limits={"cpu": "1"}), resources=resources({"cpu": "1", "memory": "1Gi"}))
    assert decided(came, policies(policy("{requests: {cpu: {otherwise: 10m}}, limits: {cpu: remove}}"))).pod is came


def test_g6_containers_below_pod_level_limits_get_none():
    came = pod(resources=resources(None, {"cpu": "2", "memory": "2Gi"}))
    assert codes(decided(came, FILL)) == {"pod-level-resources"}


def test_g7_a_resize_is_allowed_and_not_changed():
    body = review(MANIFEST, operation="UPDATE", subResource="resize")
    assert answer_review(body, admission_context(NO_LIMITS, facts())).record.patch_operations == ()


def test_g9_a_windows_pod_gets_requests_and_no_class():
    rule = policies(policy("{runtimeClass: {name: kata}, requests: {cpu: {from: policy, otherwise: 100m}}}"))
    decision = decided(pod(os=PodOS(name="windows")), rule, facts(runtime_class("kata")))
    assert (list(changed(decision)), codes(decision)) == (["containers[app].requests.cpu"], {"windows-pod"})


def test_g10_a_pod_without_a_name_is_known_by_its_owner():
    owner = OwnerReference(kind_name="ReplicaSet", name="web-5d4f", controller=True)
    metadata = Metadata(generate_name="web-5d4f-", labels={"pod-template-hash": "5d4f"}, owner_references=(owner,))
    rule = policies(policy("{requests: {cpu: {from: usage}}}"))
    decision = decided(change(pod(), metadata=metadata), rule, facts(usage(cpu=("1m", "70m"))))
    assert changed(decision) == {"containers[app].requests.cpu": "70m"}


def test_g12_several_entries_are_removed_last_first():
    before = pod(tolerations=tuple(toleration(key, operator="Exists") for key in "abcd"))
    after = change(before, spec=change(before.spec, tolerations=before.spec.tolerations[1:3]))
    assert [o["path"] for o in diff_pods(before, after)] == ["/spec/tolerations/3", "/spec/tolerations/0"]


@pytest.mark.parametrize("namespace", ["kube-system", "trimtab-system", "kube-node-lease"])
def test_pods_of_the_system_and_our_own_are_never_changed(namespace):
    assert (
        answer_review(review(MANIFEST, namespace=namespace), admission_context(FILL, facts())).record.outcome
        is AdmissionOutcome.SKIPPED
    )


@pytest.mark.parametrize("where", ["labels", "annotations"])
def test_a_pod_that_opted_out_is_untouched(where):
    came = pod(**{where: {"trimtab.dev/opt-out": "true"}})
    assert decided(came, FILL).skipped.code.name == "opted-out"


def test_opting_out_with_false_is_opting_in():
    assert changed(decided(pod(labels={"trimtab.dev/opt-out": "false"}), FILL)) != {}


def test_a_burstable_pod_does_not_become_guaranteed_by_a_request():
    came = pod(container(requests={"cpu": "1"}, limits={"cpu": "1", "memory": "1Gi"}))
    rule = policies(policy("{requests: {memory: {from: policy, otherwise: 1Gi}}}"))
    assert qos_class(decided(came, rule).pod.spec) is QoS.BURSTABLE
    assert qos_class(stored(came, rule).pod.spec) is QoS.GUARANTEED  # the server makes the memory request of its limit
