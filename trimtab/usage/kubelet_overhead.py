"""What a kubelet and its container runtime use themselves, read from kubelets' summaries, and what is reserved for
them.

A summary lists the system containers that the kubelet knows: `kubelet`, `runtime`, `misc`, `pods`. A system container
is listed only if the kubelet was given its cgroup (`kubeletCgroups`, `--runtime-cgroups`), so `runtime` is often
missing. In that case, the usage is that of the node minus that of all pods, which includes the rest of the system. If
neither can be determined, the usage is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import fsum

import msgspec

from trimtab.cluster import quantity
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.timestamps import parse_timestamp
from trimtab.kube.client import Client
from trimtab.kube.errors import InvalidResponse, KubeFault
from trimtab.kube.resources import path_segment
from trimtab.usage.kubelet import MAX_CONCURRENT_NODES, ContainerStats, CpuStats, MemoryStats
from trimtab.usage.series import MAX_GAP_SECONDS

KUBELET, RUNTIME, PODS = "kubelet", "runtime", "pods"
_MILLI = 10**6
"""The number of nano-units in a milli-unit."""


class OverheadSource(StrEnum):
    """How the usage of kubelet and runtime was determined."""

    SYSTEM_CONTAINERS = "system-containers"
    """The kubelet reports the usage of both the kubelet and the runtime."""
    NODE_LESS_PODS = "node-less-pods"
    """The usage of everything on the node that is in no pod, because the kubelet does not report the usage of both
    kubelet and runtime."""


class _Node(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""
    cpu: CpuStats = CpuStats()
    memory: MemoryStats = MemoryStats()
    system_containers: tuple[ContainerStats, ...] | None = None


class _Summary(msgspec.Struct, frozen=True):
    node: _Node = _Node()
    pods: tuple[msgspec.Raw, ...] | None = None
    """The pods; None if there are none, because Go writes an empty list as null."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOverhead:
    """What the kubelet and the runtime of one node use at one moment."""

    node: str
    second: int
    pods: int
    millicores: float | None
    """The cpu usage, or None if the kubelet does not report it."""
    memory_bytes: float | None
    """The memory usage, or None if the kubelet does not report it."""
    cpu_source: OverheadSource | None
    memory_source: OverheadSource | None
    max_memory_bytes: float | None = None
    """The largest memory usage since the previous reading, or None if only the present usage is known."""
    cpu_seconds: Mapping[str, float] = field(default_factory=dict)
    """Part (kubelet and runtime, or node and pods) → the cpu seconds that it has used since it started."""


def overhead_of_summary(body: bytes) -> NodeOverhead:
    """Returns the overhead from a kubelet's /stats/summary; values that the summary lacks are None. Raises
    InvalidResponse."""
    try:
        summary = msgspec.json.decode(body, type=_Summary)
    except msgspec.DecodeError as error:
        raise InvalidResponse(f"the summary of a kubelet: {error}") from None
    node = summary.node
    parts = {stats.name: stats for stats in node.system_containers or ()}
    whole = ContainerStats(cpu=node.cpu, memory=node.memory)
    memory, memory_source = _known_use(parts, whole, lambda stats: stats.memory.working_set_bytes)
    cpu, cpu_source = _known_use(parts, whole, lambda stats: stats.cpu.usage_nano_cores)
    seconds = {name: stats.cpu.usage_core_nano_seconds for name, stats in {**parts, "node": whole}.items()}
    second = parse_timestamp(node.cpu.time) or parse_timestamp(node.memory.time)
    if not node.node_name or second is None:
        raise InvalidResponse("a summary without node.nodeName or without a time")
    return NodeOverhead(
        node=node.node_name,
        second=second,
        pods=len(summary.pods or ()),
        millicores=None if cpu is None else cpu / _MILLI,
        memory_bytes=memory,
        cpu_source=cpu_source,
        memory_source=memory_source,
        cpu_seconds={name: value / quantity.NANO_PER_UNIT for name, value in seconds.items() if value is not None},
    )


def _known_use(
    parts: Mapping[str, ContainerStats], whole: ContainerStats, read: Callable[[ContainerStats], int | None]
) -> tuple[float | None, OverheadSource | None]:
    """Returns (usage, how it was determined). The usage is that of kubelet and runtime together if it is known,
    otherwise that of the node minus that of its pods."""
    kubelet, runtime, pods = (read(parts[name]) if name in parts else None for name in (KUBELET, RUNTIME, PODS))
    if kubelet is not None and runtime is not None:
        return float(kubelet + runtime), OverheadSource.SYSTEM_CONTAINERS
    node = read(whole)
    if node is not None and pods is not None:
        return float(max(0, node - pods)), OverheadSource.NODE_LESS_PODS
    return None, None


def with_counted_cpu(previous: NodeOverhead | None, current: NodeOverhead) -> NodeOverhead:
    """Returns the reading with its cpu usage averaged since the previous reading.

    It is returned unchanged if there is no previous reading, if the time between them is too long, or if a counter
    decreased: a kubelet or runtime that restarts counts from zero."""
    if previous is None or current.cpu_source is None:
        return current
    seconds = current.second - previous.second
    names = (KUBELET, RUNTIME) if current.cpu_source is OverheadSource.SYSTEM_CONTAINERS else ("node", PODS)
    counted = [
        current.cpu_seconds[name] - previous.cpu_seconds[name]
        for name in names
        if name in current.cpu_seconds and name in previous.cpu_seconds
    ]
    if len(counted) < len(names) or min(counted) < 0 or not 0 < seconds <= MAX_GAP_SECONDS:
        return current
    used = fsum(counted) if names[0] == KUBELET else max(0.0, counted[0] - counted[1])
    return replace(current, millicores=1000 * used / seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletSettings:
    """What a kubelet's configuration reserves."""

    reserved_millicores: int
    """The sum of kubeReserved and systemReserved."""
    reserved_memory_bytes: int
    eviction_memory: str
    """The hard eviction threshold for memory.available as it is written: an amount, or a percentage."""
    max_pods: int | None


class _KubeletConfig(msgspec.Struct, frozen=True, rename="camel"):
    kube_reserved: dict[str, str] = {}
    system_reserved: dict[str, str] = {}
    eviction_hard: dict[str, str] = {}
    max_pods: int | None = None


class _Configz(msgspec.Struct, frozen=True):
    kubeletconfig: _KubeletConfig


def settings_of_configz(body: bytes) -> KubeletSettings:
    """Returns the reservations in a kubelet's /configz. Raises InvalidResponse."""
    try:
        config = msgspec.json.decode(body, type=_Configz).kubeletconfig
        parts = (config.kube_reserved, config.system_reserved)
        return KubeletSettings(
            reserved_millicores=sum(quantity.to_milli(part.get("cpu", "0")) for part in parts),
            reserved_memory_bytes=sum(quantity.to_whole_units(part.get("memory", "0")) for part in parts),
            eviction_memory=config.eviction_hard.get("memory.available", "100Mi"),
            max_pods=config.max_pods,
        )
    except (msgspec.DecodeError, NotAQuantity) as error:
        raise InvalidResponse(f"the configuration of a kubelet: {error}") from None


def read_overheads(client: Client, nodes: Iterable[str]) -> Iterator[NodeOverhead | KubeFault]:
    """Yields, in the order of the nodes, each node's overhead or the fault of its request. There is one request per
    node."""
    with ThreadPoolExecutor(MAX_CONCURRENT_NODES, thread_name_prefix="kubelet") as pool:
        yield from pool.map(lambda node: _read_node(client, node), nodes)


def _read_node(client: Client, node: str) -> NodeOverhead | KubeFault:
    # Without `only_cpu_and_memory` the kubelet measures the disks of all pods: a hundred times the work.
    path = f"/api/v1/nodes/{path_segment(node)}/proxy/stats/summary?only_cpu_and_memory=true"
    try:
        return overhead_of_summary(client.get(path, doing=f"the summary of node {node}"))
    except KubeFault as fault:
        return fault


def read_kubelet_settings(client: Client, node: str) -> KubeletSettings | KubeFault:
    """Returns what the configuration of a node's kubelet reserves, or the fault of the request."""
    path = f"/api/v1/nodes/{path_segment(node)}/proxy/configz"
    try:
        return settings_of_configz(client.get(path, doing=f"the configuration of the kubelet of node {node}"))
    except KubeFault as fault:
        return fault
