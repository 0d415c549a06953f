"""What the API server does around a mutating webhook: the facts our admission room leans on.

Nothing of ours runs here but a webhook that answers with the patch a test gives. When one of these fails
under a newer Kubernetes, `trimtab.admission` is what to look at next.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.controlplane.api import ApiError
from tests.controlplane.cluster import Cluster
from tests.controlplane.webhook_server import WebhookServer

BOTH = pytest.mark.parametrize("again", ["Never", "IfNeeded"])
AMOUNTS = {"cpu": "100m", "memory": "64Mi"}
RC_TOLERATION = {"key": "rc-tol", "operator": "Exists"}


def add(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


def remove(path: str) -> dict[str, Any]:
    return {"op": "remove", "path": path}


@pytest.fixture
def sandbox(cluster: Cluster) -> str:
    """The name of a RuntimeClass with overhead, a node selector and a toleration."""
    name = f"oh-{cluster.namespace[-5:]}"
    scheduling = {"nodeSelector": {"pool": "a"}, "tolerations": [RC_TOLERATION]}
    document = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": name},
        "handler": "oh",
    }
    cluster.apply({**document, "overhead": {"podFixed": AMOUNTS}, "scheduling": scheduling})
    return name


@pytest.fixture
def plain(cluster: Cluster) -> str:
    """The name of a RuntimeClass with nothing but itself."""
    name = f"plain-{cluster.namespace[-5:]}"
    document = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": name},
        "handler": "p",
    }
    cluster.apply(document)
    return name


# ── the class and its overhead ───────────────────────────────────────────────────────────────────────


@BOTH
def test_the_class_alone_brings_overhead_selector_and_tolerations(
    cluster: Cluster, sandbox: str, again: str
) -> None:
    with WebhookServer(
        lambda pod: [] if pod["spec"].get("runtimeClassName") else [add("/spec/runtimeClassName", sandbox)]
    ) as hook:
        cluster.webhook_configuration("class", hook, reinvocation_policy=again)
        spec = cluster.pod()["spec"]
    assert spec["runtimeClassName"] == sandbox
    assert spec["overhead"] == AMOUNTS
    assert spec["nodeSelector"] == {"pool": "a"}
    assert RC_TOLERATION in spec["tolerations"]
    seen = [call["object"]["spec"].get("overhead") for call in hook.calls]
    assert seen == ([None] if again == "Never" else [None, AMOUNTS])


def test_a_class_the_user_chose_is_complete_at_the_first_call(cluster: Cluster, sandbox: str) -> None:
    with WebhookServer([]) as hook:
        cluster.webhook_configuration("look", hook, reinvocation_policy="IfNeeded")
        cluster.pod({"runtimeClassName": sandbox})
    assert [call["object"]["spec"]["overhead"] for call in hook.calls] == [AMOUNTS]


@pytest.mark.parametrize(("again", "memory"), [("Never", "64Mi"), ("IfNeeded", "67108864")])
def test_equal_overhead_is_accepted_and_the_last_hand_writes_it(
    cluster: Cluster, sandbox: str, again: str, memory: str
) -> None:
    """The plugins' second run writes it as the class does; a webhook called after that writes its own."""
    same = {"cpu": "0.1", "memory": "67108864"}
    patch = [add("/spec/runtimeClassName", sandbox), add("/spec/overhead", same)]
    with WebhookServer(patch) as hook:
        cluster.webhook_configuration("equal", hook, reinvocation_policy=again)
        assert cluster.pod()["spec"]["overhead"] == {"cpu": "100m", "memory": memory}


def test_different_overhead_is_refused(cluster: Cluster, sandbox: str) -> None:
    patch = [add("/spec/runtimeClassName", sandbox), add("/spec/overhead", {"cpu": "200m"})]
    refused(cluster, patch, 403, "Pod's Overhead doesn't match RuntimeClass's defined Overhead")


def test_overhead_without_a_class_is_refused(cluster: Cluster) -> None:
    refused(
        cluster, [add("/spec/overhead", AMOUNTS)], 403, "without corresponding RuntimeClass defined Overhead"
    )


def test_changing_the_class_takes_the_old_overhead_out_and_leaves_the_old_selector(
    cluster: Cluster, sandbox: str, plain: str
) -> None:
    swap = add("/spec/runtimeClassName", plain)
    mine = {"runtimeClassName": sandbox}
    refused(cluster, [swap], 403, "without corresponding RuntimeClass defined Overhead", pod=mine)
    with WebhookServer([swap, remove("/spec/overhead")]) as hook:
        cluster.webhook_configuration("swap", hook)
        spec = cluster.pod(mine)["spec"]
    assert "overhead" not in spec
    assert spec["nodeSelector"] == {"pool": "a"}
    assert RC_TOLERATION in spec["tolerations"]


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_a_class_that_does_not_exist_is_refused(cluster: Cluster, policy: str) -> None:
    refused(
        cluster, [add("/spec/runtimeClassName", "nope")], 403, 'RuntimeClass "nope" not found', policy=policy
    )


def test_a_selector_against_the_classs_is_refused(cluster: Cluster, sandbox: str) -> None:
    pod = {"nodeSelector": {"pool": "b"}}
    refused(
        cluster,
        [add("/spec/runtimeClassName", sandbox)],
        403,
        "conflict: runtimeClass.scheduling.nodeSelector",
        pod=pod,
    )


# ── LimitRange and quota ─────────────────────────────────────────────────────────────────────────────

DEFAULT = {"cpu": "500m", "memory": "512Mi"}
DEFAULT_REQUEST = {"cpu": "100m", "memory": "128Mi"}
LIMITS = "/spec/containers/0/resources/limits"
REQUESTS = "/spec/containers/0/resources/requests"


def limit_range(cluster: Cluster, **limits: Any) -> None:
    document = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "r"}}
    cluster.apply({**document, "spec": {"limits": [{"type": "Container", **limits}]}})
    cluster.eventually(lambda: "resources" in first_container(cluster.pod(name="probe", dry_run=True)))


def first_container(pod: dict[str, Any]) -> dict[str, Any]:
    """Without `resources` where it has none."""
    container: dict[str, Any] = pod["spec"]["containers"][0]
    return {key: value for key, value in container.items() if value}


def without_limits(pod: dict[str, Any]) -> list[dict[str, Any]]:
    return [remove(LIMITS)] if "limits" in first_container(pod).get("resources", {}) else []


@pytest.mark.parametrize(("again", "calls", "stays"), [("Never", 1, True), ("IfNeeded", 2, False)])
def test_a_default_limit_comes_back_unless_the_webhook_is_called_again(
    cluster: Cluster, again: str, calls: int, stays: bool
) -> None:
    limit_range(cluster, default=DEFAULT, defaultRequest=DEFAULT_REQUEST)
    with WebhookServer(without_limits) as hook:
        cluster.webhook_configuration("limits", hook, reinvocation_policy=again)
        resources = first_container(cluster.pod())["resources"]
    assert resources == {"requests": DEFAULT_REQUEST, **({"limits": DEFAULT} if stays else {})}
    assert [call["object"]["spec"]["containers"][0]["resources"]["limits"] for call in hook.calls] == [
        DEFAULT
    ] * calls


def test_a_request_over_a_default_limit_blocks_the_pod_even_under_ignore(cluster: Cluster) -> None:
    limit_range(cluster, default=DEFAULT, defaultRequest=DEFAULT_REQUEST)
    more = add(REQUESTS, {"cpu": "2", "memory": "1Gi"})
    for name, patch in (("kept", [more]), ("removed", [more, remove(LIMITS)])):
        refused(
            cluster, patch, 422, "must be less than or equal to cpu limit of 500m", policy="Ignore", name=name
        )


def test_where_there_is_a_maximum_a_removed_limit_is_refused_or_comes_back(cluster: Cluster) -> None:
    limit_range(cluster, max={"cpu": "1", "memory": "1Gi"}, min={"cpu": "10m", "memory": "16Mi"})
    with WebhookServer(without_limits) as hook:
        cluster.webhook_configuration("never", hook)
        assert first_container(cluster.pod())["resources"]["limits"] == {"cpu": "1", "memory": "1Gi"}
    cluster.delete("MutatingWebhookConfiguration", f"{cluster.namespace}-never")
    message = "maximum cpu usage per Container is 1.  No limit is specified"
    refused(cluster, without_limits, 403, message, again="IfNeeded")


def test_a_quota_on_limits_refuses_pods_that_lost_them(cluster: Cluster) -> None:
    hard = {"limits.cpu": "10", "limits.memory": "10Gi"}
    document = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q"},
        "spec": {"hard": hard},
    }
    cluster.apply(document)
    cluster.eventually(lambda: cluster.get("ResourceQuota", "q").get("status", {}).get("hard") == hard)
    container = {"name": "c", "image": cluster.image, "resources": {"limits": DEFAULT}}
    message = "failed quota: q: must specify limits.cpu for: c; limits.memory for: c"
    refused(cluster, without_limits, 403, message, pod={"containers": [container]})


# ── other plugins, and patches that are wrong ────────────────────────────────────────────────────────


@pytest.fixture
def urgent(cluster: Cluster) -> str:
    name = f"urgent-{cluster.namespace[-5:]}"
    document = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
    cluster.apply({**document, "value": 1000})
    return name


def test_a_priority_class_alone_is_refused(cluster: Cluster, urgent: str) -> None:
    message = "the integer value of priority (0) must not be provided in pod spec"
    refused(cluster, [add("/spec/priorityClassName", urgent)], 403, message)


def test_a_priority_class_is_taken_when_the_old_priority_goes_with_it(cluster: Cluster, urgent: str) -> None:
    with WebhookServer([add("/spec/priorityClassName", urgent), remove("/spec/priority")]) as hook:
        cluster.webhook_configuration("priority", hook)
        assert cluster.pod()["spec"]["priority"] == 1000


REQUEST_OVER_LIMIT = {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}
BAD_PATCHES = {
    "missing-path": (remove("/metadata/annotations/none"), 500, "doc is missing path"),
    "failed-test": ({"op": "test", "path": "/spec/hostNetwork", "value": True}, 500, "test failed"),
    "no-quantity": (add(REQUESTS, {"cpu": "lots"}), 500, "quantities must match"),
    "invalid": (
        add("/spec/containers/0/resources", REQUEST_OVER_LIMIT),
        422,
        "must be less than or equal to cpu limit",
    ),
}


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
@pytest.mark.parametrize("mistake", BAD_PATCHES)
def test_a_bad_patch_blocks_the_pod_even_under_ignore(cluster: Cluster, mistake: str, policy: str) -> None:
    operation, status, message = BAD_PATCHES[mistake]
    refused(cluster, [operation], status, message, policy=policy)


def test_a_webhook_that_does_not_answer_is_passed_over_under_ignore(cluster: Cluster) -> None:
    with WebhookServer([add("/metadata/labels", {"mark": "1"})]) as hook:
        cluster.webhook_configuration("gone", hook, failure_policy="Ignore", timeout_seconds=2)
    assert "labels" not in cluster.pod()["metadata"]


def test_own_changes_alone_bring_no_second_call(cluster: Cluster) -> None:
    with WebhookServer([add("/metadata/labels", {"mark": "1"})]) as hook:
        cluster.webhook_configuration("mark", hook, reinvocation_policy="IfNeeded")
        assert cluster.pod()["metadata"]["labels"] == {"mark": "1"}
    assert len(hook.calls) == 1


def test_a_dry_run_is_called_and_leaves_nothing(cluster: Cluster, sandbox: str) -> None:
    with WebhookServer([add("/spec/runtimeClassName", sandbox)]) as hook:
        cluster.webhook_configuration("dry", hook)
        assert cluster.pod(dry_run=True)["spec"]["overhead"] == AMOUNTS
    assert [call["dryRun"] for call in hook.calls] == [True]
    assert cluster.list("Pod") == []


def test_a_webhook_is_reached_through_a_service(cluster: Cluster) -> None:
    with WebhookServer(
        [add("/metadata/labels", {"mark": "1"})], names=[f"hook.{cluster.namespace}.svc"]
    ) as hook:
        cluster.webhook_configuration("hook", hook, by="service")
        assert cluster.pod()["metadata"]["labels"] == {"mark": "1"}


def test_a_services_certificate_is_checked_against_its_name(cluster: Cluster) -> None:
    with WebhookServer([], names=["hook.elsewhere.svc"]) as hook:
        cluster.webhook_configuration("hook", hook, by="service")
        with pytest.raises(ApiError, match=r"certificate is valid for .*hook\.elsewhere\.svc"):
            cluster.pod()


def refused(
    cluster: Cluster,
    patch: Any,
    status: int,
    message: str,
    *,
    policy: str = "Fail",
    again: str = "Never",
    pod: dict[str, Any] | None = None,
    name: str = "bad",
) -> None:
    """Asserts that the pod is refused like this when a webhook answers with this patch."""
    with WebhookServer(patch) as hook:
        cluster.webhook_configuration(name, hook, failure_policy=policy, reinvocation_policy=again)
        with pytest.raises(ApiError) as caught:
            cluster.pod(pod)
        cluster.delete("MutatingWebhookConfiguration", f"{cluster.namespace}-{name}")
    assert (caught.value.status, message in caught.value.message) == (status, True), caught.value
