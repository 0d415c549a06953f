"""The comparison of a plan with others: the outcome of each preset, the cost of each reason that keeps nodes, and
Karpenter's nodes."""

from collections.abc import Sequence
from dataclasses import dataclass

from trimtab.cli.output import ReportPart
from trimtab.cli.reports.node_costs import Saving, convert_saving
from trimtab.compaction.karpenter import karpenter_outlook
from trimtab.compaction.plan_types import Plan
from trimtab.compaction.plan_variants import KeepingReason, keeping_reasons, outcomes_by_preset
from trimtab.inputs.plan_inputs import PlanInputs
from trimtab.scheduling.cluster_model import ClusterModel

ASSUMED_PRESET = "balanced"
"""The preset of pools that have no settings."""


class PresetReport(ReportPart, frozen=True, kw_only=True):
    """The outcome of a plan in which every pool has one preset."""

    name: str
    """The name of the preset: careful, balanced or keen."""
    nodes: int
    """The number of nodes that a plan with this preset removes."""
    nodes_after: int
    """The number of nodes that a plan with this preset leaves."""
    evictions: int
    """The number of pods that a plan with this preset evicts."""
    saves: Saving
    """What a plan with this preset saves."""
    is_planned: bool
    """Whether the plan of the report is the one with this preset."""


class KeeperReport(ReportPart, frozen=True, kw_only=True):
    """A reason that keeps nodes, with the saving that it prevents: the difference to a plan without this reason.

    If several reasons keep a node, the saving of one of them may be 0, because the others still keep the node."""

    code: str
    """The code of the reason."""
    todo: str
    """What to do about the reason."""
    pods: list[str]
    """The pods (namespace/name) that may not move for this reason; empty if a setting is the reason."""
    nodes: list[str]
    """The nodes that stay for this reason; some of them may have another reason as well."""
    more_nodes: int
    """The number of nodes that a plan without the reason removes in addition."""
    more_evictions: int
    """The number of evictions that a plan without the reason needs in addition."""
    costs: Saving
    """The saving that the reason prevents."""


class KarpenterReport(ReportPart, frozen=True, kw_only=True):
    """What a plan could do with the nodes that Karpenter created, and the pods that block Karpenter's own
    consolidation."""

    pools: list[str]
    """The names of Karpenter's node pools."""
    nodes: int
    """The number of Karpenter's nodes."""
    could_go: int
    """The number of these nodes that could be drained."""
    evictions: int
    """The number of evictions that this would need."""
    saves: Saving
    """What this would save."""
    keepers: list[KeeperReport]
    """The reasons that block Karpenter's own consolidation, the most expensive first."""


@dataclass(frozen=True, slots=True)
class PlanComparison:
    """The other plans that a plan is compared with; empty if no comparison was requested."""

    presets: Sequence[PresetReport] = ()
    keepers: Sequence[KeeperReport] = ()
    karpenter: KarpenterReport | None = None


NO_COMPARISON = PlanComparison()


def compare_plans(inputs: PlanInputs, model: ClusterModel, plan: Plan) -> PlanComparison:
    """Compare the plan with each preset, each reason that keeps nodes and Karpenter's nodes.

    This computes about a dozen more plans of the same cluster.
    """
    plans = {ASSUMED_PRESET: plan} if inputs.is_assumed else {}
    outcomes = outcomes_by_preset(model, inputs.pools, inputs.context, plans)
    return PlanComparison(
        presets=[
            PresetReport(
                name=name,
                nodes=outcome.nodes,
                nodes_after=len(model.inventory.machines) - outcome.nodes,
                evictions=outcome.evictions,
                saves=convert_saving(outcome.saves, plan.unit),
                is_planned=name in plans,
            )
            for name, outcome in outcomes.items()
        ],
        keepers=[
            report_keeper(keeping_reason, plan.unit)
            for keeping_reason in keeping_reasons(model, inputs.pools, inputs.context, plan)
        ],
        karpenter=_report_karpenter(model, inputs),
    )


def report_keeper(keeping_reason: KeepingReason, unit: str) -> KeeperReport:
    return KeeperReport(
        code=keeping_reason.code.name,
        todo=keeping_reason.code.todo,
        pods=list(keeping_reason.pods),
        nodes=list(keeping_reason.nodes),
        more_nodes=keeping_reason.more.nodes,
        more_evictions=keeping_reason.more.evictions,
        costs=convert_saving(keeping_reason.more.saves, unit),
    )


def _report_karpenter(model: ClusterModel, inputs: PlanInputs) -> KarpenterReport | None:
    outlook = karpenter_outlook(model, inputs.context)
    if outlook is None:
        return None
    return KarpenterReport(
        pools=list(outlook.pools),
        nodes=outlook.nodes,
        could_go=outlook.could.nodes,
        evictions=outlook.could.evictions,
        saves=convert_saving(outlook.could.saves, outlook.unit),
        keepers=[report_keeper(keeping_reason, outlook.unit) for keeping_reason in outlook.keepers],
    )
