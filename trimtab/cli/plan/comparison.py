"""What else could be: the presets beside each other, what keeps the rest and costs how much, Karpenter's nodes."""

from collections.abc import Sequence
from dataclasses import dataclass

from trimtab.cli.output import ReportPart
from trimtab.cli.plan.cost import Saving, saving
from trimtab.cli.plan.inputs import PlanInputs
from trimtab.compaction.karpenter import outlook
from trimtab.compaction.plan_types import Plan
from trimtab.compaction.plan_variants import KeepingReason, by_preset, keepers
from trimtab.scheduling.cluster_model import ClusterModel

ASSUMED_PRESET = "balanced"
"""The preset of pools that no settings were found for."""


class PresetReport(ReportPart, frozen=True, kw_only=True):
    """What a preset would come to, were it every pool's."""

    name: str
    nodes: int
    """Nodes that go."""
    nodes_after: int
    evictions: int
    saves: Saving
    is_planned: bool
    """This is the plan of the report."""


class KeeperReport(ReportPart, frozen=True, kw_only=True):
    """A reason that keeps nodes, priced by the plan without it alone: several at once may free more, or less."""

    code: str
    todo: str
    pods: list[str]
    """Pods (namespace/name) that may not move for this reason; empty where a setting keeps the nodes."""
    nodes: list[str]
    """The nodes it keeps; some may stay for another reason, too."""
    more_nodes: int
    more_evictions: int
    costs: Saving
    """What it keeps from being saved."""


class KarpenterReport(ReportPart, frozen=True, kw_only=True):
    """What could go of Karpenter's nodes, and the pods that block its own consolidation."""

    pools: list[str]
    nodes: int
    could_go: int
    evictions: int
    saves: Saving
    keepers: list[KeeperReport]


@dataclass(frozen=True, slots=True)
class PlanComparison:
    presets: Sequence[PresetReport] = ()
    keepers: Sequence[KeeperReport] = ()
    karpenter: KarpenterReport | None = None


NOTHING = PlanComparison()


def compared(asked: PlanInputs, world: ClusterModel, plan: Plan) -> PlanComparison:
    """Made of about a dozen plans of the same cluster."""
    known = {ASSUMED_PRESET: plan} if asked.assumed else {}
    outcomes = by_preset(world, asked.pools, asked.now, known)
    return PlanComparison(
        presets=[
            PresetReport(
                name=name, nodes=found.nodes, nodes_after=len(world.nodes) - found.nodes, evictions=found.evictions,
                saves=saving(found.saves, plan.unit), is_planned=name in known,
            )
            for name, found in outcomes.items()
        ],
        keepers=[keeper(one, plan.unit) for one in keepers(world, asked.pools, asked.now, plan)],
        karpenter=_karpenter(world, asked),
    )  # fmt: skip


def keeper(found: KeepingReason, unit: str) -> KeeperReport:
    return KeeperReport(
        code=found.code.name, todo=found.code.todo, pods=list(found.pods), nodes=list(found.nodes),
        more_nodes=found.more.nodes, more_evictions=found.more.evictions, costs=saving(found.more.saves, unit),
    )  # fmt: skip


def _karpenter(world: ClusterModel, asked: PlanInputs) -> KarpenterReport | None:
    found = outlook(world, asked.now)
    if found is None:
        return None
    return KarpenterReport(
        pools=list(found.pools), nodes=found.nodes, could_go=found.could.nodes, evictions=found.could.evictions,
        saves=saving(found.could.saves, found.unit), keepers=[keeper(one, found.unit) for one in found.keepers],
    )  # fmt: skip
