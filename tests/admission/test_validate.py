"""What may enter the cluster as a PodPolicy."""

from typing import Any

import msgspec
import pytest

from trimtab.admission.validate import validate
from trimtab.policy.document import API_VERSION, KIND
from trimtab.policy.schema import GROUP, PLURAL

BROKEN = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "a"}, "spec": {"actions": {}, "wat": 1}}


def response(stored: Any, operation: str = "UPDATE", **request: Any) -> Any:
    asked = {
        "uid": "u", "operation": operation, "object": stored,
        "resource": {"group": GROUP, "version": "v1alpha1", "resource": PLURAL}, **request,
    }  # fmt: skip
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}
    status, body = validate(msgspec.json.encode(review))
    assert status == 200
    return msgspec.json.decode(body)["response"]


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
def test_a_broken_policy_does_not_enter(operation: str) -> None:
    found = response(BROKEN, operation)
    assert not found["allowed"]
    assert "the unknown field 'wat'" in found["status"]["message"]


def test_the_status_of_a_broken_policy_may_be_written() -> None:
    assert response(BROKEN, subResource="status")["allowed"]


def test_a_broken_policy_may_be_on_its_way_out() -> None:
    leaving = {**BROKEN, "metadata": {"name": "a", "deletionTimestamp": "2030-01-01T00:00:00Z"}}
    assert response(leaving)["allowed"]


def pool(text: str, **labels: str) -> Any:
    meta = {"name": "pool-web", "labels": labels or {"trimtab.dev/pool": "web"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"pool.yaml": text}}


CONFIG_MAPS = {"group": "", "version": "v1", "resource": "configmaps"}


def test_a_pool_with_a_mistake_does_not_enter() -> None:
    found = response(pool("mode: acts"), resource=CONFIG_MAPS)
    assert not found["allowed"]
    assert "rehearse or act" in found["status"]["message"]
    assert response(pool("mode: act"), resource=CONFIG_MAPS)["allowed"]


def test_another_configmap_is_none_of_our_business() -> None:
    assert response(pool("mode: acts", app="web"), resource=CONFIG_MAPS)["allowed"]
