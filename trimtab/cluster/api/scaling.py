"""Who else sizes pods? VerticalPodAutoscaler and HorizontalPodAutoscaler."""

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


class HPASpec(Shape, frozen=True, kw_only=True):
    scale_target_ref: TargetRef = TargetRef()


class HorizontalPodAutoscaler(Shape, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    spec: HPASpec = HPASpec()
