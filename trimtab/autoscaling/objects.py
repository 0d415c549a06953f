"""API objects as the rules of lint read them, as far as the rules need more fields than other packages decode.

Absent fields have the API server's defaults, or UNSET where absence has a meaning of its own. Unknown fields are
dropped. Of environment variables only the names are retained, never the values.
"""

from typing import Any

from msgspec import field
from msgspec.structs import force_setattr

from trimtab.cluster.api.core import NodeStatus, NodeSystemInfo
from trimtab.cluster.api.meta import UNSET, ApiObject, Labels, Metadata, ResourceList, Revised, UnsetType
from trimtab.cluster.api.pod import Container, Env, PodSpec
from trimtab.cluster.api.workload import WorkloadSpec, WorkloadStatus


class ProbeView(ApiObject, frozen=True, kw_only=True):
    """When a probe begins, and how often it must fail or succeed before it counts."""

    initial_delay_seconds: int = 0
    period_seconds: int = 10
    success_threshold: int = 1


class LintContainer(Container, frozen=True, kw_only=True):
    """A container with its command line and its probes. Of its environment variables only the names are retained."""

    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    readiness_probe: ProbeView | None = None
    startup_probe: ProbeView | None = None

    def _replace_text(self) -> None:
        self._add_text_signs()
        force_setattr(self, "env", tuple(Env(name=env.name, value_from=env.value_from) for env in self.env))

    @property
    def arguments(self) -> tuple[str, ...]:
        """The container's command line. Flags may be in `command` or in `args`."""
        return (*self.command, *self.args)


class LintPodSpec(PodSpec, frozen=True, kw_only=True):
    """The spec of a pod template, whose containers are decoded as `LintContainer`."""

    containers: tuple[LintContainer, ...] = ()
    init_containers: tuple[LintContainer, ...] = ()


class LintTemplate(ApiObject, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    spec: LintPodSpec = LintPodSpec()


class JobTemplateSpec(ApiObject, frozen=True, kw_only=True):
    template: LintTemplate = LintTemplate()


class JobTemplate(ApiObject, frozen=True, kw_only=True):
    spec: JobTemplateSpec = JobTemplateSpec()


class LintOwnerSpec(WorkloadSpec, frozen=True, kw_only=True):
    # A ReplicationController's selector is a plain map; no rule reads selectors of owners.
    selector: Any = UNSET
    template: LintTemplate = LintTemplate()
    job_template: JobTemplate = JobTemplate()
    """The template of Jobs; only a CronJob has it."""


class LintOwner(ApiObject, frozen=True, kw_only=True):
    """A controller of pods, of any kind whose spec has a pod template."""

    api_version: str = ""
    kind: str = ""
    metadata: Revised = Revised()
    spec: LintOwnerSpec = LintOwnerSpec()
    status: WorkloadStatus = WorkloadStatus()


class LintPod(ApiObject, frozen=True, kw_only=True):
    """A running pod."""

    metadata: Metadata = Metadata()
    spec: LintPodSpec = LintPodSpec()


class ServiceSpec(ApiObject, frozen=True, kw_only=True):
    selector: Labels = {}
    traffic_distribution: str = ""
    internal_traffic_policy: str = ""
    cluster_ip: str = field(default="", name="clusterIP")
    type: str = "ClusterIP"


class ServiceView(ApiObject, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    spec: ServiceSpec = ServiceSpec()


class NodeInfoView(NodeSystemInfo, frozen=True, kw_only=True):
    kubelet_version: str = ""


class LintNodeStatus(NodeStatus, frozen=True, kw_only=True):
    node_info: NodeInfoView = NodeInfoView()


class LintNodeSpec(ApiObject, frozen=True, kw_only=True):
    pod_cidr: str = field(default="", name="podCIDR")
    provider_id: str = field(default="", name="providerID")
    unschedulable: bool = False


class LintNode(ApiObject, frozen=True, kw_only=True):
    """A node, with the version of its kubelet and the range of its pods' addresses."""

    metadata: Metadata = Metadata()
    spec: LintNodeSpec = LintNodeSpec()
    status: LintNodeStatus = LintNodeStatus()


class KubeletConfiguration(ApiObject, frozen=True, kw_only=True):
    """A KubeletConfiguration (kubelet.config.k8s.io/v1beta1), which is the configuration file of a kubelet."""

    metadata: Metadata = Metadata()
    enforce_node_allocatable: tuple[str, ...] | UnsetType = UNSET
    kube_reserved: ResourceList = {}
    system_reserved: ResourceList = {}
    kube_reserved_cgroup: str = ""
    system_reserved_cgroup: str = ""
    max_pods: int = 110
    pod_cidr: str = field(default="", name="podCIDR")
    # Kept as written: 85 is the kubelet's default.
    image_gc_high_threshold_percent: int = field(default=85, name="imageGCHighThresholdPercent")


class PolicyNamespaces(ApiObject, frozen=True, kw_only=True):
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


class PolicyMatch(ApiObject, frozen=True, kw_only=True):
    namespaces: PolicyNamespaces = PolicyNamespaces()
    owners: tuple[str, ...] = ()
    pod_labels: Labels = {}


class PolicyActions(ApiObject, frozen=True, kw_only=True):
    """The actions of a PodPolicy that change what a VPA or a LimitRange changes too: requests and limits."""

    requests: Any = None
    limits: dict[str, Any] = {}


class PolicySpecView(ApiObject, frozen=True, kw_only=True):
    mode: str = "apply"
    match: PolicyMatch = PolicyMatch()
    actions: PolicyActions = PolicyActions()


class PolicyView(ApiObject, frozen=True, kw_only=True):
    """A PodPolicy, reduced to the pods that it matches and to the requests and limits that it changes."""

    metadata: Metadata = Metadata()
    spec: PolicySpecView = PolicySpecView()
