"""What LimitRange and ResourceQuota do with what a mutating webhook changes.

Nothing of ours runs here but a webhook that answers with the patch a test gives. When one of these fails
under a newer Kubernetes, `trimtab.admission` is what to look at next.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.webhook_server import WebhookServer
from tests.e2e.patches import LIMITS, REQUESTS, add, first_container, refused, remove

DEFAULT = {"cpu": "500m", "memory": "512Mi"}
DEFAULT_REQUEST = {"cpu": "100m", "memory": "128Mi"}


def limit_range(cluster: Cluster, **limits: Any) -> None:
    document = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "r"}}
    cluster.apply({**document, "spec": {"limits": [{"type": "Container", **limits}]}})
    cluster.eventually(lambda: "resources" in first_container(cluster.pod(name="probe", dry_run=True)))


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
    assert [call["object"]["spec"]["containers"][0]["resources"]["limits"] for call in hook.calls] == [DEFAULT] * calls


def test_a_request_over_a_default_limit_blocks_the_pod_even_under_ignore(cluster: Cluster) -> None:
    limit_range(cluster, default=DEFAULT, defaultRequest=DEFAULT_REQUEST)
    more = add(REQUESTS, {"cpu": "2", "memory": "1Gi"})
    for name, patch in (("kept", [more]), ("removed", [more, remove(LIMITS)])):
        refused(cluster, patch, 422, "must be less than or equal to cpu limit of 500m", policy="Ignore", name=name)


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
    document = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}}
    cluster.apply(document)
    cluster.eventually(lambda: cluster.get("ResourceQuota", "q").get("status", {}).get("hard") == hard)
    container = {"name": "c", "image": cluster.image, "resources": {"limits": DEFAULT}}
    message = "failed quota: q: must specify limits.cpu for: c; limits.memory for: c"
    refused(cluster, without_limits, 403, message, pod={"containers": [container]})
