"""What it costs to move all pods of a pool to new nodes of one node group: a replacement of the whole pool.

The new nodes are those of replacements (`node_templates`), and pods are judged by the same filters. Other than for a
replacement, budgets, windows and thresholds do not matter: a migration goes on until it is done. Only new nodes count,
because room on present nodes is there for others as well.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import ceil

from trimtab.cluster.api.meta import change
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.garbage_collection import without_garbage_collection
from trimtab.cluster.node import INSTANCE_TYPE_LABEL, NodeInfo
from trimtab.cluster.reason import NotYet, Unreadable
from trimtab.compaction.replace.node_templates import NodeTemplate, add_new_nodes
from trimtab.machines.prices import price_of
from trimtab.scheduling.cluster_model import Again, FreeCapacity, build_cluster_model
from trimtab.scheduling.fill_nodes import fill_nodes

MAX_NEW_NODES = 1_000
"""The largest number of new nodes that are tried."""
GROWTH = 1.3
"""If the pods do not fit, this many times as many nodes are tried."""
MAX_SCALE = 4
"""On this many times the nodes that the sums need, pods that still do not fit do not fit on any number of them."""
RESOURCES = ("cpu", "memory")


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolMigration:
    """The new nodes of one node group that take all pods of some nodes."""

    group: str
    instance_type: str
    label: tuple[str, str]
    """A label that only nodes of the group have."""
    new_nodes: int
    price_before: int
    """What the present nodes cost, in micro-dollars an hour."""
    price_after: int
    """What the new nodes cost."""
    unplaced: tuple[str, ...]
    """The pods (namespace/name) that fit on no new node of the group."""
    max_new_nodes: int | None
    """How many nodes the group may still get, or None if its maximum is not known."""

    @property
    def saves(self) -> int:
        """What the present nodes cost more than the new ones, in micro-dollars an hour."""
        return self.price_before - self.price_after

    @property
    def is_possible(self) -> bool:
        """Whether all pods fit, on no more nodes than the group may get."""
        return not self.unplaced and (self.max_new_nodes is None or self.new_nodes <= self.max_new_nodes)


@without_garbage_collection()
def plan_migration(
    inventory: Inventory, sources: Sequence[NodeInfo], templates: Sequence[NodeTemplate], again: Again | None = None
) -> PoolMigration | NotYet:
    """Returns how many new nodes of one group take all pods of these nodes; NotYet if the price of a node is not known.

    `templates`: the group's, one for each zone. `again` returns what a pod would request if it were admitted again."""
    before = 0
    for node in sources:
        price = price_of(node, {})
        if isinstance(price, NotYet):
            return price
        before += price
    names = {node.name for node in sources}
    rest = replace(
        inventory,
        nodes=tuple(node for node in inventory.nodes if node.name not in names),
        pods=tuple(
            change(pod, node="", nominated_node="") if pod.node in names else pod
            for pod in inventory.pods
            if not (pod.node in names and (pod.is_daemon or pod.is_static or pod.is_finished))
        ),
        reserved_pods=(),
    )
    moving = {pod.key for pod in inventory.pods if pod.node in names}
    zones = len(templates)
    low, most = 0, max(1, min(MAX_NEW_NODES // zones, _count_by_sums(rest, moving, templates) * MAX_SCALE))
    high = ceil(_count_by_sums(rest, moving, templates) / zones)
    placing = _place(rest, moving, templates, high, again)
    while placing.unplaced and high < most:
        low, high = high, min(most, ceil(high * GROWTH))
        placing = _place(rest, moving, templates, high, again)
    while not placing.unplaced and high - low > 1:
        middle = (low + high) // 2
        fewer = _place(rest, moving, templates, middle, again)
        if fewer.unplaced:
            low = middle
        else:
            high, placing = middle, fewer
    first = templates[0]
    limits = {template.max_new_nodes for template in templates}
    return PoolMigration(
        group=first.group,
        instance_type=first.node.labels.get(INSTANCE_TYPE_LABEL, ""),
        label=first.label,
        new_nodes=sum(placing.used),
        price_before=before,
        price_after=sum(count * template.price for count, template in zip(placing.used, templates, strict=True)),
        unplaced=placing.unplaced,
        max_new_nodes=limits.pop() if len(limits) == 1 else None,
    )


@dataclass(frozen=True, slots=True)
class _Placing:
    unplaced: tuple[str, ...]
    """The pods that do not fit."""
    used: tuple[int, ...]
    """Template → how many of its new nodes got pods."""


def _count_by_sums(inventory: Inventory, moving: Collection[str], templates: Sequence[NodeTemplate]) -> int:
    """Returns the least number of new nodes that the sums of requests need."""
    need = dict.fromkeys(RESOURCES, 0)
    for pod in inventory.pods:
        requests = pod.requirements.requests
        if pod.key in moving and not isinstance(requests, Unreadable):
            for name in RESOURCES:
                need[name] += requests.get(name, 0)
    least = 1
    for name in RESOURCES:
        free = max((_free_of(template, name) for template in templates), default=0)
        least = max(least, ceil(need[name] / free) if free > 0 else 1)
    return min(least, MAX_NEW_NODES)


def _free_of(template: NodeTemplate, name: str) -> int:
    amounts = template.node.allocatable
    if isinstance(amounts, Unreadable):
        return 0
    taken = 0
    for pod in template.daemons:
        requests = pod.requirements.requests
        taken += 0 if isinstance(requests, Unreadable) else requests.get(name, 0)
    return amounts.get(name, 0) - taken


def _place(
    inventory: Inventory,
    moving: Collection[str],
    templates: Sequence[NodeTemplate],
    count: int,
    again: Again | None,
) -> _Placing:
    """Places the moving pods on this many new nodes of each template."""
    extended, places = add_new_nodes(inventory, templates, [count] * len(templates))
    model = build_cluster_model(extended, again)
    numbers = [[model.node_numbers[name] for name in own] for own in places]
    capacity = FreeCapacity(model)
    empty = capacity.slots[:]
    waiting = [one for one in model.pending_pods if one[0].key in moving]
    left = fill_nodes(capacity, waiting, numbers)
    return _Placing(
        unplaced=tuple(sorted(pod.key for pod, _ in left)),
        used=tuple(sum(capacity.slots[number] != empty[number] for number in own) for own in numbers),
    )
