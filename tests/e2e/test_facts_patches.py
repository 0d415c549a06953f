"""What a patch may say, what a bad one does, and how a webhook is reached.

Nothing of ours runs here but a webhook that answers with the patch a test gives. When one of these fails
under a newer Kubernetes, `trimtab.admission` is what to look at next.
"""

from __future__ import annotations

import pytest

from tests.controlplane.api import ApiError
from tests.controlplane.cluster import Cluster
from tests.controlplane.webhook_server import WebhookServer
from tests.e2e.patches import REQUESTS, add, refused, remove


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


def test_a_webhook_is_reached_through_a_service(cluster: Cluster) -> None:
    with WebhookServer([add("/metadata/labels", {"mark": "1"})], names=[f"hook.{cluster.namespace}.svc"]) as hook:
        cluster.webhook_configuration("hook", hook, by="service")
        assert cluster.pod()["metadata"]["labels"] == {"mark": "1"}


def test_a_services_certificate_is_checked_against_its_name(cluster: Cluster) -> None:
    with WebhookServer([], names=["hook.elsewhere.svc"]) as hook:
        cluster.webhook_configuration("hook", hook, by="service")
        with pytest.raises(ApiError, match=r"certificate is valid for .*hook\.elsewhere\.svc"):
            cluster.pod()
