"""Which replacements are advised beside the drains of a plan: before them, after them, or both.

The drains of the plan never depend on a replacement. After them, the nodes that stay are compared with new nodes. Often
another order saves more: first one new node, which replaces a few nodes and has room for the pods of others, then
drains. So a few such beginnings are tried, each with a plan of the drains that follow and with the replacements after
these. The order that saves most is advised; the plain one if another saves hardly more.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.garbage_collection import without_garbage_collection
from trimtab.cluster.pool import Pool, PoolIndex
from trimtab.cluster.reason import Reason
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.cluster_after import cluster_after_drains
from trimtab.compaction.plan import make_plan
from trimtab.compaction.plan_types import Plan
from trimtab.compaction.replace.node_templates import NodeTemplates, find_templates
from trimtab.compaction.replace.plan_replacements import (
    Replacement,
    ReplacementSearch,
    is_any_replaced,
    plan_replacements,
)
from trimtab.machines.prices import price_of
from trimtab.scheduling.cluster_model import Again, build_cluster_model

MAX_COMPARED_NODES = 120
"""In larger clusters, replacements come after the drains: each other order would cost one more plan."""
BEGINNINGS = ((1, 0), (2, 0), (1, 2), (2, 2))
"""(number of replacements before the drains, weight of the number of nodes in the order of the sets)."""
LEAST_GAIN_PERCENT = 1
"""What another order must save in addition, in percent of the plain order's savings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacementAdvice:
    """Replacements, the drains between them, and what all of them save together."""

    first: tuple[Replacement, ...]
    """The replacements before the drains."""
    drains: Plan
    """The drains after `first`; if there is none, these are the drains of the plan."""
    then: tuple[Replacement, ...]
    """The replacements after the drains."""
    group_refusals: Mapping[str, Reason]
    """Node group → why it gets no part in a replacement."""
    is_assumed: bool
    """Whether no autoscaler names its groups, so that the pools of the platform count as node groups."""
    saves: int
    """What replacements and drains save together, in micro-dollars an hour; nodes without a known price are left
    out."""
    drain_saves: int
    """What the plan's drains save alone, in the same unit."""
    after_first: Inventory
    """The cluster after the replacements before the drains."""
    after: Inventory
    """The cluster after all replacements and drains."""

    @property
    def replacements(self) -> tuple[Replacement, ...]:
        """All replacements, in the order in which they hold."""
        return (*self.first, *self.then)


@without_garbage_collection()
def advise_replacements(
    inventory: Inventory,
    plan: Plan,
    pools: Sequence[Pool],
    context: PlanningContext = PlanningContext(),  # noqa: B008  a frozen value
    again: Again | None = None,
) -> ReplacementAdvice:
    """Returns the replacements beside this plan for this cluster. Equal input gives equal advice.

    `again` returns what a pod would request if it were admitted again."""
    market = _Market(inventory, pools, context, again)
    best = market.advise_after((), inventory, plan)
    if is_any_replaced(pools) and len(inventory.nodes) <= MAX_COMPARED_NODES:
        known = find_templates(inventory, context.autoscaler, pools, context.described_groups)
        least = best.saves + best.saves * LEAST_GAIN_PERCENT // 100
        for beginning, after in market.list_beginnings(known):
            advice = market.advise_after(beginning, after, make_plan(build_cluster_model(after, again), pools, context))
            if advice.saves > max(least, best.saves):
                best = advice
    drain_saves = market.price_difference(market.cluster_after_plan(inventory, plan))
    return replace(best, drain_saves=drain_saves)


@dataclass(frozen=True, slots=True)
class _Market:
    """The cluster as it is now, and how an order of replacements and drains is judged."""

    inventory: Inventory
    pools: Sequence[Pool]
    context: PlanningContext
    again: Again | None

    def advise_after(self, first: Sequence[Replacement], inventory: Inventory, plan: Plan) -> ReplacementAdvice:
        """Returns the advice with this beginning and these drains, and the replacements that follow. `inventory` is the
        cluster after the beginning."""
        drained = self.cluster_after_plan(inventory, plan)
        then = plan_replacements(drained, self.pools, self.context, self.again, plan.left)
        return ReplacementAdvice(
            first=tuple(first),
            drains=plan,
            then=then.replacements,
            group_refusals=then.group_refusals,
            is_assumed=then.is_assumed,
            saves=self.price_difference(then.after),
            drain_saves=0,
            after_first=inventory,
            after=then.after,
        )

    def list_beginnings(self, known: NodeTemplates) -> list[tuple[tuple[Replacement, ...], Inventory]]:
        """Returns the replacements with which an order may begin, each list once, and the cluster after them."""
        beginnings: dict[tuple[tuple[str, ...], ...], tuple[tuple[Replacement, ...], Inventory]] = {}
        for count, weight in BEGINNINGS if known.templates else ():
            search = ReplacementSearch.for_cluster(
                self.inventory, known, self.pools, self.context, self.again, (), Counter()
            )
            replacements = tuple(search.find_first(count, weight))
            if replacements:
                key = tuple((one.group, *one.nodes) for one in replacements)
                beginnings.setdefault(key, (replacements, search.cluster_after(replacements)))
        return list(beginnings.values())

    def cluster_after_plan(self, inventory: Inventory, plan: Plan) -> Inventory:
        """Returns the cluster after all drains of the plan."""
        target_of = {move.pod: move.target for move in plan.all_moves}
        return cluster_after_drains(inventory, {step.node for step in plan.all_steps}, target_of, self.again)

    def price_difference(self, after: Inventory) -> int:
        """Returns what the cluster costs less than now, in micro-dollars an hour. Nodes without a known price are left
        out."""
        return _sum_prices(self.inventory, self.pools) - _sum_prices(after, self.pools)


def _sum_prices(inventory: Inventory, pools: Sequence[Pool]) -> int:
    index, total = PoolIndex(pools), 0
    for node in inventory.machines:
        pool = index.first_pool_of(node)
        price = price_of(node, pool.prices if pool is not None else {})
        total += price if isinstance(price, int) else 0
    return total
