"""What may enter the cluster as a PodPolicy or a pool."""

import json
from typing import Any

import msgspec
import pytest

from tests.hostile.documents import asked, policy_review, pool_review
from tests.reasons import has_facts
from trimtab.admission.validate_config import validate_review
from trimtab.policy.policy_kind import API_VERSION, KIND
from trimtab.policy.schema import GROUP, PLURAL

BROKEN = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "a"}, "spec": {"actions": {}, "wat": 1}}


def response(stored: Any, operation: str = "UPDATE", **request: Any) -> Any:
    actual_request = {
        "uid": "u",
        "operation": operation,
        "object": stored,
        "resource": {"group": GROUP, "version": "v1alpha1", "resource": PLURAL},
        **request,
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": actual_request}
    status, body = validate_review(msgspec.json.encode(review))
    assert status == 200
    return msgspec.json.decode(body)["response"]


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
def test_a_broken_policy_does_not_enter(operation: str) -> None:
    admission_response = response(BROKEN, operation)
    assert not admission_response["allowed"]
    assert "the unknown field 'wat'" in admission_response["status"]["message"]


def test_the_status_of_a_broken_policy_may_be_written() -> None:
    assert response(BROKEN, subResource="status")["allowed"]


def test_a_broken_policy_may_be_on_its_way_out() -> None:
    leaving = {**BROKEN, "metadata": {"name": "a", "deletionTimestamp": "2030-01-01T00:00:00Z"}}
    assert response(leaving)["allowed"]


def test_a_required_action_that_depends_on_an_image_does_not_enter_unless_it_is_stored_so_already() -> None:
    match = {"namespaces": {"include": ["team-*"]}, "containers": {"images": ["ghcr.io/*"]}}
    spec = {"match": match, "actions": {"runtimeClass": {"name": "gvisor", "required": True}}}
    stored = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "a"}, "spec": spec}
    labelled = {**stored, "metadata": {"name": "a", "labels": {"team": "x"}}}
    changed = {**stored, "spec": {**spec, "priority": 3}}
    assert not response(stored, "CREATE")["allowed"]
    assert response(labelled, "UPDATE", oldObject=stored)["allowed"]
    assert not response(changed, "UPDATE", oldObject=stored)["allowed"]


CONFIG_MAPS = {"group": "", "version": "v1", "resource": "configmaps"}


def pool(settings: str, **labels: str) -> Any:
    named = labels or {"trimtab.dev/pool": "batch"}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "batch", "labels": named},
        "data": {"pool.yaml": settings},
    }


def test_every_mistake_of_a_pool_is_told_with_its_line() -> None:
    admission_response = response(pool("goal: cots\nage: {node: ten}\n"), "CREATE", resource=CONFIG_MAPS)
    assert not admission_response["allowed"]
    first, second = admission_response["status"]["message"].splitlines()
    assert first.startswith("ConfigMap batch pool.yaml:1:")
    assert "did you mean 'cost'?" in first
    assert "age.node: expected a duration" in second


def test_a_pool_without_settings_does_not_enter() -> None:
    admission_response = response({**pool(""), "data": {}}, "CREATE", resource=CONFIG_MAPS)
    assert admission_response["status"]["message"].startswith("ConfigMap batch data['pool.yaml']: expected")


def test_a_sound_pool_enters() -> None:
    assert response(pool("goal: cost\n"), "CREATE", resource=CONFIG_MAPS)["allowed"]


def test_somebody_elses_config_map_is_not_looked_at() -> None:
    assert response(pool("goal: cots\n", app="web"), "CREATE", resource=CONFIG_MAPS)["allowed"]


def test_no_more_than_twenty_mistakes_are_told_and_that_there_are_more():
    text = "".join(f"moed{at}: act\n" for at in range(1000))
    report = told(pool_review(text))
    assert len(report.splitlines()) == 21
    assert has_facts(report.splitlines()[-1], "20 mistakes")


def test_a_policy_with_thousands_of_mistakes_names_twenty_of_them():
    answer = validate_review(policy_review({"actions": {f"label{at}": {} for at in range(3000)}}))
    message = json.loads(answer[1])["response"]["status"]["message"]
    assert len(message.splitlines()) == 21


def test_settings_of_more_than_64_kb_are_refused_unread():
    assert has_facts(told(pool_review("# " + "x" * 70_000)), "at most 65536 bytes")
    answer = validate_review(policy_review({"description": "x" * 70_000, "actions": {"labels": {"add": {"a": "b"}}}}))
    assert has_facts(json.loads(answer[1])["response"]["status"]["message"], "spec", "at most 65536 bytes")


def test_settings_of_thousands_of_lines_are_no_pools():
    prices = "".join(f"  t{at}: 1\n" for at in range(4000))
    assert has_facts(told(pool_review(f"prices:\n{prices}")), "lines and entries", "at most")


@pytest.mark.parametrize("include", [list(range(9000)), [1] * 20_000, [[]] * 15_000, [{"a": 1}] * 6000])
def test_specs_of_thousands_of_entries_are_no_policies(include):
    spec = {"match": {"namespaces": {"include": include}}, "actions": {"labels": {"add": {"a": "b"}}}}
    assert has_facts(told(policy_review(spec)), "spec", "at most 4000 entries")


def test_a_large_config_map_of_anything_else_is_let_in():
    config_map = {"kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"note": "x" * 300_000}}
    assert json.loads(validate_review(asked("", "configmaps", config_map))[1])["response"]["allowed"]


def told(body):
    return json.loads(validate_review(body)[1])["response"]["status"]["message"]
