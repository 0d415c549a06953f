"""Trimtab never causes a pod to be refused, lost or denied: cases that a review of the whole project found."""

from tests.build import (
    NAMESPACE,
    admission_context,
    changed,
    codes,
    container,
    facts,
    pod,
    policies,
    policy,
    quota,
    runtime_class,
    workload,
)
from tests.reasons import assert_reason
from trimtab.admission.admission_result import AdmissionOutcome
from trimtab.admission.apiserver.outcome import PodAdmitted
from trimtab.admission.pod_decision import decide_pod
from trimtab.admission.preview import preview_admission
from trimtab.cluster.api.meta import LabelSelector, change
from trimtab.policy import reasons
from trimtab.policy.cluster_facts import NO_FACTS
from trimtab.policy.decide import decide
from trimtab.policy.pod_changes import PodChanges
from trimtab.policy.pod_context import AdmissionSettings, PodContext

SANDBOX = runtime_class("gvisor", overhead={"cpu": "50m"}, node_selector={"pool": "sandbox"})


def test_placement_that_contradicts_the_class_another_policy_chose_is_not_made():
    rules = policies(
        policy("{runtimeClass: {name: gvisor}}", name="class", priority=100),
        policy("{placement: {nodeSelector: {pool: batch}}}", name="place"),
    )
    result = preview_admission(pod(), NAMESPACE, admission_context(rules, facts(SANDBOX)))
    assert isinstance(result.result, PodAdmitted)
    assert codes(result.calls[0].decision, loud=True) == {"contradiction"}


def test_a_class_whose_overhead_breaks_a_quota_is_not_set():
    full = quota({"requests.cpu": "110m"}, used={"requests.cpu": "0"})
    small = pod(container(requests={"cpu": "100m"}))
    decision = decide_pod(
        PodContext(pod=small, namespace=NAMESPACE, facts=facts(SANDBOX, full)),
        policies(policy("{runtimeClass: {name: gvisor}}")),
    )
    assert (decision.outcome, codes(decision.decision, loud=True)) == (
        AdmissionOutcome.UNCHANGED,
        {"quota-would-refuse"},
    )


def test_before_anything_is_known_of_the_cluster_no_limit_is_removed():
    limited = pod(container(requests={"cpu": "1"}, limits={"cpu": "2"}))
    decision = decide(limited, policies(policy("{limits: {cpu: remove}}")), NO_FACTS, NAMESPACE)
    assert (changed(decision), codes(decision, loud=True)) == ({}, {"facts-missing"})


def test_an_overhead_newer_than_our_facts_is_not_denied_where_the_server_fills_it():
    filled = pod(runtime_class_name="gvisor", overhead={"cpu": "60m"})
    decision = decide(filled, policies(policy("{overhead: {stray: strip}}")), facts(SANDBOX), NAMESPACE)
    assert (decision.denied, codes(decision, loud=True)) == (None, {"overhead-contradicts"})


def test_where_the_server_does_not_fill_it_a_contradicting_overhead_is_denied():
    filled = pod(runtime_class_name="gvisor", overhead={"cpu": "60m"})
    decision = decide(filled, policies(), facts(SANDBOX), NAMESPACE, AdmissionSettings(overhead="webhook"))
    assert "60m" in str(decision.denied)
    assert "50m" in str(decision.denied)


def test_a_label_by_which_a_controller_tells_its_pods_is_left():
    rule = policies(policy("{labels: {add: {pod-template-hash: other}, override: true}}"))
    owned = pod(labels={"pod-template-hash": "abc"}, owner="ReplicaSet/web-abc")
    decision = decide(owned, rule, facts(), NAMESPACE)
    assert (changed(decision), codes(decision, loud=True)) == ({}, {"controller-label"})


def test_a_label_that_the_owners_selector_uses_is_left():
    """The ReplicaSet did not see the pods that it created, and created others without end."""
    deployment = workload("Deployment/web", replicas=3)
    selector = LabelSelector(match_labels={"app": "web"})
    deployment = change(deployment, spec=change(deployment.spec, selector=selector))
    owned = pod(labels={"app": "web", "cost": "high"}, owner="ReplicaSet/web-1")
    rule = policies(policy("{labels: {add: {app: other, cost: low}, override: true}}"))
    replica_set = workload("ReplicaSet/web-1", owner="Deployment/web")
    decision = decide(owned, rule, facts(replica_set, deployment), NAMESPACE)
    assert (changed(decision), codes(decision, loud=True)) == ({"labels[cost]": "low"}, {"controller-label"})
    assert_reason(decision.fields_kept, "controller-label", owner="Deployment/web", label="label app")


def test_where_the_owners_selector_is_not_known_no_label_is_replaced():
    rule = policies(policy("{labels: {add: {app: other, new: one}, override: true}}"))
    for owner, after in (
        ("ReplicaSet/web-1", {"labels[new]": "one"}),
        ("Job/web", {"labels[app]": "other", "labels[new]": "one"}),
    ):
        decision = decide(pod(labels={"app": "web"}, owner=owner), rule, facts(), NAMESPACE)
        assert changed(decision) == after
    bare = decide(pod(labels={"app": "web"}), rule, facts(), NAMESPACE)
    assert changed(bare) == {"labels[app]": "other", "labels[new]": "one"}


def test_a_failing_action_leaves_nothing_of_itself():
    draft = PodChanges(pod_context=PodContext(pod=pod(), namespace=NAMESPACE), policy="first")
    before = draft.create_savepoint()
    draft.claim_field("labels[a]", None, "b", reasons.POLICY_SAYS("it"))
    draft.restore_savepoint(before)
    draft.policy = "second"
    assert draft.claim_field("labels[a]", None, "c", reasons.POLICY_SAYS("it"))


def test_only_the_word_none_means_a_pod_without_a_class():
    rule = policies(policy("{labels: {add: {a: b}}}", match="{runtimeClasses: ['*']}"))
    assert changed(decide(pod(), rule, facts(), NAMESPACE)) == {}
