"""Adds up the usage of the containers of each pod, moment by moment, for requests of whole pods.

What is recorded of a moment is the average of the containers of a pod, because the request is computed for the average
container (see `trimtab.sizing.pod_level`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from trimtab.cluster.owner import OwnerKey
from trimtab.histogram.batch_history import BatchHistory, ContainerKey
from trimtab.histogram.pod_sums import average_containers
from trimtab.usage.owners import OwnerIndex
from trimtab.usage.series import Series, container_key

WHOLE_POD = ""
"""The name in place of a container's, under which the usage of whole pods is recorded. No container has it."""


def whole_pod_key(owner: OwnerKey) -> ContainerKey:
    """Returns the key of the history of whole pods of a workload."""
    return ContainerKey(owner.namespace, owner.kind, owner.name, WHOLE_POD)


@dataclass(slots=True)
class PodSums:
    """The series of each pod, by container. They are kept until all are read, because a source gives the series of one
    pod in any order."""

    containers: Mapping[OwnerKey, frozenset[str]]
    """Workload → the names of the containers that run as long as its pods do; only workloads with several of them."""
    _parts: dict[tuple[OwnerKey, str, str], dict[str, dict[int, float]]] = field(default_factory=dict)
    """(workload, pod, resource) → container → second → value."""

    def observe_series(self, all_series: Iterable[Series], owners: OwnerIndex) -> Iterator[Series]:
        """Yields the given series unchanged, and keeps those of containers that count."""
        for series in all_series:
            owner = container_key(series, owners).owner
            if series.pod and series.container in self.containers.get(owner, ()):
                of_pod = self._parts.setdefault((owner, series.pod, series.resource), {})
                of_pod.setdefault(series.container, {}).update(zip(series.times, series.values, strict=True))
            yield series

    def add_to_history(self, history: BatchHistory) -> None:
        """Adds the averages of the pods to a history, under `whole_pod_key`, and forgets the series. A pod counts if
        the usage of each of its containers is known."""
        for (owner, pod, resource), by_container in self._parts.items():
            if by_container.keys() == self.containers[owner]:
                times, values = average_containers([*by_container.values()])
                history.add_series(whole_pod_key(owner), resource, times, values, pod=pod)
        self._parts = {}
