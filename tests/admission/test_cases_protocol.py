"""Acceptance cases, section H (protocol and robustness) and what of section I is decided here."""

import base64
import json

import jsonschema
import pytest
import yaml

from tests.build import (
    admission_context,
    before_and_after,
    codes,
    container,
    decided,
    facts,
    namespace,
    pod,
    policies,
    policy,
    review,
    runtime_class,
)
from tests.reasons import has_facts
from trimtab.admission.handler import PROBE_ANNOTATION, PROBE_WARNING, AdmissionOutcome, answer_review
from trimtab.admission.json_patch import check_patch, diff_pods, to_plain_json
from trimtab.policy.pod_context import AdmissionSettings
from trimtab.policy.schema import json_schema

NO_CPU_LIMIT = policies(policy("{limits: {cpu: remove}}"))
MANIFEST = {
    "metadata": {"name": "web"},
    "spec": {
        "containers": [{"name": "app", "image": "a", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}}]
    },
}


def response(result):
    return json.loads(result.body)["response"]


@pytest.mark.parametrize(
    "body",
    [b"", b"nonsense", b"[]", b"{}", b'{"request": {}}', b'{"request": {"uid": ""}}', b"\xff\xfe", b"[" * 100_000],
)
def test_h1_what_is_no_review_gets_400(body):
    answer = answer_review(body, admission_context(NO_CPU_LIMIT, facts()))
    assert (answer.status, answer.record.outcome) == (400, AdmissionOutcome.MALFORMED)


@pytest.mark.parametrize(
    ("version", "kind"), [("admission.k8s.io/v1beta1", "AdmissionReview"), ("admission.k8s.io/v1", "Something")]
)
def test_h2_another_version_or_kind_is_allowed_unchanged_with_a_warning(version, kind):
    body = json.loads(review(MANIFEST)) | {"apiVersion": version, "kind": kind}
    admission_response = response(answer_review(json.dumps(body).encode(), admission_context(NO_CPU_LIMIT, facts())))
    assert (
        admission_response["uid"],
        admission_response["allowed"],
        "patch" in admission_response,
        len(admission_response["warnings"]),
    ) == ("u-1", True, False, 1)


def test_h3_whatever_breaks_the_pod_is_allowed_unchanged():
    broken = None  # facts that are no facts: everything that asks them fails
    answer = answer_review(review(MANIFEST), admission_context(NO_CPU_LIMIT, broken))  # type: ignore[arg-type]
    assert (answer.status, answer.record.outcome) == (200, AdmissionOutcome.FAILED)
    assert response(answer)["allowed"] is True


def test_h3_a_failing_action_costs_only_its_policy():
    both = policies(policy("{limits: {cpu: remove}}"), policy("{labels: {add: {cost: low}}}", name="q"))
    decision = decided(pod(container(requests={"cpu": "nonsense"}, limits={"cpu": "1"})), both)
    assert (decision.pod.metadata.labels, codes(decision, loud=True)) == ({"cost": "low"}, {"not-a-quantity"})


def test_h5_a_patch_that_would_leave_an_invalid_pod_is_found():
    before = pod(container(requests={"cpu": "1"}, limits={"cpu": "2"}))
    after = pod(container(requests={"cpu": "3"}, limits={"cpu": "2"}))
    patch = check_patch(before_and_after(before, after), diff_pods(before, after), lambda p: p)
    assert patch is not None
    assert "must be less than or equal to cpu limit of 2" in patch


def test_h5_a_patch_that_gives_another_pod_is_found():
    before, after = pod(), pod(labels={"a": "b"})
    assert has_facts(check_patch(before_and_after(before, after), (), lambda p: p), "patched pod differs")


def test_h5_a_decision_that_is_not_stable_is_found():
    before, after = pod(), pod(labels={"a": "b"})
    patch = check_patch(before_and_after(before, after), diff_pods(before, after), lambda p: before)
    assert has_facts(patch, "second decision", "change it again")


def test_h6_a_dry_run_gets_the_same_patch():
    real, dry = (
        answer_review(review(MANIFEST, dryRun=dry), admission_context(NO_CPU_LIMIT, facts())) for dry in (False, True)
    )
    assert (real.body, dry.request.dry_run) == (dry.body, True)


@pytest.mark.parametrize("operation", ["DELETE", "CONNECT", "UPDATE", ""])
def test_h7_other_operations_get_no_patch(operation):
    answer = answer_review(review(MANIFEST, operation=operation), admission_context(NO_CPU_LIMIT, facts()))
    assert response(answer) == {"uid": "u-1", "allowed": True, "auditAnnotations": {"outcome": "not-ours"}}


def test_h8_an_answer_echoes_the_uid_and_says_what_its_patch_is():
    document = json.loads(answer_review(review(MANIFEST, uid="abc"), admission_context(NO_CPU_LIMIT, facts())).body)
    response = document["response"]
    assert (document["apiVersion"], document["kind"], response["uid"]) == (
        "admission.k8s.io/v1",
        "AdmissionReview",
        "abc",
    )
    assert response["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(response["patch"]))[-1]["op"] == "remove"


def test_h8_without_a_patch_there_is_no_patch_type():
    admission_response = response(answer_review(review(MANIFEST), admission_context(policies(), facts())))
    assert ("patch" in admission_response, "patchType" in admission_response) == (False, False)


def test_h12_paused_changes_nothing():
    assert (
        answer_review(
            review(MANIFEST), admission_context(NO_CPU_LIMIT, facts(), settings=AdmissionSettings(paused=True))
        ).record.outcome
        is AdmissionOutcome.SKIPPED
    )


def test_h12_a_policy_that_is_off_changes_nothing():
    off = policies(policy("{limits: {cpu: remove}}", enabled="false"))
    assert answer_review(review(MANIFEST), admission_context(off, facts())).record.outcome is AdmissionOutcome.UNCHANGED


def test_h12_a_namespace_that_opted_out_is_untouched():
    world = facts(namespace(**{"trimtab.dev/opt-out": "true"}))
    assert (
        answer_review(review(MANIFEST), admission_context(NO_CPU_LIMIT, world)).record.outcome
        is AdmissionOutcome.SKIPPED
    )


def test_i7_the_schema_is_a_schema_and_takes_a_policy():
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    document = yaml.safe_load(policy("{limits: {cpu: remove}}"))
    assert list(jsonschema.Draft202012Validator(schema).iter_errors(document)) == []


@pytest.mark.parametrize(("mode", "warnings"), [("audit", 0), ("warn", 1)])
def test_i9_a_policy_that_only_watches_says_what_it_would_do(mode, warnings):
    answer = answer_review(
        review(MANIFEST), admission_context(policies(policy("{limits: {cpu: remove}}", mode=mode)), facts())
    )
    assert (answer.record.patch_operations, len(answer.record.warnings)) == ((), warnings)
    assert [would.field for would in answer.record.decision.would] == ["containers[app].limits.cpu"]


def test_a_denied_pod_hears_both_values():
    rule = policies(policy("{overhead: {contradicting: deny}}"))
    came = to_plain_json(pod(runtime_class_name="kata", overhead={"cpu": "1m"}))
    world = facts(runtime_class("kata", overhead={"cpu": "250m"}))
    admission_response = response(
        answer_review(review(came), admission_context(rule, world, settings=AdmissionSettings(overhead="webhook")))
    )
    assert (
        admission_response["allowed"],
        "1m" in admission_response["status"]["message"],
        "250m" in admission_response["status"]["message"],
    ) == (False, True, True)


def test_nulls_are_absent_as_they_are_to_the_server():
    came = json.loads(json.dumps(MANIFEST))
    came["spec"] |= {"tolerations": None, "affinity": None, "initContainers": None}
    answer = answer_review(
        review(came),
        admission_context(
            policies(policy("{placement: {tolerate: [{key: a}], require: [{label: b, exists: true}]}}")), facts()
        ),
    )
    assert answer.record.outcome is AdmissionOutcome.CHANGED
    assert answer.record.decision.pod.spec.tolerations[0].key == "a"


def test_a_dry_run_that_asks_for_us_is_answered_in_a_warning_and_nothing_else():
    asking = {**MANIFEST, "metadata": {"name": "web", "annotations": {PROBE_ANNOTATION: "doctor"}}}
    admission_response = response(
        answer_review(
            review(asking, dryRun=True),
            admission_context(NO_CPU_LIMIT, facts(), settings=AdmissionSettings(paused=True)),
        )
    )
    assert (admission_response["allowed"], "patch" in admission_response) == (True, False)
    [warning] = admission_response["warnings"]
    assert has_facts(warning, PROBE_WARNING, "1 policy", "paused")


def test_what_is_stored_is_decided_whatever_it_asks():
    asking = {**MANIFEST, "metadata": {"name": "web", "annotations": {PROBE_ANNOTATION: "doctor"}}}
    assert (
        answer_review(review(asking), admission_context(NO_CPU_LIMIT, facts())).record.outcome
        == AdmissionOutcome.CHANGED
    )
