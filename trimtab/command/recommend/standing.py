"""What do containers ask for now, and who else sizes them?"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from trimtab.admission.templates import Template, template
from trimtab.cluster import quantity
from trimtab.cluster.advice import Advice
from trimtab.cluster.api.node import Node as NodeShape
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.api.scaling import HorizontalPodAutoscaler, Metric
from trimtab.cluster.documents import Document
from trimtab.cluster.node import read as read_node
from trimtab.cluster.owner import Owner
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.resources import limits_of, pod_requests, requests_of
from trimtab.cluster.snapshot import Snapshot
from trimtab.machines.prices import price
from trimtab.policy import vpa
from trimtab.policy.facts import Facts
from trimtab.policy.subject import Place, Subject
from trimtab.sizing.money import LIST, Price, of_nodes
from trimtab.sizing.request import Asks, Hpa
from trimtab.sketch.book import Container

RESOURCES = ("cpu", "memory")
FINISHED = ("Succeeded", "Failed")


@dataclass(slots=True)
class Standing:
    """One container of one workload: the newest of its pods speaks for all."""

    replicas: int
    place: Place
    subject: Subject

    def asks(self, resource: str, other: Advice | None = None) -> Asks:
        """`other`: what a VPA that is not in the snapshot advises."""
        manager = vpa.of(self.subject)
        request, limit = self.amount("request", resource), self.amount("limit", resource)
        return Asks(
            resource=resource, request=request if request is not None else limit, limit=limit, role=self.place.role,
            qos=self.subject.qos, replicas=self.replicas, hpa=hpa(self.subject, resource),
            vpa=vpa.sizing(manager, self.subject, self.place, resource), vpa_down=_down(self.subject),
            advice=vpa.advised(self.subject, self.place, resource) or other,
        )  # fmt: skip

    def amount(self, what: str, resource: str) -> int | None:
        """The scheduler's number; None where nothing (readable) is written."""
        resources = self.place.container.resources
        written = (requests_of(resources) if what == "request" else limits_of(resources)).get(resource)
        try:
            return None if written is None else quantity.of(resource, written)
        except NotAQuantity:
            return None


def _down(subject: Subject) -> str:
    """The VPA that would size it if its webhook could act."""
    if subject.facts.vpa_acts:
        return ""
    acting = Subject(pod=subject.pod, namespace=subject.namespace, facts=replace(subject.facts, vpa_acts=True))
    found = vpa.of(acting)
    return found.metadata.name if found else ""


def hpa(subject: Subject, resource: str) -> Hpa | None:
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


def _aims(metric: Metric, resource: str) -> int | None:
    for source in (metric.resource, metric.container_resource):
        if source.name == resource and source.target.type == "Utilization":
            return source.target.average_utilization
    return None


@dataclass(slots=True)
class Cluster:
    """What stands, by container."""

    standing: dict[Container, Standing] = field(default_factory=dict)
    pods: dict[tuple[str, str], Owner] = field(default_factory=dict)
    workloads: dict[tuple[str, str], Owner] = field(default_factory=dict)
    most: tuple[tuple[str, int], ...] = ()
    price: Price = LIST
    notes: list[str] = field(default_factory=list)


def stands(snapshot: Snapshot, documents: Iterable[Document], facts: Facts) -> Cluster:
    """From running pods, and from the templates of workloads without any."""
    found = Cluster()
    for (namespace, kind, name), above in facts.owners.items():
        if above is None and kind != "ReplicaSet":
            found.workloads[namespace, name] = Owner(kind, name)
    for pod in snapshot.all(Pod):
        if pod.status.phase not in FINISHED:
            _pod(found, Subject(pod=pod, namespace=pod.metadata.namespace or "default", facts=facts), 1)
    seen = {(c.namespace, c.kind, c.workload) for c in found.standing}
    for made in map(template, documents):
        if isinstance(made, Template) and made.path and (made.namespace, made.kind, made.name) not in seen:
            subject = Subject(pod=made.pod, namespace=made.namespace, facts=made.facts(facts))
            if subject.top == Owner(made.kind, made.name):
                _pod(found, subject, made.replicas)
    _nodes(found, snapshot)
    return found


def _pod(found: Cluster, subject: Subject, replicas: int) -> None:
    top = subject.top or Owner("Pod", subject.pod.metadata.name)
    if subject.pod.metadata.name:
        found.pods[subject.namespace, subject.pod.metadata.name] = top
    for place in subject.places:
        key = Container(subject.namespace, top.kind, top.name, place.container.name)
        known = found.standing.get(key)
        count = replicas + (known.replicas if known else 0)
        if known is None or _younger(subject, known.subject):
            found.standing[key] = Standing(count, place, subject)
        else:
            known.replicas = count


def _younger(one: Subject, other: Subject) -> bool:
    return (one.pod.metadata.creation_timestamp or "") > (other.pod.metadata.creation_timestamp or "")


def _nodes(found: Cluster, snapshot: Snapshot) -> None:
    nodes = [read_node(shape, None) for shape in snapshot.all(NodeShape)]
    daemons = _daemons(snapshot)
    most: dict[str, int] = {}
    priced = []
    for shape, node in zip(snapshot.all(NodeShape), nodes, strict=True):
        have = node.allocatable
        if isinstance(have, Unreadable) or shape.spec.unschedulable:
            continue
        for resource in RESOURCES:
            left = have.get(resource, 0) - daemons.get((node.name, resource), 0)
            most[resource] = max(most.get(resource, 0), left)
        cost = price(node, {})
        if isinstance(cost, int):
            priced.append((cost, have.get("cpu", 0) / 1000, have.get("memory", 0) / (1 << 30)))
    found.most = tuple(most.items())
    known = of_nodes(priced)
    found.price = known or LIST
    if known is None:
        prices = f"${LIST.monthly(1000, 0):.2f} a core and ${LIST.monthly(0, 1 << 30):.2f} a GiB in a month"
        found.notes.append(f"No node tells its price: money is counted as on a general-purpose machine, {prices}.")


def _daemons(snapshot: Snapshot) -> Mapping[tuple[str, str], int]:
    """(node, resource) → what DaemonSets' pods ask for there."""
    found: dict[tuple[str, str], int] = {}
    for pod in snapshot.all(Pod):
        owner = pod.metadata.controller
        if owner is None or owner.kind != "DaemonSet" or not pod.spec.node_name:
            continue
        try:
            asked = pod_requests(pod.spec)
        except NotAQuantity:
            continue
        for resource in RESOURCES:
            key = (pod.spec.node_name, resource)
            found[key] = found.get(key, 0) + asked.get(resource, 0)
    return found
