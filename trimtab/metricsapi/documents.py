"""Writes the documents of `custom.metrics.k8s.io/v1beta2` as JSON: discovery, lists of values, and Kubernetes' Status.

They are JSON whatever the client accepts, because clients of Kubernetes decode a response by its content type.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from trimtab.cluster.quantity import canonical_form
from trimtab.cluster.timestamps import format_timestamp
from trimtab.metricsapi.api_request import GROUP, GROUP_VERSION, VERSION, InvalidRequest

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class ApiReply:
    """The status code and the body of a response; its content type is `JSON`."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PodMetric:
    """The value of a metric for one pod, with the time of its newest sample (seconds since 1970)."""

    namespace: str
    name: str
    uid: str
    metric: str
    milli: int
    timestamp: int
    window_seconds: int | None = None


def render_group() -> bytes:
    """Returns the discovery document of the group, with its one version."""
    version = {"groupVersion": GROUP_VERSION, "version": VERSION}
    group = {"kind": "APIGroup", "apiVersion": "v1", "name": GROUP, "versions": [version], "preferredVersion": version}
    return msgspec.json.encode(group)


def render_resources(metrics: Iterable[str]) -> bytes:
    """Returns the discovery document of the version: one resource for each metric of pods, sorted by name."""
    resources = [
        {"name": f"pods/{metric}", "singularName": "", "namespaced": True, "kind": "MetricValueList", "verbs": ["get"]}
        for metric in sorted(metrics)
    ]
    document = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": GROUP_VERSION, "resources": resources}
    return msgspec.json.encode(document)


def render_values(values: Iterable[PodMetric]) -> bytes:
    """Returns a MetricValueList, sorted by the names of the pods."""
    items = [_item_of(value) for value in sorted(values, key=lambda value: (value.namespace, value.name))]
    document = {"kind": "MetricValueList", "apiVersion": GROUP_VERSION, "metadata": {}, "items": items}
    return msgspec.json.encode(document)


def _item_of(value: PodMetric) -> dict[str, Any]:
    item: dict[str, Any] = {
        "describedObject": {
            "kind": "Pod",
            "namespace": value.namespace,
            "name": value.name,
            "uid": value.uid,
            "apiVersion": "v1",
        },
        "metric": {"name": value.metric, "selector": None},
        "timestamp": format_timestamp(value.timestamp),
        "value": canonical_form(f"{value.milli}m"),
    }
    if value.window_seconds is not None:
        item["windowSeconds"] = value.window_seconds
    return item


def render_status(status: int, reason: str, message: str) -> ApiReply:
    """Returns a Status that says why a request is not answered."""
    document = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": status,
    }
    return ApiReply(status, msgspec.json.encode(document))


def render_refusal(invalid_request: InvalidRequest) -> ApiReply:
    """Returns the Status for a request that is not valid."""
    return render_status(invalid_request.status, invalid_request.reason, invalid_request.message)


def render_unknown_metric(metric: str, pod: str = "") -> ApiReply:
    """Returns the Status for a metric without a rule, or without a value for the named pod."""
    named = f" {pod}" if pod else ""
    return render_status(404, "NotFound", f"the server could not find the metric {metric} for pods{named}")
