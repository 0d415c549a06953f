"""VerticalPodAutoscaler, HorizontalPodAutoscaler, CapacityBuffer, and the PodTemplate that a buffer names.

A CapacityBuffer (autoscaling.x-k8s.io/v1beta1) reserves capacity for pods that do not exist yet. The cluster autoscaler
or Karpenter provides the nodes.
"""

import msgspec
from msgspec import field

from trimtab.cluster.api.meta import UNSET, ApiObject, Metadata, ResourceList, Revised, UnsetType
from trimtab.cluster.api.pod import Condition
from trimtab.cluster.api.workload import PodTemplateSpec as Template
from trimtab.cluster.kinds import CORE_VERSION
from trimtab.cluster.quantity import Written


class TargetRef(ApiObject, frozen=True, kw_only=True):
    """A reference to what an autoscaler scales. Its kind has a group (`owner.target_key`); the name alone identifies
    nothing."""

    kind_name: str = field(default="", name="kind")
    name: str = ""
    api_version: str = ""


class ScaleTargetRef(TargetRef, frozen=True, kw_only=True):
    """A reference to what an HPA scales. Unlike the VPA, which knows the kinds of Kubernetes by their names alone, the
    HPA's controller looks for a kind without `apiVersion` in the core group."""

    def __post_init__(self) -> None:
        if not self.api_version:
            msgspec.structs.force_setattr(self, "api_version", CORE_VERSION)


# The defaults are those of the VPA's types (autoscaling.k8s.io/v1).
class ContainerPolicy(ApiObject, frozen=True, kw_only=True):
    container_name: str = "*"
    mode: str = "Auto"
    min_allowed: ResourceList = {}
    max_allowed: ResourceList = {}
    controlled_resources: tuple[str, ...] | UnsetType = UNSET
    controlled_values: str = "RequestsAndLimits"
    oom_bump_up_ratio: Written | None = None
    """How many times the memory at an OOM kill a container needs. None: the recommender's default."""
    oom_min_bump_up: Written | None = None
    """How many bytes more than at an OOM kill a container needs at least. None: the recommender's default."""


class ResourcePolicy(ApiObject, frozen=True, kw_only=True):
    container_policies: tuple[ContainerPolicy, ...] = ()


class EvictionRequirement(ApiObject, frozen=True, kw_only=True):
    resources: tuple[str, ...] = ()
    change_requirement: str = ""
    """The change of requests for which the updater may evict: TargetHigherThanRequests or TargetLowerThanRequests."""


class UpdatePolicy(ApiObject, frozen=True, kw_only=True):
    update_mode: str = ""
    min_replicas: int | None = None
    """The updater evicts no pod of a group that has fewer live pods than this number. None: the updater's flag
    `--min-replicas` decides."""
    eviction_requirements: tuple[EvictionRequirement, ...] = ()


class RecommenderSelector(ApiObject, frozen=True, kw_only=True):
    """The recommender that computes a VPA's recommendation, by the name in its flag `--recommender-name`."""

    name: str = ""


class VPASpec(ApiObject, frozen=True, kw_only=True):
    target_ref: TargetRef = TargetRef()
    update_policy: UpdatePolicy = UpdatePolicy()
    resource_policy: ResourcePolicy = ResourcePolicy()
    recommenders: tuple[RecommenderSelector, ...] = ()
    """Empty: the recommender with the name `default`. The API allows at most one."""


class ContainerRecommendation(ApiObject, frozen=True, kw_only=True):
    container_name: str = ""
    target: ResourceList = {}
    lower_bound: ResourceList = {}
    upper_bound: ResourceList = {}
    uncapped_target: ResourceList = {}
    """The target before the VPA's minAllowed and maxAllowed."""


class VPARecommendation(ApiObject, frozen=True, kw_only=True):
    container_recommendations: tuple[ContainerRecommendation, ...] = ()


class VPAStatus(ApiObject, frozen=True, kw_only=True):
    recommendation: VPARecommendation = VPARecommendation()
    conditions: tuple[Condition, ...] = ()
    observed_generation: int | None = None
    """The generation of the VPA from which its recommender computed the status, or None if it wrote none (VPA before
    1.8)."""


class VerticalPodAutoscaler(ApiObject, frozen=True, kw_only=True):
    metadata: Revised = Revised()
    spec: VPASpec = VPASpec()
    status: VPAStatus = VPAStatus()


class MetricTarget(ApiObject, frozen=True, kw_only=True):
    type: str = ""
    average_utilization: int | None = None
    """The target as a percentage of the request, or None if the metric has another target."""
    average_value: Written | None = None
    """The target as an amount per pod, or None if the metric has another target."""


class ResourceMetric(ApiObject, frozen=True, kw_only=True):
    name: str = ""
    container: str = ""
    """The name of the container; only a ContainerResource metric has one."""
    target: MetricTarget = MetricTarget()
    target_average_utilization: int | None = None
    """The target as a percentage of the request; only autoscaling/v2beta1 has this field."""


class MetricSpec(ApiObject, frozen=True, kw_only=True):
    """A metric of a HorizontalPodAutoscaler. Only the two sources that are measured against requests are read: Resource
    and ContainerResource. For any other source, both fields are absent."""

    type: str = ""
    resource: ResourceMetric = ResourceMetric()
    container_resource: ResourceMetric = ResourceMetric()


class ScalingPolicy(ApiObject, frozen=True, kw_only=True):
    type: str = ""
    """The unit of the policy's value: Pods or Percent."""
    value: int = 0
    period_seconds: int = 0


class ScalingRules(ApiObject, frozen=True, kw_only=True):
    """The rules for one direction of a HorizontalPodAutoscaler's `behavior` (up or down). The controller's defaults
    hold for absent fields."""

    stabilization_window_seconds: int | None = None
    policies: tuple[ScalingPolicy, ...] = ()
    select_policy: str = ""
    tolerance: Written | None = None
    """The deviation from the target that causes no scaling, as a share such as 0.05 (beta since Kubernetes 1.35). None:
    the controller's default, 0.1."""


class ScalingBehavior(ApiObject, frozen=True, kw_only=True):
    scale_up: ScalingRules | None = None
    scale_down: ScalingRules | None = None


class HPAStatus(ApiObject, frozen=True, kw_only=True):
    current_replicas: int = 0
    desired_replicas: int = 0
    last_scale_time: str | None = None


class HPASpec(ApiObject, frozen=True, kw_only=True):
    scale_target_ref: ScaleTargetRef = ScaleTargetRef()
    metrics: tuple[MetricSpec, ...] = ()
    min_replicas: int | None = None
    """The smallest number of replicas. None: the API server's default, 1."""
    behavior: ScalingBehavior = ScalingBehavior()
    max_replicas: int = 0
    """The largest number of replicas; 0 if the field is absent."""
    # msgspec's camelCase would write `Cpu`.
    target_cpu_utilization_percentage: int | None = field(default=None, name="targetCPUUtilizationPercentage")
    """The target as a percentage of the cpu request; only autoscaling/v1 has this field."""


class _OwnedSpec(ApiObject, frozen=True, kw_only=True):
    min_replicas: dict[str, str] | UnsetType = field(default=UNSET, name="f:minReplicas")


class _OwnedFields(ApiObject, frozen=True, kw_only=True):
    spec: _OwnedSpec = field(default=_OwnedSpec(), name="f:spec")


class HPAManager(ApiObject, frozen=True, kw_only=True):
    """An entry of the managed fields of a HorizontalPodAutoscaler, of which only `spec.minReplicas` is read."""

    manager: str = ""
    operation: str = ""
    """Update, or Apply for a server-side apply."""
    fields: _OwnedFields = field(default=_OwnedFields(), name="fieldsV1")

    @property
    def sets_min_replicas(self) -> bool:
        """Whether the manager owns `spec.minReplicas`."""
        return self.fields.spec.min_replicas is not UNSET


class HPAMetadata(Metadata, frozen=True, kw_only=True):
    """The metadata of a HorizontalPodAutoscaler, with the managers that write its bounds."""

    managed_fields: tuple[HPAManager, ...] = ()
    """Empty if they were not read: `kubectl get` prints them only with `--show-managed-fields`."""


class HorizontalPodAutoscaler(ApiObject, frozen=True, kw_only=True):
    metadata: HPAMetadata = HPAMetadata()
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
    """An object of the kind PodTemplate, not the pod template inside an owner."""

    metadata: Metadata = Metadata()
    template: Template = Template()
