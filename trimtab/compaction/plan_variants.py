"""Plans of the same cluster with one thing changed, for comparison.

A variant does one of these: it uses one preset for all pools; it lets the pods move that one particular reason keeps in
place; or it leaves out one setting. Each variant is a whole plan, so its result counts all nodes that could be drained.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trimtab.cluster.pool import PRESETS, Pool, pool_from_preset, values_without_limits
from trimtab.cluster.reason import Code, Reason
from trimtab.compaction import reasons as r
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import make_plan
from trimtab.compaction.plan_types import Plan
from trimtab.scheduling.cluster_model import ClusterModel

MAX_PLANNED_NODES = 24_000
"""The maximum number of nodes in all variants together, because a dozen plans of a large cluster take a dozen times as
long as one."""
MAX_KEEPING_REASONS = 8
MAX_FRONTIER_POINTS = 60
PASSING_REASONS = frozenset(
    code.name
    for code in (r.MOVED_BEFORE, r.UNSETTLED, r.GOING, r.YOUNG_POD, r.SYSTEM_YOUNG, r.BUDGET_SPENT, r.BUDGET_STALE)
)
"""Reasons why pods may not move that end by themselves after a while."""


@dataclass(frozen=True, slots=True)
class PlanOutcome:
    """What a plan achieves: drained nodes, evictions and savings."""

    nodes: int
    """The number of drained nodes."""
    evictions: int
    saves: int
    """The savings in the plan's unit."""

    def minus(self, other: "PlanOutcome") -> "PlanOutcome":
        """Returns this outcome minus the other, number by number. A negative difference counts as zero."""
        return PlanOutcome(
            max(0, self.nodes - other.nodes), max(0, self.evictions - other.evictions), max(0, self.saves - other.saves)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepingReason:
    """One reason for which nodes stay, and what more could be drained without it."""

    code: Code
    pods: tuple[str, ...]
    """The pods (namespace/name) that may not move for this reason; empty if a setting is the reason."""
    nodes: tuple[str, ...]
    """The nodes that stay for this reason. Some of them may also stay for another reason."""
    more: PlanOutcome


def outcome_of(of_plan: Plan) -> PlanOutcome:
    """Returns what the plan achieves."""
    return PlanOutcome(len(of_plan.all_steps), len(of_plan.all_moves), of_plan.total_savings)


def plan_frontier(of_plan: Plan) -> tuple[PlanOutcome, ...]:
    """Returns points of the curve of savings against evictions: the outcomes of draining only some of the plan's nodes,
    those that save most per eviction first. At most `MAX_FRONTIER_POINTS` points.

    Any node of the plan may be left out, because the pods of the others keep their targets.
    """
    steps = sorted(of_plan.all_steps, key=lambda step: (len(step.moves) / max(1, step.saves), -step.saves, step.node))
    points, nodes, evictions, saves = [PlanOutcome(0, 0, 0)], 0, 0, 0
    for step in steps:
        nodes, evictions, saves = nodes + 1, evictions + len(step.moves), saves + step.saves
        points.append(PlanOutcome(nodes, evictions, saves))
    stride = -(-len(points) // MAX_FRONTIER_POINTS)
    return tuple(points[-1::-stride][::-1])


def outcomes_by_preset(
    model: ClusterModel, pools: Sequence[Pool], context: PlanningContext, made_plans: Mapping[str, Plan]
) -> dict[str, PlanOutcome]:
    """Returns preset → the outcome if all pools have this preset. `made_plans` has the plans that exist already, by
    preset."""
    return {
        name: outcome_of(
            made_plans[name]
            if name in made_plans
            else make_plan(model, [as_preset(pool, name) for pool in pools], context)
        )
        for name in PRESETS
    }


def as_preset(pool: Pool, name: str) -> Pool:
    """Returns the pool with the preset's settings, but its own nodes, prices and commitments."""
    same = {"labels": pool.labels, "everything": pool.everything, "prices": pool.prices}
    return replace(pool_from_preset(name, pool.name), **same, commitments=pool.commitments)  # type: ignore[arg-type]


def keeping_reasons(
    model: ClusterModel,
    pools: Sequence[Pool],
    context: PlanningContext,
    base_plan: Plan,
    pods: Mapping[str, Reason] | None = None,
) -> tuple[KeepingReason, ...]:
    """Returns the reasons for which nodes stay, each with the outcome of a plan in which only that reason is removed;
    the largest savings come first.

    `pods` are pods that may not move, and why; by default those of the plan. The number of variants is limited
    (`MAX_KEEPING_REASONS`, `MAX_PLANNED_NODES`): reasons with the fewest nodes are left out first.
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
            more=variant.calculate(model, pools, context).minus(base),
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
    """One variant of a plan: the pods that may move in it, or the setting that is left out."""

    code: Code
    pods: tuple[str, ...]
    nodes: tuple[str, ...]
    settings: Mapping[str, Any]
    """Field of `Pool` → the value that it has in this plan. Empty: the variant lets pods move instead."""

    def calculate(self, model: ClusterModel, pools: Sequence[Pool], context: PlanningContext) -> PlanOutcome:
        if self.settings:
            return outcome_of(make_plan(model, [replace(pool, **self.settings) for pool in pools], context))
        # Waived pods count as free to move in this plan only; nothing is ever executed from a variant.
        return outcome_of(
            make_plan(model, pools, replace(context, waived_pods=context.waived_pods | frozenset(self.pods)))
        )


def _variants_without_pods(model: ClusterModel, reasons: Mapping[str, Reason]) -> Iterable[_Variant]:
    codes: dict[Code, list[str]] = {}
    for key, reason in reasons.items():
        if reason.code.name not in PASSING_REASONS:
            codes.setdefault(reason.code, []).append(key)
    node_of = {pod.key: pod.node for pod in model.pods}
    for code, pods in codes.items():
        yield _Variant(code, tuple(pods), tuple(sorted({node_of[key] for key in pods})), {})


def _variants_without_settings(pools: Sequence[Pool], of_plan: Plan) -> Iterable[_Variant]:
    codes = {reason.code.name: reason.code for reason in of_plan.refusals.values()}
    for name, values in values_without_limits().items():
        nodes = tuple(sorted(node for node, reason in of_plan.refusals.items() if reason.code.name == name))
        if nodes and any(replace(pool, **values) != pool for pool in pools):
            yield _Variant(codes[name], (), nodes, values)
