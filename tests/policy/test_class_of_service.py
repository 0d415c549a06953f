"""A pod's class of service changes only when a policy says so."""

import pytest

from tests.policies.runner import Run, pods, run, world
from trimtab.admission.apiserver.outcome import PodAdmitted
from trimtab.cluster.resources import QoS, qos_class
from trimtab.policy.load import load_policies

HEAD = "apiVersion: trimtab.dev/v1alpha1\nkind: PodPolicy\nmetadata: {name: p}\nspec: {actions: %s}\n"
NO_LIMITS = "{limits: {cpu: remove, memory: remove}}"
REQUESTS = "{requests: {cpu: {from: policy, otherwise: 50m}}}"


def after(actions: str, resources: str, cluster: bytes = b"") -> Run:
    spec = f"{{containers: [{{name: a, image: i, resources: {resources}}}]}}"
    ((pod, namespace),) = pods(f"kind: Pod\nmetadata: {{name: p}}\nspec: {spec}".encode())
    loaded = load_policies([("p", (HEAD % actions).encode())])
    assert loaded.mistakes == ()
    return run(pod, namespace, loaded.policies.all, world(cluster))


def stored_class(result: Run) -> QoS:
    assert isinstance(result.outcome, PodAdmitted)
    return qos_class(result.outcome.pod.spec)


@pytest.mark.parametrize(
    "resources",
    ["{requests: {cpu: '0'}, limits: {cpu: '1'}}", "{requests: {cpu: 0, memory: 0}, limits: {cpu: 1, memory: 1Gi}}"],
)
def test_a_limit_that_alone_keeps_a_pod_from_best_effort_stays(resources: str) -> None:
    result = after(NO_LIMITS, resources)
    assert (stored_class(result), result.because) == (QoS.BURSTABLE, {"qos-would-change"})


def test_a_limit_goes_where_a_request_keeps_the_pod_burstable() -> None:
    result = after(NO_LIMITS, "{requests: {cpu: 10m}, limits: {cpu: '1'}}")
    assert (stored_class(result), result.because) == (QoS.BURSTABLE, {"limit-removed"})


def test_a_first_request_makes_a_best_effort_pod_burstable() -> None:
    assert stored_class(after(REQUESTS, "{}")) is QoS.BURSTABLE


@pytest.mark.parametrize(
    "scopes",
    ["scopes: [NotBestEffort]", "scopeSelector: {matchExpressions: [{scopeName: BestEffort, operator: Exists}]}"],
)
def test_a_pod_stays_best_effort_where_a_quota_counts_by_that(scopes: str) -> None:
    quota = f"kind: ResourceQuota\nmetadata: {{name: q}}\nspec: {{hard: {{pods: '5'}}, {scopes}}}"
    result = after(REQUESTS, "{}", quota.encode())
    assert (stored_class(result), result.because) == (QoS.BEST_EFFORT, {"quota-counts-qos"})
