"""What is this node to a planner?

Which of the autoscaler's node groups is this node of?

A group's name is the cloud's: an instance group's address (GCE), a scale set (Azure), an autoscaling group (AWS), a
MachineDeployment (Cluster API). A node tells its own by an address that holds that name, or by a label or annotation
that says it. Where neither does, or several groups could be meant, it is not known, and nobody guesses.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trimtab.cluster.api.core import Node as Shape
from trimtab.cluster.api.core import Taint
from trimtab.cluster.api.meta import Labels, ResourceList, get
from trimtab.cluster.api.storage import CSINode
from trimtab.cluster.cluster_autoscaler import CALM, Autoscaler, NodeGroupStatus, belongs
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.resources import Amounts, amounts
from trimtab.cluster.timestamps import Seconds, seconds

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
REGION = "topology.kubernetes.io/region"
DELETING = ("ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption")
"""Taints of autoscalers that have decided to remove the node."""
CANDIDATE_TAINT = "DeletionCandidateOfClusterAutoscaler"
"""PreferNoSchedule, on nodes that the cluster autoscaler does not need (utils/taints, cluster-autoscaler 1.36)."""
LIFECYCLE = ("DrainInProgress", "Drained", "MaintenanceInProgress", "MaintenancePlanned")
"""Node conditions by which a client says that it drains or maintains the node (alpha in Kubernetes 1.37)."""
CAPACITY_TYPE = "karpenter.sh/capacity-type"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeInfo:
    """One node; `allocatable` in the scheduler's numbers."""

    name: str
    labels: Labels
    annotations: Labels
    taints: tuple[Taint, ...]
    cordoned: bool
    allocatable: Amounts | Unreadable
    """Unreadable where it is missing, names no cpu or memory, or is no quantity: never a zero by mistake."""
    ready: bool
    """Ready is True; False and Unknown are the same to us."""
    created: Seconds | None
    provider_id: str
    capacity: Amounts | Unreadable
    """What the machine has, what is reserved included. Unreadable like `allocatable`."""
    attachable: Mapping[str, int]
    """CSI driver → how many volumes it may hold here; a driver that is not named has no limit we know."""
    uid: str = ""
    """The Node object's own: a node that is deleted and registers again has another one."""
    lifecycle: tuple[str, ...] = ()
    """Its lifecycle conditions that are True."""
    price: int | None = None
    """Micro-dollars an hour by a price file, beside the Node object; None where none names this node."""

    @property
    def going(self) -> Taint | None:
        """The taint by which an autoscaler removes it; None while it stays."""
        return next((taint for taint in self.taints if taint.key in DELETING), None)

    @property
    def maintained(self) -> str:
        """The condition by which another client drains or maintains it now; empty while it is only planned."""
        return next((condition for condition in self.lifecycle if condition != "MaintenancePlanned"), "")

    @property
    def autoscaler_candidate(self) -> bool:
        """Whether the cluster autoscaler means to remove it: its soft taint says so until it does or thinks better."""
        return any(taint.key == CANDIDATE_TAINT for taint in self.taints)

    @property
    def zone(self) -> str:
        """Empty where the node does not say."""
        return self.labels.get(ZONE, "")


def read(shape: Shape, storage: CSINode | None = None) -> NodeInfo:
    meta = shape.metadata
    return NodeInfo(
        name=meta.name, labels=get(meta.labels, {}), annotations=get(meta.annotations, {}), taints=shape.spec.taints,
        cordoned=shape.spec.unschedulable, allocatable=_allocatable(shape),
        ready=any(c.type == "Ready" and c.status == "True" for c in shape.status.conditions),
        created=seconds(meta.creation_timestamp), provider_id=shape.spec.provider_id, attachable=_attachable(storage),
        capacity=_amounts(shape, "capacity", shape.status.capacity), uid=meta.uid,
        lifecycle=tuple(c.type for c in shape.status.conditions if c.type in LIFECYCLE and c.status == "True"),
    )  # fmt: skip


def _allocatable(shape: Shape) -> Amounts | Unreadable:
    found = _amounts(shape, "allocatable", shape.status.allocatable)
    if not isinstance(found, Unreadable):
        found.setdefault("pods", 110)
    return found


def _amounts(shape: Shape, what: str, written: ResourceList) -> Amounts | Unreadable:
    where = f"node {shape.metadata.name}"
    try:
        found = amounts(written)
    except NotAQuantity as error:
        return Unreadable(where, str(error))
    for resource in ("cpu", "memory"):
        if found.get(resource, 0) <= 0:
            return Unreadable(where, f"it says no {what} {resource}")
    return found


def _attachable(storage: CSINode | None) -> dict[str, int]:
    limits: dict[str, int] = {}
    for driver in storage.spec.drivers if storage else ():
        count = get(driver.allocatable, None)
        if count is not None and isinstance(count.count, int):
            limits[driver.name] = count.count
    return limits


EKS = "eks.amazonaws.com/nodegroup"
"""EKS names the autoscaling group of a managed node group eks-NAME-UUID."""
MACHINE = r"-[a-z0-9]{4}"
"""What GCE appends to the base name of an instance group for each instance."""


def group_of(node: NodeInfo, groups: Sequence[NodeGroupStatus]) -> NodeGroupStatus | None:
    """The one group that the node tells; None where that cannot be told."""
    found = [group for group in groups if _tells(node, _short(group.name))]
    if len(found) > 1:
        found = [group for group in found if node.zone and node.zone in group.name.split("/")]
    return found[0] if len(found) == 1 else None


def describe_scale_up(autoscaler: Autoscaler, pool: str, nodes: Iterable[NodeInfo]) -> str:
    """What keeps nodes of this pool from going: a group to which nodes are added, or which can get none.

    The pool's groups are those whose name holds the pool's, and those that its nodes tell. Where no group is known to
    be the pool's, any group counts, and so does the cluster-wide word. Empty where nothing is being added.
    """
    busy = autoscaler.busy_groups
    if busy:
        told = {found.name for node in nodes if (found := group_of(node, autoscaler.groups)) is not None}
        mine = {group.name for group in autoscaler.groups if belongs(group, pool)} | told
        group = next((group for group in busy if group.name in mine or not mine), None)
        if group is not None:
            return f"group {group.name} ({group.scale_up})"
        if mine:
            return ""
    elif autoscaler.of(pool):
        return ""
    return "" if autoscaler.scale_up in CALM else f"the cluster ({autoscaler.scale_up})"


def _short(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2].lower()


def _tells(node: NodeInfo, name: str) -> bool:
    if not name:
        return False
    machine = re.compile(re.escape(name.removesuffix("-grp")) + MACHINE)
    address = node.provider_id.lower().split("/")
    if name in address or any(machine.fullmatch(part) for part in address):
        return True
    eks = node.labels.get(EKS, "").lower()
    if eks and re.fullmatch(rf"eks-{re.escape(eks)}-[0-9a-f-]{{36}}", name):
        return True
    return name in (_short(value) for value in (*node.labels.values(), *node.annotations.values()))
