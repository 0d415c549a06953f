"""Which annotations are trusted, for how long, and that a forged one has no effect."""

import json
from dataclasses import replace

import pytest

from tests.build import (
    NAMESPACE,
    SIGNER,
    SIGNING,
    admission_context,
    decided,
    facts,
    namespace,
    pod,
    policies,
    policy,
    runtime_class,
)
from tests.build import review as written_review
from trimtab.admission.handler import answer_review
from trimtab.admission.response_cache import ResponseCache
from trimtab.cluster.api.meta import OwnerReference, change
from trimtab.cluster.signature import SigningKeys
from trimtab.policy import changed_annotation
from trimtab.policy.changed_annotation import ANNOTATION, ChangedAnnotation
from trimtab.policy.pod_context import AdmissionSettings, MarkerSigner

SANDBOX = policies(policy("{runtimeClass: {name: kata}}", name="sandbox"))
COST = policies(policy("{labels: {add: {cost: low}, override: true}}", name="cost"))
NOTHING = policies()
WORLD = facts(namespace(), runtime_class("kata"))


def stateful(ordinal=0):
    """A pod as the StatefulSet controller sends it."""
    new_pod = pod(name=f"db-{ordinal}", owner="StatefulSet/db")
    return change(new_pod, metadata=change(new_pod.metadata, generate_name="db-"))


def forged(came, by="x", field="runtimeClassName", value="none"):
    """A pod with an annotation as any author of pods can write it."""
    text = json.dumps({"by": {by: {field: value}}, "pod": changed_annotation.pod_fingerprint(came, NAMESPACE)})
    return change(came, metadata=change(came.metadata, annotations={ANNOTATION: text}))


def later(slots, keys=SIGNER.keys):
    return AdmissionSettings(signer=MarkerSigner(keys, SIGNER.slot + slots))


@pytest.mark.parametrize("came", [pod(), stateful()])
@pytest.mark.parametrize("terms", [SIGNING, AdmissionSettings()])
def test_a_forged_marker_keeps_no_pod_from_its_class(came, terms):
    decision = decided(forged(came), SANDBOX, WORLD, terms)
    assert decision.pod.spec.runtime_class_name == "kata"
    assert changed_annotation.read_claimed_annotation(decision.pod, NAMESPACE) == ChangedAnnotation(
        {"sandbox": {"runtimeClassName": "kata"}}
    )


@pytest.mark.parametrize(
    ("terms", "code"), [(SIGNING, "changed-annotation-ignored"), (AdmissionSettings(), "changed-annotation-unverified")]
)
def test_a_marker_that_is_not_believed_is_told(terms, code):
    decision = decided(forged(pod()), policies(), WORLD, terms)
    assert code in {kept_field.reason.code.name for kept_field in decision.fields_kept}


def test_a_forged_marker_goes_where_nothing_else_changes():
    assert ANNOTATION not in decided(forged(pod()), policies(), WORLD).pod.metadata.annotations


def test_without_a_key_a_marker_stays_and_decides_nothing():
    first = decided(pod(), COST, WORLD, AdmissionSettings()).pod
    assert decided(first, COST, WORLD, AdmissionSettings()).pod == first
    assert changed_annotation.read_trusted_annotation(first, NAMESPACE, SIGNER) is None


@pytest.mark.parametrize(
    ("slots", "believed"), [(-2, False), (-1, True), (0, True), (2, True), (3, False), (99, False)]
)
def test_a_marker_is_believed_for_seconds(slots, believed):
    first = decided(pod(), COST, WORLD).pod
    theirs = change(first, metadata=change(first.metadata, labels={"cost": "high"}))
    decision = decided(theirs, COST, WORLD, later(slots))
    assert (decision.pod.metadata.labels["cost"] == "high") is believed
    assert (changed_annotation.read_trusted_annotation(first, NAMESPACE, later(slots).signer) is not None) is believed


OTHER = SigningKeys(b"o" * 32)


@pytest.mark.parametrize(
    ("keys", "believed"),
    [(SigningKeys(b"n" * 32, b"k" * 32), True), (OTHER, False), (SigningKeys(b"n" * 32, b"o" * 32), False)],
)
def test_the_current_and_the_previous_key_verify(keys, believed):
    first = decided(pod(), COST, WORLD).pod
    assert (
        changed_annotation.read_trusted_annotation(first, NAMESPACE, MarkerSigner(keys, SIGNER.slot)) is not None
    ) is believed


@pytest.mark.parametrize(
    "other",
    [
        {"name": "other"},
        {"generate_name": "other-"},
        {"owner_references": (OwnerReference(kind_name="Job", name="j", controller=True),)},
        {"owner_references": (OwnerReference(kind_name="ReplicaSet", name="w", uid="2", controller=True),)},
    ],
)
def test_a_marker_is_good_for_one_pod(other):
    above = (OwnerReference(kind_name="ReplicaSet", name="w", uid="1", controller=True),)
    came = change(pod(), metadata=change(pod().metadata, owner_references=above))
    first = decided(came, COST, WORLD).pod
    copied = change(first, metadata=change(first.metadata, **other))
    assert changed_annotation.read_trusted_annotation(first, NAMESPACE, SIGNER) is not None
    assert changed_annotation.read_trusted_annotation(copied, NAMESPACE, SIGNER) is None
    assert changed_annotation.read_trusted_annotation(first, "team-b", SIGNER) is None


@pytest.mark.parametrize("key", ["by", "at"])
def test_what_is_written_cannot_be_changed(key):
    first = decided(pod(), COST, WORLD).pod
    text = json.loads(first.metadata.annotations[ANNOTATION])
    text[key] = {"x": {"labels[cost]": "none"}} if key == "by" else text[key] + 10
    changed = change(first, metadata=change(first.metadata, annotations={ANNOTATION: json.dumps(text)}))
    assert changed_annotation.read_trusted_annotation(changed, NAMESPACE, SIGNER) is None


def test_the_marker_of_an_admission_is_believed_by_the_second_call_offline_too():
    from trimtab.admission.preview import preview_admission

    by = policies(policy("{runtimeClass: {name: kata}, labels: {add: {cost: low}, override: true}}", match="{}"))
    result = preview_admission(pod(), NAMESPACE, admission_context(by, WORLD))
    assert [call.outcome.value for call in result.calls] == ["changed"] or result.calls[1].outcome.value == "unchanged"


SENT = {"metadata": {"generateName": "web-"}, "spec": {"containers": [{"name": "app", "image": "app:1"}]}}


def test_siblings_get_the_same_bytes_within_a_slot_and_a_new_time_after_it():
    memory, result = ResponseCache(), []
    for slots in (0, 0, 1, 1, 5):
        terms = later(slots)
        body = answer_review(written_review(SENT), admission_context(COST, WORLD, settings=terms, memory=memory)).body
        assert body == answer_review(written_review(SENT), admission_context(COST, WORLD, settings=replace(terms))).body
        result.append(body)
    assert [result[0] == result[1], result[1] == result[2], result[2] == result[3], result[3] == result[4]] == [
        True,
        False,
        True,
        False,
    ]


def test_a_pod_without_any_marker_is_remembered_for_longer():
    memory, body = ResponseCache(), written_review(SENT)
    first = answer_review(body, admission_context(NOTHING, WORLD, settings=later(0), memory=memory)).record
    assert answer_review(body, admission_context(NOTHING, WORLD, settings=later(99), memory=memory)).record is first


def test_a_pod_with_a_marker_is_answered_as_its_age_says():
    memory, first = ResponseCache(), decided(pod(), COST, WORLD).pod
    sent = {**SENT, "metadata": {"name": "web", "labels": {"cost": "high"}, "annotations": first.metadata.annotations}}
    for slots in (0, 2, 3, 9):
        terms = later(slots)
        body = answer_review(written_review(sent), admission_context(COST, WORLD, settings=terms, memory=memory)).body
        assert body == answer_review(written_review(sent), admission_context(COST, WORLD, settings=terms)).body


def test_the_terms_of_another_moment_are_the_same_terms():
    assert later(0) == later(5)
