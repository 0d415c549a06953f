"""Reads current usage from the kubelets, with one request per node through the API server's node proxy.

A kubelet counts the cpu seconds of each container, so no usage between two readings is missed; its value for current
usage covers only the last ten to twenty seconds. The requests need `get` on `nodes/proxy`, which allows much more than
reading; the option that enables them says so (docs/how-to/size-requests.md#collect-usage-in-the-cluster).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import msgspec

from trimtab.cluster import quantity
from trimtab.cluster.timestamps import parse_timestamp
from trimtab.kube import listing
from trimtab.kube.client import Client
from trimtab.kube.errors import InvalidResponse, KubeFault
from trimtab.kube.resources import LIST_SOURCES, path_segment
from trimtab.usage.series import PodRef, Series, counter_rate, single_sample

MAX_CONCURRENT_NODES = 8
"""How many nodes are read at the same time. Each response has some hundred kilobytes and occupies a connection of the
API server."""


class CpuStats(msgspec.Struct, frozen=True, rename="camel"):
    """The cpu usage in a kubelet's summary."""

    time: str = ""
    usage_nano_cores: int | None = None
    usage_core_nano_seconds: int | None = None


class MemoryStats(msgspec.Struct, frozen=True, rename="camel"):
    """The memory usage in a kubelet's summary."""

    time: str = ""
    working_set_bytes: int | None = None


class ContainerStats(msgspec.Struct, frozen=True):
    """The usage of a container, or of a system container such as the kubelet itself."""

    name: str = ""
    cpu: CpuStats = CpuStats()
    memory: MemoryStats = MemoryStats()


class _VolumeStats(msgspec.Struct, frozen=True, rename="camel"):
    used_bytes: int | None = None
    capacity_bytes: int | None = None
    pvc_ref: PodRef | None = None
    """The PersistentVolumeClaim of the volume, or None for any other volume."""


class _PodStats(msgspec.Struct, frozen=True, rename="camel"):
    pod_ref: PodRef = PodRef()
    cpu: CpuStats = CpuStats()
    """The cpu usage of the pod's cgroup, which has its containers and its sandbox."""
    memory: MemoryStats = MemoryStats()
    containers: tuple[ContainerStats, ...] | None = None
    """The containers; None if no container has started, because Go writes an empty list as null."""
    volume: tuple[_VolumeStats, ...] | None = None


class _Summary(msgspec.Struct, frozen=True):
    pods: tuple[_PodStats, ...] | None = None


@dataclass(frozen=True, slots=True)
class KubeletReading:
    """The usage of one resource by one container at one moment; for cpu also the total of cpu seconds, if the kubelet
    reports it."""

    series: Series
    cpu_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What one pod uses in addition to its containers."""

    namespace: str
    pod: str
    cores: float
    memory_bytes: float
    pod_memory_bytes: float
    """The memory in bytes that the whole pod uses, including its containers."""


def claims_of_summary(body: bytes) -> Iterator[tuple[str, str, int, int]]:
    """Yields (namespace, claim, used bytes, capacity in bytes) for each mounted claim in a kubelet's /stats/summary
    whose volume plugin measures usage. Raises InvalidResponse."""
    for pod in _decode_pods(body):
        for volume in pod.volume or ():
            if volume.pvc_ref is not None and volume.used_bytes is not None and volume.capacity_bytes is not None:
                yield volume.pvc_ref.namespace, volume.pvc_ref.name, volume.used_bytes, volume.capacity_bytes


def sandboxes_of_summary(body: bytes) -> Iterator[Sandbox]:
    """Yields the sandbox usage of each pod in a kubelet's /stats/summary for which all values are there. Raises
    InvalidResponse."""
    for pod in _decode_pods(body):
        whole = ContainerStats(cpu=pod.cpu, memory=pod.memory)
        parts = [
            (stats.cpu.usage_nano_cores, stats.memory.working_set_bytes) for stats in (whole, *(pod.containers or ()))
        ]
        usage_of_parts = [(cpu, memory) for cpu, memory in parts if cpu is not None and memory is not None]
        if len(usage_of_parts) == len(parts) > 1:
            cores = (usage_of_parts[0][0] - sum(cpu for cpu, _ in usage_of_parts[1:])) / quantity.NANO_PER_UNIT
            memory_bytes = float(usage_of_parts[0][1] - sum(memory for _, memory in usage_of_parts[1:]))
            yield Sandbox(pod.pod_ref.namespace, pod.pod_ref.name, cores, memory_bytes, float(usage_of_parts[0][1]))


def _decode_pods(body: bytes) -> tuple[_PodStats, ...]:
    try:
        return msgspec.json.decode(body, type=_Summary).pods or ()
    except msgspec.DecodeError as error:
        raise InvalidResponse(f"the summary of a kubelet: {error}") from None


def readings_of_summary(body: bytes) -> Iterator[KubeletReading]:
    """Yields the usage of all containers in a kubelet's /stats/summary. Raises InvalidResponse."""
    for pod in _decode_pods(body):
        for stats in pod.containers or ():
            yield from _cpu_readings(pod.pod_ref, stats)
            second = parse_timestamp(stats.memory.time)
            if second is not None and stats.memory.working_set_bytes is not None:
                yield KubeletReading(
                    single_sample(pod.pod_ref, stats.name, "memory", second, float(stats.memory.working_set_bytes))
                )


def _cpu_readings(pod: PodRef, stats: ContainerStats) -> Iterator[KubeletReading]:
    second, usage, counted_nanoseconds = (
        parse_timestamp(stats.cpu.time),
        stats.cpu.usage_nano_cores,
        stats.cpu.usage_core_nano_seconds,
    )
    if second is not None and usage is not None:
        cpu_seconds = None if counted_nanoseconds is None else counted_nanoseconds / quantity.NANO_PER_UNIT
        yield KubeletReading(single_sample(pod, stats.name, "cpu", second, usage / quantity.NANO_PER_UNIT), cpu_seconds)


_CounterReadings = dict[tuple[str, str, str], tuple[int, float]]
"""(namespace, pod, container) → (time in seconds, cpu seconds used in total at that time)."""


@dataclass(slots=True)
class Kubelets:
    """Reads the kubelets of a cluster. A node that does not respond is reported, and the others are used. Not
    thread-safe."""

    client: Client
    on_fault: Callable[[str], None] = lambda _trouble: None
    _totals: _CounterReadings = field(default_factory=dict)

    def read_usage(self) -> Iterator[Series]:
        """Yields one sample for each container and resource.

        For cpu, it is the average since the previous reading. Without a previous reading, it is the kubelet's own
        value, which covers the last ten to twenty seconds. Raises KubeFault if the nodes cannot be listed, or if none
        of them responds."""
        previous, self._totals = self._totals, {}
        for reading in self._read_all():
            series = reading.series
            yield series if reading.cpu_seconds is None else self._usage_since(previous, series, reading.cpu_seconds)

    def _read_all(self) -> Iterator[KubeletReading]:
        names = [
            name
            for (_, name), _ in listing.iter_objects(self.client, replace(LIST_SOURCES["Node"], metadata_only=True))
        ]
        faults: list[KubeFault] = []
        with ThreadPoolExecutor(MAX_CONCURRENT_NODES, thread_name_prefix="kubelet") as pool:
            for readings in pool.map(self._read_node, names):
                if isinstance(readings, KubeFault):
                    faults.append(readings)
                else:
                    yield from readings
        # One silent node is normal; if all of them are, the right to read or the API server is missing.
        if faults and len(faults) == len(names):
            raise faults[0]
        for fault in faults:
            self.on_fault(str(fault))

    def _read_node(self, node: str) -> list[KubeletReading] | KubeFault:
        path = f"/api/v1/nodes/{path_segment(node)}/proxy/stats/summary"
        try:
            return list(readings_of_summary(self.client.get(path, doing=f"the summary of node {node}")))
        except KubeFault as fault:
            return fault

    def _usage_since(self, previous: _CounterReadings, series: Series, cpu_seconds: float) -> Series:
        """Returns the series with the average usage since the previous reading; the series unchanged if there is no
        previous reading or it is too old."""
        key = (series.namespace, series.pod, series.container)
        self._totals[key] = (series.times[0], cpu_seconds)
        previous_second, previous_total = previous.get(key, (0, 0.0))
        times, values = counter_rate((previous_second, series.times[0]), (previous_total, cpu_seconds))
        return replace(series, times=times, values=values) if times else series
