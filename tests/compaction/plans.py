"""What tests of plans share: a plan for a few items, and what goes by it."""

from tests.cluster_of import ALL, NOW, Item, cluster, pod
from trimtab.cluster.pool import Pool
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import make_plan
from trimtab.compaction.plan_types import Plan
from trimtab.scheduling.cluster_model import build_cluster_model


def planned(
    *items: Item,
    pool: Pool = ALL,
    now: PlanningContext = PlanningContext(now=NOW),  # noqa: B008  a frozen value
    effort: int | None = None,
) -> Plan:
    return make_plan(build_cluster_model(cluster(*items)), [pool], now, effort)


def goes(*items: Item, pool: Pool = ALL) -> list[str]:
    return sorted(step.node for step in planned(*items, pool=pool).all_steps)


def keeper(name: str, on: str, cpu: str) -> Item:
    """A pod that keeps its node."""
    return pod(name, on, cpu, annotations={"trimtab.dev/do-not-disrupt": "true"})


# ── §5.3 fit and plan ────────────────────────────────────────────────────
