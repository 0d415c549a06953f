"""Reads current usage from the metrics API."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from trimtab.cluster import quantity
from trimtab.cluster.measured_use import POD_METRICS
from trimtab.cluster.resources import Amounts
from trimtab.cluster.timestamps import parse_timestamp
from trimtab.kube.client import Client
from trimtab.kube.errors import InvalidResponse
from trimtab.usage.series import PodRef, Series, single_sample

READ_INTERVAL_SECONDS = 60.0
"""The seconds between two readings of a long-running process; metrics-server itself measures every 15 seconds."""
GROUP_VERSION = "metrics.k8s.io/v1beta1"
PATH = f"/apis/{GROUP_VERSION}/pods"


class _Container(msgspec.Struct, frozen=True):
    name: str = ""
    usage: dict[str, str] = {}


class _Pod(msgspec.Struct, frozen=True):
    metadata: PodRef = PodRef()
    timestamp: str = ""
    containers: tuple[_Container, ...] | None = None
    """The containers; None if there are none, because Go writes an empty list as null."""


class _List(msgspec.Struct, frozen=True):
    items: tuple[_Pod, ...] | None = None


def read_metrics(client: Client) -> Iterator[Series]:
    """Returns one sample for each container and resource, as metrics-server reports it. Raises KubeFault, in particular
    NotFound if no server implements the API."""
    return decode_pod_metrics(client.get(PATH, doing="list the metrics of pods"))


def read_pod_use(client: Client) -> Mapping[str, Amounts]:
    """Returns pod (namespace/name) → the usage of all its containers together. Raises KubeFault, as `read_metrics`
    does."""
    return _sum_by_pod(read_metrics(client))


def pod_use_of_objects(values: Iterable[Any]) -> Mapping[str, Amounts]:
    """Returns pod (namespace/name) → the usage of all its containers together, from PodMetrics objects as `kubectl get
    podmetrics -o yaml` prints them. Objects of another form are left out."""
    return _sum_by_pod(_series_of(_convert_objects(values)))


def _convert_objects(values: Iterable[Any]) -> Iterator[_Pod]:
    for value in values:
        try:
            yield msgspec.convert(value, type=_Pod)
        except msgspec.ValidationError:
            continue


def _sum_by_pod(samples: Iterable[Series]) -> Mapping[str, Amounts]:
    use_by_pod: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for series in samples:
        amount = scheduler_number(series.resource, series.values[-1])
        use_by_pod[f"{series.namespace}/{series.pod}"][series.resource] += amount
    return use_by_pod


def scheduler_number(resource: str, value: float) -> int:
    """Returns cores or bytes in the scheduler's unit (millicores or bytes), rounded up."""
    return math.ceil(value * 1000 if resource == "cpu" else value)


def read_pod_metrics(client: Client) -> list[dict[str, Any]]:
    """Returns the PodMetrics objects as `kubectl get podmetrics -o yaml` prints them, reduced to what is read of them.
    Raises KubeFault, as `read_metrics` does."""
    pods = _decode_list(client.get(PATH, doing="list the metrics of pods"))
    return [
        {"apiVersion": GROUP_VERSION, "kind": POD_METRICS, **msgspec.to_builtins(pod)} for pod in pods if pod.containers
    ]


def decode_pod_metrics(body: bytes) -> Iterator[Series]:
    """Yields the samples of a PodMetricsList. An amount that is not a quantity is dropped. Raises InvalidResponse."""
    return _series_of(_decode_list(body))


def _decode_list(body: bytes) -> tuple[_Pod, ...]:
    """Returns the items of a PodMetricsList. Raises InvalidResponse."""
    try:
        return msgspec.json.decode(body, type=_List).items or ()
    except msgspec.DecodeError as error:
        raise InvalidResponse(f"metrics of pods: {error}") from None


def _series_of(pods: Iterable[_Pod]) -> Iterator[Series]:
    for pod in pods:
        second = parse_timestamp(pod.timestamp)
        for container in (pod.containers or ()) if second is not None else ():
            for resource in ("cpu", "memory"):
                amount = container.usage.get(resource)
                if amount is not None and quantity.is_quantity(amount):
                    value = quantity.parse(amount) / quantity.NANO_PER_UNIT
                    yield single_sample(pod.metadata, container.name, resource, second or 0, value)
