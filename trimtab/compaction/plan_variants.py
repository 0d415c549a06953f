"""Plans of the same cluster with one thing changed, for comparison.

A variant uses one preset for all pools, lets the pods that keep nodes for one reason move, or drops one setting. Each
result is that of a whole plan: it counts the nodes that could be drained, not the cost of one node.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from trimtab.cluster.pool import PRESETS, Headroom, Pool, Spare, pool_from_preset
from trimtab.cluster.reason import Code, Reason
from trimtab.compaction import reasons as r
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import make_plan
from trimtab.compaction.plan_types import Plan
from trimtab.scheduling.cluster_model import ClusterModel

MAX_PLANNED_NODES = 24_000
"""The maximum number of nodes of all variants together: a dozen plans of a large cluster take a dozen times its own
time."""
MAX_KEEPING_REASONS = 8
MAX_FRONTIER_POINTS = 60
PASSING_REASONS = frozenset(
    code.name
    for code in (r.MOVED_BEFORE, r.UNSETTLED, r.GOING, r.YOUNG_POD, r.SYSTEM_YOUNG, r.BUDGET_SPENT, r.BUDGET_STALE)
)
"""Reasons of pods that end without any action."""


@dataclass(frozen=True, slots=True)
class PlanOutcome:
    """What a plan achieves."""

    nodes: int
    """The number of drained nodes."""
    evictions: int
    saves: int
    """In the plan's unit."""

    def minus(self, other: "PlanOutcome") -> "PlanOutcome":
        """Returns by how much this outcome exceeds the other, at least zero."""
        return PlanOutcome(
            max(0, self.nodes - other.nodes), max(0, self.evictions - other.evictions), max(0, self.saves - other.saves)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepingReason:
    """One reason that keeps nodes, and what more could be drained without it."""

    code: Code
    pods: tuple[str, ...]
    """Pods (namespace/name) that may not move for this reason; empty if a setting keeps the nodes."""
    nodes: tuple[str, ...]
    """The nodes that it keeps; some of them may stay for another reason too."""
    more: PlanOutcome


def outcome_of(of_plan: Plan) -> PlanOutcome:
    """Returns what the plan achieves."""
    return PlanOutcome(len(of_plan.all_steps), len(of_plan.all_moves), of_plan.total_savings)


def plan_frontier(of_plan: Plan) -> tuple[PlanOutcome, ...]:
    """Returns the outcomes of the plan's first nodes, most saved per eviction first: at most `MAX_FRONTIER_POINTS`
    points.

    Any of the plan's nodes may stay: the pods of the others keep their targets.
    """
    steps = sorted(of_plan.all_steps, key=lambda step: (len(step.moves) / max(1, step.saves), -step.saves, step.node))
    points, nodes, evictions, saves = [PlanOutcome(0, 0, 0)], 0, 0, 0
    for step in steps:
        nodes, evictions, saves = nodes + 1, evictions + len(step.moves), saves + step.saves
        points.append(PlanOutcome(nodes, evictions, saves))
    stride = -(-len(points) // MAX_FRONTIER_POINTS)
    return tuple(points[-1::-stride][::-1])


def outcomes_by_preset(
    model: ClusterModel, pools: Sequence[Pool], now: PlanningContext, known: Mapping[str, Plan]
) -> dict[str, PlanOutcome]:
    """Returns preset → the outcome with this preset for all pools. `known`: plans that exist already, by preset."""
    return {
        name: outcome_of(
            known[name] if name in known else make_plan(model, [as_preset(pool, name) for pool in pools], now)
        )
        for name in PRESETS
    }


def as_preset(pool: Pool, name: str) -> Pool:
    """Returns the pool with the preset's settings; its nodes, prices and commitments stay."""
    same = {"labels": pool.labels, "everything": pool.everything, "prices": pool.prices}
    return replace(pool_from_preset(name, pool.name), **same, commitments=pool.commitments)  # type: ignore[arg-type]


def keeping_reasons(
    model: ClusterModel,
    pools: Sequence[Pool],
    now: PlanningContext,
    base_plan: Plan,
    pods: Mapping[str, Reason] | None = None,
) -> tuple[KeepingReason, ...]:
    """Returns the reasons that keep nodes, each with the outcome of a plan without it alone, the largest savings first.

    `pods`: pods that may not move, and why; those of the plan by default. Reasons beyond what may be planned
    (`MAX_KEEPING_REASONS`, `MAX_PLANNED_NODES`) are left out, those with the fewest nodes first.
    """
    variants = [
        *_variants_without_pods(model, base_plan.pods if pods is None else pods),
        *_variants_without_settings(pools, base_plan),
    ]
    variants.sort(key=lambda variant: (-len(variant.nodes), variant.code.name))
    most = min(MAX_KEEPING_REASONS, MAX_PLANNED_NODES // max(1, len(model.nodes)))
    base = outcome_of(base_plan)
    reasons = [
        KeepingReason(
            code=variant.code,
            pods=variant.pods,
            nodes=variant.nodes,
            more=variant.calculate(model, pools, now).minus(base),
        )
        for variant in variants[:most]
    ]
    return tuple(
        sorted(
            reasons, key=lambda reason: (-reason.more.saves, -reason.more.nodes, -len(reason.nodes), reason.code.name)
        )
    )


@dataclass(frozen=True, slots=True)
class _Variant:
    """One variant: the pods that may move in it, or the setting that it drops."""

    code: Code
    pods: tuple[str, ...]
    nodes: tuple[str, ...]
    change: Callable[[Pool], Pool] | None
    """Drops a setting of a pool. None: pods may move instead."""

    def calculate(self, model: ClusterModel, pools: Sequence[Pool], now: PlanningContext) -> PlanOutcome:
        if self.change is not None:
            return outcome_of(make_plan(model, [self.change(pool) for pool in pools], now))
        # Waived pods count as free to move in this plan only; nothing is ever executed from a variant.
        return outcome_of(make_plan(model, pools, replace(now, waived_pods=now.waived_pods | frozenset(self.pods))))


def _variants_without_pods(model: ClusterModel, reasons: Mapping[str, Reason]) -> Iterable[_Variant]:
    codes: dict[Code, list[str]] = {}
    for key, reason in reasons.items():
        if reason.code.name not in PASSING_REASONS:
            codes.setdefault(reason.code, []).append(key)
    node_of = {pod.key: pod.node for pod in model.pods}
    for code, pods in codes.items():
        yield _Variant(code, tuple(pods), tuple(sorted({node_of[key] for key in pods})), None)


_WITHOUT_SETTING: Mapping[Code, Callable[[Pool], Pool]] = {
    r.BUSY: lambda pool: replace(pool, under={}),
    r.NO_HEADROOM: lambda pool: replace(pool, headroom=Headroom(), spare=Spare.NONE),
    r.NO_GAIN: lambda pool: replace(pool, least_gain=0),
    r.AT_MINIMUM: lambda pool: replace(pool, min_nodes=0, min_per_zone=0),
    r.PAID: lambda pool: replace(pool, commitments={}),
}
"""Reason of a node → the pool without the setting that causes it."""


def _variants_without_settings(pools: Sequence[Pool], of_plan: Plan) -> Iterable[_Variant]:
    for code, change in _WITHOUT_SETTING.items():
        nodes = tuple(sorted(node for node, reason in of_plan.refusals.items() if reason.code is code))
        if nodes and any(change(pool) != pool for pool in pools):
            yield _Variant(code, (), nodes, change)
