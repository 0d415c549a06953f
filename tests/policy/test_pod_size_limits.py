"""The limits of a pod that is decided on."""

import io
import json

import pytest
from prometheus_client import CollectorRegistry

from tests.build import NAMESPACE, admission_context, facts, owner_key, pod, policies, policy
from tests.hostile import world
from tests.hostile.pods import SHAPES, container, review
from tests.hostile.pods import pod as manifest
from tests.reasons import has_facts
from trimtab.admission.admission_result import AdmissionOutcome
from trimtab.admission.audit.drift import audit_template
from trimtab.admission.audit.original_pod import PodTemplateKey
from trimtab.admission.handler import answer_review
from trimtab.admission.readmission import admit_next_pod
from trimtab.cluster.api.pod import Pod, Toleration
from trimtab.cluster.api.workload import PodTemplateSpec
from trimtab.cluster.reason import Unreadable
from trimtab.policy.pod_context import DEFAULT_SETTINGS, AdmissionSettings
from trimtab.policy.pod_size_limits import LIMITS, MAX_BYTES, find_excess
from trimtab.policy.reasons import REQUIRED, TOO_LARGE
from trimtab.runtime import log
from webhook.metrics import DecisionLogger, WebhookMetrics

LABELLED = policies(policy("{labels: {add: {cost: low}}}"))


def answered(built, by=None, settings=DEFAULT_SETTINGS):
    return answer_review(review(built), admission_context(by or world.policies(), world.facts(), settings=settings))


def tolerating(count):
    return pod(tolerations=tuple(Toleration(key=f"t{at}", operator="Exists") for at in range(count)))


def test_a_hundred_containers_and_two_hundred_of_all_else_in_256_kb_are_decided():
    many = manifest(
        {
            "containers": [container(f"c-{at}", env=[{"name": "A", "value": "x" * 2300}]) for at in range(100)],
            "nodeSelector": {f"k{at}": "v" for at in range(200)},
            "tolerations": [{"key": f"t{at}", "operator": "Exists"} for at in range(200)],
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": f"e{at}", "operator": "Exists"}]} for at in range(200)
                        ]
                    }
                }
            },
        }
    )
    assert 256_000 < len(json.dumps(many, separators=(",", ":"))) < MAX_BYTES
    assert answered(many).record.outcome is AdmissionOutcome.CHANGED


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_pod_of_any_shape_is_decided_below_the_gate(shape):
    decided = (AdmissionOutcome.CHANGED, AdmissionOutcome.UNCHANGED)
    assert answered(shape.make(shape.most)).record.outcome in decided or shape.name == "long-amount"


def test_a_pod_over_the_gate_goes_through_unchanged_with_its_reason_and_its_numbers():
    verdict = answered(manifest({"tolerations": [{"key": f"t{at}"} for at in range(257)]}))
    messages = json.loads(verdict.body)["response"]
    assert (messages["allowed"], "patch" in messages, verdict.record.outcome) == (
        True,
        False,
        AdmissionOutcome.TOO_LARGE,
    )
    [warning] = messages["warnings"]
    assert has_facts(warning, "unchanged", "257 tolerations", "at most 256", "too-large")


def test_bytes_are_weighed_before_the_pod_is_read():
    verdict = answered(manifest(annotations={"note": "x" * MAX_BYTES}))
    assert verdict.record.outcome is AdmissionOutcome.TOO_LARGE
    assert "bytes of JSON" in verdict.record.problem


@pytest.mark.parametrize(
    "padding", [{"annotations": {"note": "x" * MAX_BYTES}}, {"labels": {f"l{at}": "" for at in range(3000)}}]
)
def test_padding_is_no_way_out_of_what_a_policy_requires(padding):
    by = policies(policy("{labels: {required: true, add: {cost: low}}}", match="{namespaces: {include: [tenant]}}"))
    verdict = answered(manifest(**padding), by)
    assert verdict.record.outcome is AdmissionOutcome.DENIED
    assert verdict.record.decision.denied.code is REQUIRED


def test_padding_is_let_through_in_namespaces_where_nothing_is_required():
    by = policies(policy("{labels: {required: true, add: {cost: low}}}", match="{namespaces: {include: [other]}}"))
    assert answered(manifest(annotations={"note": "x" * MAX_BYTES}), by).record.outcome is AdmissionOutcome.TOO_LARGE


def test_nothing_is_said_of_the_size_where_nothing_would_be_decided_anyway():
    built = manifest({"tolerations": [{"key": f"t{at}"} for at in range(1000)]})
    assert answered(built, settings=AdmissionSettings(paused=True)).record.outcome is AdmissionOutcome.SKIPPED


def test_what_the_first_call_added_does_not_make_the_second_another_one():
    most = {f"l{at}": "" for at in range(LIMITS.labels - 2)}
    first = answered(manifest(labels=most), LABELLED)
    assert first.record.outcome is AdmissionOutcome.CHANGED
    second = answer_review(
        review(json.loads(_applied(manifest(labels=most), first))), admission_context(LABELLED, world.facts())
    )
    assert second.record.outcome is AdmissionOutcome.UNCHANGED


def _applied(item, result):
    import jsonpatch

    return json.dumps(jsonpatch.apply_patch(item, list(result.record.patch_operations)))


def test_a_number_without_end_is_unreadable_and_no_mistake_of_ours():
    long = manifest({"containers": [container("app", resources={"limits": {"cpu": "1" * 5000}})]})
    assert answered(long).record.outcome is AdmissionOutcome.UNREADABLE


def test_the_log_names_the_pods_namespace_and_who_sent_it():
    text = io.StringIO()
    teller = DecisionLogger(WebhookMetrics(CollectorRegistry()), log.build_logger("info", "json", text))
    verdict = answered(manifest({"tolerations": [{"key": f"t{at}"} for at in range(257)]}))
    teller.log_review(verdict, seconds=0.7)
    lines = [json.loads(line) for line in text.getvalue().splitlines()]
    assert [(line["namespace"], line["user"]) for line in lines] == [("tenant", "mallory")] * 2
    assert b'trimtab_review_outcomes_total{dry_run="false",outcome="too-large"} 1.0' in teller.render_metrics()


def test_a_running_pod_over_the_gate_is_left_out_by_name():
    alike = PodTemplateKey(NAMESPACE, tolerating(257), None)
    store = audit_template(alike, LABELLED, facts(), AdmissionSettings())
    assert [(name, reason.code) for name, reason in store.left_out.items()] == [("p", TOO_LARGE)]


def test_a_template_over_the_gate_is_unreadable_so_that_nothing_is_moved_on_a_guess():
    template = PodTemplateSpec(spec=tolerating(257).spec)
    result = admit_next_pod(template, owner_key("ReplicaSet/web"), admission_context(LABELLED, facts()))
    assert isinstance(result, Unreadable)
    assert "too-large" in str(result)


def test_counting_takes_no_notice_of_what_is_ordinary():
    assert find_excess(pod()) is None
    assert find_excess(Pod()) is None


def expressing(terms, values):
    names = [f"v{at}" for at in range(values)]
    expressions = [{"key": f"e{at}", "operator": "In", "values": names} for at in range(8)]
    term = {"preference": {"matchExpressions": expressions}, "weight": 1}
    return manifest({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term] * terms}}})


@pytest.mark.parametrize(("terms", "values", "refused"), [(8, 16, False), (16, 16, False), (8, 64, True)])
def test_few_terms_of_affinity_with_many_values_are_counted(terms, values, refused):
    result = answered(expressing(terms, values)).record.outcome
    assert (result is AdmissionOutcome.TOO_LARGE) is refused
