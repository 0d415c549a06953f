"""Patches a test webhook answers with, and the sentence of a refusal."""

from __future__ import annotations

from typing import Any

import pytest

from tests.controlplane.api import ApiError
from tests.controlplane.cluster import Cluster
from tests.controlplane.webhook_server import WebhookServer

LIMITS = "/spec/containers/0/resources/limits"
REQUESTS = "/spec/containers/0/resources/requests"


def add(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


def remove(path: str) -> dict[str, Any]:
    return {"op": "remove", "path": path}


def first_container(pod: dict[str, Any]) -> dict[str, Any]:
    """Without `resources` where it has none."""
    container: dict[str, Any] = pod["spec"]["containers"][0]
    return {key: value for key, value in container.items() if value}


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
