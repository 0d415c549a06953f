"""Pod and its parts, with the fields that Trimtab reads or changes."""

from collections.abc import Iterator
from typing import Any

from msgspec import field
from msgspec.structs import force_setattr

from trimtab.cluster.api.meta import (
    UNSET,
    ApiObject,
    Labels,
    LabelSelector,
    Metadata,
    ResourceList,
    SelectorRequirement,
    UnsetType,
    value_or,
)
from trimtab.cluster.runtime_signs import SIGNS_FIELD, RuntimeSign, merge_signs, read_text_signs

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class Resources(ApiObject, frozen=True, kw_only=True):
    """The requests and limits of a container or pod. Trimtab never changes `claims`; the field is declared so that a
    patch does not remove it."""

    requests: ResourceList | UnsetType = UNSET
    limits: ResourceList | UnsetType = UNSET
    claims: tuple[Any, ...] = ()


class ContainerPort(ApiObject, frozen=True, kw_only=True):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = field(default="", name="hostIP")
    protocol: str = "TCP"


class ResourceField(ApiObject, frozen=True, kw_only=True):
    """A request or limit that a container reads through the downward API, such as `limits.cpu`. If the field names no
    container, the value is that of the container that reads it."""

    container_name: str = ""
    resource: str = ""


class EnvSource(ApiObject, frozen=True, kw_only=True):
    resource_field_ref: ResourceField | None = None


class Env(ApiObject, frozen=True, kw_only=True):
    """An environment variable. Its name and value are empty in a container: see `Container`."""

    # Any: a number without quotes is for the API server to refuse.
    name: Any = ""
    value: Any = ""
    value_from: EnvSource | None = None


class DownwardItem(ApiObject, frozen=True, kw_only=True):
    resource_field_ref: ResourceField | None = None


class DownwardAPI(ApiObject, frozen=True, kw_only=True):
    items: tuple[DownwardItem, ...] = ()


class ProjectedSource(ApiObject, frozen=True, kw_only=True):
    downward_api: DownwardAPI | None = field(default=None, name="downwardAPI")


class Projected(ApiObject, frozen=True, kw_only=True):
    sources: tuple[ProjectedSource, ...] = ()


class ResizePolicy(ApiObject, frozen=True, kw_only=True):
    """Whether a container must restart when one of its resources is resized in place."""

    resource_name: str = ""
    restart_policy: str = ""
    """What a resize of this resource does to the container: NotRequired or RestartContainer."""


class VolumeMount(ApiObject, frozen=True, kw_only=True):
    """A mount of a volume in a container, with what the container runtime of the node must support."""

    recursive_read_only: str = ""


class RestartRule(ApiObject, frozen=True, kw_only=True):
    """What happens if a container exits; the action RestartAllContainers needs a feature of the node."""

    action: str = ""


class WindowsOptions(ApiObject, frozen=True, kw_only=True):
    """How a process runs on Windows. A kubelet on Linux ignores these fields."""

    host_process: bool | None = None
    gmsa_credential_spec_name: str = ""
    run_as_user_name: str = ""


class ContainerSecurityContext(ApiObject, frozen=True, kw_only=True):
    windows_options: WindowsOptions | None = None


class Container(ApiObject, frozen=True, kw_only=True):
    """A container. Its environment variables and command line may contain secrets: as soon as it is decoded, they are
    replaced by what they show of the container's runtime (`runtime_signs`)."""

    name: str
    image: str = ""
    command: tuple[Any, ...] = ()
    """Always empty: see above."""
    args: tuple[Any, ...] = ()
    """Always empty: see above."""
    env: tuple[Env, ...] = ()
    """The variables that refer to requests or limits, without their names."""
    resources: Resources | UnsetType = UNSET
    restart_policy: str = ""
    ports: tuple[ContainerPort, ...] = ()
    resize_policy: tuple[ResizePolicy, ...] = ()
    restart_policy_rules: tuple[RestartRule, ...] = ()
    # Only `PlannerPod` decodes it: most containers have mounts, and a review needs none of them.
    volume_mounts: tuple[VolumeMount, ...] = field(default=(), name="---")
    runtime_signs: tuple[RuntimeSign, ...] = field(default=(), name=SIGNS_FIELD)
    """What the environment and the command line show. A capture contains it."""
    security_context: ContainerSecurityContext | None = None
    """None, too, if it contains nothing that is decoded: most containers have a security context."""

    def __post_init__(self) -> None:
        if self.security_context is not None and self.security_context.windows_options is None:
            force_setattr(self, "security_context", None)
        if self.command or self.args or self.env:
            self._replace_text()

    def _replace_text(self) -> None:
        self._add_text_signs()
        force_setattr(self, "command", ())
        force_setattr(self, "args", ())
        sources = [env.value_from for env in self.env if env.value_from is not None]
        references = [Env(value_from=source) for source in sources if source.resource_field_ref is not None]
        force_setattr(self, "env", tuple(references))

    def _add_text_signs(self) -> None:
        signs = read_text_signs(self.env, self.command, self.args)
        if signs:
            merged = merge_signs((*self.runtime_signs, *signs)) if self.runtime_signs else signs
            force_setattr(self, "runtime_signs", merged)


class NodeSelectorTerm(ApiObject, frozen=True, kw_only=True):
    match_expressions: tuple[SelectorRequirement, ...] | UnsetType = UNSET
    match_fields: tuple[SelectorRequirement, ...] | UnsetType = UNSET


class NodeSelector(ApiObject, frozen=True, kw_only=True):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredTerm(ApiObject, frozen=True, kw_only=True):
    weight: int
    preference: NodeSelectorTerm


class NodeAffinity(ApiObject, frozen=True, kw_only=True):
    required: NodeSelector | UnsetType = field(default=UNSET, name=REQUIRED)
    preferred: tuple[PreferredTerm, ...] | UnsetType = field(default=UNSET, name=PREFERRED)


class PodAffinityTerm(ApiObject, frozen=True, kw_only=True):
    topology_key: str = ""
    label_selector: LabelSelector | UnsetType = UNSET
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | UnsetType = UNSET
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(ApiObject, frozen=True, kw_only=True):
    weight: int
    pod_affinity_term: PodAffinityTerm


class PodAffinity(ApiObject, frozen=True, kw_only=True):
    required: tuple[PodAffinityTerm, ...] = field(default=(), name=REQUIRED)
    preferred: tuple[WeightedPodAffinityTerm, ...] = field(default=(), name=PREFERRED)


class Affinity(ApiObject, frozen=True, kw_only=True):
    node_affinity: NodeAffinity | UnsetType = UNSET
    pod_affinity: PodAffinity | UnsetType = UNSET
    pod_anti_affinity: PodAffinity | UnsetType = UNSET


class Toleration(ApiObject, frozen=True, kw_only=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | UnsetType = UNSET


class TopologySpreadConstraint(ApiObject, frozen=True, kw_only=True):
    max_skew: int
    topology_key: str
    when_unsatisfiable: str
    label_selector: LabelSelector | UnsetType = UNSET
    min_domains: int | UnsetType = UNSET
    match_label_keys: tuple[str, ...] = ()
    node_affinity_policy: str = ""
    node_taints_policy: str = ""


class EmptyDir(ApiObject, frozen=True, kw_only=True):
    medium: str = ""
    size_limit: Any = UNSET


class ClaimVolume(ApiObject, frozen=True, kw_only=True):
    claim_name: str = ""


class Volume(ApiObject, frozen=True, kw_only=True):
    """A volume of a pod, with the sources that decide where the pod may run or whether it may move. For any other
    source, all these fields are UNSET."""

    name: str
    empty_dir: EmptyDir | UnsetType = UNSET
    host_path: Any = UNSET
    persistent_volume_claim: ClaimVolume | UnsetType = UNSET
    ephemeral: Any = UNSET
    csi: Any = UNSET
    downward_api: DownwardAPI | UnsetType = field(default=UNSET, name="downwardAPI")
    projected: Projected | UnsetType = UNSET


def downward_items(volume: Volume) -> Iterator[DownwardItem]:
    """Yields the items of the volume's files whose content is read from the pod itself (downward API)."""
    projected = value_or(volume.projected, None)
    parts = [source.downward_api for source in projected.sources] if projected is not None else []
    for part in (*parts, value_or(volume.downward_api, None)):
        if part is not None:
            yield from part.items


def required_node_terms(spec: "PodSpec") -> tuple[NodeSelectorTerm, ...]:
    """Returns the required terms of node affinity, at least one of which a node must match; an empty tuple if there are
    none."""
    affinity = value_or(spec.affinity, None)
    node = value_or(affinity.node_affinity, None) if affinity else None
    required = value_or(node.required, None) if node else None
    return required.node_selector_terms if required else ()


class PodOS(ApiObject, frozen=True, kw_only=True):
    name: str = ""


class PodSecurityContext(ApiObject, frozen=True, kw_only=True):
    windows_options: WindowsOptions | None = None
    supplemental_groups_policy: str = ""


class SchedulingGroup(ApiObject, frozen=True, kw_only=True):
    pod_group_name: str = ""


class WorkloadReference(ApiObject, frozen=True, kw_only=True):
    name: str = ""
    pod_group: str = ""
    pod_group_replica_key: str = ""


class PodClaim(ApiObject, frozen=True, kw_only=True):
    """A ResourceClaim that a pod uses: either an existing claim by name, or a template from which the claim is
    created."""

    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class PodClaimStatus(ApiObject, frozen=True, kw_only=True):
    name: str = ""
    resource_claim_name: str | None = None
    """The name of the claim that was created from the template, or None if the pod needs no claim."""


# UNSET for the fields that a patch may add; plain defaults for the fields that are only read.
class PodSpec(ApiObject, frozen=True, kw_only=True):
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: Resources | UnsetType = UNSET
    overhead: ResourceList | UnsetType = UNSET
    runtime_class_name: str | UnsetType = UNSET
    node_selector: Labels | UnsetType = UNSET
    affinity: Affinity | UnsetType = UNSET
    tolerations: tuple[Toleration, ...] | UnsetType = UNSET
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] | UnsetType = UNSET
    priority_class_name: str | UnsetType = UNSET
    priority: int | UnsetType = UNSET
    preemption_policy: str | UnsetType = UNSET
    node_name: str = ""
    volumes: tuple[Volume, ...] = ()
    scheduler_name: str = ""
    service_account_name: str = ""
    host_network: bool = False
    os: PodOS | UnsetType = UNSET
    host_users: bool | None = None
    security_context: PodSecurityContext | None = None
    restart_policy: str = ""
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    scheduling_gates: tuple[Any, ...] = ()
    resource_claims: tuple[PodClaim, ...] = ()
    scheduling_group: SchedulingGroup | None = None
    # Alpha fields: an API server without the feature gate drops them.
    workload_ref: WorkloadReference | None = None
    """The pod group of the pod, as Kubernetes 1.35 names it; later versions have `scheduling_group`."""


class Condition(ApiObject, frozen=True, kw_only=True):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class ContainerStatus(ApiObject, frozen=True, kw_only=True):
    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: Any = UNSET
    last_state: Any = UNSET
    allocated_resources: ResourceList | UnsetType = UNSET
    """The resources that the node has allocated to the container. While a resize in place is under way, they can still
    be the old ones."""
    resources: Resources | UnsetType = UNSET
    """The resources that the running container has. While a resize in place is under way, they change last: after the
    spec, and after `allocated_resources`."""


class PodStatus(ApiObject, frozen=True, kw_only=True):
    phase: str = ""
    reason: str = ""
    start_time: str | None = None
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    nominated_node_name: str = ""
    resource_claim_statuses: tuple[PodClaimStatus, ...] = ()
    resources: Resources | UnsetType = UNSET
    """The resources that the running pod has as a whole; only for a pod with pod-level resources."""
    allocated_resources: ResourceList | UnsetType = UNSET
    """The resources that the node has allocated to the pod as a whole."""


class Pod(ApiObject, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class ScrapedPodStatus(ApiObject, frozen=True, kw_only=True):
    phase: str = ""
    pod_ip: str = field(default="", name="podIP")


class ScrapedPod(ApiObject, frozen=True, kw_only=True):
    """A pod with only those fields that are needed to scrape metrics from it."""

    metadata: Metadata = Metadata()
    status: ScrapedPodStatus = ScrapedPodStatus()


# Pods without their containers' environment variables, command lines, resize policies and security contexts. These
# fields get names that no object has, so msgspec skips their JSON: that halves the time to decode a pod.


class _ContainerWithoutEnv(Container, frozen=True, kw_only=True):
    env: tuple[Env, ...] = field(default=(), name="-")
    resize_policy: tuple[ResizePolicy, ...] = field(default=(), name="--")
    command: tuple[Any, ...] = field(default=(), name="----")
    args: tuple[Any, ...] = field(default=(), name="-----")
    security_context: ContainerSecurityContext | None = field(default=None, name="------")


class _PodSpecWithoutEnv(PodSpec, frozen=True, kw_only=True):
    containers: tuple[_ContainerWithoutEnv, ...] = ()
    init_containers: tuple[_ContainerWithoutEnv, ...] = ()


class PodWithoutEnv(Pod, frozen=True, kw_only=True):
    """A pod whose containers' environment variables, command lines, resize policies and security contexts are not
    decoded: they are empty."""

    spec: _PodSpecWithoutEnv = _PodSpecWithoutEnv()


class _PlannerContainer(_ContainerWithoutEnv, frozen=True, kw_only=True):
    volume_mounts: tuple[VolumeMount, ...] = field(default=(), name="volumeMounts")


class _PlannerPodSpec(PodSpec, frozen=True, kw_only=True):
    containers: tuple[_PlannerContainer, ...] = ()
    init_containers: tuple[_PlannerContainer, ...] = ()


class PlannerPod(Pod, frozen=True, kw_only=True):
    """A pod as a plan reads it: without environment variables and resize policies, but with its mounts."""

    spec: _PlannerPodSpec = _PlannerPodSpec()


class _MountingContainer(Container, frozen=True, kw_only=True):
    volume_mounts: tuple[VolumeMount, ...] = field(default=(), name="volumeMounts")


class _MountingPodSpec(PodSpec, frozen=True, kw_only=True):
    containers: tuple[_MountingContainer, ...] = ()
    init_containers: tuple[_MountingContainer, ...] = ()


class MountingPod(Pod, frozen=True, kw_only=True):
    """A pod of a file or capture, with its mounts."""

    spec: _MountingPodSpec = _MountingPodSpec()
