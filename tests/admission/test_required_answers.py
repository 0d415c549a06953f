"""Answers to reviews of pods of which a policy requires something: denied also where nothing could be decided."""

import json

import pytest

from tests.build import admission_context, facts, namespace, policies, policy, review, runtime_class
from tests.reasons import has_facts
from trimtab.admission import handler as answering
from trimtab.admission import pod_decision as judging
from trimtab.admission.admission_result import AdmissionOutcome
from trimtab.admission.handler import answer_review
from trimtab.admission.response_cache import ResponseCache

SANDBOX = policies(
    policy("{runtimeClass: {name: kata, required: true}}", name="sandbox", match="{namespaces: {include: ['team-*']}}")
)
WORLD = facts(namespace(), runtime_class("kata"))
POD = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "app", "image": "app:1"}]}}


def nested(depth: int) -> dict:
    """A pod that is valid to the API server, with a deep tree of managed fields."""
    tree = '{"f:a":' * depth + "{}" + "}" * depth
    text = json.dumps({**POD, "metadata": {"name": "web", "managedFields": ["TREE"]}})
    return text.replace('"TREE"', f'{{"fieldsV1":{tree}}}')


def deep_review(namespace_: str = "team-a", **request) -> bytes:
    """As the API server writes it: without a space, and the object behind what is asked."""
    whole = json.loads(review("OBJECT", namespace=namespace_, **request))
    return json.dumps(whole, separators=(",", ":")).replace('"OBJECT"', nested(30_000)).encode()


def told(body: bytes, memory: ResponseCache | None = None) -> tuple[bool, str]:
    """Is the pod let in, and what is said?"""
    response = json.loads(answer_review(body, admission_context(SANDBOX, WORLD, memory=memory)).body)["response"]
    return response["allowed"], response.get("status", {}).get("message", "")


def test_the_reason_of_a_denial_reaches_whoever_creates_the_pod():
    pod = {**POD, "spec": {**POD["spec"], "runtimeClassName": "plain"}}
    allowed, message = told(review(pod))
    assert (allowed, "trimtab: sandbox requires runtimeClassName" in message) == (False, True)


def test_an_error_of_ours_denies_where_something_may_be_required_and_nowhere_else(monkeypatch):
    monkeypatch.setattr(answering, "decide_pod", lambda *_, **__: 1 / 0)
    allowed, message = told(review(POD))
    assert not allowed
    assert has_facts(
        message, "sandbox", "not decide", "ZeroDivisionError: division by zero", "trimtab explain required"
    )
    assert told(review(POD, namespace="other")) == (True, "")


def test_a_patch_that_fails_its_check_denies(monkeypatch):
    monkeypatch.setattr(judging, "check_patch", lambda *_, **__: "it does not apply")
    record = answer_review(review(POD), admission_context(SANDBOX, WORLD)).record
    assert (record.outcome, record.problem) == (AdmissionOutcome.DENIED, "it does not apply")


def test_a_mistake_of_ours_is_not_remembered(monkeypatch):
    monkeypatch.setattr(judging, "check_patch", lambda *_, **__: "it does not apply")
    memory = ResponseCache()
    told(review(POD), memory)
    assert len(memory) == 0


def test_a_pod_that_cannot_be_read_denies_where_something_may_be_required():
    senseless = {**POD, "spec": {"containers": [{"name": 7}]}}
    results = [told(review(senseless, namespace=where))[0] for where in ("team-a", "other")]
    assert results == [False, True]


@pytest.mark.parametrize("memory", [None, ResponseCache()])
def test_a_tree_of_managed_fields_is_no_way_past_a_required_action(memory):
    allowed, message = told(deep_review(), memory)
    assert (allowed, has_facts(message, "sandbox", "may require a change")) == (False, True)


def test_a_tree_of_managed_fields_goes_through_where_nothing_is_required():
    assert told(deep_review("other")) == (True, "")


def test_what_is_not_the_creation_of_a_pod_is_never_denied():
    assert told(deep_review(operation="UPDATE")) == (True, "")
