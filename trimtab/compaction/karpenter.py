"""What could go of the nodes that Karpenter consolidates itself, and which pods keep it from them?

Nothing of it is ever done: Trimtab leaves Karpenter's nodes alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from trimtab.cluster.pdb import PdbIndex
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pool import PRESETS
from trimtab.cluster.reason import Reason
from trimtab.cluster.timestamps import seconds_of
from trimtab.compaction import reasons as r
from trimtab.compaction.blockers import DO_NOT_DISRUPT
from trimtab.compaction.candidates import KARPENTER_POOL, PlanningContext
from trimtab.compaction.plan import plan
from trimtab.compaction.plan_variants import KeepingReason, PlanOutcome, keepers, outcome
from trimtab.scheduling.cluster_model import ClusterModel


@dataclass(frozen=True, slots=True, kw_only=True)
class KarpenterOutlook:
    nodes: int
    """Nodes of Karpenter's."""
    pools: tuple[str, ...]
    could: PlanOutcome
    """What could go if nothing but what blocks Karpenter's consolidation kept nodes. That Karpenter may also replace a
    node by a cheaper one is not counted."""
    unit: str
    keepers: tuple[KeepingReason, ...]
    """Its blockers, each priced."""


def outlook(world: ClusterModel, now: PlanningContext) -> KarpenterOutlook | None:
    """None where no node is Karpenter's."""
    mine = {node.name: node.labels[KARPENTER_POOL] for node in world.nodes if KARPENTER_POOL in node.labels}
    if not mine:
        return None
    names = sorted(set(mine.values()))
    pools = [replace(PRESETS["keen"], name=name, labels={KARPENTER_POOL: name}, min_nodes=0) for name in names]
    pods = [pod for pod in world.pods if pod.node in mine]
    blocked = dict(_blocked(pods, PdbIndex.of(world.inventory.budgets), world, now))
    free = frozenset(pod.key for pod in pods if pod.key not in blocked)
    moment = replace(now, waived=free, plans_karpenter=True)
    found = plan(world, pools, moment)
    priced = keepers(world, pools, moment, found, blocked)
    return KarpenterOutlook(
        nodes=len(mine), pools=tuple(names), could=outcome(found), unit=found.unit,
        keepers=tuple(one for one in priced if one.pods),
    )  # fmt: skip


def _blocked(
    pods: list[PodInfo], guard: PdbIndex, world: ClusterModel, now: PlanningContext
) -> Iterator[tuple[str, Reason]]:
    """Pods that block Karpenter's consolidation of their node (karpenter pkg/utils/pod and pkg/utils/pdb).

    - an active do-not-disrupt: `true`, or a duration since the pod's start; one that makes no sense blocks nothing;
    - more than one budget over the pod;
    - a budget that allows none, unless the pod is not ready and the budget always lets such pods go.
    """
    for pod in pods:
        if pod.deleted is not None:
            continue
        said = pod.annotations.get(DO_NOT_DISRUPT, "")
        if said == "true" or _lasts(pod, said, now):
            yield pod.key, r.UNSAFE(f"pod {pod.key} says {DO_NOT_DISRUPT}: {said}")
            continue
        budgets = [world.inventory.budgets[number] for number in guard.over(pod.namespace, pod.ask.labels)]
        if pod.static or not budgets:
            continue
        if len(budgets) > 1:
            yield pod.key, r.TWO_BUDGETS(f"pod {pod.key} is under {len(budgets)} budgets")
        elif not budgets[0].allowed and not (budgets[0].always and not pod.ready):
            code = r.BUDGET_SPENT if budgets[0].most else r.BUDGET_NEVER
            yield pod.key, code(f"budget {budgets[0].key} allows no disruption of pod {pod.key}")


def _lasts(pod: PodInfo, said: str, now: PlanningContext) -> bool:
    """A duration that is not over; without a clock none is."""
    lasts = seconds_of(said) if said else None
    started = pod.started if pod.started is not None else pod.created
    return lasts is not None and (now.at is None or started is None or now.at < started + lasts)
