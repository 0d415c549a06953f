"""What pods use at this moment, by their kubelets: one question for each node, through the API server.

A kubelet counts the seconds of cpu a container had, so between two looks nothing is missed; what it calls usage is of
the last ten to twenty seconds. The way needs `get` on `nodes/proxy`, which lets do much more than read: whoever takes
it says so (docs/how-to/gather-usage.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import msgspec

from trimtab.cluster import quantity
from trimtab.cluster.timestamps import seconds
from trimtab.kube import listing
from trimtab.kube.client import Client, segment
from trimtab.kube.errors import InvalidResponse, KubeFault
from trimtab.kube.resources import PLACES
from trimtab.usage.series import PodRef, Series, rate, sample

AT_ONCE = 8
"""Nodes asked at the same time: each answer is some hundred kilobytes, and takes the API server a connection."""


class _Cpu(msgspec.Struct, frozen=True, rename="camel"):
    time: str = ""
    usage_nano_cores: int | None = None
    usage_core_nano_seconds: int | None = None


class _Memory(msgspec.Struct, frozen=True, rename="camel"):
    time: str = ""
    working_set_bytes: int | None = None


class _Stats(msgspec.Struct, frozen=True):
    name: str = ""
    cpu: _Cpu = _Cpu()
    memory: _Memory = _Memory()


class _PodStats(msgspec.Struct, frozen=True, rename="camel"):
    pod_ref: PodRef = PodRef()
    cpu: _Cpu = _Cpu()
    """Of the pod's cgroup: its containers and its sandbox."""
    memory: _Memory = _Memory()
    containers: tuple[_Stats, ...] = ()


class _Summary(msgspec.Struct, frozen=True):
    pods: tuple[_PodStats, ...] = ()


@dataclass(frozen=True, slots=True)
class KubeletReading:
    """One resource of one container at one moment; for cpu also the seconds counted so far, where they are told."""

    series: Series
    counted: float | None = None


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What one pod used beside its containers."""

    namespace: str
    pod: str
    cores: float
    memory_bytes: float
    pod_memory_bytes: float
    """Of the whole pod, its containers included."""


def sandboxes(body: bytes) -> Iterator[Sandbox]:
    """Of a kubelet's /stats/summary, pods that tell of all their parts. Raises Garbled."""
    for pod in _pods(body):
        whole = _Stats(cpu=pod.cpu, memory=pod.memory)
        parts = [(stats.cpu.usage_nano_cores, stats.memory.working_set_bytes) for stats in (whole, *pod.containers)]
        known = [(cpu, memory) for cpu, memory in parts if cpu is not None and memory is not None]
        if len(known) == len(parts) > 1:
            cores = (known[0][0] - sum(cpu for cpu, _ in known[1:])) / quantity.NANO
            used = float(known[0][1] - sum(memory for _, memory in known[1:]))
            yield Sandbox(pod.pod_ref.namespace, pod.pod_ref.name, cores, used, float(known[0][1]))


def _pods(body: bytes) -> tuple[_PodStats, ...]:
    try:
        return msgspec.json.decode(body, type=_Summary).pods
    except msgspec.DecodeError as error:
        raise InvalidResponse(f"summary of a kubelet: {error}") from None


def looks(body: bytes) -> Iterator[KubeletReading]:
    """Of a kubelet's /stats/summary. Raises Garbled."""
    for pod in _pods(body):
        for stats in pod.containers:
            yield from _cpu(pod.pod_ref, stats)
            at = seconds(stats.memory.time)
            if at is not None and stats.memory.working_set_bytes is not None:
                yield KubeletReading(
                    sample(pod.pod_ref, stats.name, "memory", at, float(stats.memory.working_set_bytes))
                )


def _cpu(pod: PodRef, stats: _Stats) -> Iterator[KubeletReading]:
    at, usage, counted = seconds(stats.cpu.time), stats.cpu.usage_nano_cores, stats.cpu.usage_core_nano_seconds
    if at is not None and usage is not None:
        told = None if counted is None else counted / quantity.NANO
        yield KubeletReading(sample(pod, stats.name, "cpu", at, usage / quantity.NANO), told)


_Counter = dict[tuple[str, str, str], tuple[int, float]]
"""(namespace, pod, container) → when, and seconds of cpu by then."""


@dataclass(slots=True)
class Kubelets:
    """All of a cluster's. A node that does not answer is told, and the others count. Not for two threads."""

    client: Client
    told: Callable[[str], None] = lambda _trouble: None
    _counted: _Counter = field(default_factory=dict)

    def look(self) -> Iterator[Series]:
        """One sample for each container and resource: cpu since the look before, else of the last seconds. Raises
        KubeFault where the nodes are not told, or none of them answers."""
        before, self._counted = self._counted, {}
        for found in self._answers():
            series = found.series
            yield series if found.counted is None else self._since(before, series, found.counted)

    def _answers(self) -> Iterator[KubeletReading]:
        names = [name for (_, name), _ in listing.listed(self.client, replace(PLACES["Node"], slim=True))]
        silent: list[KubeFault] = []
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="kubelet") as pool:
            for answer in pool.map(self._asked, names):
                if isinstance(answer, KubeFault):
                    silent.append(answer)
                else:
                    yield from answer
        if silent and len(silent) == len(names):
            raise silent[0]
        for fault in silent:
            self.told(str(fault))

    def _asked(self, node: str) -> list[KubeletReading] | KubeFault:
        path = f"/api/v1/nodes/{segment(node)}/proxy/stats/summary"
        try:
            return list(looks(self.client.get(path, doing=f"summary of node {node}")))
        except KubeFault as fault:
            return fault

    def _since(self, before: _Counter, series: Series, counted: float) -> Series:
        """What was counted since the look before; as it is where that is none, or too long ago."""
        key = (series.namespace, series.pod, series.container)
        self._counted[key] = (series.times[0], counted)
        at, last = before.get(key, (0, 0.0))
        times, values = rate((at, series.times[0]), (last, counted))
        return replace(series, times=times, values=values) if times else series
