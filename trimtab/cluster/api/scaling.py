"""Who else sizes pods? VerticalPodAutoscaler and HorizontalPodAutoscaler."""

from msgspec import field

from trimtab.cluster.api.meta import UNSET, Metadata, ResourceList, Shape, UnsetType


class TargetRef(Shape, frozen=True, kw_only=True):
    kind: str = ""
    name: str = ""
    api_version: str = ""


class ContainerPolicy(Shape, frozen=True, kw_only=True):
    container_name: str = "*"
    mode: str = "Auto"
    min_allowed: ResourceList = {}
    max_allowed: ResourceList = {}
    controlled_resources: tuple[str, ...] | UnsetType = UNSET
    controlled_values: str = "RequestsAndLimits"


class ResourcePolicy(Shape, frozen=True, kw_only=True):
    container_policies: tuple[ContainerPolicy, ...] = ()


class UpdatePolicy(Shape, frozen=True, kw_only=True):
    update_mode: str = ""


class VPASpec(Shape, frozen=True, kw_only=True):
    target_ref: TargetRef = TargetRef()
    update_policy: UpdatePolicy = UpdatePolicy()
    resource_policy: ResourcePolicy = ResourcePolicy()


class ContainerRecommendation(Shape, frozen=True, kw_only=True):
    container_name: str = ""
    target: ResourceList = {}
    lower_bound: ResourceList = {}
    upper_bound: ResourceList = {}


class VPARecommendation(Shape, frozen=True, kw_only=True):
    container_recommendations: tuple[ContainerRecommendation, ...] = ()


class VPAStatus(Shape, frozen=True, kw_only=True):
    recommendation: VPARecommendation = VPARecommendation()


class VerticalPodAutoscaler(Shape, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    spec: VPASpec = VPASpec()
    status: VPAStatus = VPAStatus()


class MetricTarget(Shape, frozen=True, kw_only=True):
    type: str = ""
    average_utilization: int | None = None
    """Percent of the request."""


class ResourceMetric(Shape, frozen=True, kw_only=True):
    name: str = ""
    target: MetricTarget = MetricTarget()


class Metric(Shape, frozen=True, kw_only=True):
    """The sources that are measured against requests; others leave both empty."""

    type: str = ""
    resource: ResourceMetric = ResourceMetric()
    container_resource: ResourceMetric = ResourceMetric()


class HPASpec(Shape, frozen=True, kw_only=True):
    scale_target_ref: TargetRef = TargetRef()
    metrics: tuple[Metric, ...] = ()
    target_cpu_utilization_percentage: int | None = field(default=None, name="targetCPUUtilizationPercentage")
    """autoscaling/v1 only."""


class HorizontalPodAutoscaler(Shape, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    spec: HPASpec = HPASpec()
