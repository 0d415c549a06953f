"""A node as a planner sees it, and the cluster autoscaler's node group to which the node belongs.

The group's name is the cloud provider's: an instance group's URL (GCE), a scale set (Azure), an autoscaling group
(AWS), a MachineDeployment (Cluster API). A node belongs to a group if an address of the node, such as its provider ID,
contains the group's name, or if the value of a label or annotation is that name. If no group or several groups match,
the node's group is unknown.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

from trimtab.cluster.api.core import Node as Shape
from trimtab.cluster.api.core import RuntimeHandlerFeatures, Taint
from trimtab.cluster.api.meta import Labels, ResourceList, UnsetType, value_or
from trimtab.cluster.api.storage import CSINode
from trimtab.cluster.cluster_autoscaler import IDLE_STATES, Autoscaler, NodeGroupStatus, is_group_of_pool
from trimtab.cluster.node_nature import ORDINARY, NodeNature, join_amounts, nature_of
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.resources import Amounts, scheduler_amounts
from trimtab.cluster.timestamps import Seconds, parse_timestamp

ZONE_LABEL = "topology.kubernetes.io/zone"
HOSTNAME_LABEL = "kubernetes.io/hostname"
INSTANCE_TYPE_LABEL = "node.kubernetes.io/instance-type"
REGION_LABEL = "topology.kubernetes.io/region"
OS_LABELS = ("kubernetes.io/os", "beta.kubernetes.io/os")
ARCH_LABELS = ("kubernetes.io/arch", "beta.kubernetes.io/arch")
"""The labels with the operating system and the architecture of a node, present and former."""
WINDOWS_BUILD_LABEL = "node.kubernetes.io/windows-build"
DELETION_TAINTS = ("ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption")
"""Keys of the taints with which an autoscaler marks a node that it is removing."""
CANDIDATE_TAINT = "DeletionCandidateOfClusterAutoscaler"
"""The key of the PreferNoSchedule taint that the cluster autoscaler puts on nodes which it does not need (utils/taints,
cluster-autoscaler 1.36)."""
AUTOSCALER_TAINTS = (*DELETION_TAINTS, CANDIDATE_TAINT)
"""Keys of the taints that an autoscaler puts on a node which it may remove. They come and go, so they say nothing about
the other nodes of its group."""
LEGACY_TAINT_KEY = "trimtab.dev/legacy"
"""The key of the taint on the nodes of a legacy pool, which is to be emptied: `trimtab machines legacy` writes the
taint."""
LIFECYCLE_CONDITIONS = ("DrainInProgress", "Drained", "MaintenanceInProgress", "MaintenancePlanned")
"""Node conditions with which a client reports that it is draining or maintaining the node (alpha in Kubernetes
1.37)."""
CAPACITY_TYPE_LABEL = "karpenter.sh/capacity-type"


class HandlerFeature(StrEnum):
    """A feature of a runtime handler that a pod may need (`status.runtimeHandlers` of a node)."""

    USER_NAMESPACES = "userNamespaces"
    RECURSIVE_READ_ONLY_MOUNTS = "recursiveReadOnlyMounts"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeInfo:
    """One node; `allocatable` is in the scheduler's units."""

    name: str
    labels: Labels
    annotations: Labels
    taints: tuple[Taint, ...]
    is_cordoned: bool
    allocatable: Amounts | Unreadable
    """The amounts that pods may request on the node. Unreadable, and never 0, if the field is missing, lacks cpu or
    memory, or has an invalid quantity."""
    is_ready: bool
    """Whether the Ready condition is True. With False and Unknown, the node is not ready."""
    created: Seconds | None
    provider_id: str
    capacity: Amounts | Unreadable
    """The capacity of the machine, including what is reserved for the system. Unreadable under the same conditions as
    `allocatable`."""
    attachable_volumes: Mapping[str, int]
    """CSI driver → number of its volumes that can be attached to the node; for a driver that is not in the mapping, no
    limit is known."""
    uid: str = ""
    """The uid of the Node object. A node that is deleted and registers again under the same name has another uid."""
    lifecycle: tuple[str, ...] = ()
    """The lifecycle conditions that are True."""
    container_runtime: str = ""
    """The name of the container runtime, such as containerd, without its version; empty if it is not known."""
    price: int | None = None
    """The price in micro-dollars an hour, or None if no price file names this node. It is not part of the Node
    object."""
    runtime_handlers: Mapping[str, frozenset[HandlerFeature]] | None = None
    """Runtime handler → its features; the default handler has an empty name. None if the node does not report its
    handlers."""
    declared_features: frozenset[str] | None = None
    """The features that the node declares, or None if it declares none."""
    has_strict_groups: bool | None = None
    """Whether the container runtime supports `supplementalGroupsPolicy: Strict`, or None if the node does not say."""
    csi_drivers: frozenset[str] | None = None
    """The CSI drivers that are registered on the node, or None if there is no CSINode."""
    operating_system: str = ""
    """The operating system, such as linux; empty if it is not known."""
    architecture: str = ""
    """The architecture, such as arm64; empty if it is not known."""
    kubelet_version: str = ""
    """The version of the kubelet, such as v1.36.2; empty if it is not known."""
    nature: NodeNature = field(init=False, default=ORDINARY)
    """What the node is: an ordinary machine, or what its signs show. It follows from the other fields."""

    def __post_init__(self) -> None:
        allocatable, capacity = (
            {} if isinstance(part, Unreadable) else part for part in (self.allocatable, self.capacity)
        )
        nature = nature_of(
            self.name,
            self.labels,
            self.annotations,
            self.taints,
            provider_id=self.provider_id,
            kubelet_version=self.kubelet_version,
            capacity=join_amounts(allocatable, capacity),
        )
        object.__setattr__(self, "nature", nature)

    @property
    def windows_build(self) -> str:
        """The build of Windows, such as 10.0.20348; empty on other operating systems, or if it is not known."""
        return self.labels.get(WINDOWS_BUILD_LABEL, "")

    @property
    def removal_taint(self) -> Taint | None:
        """The taint that shows that an autoscaler is removing the node, or None if there is none."""
        return next((taint for taint in self.taints if taint.key in DELETION_TAINTS), None)

    @property
    def is_staying(self) -> bool:
        """Whether the node is ready, and neither cordoned nor being deleted."""
        return self.is_ready and not self.is_cordoned and self.removal_taint is None

    @property
    def maintenance_condition(self) -> str:
        """The condition that says that another client is draining or maintaining the node now; empty if there is none,
        or if maintenance is only planned."""
        return next((condition for condition in self.lifecycle if condition != "MaintenancePlanned"), "")

    @property
    def autoscaler_candidate(self) -> bool:
        """Whether the cluster autoscaler intends to remove the node, as the autoscaler's soft taint shows."""
        return any(taint.key == CANDIDATE_TAINT for taint in self.taints)

    @property
    def is_legacy(self) -> bool:
        """Whether the node belongs to a legacy pool, which is to be emptied: the cluster adds other nodes for its
        pods."""
        return any(taint.key == LEGACY_TAINT_KEY for taint in self.taints)

    @property
    def zone(self) -> str:
        """The zone of the node, or an empty string if it has no zone label."""
        return self.labels.get(ZONE_LABEL, "")


def node_from_api(shape: Shape, csi_node: CSINode | None = None) -> NodeInfo:
    """Returns the node of a Node object. `csi_node` is the CSINode of the same name, which says how many volumes can be
    attached."""
    meta = shape.metadata
    return NodeInfo(
        name=meta.name,
        labels=value_or(meta.labels, {}),
        annotations=value_or(meta.annotations, {}),
        taints=shape.spec.taints,
        is_cordoned=shape.spec.unschedulable,
        allocatable=_allocatable_of(shape),
        is_ready=any(c.type == "Ready" and c.status == "True" for c in shape.status.conditions),
        created=parse_timestamp(meta.creation_timestamp),
        provider_id=shape.spec.provider_id,
        attachable_volumes=_volume_limits(csi_node),
        capacity=_parse_amounts(shape, "capacity", shape.status.capacity),
        uid=meta.uid,
        container_runtime=shape.status.node_info.container_runtime_version.partition("://")[0],
        kubelet_version=shape.status.node_info.kubelet_version,
        operating_system=shape.status.node_info.operating_system or first_label(meta.labels, OS_LABELS),
        architecture=shape.status.node_info.architecture or first_label(meta.labels, ARCH_LABELS),
        runtime_handlers={
            handler.name: _handler_features(handler.features) for handler in shape.status.runtime_handlers
        }
        if shape.status.runtime_handlers
        else None,
        declared_features=(
            None if shape.status.declared_features is None else frozenset(shape.status.declared_features)
        ),
        has_strict_groups=None if shape.status.features is None else shape.status.features.supplemental_groups_policy,
        csi_drivers=None if csi_node is None else frozenset(driver.name for driver in csi_node.spec.drivers),
        lifecycle=tuple(
            c.type for c in shape.status.conditions if c.type in LIFECYCLE_CONDITIONS and c.status == "True"
        ),
    )


def _handler_features(features: RuntimeHandlerFeatures | None) -> frozenset[HandlerFeature]:
    if features is None:
        return frozenset()
    reported = {
        HandlerFeature.USER_NAMESPACES: features.user_namespaces,
        HandlerFeature.RECURSIVE_READ_ONLY_MOUNTS: features.recursive_read_only_mounts,
    }
    return frozenset(feature for feature, has_it in reported.items() if has_it)


def first_label(labels: Labels | UnsetType, keys: Sequence[str]) -> str:
    """Returns the value of the first of these labels that is not empty, or an empty string if there is none."""
    return next((value for key in keys if (value := value_or(labels, {}).get(key, ""))), "")


def _allocatable_of(shape: Shape) -> Amounts | Unreadable:
    allocatable = _parse_amounts(shape, "allocatable", shape.status.allocatable)
    if not isinstance(allocatable, Unreadable):
        # The kubelet's default for maxPods; a Node from a file may lack the resource.
        allocatable.setdefault("pods", 110)
    return allocatable


def _parse_amounts(shape: Shape, field_name: str, quantities: ResourceList) -> Amounts | Unreadable:
    where = f"node {shape.metadata.name}"
    try:
        numbers = scheduler_amounts(quantities)
    except NotAQuantity as error:
        return Unreadable(where, str(error))
    for resource in ("cpu", "memory"):
        if numbers.get(resource, 0) <= 0:
            return Unreadable(where, f"the status of the node has no {field_name} {resource}")
    return numbers


def _volume_limits(csi_node: CSINode | None) -> dict[str, int]:
    limits: dict[str, int] = {}
    for driver in csi_node.spec.drivers if csi_node else ():
        count = value_or(driver.allocatable, None)
        if count is not None and isinstance(count.count, int):
            limits[driver.name] = count.count
    return limits


# EKS names the autoscaling group of a managed node group eks-NAME-UUID.
EKS_NODE_GROUP_LABEL = "eks.amazonaws.com/nodegroup"
# machine-controller-manager labels the node with its machine, MachineDeployment-HASH-SUFFIX; the autoscaler's groups on
# Gardener are MachineDeployments.
GARDENER_MACHINE_LABEL = "node.gardener.cloud/machine-name"
MACHINE_SUFFIX = r"-[a-z0-9]+-[a-z0-9]{5}"
# eksctl names the autoscaling group of its own node groups eksctl-CLUSTER-nodegroup-NAME-NodeGroup-RANDOM.
EKSCTL_NODE_GROUP_LABEL = "alpha.eksctl.io/nodegroup-name"
# Cluster API annotates the node with its Machine, MachineDeployment-HASH-SUFFIX; the autoscaler's groups are
# MachineDeployments there, too.
CLUSTER_API_MACHINE_ANNOTATION = "cluster.x-k8s.io/machine"
# GCE appends this to the base name of an instance group for each instance.
GCE_MACHINE_SUFFIX = r"-[a-z0-9]{4}"


def group_of(node: NodeInfo, groups: Sequence[NodeGroupStatus]) -> NodeGroupStatus | None:
    """Returns the group to which the node belongs, or None if no group or several groups match the node."""
    matches = [group for group in groups if _names_group(node, _short_name(group.name))]
    if len(matches) > 1:
        # Groups of several zones may have the same name; the zone is part of the group's address.
        matches = [group for group in matches if node.zone and node.zone in group.name.split("/")]
    return matches[0] if len(matches) == 1 else None


def describe_scale_up(autoscaler: Autoscaler, pool: str, nodes: Iterable[NodeInfo]) -> str:
    """Returns a description of the scale-up that prevents drains in this pool: a group to which nodes are being added,
    or one for which the cloud has no nodes. Empty if there is none.

    The groups of the pool are those whose name contains the pool's name, and those to which its nodes belong. If none
    is known, the scale-ups of all groups and of the cluster as a whole count.
    """
    busy = autoscaler.busy_groups
    if busy:
        groups_of_nodes = {
            node_group.name for node in nodes if (node_group := group_of(node, autoscaler.groups)) is not None
        }
        groups_of_pool = {group.name for group in autoscaler.groups if is_group_of_pool(group, pool)} | groups_of_nodes
        group = next((group for group in busy if group.name in groups_of_pool or not groups_of_pool), None)
        if group is not None:
            return f"node group {group.name} ({group.scale_up})"
        if groups_of_pool:
            return ""
    elif autoscaler.groups_of_pool(pool):
        return ""
    return "" if autoscaler.scale_up in IDLE_STATES else f"the cluster ({autoscaler.scale_up})"


def _short_name(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2].lower()


@lru_cache(maxsize=1_000)
def _gce_machine_of(group: str) -> re.Pattern[str]:
    return re.compile(re.escape(group.removesuffix("-grp")) + GCE_MACHINE_SUFFIX)


def _names_group(node: NodeInfo, name: str) -> bool:
    if not name:
        return False
    machine = _gce_machine_of(name)
    address = node.provider_id.lower().split("/")
    if name in address or any(machine.fullmatch(part) for part in address):
        return True
    eks = node.labels.get(EKS_NODE_GROUP_LABEL, "").lower()
    if eks and re.fullmatch(rf"eks-{re.escape(eks)}-[0-9a-f-]{{36}}", name):
        return True
    eksctl = node.labels.get(EKSCTL_NODE_GROUP_LABEL, "").lower()
    if eksctl and re.fullmatch(rf"eksctl-.+-nodegroup-{re.escape(eksctl)}-nodegroup-[0-9a-z]+", name):
        return True
    owners = (node.labels.get(GARDENER_MACHINE_LABEL, ""), node.annotations.get(CLUSTER_API_MACHINE_ANNOTATION, ""))
    if any(one and re.fullmatch(re.escape(name) + MACHINE_SUFFIX, one.lower()) for one in owners):
        return True
    return name in (_short_name(value) for value in (*node.labels.values(), *node.annotations.values()))


def find_common_domain(names: Sequence[str]) -> str:
    """Returns the domain that all of these names of nodes end in, from its dot on; empty if there is none."""
    domains = {name[name.find(".") :] if "." in name else "" for name in names}
    return domains.pop() if len(domains) == 1 and len(names) > 1 else ""
