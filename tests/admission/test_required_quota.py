"""A required action that a ResourceQuota has no room for: the server's own quota refuses the pod, and we say why."""

import json

import pytest

from tests.build import (
    NAMESPACE,
    admission_context,
    before_and_after,
    codes,
    container,
    facts,
    limit_range,
    namespace,
    node,
    pod,
    policies,
    policy,
    quota,
    review,
    runtime_class,
)
from tests.reasons import has_facts
from trimtab.admission.admission_result import AdmissionOutcome
from trimtab.admission.apiserver.outcome import PodAdmitted, PodRejected
from trimtab.admission.handler import answer_review
from trimtab.admission.json_patch import new_rejection
from trimtab.admission.pod_decision import decide_pod
from trimtab.admission.preview import preview_admission
from trimtab.admission.response_cache import ResponseCache
from trimtab.cluster.api.meta import UNSET
from trimtab.policy.pod_context import PodContext

KATA = runtime_class("kata-fc", overhead={"cpu": "250m"})
TEAM = f"{{namespaces: {{include: [{NAMESPACE}]}}}}"
REQUIRED = policy("{runtimeClass: {name: kata-fc, required: true}}", name="sandbox", match=TEAM)
SIZES = policy("{requests: {cpu: {from: policy, otherwise: 900m, when: always}}}", name="sizes")
SMALL = pod(container(requests={"cpu": "120m"}))
MANIFEST = {
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "app", "image": "app:1", "resources": {"requests": {"cpu": "120m"}}}]},
}


def world(used: str = "800m", hard: str = "1"):
    return facts(namespace(NAMESPACE), KATA, quota({"requests.cpu": hard}, used={"requests.cpu": used}))


def warnings_of(result) -> list[str]:
    return [f"{left.policy} {left.field}: {left.reason.sentence}" for left in result.decision.fields_kept if left.loud]


def test_the_patch_is_sent_with_a_warning_that_names_the_overhead():
    decision = decide_pod(PodContext(pod=SMALL, namespace=NAMESPACE, facts=world()), policies(REQUIRED))
    assert (decision.outcome, decision.problem, decision.decision.denied) == (AdmissionOutcome.CHANGED, "", None)
    assert decision.decision.pod.spec.runtime_class_name == "kata-fc"
    (warning,) = warnings_of(decision)
    assert has_facts(warning, "sandbox runtimeClass", "kata-fc", "cpu 250m", "ResourceQuota q", "refuse")


def test_offline_it_is_the_quota_that_refuses_the_pod():
    preview = preview_admission(SMALL, NAMESPACE, admission_context(policies(REQUIRED), world()))
    assert isinstance(preview.unaided, PodAdmitted)
    assert isinstance(preview.result, PodRejected)
    assert preview.result.plugin == "ResourceQuota"
    assert has_facts(
        preview.result.message, "exceeded quota: q", "requests.cpu=370m", "requests.cpu=800m", "requests.cpu=1"
    )
    assert (preview.outcome, [call.problem for call in preview.calls if call.problem]) == (AdmissionOutcome.CHANGED, [])


def test_the_answer_to_a_review_carries_the_warning_whole():
    answer = answer_review(review(MANIFEST, namespace=NAMESPACE), admission_context(policies(REQUIRED), world()))
    response = json.loads(answer.body)["response"]
    assert (response["allowed"], "patch" in response, answer.record.outcome) == (True, True, AdmissionOutcome.CHANGED)
    (warning,) = response["warnings"]
    assert has_facts(warning, "RuntimeClass kata-fc", "overhead", "cpu 250m")
    assert warning.endswith("[quota-may-refuse]")


def test_where_the_quota_has_room_nothing_is_said():
    decision = decide_pod(
        PodContext(pod=SMALL, namespace=NAMESPACE, facts=world(used="100m", hard="10")), policies(REQUIRED)
    )
    assert (decision.outcome, warnings_of(decision)) == (AdmissionOutcome.CHANGED, [])


def test_what_is_not_required_is_still_taken_back():
    decision = decide_pod(PodContext(pod=SMALL, namespace=NAMESPACE, facts=world()), policies(REQUIRED, SIZES))
    after = decision.apply_to(SMALL).spec
    assert (decision.outcome, after.runtime_class_name) == (AdmissionOutcome.CHANGED, "kata-fc")
    assert after.containers[0].resources.requests == {"cpu": "120m"}


def test_a_placement_that_no_node_has_is_taken_back_though_the_quota_may_refuse_the_pod():
    place = policy("{placement: {nodeSelector: {pool: nowhere}}}", name="place")
    nodes = facts(
        namespace(NAMESPACE),
        KATA,
        quota({"requests.cpu": "1"}, used={"requests.cpu": "800m"}),
        node(cpu="8", memory="32Gi"),
    )
    decision = decide_pod(PodContext(pod=SMALL, namespace=NAMESPACE, facts=nodes), policies(REQUIRED, place))
    after = decision.apply_to(SMALL).spec
    assert (decision.outcome, after.runtime_class_name, after.node_selector) == (
        AdmissionOutcome.CHANGED,
        "kata-fc",
        UNSET,
    )
    assert codes(decision.decision, loud=True) == {"no-node-could-run-it", "quota-may-refuse"}


def test_of_another_required_action_its_name_is_told():
    rule = policy(
        "{requests: {cpu: {from: policy, otherwise: 900m, when: always}, required: true}}", name="floor", match=TEAM
    )
    decision = decide_pod(PodContext(pod=SMALL, namespace=NAMESPACE, facts=world()), policies(rule))
    (warning,) = warnings_of(decision)
    assert decision.outcome is AdmissionOutcome.CHANGED
    assert has_facts(warning, "floor requests", "policy requires", "ResourceQuota q", "refuse")


def test_what_another_plugin_refuses_stays_a_fault_of_the_patch():
    large = pod(container(requests={"cpu": "3"}))
    narrow = facts(namespace(NAMESPACE), limit_range(max={"cpu": "2"}))
    wrong = new_rejection(before_and_after(SMALL, large, narrow, NAMESPACE), quota_may_refuse=True)
    assert has_facts(str(wrong), "API server", "refuse", "changed pod")


@pytest.mark.parametrize("before", ["800m", "100m"])
def test_a_remembered_answer_does_not_keep_a_warning_of_another_use(before):
    memory, rules, body = ResponseCache(), policies(REQUIRED), review(MANIFEST, namespace=NAMESPACE)
    uses = {"800m": "100m", "100m": "800m"}
    first, second = (
        json.loads(answer_review(body, admission_context(rules, world(use), memory=memory)).body)["response"].get(
            "warnings", []
        )
        for use in (before, uses[before])
    )
    assert (bool(first), bool(second)) == (before == "800m", before == "100m")
