"""A VerticalPodAutoscaler as far as admission goes: a definition of our own writing, and a webhook that does what
the VPA's own is known to do with a recommendation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.controlplane.cluster import Cluster
from tests.controlplane.webhook_server import WebhookServer

Object = dict[str, Any]
GROUP = "autoscaling.k8s.io"
WEBHOOK = "vpa.k8s.io"


def definition() -> Object:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything, "status": anything}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "verticalpodautoscalers", "singular": "verticalpodautoscaler", "kind": "VerticalPodAutoscaler"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        # Groups below k8s.io want to be told that nobody approved them.
        "metadata": {
            "name": f"{names['plural']}.{GROUP}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, a stand-in for tests"},
        },
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def autoscaler(cluster: Cluster, target: str, recommends: Mapping[str, str] | None = None, **spec: Any) -> Object:
    """Of `Kind/name`, for a container called `main`."""
    kind, _, name = target.partition("/")
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": name}
    vertical_pod_autoscaler = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {"targetRef": reference, "updatePolicy": {"updateMode": "Recreate"}, **spec},
    }
    if recommends:
        texts = [{"containerName": "main", "target": dict(recommends)}]
        vertical_pod_autoscaler["status"] = {"recommendation": {"containerRecommendations": texts}}
    return cluster.apply(vertical_pod_autoscaler)[0]


def webhook(recommends: Mapping[str, str] | None = None, names: Sequence[str] = ()) -> WebhookServer:
    """Requests become the target; a limit is scaled as the request was; without a recommendation nothing is done."""

    def decide(pod: Object) -> list[Object]:
        return _sized(pod, dict(recommends)) if recommends else []

    return WebhookServer(decide, names)


def registered(cluster: Cluster, name: str, hook: WebhookServer, by: str = "url", **more: Any) -> None:
    """Called for the pods of this namespace, under the name the VPA's own has."""
    stored = cluster.webhook_configuration(name, hook, by=by, failure_policy="Ignore", **more)
    first, *others = stored["webhooks"]
    named = {"webhooks": [{**first, "name": WEBHOOK}, *others]}
    cluster.patch("MutatingWebhookConfiguration", stored["metadata"]["name"], named)


def _sized(pod: Object, target: dict[str, str]) -> list[Object]:
    resources = pod["spec"]["containers"][0].get("resources", {})
    requests, limits = resources.get("requests", {}), resources.get("limits", {})
    scaled = {
        name: f"{_milli(limits[name]) * _milli(target[name]) // _milli(requests.get(name, limits[name]))}m"
        for name in limits
        if name in target
    }
    sized: Object = {"requests": {**requests, **target}}
    if limits:
        sized["limits"] = {**limits, **scaled}
    note = "Pod resources updated by stand-in: container 0: cpu request"
    annotations = {**pod["metadata"].get("annotations", {}), "vpaUpdates": note}
    return [
        {"op": "add", "path": "/spec/containers/0/resources", "value": sized},
        {"op": "add", "path": "/metadata/annotations", "value": annotations},
    ]


def _milli(written: str) -> int:
    return int(written[:-1]) if written.endswith("m") else int(written) * 1000
