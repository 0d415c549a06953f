"""What would a plan be, were one thing otherwise? Plans of the same cluster beside each other.

A preset for all pools, the pods that keep nodes for one reason free to move, or one setting let go. Each answer is a
whole plan's: it counts what could go, not what a node costs.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from trimtab.cluster.pool import PRESETS, Headroom, Pool, Spare, preset
from trimtab.cluster.reason import Code, Reason
from trimtab.compaction import reasons as r
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import plan
from trimtab.compaction.plan_types import Plan
from trimtab.scheduling.cluster_model import ClusterModel

MOST_PLANNED_NODES = 24_000
"""Nodes of all what-if plans together: a dozen plans of a large cluster take as many times as long as its own."""
MOST_KEEPERS = 8
MOST_POINTS = 60
PASSING = frozenset(
    code.name
    for code in (r.MOVED_BEFORE, r.UNSETTLED, r.GOING, r.YOUNG_POD, r.SYSTEM_YOUNG, r.BUDGET_SPENT, r.BUDGET_STALE)
)
"""Reasons of pods that end by themselves: nobody has to do anything about them."""


@dataclass(frozen=True, slots=True)
class PlanOutcome:
    """What a plan comes to."""

    nodes: int
    """Nodes that go."""
    evictions: int
    saves: int
    """In the plan's unit."""

    def beyond(self, other: "PlanOutcome") -> "PlanOutcome":
        """What this has more than the other, at least nothing."""
        return PlanOutcome(
            max(0, self.nodes - other.nodes), max(0, self.evictions - other.evictions), max(0, self.saves - other.saves)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepingReason:
    """One reason that keeps nodes, and what more would go without it."""

    code: Code
    pods: tuple[str, ...]
    """Pods (namespace/name) that may not move for this reason; empty where a setting keeps the nodes."""
    nodes: tuple[str, ...]
    """The nodes it keeps; some may stay for another reason, too."""
    more: PlanOutcome


def outcome(found: Plan) -> PlanOutcome:
    return PlanOutcome(len(found.steps), len(found.moves), found.saves)


def frontier(found: Plan) -> tuple[PlanOutcome, ...]:
    """What comes of the plan's first nodes, those first that save most for each eviction: at most `MOST_POINTS` points.

    Any of the plan's nodes may stay: the others' pods go where they would have gone.
    """
    steps = sorted(found.steps, key=lambda step: (len(step.moves) / max(1, step.saves), -step.saves, step.node))
    points, nodes, evictions, saves = [PlanOutcome(0, 0, 0)], 0, 0, 0
    for step in steps:
        nodes, evictions, saves = nodes + 1, evictions + len(step.moves), saves + step.saves
        points.append(PlanOutcome(nodes, evictions, saves))
    every = -(-len(points) // MOST_POINTS)
    return tuple(points[-1::-every][::-1])


def by_preset(
    world: ClusterModel, pools: Sequence[Pool], now: PlanningContext, known: Mapping[str, Plan]
) -> dict[str, PlanOutcome]:
    """Preset → what comes of it for all pools; `known` are plans that were made already, by preset."""
    return {
        name: outcome(known[name] if name in known else plan(world, [as_preset(pool, name) for pool in pools], now))
        for name in PRESETS
    }


def as_preset(pool: Pool, name: str) -> Pool:
    """The pool with the preset's settings; its nodes, prices and commitments stay."""
    same = {"labels": pool.labels, "everything": pool.everything, "prices": pool.prices}
    return replace(preset(name, pool.name), **same, commitments=pool.commitments)  # type: ignore[arg-type]


def keepers(
    world: ClusterModel,
    pools: Sequence[Pool],
    now: PlanningContext,
    found: Plan,
    pods: Mapping[str, Reason] | None = None,
) -> tuple[KeepingReason, ...]:
    """What keeps nodes, each priced by the plan without it alone; the dearest first.

    `pods`: pods that may not move, and why; those of the plan unless given. Reasons beyond what may be planned
    (`MOST_KEEPERS`, `MOST_PLANNED_NODES`) are left out, those of fewest nodes first.
    """
    asked = [*_of_pods(world, found.pods if pods is None else pods), *_of_settings(pools, found)]
    asked.sort(key=lambda each: (-len(each.nodes), each.code.name))
    most = min(MOST_KEEPERS, MOST_PLANNED_NODES // max(1, len(world.nodes)))
    base = outcome(found)
    priced = [
        KeepingReason(code=each.code, pods=each.pods, nodes=each.nodes, more=each.ask(world, pools, now).beyond(base))
        for each in asked[:most]
    ]
    return tuple(sorted(priced, key=lambda one: (-one.more.saves, -one.more.nodes, -len(one.nodes), one.code.name)))


@dataclass(frozen=True, slots=True)
class _Question:
    code: Code
    pods: tuple[str, ...]
    nodes: tuple[str, ...]
    change: Callable[[Pool], Pool] | None
    """None where the pods are let go instead."""

    def ask(self, world: ClusterModel, pools: Sequence[Pool], now: PlanningContext) -> PlanOutcome:
        if self.change is not None:
            return outcome(plan(world, [self.change(pool) for pool in pools], now))
        return outcome(plan(world, pools, replace(now, waived=now.waived | frozenset(self.pods))))


def _of_pods(world: ClusterModel, found: Mapping[str, Reason]) -> Iterable[_Question]:
    codes: dict[Code, list[str]] = {}
    for key, reason in found.items():
        if reason.code.name not in PASSING:
            codes.setdefault(reason.code, []).append(key)
    where = {pod.key: pod.node for pod in world.pods}
    for code, pods in codes.items():
        yield _Question(code, tuple(pods), tuple(sorted({where[key] for key in pods})), None)


_LET_GO: Mapping[Code, Callable[[Pool], Pool]] = {
    r.BUSY: lambda pool: replace(pool, under={}),
    r.NO_HEADROOM: lambda pool: replace(pool, headroom=Headroom(), spare=Spare.NONE),
    r.NO_GAIN: lambda pool: replace(pool, least_gain=0),
    r.AT_MINIMUM: lambda pool: replace(pool, min_nodes=0, min_per_zone=0),
    r.PAID: lambda pool: replace(pool, commitments={}),
}
"""Reason of a node → the pool without the setting that makes it."""


def _of_settings(pools: Sequence[Pool], found: Plan) -> Iterable[_Question]:
    for code, change in _LET_GO.items():
        nodes = tuple(sorted(node for node, reason in found.refusals.items() if reason.code is code))
        if nodes and any(change(pool) != pool for pool in pools):
            yield _Question(code, (), nodes, change)
