"""Namespaces and nodes, and the objects that apply to every pod: RuntimeClass, LimitRange, ResourceQuota,
PriorityClass."""

from msgspec import field

from trimtab.cluster.api.meta import ApiObject, Dated, Labels, Metadata, ResourceList
from trimtab.cluster.api.pod import Condition, Toleration


class Namespace(ApiObject, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()


class Overhead(ApiObject, frozen=True, kw_only=True):
    pod_fixed: ResourceList = {}


class Scheduling(ApiObject, frozen=True, kw_only=True):
    node_selector: Labels = {}
    tolerations: tuple[Toleration, ...] = ()


class RuntimeClass(ApiObject, frozen=True, kw_only=True):
    """A RuntimeClass (node.k8s.io/v1). Its `overhead` and `scheduling` may be edited at any time; only `handler` cannot
    change."""

    metadata: Metadata = Metadata()
    handler: str = ""
    overhead: Overhead = Overhead()
    scheduling: Scheduling = Scheduling()


class DatedRuntimeClass(RuntimeClass, frozen=True, kw_only=True):
    """A RuntimeClass read from a cluster, with the time of its last change: pods that were created before that time may
    have an older overhead."""

    metadata: Dated = Dated()


# `default` and `defaultRequest` are stored with their derived values; in a file they are as the author wrote them.
class LimitRangeItem(ApiObject, frozen=True, kw_only=True):
    type: str = "Container"
    max: ResourceList = {}
    min: ResourceList = {}
    default: ResourceList = {}
    default_request: ResourceList = {}
    max_limit_request_ratio: ResourceList = {}


class LimitRangeSpec(ApiObject, frozen=True, kw_only=True):
    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(ApiObject, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    spec: LimitRangeSpec = LimitRangeSpec()


class ScopedRequirement(ApiObject, frozen=True, kw_only=True):
    scope_name: str
    operator: str
    values: tuple[str, ...] = ()


class ScopeSelector(ApiObject, frozen=True, kw_only=True):
    match_expressions: tuple[ScopedRequirement, ...] = ()


class QuotaSpec(ApiObject, frozen=True, kw_only=True):
    hard: ResourceList = {}
    scopes: tuple[str, ...] = ()
    scope_selector: ScopeSelector = ScopeSelector()


class QuotaStatus(ApiObject, frozen=True, kw_only=True):
    hard: ResourceList = {}
    used: ResourceList = {}


class ResourceQuota(ApiObject, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    spec: QuotaSpec = QuotaSpec()
    status: QuotaStatus = QuotaStatus()


class PriorityClass(ApiObject, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    value: int = 0
    global_default: bool = False
    preemption_policy: str = "PreemptLowerPriority"


class Taint(ApiObject, frozen=True, kw_only=True):
    key: str
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class NodeSpec(ApiObject, frozen=True, kw_only=True):
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    # msgspec's camelCase would write `providerId`.
    provider_id: str = field(default="", name="providerID")


class NodeSystemInfo(ApiObject, frozen=True, kw_only=True):
    container_runtime_version: str = ""
    kubelet_version: str = ""
    operating_system: str = ""
    architecture: str = ""


class RuntimeHandlerFeatures(ApiObject, frozen=True, kw_only=True):
    user_namespaces: bool = False
    recursive_read_only_mounts: bool = False


class RuntimeHandler(ApiObject, frozen=True, kw_only=True):
    """A handler that the container runtime of a node reports; the default handler has an empty name."""

    name: str = ""
    features: RuntimeHandlerFeatures | None = None


class NodeFeatures(ApiObject, frozen=True, kw_only=True):
    supplemental_groups_policy: bool = False


class NodeStatus(ApiObject, frozen=True, kw_only=True):
    capacity: ResourceList = {}
    allocatable: ResourceList = {}
    conditions: tuple[Condition, ...] = ()
    node_info: NodeSystemInfo = NodeSystemInfo()
    runtime_handlers: tuple[RuntimeHandler, ...] | None = None
    features: NodeFeatures | None = None
    declared_features: tuple[str, ...] | None = None
    """Features that the kubelet declares, such as RestartAllContainersOnContainerExits; kube-scheduler compares them
    with what a pod needs (NodeDeclaredFeatures, 1.35)."""


class Node(ApiObject, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class LeaseSpec(ApiObject, frozen=True, kw_only=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: str | None = None


class Lease(ApiObject, frozen=True, kw_only=True):
    """A Lease (coordination.k8s.io/v1). Its holder leads until the lease's duration has passed since the last
    renewal."""

    metadata: Metadata = Metadata()
    spec: LeaseSpec = LeaseSpec()
