"""Acceptance cases, sections A (RuntimeClass and overhead) and B (second calls, order, idempotence)."""

import pytest

from tests.build import (
    SIGNER,
    changed,
    codes,
    container,
    decided,
    facts,
    pod,
    policies,
    policy,
    priority_class,
    runtime_class,
    stored,
    toleration,
)
from tests.reasons import has_facts
from trimtab.admission.apiserver.outcome import PodRejected
from trimtab.admission.json_patch import diff_pods
from trimtab.cluster.api.meta import UNSET, change
from trimtab.cluster.resources import QoS, qos_class
from trimtab.policy import changed_annotation
from trimtab.policy.pod_context import AdmissionSettings

SMALL = {"cpu": "100m", "memory": "1"}
KATA_OVERHEAD = {"cpu": "250m", "memory": "160Mi"}
KATA = runtime_class(
    "kata", overhead=KATA_OVERHEAD, node_selector={"pool": "kata"}, tolerations=(toleration("kata", operator="Exists"),)
)
GVISOR = runtime_class(
    "gvisor",
    overhead={"cpu": "50m"},
    node_selector={"runtime": "gvisor"},
    tolerations=(toleration("gvisor", operator="Exists"),),
)
NOTHING = policies()
UNTRUSTED = policies(policy("{runtimeClass: {name: kata}}", match="{podLabels: {tier: untrusted}}"))
OVERRIDE = policies(policy("{runtimeClass: {name: kata, override: true}}"))
STRIP, WARN = (policies(policy(f"{{overhead: {{stray: {what}}}}}")) for what in ("strip", "warn"))


def untrusted(**fields):
    return pod(labels={"tier": "untrusted"}, **fields)


def test_a1_the_server_fills_the_overhead_of_a_class_that_the_pod_names():
    world = facts(runtime_class("oh", overhead=SMALL))
    outcome = stored(pod(runtime_class_name="oh"), STRIP, world)
    assert (outcome.pod.spec.overhead, outcome.calls) == (SMALL, 1)


def test_a2_overhead_does_not_change_the_class_of_service():
    both = {"cpu": "1", "memory": "10"}
    came = pod(container(requests=both, limits=both), runtime_class_name="oh")
    outcome = stored(came, STRIP, facts(runtime_class("oh", overhead=SMALL)))
    assert (outcome.pod.spec.overhead, qos_class(outcome.pod.spec)) == (SMALL, QoS.GUARANTEED)


def test_a3_overhead_that_contradicts_the_class_is_refused_before_we_are_asked():
    world = facts(runtime_class("oh", overhead={"cpu": "10", "memory": "10G"}))
    outcome = stored(pod(runtime_class_name="oh", overhead=SMALL), STRIP, world)
    assert outcome.code == 403
    assert has_facts(outcome.message, "pod rejected", "Overhead")


def test_a5_overhead_that_no_class_stands_for_is_stripped():
    world = facts(runtime_class("plain"))
    results = [stored(pod(overhead=SMALL, **named), STRIP, world) for named in ({}, {"runtime_class_name": "plain"})]
    assert [isinstance(each, PodRejected) for each in results] == [False, False]


def test_a5_overhead_of_a_class_that_has_none_is_refused_without_us():
    outcome = stored(pod(overhead=SMALL, runtime_class_name="plain"), NOTHING, facts(runtime_class("plain")))
    assert (outcome.code, outcome.plugin) == (403, "RuntimeClass")


def test_a6_stray_overhead_is_warned_about_and_the_server_refuses():
    assert codes(decided(pod(overhead=SMALL), WARN), loud=True) == {"overhead-without-class"}
    assert stored(pod(overhead=SMALL), WARN).code == 403


def test_a7_stray_overhead_is_stripped():
    came = pod(overhead=SMALL)
    operations = diff_pods(came, decided(came, STRIP).pod)
    assert {"op": "remove", "path": "/spec/overhead"} in operations
    assert stored(came, STRIP).pod.spec.overhead is UNSET


def test_a8_an_empty_overhead_is_stripped_on_request():
    assert decided(pod(overhead={}), STRIP).pod.spec.overhead is UNSET


def test_a9_a_policy_sets_the_class_and_the_server_brings_its_overhead():
    outcome = stored(untrusted(), UNTRUSTED, facts(KATA))
    spec = outcome.pod.spec
    assert (spec.runtime_class_name, spec.overhead, spec.node_selector) == ("kata", KATA_OVERHEAD, {"pool": "kata"})
    assert toleration("kata", operator="Exists") in spec.tolerations
    assert outcome.calls == 2


def test_a9_only_the_class_is_written():
    assert changed(decided(untrusted(), UNTRUSTED, facts(KATA))) == {"runtimeClassName": "kata"}


def test_a9_the_second_call_changes_nothing():
    first = stored(untrusted(), UNTRUSTED, facts(KATA)).pod
    assert decided(first, UNTRUSTED, facts(KATA)).pod is first


def test_a10_a_class_that_does_not_exist_is_named_and_not_set():
    decision = decided(untrusted(), UNTRUSTED, facts(GVISOR))
    assert (changed(decision), codes(decision, loud=True)) == ({}, {"runtimeclass-not-found"})


def test_a12_changing_the_class_takes_what_the_old_one_brought():
    world = facts(KATA, GVISOR)
    outcome = stored(pod(runtime_class_name="gvisor"), OVERRIDE, world)
    spec = outcome.pod.spec
    assert (spec.overhead, spec.node_selector) == (KATA_OVERHEAD, {"pool": "kata"})
    assert toleration("gvisor", operator="Exists") not in spec.tolerations


def test_a12_a_selector_and_a_toleration_of_the_pods_own_stay():
    own = toleration("mine", operator="Exists")
    came = pod(runtime_class_name="gvisor", node_selector={"zone": "a"}, tolerations=(own,))
    spec = stored(came, OVERRIDE, facts(KATA, GVISOR)).pod.spec
    assert (spec.node_selector["zone"], own in spec.tolerations) == ("a", True)


def test_a12_without_override_the_pods_own_class_stays():
    decision = decided(pod(runtime_class_name="gvisor"), policies(policy("{runtimeClass: {name: kata}}")), facts(KATA))
    assert (changed(decision), codes(decision)) == ({}, {"already-set"})


def test_a13_a_class_that_contradicts_the_pods_selector_is_not_set():
    world = facts(runtime_class("kata", node_selector={"foo": "conflict"}))
    decision = decided(untrusted(node_selector={"foo": "bar"}), UNTRUSTED, world)
    assert (changed(decision), codes(decision, loud=True)) == ({}, {"runtimeclass-conflict"})


def test_a13_without_us_the_server_refuses_the_conflict():
    world = facts(runtime_class("kata", node_selector={"foo": "conflict"}))
    outcome = stored(pod(runtime_class_name="kata", node_selector={"foo": "bar"}), NOTHING, world)
    assert (outcome.code, outcome.message[:9]) == (403, "conflict:")


def test_a15_a_toleration_that_pod_and_class_share_is_there_once():
    own, fizz = toleration("foo", "bar", "NoSchedule"), toleration("fizz", "buzz", "NoSchedule")
    spec = stored(
        untrusted(tolerations=(own,)), UNTRUSTED, facts(runtime_class("kata", tolerations=(own, fizz)))
    ).pod.spec
    assert [t for t in spec.tolerations if not t.key.startswith("node.kubernetes.io/")] == [own, fizz]


@pytest.mark.parametrize("came", [untrusted(), pod(runtime_class_name="gvisor", overhead={"cpu": "50m"})])
def test_a16_overhead_is_never_written_where_the_server_does_it(came):
    after = decided(came, OVERRIDE, facts(KATA, GVISOR)).pod
    written = [o["op"] for o in diff_pods(came, after) if o["path"].startswith("/spec/overhead")]
    assert written in ([], ["remove"])


def test_a16_where_the_servers_admission_is_off_we_write_exactly_what_the_class_says():
    spec = decided(untrusted(), UNTRUSTED, facts(KATA), AdmissionSettings(overhead="webhook")).pod.spec
    assert (spec.overhead, spec.node_selector) == (KATA_OVERHEAD, {"pool": "kata"})
    assert spec.tolerations == (toleration("kata", operator="Exists"),)


def test_a18_a_class_whose_overhead_somebody_took_away_is_told():
    decision = decided(pod(runtime_class_name="kata"), STRIP, facts(KATA))
    assert (changed(decision), codes(decision, loud=True)) == ({}, {"overhead-missing"})


def test_b1_nothing_to_do_is_one_call_and_no_patch():
    came = pod()
    assert decided(came, UNTRUSTED, facts(KATA)).pod is came
    assert stored(came, UNTRUSTED, facts(KATA)).calls == 1


def test_b2_with_reinvocation_never_we_are_called_once():
    assert stored(untrusted(), UNTRUSTED, facts(KATA), reinvocation=False).calls == 1


def test_b3_a_class_of_ours_brings_a_second_call_that_does_nothing():
    outcome = stored(untrusted(), UNTRUSTED, facts(KATA))
    assert [step.number for step in outcome.steps if step.name == "webhook"] == [1]


def test_b6_a_field_that_somebody_changed_after_us_is_not_changed_back():
    rule = policies(policy("{labels: {add: {cost: low}, override: true}}"))
    first = decided(pod(), rule).pod
    theirs = change(first, metadata=change(first.metadata, labels={"cost": "high"}))
    decision = decided(theirs, rule)
    assert (decision.pod, codes(decision, loud=True)) == (theirs, {"changed-by-another"})


def test_b9_a_priority_class_takes_the_old_number_with_it():
    world = facts(priority_class("low", 10), priority_class("high", 1000, preemption_policy="Never"))
    rule = policies(policy("{priorityClass: {name: high, override: true}}"))
    spec = stored(pod(priority_class_name="low"), rule, world).pod.spec
    assert (spec.priority_class_name, spec.priority, spec.preemption_policy) == ("high", 1000, "Never")


def test_b10_the_marker_of_a_copied_pod_is_replaced():
    rule = policies(policy("{labels: {add: {cost: low}}}"))
    copied = decided(pod(name="other"), rule).pod.metadata.annotations
    created_pod = decided(pod(annotations=copied), rule).pod
    assert changed_annotation.read_trusted_annotation(
        created_pod, "team-a", SIGNER
    ) == changed_annotation.ChangedAnnotation({"p": {"labels[cost]": "low"}})


def test_b10_the_marker_of_a_copied_pod_goes_where_nothing_was_changed():
    copied = decided(pod(name="other"), policies(policy("{labels: {add: {cost: low}}}"))).pod.metadata.annotations
    assert changed_annotation.ANNOTATION not in decided(pod(annotations=copied), NOTHING).pod.metadata.annotations
