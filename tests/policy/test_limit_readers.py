"""A limit that something in the container reads stays; where nothing shows what the container runs, the policy says
what happens."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given

from tests.build import NAMESPACE, admission_context, changed, codes, facts, policies, policy, review
from tests.property.drawn_pods import manifests
from tests.reasons import has_facts
from trimtab.admission.handler import answer_review
from trimtab.admission.pod_decision import decide_pod
from trimtab.cluster.api.meta import without_nulls
from trimtab.cluster.api.pod import Pod
from trimtab.policy.actions.limits import read_container_signs
from trimtab.policy.decide import Decision, decide
from trimtab.policy.pod_context import PodContext

CPU, MEMORY = "containers[app].limits.cpu", "containers[app].limits.memory"
REMOVE = policies(policy("{limits: {cpu: remove, memory: remove}}"))
KEEP_UNKNOWN = policies(policy("{limits: {cpu: remove, memory: remove, unknownRuntime: keep}}"))
REQUIRE = policies(policy("{limits: {memory: remove, required: true}}", match="{namespaces: {include: ['team-*']}}"))
JVM = {"env": [{"name": "JAVA_TOOL_OPTIONS", "value": "-XX:MaxRAMPercentage=75 -XX:+ExitOnOutOfMemoryError"}]}
FREE = {"env": [{"name": "JAVA_OPTS", "value": "-Xmx1g -XX:ActiveProcessorCount=2"}]}


def manifest(container: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    amounts = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "2Gi"}}
    app = {"name": "app", "image": "registry.example.com/pay:1", "resources": amounts, **container}
    return {"metadata": {"name": "pay", **metadata}, "spec": {"containers": [app]}}


def decision_on(container: dict[str, Any], by: Any = REMOVE, **metadata: Any) -> Decision:
    """The decision of the webhook, which decodes neither variables nor command lines at first."""
    answer = answer_review(review(manifest(container, **metadata)), admission_context(by, facts()))
    assert answer.record is not None
    assert answer.record.decision is not None
    return answer.record.decision


def sentences(decision: Decision) -> str:
    return " ".join(str(one.reason) for one in (*decision.fields_kept, *decision.changes))


def test_the_limits_of_a_jvm_that_takes_a_percentage_stay() -> None:
    decision = decision_on(JVM)
    assert (changed(decision), codes(decision)) == ({}, {"container-reads-limit"})
    assert has_facts(sentences(decision), "a JVM", "MaxRAMPercentage", "JAVA_TOOL_OPTIONS")


def test_the_limits_of_a_jvm_with_sizes_of_its_own_go() -> None:
    assert changed(decision_on(FREE)) == {CPU: None, MEMORY: None}


def test_the_limit_of_one_resource_stays_alone() -> None:
    assert changed(decision_on({"image": "node:22"})) == {CPU: None}


def test_a_null_in_the_pod_hides_nothing() -> None:
    assert changed(decision_on({**JVM, "command": None, "volumeMounts": None})) == {}


@pytest.mark.parametrize("part", ["labels", "annotations"])
def test_a_label_or_an_annotation_of_the_pod_shows_the_runtime(part: str) -> None:
    assert changed(decision_on({}, **{part: {"app.kubernetes.io/runtime": "java"}})) == {}


def test_the_record_says_that_the_runtime_is_not_known() -> None:
    decision = decision_on({})
    assert changed(decision) == {CPU: None, MEMORY: None}
    assert has_facts(sentences(decision), "nothing in the pod", "runtime")
    assert not has_facts(sentences(decision_on(FREE)), "nothing in the pod")


def test_a_policy_may_keep_the_limits_of_unknown_runtimes() -> None:
    decision = decision_on({}, KEEP_UNKNOWN)
    assert (changed(decision), codes(decision)) == ({}, {"runtime-unknown"})
    assert changed(decision_on(FREE, KEEP_UNKNOWN)) == {CPU: None, MEMORY: None}
    assert changed(decision_on({"image": "python:3"}, KEEP_UNKNOWN)) == {CPU: None, MEMORY: None}


def test_the_limit_of_ephemeral_storage_has_no_reader() -> None:
    keep = policies(policy("{limits: {ephemeral-storage: remove, unknownRuntime: keep}}"))
    amounts = {
        "resources": {"requests": {"cpu": "1", "ephemeral-storage": "1Gi"}, "limits": {"ephemeral-storage": "2Gi"}}
    }
    assert changed(decision_on(amounts, keep)) == {"containers[app].limits.ephemeral-storage": None}


def decision_with_volume(empty_dir: dict[str, Any], by: Any = REMOVE) -> Decision:
    pod = manifest({})
    pod["spec"]["volumes"] = [{"name": "shm", "emptyDir": empty_dir}]
    answer = answer_review(review(pod), admission_context(by, facts()))
    assert answer.record is not None
    assert answer.record.decision is not None
    return answer.record.decision


def test_a_volume_in_memory_without_a_size_reads_the_memory_limit() -> None:
    decision = decision_with_volume({"medium": "Memory"})
    assert (changed(decision), codes(decision)) == ({CPU: None}, {"container-reads-limit"})
    assert has_facts(sentences(decision), "emptyDir shm", "sizeLimit")


@pytest.mark.parametrize(
    "empty_dir", [{}, {"medium": ""}, {"medium": "Memory", "sizeLimit": "64Mi"}, {"medium": "HugePages-2Mi"}]
)
def test_other_volumes_read_no_limit(empty_dir: dict[str, Any]) -> None:
    assert {CPU, MEMORY} <= changed(decision_with_volume(empty_dir)).keys()


def test_a_null_as_the_size_of_a_volume_in_memory_is_none() -> None:
    assert MEMORY not in changed(decision_with_volume({"medium": "Memory", "sizeLimit": None}))


def test_a_volume_in_memory_that_gets_a_size_by_the_same_policy_reads_no_limit() -> None:
    both = policies(policy("{limits: {memory: remove}, emptyDirs: {sizeLimit: 64Mi}}"))
    assert MEMORY in changed(decision_with_volume({"medium": "Memory"}, both))


def test_a_required_removal_is_made_for_every_container() -> None:
    assert changed(decision_on(JVM, REQUIRE)) == {MEMORY: None}


def test_a_limit_that_follows_the_request_is_set_for_a_jvm_too() -> None:
    follow = policies(policy("{limits: {memory: request x 3}}"))
    assert changed(decision_on(JVM, follow)) == {MEMORY: "3Gi"}


def test_a_second_container_does_not_speak_for_the_first() -> None:
    pod = manifest({})
    pod["spec"]["containers"].append({"name": "agent", **JVM})
    answer = answer_review(review(pod), admission_context(REMOVE, facts()))
    assert answer.record is not None
    assert changed(answer.record.decision) == {CPU: None, MEMORY: None}


@given(manifests())
def test_a_decoded_pod_and_its_bytes_show_the_same(plain: dict[str, Any]) -> None:
    pod = msgspec.convert(without_nulls(plain), Pod)
    assert read_container_signs(pod, b"") == read_container_signs(Pod(), json.dumps(plain).encode())


@given(manifests())
def test_a_captured_pod_gets_the_same_decision(plain: dict[str, Any]) -> None:
    """A capture holds what the text shows, and not the text."""
    pod = msgspec.convert(without_nulls(plain), Pod)
    captured = msgspec.json.decode(msgspec.json.encode(pod), type=Pod)
    first, second = (decide(one, KEEP_UNKNOWN, facts(), NAMESPACE) for one in (pod, captured))
    assert (first.changes, first.fields_kept) == (second.changes, second.fields_kept)
    body = json.dumps(plain).encode()
    assert (
        decide_pod(PodContext(pod=pod, namespace=NAMESPACE, facts=facts(), body=body), KEEP_UNKNOWN).decision.changes
        == first.changes
    )
