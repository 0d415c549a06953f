"""Reads the usage and the requests of workloads for `trimtab vpa`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from trimtab.autoscaling.simulation.propose_vpas import API_VERSIONS, WorkloadHistory, summarize_container
from trimtab.autoscaling.simulation.simulate_vpa import PodSeries
from trimtab.cluster.api.autoscaling import HorizontalPodAutoscaler
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.format_count import format_count, join_first
from trimtab.cluster.kinds import CRON_JOB, JOB, POD, GroupKind, group_kind
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.resources import Role
from trimtab.cluster.snapshot import build_snapshot
from trimtab.cluster.utilization_metrics import utilization_metrics
from trimtab.cluster.yaml_documents import Document
from trimtab.histogram.batch_history import ContainerKey
from trimtab.inputs import live_cluster
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.current_requests import RESOURCES, CurrentRequests, read_current_requests
from trimtab.inputs.plan_inputs import parse_documents
from trimtab.inputs.vpa_quotas import VpaQuotas
from trimtab.inputs.vpa_requests import find_floors, has_pod_level, promise_room, refuse_by_api_server, refuse_by_quotas
from trimtab.policy.cluster_facts import from_snapshot, hpa_target
from trimtab.usage.series import Series, container_key

MAX_NAMES = 5
_ENDING_KINDS = frozenset({CRON_JOB, JOB, POD})
"""Kinds whose pods end, or are not recreated."""


@dataclass(frozen=True, slots=True)
class ClusterWorkloads:
    """What a snapshot contains about workloads; all fields are empty without a snapshot."""

    current: CurrentRequests = field(default_factory=CurrentRequests)
    has_snapshot: bool = False
    vpas: Mapping[OwnerKey, tuple[Mapping[str, object], ...]] = field(default_factory=dict)
    hpa_resources: Mapping[OwnerKey, frozenset[str]] = field(default_factory=dict)
    documents: tuple[Document, ...] = ()
    pods: Mapping[OwnerKey, tuple[Pod, ...]] = field(default_factory=dict)
    """Workload → its pods that are not finished."""

    def initial_requests(self, key: ContainerKey) -> dict[str, int]:
        """Returns resource → the request of a container in millicores or bytes. Resources without a request are left
        out."""
        container = self.current.containers.get(key)
        amounts = {} if container is None else {name: container.scheduler_amount("request", name) for name in RESOURCES}
        return {name: amount for name, amount in amounts.items() if amount}

    def count_containers(self, key: ContainerKey) -> int:
        """Returns the number of containers of the workload's pod that a VPA sizes; 1 if it is not known."""
        return max(
            1, sum(other.owner == key.owner and self.is_sized_by_vpa(other) for other in self.current.containers)
        )

    def is_sized_by_vpa(self, key: ContainerKey) -> bool:
        """Returns whether a VPA would set the container's requests: a VPA leaves out init containers and sidecars."""
        container = self.current.containers.get(key)
        return container is None or container.container_ref.role is Role.MAIN


def read_cluster_workloads(cluster: live_cluster.ClusterOptions) -> ClusterWorkloads:
    """Returns what the snapshot of --cluster contains about workloads; nothing without --cluster. Raises UsageError
    with all mistakes."""
    if not cluster.paths:
        return ClusterWorkloads()
    documents, mistakes = parse_documents(live_cluster.read_live_objects(cluster))
    built = build_snapshot(documents)
    if mistakes or built.mistakes:
        raise UsageError([*mistakes, *built.mistakes])
    current = read_current_requests(built.snapshot, documents, from_snapshot(built.snapshot))
    # Workload → the resources on whose utilization an HPA scales the workload.
    autoscalers = built.snapshot.objects_of(HorizontalPodAutoscaler)
    resources_by_target: dict[OwnerKey, frozenset[str]] = {}
    for hpa in autoscalers:
        resources = {metric.resource for metric in utilization_metrics(hpa)}
        key = hpa_target(hpa)
        resources_by_target[key] = resources_by_target.get(key, frozenset()) | resources
    return ClusterWorkloads(
        current,
        True,
        _vpas_by_target(documents),
        resources_by_target,
        tuple(documents),
        _pods_by_owner(built.snapshot.objects_of(Pod), current),
    )


def _pods_by_owner(pods: Iterable[Pod], current: CurrentRequests) -> dict[OwnerKey, tuple[Pod, ...]]:
    by_owner: defaultdict[OwnerKey, list[Pod]] = defaultdict(list)
    for pod in pods:
        owner = current.pods.get((pod.metadata.namespace or "default", pod.metadata.name))
        if owner is not None:
            by_owner[owner].append(pod)
    return {owner: tuple(own) for owner, own in by_owner.items()}


def _vpas_by_target(documents: Iterable[Document]) -> dict[OwnerKey, tuple[Mapping[str, object], ...]]:
    vpas: dict[OwnerKey, tuple[Mapping[str, object], ...]] = {}
    for document in documents:
        if document.kind == "VerticalPodAutoscaler":
            manifest = document.value
            target = (manifest.get("spec") or {}).get("targetRef") or {}
            namespace = (manifest.get("metadata") or {}).get("namespace") or "default"
            kind = group_kind(str(target.get("apiVersion") or ""), str(target.get("kind")))
            key = OwnerKey(namespace, kind, str(target.get("name")))
            vpas[key] = (*vpas.get(key, ()), manifest)
    return vpas


def group_series(
    series: Iterable[Series],
    workloads: ClusterWorkloads,
    includes: Callable[[ContainerKey], bool] | None = None,
    workload: str = "",
) -> dict[ContainerKey, list[PodSeries]]:
    """Returns container → the series of its pods.

    `includes`: returns whether a container is selected; None selects all. `workload`: if not empty, only the workload
    with this name is included, given as KIND/NAME or NAME.
    """
    owners = workloads.current.owner_index()
    grouped: dict[ContainerKey, list[PodSeries]] = {}
    for one in series:
        key = container_key(one, owners)
        is_selected = (not workload or workload in (key.workload, f"{key.kind}/{key.workload}")) and (
            includes is None or includes(key)
        )
        if is_selected and workloads.is_sized_by_vpa(key) and len(one.times):
            pod = one.pod or key.workload
            grouped.setdefault(key, []).append(PodSeries(pod, one.resource, one.times, one.values))
    return dict(sorted(grouped.items()))


def leave_out_absent(
    grouped: Mapping[ContainerKey, list[PodSeries]], workloads: ClusterWorkloads
) -> tuple[dict[ContainerKey, list[PodSeries]], list[str]]:
    """Returns the containers that are in the snapshot, and a note about the others. Without a snapshot, every container
    is returned."""
    if not workloads.has_snapshot:
        return dict(grouped), []
    present = {key: series for key, series in grouped.items() if key in workloads.current.containers}
    absent = [str(key) for key in grouped if key not in present]
    if not absent:
        return present, []
    count = format_count(len(absent), "container")
    is_are = "is" if len(absent) == 1 else "are"
    return present, [f"{count} with usage {is_are} not in the snapshot and left out: {join_first(absent, MAX_NAMES)}."]


def leave_out_unsized(
    grouped: Mapping[ContainerKey, list[PodSeries]],
) -> tuple[dict[ContainerKey, list[PodSeries]], list[str]]:
    """Returns the containers of workloads of a kind for which a VPA is proposed, and a note about each other kind."""
    sized = {key: series for key, series in grouped.items() if key.kind in API_VERSIONS}
    names_by_kind: dict[GroupKind, dict[str, None]] = {}
    for key in grouped:
        if key.kind not in API_VERSIONS:
            names_by_kind.setdefault(key.owner.kind, {})[f"{key.namespace}/{key.workload}"] = None
    return sized, [_describe_unsized(kind, list(names)) for kind, names in sorted(names_by_kind.items())]


def _describe_unsized(kind: GroupKind, names: list[str]) -> str:
    subject = (
        f"No VPA is proposed for {format_count(len(names), 'workload')} of kind {kind} ({join_first(names, MAX_NAMES)})"
    )
    if kind in _ENDING_KINDS:
        return f"{subject}, because pods of this kind are not made to run all the time."
    # The VPA ignores a target that is owned by a scalable controller (its controllerfetcher), so the StatefulSet of an
    # operator is no target either.
    return (
        f"{subject}: a VPA must name the topmost controller that can be scaled, and Trimtab does not know whether this "
        f"kind can be. If it has the subresource scale, a VPA may name it."
    )


def build_histories(
    grouped: Mapping[ContainerKey, Sequence[PodSeries]], workloads: ClusterWorkloads
) -> list[WorkloadHistory]:
    """Returns every workload, with the histories of its containers. `leave_out_unsized` leaves out those of a kind for
    which no VPA is proposed."""
    by_workload: dict[OwnerKey, list[ContainerKey]] = {}
    for key in grouped:
        by_workload.setdefault(key.owner, []).append(key)
    histories = []
    taken_names, quotas = _names_of_vpas(workloads), VpaQuotas(workloads.pods)
    for workload, keys in by_workload.items():
        count = max(len(keys), workloads.count_containers(keys[0]))
        histories.append(
            WorkloadHistory(
                namespace=workload.namespace,
                kind=workload.kind,
                name=workload.name,
                replicas=max((_replicas(workloads, key) for key in keys), default=0),
                containers=tuple(summarize_container(key.name, grouped[key], containers=count) for key in keys),
                max_allowed={key.name: _largest_request(workloads.current, key) for key in keys},
                hpa_resources=workloads.hpa_resources.get(workload, frozenset()),
                has_pod_level=has_pod_level(workloads.current, workload, keys),
                floors={key.name: find_floors(workloads.current, key) for key in keys},
                refuse_requests=refuse_by_api_server(workloads.current, workload, keys),
                refuse_by_quotas=refuse_by_quotas(workloads.current, workload, keys, quotas),
                promise_requests=promise_room(workloads.current, workload, keys, quotas),
                initial_requests={key.name: workloads.initial_requests(key) for key in keys},
                vpas=workloads.vpas.get(workload, ()),
                taken_names=frozenset(taken_names[workload.namespace]),
            )
        )
        taken_names[workload.namespace].add(workload.name)
    return histories


def _names_of_vpas(workloads: ClusterWorkloads) -> defaultdict[str, set[str]]:
    """Returns namespace → the names of its VPAs."""
    names: defaultdict[str, set[str]] = defaultdict(set)
    for key, vpas in workloads.vpas.items():
        metadata = [vpa.get("metadata") for vpa in vpas]
        names[key.namespace].update(str(one.get("name")) for one in metadata if isinstance(one, Mapping))
    return names


def _replicas(workloads: ClusterWorkloads, key: ContainerKey) -> int:
    container = workloads.current.containers.get(key)
    return container.replicas if container is not None else 0


def _largest_request(current: CurrentRequests, key: ContainerKey) -> Mapping[str, int]:
    """Returns the largest request with which the pod fits on a node, or an empty mapping if no node is known."""
    container = current.containers.get(key)
    if container is None:
        return {}
    own = {name: container.scheduler_amount("request", name) or 0 for name in RESOURCES}
    return current.nodes.largest_request(container.pod_context.pod, own)
