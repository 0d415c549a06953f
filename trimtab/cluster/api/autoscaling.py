"""VerticalPodAutoscaler, HorizontalPodAutoscaler, CapacityBuffer, and the PodTemplate that a buffer names.

CapacityBuffer is in group autoscaling.x-k8s.io, v1beta1: it reserves capacity for pods that do not exist yet; the
cluster autoscaler and Karpenter provide the capacity.
"""

from msgspec import field

from trimtab.cluster.api.meta import UNSET, ApiObject, Metadata, ResourceList, UnsetType
from trimtab.cluster.api.pod import Condition
from trimtab.cluster.api.workload import PodTemplateSpec as Template
from trimtab.cluster.quantity import Written


class TargetRef(ApiObject, frozen=True, kw_only=True):
    kind: str = ""
    name: str = ""
    api_version: str = ""


# The defaults are those of the VPA's types (autoscaling.k8s.io/v1).
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
    """The updater evicts no pod of a group with fewer live pods. None: its flag --min-replicas decides."""
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
    average_value: Written | None = None
    """An amount per pod."""


class ResourceMetric(ApiObject, frozen=True, kw_only=True):
    name: str = ""
    container: str = ""
    """Only in a ContainerResource metric."""
    target: MetricTarget = MetricTarget()
    target_average_utilization: int | None = None
    """autoscaling/v2beta1 only: percent of the request."""


class MetricSpec(ApiObject, frozen=True, kw_only=True):
    """The metric sources that are relative to requests; other sources leave both fields empty."""

    type: str = ""
    resource: ResourceMetric = ResourceMetric()
    container_resource: ResourceMetric = ResourceMetric()


class ScalingPolicy(ApiObject, frozen=True, kw_only=True):
    type: str = ""
    """Pods or Percent."""
    value: int = 0
    period_seconds: int = 0


class ScalingRules(ApiObject, frozen=True, kw_only=True):
    """One direction of an HPA's behavior; absent fields have the defaults of the controller."""

    stabilization_window_seconds: int | None = None
    policies: tuple[ScalingPolicy, ...] = ()
    select_policy: str = ""
    tolerance: Written | None = None
    """A share, such as 0.05 (beta since Kubernetes 1.35); None: the controller's 0.1."""


class ScalingBehavior(ApiObject, frozen=True, kw_only=True):
    scale_up: ScalingRules | None = None
    scale_down: ScalingRules | None = None


class HPAStatus(ApiObject, frozen=True, kw_only=True):
    current_replicas: int = 0
    desired_replicas: int = 0
    last_scale_time: str | None = None


class HPASpec(ApiObject, frozen=True, kw_only=True):
    scale_target_ref: TargetRef = TargetRef()
    metrics: tuple[MetricSpec, ...] = ()
    min_replicas: int | None = None
    """None: the API server's default, 1."""
    behavior: ScalingBehavior = ScalingBehavior()
    max_replicas: int = 0
    """0 if it is absent."""
    # msgspec's camelCase would write `Cpu`.
    target_cpu_utilization_percentage: int | None = field(default=None, name="targetCPUUtilizationPercentage")
    """autoscaling/v1 only."""


class HorizontalPodAutoscaler(ApiObject, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    spec: HPASpec = HPASpec()
    status: HPAStatus = HPAStatus()


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
    """A PodTemplate object, not the template inside an owner."""

    metadata: Metadata = Metadata()
    template: Template = Template()
