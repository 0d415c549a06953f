"""The kinds of nodes for which `trimtab reserved formula` computes reservations: a size, a machine type, or the nodes
of a snapshot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from trimtab.cluster import quantity
from trimtab.cluster.api.core import Node
from trimtab.cluster.config_error import ConfigError, suggest_name
from trimtab.cluster.format_count import format_count
from trimtab.cluster.node import INSTANCE_TYPE_LABEL, NodeInfo, node_from_api
from trimtab.cluster.pool import pool_name
from trimtab.cluster.reason import NotYet, Unreadable
from trimtab.cluster.snapshot import Snapshot
from trimtab.inputs.command_faults import UsageError, check_names
from trimtab.inputs.option import option
from trimtab.machines.machine_types import MachineType, machine_types
from trimtab.machines.prices import listed_region, price_of, price_table
from trimtab.reservations import pod_limits
from trimtab.reservations.eni_table import NetworkInterfaces, interfaces_by_type
from trimtab.reservations.formula import NodeSize
from trimtab.reservations.kernel import gce_kernel_bytes, typical_kernel_bytes
from trimtab.reservations.pod_limits import PodLimit, PodLimitKind
from trimtab.reservations.profile import MIB

DEFAULT_MAX_PODS = 110
"""The kubelet's default of maxPods."""
_SHARED_CORE = ("e2-micro", "e2-small", "e2-medium")
"""The machine types of Compute Engine with shared cores."""


@dataclass(frozen=True, slots=True)
class SizeOptions:
    """The size of a node, as it is written on the command line."""

    cpu: str | None = None
    memory: str | None = None
    max_pods: int | None = None
    disk: str | None = None
    local_disks: int = 0


@dataclass(frozen=True, slots=True)
class DensityOptions:
    """The options on how pods get their addresses, which limits their number."""

    cni: Annotated[
        Literal["vpc", "vpc-prefix", "cilium"] | None,
        option(
            "--cni", help="How pods get addresses on an EC2 type: vpc (default), vpc-prefix, or cilium in ENI mode."
        ),
    ] = None
    first_interface_index: Annotated[
        int,
        option(
            "--first-interface-index",
            minimum=0,
            maximum=15,
            help="Cilium's setting for the first network interface that gives addresses to pods; interfaces with a "
            "lower index give none.",
        ),
    ] = 0
    node_cidr: Annotated[
        int | None,
        option(
            "--node-cidr",
            minimum=16,
            maximum=30,
            metavar="BITS",
            help="The prefix length of a node's pod range, such as 24 (node-cidr-mask-size).",
        ),
    ] = None
    """The prefix length of a node's pod range, or None if it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormulaNode:
    """One kind of node that the formulas are computed for."""

    name: str
    size: NodeSize
    nodes: int = 0
    """The number of nodes of this kind in the snapshot; 0 without a snapshot."""
    withheld_now: tuple[int, int] | None = None
    """The resources that pods cannot use on nodes of this kind now, as (millicores, bytes); None without a snapshot."""
    price: int | None = None
    """The price in micro-dollars an hour, or None if it is not known."""
    price_region: str = ""
    """The region of the list price; empty if the price is the node's own."""
    limits: tuple[PodLimit, ...] = ()
    notes: tuple[str, ...] = ()


def size_shape(options: SizeOptions, density: DensityOptions) -> FormulaNode:
    """Returns the node of the size on the command line. Raises UsageError."""
    amounts, mistakes = _parse_amounts(options)
    mistakes += [
        ConfigError(file=f"--{name}", expected="an amount above 0", got="none")
        for name in ("cpu", "memory")
        if getattr(options, name) is None
    ]
    if mistakes:
        raise UsageError(mistakes)
    pods = options.max_pods or DEFAULT_MAX_PODS
    limits = (PodLimit(PodLimitKind.KUBELET, pods), *_cidr_limits(density))
    size = NodeSize(
        millicores=amounts["cpu"],
        memory_bytes=amounts["memory"],
        max_pods=pods,
        boot_disk_bytes=amounts.get("disk"),
        local_disks=options.local_disks,
    )
    return FormulaNode(
        name="one node of this size", size=size, limits=limits, notes=tuple(_note_density(limits, density))
    )


def _parse_amounts(options: SizeOptions) -> tuple[dict[str, int], list[ConfigError]]:
    amounts: dict[str, int] = {}
    mistakes: list[ConfigError] = []
    for name, text in (("cpu", options.cpu), ("memory", options.memory), ("disk", options.disk)):
        if text is None:
            continue
        amount = quantity.scheduler_value(name, text) if quantity.is_quantity(text) else 0
        if amount > 0:
            amounts[name] = amount
        else:
            mistakes.append(ConfigError(file=f"--{name}", expected="an amount above 0, such as 8 or 32Gi", got=text))
    return amounts, mistakes


def type_shape(name: str, options: SizeOptions, density: DensityOptions) -> FormulaNode:
    """Returns a node of this machine type, including the memory that the kernel takes. Raises UsageError."""
    types = machine_types()
    amounts, mistakes = _parse_amounts(options)
    kind = types.get(name)
    if kind is None:
        expected = f"one of {len(types)} machine types of AWS, Azure and GCP"
        mistakes.append(ConfigError(file="--type", expected=expected, got=name, todo=suggest_name(name, types)))
    if mistakes or kind is None:
        raise UsageError(mistakes)
    interfaces = interfaces_by_type().get(name)
    limits = tuple(_type_limits(kind, interfaces, density, options.max_pods))
    # A node's own maxPods counts for what it reserves; a limit of the network is only told beside it.
    pods = options.max_pods or next((limit.pods for limit in limits), DEFAULT_MAX_PODS)
    size = NodeSize(
        millicores=int(kind.cores * 1000),
        memory_bytes=kind.memory_mib * MIB,
        max_pods=pods,
        lost_bytes=_lost_bytes(kind),
        architecture=kind.arch,
        is_shared_core=name in _SHARED_CORE,
        boot_disk_bytes=amounts.get("disk"),
        local_disks=options.local_disks,
    )
    notes = [*_note_density(limits, density), *_note_lost_memory(kind)]
    return FormulaNode(
        name=name,
        size=size,
        limits=limits,
        notes=tuple(notes),
        price=price_table().get(name),
        price_region=listed_region(name),
    )


def _lost_bytes(kind: MachineType) -> int:
    if kind.visible_mib is not None:
        return max(0, (kind.memory_mib - kind.visible_mib) * MIB)
    memory = kind.memory_mib * MIB
    return int(gce_kernel_bytes(memory)) if kind.cloud == "gcp" else typical_kernel_bytes(memory)


def _note_lost_memory(kind: MachineType) -> Iterator[str]:
    if kind.visible_mib is not None:
        return
    how = "the cluster autoscaler's formula" if kind.cloud == "gcp" else "the median of machines of its size"
    yield f"The memory that the kernel of {kind.name} uses was not measured, so it is estimated by {how}."


def _type_limits(
    kind: MachineType, interfaces: NetworkInterfaces | None, density: DensityOptions, max_pods: int | None
) -> Iterator[PodLimit]:
    """Yields the limits on the number of pods on a machine of this type, the kubelet's maxPods first."""
    if interfaces is None:
        yield PodLimit(PodLimitKind.KUBELET, max_pods or DEFAULT_MAX_PODS)
    elif density.cni == "vpc-prefix":
        pods = pod_limits.count_prefix_pods(interfaces, int(kind.cores))
        yield PodLimit(PodLimitKind.KUBELET, max_pods or pods)
        yield PodLimit(PodLimitKind.PREFIXES, pod_limits.count_prefix_pods(interfaces, 0, is_capped=False))
    else:
        pods = pod_limits.count_interface_pods(interfaces)
        yield PodLimit(PodLimitKind.KUBELET, max_pods or pods)
        if density.cni == "cilium":
            addresses = pod_limits.count_cilium_pods(interfaces, density.first_interface_index)
            yield PodLimit(PodLimitKind.CILIUM, addresses)
        else:
            yield PodLimit(PodLimitKind.INTERFACES, pods)
    yield from _cidr_limits(density)


def _cidr_limits(density: DensityOptions) -> Iterator[PodLimit]:
    if density.node_cidr is not None:
        yield PodLimit(PodLimitKind.ADDRESSES, pod_limits.count_cidr_pods(density.node_cidr))


def _note_density(limits: tuple[PodLimit, ...], density: DensityOptions) -> Iterator[str]:
    allowed = limits[0].pods
    for limit in limits[1:]:
        if limit.pods < allowed:
            yield (
                f"The kubelet allows {format_count(allowed, 'pod')}, but on this node "
                f"{_LIMIT_TEXTS[limit.kind]} {format_count(limit.pods, 'pod')}."
            )
    if density.node_cidr is not None and allowed > pod_limits.max_pods_for_cidr(density.node_cidr):
        most = pod_limits.max_pods_for_cidr(density.node_cidr)
        yield (
            f"A range of /{density.node_cidr} has addresses for only {format_count(most, 'pod')}: further pods stay in "
            "ContainerCreating."
        )
    if pod_limits.exceeds_arp_table(allowed):
        yield (
            f"For nodes with {pod_limits.ARP_PODS} pods or more, raise gc_thresh1, gc_thresh2 and gc_thresh3 of "
            f"net.ipv4.neigh.default: the kernel's default of {pod_limits.DEFAULT_GC_THRESH3} neighbour entries "
            "is too small for so many pods."
        )


_LIMIT_TEXTS = {
    PodLimitKind.INTERFACES: "the network interfaces have addresses for",
    PodLimitKind.PREFIXES: "the network interfaces have address prefixes for",
    PodLimitKind.CILIUM: "the interfaces that Cilium uses have addresses for",
    PodLimitKind.ADDRESSES: "four fifths of the addresses of the pod range are enough for",
}


def shapes_of_cluster(
    snapshot: Snapshot, options: SizeOptions, density: DensityOptions, pool: str | None = None
) -> list[FormulaNode]:
    """Returns the nodes in a snapshot, or those of one pool, grouped by pool, machine type and capacity, the largest
    group first. Raises UsageError."""
    amounts, mistakes = _parse_amounts(options)
    nodes = [node for shape in snapshot.objects_of(Node) if (node := node_from_api(shape)).nature.is_machine]
    if not nodes:
        mistakes.append(ConfigError(file="--cluster", expected="nodes", got="none"))
    if mistakes:
        raise UsageError(mistakes)
    if pool is not None:
        check_names("--pool", "a pool", [pool], map(pool_name, nodes))
        nodes = [node for node in nodes if pool_name(node) == pool]
    counts: Counter[tuple[str, NodeSize, tuple[int, int]]] = Counter()
    samples: dict[tuple[str, NodeSize, tuple[int, int]], NodeInfo] = {}
    for node in nodes:
        if isinstance(node.capacity, Unreadable) or isinstance(node.allocatable, Unreadable):
            continue
        kind = node.labels.get(INSTANCE_TYPE_LABEL, "")
        key = (
            ", ".join(part for part in (pool_name(node), kind) if part) or "nodes",
            _node_size(node, options, amounts),
            _withheld_now(node),
        )
        counts[key] += 1
        samples.setdefault(key, node)
    if not counts:
        raise UsageError(
            [
                ConfigError(
                    file="--cluster",
                    expected="nodes with a capacity",
                    got=f"{format_count(len(nodes), 'node')} without a capacity",
                )
            ]
        )
    return [
        _cluster_shape(key, count, samples[key], density)
        for key, count in sorted(counts.items(), key=lambda item: (-item[1], item[0][0]))
    ]


def _cluster_shape(
    key: tuple[str, NodeSize, tuple[int, int]], count: int, node: NodeInfo, density: DensityOptions
) -> FormulaNode:
    name, size, withheld = key
    price = price_of(node, {})
    limits = [PodLimit(PodLimitKind.KUBELET, int(size.max_pods))]
    interfaces = interfaces_by_type().get(node.labels.get(INSTANCE_TYPE_LABEL, ""))
    if interfaces is not None and density.cni == "cilium":
        addresses = pod_limits.count_cilium_pods(interfaces, density.first_interface_index)
        limits.append(PodLimit(PodLimitKind.CILIUM, addresses))
    elif interfaces is not None and density.cni == "vpc":
        limits.append(PodLimit(PodLimitKind.INTERFACES, pod_limits.count_interface_pods(interfaces)))
    limits += _cidr_limits(density)
    return FormulaNode(
        name=name,
        size=size,
        nodes=count,
        withheld_now=withheld,
        limits=tuple(limits),
        price=None if isinstance(price, NotYet) else price,
        notes=tuple(_note_density(tuple(limits), density)),
    )


def _node_size(node: NodeInfo, options: SizeOptions, amounts: dict[str, int]) -> NodeSize:
    assert not isinstance(node.capacity, Unreadable)
    assert not isinstance(node.allocatable, Unreadable)
    pods = options.max_pods or node.capacity.get("pods", node.allocatable.get("pods", DEFAULT_MAX_PODS))
    disk = amounts.get("disk", node.capacity.get("ephemeral-storage"))
    # Nodes of one type differ by a few pages of memory: in whole mebibytes they are one shape.
    memory = node.capacity["memory"] // MIB * MIB
    return NodeSize(
        millicores=node.capacity["cpu"],
        memory_bytes=memory,
        max_pods=pods,
        boot_disk_bytes=disk,
        architecture=node.labels.get("kubernetes.io/arch", "amd64"),
        local_disks=options.local_disks,
    )


def _withheld_now(node: NodeInfo) -> tuple[int, int]:
    assert not isinstance(node.capacity, Unreadable)
    assert not isinstance(node.allocatable, Unreadable)
    memory = node.capacity["memory"] - node.allocatable["memory"]
    return node.capacity["cpu"] - node.allocatable["cpu"], round(memory / MIB) * MIB
