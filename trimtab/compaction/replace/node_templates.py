"""The next node of each node group, as far as its present nodes show it.

A new node of a group is like the present ones of the same zone: it has the labels and the taints that all of them have
in common, the smallest of their allocatable amounts, and the pods of their DaemonSets. Labels that name a single node
are left out, and so are those that differ between nodes of one group and zone anywhere, such as a rack. The group of a
node comes from the cluster autoscaler's status; if no status names groups, the pools that the platform's labels name
count as node groups.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TypeVar

from trimtab.cluster.api.core import Taint
from trimtab.cluster.api.meta import change
from trimtab.cluster.autoscaler_flags import MAX_NODES_TOTAL
from trimtab.cluster.cluster_autoscaler import Autoscaler, NodeGroupStatus
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.node import (
    ARCH_LABELS,
    AUTOSCALER_TAINTS,
    HOSTNAME_LABEL,
    INSTANCE_TYPE_LABEL,
    OS_LABELS,
    REGION_LABEL,
    ZONE_LABEL,
    NodeInfo,
    group_of,
)
from trimtab.cluster.node_nature import NodeKind
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pool import KEEP_ANNOTATION, Pool, PoolIndex, pool_name
from trimtab.cluster.pool_labels import POOL_LABELS
from trimtab.cluster.reason import NotYet, Reason, Unreadable
from trimtab.cluster.resources import Amounts, larger_amounts
from trimtab.compaction.candidates import STARTUP_TAINTS, UNINITIALIZED
from trimtab.compaction.replace import reasons as r
from trimtab.machines.prices import PRICE_KEYS, is_spot, quote_price

T = TypeVar("T")
_NO_MEMBERS = (NodeKind.KARPENTER, NodeKind.CONTROL_PLANE, NodeKind.SERVERLESS, NodeKind.EDGE, NodeKind.SLICE_HOST)
_LABELS_OF_TYPES = (INSTANCE_TYPE_LABEL, REGION_LABEL, ZONE_LABEL, *ARCH_LABELS, *OS_LABELS)
"""Labels that a node has whatever its group is, so that a description of a group needs another one."""
_PASSING_TAINTS = (*AUTOSCALER_TAINTS, *UNINITIALIZED)
"""Keys of taints that come and go, so that they say nothing about the next node of a group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTemplate:
    """The next node of one node group in one zone."""

    group: str
    zone: str
    node: NodeInfo
    """The node; its name is empty."""
    members: frozenset[str]
    """The names of the present nodes of the group. None of them is replaced by the new one: the pods of the others
    could as well move to it."""
    daemons: tuple[PodInfo, ...]
    """A pod of each DaemonSet, and each static pod, that runs on a present node of the group in the zone."""
    price: int
    """The price in micro-dollars an hour: the highest of the present nodes."""
    max_new_nodes: int | None
    """How many nodes the group may still get, or None if its maximum is not known."""
    label: tuple[str, str]
    """A label that the nodes of the group have, and no other node of the zone."""
    is_assumed: bool
    """Whether no autoscaler names the group, so that a pool of the platform counts as one."""

    def build_node(self, name: str) -> NodeInfo:
        """Returns the new node with this name. It is annotated so that no plan drains it."""
        labels = {**self.node.labels, HOSTNAME_LABEL: name}
        return replace(self.node, name=name, labels=labels, annotations={KEEP_ANNOTATION: "true"})

    def build_daemons(self, name: str) -> list[PodInfo]:
        """Returns the pods of DaemonSets, and the static pods, that run on the new node of this name."""
        return [
            change(pod, name=f"{pod.name}-{name}", uid=f"{pod.uid}-{name}", node=name, likeness=-1)
            for pod in self.daemons
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTemplates:
    """The templates of all node groups that may get a node, and the reasons why the others may not."""

    templates: tuple[NodeTemplate, ...]
    refusals: Mapping[str, Reason]
    """Node group → why it gets no part in a replacement."""
    is_assumed: bool
    """Whether no autoscaler names its groups, so that the pools of the platform count as node groups."""
    members: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Node group → the names of its present nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    name: str
    status: NodeGroupStatus | None
    nodes: tuple[NodeInfo, ...]


def add_new_nodes(
    inventory: Inventory, templates: Sequence[NodeTemplate], counts: Sequence[int]
) -> tuple[Inventory, list[list[str]]]:
    """Returns the cluster with this many new nodes of each template and the pods of their DaemonSets, and for each
    template the names of its new nodes."""
    names = {node.name for node in inventory.nodes}
    nodes, pods, places = list(inventory.nodes), list(inventory.pods), list[list[str]]()
    for template, count in zip(templates, counts, strict=True):
        own: list[str] = []
        short = template.group.rstrip("/").rpartition("/")[2]
        number = 1
        while len(own) < count:
            name = f"{short}-new-{number}"
            number += 1
            if name in names:
                continue
            names.add(name)
            own.append(name)
            nodes.append(template.build_node(name))
            pods += template.build_daemons(name)
        places.append(own)
    extended = replace(
        inventory,
        nodes=tuple(sorted(nodes, key=attrgetter("name"))),
        pods=tuple(sorted(pods, key=attrgetter("namespace", "name"))),
    )
    return extended, places


def find_templates(
    inventory: Inventory,
    autoscaler: Autoscaler | None,
    pools: Sequence[Pool],
    described: Mapping[str, NodeInfo] | None = None,
) -> NodeTemplates:
    """Returns the template of each node group and zone, sorted by price. `described`: group without a node → its next
    node."""
    described = described or {}
    groups = _list_groups(inventory, autoscaler, described)
    refusals: dict[str, Reason] = {}
    templates: list[NodeTemplate] = []
    index, full = PoolIndex(pools), list_full_groups(inventory, autoscaler)
    varying = _list_varying_labels(groups)
    fixed_pods: dict[str, list[PodInfo]] = {}
    for pod in inventory.pods:
        if (pod.is_daemon or pod.is_static) and pod.node and not pod.is_finished:
            fixed_pods.setdefault(pod.node, []).append(pod)
    for group in groups:
        outcome: list[NodeTemplate] | Reason
        if group.name in full:
            text = f"the cluster has its maximum of nodes, so node group {group.name} gives none"
            outcome = r.GROUP_AT_MAXIMUM(text)
        else:
            outcome = _make_templates(group, inventory, index, fixed_pods, varying, described.get(group.name))
        if isinstance(outcome, Reason):
            refusals[group.name] = outcome
        else:
            templates += outcome
    return NodeTemplates(
        templates=tuple(sorted(templates, key=lambda one: (one.price, one.group, one.zone))),
        refusals=refusals,
        is_assumed=any(group.status is None for group in groups),
        members={group.name: frozenset(node.name for node in group.nodes) for group in groups},
    )


def list_full_groups(inventory: Inventory, autoscaler: Autoscaler | None) -> frozenset[str]:
    """Returns the node groups that give no node because the cluster has as many nodes as their autoscaler allows."""
    return frozenset(
        group.name
        for one in (autoscaler.each if autoscaler is not None else ())
        if 0 < MAX_NODES_TOTAL.number_in(one.flags) <= len(inventory.nodes)
        for group in one.groups
    )


def _list_groups(inventory: Inventory, autoscaler: Autoscaler | None, described: Collection[str]) -> list[_Group]:
    members: dict[str, list[NodeInfo]] = {}
    statuses = {group.name: group for group in autoscaler.groups} if autoscaler is not None else {}
    for node in inventory.machines:
        if any(node.nature.sign_of(kind) for kind in _NO_MEMBERS):
            continue
        if autoscaler is not None and statuses:
            group = group_of(node, autoscaler.groups)
            name = group.name if group is not None else ""
        else:
            name = pool_name(node)
        if name:
            members.setdefault(name, []).append(node)
    return [
        _Group(name=name, status=statuses.get(name), nodes=tuple(members.get(name, ())))
        for name in sorted({*statuses, *members, *described})
    ]


def _make_templates(
    group: _Group,
    inventory: Inventory,
    index: PoolIndex,
    fixed_pods: Mapping[str, Sequence[PodInfo]],
    varying: Collection[str],
    described: NodeInfo | None,
) -> list[NodeTemplate] | Reason:
    status, name = group.status, group.name
    models = [node for node in group.nodes if node.is_staying and not isinstance(node.allocatable, Unreadable)]
    if status is not None and (status.scale_up == "Backoff" or not status.healthy):
        state = "in back-off" if status.scale_up == "Backoff" else "not healthy"
        return r.GROUP_IN_BACK_OFF(f"node group {name} is {state}, so it may give no node")
    more = _max_new_nodes(group)
    if more == 0:
        return r.GROUP_AT_MAXIMUM(f"node group {name} is at its maximum")
    if not models and described is not None:
        return _describe_template(group, described, more, inventory, fixed_pods)
    if not models:
        return r.GROUP_WITHOUT_NODE(
            f"node group {name} has no ready node, so the labels of its next node are not known"
        )
    if any(node.is_legacy for node in models):
        return r.LEGACY_GROUP(f"the nodes of node group {name} are to be given up")
    if len({(is_spot(node), node.architecture) for node in models}) > 1:
        return r.GROUP_OF_SEVERAL_KINDS(f"the nodes of node group {name} differ in capacity type or architecture")
    templates = []
    for zone in sorted({node.zone for node in models}):
        in_zone = [node for node in models if node.zone == zone]
        label = _label_of_group(group, in_zone, inventory)
        if label is None:
            continue
        prices = [quote_price(node, pool.prices if (pool := index.first_pool_of(node)) else {}) for node in in_zone]
        unknown = next((price for price in prices if isinstance(price, NotYet)), None)
        if unknown is not None:
            return r.NEW_NODE_WITHOUT_PRICE(f"the price of a node of node group {name} is not known: {unknown.reason}")
        price = max(price.amount for price in prices if not isinstance(price, NotYet))
        templates.append(
            NodeTemplate(
                group=name,
                zone=zone,
                node=replace(_common_node(in_zone, varying), price=price),
                members=frozenset(node.name for node in group.nodes),
                daemons=_list_daemons(in_zone, fixed_pods),
                price=price,
                max_new_nodes=more,
                label=label,
                is_assumed=status is None,
            )
        )
    return templates or r.GROUP_WITHOUT_LABEL(f"no label is only on the nodes of node group {name}")


def _describe_template(
    group: _Group,
    node: NodeInfo,
    more: int | None,
    inventory: Inventory,
    fixed_pods: Mapping[str, Sequence[PodInfo]],
) -> list[NodeTemplate] | Reason:
    """Returns the template of a group without a node. Every DaemonSet of the cluster takes its part of the node,
    because it is not known which of them will."""
    own = [item for item in _list_own_labels(group, [node], inventory) if item[0] not in _LABELS_OF_TYPES]
    if not own:
        return r.GROUP_WITHOUT_LABEL(f"the description of node group {group.name} has no label of its own")
    price = quote_price(node, {})
    if isinstance(price, NotYet):
        return r.NEW_NODE_WITHOUT_PRICE(f"the price of a node of node group {group.name} is not known")
    return [
        NodeTemplate(
            group=group.name,
            zone=node.zone,
            node=replace(node, price=price.amount),
            members=frozenset(member.name for member in group.nodes),
            daemons=_list_daemons(inventory.machines, fixed_pods),
            price=price.amount,
            max_new_nodes=more,
            label=min(own, key=lambda item: (item[0] not in POOL_LABELS, item)),
            is_assumed=group.status is None,
        )
    ]


def _max_new_nodes(group: _Group) -> int | None:
    status = group.status
    if status is None or status.max_size is None:
        return None
    sizes = (status.target, status.registered, len(group.nodes))
    return max(0, status.max_size - max(size for size in sizes if size is not None))


def _label_of_group(group: _Group, models: Sequence[NodeInfo], inventory: Inventory) -> tuple[str, str] | None:
    """Returns one of `_list_own_labels`, or None if there is none. Of several, a label that names a pool is chosen
    before any other."""
    own = _list_own_labels(group, models, inventory)
    if len(models) == 1:
        # A label of the only node may be the node's own: only those count that are known to name pools or types.
        short_name = group.name.rstrip("/").rpartition("/")[2]
        own = [
            item
            for item in own
            if item[0] in (*POOL_LABELS, INSTANCE_TYPE_LABEL) or short_name.lower() == item[1].lower()
        ]
    return min(own, key=lambda item: (item[0] not in POOL_LABELS, item[0] != INSTANCE_TYPE_LABEL, item), default=None)


def _list_own_labels(group: _Group, models: Sequence[NodeInfo], inventory: Inventory) -> list[tuple[str, str]]:
    """Returns the labels that these nodes of the group have, which are in one zone, and no other node of the zone.
    Together with the zone, each of them selects nodes of the group."""
    names = {node.name for node in group.nodes}
    common = _common_items([node.labels for node in models])
    others = {
        item
        for node in inventory.nodes
        if node.name not in names and node.zone == models[0].zone
        for item in node.labels.items()
    }
    return [item for item in common.items() if item not in others and item[0] != HOSTNAME_LABEL and item[1]]


def _common_items(mappings: Iterable[Mapping[str, str]]) -> dict[str, str]:
    first, *rest = mappings
    return {key: value for key, value in first.items() if all(other.get(key) == value for other in rest)}


def _list_varying_labels(groups: Iterable[_Group]) -> frozenset[str]:
    """Returns the labels that differ between nodes of one group and zone, so that it is not known which value the next
    node of any group has. Labels that show a node's group or machine type are not among them."""
    varying: set[str] = set()
    for group in groups:
        by_zone: dict[str, list[NodeInfo]] = {}
        for node in group.nodes:
            by_zone.setdefault(node.zone, []).append(node)
        for nodes in by_zone.values():
            common = _common_items([node.labels for node in nodes])
            varying.update(key for node in nodes for key in node.labels if key not in common)
    return frozenset(varying.difference(POOL_LABELS, _LABELS_OF_TYPES, PRICE_KEYS))


def _common_node(nodes: Sequence[NodeInfo], varying: Collection[str]) -> NodeInfo:
    """Returns a node with what all of these have in common, but for the labels in `varying`, and the smallest of their
    amounts."""
    first = nodes[0]
    names = {node.name for node in nodes}
    common = _common_items([node.labels for node in nodes])
    labels = {key: value for key, value in common.items() if value not in names and key not in varying}
    drivers = {driver for node in nodes for driver in node.attachable_volumes}
    csi_drivers = [node.csi_drivers for node in nodes if node.csi_drivers is not None]
    return replace(
        first,
        name="",
        uid="",
        labels=labels,
        annotations={},
        taints=_lasting_taints(nodes),
        is_cordoned=False,
        is_ready=True,
        allocatable=_least_amounts([node.allocatable for node in nodes]),
        capacity=_least_amounts([node.capacity for node in nodes]),
        created=None,
        provider_id="",
        attachable_volumes={
            driver: min(node.attachable_volumes[driver] for node in nodes if driver in node.attachable_volumes)
            for driver in drivers
        },
        csi_drivers=frozenset.intersection(*csi_drivers) if len(csi_drivers) == len(nodes) else None,
        runtime_handlers=_same_or(nodes, lambda node: node.runtime_handlers, None),
        declared_features=_same_or(nodes, lambda node: node.declared_features, None),
        has_strict_groups=_same_or(nodes, lambda node: node.has_strict_groups, None),
        kubelet_version=_same_or(nodes, lambda node: node.kubelet_version, ""),
        container_runtime=_same_or(nodes, lambda node: node.container_runtime, ""),
        operating_system=_same_or(nodes, lambda node: node.operating_system, ""),
        architecture=_same_or(nodes, lambda node: node.architecture, ""),
        lifecycle=(),
    )


def _same_or(nodes: Sequence[NodeInfo], read: Callable[[NodeInfo], T], otherwise: T) -> T:
    """Returns the value that all nodes have, or `otherwise` if they differ."""
    first, *rest = map(read, nodes)
    return first if all(value == first for value in rest) else otherwise


def _least_amounts(amounts: Sequence[Amounts | Unreadable]) -> Amounts | Unreadable:
    first = amounts[0]
    if isinstance(first, Unreadable):
        return first
    readable = [one for one in amounts if not isinstance(one, Unreadable)]
    return {name: min(one.get(name, 0) for one in readable) for name in first}


def _lasting_taints(nodes: Sequence[NodeInfo]) -> tuple[Taint, ...]:
    """Returns every taint of any of the nodes, without those that come and go."""
    return tuple(
        dict.fromkeys(
            taint
            for node in nodes
            for taint in node.taints
            if taint.key not in _PASSING_TAINTS and not taint.key.startswith((*STARTUP_TAINTS, "node.kubernetes.io/"))
        )
    )


def _list_daemons(nodes: Sequence[NodeInfo], fixed_pods: Mapping[str, Sequence[PodInfo]]) -> tuple[PodInfo, ...]:
    """Returns one pod of each DaemonSet on the nodes, with the largest requests of any of its pods, as during a
    rollout. Static pods are those of the node that has most of them: their names differ by node."""
    daemons: dict[object, PodInfo] = {}
    static_pods: list[PodInfo] = []
    for node in nodes:
        pods = fixed_pods.get(node.name, ())
        for pod in pods:
            if pod.is_daemon:
                daemons[pod.owner] = _with_larger_requests(daemons.get(pod.owner, pod), pod)
        own = [pod for pod in pods if not pod.is_daemon]
        static_pods = own if len(own) > len(static_pods) else static_pods
    return (*daemons.values(), *static_pods)


def _with_larger_requests(pod: PodInfo, other: PodInfo) -> PodInfo:
    """Returns the pod with the larger of both requests of each resource. Requests that cannot be read stay so."""
    own, more = pod.requirements.requests, other.requirements.requests
    if isinstance(own, Unreadable) or own == more:
        return pod
    if isinstance(more, Unreadable):
        return other
    return change(pod, requirements=change(pod.requirements, requests=larger_amounts(own, more)))
