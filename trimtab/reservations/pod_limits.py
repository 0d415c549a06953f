"""How many pods a node can hold: limits by its network interfaces, by its address range, and by the kernel's ARP table.

Elastic network interfaces (AWS VPC CNI): each interface keeps its first address; every other address is for a pod. Two
more pods use the node's own address (aws-node and kube-proxy). With prefix delegation, each of these addresses is a
prefix of 16. Sources: amazon-eks-ami (nodeadm, internal/kubelet), Amazon's max-pods calculator, Cilium's ENI mode.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from trimtab.reservations.eni_table import NetworkInterfaces

HOST_NETWORK_PODS = 2
"""The number of pods of the VPC CNI that need no address of their own: aws-node and kube-proxy."""
ADDRESSES_PER_PREFIX = 16
SMALL_NODE_CORES = 30
SMALL_NODE_PODS, LARGE_NODE_PODS = 110, 250
"""The largest number of pods that Amazon advises with prefixes: on nodes with at most 30 vCPU, and on larger nodes."""
USABLE_CIDR_PERCENT = 80
"""The percentage of a node's pod addresses that should be in use at most. An address becomes free only after its pod
has ended, and a rolling update needs both the old and the new pod."""
ARP_PODS = 400
"""If a node has at least this many pods, the kernel's default ARP thresholds (gc_thresh1 to 3: 128, 512, 1024) are too
small."""
DEFAULT_GC_THRESH3 = 1024


class PodLimitKind(StrEnum):
    """What limits the number of pods on a node."""

    KUBELET = "kubelet"
    """The maxPods setting of the kubelet."""
    INTERFACES = "interfaces"
    PREFIXES = "prefixes"
    CILIUM = "cilium"
    """The addresses that Cilium in ENI mode can give to pods."""
    ADDRESSES = "addresses"
    """The size of the node's range of pod addresses."""
    CPU = "cpu"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class PodLimit:
    """One limit of a node's number of pods."""

    kind: PodLimitKind
    pods: int


def count_interface_pods(interfaces: NetworkInterfaces) -> int:
    """Returns the number of pods of a node with the VPC CNI, which is nodeadm's default for maxPods."""
    return interfaces.count * (interfaces.addresses - 1) + HOST_NETWORK_PODS


def count_prefix_pods(interfaces: NetworkInterfaces, cores: int, *, is_capped: bool = True) -> int:
    """Returns the number of pods of a node with the VPC CNI and prefix delegation.

    With `is_capped`, it is at most the number that Amazon advises for a node with these cores, 110 or 250; nodeadm
    itself does not limit it.
    """
    pods = interfaces.count * (interfaces.addresses - 1) * ADDRESSES_PER_PREFIX + HOST_NETWORK_PODS
    return min(pods, SMALL_NODE_PODS if cores <= SMALL_NODE_CORES else LARGE_NODE_PODS) if is_capped else pods


def count_cilium_pods(interfaces: NetworkInterfaces, first_interface_index: int = 0) -> int:
    """Returns the number of pod addresses of a node with Cilium in ENI mode, which does not use interfaces below
    `first_interface_index`.

    With `first-interface-index: 1`, the first interface gives no addresses to pods: an m5.xlarge has 42, not 56. The
    default for maxPods counts all interfaces, so further pods wait for an address on a node that seems to have room.
    """
    return max(0, interfaces.count - first_interface_index) * (interfaces.addresses - 1)


def count_cidr_pods(prefix_bits: int) -> int:
    """Returns the number of pods for which a node's IPv4 range with this prefix length should be used: four fifths of
    its addresses.

    `prefix_bits` is the prefix length of the node's part of the cluster's pod range (node-cidr-mask-size), such as 24
    for 256 addresses.
    """
    return (1 << (32 - prefix_bits)) * USABLE_CIDR_PERCENT // 100


def max_pods_for_cidr(prefix_bits: int) -> int:
    """Returns the largest maxPods with which every pod still gets an address; with more pods, some fail to start."""
    # Without the network's own address, its broadcast address and the node's bridge.
    return max(0, (1 << (32 - prefix_bits)) - 3)


def exceeds_arp_table(pods: int) -> bool:
    """Returns whether a node with this number of pods needs larger ARP thresholds
    (net.ipv4.neigh.default.gc_thresh*)."""
    return pods >= ARP_PODS
