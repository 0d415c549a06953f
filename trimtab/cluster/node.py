"""What is this node to a planner?"""

from collections.abc import Mapping
from dataclasses import dataclass

from trimtab.cluster.api.meta import Labels, ResourceList, get
from trimtab.cluster.api.node import Node as Shape
from trimtab.cluster.api.node import Taint
from trimtab.cluster.api.storage import CSINode
from trimtab.cluster.moment import Seconds, seconds
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.resources import Amounts, amounts

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
DELETING = ("ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption")
"""Taints of autoscalers that have decided to remove the node."""
CAPACITY_TYPE = "karpenter.sh/capacity-type"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Node:
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

    @property
    def going(self) -> Taint | None:
        """The taint by which an autoscaler removes it; None while it stays."""
        return next((taint for taint in self.taints if taint.key in DELETING), None)

    @property
    def zone(self) -> str:
        """Empty where the node does not say."""
        return self.labels.get(ZONE, "")


def read(shape: Shape, storage: CSINode | None = None) -> Node:
    meta = shape.metadata
    return Node(
        name=meta.name, labels=get(meta.labels, {}), annotations=get(meta.annotations, {}), taints=shape.spec.taints,
        cordoned=shape.spec.unschedulable, allocatable=_allocatable(shape),
        ready=any(c.type == "Ready" and c.status == "True" for c in shape.status.conditions),
        created=seconds(meta.creation_timestamp), provider_id=shape.spec.provider_id, attachable=_attachable(storage),
        capacity=_amounts(shape, "capacity", shape.status.capacity),
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
