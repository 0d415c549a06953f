"""What does a pod look like to the API server, as far as we read or change it?"""

from typing import Any

from msgspec import field

from trimtab.cluster.api.meta import (
    UNSET,
    Labels,
    LabelSelector,
    Metadata,
    Requirement,
    ResourceList,
    Shape,
    UnsetType,
)

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class Resources(Shape, frozen=True, kw_only=True):
    """`claims` is never changed by us; it is named so that it is never lost from sight."""

    requests: ResourceList | UnsetType = UNSET
    limits: ResourceList | UnsetType = UNSET
    claims: tuple[Any, ...] = ()


class ContainerPort(Shape, frozen=True, kw_only=True):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = field(default="", name="hostIP")
    protocol: str = "TCP"


class Container(Shape, frozen=True, kw_only=True):
    name: str
    image: str = ""
    resources: Resources | UnsetType = UNSET
    restart_policy: str = ""
    ports: tuple[ContainerPort, ...] = ()


class NodeSelectorTerm(Shape, frozen=True, kw_only=True):
    match_expressions: tuple[Requirement, ...] | UnsetType = UNSET
    match_fields: tuple[Requirement, ...] | UnsetType = UNSET


class NodeSelector(Shape, frozen=True, kw_only=True):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredTerm(Shape, frozen=True, kw_only=True):
    weight: int
    preference: NodeSelectorTerm


class NodeAffinity(Shape, frozen=True, kw_only=True):
    required: NodeSelector | UnsetType = field(default=UNSET, name=REQUIRED)
    preferred: tuple[PreferredTerm, ...] | UnsetType = field(default=UNSET, name=PREFERRED)


class PodAffinityTerm(Shape, frozen=True, kw_only=True):
    topology_key: str = ""
    label_selector: LabelSelector | UnsetType = UNSET
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | UnsetType = UNSET
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Shape, frozen=True, kw_only=True):
    weight: int
    pod_affinity_term: PodAffinityTerm


class PodAffinity(Shape, frozen=True, kw_only=True):
    required: tuple[PodAffinityTerm, ...] = field(default=(), name=REQUIRED)
    preferred: tuple[WeightedPodAffinityTerm, ...] = field(default=(), name=PREFERRED)


class Affinity(Shape, frozen=True, kw_only=True):
    node_affinity: NodeAffinity | UnsetType = UNSET
    pod_affinity: PodAffinity | UnsetType = UNSET
    pod_anti_affinity: PodAffinity | UnsetType = UNSET


class Toleration(Shape, frozen=True, kw_only=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | UnsetType = UNSET


class TopologySpreadConstraint(Shape, frozen=True, kw_only=True):
    max_skew: int
    topology_key: str
    when_unsatisfiable: str
    label_selector: LabelSelector | UnsetType = UNSET
    min_domains: int | UnsetType = UNSET
    match_label_keys: tuple[str, ...] = ()
    node_affinity_policy: str = ""
    node_taints_policy: str = ""


class EmptyDir(Shape, frozen=True, kw_only=True):
    medium: str = ""
    size_limit: Any = UNSET


class ClaimVolume(Shape, frozen=True, kw_only=True):
    claim_name: str = ""


class Volume(Shape, frozen=True, kw_only=True):
    """The sources that decide where a pod may go or whether it may move; others leave all fields UNSET."""

    name: str
    empty_dir: EmptyDir | UnsetType = UNSET
    host_path: Any = UNSET
    persistent_volume_claim: ClaimVolume | UnsetType = UNSET
    ephemeral: Any = UNSET
    csi: Any = UNSET


class PodOS(Shape, frozen=True, kw_only=True):
    name: str = ""


class PodSpec(Shape, frozen=True, kw_only=True):
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
    host_network: bool = False
    os: PodOS | UnsetType = UNSET
    restart_policy: str = ""
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    scheduling_gates: tuple[Any, ...] = ()
    resource_claims: tuple[Any, ...] = ()


class Condition(Shape, frozen=True, kw_only=True):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class ContainerStatus(Shape, frozen=True, kw_only=True):
    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: Any = UNSET
    last_state: Any = UNSET
    allocated_resources: ResourceList | UnsetType = UNSET
    """What the node has set aside, which lags behind the spec while a resize in place is under way."""
    resources: Resources | UnsetType = UNSET
    """What it really has, which lags behind both."""


class PodStatus(Shape, frozen=True, kw_only=True):
    phase: str = ""
    reason: str = ""
    start_time: str | None = None
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    nominated_node_name: str = ""
    resources: Resources | UnsetType = UNSET
    """What the pod as a whole really has, where it asks as a whole."""
    allocated_resources: ResourceList | UnsetType = UNSET
    """What the node has set aside for the pod as a whole."""


class Pod(Shape, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
