"""What pods use at this moment, by the metrics API."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from trimtab.cluster import quantity
from trimtab.cluster.timestamps import seconds
from trimtab.kube.client import Client
from trimtab.kube.errors import InvalidResponse
from trimtab.usage.series import PodRef, Series, sample

PATH = "/apis/metrics.k8s.io/v1beta1/pods"


class _Container(msgspec.Struct, frozen=True):
    name: str = ""
    usage: dict[str, str] = {}


class _Pod(msgspec.Struct, frozen=True):
    metadata: PodRef = PodRef()
    timestamp: str = ""
    containers: tuple[_Container, ...] = ()


class _List(msgspec.Struct, frozen=True):
    items: tuple[_Pod, ...] = ()


def now(client: Client) -> Iterator[Series]:
    """One sample for each container, as metrics-server has it. Raises KubeFault; NotFound where nobody serves it."""
    return metrics(client.get(PATH, doing="list the metrics of pods"))


def metrics(body: bytes) -> Iterator[Series]:
    """Of a PodMetricsList. An amount that is no quantity is left out. Raises Garbled."""
    try:
        pods = msgspec.json.decode(body, type=_List).items
    except msgspec.DecodeError as error:
        raise InvalidResponse(f"metrics of pods: {error}") from None
    for pod in pods:
        at = seconds(pod.timestamp)
        for container in pod.containers if at is not None else ():
            for resource in ("cpu", "memory"):
                written = container.usage.get(resource)
                if written is not None and quantity.is_quantity(written):
                    value = quantity.parse(written) / quantity.NANO
                    yield sample(pod.metadata, container.name, resource, at or 0, value)
