"""Adds up the usage of the containers of each pod, moment by moment, for requests of whole pods.

What is recorded of a moment is the average of the containers of a pod, because the request is computed for the average
container (see `trimtab.sizing.pod_level`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum

from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.whole_pods import split_whole_pod
from trimtab.histogram.batch_history import ContainerKey

Samples = tuple[Sequence[int], Sequence[float]]
"""(seconds since 1970, values in cores or bytes)."""


@dataclass(frozen=True, slots=True)
class WholePodSeries:
    """The averages of the containers of one pod."""

    key: ContainerKey
    """The workload, with the name of all containers together (`whole_pods.name_whole_pod`)."""
    pod: str
    resource: str
    times: Sequence[int]
    values: Sequence[float]


@dataclass(slots=True)
class WholePodSamples:
    """The series of the containers of pods, until they are averaged. Not thread-safe."""

    names: Mapping[tuple[str, str], str]
    """(namespace, pod) → the name of its containers together; only pods with several of them."""
    names_by_owner: Mapping[OwnerKey, str] = field(default_factory=dict)
    """Workload → the same for pods that no longer exist; only workloads whose pods all have the same containers."""
    _parts: dict[tuple[ContainerKey, str, str], dict[str, list[Samples]]] = field(default_factory=dict)
    """(key, pod, resource) → container → the parts of its series."""

    def add_samples(
        self, container: ContainerKey, pod: str, resource: str, times: Sequence[int], values: Sequence[float]
    ) -> None:
        """Keeps the samples of one container of a pod, or a part of them. They count if the pod is known to have
        several containers, and this is one of them."""
        name = self.names.get((container.namespace, pod)) or self.names_by_owner.get(container.owner, "")
        if container.name in split_whole_pod(name):
            key = ContainerKey(container.namespace, container.kind, container.workload, name)
            of_pod = self._parts.setdefault((key, pod, resource), {})
            of_pod.setdefault(container.name, []).append((times, values))

    def take_averages(self) -> Iterator[WholePodSeries]:
        """Yields the averages of each pod, and forgets the samples. A moment counts if the usage of each container is
        known."""
        parts, self._parts = self._parts, {}
        for (key, pod, resource), by_container in parts.items():
            if len(by_container) == len(split_whole_pod(key.name)):
                times, values = average_containers([_merge_parts(pieces) for pieces in by_container.values()])
                if times:
                    yield WholePodSeries(key, pod, resource, times, values)

    def take_last_averages(self) -> Iterator[WholePodSeries]:
        """Yields the average of each pod at the last moment, and forgets the samples. It is for one reading of present
        usage, in which the containers of a pod may have been measured some seconds apart."""
        parts, self._parts = self._parts, {}
        for (key, pod, resource), by_container in parts.items():
            last = [(times[-1], values[-1]) for pieces in by_container.values() for times, values in pieces[-1:]]
            if len(last) == len(split_whole_pod(key.name)):
                yield WholePodSeries(
                    key, pod, resource, (max(second for second, _ in last),), (fsum(v for _, v in last) / len(last),)
                )


def _merge_parts(pieces: Iterable[Samples]) -> dict[int, float]:
    return {second: value for times, values in pieces for second, value in zip(times, values, strict=True)}


def average_containers(by_container: Sequence[Mapping[int, float]]) -> tuple[list[int], list[float]]:
    """Returns the times and the averages of the containers of one pod, at the moments of which each has a value."""
    times = sorted(set[int].intersection(*(set(values) for values in by_container)))
    return times, [fsum(values[second] for values in by_container) / len(by_container) for second in times]
