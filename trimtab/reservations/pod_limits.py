"""How many pods a node can hold: by its network interfaces, by its address range, and by the kernel's ARP table.

Elastic network interfaces (AWS VPC CNI): each interface keeps its first address, every other one is a pod's; two more
pods use the node's own address (aws-node and kube-proxy). With prefix delegation each of those addresses is a prefix of
16. Sources: amazon-eks-ami (nodeadm, internal/kubelet), Amazon's max-pods calculator, Cilium's ENI mode.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from trimtab.reservations.eni_table import NetworkInterfaces

HOST_NETWORK_PODS = 2
"""Pods of the VPC CNI that need no address of their own: aws-node and kube-proxy."""
ADDRESSES_PER_PREFIX = 16
SMALL_NODE_CORES = 30
SMALL_NODE_PODS, LARGE_NODE_PODS = 110, 250
"""The most pods that Amazon advises with prefixes: on nodes of at most 30 vCPU, and on larger ones."""
USABLE_CIDR_PERCENT = 80
"""The part of a node's pod addresses that should be in use at most: a pod's address is free again only after its pod
has ended, and a rolling update needs both."""
ARP_PODS = 400
"""Pods on a node from which the kernel's default ARP thresholds (gc_thresh1 to 3: 128, 512, 1024) become too small."""
DEFAULT_GC_THRESH3 = 1024


class PodLimitKind(StrEnum):
    """What bounds the pods of a node."""

    KUBELET = "kubelet"
    """The kubelet's maxPods."""
    INTERFACES = "interfaces"
    PREFIXES = "prefixes"
    CILIUM = "cilium"
    """Cilium in ENI mode."""
    ADDRESSES = "addresses"
    """The node's range of pod addresses."""
    CPU = "cpu"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class PodLimit:
    """One bound of a node's number of pods."""

    kind: PodLimitKind
    pods: int


def count_interface_pods(interfaces: NetworkInterfaces) -> int:
    """Returns the pods of a node with the VPC CNI: nodeadm's default for maxPods."""
    return interfaces.count * (interfaces.addresses - 1) + HOST_NETWORK_PODS


def count_prefix_pods(interfaces: NetworkInterfaces, cores: int, *, is_capped: bool = True) -> int:
    """Returns the pods of a node with the VPC CNI and prefix delegation.

    `is_capped`: the number that Amazon advises for a node of these cores, at most 110 or 250; nodeadm does not cap.
    """
    pods = interfaces.count * (interfaces.addresses - 1) * ADDRESSES_PER_PREFIX + HOST_NETWORK_PODS
    return min(pods, SMALL_NODE_PODS if cores <= SMALL_NODE_CORES else LARGE_NODE_PODS) if is_capped else pods


def count_cilium_pods(interfaces: NetworkInterfaces, first_interface_index: int = 0) -> int:
    """Returns the pod addresses of a node with Cilium in ENI mode, which leaves interfaces below an index alone.

    With `first-interface-index: 1` the first interface gives no pod an address: an m5.xlarge has 42, not 56. The
    default for maxPods counts all interfaces, so further pods wait for an address on a node that seems to have room.
    """
    return max(0, interfaces.count - first_interface_index) * (interfaces.addresses - 1)


def count_cidr_pods(prefix_bits: int) -> int:
    """Returns the pods for which a node's IPv4 range of this prefix has room, four fifths of its addresses.

    `prefix_bits`: the node's part of the cluster's pod range, such as 24 for 256 addresses (node-cidr-mask-size).
    """
    return (1 << (32 - prefix_bits)) * USABLE_CIDR_PERCENT // 100


def max_pods_for_cidr(prefix_bits: int) -> int:
    """Returns the largest maxPods at which every pod still gets an address; beyond it pods fail to start."""
    # Without the network's own address, its broadcast address and the node's bridge.
    return max(0, (1 << (32 - prefix_bits)) - 3)


def exceeds_arp_table(pods: int) -> bool:
    """Returns whether a node with this many pods needs larger ARP thresholds (net.ipv4.neigh.default.gc_thresh*)."""
    return pods >= ARP_PODS


def smallest_limit(limits: Iterable[PodLimit]) -> PodLimit | None:
    """Returns the limit that binds; the first of several equal ones, None without any."""
    return min(limits, key=lambda limit: limit.pods, default=None)
