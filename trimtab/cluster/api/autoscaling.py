"""Who else sizes pods? VerticalPodAutoscaler and HorizontalPodAutoscaler.

What does a CapacityBuffer look like to the API server, and the PodTemplate that it names?

Group autoscaling.x-k8s.io, v1beta1: room for pods that are not there, which the cluster autoscaler and Karpenter keep.
"""

from msgspec import field

from trimtab.cluster.api.meta import UNSET, ApiObject, Metadata, ResourceList, UnsetType
from trimtab.cluster.api.pod import Condition
from trimtab.cluster.api.workload import PodTemplateSpec as Template


class TargetRef(ApiObject, frozen=True, kw_only=True):
    kind: str = ""
    name: str = ""
    api_version: str = ""


class ContainerPolicy(ApiObject, frozen=True, kw_only=True):
    container_name: str = "*"
    mode: str = "Auto"
    min_allowed: ResourceList = {}
    max_allowed: ResourceList = {}
    controlled_resources: tuple[str, ...] | UnsetType = UNSET
    controlled_values: str = "RequestsAndLimits"


class ResourcePolicy(ApiObject, frozen=True, kw_only=True):
    container_policies: tuple[ContainerPolicy, ...] = ()


class EvictionRequirement(ApiObject, frozen=True, kw_only=True):
    resources: tuple[str, ...] = ()
    change_requirement: str = ""
    """TargetHigherThanRequests or TargetLowerThanRequests."""


class UpdatePolicy(ApiObject, frozen=True, kw_only=True):
    update_mode: str = ""
    min_replicas: int | None = None
    """The updater leaves groups of fewer live pods alone; None: as its flag --min-replicas says."""
    eviction_requirements: tuple[EvictionRequirement, ...] = ()


class VPASpec(ApiObject, frozen=True, kw_only=True):
    target_ref: TargetRef = TargetRef()
    update_policy: UpdatePolicy = UpdatePolicy()
    resource_policy: ResourcePolicy = ResourcePolicy()


class ContainerRecommendation(ApiObject, frozen=True, kw_only=True):
    container_name: str = ""
    target: ResourceList = {}
    lower_bound: ResourceList = {}
    upper_bound: ResourceList = {}


class VPARecommendation(ApiObject, frozen=True, kw_only=True):
    container_recommendations: tuple[ContainerRecommendation, ...] = ()


class VPAStatus(ApiObject, frozen=True, kw_only=True):
    recommendation: VPARecommendation = VPARecommendation()


class VerticalPodAutoscaler(ApiObject, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    spec: VPASpec = VPASpec()
    status: VPAStatus = VPAStatus()


class MetricTarget(ApiObject, frozen=True, kw_only=True):
    type: str = ""
    average_utilization: int | None = None
    """Percent of the request."""


class ResourceMetric(ApiObject, frozen=True, kw_only=True):
    name: str = ""
    target: MetricTarget = MetricTarget()


class MetricSpec(ApiObject, frozen=True, kw_only=True):
    """The sources that are measured against requests; others leave both empty."""

    type: str = ""
    resource: ResourceMetric = ResourceMetric()
    container_resource: ResourceMetric = ResourceMetric()


class HPASpec(ApiObject, frozen=True, kw_only=True):
    scale_target_ref: TargetRef = TargetRef()
    metrics: tuple[MetricSpec, ...] = ()
    max_replicas: int = 0
    """0 where it does not say."""
    target_cpu_utilization_percentage: int | None = field(default=None, name="targetCPUUtilizationPercentage")
    """autoscaling/v1 only."""


class HorizontalPodAutoscaler(ApiObject, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    spec: HPASpec = HPASpec()


class Reference(ApiObject, frozen=True, kw_only=True):
    name: str = ""


class BufferSpec(ApiObject, frozen=True, kw_only=True):
    pod_template_ref: Reference | None = None
    replicas: int | None = None


class BufferStatus(ApiObject, frozen=True, kw_only=True):
    pod_template_ref: Reference | None = None
    replicas: int | None = None
    consumed_replicas: int = 0
    conditions: tuple[Condition, ...] = ()


class CapacityBuffer(ApiObject, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    spec: BufferSpec = BufferSpec()
    status: BufferStatus = BufferStatus()


class PodTemplate(ApiObject, frozen=True, kw_only=True):
    """An object of its own, not an owner's template."""

    metadata: Metadata = Metadata()
    template: Template = Template()
