"""What is this pod to a planner?

`SchedulingRequirements` is all that the scheduler looks at when it chooses a node, read once and shared by every pod
that asks for the same; `PodInfo` is one pod with what decides whether it may move. Made from the API's shapes, integers
inside.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from sys import intern
from typing import NamedTuple

import msgspec

from trimtab.cluster.api.meta import Labels, OwnerReference, UnsetType, get
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
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.resources import Amounts, below_zero, pod_requests, resized
from trimtab.cluster.timestamps import Seconds, seconds

MIRROR = "kubernetes.io/config.mirror"
DAEMON = "cluster-autoscaler.kubernetes.io/daemonset-pod"
CRITICAL = 2_000_000_000
"""The value of system-cluster-critical: at and above it a pod belongs to the system."""
NODE_CRITICAL = 2_000_001_000
"""The value of system-node-critical."""
EXPENDABLE = -10
"""Pods of a lower priority hold a place for others: nobody makes room for them (--expendable-pods-priority-cutoff)."""

FINISHED = ("Succeeded", "Failed")
_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
GROUP_LABELS = (
    "scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io", "kueue.x-k8s.io/pod-group-name",
)  # fmt: skip
"""Labels that name a group of pods: the coscheduling plugin's, now and before, and Kueue's."""
COPIED = (_ZONE, _REGION)
"""Labels that the API server copies from the node when it binds a pod (1.35)."""

Port = tuple[str, str, int]
"""(protocol, address, host port); the address 0.0.0.0 is every address."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SchedulingRequirements:
    """What the scheduler looks at. Compared by identity: one `PodReader` makes one Ask for all pods alike."""

    namespace: str
    labels: Labels
    requests: Amounts | Unreadable
    """The scheduler's numbers, the pod's own slot not among them."""
    node_selector: Labels
    node_affinity: NodeSelector | None
    preferred_nodes: tuple[PreferredTerm, ...]
    tolerations: tuple[Toleration, ...]
    together: tuple[PodAffinityTerm, ...]
    """Required pod affinity."""
    apart: tuple[PodAffinityTerm, ...]
    """Required pod anti-affinity."""
    spreads: tuple[TopologySpreadConstraint, ...]
    """Those that say DoNotSchedule: conditions."""
    soft_spreads: tuple[TopologySpreadConstraint, ...]
    """Those that say ScheduleAnyway: wishes."""
    near: tuple[tuple[int, PodAffinityTerm], ...]
    """Preferred pod affinity with its weight; anti-affinity has a negative one."""
    ports: tuple[Port, ...]
    scheduler: str


class LocalVolume(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A volume that dies with the node."""

    name: str
    memory: bool
    """An emptyDir in memory: lost, but the pod knew that it would be."""


class PodInfo(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """One pod, compared by identity. `node` is empty for a pod that waits for one."""

    name: str
    namespace: str
    uid: str
    node: str
    ask: SchedulingRequirements
    owner: OwnerReference | None
    annotations: Mapping[str, str]
    created: Seconds | None
    started: Seconds | None
    deleted: Seconds | None
    """When it was asked to go; None while it stays."""
    grace: int
    """Seconds it may take to end."""
    phase: str
    ready: bool
    priority: int
    local: tuple[LocalVolume, ...]
    claims: tuple[str, ...]
    """Names of its PersistentVolumeClaims, in its own namespace."""
    devices: bool
    """It holds ResourceClaims (DRA)."""
    device_claims: tuple[str, ...] = ()
    """Their names; empty for one that is not made yet."""
    alike: int = -1
    """Equal for pods that differ in nothing but name, place and age, as replicas do; -1 for a pod that carries
    something of its own (annotations that say more than true, local data, claims, an end), or has no owner."""
    nominated: str = ""
    """The node a preemption reserved for it."""
    gated: bool = False
    """Somebody holds it back (scheduling gates): it does not look for a node yet."""
    group: str = ""
    """The group that it runs with, all or none; empty where it runs by itself."""
    unschedulable: bool = False
    """A scheduler has tried and found no node for it (condition PodScheduled, reason Unschedulable)."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def finished(self) -> bool:
        """Succeeded or Failed: it holds nothing any more."""
        return self.phase in FINISHED

    @property
    def seeking(self) -> bool:
        """Does it look for a node? Not who has one, is held back, or only holds a place for others."""
        return not (self.node or self.gated or self.priority < EXPENDABLE)

    @property
    def static(self) -> bool:
        """The kubelet's own: a mirror of a file, or owned by its node."""
        return MIRROR in self.annotations or (self.owner is not None and self.owner.kind == "Node")

    @property
    def daemon(self) -> bool:
        """One per node by its nature: it neither moves nor keeps a node."""
        return (self.owner is not None and self.owner.kind == "DaemonSet") or self.annotations.get(DAEMON) == "true"


_Said = tuple[object, ...]
"""What of a spec its Ask is made of."""
_MOST_OWNERS = 1_000
"""Owners of whom the last pod's parts are held, a few KB each."""


class _Last(NamedTuple):
    said: _Said
    ask: SchedulingRequirements


@dataclass(slots=True)
class PodReader:
    """Makes pods from shapes; pods that ask for the same share their `SchedulingRequirements`."""

    known: dict[tuple[object, ...], SchedulingRequirements] = field(default_factory=dict)
    """By namespace, template and labels."""
    likes: dict[tuple[int, int, bool, int, str, str], int] = field(default_factory=dict)
    owners: dict[OwnerReference, OwnerReference] = field(default_factory=dict)
    first: int = 0
    """The first number of `PodInfo.alike`: what another Reader numbered before stays below it."""
    _templates: dict[bytes, int] = field(default_factory=dict)
    """Specs that say the same, numbered."""
    _last: dict[int, _Last] = field(default_factory=dict)
    """Of an owner's last pod: nearly always the next one says the same, and comparing is quicker than a key."""

    def pod(self, shape: Shape) -> PodInfo:
        meta, spec, status = shape.metadata, shape.spec, shape.status
        owner = self._owner(meta.controller)
        ask, annotations, local = self._ask(shape, owner), get(meta.annotations, {}), _local(spec.volumes)
        ready, priority, phase = _ready(status), get(spec.priority, 0), intern(status.phase)
        claims, alike, group = _claims(meta.name, spec.volumes), -1, _group(spec, ask.labels)
        if (
            owner is not None
            and not (local or claims or group)
            and meta.deletion_timestamp is None
            and _agreed(annotations)
        ):
            # `owners` keeps the owner, and `known` the Ask: no other can come to be at their address.
            name = (id(ask), id(owner), ready, priority, phase, ",".join(sorted(annotations)) if annotations else "")
            alike = self.likes.setdefault(name, self.first + len(self.likes))
        return PodInfo(
            name=meta.name, namespace=ask.namespace, uid=meta.uid, node=intern(spec.node_name), ask=ask,
            owner=owner, annotations=annotations, created=seconds(meta.creation_timestamp),
            started=seconds(status.start_time), deleted=seconds(meta.deletion_timestamp),
            grace=30 if spec.termination_grace_period_seconds is None else spec.termination_grace_period_seconds,
            phase=phase, ready=ready, priority=priority, local=local, alike=alike,
            claims=claims, devices=bool(spec.resource_claims),
            device_claims=_device_claims(spec, status) if spec.resource_claims else (),
            nominated=status.nominated_node_name, gated=bool(spec.scheduling_gates),
            group=group,
            unschedulable=not spec.node_name and _is_unschedulable(status),
        )  # fmt: skip

    def _owner(self, owner: OwnerReference | None) -> OwnerReference | None:
        """The first that was equal to it."""
        return None if owner is None else self.owners.setdefault(owner, owner)

    def _ask(self, shape: Shape, owner: OwnerReference | None) -> SchedulingRequirements:
        labels, resizing, said = _labels(shape), resized(shape), _said(shape.spec)
        last = self._last.get(id(owner)) if owner is not None and resizing is shape else None
        if last is not None and last.said == said and _is_of(last.ask, shape.metadata.namespace, labels):
            return last.ask
        template = self._templates.setdefault(_ENCODER.encode(said), len(self._templates))
        key = (shape.metadata.namespace, template, *labels.items())
        if resizing is not shape:
            key = (
                *key,
                _ENCODER.encode((resizing.spec.containers, resizing.spec.init_containers, resizing.spec.resources)),
            )
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = _ask(resizing, labels)
        if owner is not None and resizing is shape:
            if len(self._last) >= _MOST_OWNERS:
                self._last.clear()
            self._last[id(owner)] = _Last(said, found)
        return found


def _device_claims(spec: PodSpec, status: PodStatus) -> tuple[str, ...]:
    made = {one.name: one.resource_claim_name or "" for one in status.resource_claim_statuses}
    return tuple(one.resource_claim_name or made.get(one.name, "") for one in spec.resource_claims)


def _group(spec: PodSpec, labels: Labels) -> str:
    if spec.scheduling_group is not None:
        return spec.scheduling_group.pod_group_name
    if spec.workload_ref is not None:
        found = spec.workload_ref
        return f"{found.name}/{found.pod_group}/{found.pod_group_replica_key}"
    return next((labels[key] for key in GROUP_LABELS if key in labels), "") if labels else ""


def _is_of(ask: SchedulingRequirements, namespace: str, labels: Labels) -> bool:
    return ask.namespace == namespace and ask.labels == labels


_ENCODER = msgspec.json.Encoder(enc_hook=lambda _unset: None)


def _said(spec: PodSpec) -> _Said:
    return (
        spec.containers, spec.init_containers, spec.resources, spec.overhead, spec.node_selector, spec.affinity,
        spec.tolerations, spec.topology_spread_constraints, spec.scheduler_name, spec.host_network,
    )  # fmt: skip


def _labels(shape: Shape) -> Labels:
    """Without what the API server copies from the node when it binds (1.35): a successor gets its own."""
    labels = get(shape.metadata.labels, {})
    if _ZONE not in labels and _REGION not in labels:
        return labels
    kept = labels.copy()
    kept.pop(_ZONE, None)
    kept.pop(_REGION, None)
    return kept


def _agreed(annotations: Mapping[str, str]) -> bool:
    """Does every annotation say just true? Then nothing depends on time or on volumes."""
    return not annotations or all(text == "true" for text in annotations.values())


def _ask(shape: Shape, labels: Labels) -> SchedulingRequirements:
    spec = shape.spec
    affinity = get(spec.affinity, Affinity())
    nodes = get(affinity.node_affinity, NodeAffinity())
    return SchedulingRequirements(
        namespace=shape.metadata.namespace,
        labels=labels,
        requests=_requests(shape),
        node_selector=get(spec.node_selector, {}),
        node_affinity=get(nodes.required, None),
        preferred_nodes=get(nodes.preferred, ()),
        tolerations=get(spec.tolerations, ()),
        together=_required(affinity.pod_affinity),
        apart=_required(affinity.pod_anti_affinity),
        spreads=_spreads(spec, "DoNotSchedule"),
        soft_spreads=_spreads(spec, "ScheduleAnyway"),
        near=(*_preferred(affinity.pod_affinity, 1), *_preferred(affinity.pod_anti_affinity, -1)),
        ports=tuple(sorted(set(_ports(spec)))),
        scheduler=spec.scheduler_name or "default-scheduler",
    )


def _requests(shape: Shape) -> Amounts | Unreadable:
    """The API server takes no negative amount; from anywhere else it would be room that is not there."""
    where = f"pod {shape.metadata.namespace}/{shape.metadata.name}"
    try:
        found = pod_requests(shape.spec)
    except NotAQuantity as error:
        return Unreadable(where, str(error))
    written = below_zero(shape.spec)
    return found if written is None else Unreadable(where, f"it asks for {written}, less than nothing")


def _required(terms: PodAffinity | UnsetType) -> tuple[PodAffinityTerm, ...]:
    return get(terms, PodAffinity()).required


def _preferred(terms: PodAffinity | UnsetType, sign: int) -> tuple[tuple[int, PodAffinityTerm], ...]:
    return tuple((sign * term.weight, term.pod_affinity_term) for term in get(terms, PodAffinity()).preferred)


def _spreads(spec: PodSpec, when: str) -> tuple[TopologySpreadConstraint, ...]:
    return tuple(s for s in get(spec.topology_spread_constraints, ()) if s.when_unsatisfiable == when)


def _ports(spec: PodSpec) -> Iterable[Port]:
    """Host ports as the scheduler counts them: containers and sidecars; with hostNetwork every port is one."""
    for container in spec.containers + tuple(c for c in spec.init_containers if c.restart_policy == "Always"):
        yield from _container_ports(container, host=spec.host_network)


def _container_ports(container: Container, *, host: bool) -> Iterable[Port]:
    for port in container.ports:
        number = port.host_port or (port.container_port if host else 0)
        if number:
            yield (port.protocol or "TCP", port.host_ip or "0.0.0.0", number)  # noqa: S104  every address


def _ready(status: PodStatus) -> bool:
    for condition in status.conditions:  # noqa: SIM110  `any` takes twice as long, and this is done at every event
        if condition.type == "Ready" and condition.status == "True":
            return True
    return False


def _is_unschedulable(status: PodStatus) -> bool:
    return any(
        condition.type == "PodScheduled" and condition.status == "False" and condition.reason == "Unschedulable"
        for condition in status.conditions
    )


def _local(volumes: Iterable[Volume]) -> tuple[LocalVolume, ...]:
    found = []
    for volume in volumes:
        if not isinstance(volume.empty_dir, UnsetType):
            found.append(LocalVolume(name=volume.name, memory=volume.empty_dir.medium == "Memory"))
        elif not isinstance(volume.host_path, UnsetType):
            found.append(LocalVolume(name=volume.name, memory=False))
    return tuple(found)


def _claims(pod: str, volumes: Iterable[Volume]) -> tuple[str, ...]:
    """A generic ephemeral volume's claim is named after pod and volume (pkg/controller/volume/ephemeral)."""
    found = []
    for volume in volumes:
        if not isinstance(volume.persistent_volume_claim, UnsetType):
            found.append(volume.persistent_volume_claim.claim_name)
        elif not isinstance(volume.ephemeral, UnsetType):
            found.append(f"{pod}-{volume.name}")
    return tuple(found)
