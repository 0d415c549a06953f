"""What do cluster and namespace demand of every pod?"""

from trimtab.cluster.api.meta import Dated, Labels, Metadata, ResourceList, Shape
from trimtab.cluster.api.pod import Toleration


class Namespace(Shape, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()


class Overhead(Shape, frozen=True, kw_only=True):
    pod_fixed: ResourceList = {}


class Scheduling(Shape, frozen=True, kw_only=True):
    node_selector: Labels = {}
    tolerations: tuple[Toleration, ...] = ()


class RuntimeClass(Shape, frozen=True, kw_only=True):
    """node.k8s.io/v1. `overhead` and `scheduling` may be edited at any time; only `handler` is fixed."""

    metadata: Metadata = Metadata()
    handler: str = ""
    overhead: Overhead = Overhead()
    scheduling: Scheduling = Scheduling()


class DatedRuntimeClass(RuntimeClass, frozen=True, kw_only=True):
    """As the cluster shows it: when it was last written counts for pods that run."""

    metadata: Dated = Dated()


class LimitRangeItem(Shape, frozen=True, kw_only=True):
    type: str = "Container"
    max: ResourceList = {}
    min: ResourceList = {}
    default: ResourceList = {}
    default_request: ResourceList = {}
    max_limit_request_ratio: ResourceList = {}


class LimitRangeSpec(Shape, frozen=True, kw_only=True):
    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(Shape, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    spec: LimitRangeSpec = LimitRangeSpec()


class ScopedRequirement(Shape, frozen=True, kw_only=True):
    scope_name: str
    operator: str
    values: tuple[str, ...] = ()


class ScopeSelector(Shape, frozen=True, kw_only=True):
    match_expressions: tuple[ScopedRequirement, ...] = ()


class QuotaSpec(Shape, frozen=True, kw_only=True):
    hard: ResourceList = {}
    scopes: tuple[str, ...] = ()
    scope_selector: ScopeSelector = ScopeSelector()


class QuotaStatus(Shape, frozen=True, kw_only=True):
    hard: ResourceList = {}
    used: ResourceList = {}


class ResourceQuota(Shape, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    spec: QuotaSpec = QuotaSpec()
    status: QuotaStatus = QuotaStatus()


class PriorityClass(Shape, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    value: int = 0
    global_default: bool = False
    preemption_policy: str = "PreemptLowerPriority"
