"""How much do the nodes hold that a pod may use, beside their DaemonSets?

What do containers ask for now, and who else sizes them?
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

from trimtab.admission.pod_templates import PodTemplateLocation, templates
from trimtab.cluster import quantity
from trimtab.cluster.api.autoscaling import HorizontalPodAutoscaler, MetricSpec
from trimtab.cluster.api.core import Node as NodeShape
from trimtab.cluster.api.core import Taint
from trimtab.cluster.api.meta import Labels, get
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.node import read as read_node
from trimtab.cluster.node_shapes import shape_of
from trimtab.cluster.owner import Owner
from trimtab.cluster.pod import PodReader, SchedulingRequirements
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.recommendation import VpaRecommendation
from trimtab.cluster.resources import Amounts, limits_of, pod_requests, requests_of
from trimtab.cluster.snapshot import Snapshot
from trimtab.cluster.yaml_documents import Document
from trimtab.histogram.batch_history import ContainerKey
from trimtab.histogram.oom_kills import OomKill
from trimtab.machines.prices import price
from trimtab.policy import autoscalers
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.pod_context import ContainerRef, PodContext
from trimtab.policy.vpa_webhook import EVERYWHERE
from trimtab.scheduling.node_filters import selected, untolerated
from trimtab.sizing.cost import LIST, ResourcePrice, of_nodes
from trimtab.sizing.request import CurrentResources, Hpa
from trimtab.usage.oom_kills import of_pod

RESOURCES = ("cpu", "memory")


@dataclass(frozen=True, slots=True)
class _Room:
    """One node."""

    node: NodeInfo
    taints: tuple[Taint, ...]
    """Without those that pass."""
    left: Amounts
    """Beside its DaemonSets."""


@dataclass(slots=True)
class EligibleNodes:
    """The nodes of a snapshot that take pods."""

    rooms: list[_Room] = field(default_factory=list)
    _reader: PodReader = field(default_factory=PodReader)
    _known: dict[tuple[object, ...], dict[str, int]] = field(default_factory=dict)
    """By what a pod asks of the nature of nodes: most pods ask for nothing, and share one answer."""

    @classmethod
    def of(cls, snapshot: Snapshot) -> "EligibleNodes":
        """Without the nodes that are cordoned, or whose amounts cannot be read."""
        daemons, rooms = _daemons(snapshot), list[_Room]()
        for found in snapshot.all(NodeShape):
            node, shape = read_node(found, None), shape_of(found)
            if shape is None or isinstance(node.allocatable, Unreadable):
                continue
            left = {name: node.allocatable.get(name, 0) - daemons.get((node.name, name), 0) for name in RESOURCES}
            rooms.append(_Room(node, shape.taints, left))
        return cls(rooms)

    def most(self, pod: Pod, container_request: Amounts) -> Mapping[str, int]:
        """Resource → the largest request of one container that leaves room for the rest of its pod on a node that the
        pod may use; empty where there is none, since an autoscaler may make one. `container_request`: what the
        container asks for now."""
        held = self._held(pod)
        try:
            whole = pod_requests(pod.spec)
        except NotAQuantity:
            whole = {}
        found = {}
        for name, most in held.items():
            mine = container_request.get(name, 0)
            # A DaemonSet's own pods are among the daemons already.
            others = 0 if _is_daemon(pod) else max(0, whole.get(name, 0) - mine)
            found[name] = max(mine, most - others + (mine if _is_daemon(pod) else 0))
        return found

    def _held(self, pod: Pod) -> dict[str, int]:
        """The most that one of the pod's nodes holds of each resource."""
        ask, is_daemon = self._reader.pod(pod).ask, _is_daemon(pod)
        key = (is_daemon, frozenset(ask.node_selector.items()), ask.node_affinity, ask.tolerations)
        if key not in self._known:
            # A DaemonSet's pod names its node; what it asks for holds for all of them.
            fitting = [room.left for room in self.rooms if is_daemon or _may_use(ask, room)]
            self._known[key] = {name: max(left[name] for left in fitting) for name in RESOURCES} if fitting else {}
        return self._known[key]


def _may_use(ask: SchedulingRequirements, room: _Room) -> bool:
    return selected(ask, room.node) and untolerated(ask.tolerations, room.taints) is None


def _is_daemon(pod: Pod) -> bool:
    owner = pod.metadata.controller
    return owner is not None and owner.kind == "DaemonSet"


def _daemons(snapshot: Snapshot) -> dict[tuple[str, str], int]:
    """(node, resource) → what DaemonSets' pods ask for there."""
    found: dict[tuple[str, str], int] = {}
    for pod in snapshot.all(Pod):
        if not _is_daemon(pod) or not get(pod.spec.node_name, ""):
            continue
        try:
            asked = pod_requests(pod.spec)
        except NotAQuantity:
            continue
        for resource in RESOURCES:
            key = (pod.spec.node_name, resource)
            found[key] = found.get(key, 0) + asked.get(resource, 0)
    return found


SIZED_RESOURCES = ("cpu", "memory")
FINISHED = ("Succeeded", "Failed")


@dataclass(slots=True)
class CurrentContainer:
    """One container of one workload: the newest of its pods speaks for all."""

    replicas: int
    place: ContainerRef
    subject: PodContext

    def asks(self, resource: str, nodes: EligibleNodes, other: VpaRecommendation | None = None) -> CurrentResources:
        """`other`: what a VPA that is not in the snapshot advises."""
        manager = autoscalers.of(self.subject)
        request, limit = self.amount("request", resource), self.amount("limit", resource)
        return CurrentResources(
            resource=resource, request=request if request is not None else limit, limit=limit, role=self.place.role,
            qos=self.subject.qos, replicas=self.replicas, hpa=hpa(self.subject, resource),
            vpa=autoscalers.sizing(manager, self.subject, self.place, resource), vpa_down=_down(self.subject),
            advice=autoscalers.advised(self.subject, self.place, resource) or other, most=self._most(nodes, resource),
        )  # fmt: skip

    def _most(self, nodes: EligibleNodes, resource: str) -> int | None:
        asked = {name: self.amount("request", name) or self.amount("limit", name) or 0 for name in SIZED_RESOURCES}
        return nodes.most(self.subject.pod, asked).get(resource)

    @property
    def labels(self) -> Labels:
        """The pods' labels, and those of their namespace that they do not have."""
        of_namespace = self.subject.facts.namespaces.get(self.subject.namespace, {})
        return {**of_namespace, **get(self.subject.pod.metadata.labels, {})}

    def amount(self, what: str, resource: str) -> int | None:
        """The scheduler's number; None where nothing (readable) is written."""
        resources = self.place.container.resources
        written = (requests_of(resources) if what == "request" else limits_of(resources)).get(resource)
        try:
            return None if written is None else quantity.scheduler_value(resource, written)
        except NotAQuantity:
            return None


def _down(subject: PodContext) -> str:
    """The VPA that would size it if its webhook could act."""
    if subject.facts.vpa_acts:
        return ""
    acting = PodContext(
        pod=subject.pod, namespace=subject.namespace, facts=replace(subject.facts, vpa_reach=EVERYWHERE)
    )
    found = autoscalers.of(acting)
    return found.metadata.name if found else ""


def hpa(subject: PodContext, resource: str) -> Hpa | None:
    """One that aims at a share of this resource's request."""
    for owner in subject.owners:
        for found in subject.facts.hpas.get((subject.namespace, owner.kind, owner.name), ()):
            target = _target(found, resource)
            if target is not None:
                return Hpa(name=found.metadata.name, target=target or None)
    return None


def _target(found: HorizontalPodAutoscaler, resource: str) -> int | None:
    """Percent; 0 where it does not say; None where it does not count this resource by its request."""
    if resource == "cpu" and found.spec.target_cpu_utilization_percentage is not None:
        return found.spec.target_cpu_utilization_percentage
    if not found.spec.metrics:
        return 80 if resource == "cpu" else None
    return next((t for t in (_aims(metric, resource) for metric in found.spec.metrics) if t is not None), None)


def _aims(metric: MetricSpec, resource: str) -> int | None:
    for source in (metric.resource, metric.container_resource):
        if source.name == resource and source.target.type == "Utilization":
            return source.target.average_utilization
    return None


@dataclass(slots=True)
class CurrentRequests:
    """What stands, by container."""

    standing: dict[ContainerKey, CurrentContainer] = field(default_factory=dict)
    pods: dict[tuple[str, str], Owner] = field(default_factory=dict)
    workloads: dict[tuple[str, str], Owner] = field(default_factory=dict)
    kills: list[tuple[ContainerKey, OomKill]] = field(default_factory=list)
    """Containers that were killed for want of memory, as their pods tell."""
    nodes: EligibleNodes = field(default_factory=EligibleNodes)
    price: ResourcePrice = LIST
    notes: list[str] = field(default_factory=list)


def stands(snapshot: Snapshot, documents: Iterable[Document], facts: ClusterFacts) -> CurrentRequests:
    """From running pods, and from the templates of workloads without any."""
    found = CurrentRequests(nodes=EligibleNodes.of(snapshot))
    for (namespace, kind, name), above in facts.owners.items():
        if above is None and kind != "ReplicaSet":
            found.workloads[namespace, name] = Owner(kind, name)
    for pod in snapshot.all(Pod):
        _kills(found, PodContext(pod=pod, namespace=pod.metadata.namespace or "default", facts=facts))
        if pod.status.phase not in FINISHED:
            _pod(found, PodContext(pod=pod, namespace=pod.metadata.namespace or "default", facts=facts), 1)
    for pod in snapshot.all(Pod):
        subject = PodContext(pod=pod, namespace=pod.metadata.namespace or "default", facts=facts)
        if pod.status.phase in FINISHED and subject.top is not None and subject.top.kind == "CronJob":
            _ended(found, subject)
    seen = {(c.namespace, c.kind, c.workload) for c in found.standing}
    for made in chain.from_iterable(map(templates, documents)):
        if isinstance(made, PodTemplateLocation) and made.path and (made.namespace, made.kind, made.name) not in seen:
            subject = PodContext(pod=made.pod, namespace=made.namespace, facts=made.facts(facts))
            if subject.top == Owner(made.kind, made.name):
                _pod(found, subject, made.replicas)
    _prices(found, snapshot)
    return found


def _pod(found: CurrentRequests, subject: PodContext, replicas: int) -> None:
    top = subject.top or Owner("Pod", subject.pod.metadata.name)
    if subject.pod.metadata.name:
        found.pods[subject.namespace, subject.pod.metadata.name] = top
    for place in subject.places:
        key = ContainerKey(subject.namespace, top.kind, top.name, place.container.name)
        known = found.standing.get(key)
        count = replicas + (known.replicas if known else 0)
        if known is None or _younger(subject, known.subject):
            found.standing[key] = CurrentContainer(count, place, subject)
        else:
            known.replicas = count


def _ended(found: CurrentRequests, subject: PodContext) -> None:
    """A pod of a CronJob that ended says what the next one asks for, where none runs now."""
    assert subject.top is not None
    for place in subject.places:
        key = ContainerKey(subject.namespace, subject.top.kind, subject.top.name, place.container.name)
        known = found.standing.get(key)
        if known is None or (not known.replicas and _younger(subject, known.subject)):
            found.standing[key] = CurrentContainer(0, place, subject)


def _kills(found: CurrentRequests, subject: PodContext) -> None:
    top = subject.top or Owner("Pod", subject.pod.metadata.name)
    for name, kill in of_pod(subject.pod):
        found.kills.append((ContainerKey(subject.namespace, top.kind, top.name, name), kill))


def _younger(one: PodContext, other: PodContext) -> bool:
    return (one.pod.metadata.creation_timestamp or "") > (other.pod.metadata.creation_timestamp or "")


def _prices(found: CurrentRequests, snapshot: Snapshot) -> None:
    """What a core and a GiB cost, by the nodes that tell their price."""
    priced = []
    for shape in snapshot.all(NodeShape):
        node = read_node(shape, None)
        cost = price(node, {})
        if isinstance(cost, int) and not isinstance(node.allocatable, Unreadable) and not node.cordoned:
            priced.append((cost, node.allocatable.get("cpu", 0) / 1000, node.allocatable.get("memory", 0) / (1 << 30)))
    known = of_nodes(priced)
    found.price = known or LIST
    if known is None:
        prices = f"${LIST.monthly(1000, 0):.2f} a core and ${LIST.monthly(0, 1 << 30):.2f} a GiB in a month"
        found.notes.append(f"No node tells its price: money is counted as on a general-purpose machine, {prices}.")
