"""Reports which of Karpenter's nodes could be consolidated, and which pods prevent that.

It is only a report: Trimtab does not drain Karpenter's nodes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from trimtab.cluster.format_count import format_count
from trimtab.cluster.node_nature import NodeKind
from trimtab.cluster.pdb import PdbIndex
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pool import PRESETS
from trimtab.cluster.reason import Reason
from trimtab.cluster.timestamps import parse_duration
from trimtab.compaction import reasons as r
from trimtab.compaction.candidates import DO_NOT_DISRUPT, PlanningContext
from trimtab.compaction.plan import make_plan
from trimtab.compaction.plan_variants import KeepingReason, PlanOutcome, keeping_reasons, outcome_of
from trimtab.scheduling.cluster_model import ClusterModel


@dataclass(frozen=True, slots=True, kw_only=True)
class KarpenterOutlook:
    """What could be consolidated on Karpenter's nodes, and what prevents it."""

    nodes: int
    """The number of Karpenter's nodes."""
    pools: tuple[str, ...]
    could: PlanOutcome
    """What could be drained if only the rules that block Karpenter's own consolidation kept nodes. Karpenter can also
    replace a node by a cheaper one; that is not counted."""
    unit: str
    keepers: tuple[KeepingReason, ...]
    """The reasons that prevent consolidation, each with what could be drained without it."""


def karpenter_outlook(model: ClusterModel, now: PlanningContext) -> KarpenterOutlook | None:
    """Returns the report, or None if the cluster has no nodes of Karpenter."""
    pool_of_node = {
        node.name: (sign.key, sign.platform)
        for node in model.nodes
        if (sign := node.nature.sign_of(NodeKind.KARPENTER)) is not None
    }
    if not pool_of_node:
        return None
    labels = sorted(set(pool_of_node.values()), key=lambda label: label[1])
    pools = [replace(PRESETS["keen"], name=name, labels={key: name}, min_nodes=0) for key, name in labels]
    pods = [pod for pod in model.pods if pod.node in pool_of_node]
    blocked = dict(_blocking_pods(pods, PdbIndex.from_pdbs(model.inventory.pdbs), model, now))
    free = frozenset(pod.key for pod in pods if pod.key not in blocked)
    context = replace(now, waived_pods=free, plans_karpenter=True)
    karpenter_plan = make_plan(model, pools, context)
    priced = keeping_reasons(model, pools, context, karpenter_plan, blocked)
    return KarpenterOutlook(
        nodes=len(pool_of_node),
        pools=tuple(name for _, name in labels),
        could=outcome_of(karpenter_plan),
        unit=karpenter_plan.unit,
        keepers=tuple(reason for reason in priced if reason.pods),
    )


def _blocking_pods(
    pods: list[PodInfo], pdb_index: PdbIndex, model: ClusterModel, context: PlanningContext
) -> Iterator[tuple[str, Reason]]:
    """Yields (pod, reason) for pods that prevent Karpenter from consolidating their node (karpenter pkg/utils/pod and
    pkg/utils/pdb). The reasons are:

    - an active do-not-disrupt annotation: `true`, or a duration since the pod's start; a malformed one blocks nothing;
    - more than one PodDisruptionBudget for the pod;
    - a budget that allows no disruption, unless the pod is not ready and the budget always allows eviction of such
      pods.
    """
    for pod in pods:
        if pod.deletion_requested_at is not None:
            continue
        value = pod.annotations.get(DO_NOT_DISRUPT, "")
        if value == "true" or _is_active_duration(pod, value, context):
            yield pod.key, r.UNSAFE(f"pod {pod.key} has the annotation {DO_NOT_DISRUPT}: {value}")
            continue
        budgets = [
            model.inventory.pdbs[number]
            for number in pdb_index.matching_numbers(pod.namespace, pod.requirements.labels)
        ]
        if pod.is_static or not budgets:
            continue
        if len(budgets) > 1:
            yield pod.key, r.TWO_BUDGETS(f"{format_count(len(budgets), 'budget')} select pod {pod.key}")
        elif not budgets[0].allowed and not (budgets[0].always_evictable and not pod.is_ready):
            code = r.BUDGET_SPENT if budgets[0].max_allowed else r.BUDGET_NEVER
            yield pod.key, code(f"budget {budgets[0].key} allows no disruption of pod {pod.key}")


def _is_active_duration(pod: PodInfo, value: str, context: PlanningContext) -> bool:
    """Returns whether the annotation's value is a duration that has not expired. If the time is unknown, it counts as
    not expired."""
    duration = parse_duration(value) if value else None
    started = pod.started if pod.started is not None else pod.created
    return duration is not None and (context.now is None or started is None or context.now < started + duration)
