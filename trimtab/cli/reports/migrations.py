"""What it costs to move a pool to new nodes of each other node group, as `trimtab machines rank` reports it."""

from collections.abc import Iterator

from trimtab.cli.output import ReportPart
from trimtab.cluster.cluster_autoscaler import Autoscaler
from trimtab.cluster.format_count import format_count
from trimtab.cluster.reason import NotYet
from trimtab.compaction.replace.migration import PoolMigration, plan_migration
from trimtab.compaction.replace.node_templates import NodeTemplate, find_templates
from trimtab.inputs.machine_types import SelectedNodes

MAX_GROUPS = 6
"""The largest number of node groups that are compared, the cheapest by core first."""
_DOLLAR = 1_000_000


class MigrationReport(ReportPart, frozen=True, kw_only=True):
    """All pods of the pool on new nodes of one node group, by the same rules as a replacement in a plan."""

    group: str
    type: str
    """The machine type of the group; empty if its nodes do not name it."""
    nodes: int
    """The number of new nodes that the pods need."""
    cost: float
    """What the new nodes cost, in dollars an hour."""
    saves: float
    """What the present nodes cost more, in dollars an hour."""
    unplaced: list[str]
    """The pods that fit on no new node of the group."""
    is_possible: bool
    """Whether all pods fit, on no more nodes than the group may get."""


def list_migrations(pool_nodes: SelectedNodes, autoscaler: Autoscaler | None) -> list[MigrationReport]:
    """Returns the migrations to the other node groups, the largest saving first."""
    sources = {node.name for node in pool_nodes.nodes}
    by_group: dict[str, list[NodeTemplate]] = {}
    for template in find_templates(pool_nodes.inventory, autoscaler, ()).templates:
        if sources.isdisjoint(template.members):
            by_group.setdefault(template.group, []).append(template)
    reports = []
    for templates in sorted(by_group.values(), key=_price_of_core)[:MAX_GROUPS]:
        migration = plan_migration(pool_nodes.inventory, pool_nodes.nodes, templates)
        if not isinstance(migration, NotYet):
            reports.append(_report_migration(migration))
    return sorted(reports, key=lambda one: (not one.is_possible, -one.saves, one.group))


def _price_of_core(templates: list[NodeTemplate]) -> tuple[float, str]:
    amounts = templates[0].node.allocatable
    cores = amounts.get("cpu", 0) if isinstance(amounts, dict) else 0
    return templates[0].price / cores if cores else float("inf"), templates[0].group


def _report_migration(migration: PoolMigration) -> MigrationReport:
    return MigrationReport(
        group=migration.group,
        type=migration.instance_type,
        nodes=migration.new_nodes,
        cost=round(migration.price_after / _DOLLAR, 4),
        saves=round(migration.saves / _DOLLAR, 4),
        unplaced=list(migration.unplaced),
        is_possible=migration.is_possible,
    )


def describe_migrations(migrations: list[MigrationReport]) -> Iterator[str]:
    """Yields a sentence about each migration."""
    for one in migrations:
        where = f"node group {one.group}{f' ({one.type})' if one.type else ''}"
        if one.unplaced:
            yield f"Migration to {where}: {format_count(len(one.unplaced), 'pod')} would fit on no node of it."
            continue
        saving = f"${one.saves:,.2f} less" if one.saves >= 0 else f"${-one.saves:,.2f} more"
        limit = "" if one.is_possible else "; its maximum does not allow that many"
        nodes = format_count(one.nodes, "new node")
        yield f"Migration to {where}: {nodes}, ${one.cost:,.2f} an hour, {saving} than today's nodes{limit}."
