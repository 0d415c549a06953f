"""The current requests of all containers, the autoscalers that size them, and the largest request that fits on a
node."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

from trimtab.admission.pod_templates import PodTemplateLocation, read_templates
from trimtab.admission.referenced_templates import add_referenced_templates, find_template_users
from trimtab.cluster import quantity
from trimtab.cluster.api.core import Node as NodeShape
from trimtab.cluster.api.core import Taint
from trimtab.cluster.api.meta import Labels, value_or
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.kinds import DAEMON_SET, JOB, POD, REPLICA_SET, built_in
from trimtab.cluster.limit_ranges import LimitRangeBounds, RequestBound, held_limit, request_ceilings, request_floors
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.node import node_from_api as read_node
from trimtab.cluster.node_shapes import shaped_node
from trimtab.cluster.owner import OwnerKey, controller_key, kind_of_reference
from trimtab.cluster.pod import PodReader, SchedulingRequirements
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.recommendation import VpaRecommendation
from trimtab.cluster.resources import Amounts, QoS, all_containers, limits_of, pod_requests, requests_of
from trimtab.cluster.snapshot import Snapshot
from trimtab.cluster.utilization_metrics import utilization_metrics
from trimtab.cluster.whole_pods import MIN_KUBELET, parse_kubelet_version
from trimtab.cluster.yaml_documents import Document
from trimtab.histogram.batch_history import ContainerKey
from trimtab.histogram.oom_kills import OomKill
from trimtab.machines.prices import PriceFile, price_of
from trimtab.policy import autoscalers
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.pod_context import ContainerRef, PodContext
from trimtab.policy.pod_level.obstacles import KubeletVersions
from trimtab.policy.vpa_webhook import EVERYWHERE
from trimtab.scheduling.node_filters import first_untolerated_taint, matches_node_selector
from trimtab.sizing.cost import LIST_PRICE, ResourcePrice, average_price
from trimtab.sizing.request import CurrentResources, Hpa
from trimtab.usage.oom_kills import kills_of_pod
from trimtab.usage.owners import OwnerIndex

RESOURCES = ("cpu", "memory")


@dataclass(frozen=True, slots=True)
class _EligibleNode:
    """A node, with the capacity that its DaemonSet pods leave for other pods."""

    node: NodeInfo
    taints: tuple[Taint, ...]
    """The taints of the node, except temporary ones."""
    available: Amounts
    """The node's allocatable amounts minus the requests of its DaemonSet pods."""
    is_open: bool
    """Whether the node is not cordoned."""


@dataclass(slots=True)
class EligibleNodes:
    """The nodes of a snapshot whose allocatable amounts can be read. Cordoned ones are among them, because they may
    accept pods again, but no request has to fit on them."""

    nodes: list[_EligibleNode] = field(default_factory=list)
    _reader: PodReader = field(default_factory=PodReader)
    _available_by_constraints: dict[tuple[object, ...], dict[str, int]] = field(default_factory=dict)
    """A cache of the results of `_largest_available`. The key is what a pod requires of nodes.

    Most pods require nothing, so they share one entry."""

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> "EligibleNodes":
        """Returns the nodes whose allocatable amounts can be read."""
        daemons, nodes = _daemon_requests(snapshot), list[_EligibleNode]()
        for shape in snapshot.objects_of(NodeShape):
            node, stored = read_node(shape, None), shaped_node(shape)
            if stored is None or isinstance(node.allocatable, Unreadable):
                continue
            available = {name: node.allocatable.get(name, 0) - daemons.get((node.name, name), 0) for name in RESOURCES}
            nodes.append(_EligibleNode(node, stored.shape.taints, available, stored.shape.is_open))
        return cls(nodes)

    def largest_request(self, pod: Pod, container_request: Amounts) -> Mapping[str, int]:
        """Returns resource → the largest request of one container with which its pod still fits on a node.

        Only nodes that the pod may use count. If there is no such node, the mapping is empty, because an autoscaler may
        create one. `container_request` is the container's present request.
        """
        available = self._largest_available(pod)
        try:
            pod_total = pod_requests(pod.spec)
        except NotAQuantity:
            pod_total = {}
        largest = {}
        for name, largest_request in available.items():
            own_request = container_request.get(name, 0)
            # The requests of a DaemonSet's own pods are subtracted already.
            others = 0 if _is_daemon(pod) else max(0, pod_total.get(name, 0) - own_request)
            # At least the present request: with it the pod was scheduled.
            largest[name] = max(own_request, largest_request - others + (own_request if _is_daemon(pod) else 0))
        return largest

    def kubelet_versions(self, pod: Pod) -> KubeletVersions:
        """Returns the versions of the kubelets of the nodes that the pod may use, as far as pod-level resources depend
        on them."""
        requirements, is_daemon = self._reader.read_pod(pod).requirements, _is_daemon(pod)
        nodes = [one.node for one in self.nodes if is_daemon or _may_use(requirements, one)]
        versions = {node.name: parse_kubelet_version(node.kubelet_version) for node in nodes}
        return KubeletVersions(
            nodes=len(nodes),
            older=tuple(name for name, version in versions.items() if version is not None and version < MIN_KUBELET),
            unknown=tuple(name for name, version in versions.items() if version is None),
        )

    def _largest_available(self, pod: Pod) -> dict[str, int]:
        """Returns resource → the largest amount that is available on any node that the pod may use."""
        requirements, is_daemon = self._reader.read_pod(pod).requirements, _is_daemon(pod)
        key = (
            is_daemon,
            frozenset(requirements.node_selector.items()),
            requirements.node_affinity,
            requirements.tolerations,
        )
        if key not in self._available_by_constraints:
            # A DaemonSet's pod selects its node by name, but its request has to fit on every node.
            opened = [room for room in self.nodes if room.is_open]
            fitting_nodes = [room.available for room in opened if is_daemon or _may_use(requirements, room)]
            self._available_by_constraints[key] = (
                {name: max(amounts[name] for amounts in fitting_nodes) for name in RESOURCES} if fitting_nodes else {}
            )
        return self._available_by_constraints[key]


def _may_use(requirements: SchedulingRequirements, eligible: _EligibleNode) -> bool:
    return (
        matches_node_selector(requirements, eligible.node)
        and first_untolerated_taint(requirements.tolerations, eligible.taints) is None
    )


def _is_daemon(pod: Pod) -> bool:
    owner = pod.metadata.controller_owner
    return owner is not None and kind_of_reference(owner) == DAEMON_SET


def _daemon_requests(snapshot: Snapshot) -> dict[tuple[str, str], int]:
    """Returns (node, resource) → the sum of the requests of DaemonSet pods."""
    sums: dict[tuple[str, str], int] = {}
    for pod in snapshot.objects_of(Pod):
        if not _is_daemon(pod) or not value_or(pod.spec.node_name, ""):
            continue
        try:
            requests = pod_requests(pod.spec)
        except NotAQuantity:
            continue
        for resource in RESOURCES:
            key = (pod.spec.node_name, resource)
            sums[key] = sums.get(key, 0) + requests.get(resource, 0)
    return sums


SIZED_RESOURCES = ("cpu", "memory")
FINISHED = ("Succeeded", "Failed")


@dataclass(slots=True)
class CurrentContainer:
    """One container of one workload, as the newest pod of the workload has it."""

    replicas: int
    container_ref: ContainerRef
    pod_context: PodContext

    def current_resources(
        self, resource: str, nodes: EligibleNodes, other: VpaRecommendation | None = None
    ) -> CurrentResources:
        """Returns the container's present resources and the autoscalers that size it.

        `other` is the recommendation of a VPA that is not in the snapshot.
        """
        manager = autoscalers.find_managing_vpa(self.pod_context)
        request, limit = self.scheduler_amount("request", resource), self.scheduler_amount("limit", resource)
        bounds = self.pod_context.facts.bounds.get(self.pod_context.namespace, {}).get(resource)
        floors, ceilings = ((), ()) if bounds is None else self._limit_range_bounds(resource, bounds)
        return CurrentResources(
            resource=resource,
            request=request if request is not None else limit,
            limit=limit,
            role=self.container_ref.role,
            qos=self.pod_context.qos,
            replicas=self.replicas,
            hpa=find_hpa(self.pod_context, resource),
            vpa=autoscalers.vpa_constraints_for(manager, self.pod_context, self.container_ref, resource),
            vpa_down=_inactive_vpa_name(self.pod_context),
            advice=autoscalers.find_vpa_recommendation(self.pod_context, self.container_ref, resource) or other,
            most=self._largest_request(nodes, resource),
            floors=floors,
            ceilings=ceilings,
        )

    def _limit_range_bounds(
        self, resource: str, bounds: LimitRangeBounds
    ) -> tuple[tuple[RequestBound, ...], tuple[RequestBound, ...]]:
        """Returns the lower and the upper bounds of the container's request."""
        # The limit of a Guaranteed pod changes with its request.
        if self.pod_context.qos is QoS.GUARANTEED:
            written, limit = None, None
        else:
            written = limits_of(self.container_ref.container.resources).get(resource)
            limit = held_limit(bounds, written)
        try:
            ceilings = request_ceilings(resource, bounds, limit, is_added=written is None)
            return request_floors(resource, bounds, limit), ceilings
        except NotAQuantity:
            return (), ()

    def _largest_request(self, nodes: EligibleNodes, resource: str) -> int | None:
        requests = {
            name: self.scheduler_amount("request", name) or self.scheduler_amount("limit", name) or 0
            for name in SIZED_RESOURCES
        }
        return nodes.largest_request(self.pod_context.pod, requests).get(resource)

    @property
    def merged_labels(self) -> Labels:
        """The labels of the pods, together with the labels of their namespace that the pods do not have."""
        of_namespace = self.pod_context.facts.namespaces.get(self.pod_context.namespace, {})
        return {**of_namespace, **value_or(self.pod_context.pod.metadata.labels, {})}

    def scheduler_amount(self, request_or_limit: str, resource: str) -> int | None:
        """Returns the request or the limit as the scheduler counts it; None if the container has none, or if the value
        is invalid."""
        resources = self.container_ref.container.resources
        text = (requests_of(resources) if request_or_limit == "request" else limits_of(resources)).get(resource)
        try:
            return None if text is None else quantity.scheduler_value(resource, text)
        except NotAQuantity:
            return None


def _inactive_vpa_name(pod_context: PodContext) -> str:
    """Returns the name of the VPA that would size the pod if the VPA's webhook could change pods; empty if there is no
    such VPA."""
    if pod_context.facts.vpa_acts:
        return ""
    acting = PodContext(
        pod=pod_context.pod, namespace=pod_context.namespace, facts=replace(pod_context.facts, vpa_reach=EVERYWHERE)
    )
    vpa = autoscalers.find_managing_vpa(acting)
    return vpa.metadata.name if vpa else ""


def find_hpa(pod_context: PodContext, resource: str) -> Hpa | None:
    """Returns the HPA that scales the pod's workload by the utilization of this resource; None if there is no such HPA.

    Utilization is the usage in percent of the request."""
    for owner in pod_context.owners:
        for autoscaler in pod_context.facts.hpas.get(owner, ()):
            # The HPA's target in percent of this resource's request; None if the HPA does not scale by it.
            target = next((one.percent for one in utilization_metrics(autoscaler) if one.resource == resource), None)
            if target is not None:
                return Hpa(name=autoscaler.metadata.name, target=target or None)
    return None


@dataclass(slots=True)
class CurrentRequests:
    """The current containers of a snapshot with all data that sizing needs except usage."""

    containers: dict[ContainerKey, CurrentContainer] = field(default_factory=dict)
    pods: dict[tuple[str, str], OwnerKey] = field(default_factory=dict)
    """(namespace, pod) → the topmost owner, for pods that are not finished."""
    labels: dict[tuple[str, str], Labels] = field(default_factory=dict)
    """(namespace, pod) → the labels of the pod, for the same pods."""
    finished_pods: dict[tuple[str, str], OwnerKey] = field(default_factory=dict)
    owners: Mapping[OwnerKey, OwnerKey | None] = field(default_factory=dict)
    """A workload, or an object between a workload and its pods → its controller, or None if it has none."""
    kills: list[tuple[ContainerKey, OomKill]] = field(default_factory=list)
    """The OOM kills, as the status of pods shows them."""
    nodes: EligibleNodes = field(default_factory=EligibleNodes)
    price: ResourcePrice = LIST_PRICE
    templates: dict[OwnerKey, PodTemplateLocation] = field(default_factory=dict)
    """Workload → its pod template, if the snapshot has the workload itself."""
    notes: list[str] = field(default_factory=list)

    def find_pod(self, owner: OwnerKey, containers: Iterable[ContainerKey]) -> Pod | None:
        """Returns a pod of a workload as its template describes it; the newest running pod if the template is not known
        or does not have all of these containers. None if none of the containers is in the snapshot."""
        known = {key.name: self.containers[key] for key in containers if key in self.containers}
        if not known:
            return None
        template = self.templates.get(owner)
        if template is not None and known.keys() <= {one.name for one in all_containers(template.pod.spec)}:
            return template.pod
        pods = (one.pod_context.pod for one in known.values())
        return max(pods, key=lambda pod: pod.metadata.creation_timestamp or "")

    def owner_index(self) -> OwnerIndex:
        """Returns what the snapshot knows about the owners of pods, including those that are gone."""
        return OwnerIndex(
            pods={**self.pods, **self.finished_pods},
            owners=self.owners,
            live_pods=self.pods.items,
            others={container.owner for container in self.containers},
        )


NO_PRICES = PriceFile({}, {})


def read_current_requests(
    snapshot: Snapshot, documents: Collection[Document], facts: ClusterFacts, prices: PriceFile = NO_PRICES
) -> CurrentRequests:
    """Returns the requests of running pods, and of the pod templates of workloads without a running pod.

    `prices`: the prices of nodes that the user gave."""
    all_documents = add_referenced_templates(documents)
    facts = replace(facts, owners={**facts.owners, **dict(_owners_of_pods(snapshot, facts.owners))})
    template_users = find_template_users(documents)
    # The pods of a Deployment and of the Rollout that takes its template are pods of one workload.
    owners = {**facts.owners, **template_users}
    current = CurrentRequests(nodes=EligibleNodes.from_snapshot(snapshot), owners=owners)
    for pod in snapshot.objects_of(Pod):
        subject = PodContext(pod=pod, namespace=pod.metadata.namespace or "default", facts=facts)
        _add_oom_kills(current, subject)
        is_finished = pod.status.phase in FINISHED
        (current.finished_pods if is_finished else current.pods)[subject.namespace, pod.metadata.name] = _top(subject)
        if not is_finished:
            current.labels[subject.namespace, pod.metadata.name] = value_or(pod.metadata.labels, {})
            _add_pod(current, subject, 1)
    # After all running pods: a finished pod of a CronJob counts only if none runs.
    for pod in snapshot.objects_of(Pod):
        subject = PodContext(pod=pod, namespace=pod.metadata.namespace or "default", facts=facts)
        if pod.status.phase in FINISHED and subject.top_owner is not None and subject.top_owner.kind == "CronJob":
            _add_finished_pod(current, subject)
    _add_templates(current, all_documents, facts, template_users)
    _set_prices(current, snapshot, prices)
    return current


def _owners_of_pods(
    snapshot: Snapshot, owners: Mapping[OwnerKey, OwnerKey | None]
) -> Iterator[tuple[OwnerKey, OwnerKey | None]]:
    """Yields each pod that owns other objects, with its controller: the pods of a group whose leader is a pod belong
    to the leader's workload (LeaderWorkerSet)."""
    leaders = {owner for owner in owners.values() if owner is not None and owner.kind == POD}
    for pod in snapshot.objects_of(Pod):
        namespace = pod.metadata.namespace or "default"
        key = OwnerKey(namespace, POD, pod.metadata.name)
        if key in leaders:
            yield key, controller_key(pod.metadata, namespace)


_REVISIONS = (REPLICA_SET, JOB, built_in("ReplicationController"))
"""The kinds of which a workload owns several, most of them without a running pod."""


def _add_templates(
    current: CurrentRequests, documents: Iterable[Document], facts: ClusterFacts, template_users: Collection[OwnerKey]
) -> None:
    """Add the workloads without a pod, such as one that is scaled to zero, by their templates.

    The template of an object that has a controller belongs to the controller. It counts only if the controller has no
    template itself, and then not if it is one revision of several. Nor does an object without replicas count whose
    template a Rollout takes."""
    workloads = {key.owner for key in current.containers}
    located = [
        template
        for template in chain.from_iterable(map(read_templates, documents))
        if isinstance(template, PodTemplateLocation) and template.path
    ]
    current.templates = {template.key: template for template in located}
    own_templates = current.templates.keys()
    for template in located:
        subject = PodContext(pod=template.pod, namespace=template.namespace, facts=template.with_owners(facts))
        top = _top(subject)
        is_own = top == template.key
        if top in workloads or (template.key in template_users and not template.replicas):
            continue
        if is_own or (top not in own_templates and template.kind not in _REVISIONS):
            _add_pod(current, subject, template.replicas)


def _top(pod_context: PodContext) -> OwnerKey:
    return pod_context.top_owner or OwnerKey(pod_context.namespace, POD, pod_context.pod.metadata.name)


def _add_pod(current: CurrentRequests, pod_context: PodContext, replicas: int) -> None:
    top = _top(pod_context)
    for place in pod_context.container_refs:
        key = ContainerKey(pod_context.namespace, top.kind, top.name, place.container.name)
        existing = current.containers.get(key)
        count = replicas + (existing.replicas if existing else 0)
        if existing is None or _is_newer(pod_context, existing.pod_context):
            current.containers[key] = CurrentContainer(count, place, pod_context)
        else:
            existing.replicas = count


def _add_finished_pod(current: CurrentRequests, pod_context: PodContext) -> None:
    """Add a pod of a CronJob that has ended. If no pod of the CronJob runs now, its next pod is expected to have the
    same requests."""
    assert pod_context.top_owner is not None
    for place in pod_context.container_refs:
        key = ContainerKey(
            pod_context.namespace, pod_context.top_owner.kind, pod_context.top_owner.name, place.container.name
        )
        existing = current.containers.get(key)
        if existing is None or (not existing.replicas and _is_newer(pod_context, existing.pod_context)):
            current.containers[key] = CurrentContainer(0, place, pod_context)


def _add_oom_kills(current: CurrentRequests, pod_context: PodContext) -> None:
    top = _top(pod_context)
    for name, kill in kills_of_pod(pod_context.pod):
        current.kills.append((ContainerKey(pod_context.namespace, top.kind, top.name, name), kill))


def _is_newer(one: PodContext, other: PodContext) -> bool:
    return (one.pod.metadata.creation_timestamp or "") > (other.pod.metadata.creation_timestamp or "")


def _set_prices(current: CurrentRequests, snapshot: Snapshot, prices: PriceFile) -> None:
    """Set the price of a core and of a GiB, by the nodes whose price is known."""
    priced_nodes = []
    for shape in snapshot.objects_of(NodeShape):
        node = read_node(shape, None)
        cost = price_of(replace(node, price=prices.price_of(node)), {})
        if isinstance(cost, int) and not isinstance(node.allocatable, Unreadable) and not node.is_cordoned:
            priced_nodes.append(
                (cost, node.allocatable.get("cpu", 0) / 1000, node.allocatable.get("memory", 0) / (1 << 30))
            )
    node_price = average_price(priced_nodes)
    current.price = node_price or LIST_PRICE
    if node_price is None:
        core, gib = LIST_PRICE.monthly_cost(1000, 0), LIST_PRICE.monthly_cost(0, 1 << 30)
        amounts = f"${core:.2f} a core and ${gib:.2f} a GiB in a month"
        current.notes.append(
            f"No node has a price, so costs are computed with the prices of a general-purpose machine, {amounts}."
        )
