"""Advises replacements: one cheaper new node of a node group that exists, in place of one to four nodes.

The search works on a cluster model that also has the new nodes: some of each group, closed at first, with the pods of
their DaemonSets. So a new node is judged by the same filters as any other node, and is a domain of its own in
constraints over host names. The rules of candidates, blockers and budgets, the reserved capacity and the limits of
pools are those of the drains (`prepare_problem`). `node_sets` proposes sets by sums; a proposal is accepted if all pods
of the set, one by one, pass the filters on the new node, and if no limit of a pool forbids it.

If a group runs out of new nodes in the model, a new model is made of the cluster after the accepted replacements. A new
node is never part of a set. At last, nodes above the threshold of their pool are compared too: those that have unused
room of one resource, because another machine type may suit them better, and with new nodes of another zone, capacity
type or architecture, if the pool lets that change, all others.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.garbage_collection import without_garbage_collection
from trimtab.cluster.node import INSTANCE_TYPE_LABEL
from trimtab.cluster.pool import Pool
from trimtab.cluster.pool_values import ReplaceAcross, ReplaceMode
from trimtab.cluster.reason import Reason
from trimtab.compaction.candidates import CandidateChecker, PlanningContext
from trimtab.compaction.cluster_after import cluster_after_drains
from trimtab.compaction.plan_types import Companion, Move
from trimtab.compaction.replace.node_kinds import ReplacedKind, kind_of, list_changes
from trimtab.compaction.replace.node_sets import (
    Offer,
    Replaceable,
    ReplacementSet,
    SoftSpread,
    choose_sets,
    list_sets,
    rank_set,
)
from trimtab.compaction.replace.node_templates import NodeTemplate, NodeTemplates, add_new_nodes, find_templates
from trimtab.compaction.search.companions import list_companions
from trimtab.compaction.search.drain_order import eviction_turns, replay_drain, undo_replay
from trimtab.compaction.search.pool_limits import PoolLimits
from trimtab.compaction.search.problem import CompactionProblem, prepare_problem
from trimtab.machines.prices import price_of
from trimtab.scheduling.cluster_model import Again, ClusterModel, build_cluster_model

MAX_NEW_NODES = 8
"""The largest number of new nodes of one group and zone in one model."""
MAX_ALL_NEW_NODES = 200
"""The largest number of new nodes in one model."""
MAX_MODELS = 40
"""The largest number of models that are built for one plan."""
MAX_ATTEMPTS = 400
"""The largest number of sets whose pods are placed in one model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """One new node, and the nodes that can be drained when it is there."""

    nodes: tuple[str, ...]
    pool: str
    new_node: str
    """A name for the new node; its group will give it another one."""
    group: str
    zone: str
    instance_type: str
    label: tuple[str, str]
    """A label that only nodes of the group have."""
    moves: tuple[Move, ...]
    """Every pod of the nodes, with the new node as its target."""
    saves: int
    """What the nodes cost more than the new node, in micro-dollars an hour."""
    price: int
    """What the new node costs, in micro-dollars an hour."""
    changes: tuple[ReplaceAcross, ...] = ()
    """In what the new node differs from any of the nodes, as the pool lets it."""
    companions: tuple[Companion, ...] = ()
    """Pods on other nodes that are evicted too, because they live and die with pods that move."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacementPlan:
    """The replacements, in the order in which they were checked: each holds after the ones before."""

    replacements: tuple[Replacement, ...]
    group_refusals: Mapping[str, Reason]
    """Node group → why it gets no part in a replacement."""
    is_assumed: bool
    """Whether no autoscaler names its groups, so that the pools of the platform count as node groups."""
    after: Inventory
    """The cluster after all replacements."""

    @property
    def total_savings(self) -> int:
        """What all replacements save, in micro-dollars an hour."""
        return sum(one.saves for one in self.replacements)

    @property
    def all_moves(self) -> tuple[Move, ...]:
        """The moves of all replacements."""
        return tuple(move for one in self.replacements for move in one.moves)


@without_garbage_collection()
def plan_replacements(
    inventory: Inventory,
    pools: Sequence[Pool],
    context: PlanningContext = PlanningContext(),  # noqa: B008  a frozen value
    again: Again | None = None,
    keeps: Collection[str] = (),
) -> ReplacementPlan:
    """Returns the replacements that save money in this cluster, which is the one after the drains of the plan. Equal
    input gives an equal plan.

    `again` returns what a pod would request if it were admitted again. `keeps`: the nodes that are in no set, for
    example because they are left to the cluster autoscaler."""
    if not is_any_replaced(pools):
        return ReplacementPlan(replacements=(), group_refusals={}, is_assumed=False, after=inventory)
    known = find_templates(inventory, context.autoscaler, pools, context.described_groups)
    accepted: list[Replacement] = []
    new_nodes_of_group: Counter[str] = Counter()
    thresholds = {pool.name: pool for pool in pools}
    for searched, above in ((pools, {}), (lift_thresholds(pools), thresholds)) if known.templates else ():
        for _ in range(MAX_MODELS if searched else 0):
            search = ReplacementSearch.for_cluster(
                inventory, known, searched, context, again, keeps, new_nodes_of_group, above
            )
            more = search.find_replacements()
            accepted += more
            new_nodes_of_group.update(one.group for one in more)
            inventory = search.cluster_after(more)
            if not search.is_short_of_new_nodes:
                break
    return ReplacementPlan(
        replacements=tuple(accepted), group_refusals=known.refusals, is_assumed=known.is_assumed, after=inventory
    )


def lift_thresholds(pools: Sequence[Pool]) -> Sequence[Pool]:
    """Returns the pools without `underUsed`; an empty tuple if no pool has it."""
    if not any(pool.under and pool.replace is ReplaceMode.ADVISE for pool in pools):
        return ()
    return tuple(replace(pool, under={}, under_count=1, under_for=0) for pool in pools)


def is_any_replaced(pools: Sequence[Pool]) -> bool:
    """Returns whether replacements are advised for any of the pools."""
    return any(pool.replace is ReplaceMode.ADVISE and pool.enabled for pool in pools)


@dataclass(slots=True, eq=False)
class ReplacementSearch:
    """Finds replacements in one model, which has the new nodes beside the present ones."""

    model: ClusterModel
    problem: CompactionProblem
    templates: Sequence[NodeTemplate]
    new_nodes: list[list[int]]
    """Template → the numbers of its new nodes that are still unused."""
    max_new_nodes: Counter[str]
    """Group → how many more nodes it may get, for groups whose maximum is known."""
    keeps: Collection[str]
    again: Again | None
    thresholds: Mapping[str, Pool]
    """Pool → its settings with the threshold, if this search is about nodes above it."""
    prices: dict[int, int] = field(default_factory=dict)
    """Node → its price, for nodes that may be replaced."""
    mean_prices: dict[str, int] = field(default_factory=dict)
    """Pool → the mean price of its nodes."""
    replaced: set[int] = field(default_factory=set)
    is_short_of_new_nodes: bool = False
    """Whether a template had too few new nodes in this model."""
    _allowed: list[int] = field(init=False)
    _checker: CandidateChecker = field(init=False)
    _soft_spread: SoftSpread = field(init=False)
    _templates_of: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._allowed = [budget.allowed for budget in self.model.inventory.pdbs]
        self._checker = CandidateChecker(self.model, (), self.problem.context)
        self._soft_spread = SoftSpread(self.model, self.problem)
        self._set_prices()

    @classmethod
    def for_cluster(
        cls,
        inventory: Inventory,
        known: NodeTemplates,
        pools: Sequence[Pool],
        context: PlanningContext,
        again: Again | None,
        keeps: Collection[str],
        used: Counter[str],
        thresholds: Mapping[str, Pool] = MappingProxyType({}),
    ) -> "ReplacementSearch":
        """Returns the search in this cluster. `used`: group → its new nodes in earlier models."""
        share = max(1, MAX_ALL_NEW_NODES // len(known.templates))
        counts = []
        for template in known.templates:
            most = min(MAX_NEW_NODES, share, len(inventory.nodes))
            if template.max_new_nodes is not None:
                most = min(most, template.max_new_nodes - used[template.group])
            counts.append(most)
        extended, places = add_new_nodes(inventory, known.templates, counts)
        model = build_cluster_model(extended, again)
        new_nodes = [[model.node_numbers[name] for name in own] for own in places]
        for own_numbers in new_nodes:
            for number in own_numbers:
                model.closed_nodes[number] = 1
        problem = prepare_problem(model, pools, context)
        for pod_class in (pod_class for _, pod_class in model.daemon_pods):
            for number in (number for own_numbers in new_nodes for number in own_numbers):
                if model.node_sets[pod_class.node_set][number]:
                    problem.capacity.add_pod(pod_class, number)
        return cls(
            model=model,
            problem=problem,
            templates=known.templates,
            new_nodes=new_nodes,
            max_new_nodes=Counter(
                {
                    template.group: template.max_new_nodes - used[template.group]
                    for template in known.templates
                    if template.max_new_nodes is not None
                }
            ),
            keeps=keeps,
            again=again,
            thresholds=thresholds,
        )

    def find_replacements(self) -> list[Replacement]:
        """Returns the replacements of this model: sets are proposed and checked until no proposal holds any more."""
        accepted: list[Replacement] = []
        rejected: set[tuple[tuple[int, ...], int]] = set()
        attempts = MAX_ATTEMPTS
        while attempts > 0:
            proposals = [
                one
                for one in choose_sets(self._list_proposals(rejected), self._count_new_nodes())
                if self._has_new_node(one.offer)
            ]
            is_any_accepted = False
            for proposal in proposals:
                attempts -= 1
                replacement = self._try_set(proposal)
                if replacement is None:
                    rejected.add((proposal.nodes, proposal.offer))
                else:
                    accepted.append(replacement)
                    is_any_accepted = True
            if not proposals or not (is_any_accepted or rejected):
                break
        return accepted

    def find_first(self, count: int, weight: int) -> list[Replacement]:
        """Returns the `count` replacements that come first by their savings, compared by the nodes to the power of
        `weight`, that have no node in common and hold."""
        accepted: list[Replacement] = []
        proposals = self._list_proposals(())
        for proposal in sorted(proposals, key=lambda one: rank_set(one, weight))[:MAX_ATTEMPTS]:
            if len(accepted) == count:
                break
            if self.replaced.isdisjoint(proposal.nodes) and (replacement := self._try_set(proposal)) is not None:
                accepted.append(replacement)
        return accepted

    def cluster_after(self, replacements: Sequence[Replacement]) -> Inventory:
        """Returns the cluster after these replacements, without the new nodes that are not used."""
        unused = {self.model.nodes[number].name for own in self.new_nodes for number in own}
        target_of = {move.pod: move.target for one in replacements for move in one.moves}
        drained = {name for one in replacements for name in one.nodes}
        return cluster_after_drains(self.model.inventory, drained | unused, target_of, self.again)

    def _set_prices(self) -> None:
        totals: dict[str, list[int]] = {}
        new_nodes = {number for own in self.new_nodes for number in own}
        for number, pool in self.problem.pool_of.items():
            price = price_of(self.model.nodes[number], pool.prices)
            if isinstance(price, int) and number not in new_nodes:
                self.prices[number] = price
                totals.setdefault(pool.name, []).append(price)
        self.mean_prices = {name: sum(prices) // len(prices) for name, prices in totals.items()}

    def _list_proposals(self, rejected: Collection[tuple[tuple[int, ...], int]]) -> list[ReplacementSet]:
        """Returns the sets that the sums allow, for every template that has a new node left."""
        proposals: list[ReplacementSet] = []
        by_kind: dict[tuple[str, ReplacedKind], list[int]] = {}
        across = {pool.name: pool.replace_across for pool in self.problem.pool_of.values()}
        for node in self.problem.candidates:
            pool = self.problem.pool_of[node]
            if (
                pool.replace is ReplaceMode.ADVISE
                and node in self.prices
                and node not in self.replaced
                and self.model.nodes[node].name not in self.keeps
            ):
                by_kind.setdefault((pool.name, kind_of(self.model.nodes[node], pool.replace_across)), []).append(node)
        items: dict[int, Replaceable] = {}
        for offer_number, own in enumerate(self.new_nodes):
            if not self._has_new_node(offer_number):
                continue
            new_node = own[0]
            offer = Offer(number=offer_number, price=self.templates[offer_number].price, free=self._free_on(new_node))
            for (pool_name, kind), nodes in by_kind.items():
                if kind != kind_of(self.model.nodes[new_node], across[pool_name]):
                    continue
                replaceable = [
                    items.get(node) or items.setdefault(node, self._describe_node(node))
                    for node in nodes
                    if self.model.nodes[node].name not in self.templates[offer_number].members
                    and self._admits_all(new_node, node)
                    and self._is_worth_comparing(node, new_node)
                ]
                proposals += filter(self._soft_spread.is_kept, list_sets(offer, replaceable, self._worth_in(pool_name)))
        return [one for one in proposals if (one.nodes, one.offer) not in rejected]

    def _is_worth_comparing(self, node: int, new_node: int) -> bool:
        """Returns whether the node may be compared with this new node, in a search about nodes above the threshold: it
        has unused room of one resource, or the new node is of another kind."""
        pool = self.thresholds.get(self.problem.pool_of[node].name)
        return (
            pool is None
            or self._checker.is_under_in_part(node, pool)
            or bool(list_changes([self.model.nodes[node]], self.model.nodes[new_node]))
        )

    def _worth_in(self, name: str) -> "_Worth":
        least_gain = next(pool.least_gain for pool in self.problem.pool_of.values() if pool.name == name)
        return _Worth(least_gain=least_gain, mean_price=self.mean_prices[name])

    def _free_on(self, node: int) -> tuple[int, ...]:
        capacity = self.problem.capacity
        return (
            capacity.major[node],
            capacity.minor[node],
            capacity.slots[node],
            *(amounts[node] for amounts in capacity.other_free),
        )

    def _describe_node(self, node: int) -> Replaceable:
        pods = self.problem.pods_to_move[node]
        classes = [self.model.successor_class_of[pod] for pod in pods]
        others = [0] * len(self.model.other_resources)
        for pod_class in classes:
            for number, amount in pod_class.other_requests:
                others[number] += amount
        major, minor = sum(one.major for one in classes), sum(one.minor for one in classes)
        amounts, evictions = (major, minor, len(pods), *others), len(pods) + self.problem.extra_moves.get(node, 0)
        return Replaceable(node=node, price=self.prices[node], amounts=amounts, evictions=evictions)

    def _admits_all(self, new_node: int, node: int) -> bool:
        classes = {self.model.successor_class_of[pod] for pod in self.problem.pods_to_move[node]}
        return all(one.unjudged_reason is None and self.model.node_sets[one.node_set][new_node] == 1 for one in classes)

    def _count_new_nodes(self) -> dict[int, int]:
        return {
            number: min(len(own), self.max_new_nodes.get(self.templates[number].group, len(own)))
            for number, own in enumerate(self.new_nodes)
        }

    def _has_new_node(self, offer: int) -> bool:
        group = self.templates[offer].group
        may_grow = group not in self.max_new_nodes or self.max_new_nodes[group] > 0
        if may_grow and not self.new_nodes[offer]:
            self.is_short_of_new_nodes = True
        return may_grow and bool(self.new_nodes[offer])

    # ── one set, pod by pod ──────────────────────────────────────────────
    def _try_set(self, proposal: ReplacementSet) -> Replacement | None:
        """Returns the replacement if all pods of the set pass the filters on a new node, and no limit forbids it. Then
        it is counted; otherwise nothing has changed."""
        if not self._has_new_node(proposal.offer):
            return None
        new_node = self.new_nodes[proposal.offer][0]
        self._open_node(new_node)
        placed: list[tuple[int, Sequence[int], Mapping[int, int]]] = []
        capacity = self.problem.capacity
        for node in proposal.nodes:
            pods = eviction_turns(self.problem.pods_to_move[node], self.problem.budget_of, self._allowed)[0]
            targets = dict.fromkeys(pods, new_node)
            if not replay_drain(capacity, node, pods, targets):
                break
            placed.append((node, pods, targets))
        is_possible = len(placed) == len(proposal.nodes) and self._is_within_limits(proposal.nodes, new_node)
        if not is_possible:
            for node, placed_pods, placed_targets in reversed(placed):
                undo_replay(capacity, node, placed_pods, placed_targets)
            self._close_node(new_node)
            return None
        self.new_nodes[proposal.offer].pop(0)
        template = self.templates[proposal.offer]
        if template.group in self.max_new_nodes:
            self.max_new_nodes[template.group] -= 1
        self.replaced.update(proposal.nodes)
        return self._build_replacement(proposal, template, new_node)

    def _open_node(self, node: int) -> None:
        self.model.closed_nodes[node] = self.problem.capacity.closed_nodes[node] = 0
        if (limits := self.problem.limits[node]) is not None:
            limits.restore_node(node)

    def _close_node(self, node: int) -> None:
        if (limits := self.problem.limits[node]) is not None:
            limits.remove_node(node)
        self.model.closed_nodes[node] = self.problem.capacity.closed_nodes[node] = 1

    def _is_within_limits(self, nodes: Sequence[int], new_node: int) -> bool:
        """Returns whether every minimum and every headroom still holds. If so, the removals and the arrivals are
        counted."""
        limits = self.problem.limits
        classes = [self.model.successor_class_of[pod] for node in nodes for pod in self.problem.pods_to_move[node]]
        removed: list[tuple[PoolLimits, int]] = []
        is_allowed = True
        for node in nodes:
            own = limits[node]
            if own is None or own.rejection_reason(node) is not None:
                is_allowed = False
                break
            own.remove_node(node)
            removed.append((own, node))
        receiver = limits[new_node]
        if is_allowed:
            if receiver is not None:
                for pod_class in classes:
                    receiver.count_arrival(pod_class, new_node)
            affected = {id(one): one for one in (receiver, *(own for own, _ in removed)) if one is not None}
            if all(one.shortage_reason() is None for one in affected.values()):
                return True
            if receiver is not None:
                for pod_class in classes:
                    receiver.count_arrival(pod_class, new_node, -1)
        for own, node in reversed(removed):
            own.restore_node(node)
        return False

    def _build_replacement(self, proposal: ReplacementSet, template: NodeTemplate, new_node: int) -> Replacement:
        names, pods, budget_of = self.model.nodes, self.model.pods, self.problem.budget_of
        budgets = [budget.key for budget in self.model.inventory.pdbs]
        moves = []
        for node in proposal.nodes:
            for pod, turn in zip(
                *eviction_turns(self.problem.pods_to_move[node], budget_of, self._allowed), strict=True
            ):
                moves.append(
                    Move(
                        pod=pods[pod].key,
                        uid=pods[pod].uid,
                        source=names[node].name,
                        target=names[new_node].name,
                        budget=budgets[budget_of[pod]] if pod in budget_of else None,
                        turn=turn,
                    )
                )
        return Replacement(
            nodes=tuple(names[node].name for node in proposal.nodes),
            pool=self.problem.pool_of[proposal.nodes[0]].name,
            new_node=names[new_node].name,
            group=template.group,
            zone=template.zone,
            instance_type=template.node.labels.get(INSTANCE_TYPE_LABEL, ""),
            label=template.label,
            moves=tuple(moves),
            saves=proposal.saves,
            price=template.price,
            changes=list_changes([names[node] for node in proposal.nodes], names[new_node]),
            companions=list_companions(self.problem, proposal.nodes),
        )


@dataclass(frozen=True, slots=True)
class _Worth:
    """Whether a saving is worth its evictions by the settings of one pool."""

    least_gain: int
    mean_price: int

    def __call__(self, saves: int, evictions: int) -> bool:
        return saves * 1000 >= self.least_gain * self.mean_price * evictions
