"""What does a node look like to the API server, as far as we read it?"""

from msgspec import field

from trimtab.cluster.api.meta import Metadata, ResourceList, Shape
from trimtab.cluster.api.pod import Condition


class Taint(Shape, frozen=True, kw_only=True):
    key: str
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class NodeSpec(Shape, frozen=True, kw_only=True):
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    provider_id: str = field(default="", name="providerID")


class NodeStatus(Shape, frozen=True, kw_only=True):
    capacity: ResourceList = {}
    allocatable: ResourceList = {}
    conditions: tuple[Condition, ...] = ()


class Node(Shape, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
