"""The price of each node with its source, the requests on it, the part of a saving that comes from nodes with guessed
prices, and savings as text.

A saving is in dollars a month, or in cores if no price is known.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from trimtab.cli.output import ReportPart
from trimtab.cluster.api.meta import change
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.format_count import format_count
from trimtab.cluster.node import INSTANCE_TYPE_LABEL, REGION_LABEL, NodeInfo
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pool import Goal, Pool, PoolIndex
from trimtab.cluster.reason import NotYet, Unreadable
from trimtab.compaction.cluster_after import successor_requirements
from trimtab.compaction.drain.savings import convert_amount, format_amount
from trimtab.compaction.plan_types import Plan
from trimtab.inputs.node_costs import compute_node_costs, quote_node
from trimtab.machines.prices import (
    GUESSED_SOURCES,
    PRICE_LABEL,
    SPOT_DISCOUNT_PERCENT,
    MachinePrice,
    PriceSource,
    listed_region,
)
from trimtab.scheduling.cluster_model import Again

MAX_MISSING_TYPES = 5


class Saving(ReportPart, frozen=True, kw_only=True):
    amount: float
    """The amount, in `unit`."""
    unit: str
    """The unit: `dollars a month`; `cores` if no price is known; `nodes`; or `average nodes` if the pools have
    different goals."""


class PriceReport(ReportPart, frozen=True, kw_only=True):
    """The number of nodes whose price has the same source."""

    source: str
    """The source: `file`, `label`, `settings`, `list`, `list-region-unknown`, `list-other-region`, `spot-discount`, or
    the code of the reason why there is no price."""
    nodes: int
    """The number of the nodes."""
    is_guessed: bool
    """Whether the prices are a guess, such as those of another region."""
    text: str
    """Where the prices come from, in words."""


class PoolPriceReport(ReportPart, frozen=True, kw_only=True):
    """The price of the nodes of one pool and machine type that have the same source of prices."""

    pool: str
    """The pool of the nodes; empty if the nodes are in no pool or in several pools."""
    instance_type: str
    """The machine type; empty if the nodes do not name one."""
    nodes: int
    """The number of the nodes."""
    price: Saving | None
    """The price of one node in a month; null if it is not known."""
    source: str
    """The source of the price, as in `PriceReport`."""
    is_guessed: bool
    """Whether the price is a guess, such as that of another region."""
    text: str
    """Where the price comes from, in words."""


_OWN_SOURCES = {
    PriceSource.FILE: "at the price in the --prices file",
    PriceSource.LABEL: f"priced by the label {PRICE_LABEL}",
    PriceSource.SETTINGS: "priced by the pool's settings",
}


def report_prices(inventory: Inventory, pools: Sequence[Pool]) -> list[PriceReport]:
    """Returns the prices of the nodes in pools, grouped by source, the source of most nodes first."""
    counts: Counter[tuple[str, bool, str]] = Counter()
    index = PoolIndex(pools)
    for node in inventory.nodes:
        if index.pools_of(node):
            counts[describe_price(node, quote_node(node, index))] += 1
    return [
        PriceReport(source=source, nodes=count, is_guessed=is_guessed, text=text)
        for (source, is_guessed, text), count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]


def report_pool_prices(inventory: Inventory, pools: Sequence[Pool]) -> list[PoolPriceReport]:
    """Returns the prices of the nodes in pools, grouped by pool, machine type and source, and sorted by pool and
    type."""
    index = PoolIndex(pools)
    counts: Counter[tuple[str, str, int, str, bool, str]] = Counter()
    for node in inventory.nodes:
        if index.pools_of(node):
            pool = index.only_pool_of(node)
            price = quote_node(node, index)
            amount = -1 if isinstance(price, NotYet) else price.amount
            name, type_ = pool.name if pool is not None else "", node.labels.get(INSTANCE_TYPE_LABEL, "")
            source, is_guessed, text = describe_price(node, price)
            counts[name, type_, amount, source, is_guessed, text] += 1
    return [
        PoolPriceReport(
            pool=pool,
            instance_type=type_,
            nodes=count,
            source=source,
            is_guessed=is_guessed,
            text=text,
            price=None if amount < 0 else convert_saving(amount, "micro-dollars an hour"),
        )
        for (pool, type_, amount, source, is_guessed, text), count in sorted(counts.items())
    ]


def describe_price(node: NodeInfo, price: MachinePrice | NotYet) -> tuple[str, bool, str]:
    """Returns the source of a node's price, whether the price is a guess, and the source as text.

    If the node has no price, the first item is the code of the reason."""
    if isinstance(price, NotYet):
        code = price.reason.code.name
        return code, True, "that have no price of their own"
    region = listed_region(node.labels.get(INSTANCE_TYPE_LABEL, ""))
    text = (
        _OWN_SOURCES.get(price.source)
        or {
            PriceSource.LIST: f"at the list price of the region {region}",
            PriceSource.LIST_REGION_UNKNOWN: f"at the list price of {region}, a guess because their labels name no "
            "region",
            PriceSource.LIST_OTHER_REGION: f"at the list price of {region}, a guess because Trimtab has none for "
            f"{node.labels.get(REGION_LABEL, '')}",
            PriceSource.SPOT_DISCOUNT: f"at a guessed spot price, {SPOT_DISCOUNT_PERCENT} % below the list price of "
            f"{region}",
        }[price.source]
    )
    return price.source.value, price.source in GUESSED_SOURCES, text


def sum_guessed_savings(inventory: Inventory, pools: Sequence[Pool], plan: Plan) -> int:
    """Returns the part of the plan's saving that comes from nodes with guessed prices, in the unit of the plan; 0 if
    the plan's unit is not money."""
    if plan.unit != "micro-dollars an hour":
        return 0
    nodes, index = {node.name: node for node in inventory.nodes}, PoolIndex(pools)
    return sum(step.saves for step in plan.all_steps if _is_guess(quote_node(nodes[step.node], index)))


def _is_guess(price: MachinePrice | NotYet) -> bool:
    return isinstance(price, NotYet) or price.source in GUESSED_SOURCES


def note_missing_prices(inventory: Inventory, pools: Sequence[Pool]) -> list[str]:
    """Returns a note with the machine types that have no price; none if all prices are known, or no pool minimizes
    cost."""
    index = PoolIndex(pools)
    prices = {
        node.name: quote_node(node, index)
        for node in inventory.nodes
        if any(pool.goal is Goal.COST for pool in index.pools_of(node))
    }
    # The reason of a missing price has the machine type in `have`.
    missing = Counter(price.have for price in prices.values() if isinstance(price, NotYet))
    if not missing:
        return []
    types = ", ".join(f"{name}: {count}" for name, count in sorted(missing.items())[:MAX_MISSING_TYPES])
    more = (
        f" and {format_count(len(missing) - MAX_MISSING_TYPES, 'more type')}"
        if len(missing) > MAX_MISSING_TYPES
        else ""
    )
    is_all_missing = missing.total() == len(prices)
    consequence = (
        "savings are counted in cores"
        if is_all_missing
        else "their prices are estimated from the price of a core of the other nodes"
    )
    count = len(inventory.machines)
    return [
        f"the prices of {missing.total()} of {format_count(count, 'node')} are not known ({types}{more}): {consequence}"
    ]


def convert_saving(amount: int, unit: str) -> Saving:
    """Returns an amount of a plan in the unit of the report."""
    converted, name = convert_amount(amount, unit)
    return Saving(amount=converted, unit=name)


def format_saving(saving: Saving) -> str:
    """Returns the saving as text, such as "$1,234 a month" or "5,390 cores"."""
    return format_amount(saving.amount, saving.unit)


class Fill(ReportPart, frozen=True, kw_only=True):
    """The sum of requests on a node, without pods that have ended."""

    cpu: int
    """The requested millicores."""
    memory: int
    """The requested bytes."""
    pods: int
    """The number of pods."""


class NodeReport(ReportPart, frozen=True, kw_only=True):
    """The requests on a node before and after the plan."""

    name: str
    """The name of the node."""
    pool: str
    """The node's pool; empty if the node is in no pool or in several pools."""
    instance_type: str
    """The machine type; empty if the node does not name one."""
    zone: str
    """The zone of the node; empty if the node does not name one."""
    cost: Saving
    """The cost of the node in a month. If only this node's price is unknown, the cost is estimated from its cores.

    If no price is known at all, the number of the node's cores."""
    cpu: int
    """The allocatable millicores; 0 if they cannot be read."""
    memory: int
    """The allocatable bytes; 0 if they cannot be read."""
    before: Fill
    """The requests before the plan."""
    after: Fill | None
    """The requests after the plan; null if the node is removed."""


def report_nodes(
    inventory: Inventory,
    pools: Sequence[Pool],
    removed: Iterable[str],
    targets: Mapping[str, str],
    readmitted_requests: Again | None = None,
) -> list[NodeReport]:
    """Returns the report of every node before and after the plan.

    `targets`: moved pod (namespace/name) → its node after the plan. `readmitted_requests`: returns the requests of a
    pod after its move.
    """
    removed_nodes = set(removed)
    # Tuples instead of Fill values: a large cluster has tens of thousands of pods.
    before: dict[str, tuple[int, int, int]] = {}
    for pod in inventory.pods:
        _add_pod(before, pod, pod.node)
    after = before.copy()
    for pod in inventory.pods if targets else ():
        target = targets.get(pod.key)
        if target is not None:
            _add_pod(after, pod, pod.node, -1)
            _add_pod(after, change(pod, requirements=successor_requirements(pod, readmitted_requests)), target)
    costs, unit = compute_node_costs(inventory, pools)
    index = PoolIndex(pools)
    return [
        _report_node(
            node,
            pool.name if (pool := index.only_pool_of(node)) else "",
            convert_saving(costs[node.name], unit),
            before,
            after,
            removed_nodes,
        )
        for node in inventory.machines
    ]


def _add_pod(sums: dict[str, tuple[int, int, int]], pod: PodInfo, node: str, times: int = 1) -> None:
    """Adds to node → (cpu, memory, pods) what the pod uses of the node; -1 `times` removes it."""
    if node and not pod.is_finished:
        requests, (cpu, memory, count) = pod.requirements.requests, sums.get(node, _EMPTY)
        if not isinstance(requests, Unreadable):
            cpu, memory = cpu + times * requests.get("cpu", 0), memory + times * requests.get("memory", 0)
        sums[node] = (cpu, memory, count + times)


_EMPTY = (0, 0, 0)


def _to_fill(sums: tuple[int, int, int]) -> Fill:
    return Fill(cpu=sums[0], memory=sums[1], pods=sums[2])


def _report_node(
    node: NodeInfo,
    pool: str,
    costs: Saving,
    before: Mapping[str, tuple[int, int, int]],
    after: Mapping[str, tuple[int, int, int]],
    removed_nodes: set[str],
) -> NodeReport:
    allocatable = {} if isinstance(node.allocatable, Unreadable) else node.allocatable
    return NodeReport(
        name=node.name,
        pool=pool,
        instance_type=node.labels.get(INSTANCE_TYPE_LABEL, ""),
        zone=node.zone,
        cost=costs,
        cpu=allocatable.get("cpu", 0),
        memory=allocatable.get("memory", 0),
        before=_to_fill(before.get(node.name, _EMPTY)),
        after=None if node.name in removed_nodes else _to_fill(after.get(node.name, _EMPTY)),
    )
