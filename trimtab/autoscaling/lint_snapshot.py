"""All objects of one run of lint, and how they belong together.

The objects come from manifests, or from a cluster as `kubectl get` or `trimtab capture` prints it. Workloads are the
topmost controllers of pods, and pods without a controller. Objects that a workload owns are not judged again.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from trimtab.autoscaling.container_amounts import (
    CPU,
    RESOURCES,
    QualityOfService,
    amount_in,
    quality_of,
    running_request,
)
from trimtab.autoscaling.objects import (
    KubeletConfiguration,
    LintContainer,
    LintNode,
    LintPod,
    LintPodSpec,
    PolicyView,
    ServiceView,
)
from trimtab.autoscaling.rule import LintSubject
from trimtab.autoscaling.usage_history import ResourceUsage, UsageHistory
from trimtab.cluster.api.admissionregistration import EndpointSlice, MutatingWebhookConfiguration
from trimtab.cluster.api.autoscaling import (
    CapacityBuffer,
    ContainerPolicy,
    HorizontalPodAutoscaler,
    TargetRef,
    VerticalPodAutoscaler,
)
from trimtab.cluster.api.core import LimitRange, Namespace
from trimtab.cluster.api.meta import Labels, Metadata, value_or
from trimtab.cluster.api.workload import PodDisruptionBudget, WorkloadStatus
from trimtab.cluster.autoscaler_processes import autoscaler_arguments
from trimtab.cluster.cluster_autoscaler import parse_flags
from trimtab.cluster.format_count import format_count
from trimtab.cluster.kinds import built_in
from trimtab.cluster.limit_ranges import LimitRangeBounds, container_bounds
from trimtab.cluster.owner import kind_of_reference
from trimtab.cluster.pool import Pool
from trimtab.cluster.selectors import labels_match
from trimtab.cluster.snapshot import ConfigMap
from trimtab.cluster.timestamps import Seconds
from trimtab.cluster.yaml_documents import Document
from trimtab.cluster.yaml_parser import Path

DEFAULT_NAMESPACE = "default"
RESIZING_MODES = ("InPlaceOrRecreate", "InPlace")
EVICTING_MODES = ("Recreate", "Auto", "InPlaceOrRecreate")
RUNNING_KINDS = ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController", "Rollout")
"""Kinds with a replica count whose pods run for an unlimited time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LintWorkload:
    """A topmost controller of pods, or a pod without a controller."""

    subject: LintSubject
    api_version: str
    metadata: Metadata
    pod_labels: Labels
    pod_annotations: Labels
    spec: LintPodSpec
    template_path: Path
    """The path of the pod spec in the workload's manifest."""
    replicas: int | None = None
    """The replica count in the manifest; None if it has none, as always for a DaemonSet or a Job."""
    status: WorkloadStatus = field(default_factory=WorkloadStatus)
    is_windows: bool = False
    """Whether the pods run on Windows. No limit of theirs should be removed: Windows guarantees no container a share of
    the cpu, and has no OOM killer (Kubernetes, Resource management for Windows nodes)."""

    @property
    def namespace(self) -> str:
        """The namespace of the workload; `default` if its manifest names none."""
        return self.subject.namespace

    @property
    def is_scaled_by_count(self) -> bool:
        """Whether workloads of this kind have a replica count."""
        return self.subject.kind in RUNNING_KINDS

    @property
    def quality(self) -> QualityOfService:
        """The quality of service class of the workload's pods."""
        return quality_of(self.spec)

    @property
    def is_critical(self) -> bool:
        """Whether the pods have system-cluster-critical or system-node-critical as their priority class."""
        return value_or(self.spec.priority_class_name, "") in ("system-cluster-critical", "system-node-critical")

    def container_path(self, container: LintContainer, *more: str | int) -> Path:
        """Returns the path, in the workload's manifest, of a field of one of its containers."""
        for name, containers in (("containers", self.spec.containers), ("initContainers", self.spec.init_containers)):
            for index, candidate in enumerate(containers):
                if candidate is container:
                    return (*self.template_path, name, index, *more)
        return self.template_path


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredReservation:
    """The cpu and memory that the system daemons of some nodes were measured to need, in millicores and bytes."""

    nodes: str
    """The pool or machine type whose nodes were measured."""
    runtime: str = ""
    """The container runtime of the measured nodes; empty means any."""
    cpu: int
    memory: int
    max_pods: int | None = None
    """The largest number of pods that the node's network can hold, or None if it was not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthlyPrice:
    """The price of a core and of a GiB of memory in dollars a month, and where the price comes from."""

    core: float
    gib: float
    source: str
    """Where the price comes from, as a phrase after "at": "the price of your nodes"."""

    def describe_cost(self, millicores: float, memory_bytes: float) -> str:
        """Returns the monthly cost of this cpu and memory as text, with the source of the price."""
        dollars = millicores / 1000 * self.core + memory_bytes / (1 << 30) * self.gib
        return f"${dollars:,.2f} a month at {self.source}"


@dataclass(frozen=True, kw_only=True)
class LintSnapshot:
    """All objects of a run, and what else is known about the cluster. A field whose value is not known is None or
    False, never an empty list."""

    workloads: tuple[LintWorkload, ...] = ()
    hpas: tuple[HorizontalPodAutoscaler, ...] = ()
    vpas: tuple[VerticalPodAutoscaler, ...] = ()
    pdbs: tuple[PodDisruptionBudget, ...] = ()
    pods: tuple[LintPod, ...] = ()
    nodes: tuple[LintNode, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    limit_ranges: tuple[LimitRange, ...] = ()
    config_maps: tuple[ConfigMap, ...] = ()
    services: tuple[ServiceView, ...] = ()
    buffers: tuple[CapacityBuffer, ...] = ()
    mutating_webhooks: tuple[MutatingWebhookConfiguration, ...] = ()
    endpoint_slices: tuple[EndpointSlice, ...] = ()
    kubelets: tuple[KubeletConfiguration, ...] = ()
    policies: tuple[PolicyView, ...] = ()
    pools: tuple[Pool, ...] = ()
    """Trimtab's own pools, read from their ConfigMaps."""
    kinds: frozenset[str] = frozenset()
    """The kinds that were read, or that were listed from the cluster and had no objects."""
    is_live: bool = False
    """Whether the objects come from a cluster, and so have a status."""
    minor: int | None = None
    """The minor version of Kubernetes (36 for 1.36), or None if it is unknown."""
    now: Seconds | None = None
    usage: UsageHistory | None = None
    reservations: tuple[MeasuredReservation, ...] = ()
    price: MonthlyPrice | None = None
    """The price, or None if costs are not to be shown or nothing is known about usage."""
    documents: Mapping[LintSubject, Document] = field(default_factory=dict)
    idle_replicas: Mapping[LintSubject, int] = field(default_factory=dict)
    """Workload → how many replicas KEDA gives it while no trigger is active, if its ScaledObject says so."""
    owners: Mapping[LintSubject, LintSubject] = field(default_factory=dict)
    """Object → its controller, as far as owner references name it."""

    @cached_property
    def workloads_by_subject(self) -> dict[LintSubject, LintWorkload]:
        """Name of the workload (kind, namespace, name) → workload."""
        return {workload.subject: workload for workload in self.workloads}

    @cached_property
    def autoscalers(self) -> tuple[tuple[LintWorkload, dict[str, str]], ...]:
        """The workloads that are cluster autoscalers, each with its flags. A captured one has no command line, so it is
        not among them."""
        processes = (
            (workload, autoscaler_arguments(container.image, container.arguments))
            for workload in self.workloads
            for container in workload.spec.containers
        )
        return tuple((workload, parse_flags(arguments)) for workload, arguments in processes if arguments is not None)

    @cached_property
    def _workloads_by_namespace(self) -> dict[str, list[LintWorkload]]:
        workloads_by_namespace: dict[str, list[LintWorkload]] = defaultdict(list)
        for workload in self.workloads:
            workloads_by_namespace[workload.namespace].append(workload)
        return workloads_by_namespace

    def workloads_in(self, namespace: str) -> tuple[LintWorkload, ...]:
        """Returns the workloads of a namespace."""
        return tuple(self._workloads_by_namespace.get(namespace, ()))

    def target_of(self, namespace: str, target: TargetRef) -> LintWorkload | None:
        """Returns the workload that an HPA or a VPA names, or None if it is not among the objects."""
        kind = kind_of_reference(target)
        return self.workloads_by_subject.get(LintSubject(kind, namespace or DEFAULT_NAMESPACE, target.name))

    @cached_property
    def _hpas_by_target(self) -> dict[LintSubject, tuple[HorizontalPodAutoscaler, ...]]:
        hpas_by_target: dict[LintSubject, list[HorizontalPodAutoscaler]] = defaultdict(list)
        for hpa in self.hpas:
            hpas_by_target[target_subject(hpa.metadata, hpa.spec.scale_target_ref)].append(hpa)
        return {subject: tuple(hpas) for subject, hpas in hpas_by_target.items()}

    @cached_property
    def _vpas_by_target(self) -> dict[LintSubject, tuple[VerticalPodAutoscaler, ...]]:
        vpas_by_target: dict[LintSubject, list[VerticalPodAutoscaler]] = defaultdict(list)
        for vpa in self.vpas:
            vpas_by_target[target_subject(vpa.metadata, vpa.spec.target_ref)].append(vpa)
        return {subject: tuple(vpas) for subject, vpas in vpas_by_target.items()}

    def hpas_of(self, target: LintSubject) -> tuple[HorizontalPodAutoscaler, ...]:
        """Returns the HPAs that scale this workload."""
        return self._hpas_by_target.get(target, ())

    def vpas_of(self, target: LintSubject) -> tuple[VerticalPodAutoscaler, ...]:
        """Returns the VPAs that name this workload, in any mode."""
        return self._vpas_by_target.get(target, ())

    @cached_property
    def _workloads_by_label(self) -> dict[tuple[str, str, str], list[LintWorkload]]:
        workloads_by_label: dict[tuple[str, str, str], list[LintWorkload]] = defaultdict(list)
        for workload in self.workloads:
            for key, value in workload.pod_labels.items():
                workloads_by_label[workload.namespace, key, value].append(workload)
        return workloads_by_label

    def workloads_of_pdb(self, pdb: PodDisruptionBudget) -> tuple[LintWorkload, ...]:
        """Returns the workloads whose pods the budget selects."""
        selector = value_or(pdb.spec.selector, None)
        if selector is None:
            return ()
        namespace = pdb.metadata.namespace or DEFAULT_NAMESPACE
        # The workloads of one label of the selector are few, and those of a namespace may be thousands.
        pair = next(iter(value_or(selector.match_labels, {}).items()), None)
        candidates = (
            self.workloads_in(namespace) if pair is None else self._workloads_by_label.get((namespace, *pair), ())
        )
        return tuple(workload for workload in candidates if labels_match(selector, workload.pod_labels))

    @cached_property
    def _pdbs_by_workload(self) -> dict[LintSubject, list[PodDisruptionBudget]]:
        pdbs_by_workload: dict[LintSubject, list[PodDisruptionBudget]] = defaultdict(list)
        for pdb in self.pdbs:
            for workload in self.workloads_of_pdb(pdb):
                pdbs_by_workload[workload.subject].append(pdb)
        return pdbs_by_workload

    def pdbs_of(self, workload: LintWorkload) -> tuple[PodDisruptionBudget, ...]:
        """Returns the budgets that select the workload's pods."""
        return tuple(self._pdbs_by_workload.get(workload.subject, ()))

    @cached_property
    def _pods_by_owner(self) -> dict[LintSubject, list[LintPod]]:
        pods_by_owner: dict[LintSubject, list[LintPod]] = defaultdict(list)
        for pod in self.pods:
            pods_by_owner[self.topmost_owner(subject_of("Pod", pod.metadata))].append(pod)
        return pods_by_owner

    @property
    def other_owners(self) -> Iterator[tuple[LintSubject, LintPod]]:
        """Yields each topmost owner of pods that is no workload of the snapshot, such as a custom resource, and one of
        its pods."""
        for owner, pods in self._pods_by_owner.items():
            if owner not in self.workloads_by_subject:
                yield owner, pods[0]

    def pods_of(self, workload: LintWorkload) -> tuple[LintPod, ...]:
        """Returns the pods that run for this workload."""
        return tuple(self._pods_by_owner.get(workload.subject, ()))

    @cached_property
    def free_on_nodes(self) -> dict[tuple[str, str], int]:
        """(node, resource) → the node's allocatable amount minus the requests of its pods."""
        free = {
            (node.metadata.name, resource): amount_in(node.status.allocatable, resource) or 0
            for node in self.nodes
            for resource in RESOURCES
        }
        for pod in self.pods:
            for resource in RESOURCES if (pod.spec.node_name, CPU) in free else ():
                free[pod.spec.node_name, resource] -= running_request(pod.spec, resource)
        return free

    def topmost_owner(self, subject: LintSubject) -> LintSubject:
        """Returns the topmost controller of an object, or the object itself if it has no controller."""
        visited = {subject}
        while (above := self.owners.get(subject)) is not None and above not in visited:
            visited.add(above)
            subject = above
        return subject

    def usage_of(self, workload: LintWorkload, container: str, resource: str) -> ResourceUsage | None:
        """Returns the usage of a resource by a container of the workload, or None if it is not known."""
        if self.usage is None:
            return None
        subject = workload.subject
        return self.usage.find_usage((subject.key, container), resource)

    def default_request_in(self, namespace: str, resource: str) -> bool:
        """Returns whether a LimitRange of the namespace sets a default request or limit of the resource for
        containers."""
        return any(
            item.type == "Container" and (resource in item.default_request or resource in item.default)
            for limit_range in self.limit_ranges
            if (limit_range.metadata.namespace or DEFAULT_NAMESPACE) == namespace
            for item in limit_range.spec.limits
        )

    @cached_property
    def _bounds_by_namespace(self) -> dict[str, dict[str, LimitRangeBounds]]:
        ranges_by_namespace: dict[str, list[LimitRange]] = defaultdict(list)
        for limit_range in self.limit_ranges:
            ranges_by_namespace[limit_range.metadata.namespace or DEFAULT_NAMESPACE].append(limit_range)
        return {namespace: container_bounds(ranges) for namespace, ranges in ranges_by_namespace.items()}

    def bounds_in(self, namespace: str, resource: str) -> LimitRangeBounds:
        """Returns the bounds that the LimitRanges of a namespace set for containers."""
        return self._bounds_by_namespace.get(namespace, {}).get(resource, LimitRangeBounds())

    def document_value(self, subject: LintSubject) -> dict[str, Any]:
        """Returns the manifest of an object as JSON values, or an empty mapping if there is none."""
        document = self.documents.get(subject)
        value = document.value if document is not None else None
        return value if isinstance(value, dict) else {}

    def needed_replicas(self, workload: LintWorkload) -> int | None:
        """Returns the smallest number of replicas that the workload is meant to have; None for a workload whose kind
        has no replica count.

        It is the minimum of the workload's HPA. Without an HPA, it is the count in the manifest, which is 1 if absent.
        """
        if not workload.is_scaled_by_count:
            return None
        minima = [
            1 if hpa.spec.min_replicas is None else hpa.spec.min_replicas for hpa in self.hpas_of(workload.subject)
        ]
        return max(minima) if minima else 1 if workload.replicas is None else workload.replicas

    def describe_replicas(self, workload: LintWorkload) -> str:
        """Returns the number of `needed_replicas` in words, with the HPA if the number is its minimum, and with the
        number while KEDA's triggers are idle if that is another one."""
        replicas = self.needed_replicas(workload) or 0
        count = format_count(replicas, "replica")
        if not self.hpas_of(workload.subject):
            return count
        idle = self.idle_replicas.get(workload.subject)
        rest = "" if idle is None else f" while a trigger of KEDA is active, and {idle or 'none'} otherwise"
        return f"at least {count} by its HPA's minimum{rest}"


def subject_of(kind: str, metadata: Metadata, *, namespaced: bool = True) -> LintSubject:
    """Returns the kind, namespace and name that identify an object."""
    return LintSubject(built_in(kind), (metadata.namespace or DEFAULT_NAMESPACE) if namespaced else "", metadata.name)


def target_subject(metadata: Metadata, target: TargetRef) -> LintSubject:
    """Returns the kind, namespace and name of an autoscaler's target, which is in the autoscaler's namespace."""
    kind = kind_of_reference(target)
    return LintSubject(kind, metadata.namespace or DEFAULT_NAMESPACE, target.name)


def update_mode_of(vpa: VerticalPodAutoscaler) -> str:
    """Returns the VPA's update mode; Recreate if the manifest has none. `Auto`, the former name of Recreate, is
    returned as Recreate, as the updater reads it."""
    mode = vpa.spec.update_policy.update_mode or "Recreate"
    return "Recreate" if mode == "Auto" else mode


def container_policy_of(vpa: VerticalPodAutoscaler, container: str) -> ContainerPolicy:
    """Returns the VPA's policy for a container: the one with its name, else the one for `*`, else the defaults."""
    policies = {policy.container_name: policy for policy in vpa.spec.resource_policy.container_policies}
    return policies.get(container) or policies.get("*") or ContainerPolicy()


def controls_resource(vpa: VerticalPodAutoscaler, container: str, resource: str) -> bool:
    """Returns whether the VPA sets the container's request for the resource. True if all of these hold:

    - its mode is not Off;
    - its policy for the container is not Off;
    - the policy's controlledResources contain the resource, or are absent.
    """
    policy = container_policy_of(vpa, container)
    return (
        update_mode_of(vpa) != "Off"
        and policy.mode != "Off"
        and resource in value_or(policy.controlled_resources, ("cpu", "memory"))
    )


def policies_path(vpa: VerticalPodAutoscaler, container: str) -> Path:
    """Returns the path of the VPA's policy for a container, or the path of the list of policies if it has none for the
    container."""
    names = [policy.container_name for policy in vpa.spec.resource_policy.container_policies]
    base: Path = ("spec", "resourcePolicy", "containerPolicies")
    name = container if container in names else "*"
    return (*base, names.index(name)) if name in names else base
