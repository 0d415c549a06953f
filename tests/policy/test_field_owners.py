"""Values of the author stay where `kubectl apply` manages the pod itself, because it will be applied again."""

import json
from typing import Any

import pytest

from tests.build import admission_context, facts, policies, policy, review, runtime_class
from tests.policies.runner import Run, pods, run, world
from tests.reasons import assert_reason
from trimtab.admission.apiserver.outcome import PodRejected
from trimtab.admission.handler import answer_review
from trimtab.policy import field_owners as server_side
from trimtab.policy.field_owners import APPLIED
from trimtab.policy.load import load_policies

HEAD = "apiVersion: trimtab.dev/v1alpha1\nkind: PodPolicy\nmetadata: {name: p}\nspec: {match: %s, actions: %s}\n"
MATCH = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
WRITTEN: dict[str, Any] = {
    "containers": [{"name": "a", "image": "i", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}}],
    "nodeSelector": {"pool": "web"},
    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [MATCH]}}},
}
BARE: dict[str, Any] = {"containers": [{"name": "a", "image": "i"}]}
LIMITS = "{limits: {cpu: remove}}"
SIZES = "{requests: {cpu: {from: policy, otherwise: 50m, when: always}}}"
REQUIRE = "{placement: {require: [{label: spot, in: ['yes']}]}}"


def after(actions: str, spec: dict[str, Any], cluster: bytes = b"", /, match: str = "{}", **metadata: Any) -> Run:
    pod = {"kind": "Pod", "metadata": {"name": "p", **metadata}, "spec": spec}
    ((result, namespace),) = pods(json.dumps(pod).encode())
    loaded = load_policies([("p", (HEAD % (match, actions)).encode())])
    assert loaded.mistakes == ()
    return run(result, namespace, loaded.policies.all, world(cluster))


ANNOTATED = {"annotations": {APPLIED: "{}"}}
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "1", "controller": True}


@pytest.mark.parametrize("actions", [LIMITS, SIZES, REQUIRE])
def test_what_is_written_is_not_replaced(actions: str) -> None:
    result = after(actions, WRITTEN, **ANNOTATED)
    assert (result.because, result.decisions[0].changes) == ({"applied-as-written"}, ())
    assert all(kept_field.loud for kept_field in result.decisions[0].fields_kept)


@pytest.mark.parametrize(
    "actions",
    [
        "{limits: {cpu: remove, required: true}}",
        "{requests: {cpu: {from: policy, otherwise: 50m, when: always}, required: true}}",
        "{placement: {require: [{label: spot, in: ['yes']}], required: true}}",
    ],
)
def test_who_applies_a_pod_is_not_exempted_from_what_is_required(actions: str) -> None:
    result = after(actions, WRITTEN, match="{namespaces: {include: [team]}}", **ANNOTATED, namespace="team")
    assert result.because == {"required", "applied-as-written"}
    assert isinstance(result.outcome, PodRejected)


def test_what_stays_is_named() -> None:
    (kept_field,) = after(LIMITS, WRITTEN, **ANNOTATED).decisions[0].fields_kept
    assert_reason(kept_field.reason, "applied-as-written", field="containers[a].limits.cpu")


@pytest.mark.parametrize("actions", [SIZES, REQUIRE])
def test_what_is_missing_is_added(actions: str) -> None:
    assert len(after(actions, BARE, **ANNOTATED).decisions[0].changes) == 1


@pytest.mark.parametrize("metadata", [{}, {**ANNOTATED, "ownerReferences": [OWNER]}])
@pytest.mark.parametrize("actions", [LIMITS, SIZES, REQUIRE])
def test_other_pods_are_changed(actions: str, metadata: dict[str, Any]) -> None:
    assert len(after(actions, WRITTEN, **metadata).decisions[0].changes) == 1


TOLERATE = "{placement: {tolerate: [{key: pool, value: web, effect: NoSchedule}]}}"
OWN = {"key": "other", "operator": "Exists"}
GIVEN = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
KATA = b"""
kind: RuntimeClass
apiVersion: node.k8s.io/v1
metadata: {name: kata}
handler: kata
scheduling: {tolerations: [{key: kata, operator: Exists}]}
"""


def applied(amount: Any) -> dict[str, Any]:
    return {"annotations": {APPLIED: json.dumps(amount)}}


@pytest.mark.parametrize("written", [{"spec": {"tolerations": [OWN]}}, "odd", {"spec": {"tolerations": "odd"}}])
def test_nothing_is_added_to_tolerations_that_are_written_because_they_are_compared_as_a_whole(written: Any) -> None:
    spec = {**BARE, "tolerations": [OWN, GIVEN]}
    assert after(TOLERATE, spec, **applied(written)).because == {"applied-as-written"}
    assert after("{runtimeClass: {name: kata}}", spec, KATA, **applied(written)).because == {"applied-as-written"}


def test_tolerations_that_only_the_server_gave_may_have_others_beside_them() -> None:
    spec, metadata = {**BARE, "tolerations": [GIVEN]}, applied({"spec": BARE})
    assert len(after(TOLERATE, spec, **metadata).decisions[0].changes) == 1
    assert len(after("{runtimeClass: {name: kata}}", spec, KATA, **metadata).decisions[0].changes) == 1


def test_a_class_that_brings_nothing_new_is_chosen() -> None:
    spec = {**BARE, "tolerations": [{"operator": "Exists"}]}
    result = after("{runtimeClass: {name: kata}}", spec, KATA, **applied({"spec": spec}))
    assert len(result.decisions[0].changes) == 1


# Server-side apply --------------------------------------------------------------------------------------------------

REQUIRED = "f:requiredDuringSchedulingIgnoredDuringExecution"
FIELDS: dict[str, Any] = {
    "f:spec": {
        "f:containers": {
            'k:{"name":"a"}': {".": {}, "f:image": {}, "f:resources": {"f:limits": {"f:cpu": {}}}, "f:name": {}}
        },
        "f:affinity": {"f:nodeAffinity": {REQUIRED: {}}},
        "f:nodeSelector": {},
        "f:tolerations": {},
    }
}
"""As the API server of 1.36 writes them."""


def reviewed(actions: str, operation: str, fields: Any = FIELDS, **metadata: Any) -> tuple[set[str], set[str]]:
    """Returns the changes, and the fields that stay because they will be applied again."""
    entry = {
        "manager": "kubectl",
        "operation": operation,
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    spec = {**WRITTEN, "tolerations": [OWN]}
    body = review({"metadata": {"name": "p", "managedFields": [entry], **metadata}, "spec": spec})
    kata = runtime_class("kata", node_selector={"kata": "yes"})
    result = answer_review(body, admission_context(policies(policy(actions)), facts(kata))).record.decision
    assert result is not None
    stays = {
        kept_field.field for kept_field in result.fields_kept if kept_field.reason.code.name == "applied-as-written"
    }
    return {change.field for change in result.changes}, stays


SIZED = "containers[a].requests.cpu"


@pytest.mark.parametrize(
    ("actions", "changed", "stays"),
    [
        (LIMITS, set(), {"containers[a].limits.cpu"}),
        (SIZES, {SIZED}, set()),
        (REQUIRE, set(), {"nodeAffinity.required[spot]"}),
        (TOLERATE, set(), {"tolerations[pool=web:NoSchedule]"}),
        ("{placement: {nodeSelector: {more: 'yes'}}}", set(), {"nodeSelector[more]"}),
        ("{runtimeClass: {name: kata}}", set(), {"runtimeClassName"}),
    ],
)
def test_server_side_apply_keeps_what_its_manager_wrote_field_by_field(
    actions: str, changed: set[str], stays: set[str]
) -> None:
    assert reviewed(actions, "Apply") == (changed, stays)


@pytest.mark.parametrize("actions", [LIMITS, SIZES, REQUIRE, TOLERATE, "{runtimeClass: {name: kata}}"])
def test_what_was_created_or_updated_is_changed(actions: str) -> None:
    assert reviewed(actions, "Update")[1] == set()


def test_an_apply_that_names_other_fields_leaves_these() -> None:
    changed, stays = reviewed(LIMITS, "Apply", {"f:metadata": {"f:labels": {"f:app": {}}}})
    assert (changed, stays) == ({"containers[a].limits.cpu"}, set())


@pytest.mark.parametrize("fields", [None, 7, {"f:spec": 3}, ["f:spec"]])
def test_fields_that_make_no_sense_keep_all_that_is_written(fields: Any) -> None:
    assert reviewed(LIMITS, "Apply", fields)[0] == set()


def test_managed_fields_are_read_only_where_a_written_value_would_go(monkeypatch: pytest.MonkeyPatch) -> None:
    requested: list[bytes] = []
    real = server_side._managed_decoder.decode

    class Decoder:
        def decode(self, body: bytes) -> Any:
            requested.append(body)
            return real(body)

    monkeypatch.setattr(server_side, "_managed_decoder", Decoder())
    reviewed("{labels: {add: {a: b}}}", "Apply")
    reviewed(LIMITS, "Update")
    assert requested == []
    reviewed(LIMITS, "Apply")
    assert len(requested) == 1
