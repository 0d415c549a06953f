"""What may enter the cluster as a PodPolicy or a pool."""

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


CONFIG_MAPS = {"group": "", "version": "v1", "resource": "configmaps"}


def pool(settings: str, **labels: str) -> Any:
    named = labels or {"trimtab.dev/pool": "batch"}
    return {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "batch", "labels": named},
        "data": {"pool.yaml": settings},
    }  # fmt: skip


def test_every_mistake_of_a_pool_is_told_with_its_line() -> None:
    found = response(pool("goal: cots\nage: {node: ten}\n"), "CREATE", resource=CONFIG_MAPS)
    assert not found["allowed"]
    first, second = found["status"]["message"].splitlines()
    assert first.startswith("ConfigMap batch pool.yaml:1:")
    assert "did you mean 'cost'?" in first
    assert "age.node: expected a duration" in second


def test_a_pool_without_settings_does_not_enter() -> None:
    found = response({**pool(""), "data": {}}, "CREATE", resource=CONFIG_MAPS)
    assert found["status"]["message"].startswith("ConfigMap batch data['pool.yaml']: expected")


def test_a_sound_pool_enters() -> None:
    assert response(pool("goal: cost\n"), "CREATE", resource=CONFIG_MAPS)["allowed"]


def test_somebody_elses_config_map_is_not_looked_at() -> None:
    assert response(pool("goal: cots\n", app="web"), "CREATE", resource=CONFIG_MAPS)["allowed"]
