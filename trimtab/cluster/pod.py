"""A pod as a planner sees it.

`SchedulingRequirements` is everything that the scheduler considers when it chooses a node; all pods with equal
requirements share one object. `PodInfo` is one pod, with what decides whether the pod may move. Both are made from API
objects, and all amounts are integers.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from sys import intern
from typing import NamedTuple

import msgspec

from trimtab.cluster.api.meta import UNSET, Labels, OwnerReference, UnsetType, value_or
from trimtab.cluster.api.pod import (
    Affinity,
    Container,
    NodeAffinity,
    NodeSelector,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PodStatus,
    PreferredTerm,
    Toleration,
    TopologySpreadConstraint,
    Volume,
)
from trimtab.cluster.api.pod import Pod as Shape
from trimtab.cluster.kinds import DAEMON_SET, NODE
from trimtab.cluster.owner import OwnerKey, referenced_owner
from trimtab.cluster.pod_groups import group_by_marks
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.resources import Amounts, negative_request, pod_requests, with_resize
from trimtab.cluster.runtime_needs import NO_RUNTIME_NEEDS, RuntimeNeeds, inline_drivers, read_runtime_needs
from trimtab.cluster.timestamps import Seconds, parse_timestamp

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
DAEMON_ANNOTATION = "cluster-autoscaler.kubernetes.io/daemonset-pod"
CRITICAL_PRIORITY = 2_000_000_000
"""The priority of system-cluster-critical. Pods with this priority or a higher one belong to the system."""
NODE_CRITICAL_PRIORITY = 2_000_001_000
"""The priority of system-node-critical."""
EXPENDABLE_PRIORITY_CUTOFF = -10
"""Pods with a lower priority than this only keep capacity free for others, so the cluster autoscaler adds no node for
them (`--expendable-pods-priority-cutoff`)."""

FINISHED_PHASES = ("Succeeded", "Failed")
_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
COPIED_LABELS = (_ZONE, _REGION)
"""Labels that the API server copies from the node to a pod when the pod is bound (1.35)."""

Port = tuple[str, str, int]
"""(protocol, IP address, port) that a pod occupies on its node. The address 0.0.0.0 means every address."""


class SchedulingRequirements(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """Everything that the scheduler considers about a pod. Compared by identity: a `PodReader` makes one object for all
    pods with equal requirements."""

    namespace: str
    labels: Labels
    requests: Amounts | Unreadable
    """The requests in the scheduler's units, without the count of one for the pod itself; Unreadable if an amount is
    not valid."""
    node_selector: Labels
    node_affinity: NodeSelector | None
    preferred_nodes: tuple[PreferredTerm, ...]
    tolerations: tuple[Toleration, ...]
    required_affinity: tuple[PodAffinityTerm, ...]
    """The terms of required pod affinity."""
    required_anti_affinity: tuple[PodAffinityTerm, ...]
    """The terms of required pod anti-affinity."""
    hard_spreads: tuple[TopologySpreadConstraint, ...]
    """The topology spread constraints with DoNotSchedule, which a node must satisfy."""
    soft_spreads: tuple[TopologySpreadConstraint, ...]
    """The topology spread constraints with ScheduleAnyway, which only change a node's score."""
    preferred_affinity: tuple[tuple[int, PodAffinityTerm], ...]
    """The terms of preferred pod affinity with their weights; the weight of an anti-affinity term is negative."""
    host_ports: tuple[Port, ...]
    scheduler: str
    runtime_needs: RuntimeNeeds = NO_RUNTIME_NEEDS
    labelled_group: str = ""
    """The group that the labels name; empty if they name none."""


_HOST_PATHS = {
    "": "a path",
    "Directory": "a directory",
    "DirectoryOrCreate": "a directory",
    "File": "a file",
    "FileOrCreate": "a file",
    "Socket": "a socket",
    "CharDevice": "a character device",
    "BlockDevice": "a block device",
}
"""The types of a hostPath (core/v1 HostPathType), and what the pod uses of its node. The type says what is there, not
whether the pod stores data in it."""
EMPTY_DIR_USE = "stores data on its node in an emptyDir"


class LocalVolume(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A volume of a pod whose data is lost when the pod leaves its node, or is a part of the node itself."""

    name: str
    in_memory: bool
    """Whether the volume is an emptyDir in memory. Its data is lost too, which the pod's author has accepted."""
    use: str = EMPTY_DIR_USE
    """What the pod does with its node through the volume, as a predicate: "uses a socket of its node (hostPath)"."""


class PodInfo(msgspec.Struct, frozen=True, eq=False, gc=False):
    """One pod, compared by identity. `node` is empty for a pod that is on no node."""

    name: str
    namespace: str
    uid: str
    node: str
    requirements: SchedulingRequirements
    owner: OwnerKey | None
    annotations: Mapping[str, str]
    created: Seconds | None
    started: Seconds | None
    deletion_requested_at: Seconds | None
    """When the deletion of the pod was requested, or None if it was not."""
    grace_seconds: int
    """The pod's termination grace period in seconds."""
    phase: str
    is_ready: bool
    priority: int
    local_volumes: tuple[LocalVolume, ...]
    claims: tuple[str, ...]
    """The names of the PersistentVolumeClaims that the pod uses, in its own namespace."""
    has_device_claims: bool
    """Whether the pod uses ResourceClaims (dynamic resource allocation)."""
    device_claims: tuple[str, ...] = ()
    """The names of the ResourceClaims that the pod uses; the name is empty for a claim that does not exist yet."""
    likeness: int = -1
    """A number that is equal for pods which differ only in name, node and age, such as replicas.

    It is -1 for a pod without an owner. It is also -1 for a pod with something that other replicas need not share:
    annotations with a value other than "true", local data, claims, or a deletion timestamp."""
    nominated_node: str = ""
    """The node on which a preemption made room for the pod; empty if there was none."""
    is_gated: bool = False
    """Whether the pod has scheduling gates, so that it is not scheduled yet."""
    pod_group: str = ""
    """The group to which the pod belongs according to its spec and its marks; empty if they name none. The pods of a
    group live and die together."""
    is_unschedulable: bool = False
    """Whether a scheduler found no node for the pod (condition PodScheduled with reason Unschedulable)."""
    is_daemon: bool = False
    """Whether the pod runs once per node, as a DaemonSet's: it does not move, and it does not block a drain. A plan
    asks this and `is_static` several times for each pod."""
    is_static: bool = False
    """Whether the kubelet runs the pod without the API server: the pod mirrors a manifest file, or its owner is its
    node."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def is_finished(self) -> bool:
        """Whether the pod's phase is Succeeded or Failed, so that it no longer uses its node."""
        return self.phase in FINISHED_PHASES

    @property
    def is_outside_budgets(self) -> bool:
        """Whether the eviction API evicts the pod whatever its budgets say: its phase is Pending
        (registry/core/pod/storage/eviction.go, `canIgnorePDB`)."""
        return self.phase == "Pending"

    @property
    def needs_node(self) -> bool:
        """Whether the pod waits for a node. False if any of these holds:

        - it has a node;
        - it has scheduling gates;
        - its priority is below `EXPENDABLE_PRIORITY_CUTOFF`, so that it only keeps capacity free for other pods."""
        return not (self.node or self.is_gated or self.priority < EXPENDABLE_PRIORITY_CUTOFF)


_SpecParts = tuple[object, ...]
"""The fields of a pod spec from which its scheduling requirements are made."""
# For each owner the parts of its latest pod are stored, a few KB each.
_MAX_OWNERS = 1_000


class _LatestPod(NamedTuple):
    spec_parts: _SpecParts
    requirements: SchedulingRequirements


@dataclass(slots=True)
class PodReader:
    """Makes `PodInfo` objects from API objects. Pods with equal requirements share one `SchedulingRequirements`."""

    requirements_by_key: dict[tuple[object, ...], SchedulingRequirements] = field(default_factory=dict)
    """(namespace, number of the spec parts, labels) → the shared requirements."""
    likeness_numbers: dict[tuple[int, int, bool, int, str, str, int | None], int] = field(default_factory=dict)
    owners: dict[OwnerKey, OwnerKey] = field(default_factory=dict)
    owners_by_reference: dict[tuple[str, str, str, str], OwnerKey] = field(default_factory=dict)
    """(version, kind, name, namespace) of a reference → the owner that it names."""
    first_likeness: int = 0
    """The first value of `PodInfo.likeness` that this reader assigns. Smaller values were assigned by an earlier
    reader."""
    _templates: dict[bytes, int] = field(default_factory=dict)
    """Encoded spec parts → the number that stands for them in a key."""
    _latest: dict[int, _LatestPod] = field(default_factory=dict)
    """Id of an owner → the latest pod read for that owner. The next pod of the owner nearly always has the same spec,
    and comparing the two is faster than building a key."""

    def read_pod(self, shape: Shape) -> PodInfo:
        """Returns the pod of an API object."""
        meta, spec, status = shape.metadata, shape.spec, shape.status
        owner = self._shared_owner(meta.controller_owner, meta.namespace)
        requirements, annotations = self._shared_requirements(shape, owner), value_or(meta.annotations, {})
        local, claims = _read_volumes(meta.name, spec.volumes) if spec.volumes else ((), ())
        ready, priority, phase = _is_ready(status), value_or(spec.priority, 0), intern(status.phase)
        group = _group_name(spec, requirements, annotations)
        # Pods that are alike get the same answers from the planner, which then computes each only once.
        alike = -1
        if (
            owner is not None
            and not (local or claims or group)
            and meta.deletion_timestamp is None
            # Any other value may name volumes or a time, which only this pod has.
            and (not annotations or all(text == "true" for text in annotations.values()))
        ):
            # `id` is safe as a key: this reader keeps both objects alive, so no other object gets their address.
            likeness = (
                id(requirements),
                id(owner),
                ready,
                priority,
                phase,
                ",".join(sorted(annotations)) if annotations else "",
                spec.termination_grace_period_seconds,
            )
            alike = self.likeness_numbers.setdefault(likeness, self.first_likeness + len(self.likeness_numbers))
        # In the order of the fields: by name it takes five times as long, and this is done for every pod.
        return PodInfo(
            meta.name,
            requirements.namespace,
            meta.uid,
            intern(spec.node_name),
            requirements,
            owner,
            annotations,
            parse_timestamp(meta.creation_timestamp),
            parse_timestamp(status.start_time),
            parse_timestamp(meta.deletion_timestamp) if meta.deletion_timestamp else None,
            # The API server's default (SetDefaults_PodSpec); a pod from a file may lack it.
            30 if (grace := spec.termination_grace_period_seconds) is None else grace,
            phase,
            ready,
            priority,
            local,
            claims,
            bool(spec.resource_claims),
            _device_claim_names(spec, status) if spec.resource_claims else (),
            alike,
            status.nominated_node_name,
            bool(spec.scheduling_gates),
            group,
            # A pod that is bound may still have the condition of an earlier attempt.
            not spec.node_name and _is_unschedulable(status),
            (owner is not None and owner.kind == DAEMON_SET) or annotations.get(DAEMON_ANNOTATION) == "true",
            (owner is not None and owner.kind == NODE) or MIRROR_ANNOTATION in annotations,
        )

    def _shared_owner(self, reference: OwnerReference | None, namespace: str) -> OwnerKey | None:
        """Returns the owner as one shared object for all pods of the owner."""
        if reference is None:
            return None
        key = (reference.api_version, reference.kind_name, reference.name, namespace)
        owner = self.owners_by_reference.get(key)
        if owner is None:
            owner = referenced_owner(reference, namespace)
            # Two versions of a group name the same owner.
            owner = self.owners_by_reference[key] = self.owners.setdefault(owner, owner)
        return owner

    def _shared_requirements(self, shape: Shape, owner: OwnerKey | None) -> SchedulingRequirements:
        """Returns the requirements of the pod, as one object for all pods with equal requirements."""
        labels, resizing, parts = _scheduling_labels(shape), with_resize(shape), _spec_parts(shape.spec)
        latest = self._latest.get(id(owner)) if owner is not None and resizing is shape else None
        if (
            latest is not None
            and latest.spec_parts == parts
            and latest.requirements.namespace == shape.metadata.namespace
            and latest.requirements.labels == labels
        ):
            return latest.requirements
        template = self._templates.setdefault(_ENCODER.encode(parts), len(self._templates))
        key = (shape.metadata.namespace, template, *labels.items())
        if resizing is not shape:
            # A resize in place changes what one pod requests, not its template: such a pod has a key of its own.
            key = (
                *key,
                _ENCODER.encode((resizing.spec.containers, resizing.spec.init_containers, resizing.spec.resources)),
            )
        requirements = self.requirements_by_key.get(key)
        if requirements is None:
            requirements = self.requirements_by_key[key] = _make_requirements(resizing, labels)
        if owner is not None and resizing is shape:
            if len(self._latest) >= _MAX_OWNERS:
                self._latest.clear()
            self._latest[id(owner)] = _LatestPod(parts, requirements)
        return requirements


def _device_claim_names(spec: PodSpec, status: PodStatus) -> tuple[str, ...]:
    claim_names = {one.name: one.resource_claim_name or "" for one in status.resource_claim_statuses}
    return tuple(one.resource_claim_name or claim_names.get(one.name, "") for one in spec.resource_claims)


def _group_name(spec: PodSpec, requirements: SchedulingRequirements, annotations: Mapping[str, str]) -> str:
    # Newest first: `schedulingGroup`, then `workloadRef` (1.35), then the marks of others than Kubernetes itself.
    if spec.scheduling_group is not None:
        return spec.scheduling_group.pod_group_name
    if spec.workload_ref is not None:
        reference = spec.workload_ref
        return f"{reference.name}/{reference.pod_group}/{reference.pod_group_replica_key}"
    return requirements.labelled_group or (group_by_marks({}, annotations) if annotations else "")


# UNSET has no JSON of its own inside tuples.
_ENCODER = msgspec.json.Encoder(enc_hook=lambda _unset: None)


def _spec_parts(spec: PodSpec) -> _SpecParts:
    return (
        spec.containers,
        spec.init_containers,
        spec.resources,
        spec.overhead,
        spec.node_selector,
        spec.affinity,
        spec.tolerations,
        spec.topology_spread_constraints,
        spec.scheduler_name,
        spec.host_network,
        spec.os,
        spec.runtime_class_name,
        spec.host_users,
        spec.security_context,
        inline_drivers(spec.volumes) if spec.volumes else (),
    )


def _scheduling_labels(shape: Shape) -> Labels:
    """Returns the pod's labels without those that the API server copies from the node at binding (1.35). The pod that
    replaces an evicted pod gets the labels of its own node."""
    labels = shape.metadata.labels
    if labels is UNSET:
        return {}
    if _ZONE not in labels and _REGION not in labels:
        return labels
    own = labels.copy()
    own.pop(_ZONE, None)
    own.pop(_REGION, None)
    return own


def _make_requirements(shape: Shape, labels: Labels) -> SchedulingRequirements:
    spec = shape.spec
    nodes, near, apart = _parts_of_affinity(spec.affinity)
    spreads = value_or(spec.topology_spread_constraints, ())
    return SchedulingRequirements(
        namespace=shape.metadata.namespace,
        labels=labels,
        requests=_requests_of(shape),
        node_selector=value_or(spec.node_selector, {}),
        node_affinity=value_or(nodes.required, None),
        preferred_nodes=value_or(nodes.preferred, ()),
        tolerations=value_or(spec.tolerations, ()),
        required_affinity=near.required,
        required_anti_affinity=apart.required,
        hard_spreads=tuple([spread for spread in spreads if spread.when_unsatisfiable == "DoNotSchedule"]),
        soft_spreads=tuple([spread for spread in spreads if spread.when_unsatisfiable == "ScheduleAnyway"]),
        # One list with signed weights, as InterPodAffinity sums them when it scores nodes.
        preferred_affinity=tuple(
            [(term.weight, term.pod_affinity_term) for term in near.preferred]
            + [(-term.weight, term.pod_affinity_term) for term in apart.preferred]
        ),
        host_ports=tuple(sorted(set(_host_ports(spec)))),
        # The API server fills in this default; a pod from a file may lack it.
        scheduler=spec.scheduler_name or "default-scheduler",
        runtime_needs=read_runtime_needs(spec),
        labelled_group=group_by_marks(labels, {}),
    )


_NO_NODES, _NO_PODS = NodeAffinity(), PodAffinity()


def _parts_of_affinity(affinity: Affinity | UnsetType) -> tuple[NodeAffinity, PodAffinity, PodAffinity]:
    """Returns the affinity to nodes, the affinity to pods and the anti-affinity to pods. Absent and empty are the same
    to the scheduler."""
    if affinity is UNSET:
        return _NO_NODES, _NO_PODS, _NO_PODS
    return (
        value_or(affinity.node_affinity, _NO_NODES),
        value_or(affinity.pod_affinity, _NO_PODS),
        value_or(affinity.pod_anti_affinity, _NO_PODS),
    )


def _requests_of(shape: Shape) -> Amounts | Unreadable:
    """Returns the pod's requests, or Unreadable if one is negative. The API server rejects a negative request; in data
    from another source, it would count as capacity that does not exist."""
    where = f"pod {shape.metadata.namespace}/{shape.metadata.name}"
    try:
        # The amounts may come from files, where nothing has validated them.
        requests = pod_requests(shape.spec)
    except NotAQuantity as error:
        return Unreadable(where, str(error))
    negative = negative_request(shape.spec)
    return requests if negative is None else Unreadable(where, f"the request {negative} is negative")


def _host_ports(spec: PodSpec) -> Iterable[Port]:
    """Yields the host ports that the scheduler counts: those of containers and sidecars. With hostNetwork, every
    container port is a host port."""
    for container in spec.containers + tuple(c for c in spec.init_containers if c.restart_policy == "Always"):
        yield from _host_ports_of_container(container, host=spec.host_network)


def _host_ports_of_container(container: Container, *, host: bool) -> Iterable[Port]:
    for port in container.ports:
        # With hostNetwork the API server sets hostPort to containerPort (SetDefaults for hostNetwork pods).
        number = port.host_port or (port.container_port if host else 0)
        if number:
            # An empty address conflicts with every address (kube-scheduler's NodePorts, HostPortInfo).
            yield (port.protocol or "TCP", port.host_ip or "0.0.0.0", number)  # noqa: S104  every address


def _is_ready(status: PodStatus) -> bool:
    for condition in status.conditions:  # noqa: SIM110  `any` takes twice as long, and this is done at every event
        if condition.type == "Ready" and condition.status == "True":
            return True
    return False


def _is_unschedulable(status: PodStatus) -> bool:
    return any(
        condition.type == "PodScheduled" and condition.status == "False" and condition.reason == "Unschedulable"
        for condition in status.conditions
    )


def _read_volumes(pod: str, volumes: Iterable[Volume]) -> tuple[tuple[LocalVolume, ...], tuple[str, ...]]:
    """Returns the volumes with local data, and the names of the PersistentVolumeClaims that the pod uses. The claim of
    a generic ephemeral volume is named after the pod and the volume (pkg/controller/volume/ephemeral)."""
    local_volumes, names = [], []
    for volume in volumes:
        # UNSET, not None: `emptyDir: {}` is an empty object, and just as local.
        if volume.empty_dir is not UNSET:
            local_volumes.append(LocalVolume(name=volume.name, in_memory=volume.empty_dir.medium == "Memory"))
        elif volume.host_path is not UNSET:
            kind = volume.host_path.get("type") if isinstance(volume.host_path, dict) else None
            use = f"uses {_HOST_PATHS.get(str(kind or ''), _HOST_PATHS[''])} of its node (hostPath)"
            local_volumes.append(LocalVolume(name=volume.name, in_memory=False, use=use))
        if volume.persistent_volume_claim is not UNSET:
            names.append(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not UNSET:
            names.append(f"{pod}-{volume.name}")
    return tuple(local_volumes), tuple(names)
