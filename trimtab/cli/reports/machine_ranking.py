"""The ranking of machine types for the nodes of a pool, the sets of types that are packed with their real pods, and
what it costs to move the pool to other node groups."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from trimtab.cli.reports.machines import MigrationReport, PackedSetReport, report_set
from trimtab.cluster.cluster_autoscaler import Autoscaler
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.node import INSTANCE_TYPE_LABEL
from trimtab.cluster.reason import NotYet
from trimtab.inputs import machine_types as inputs
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.machine_types import SelectedNodes, TypeOptions
from trimtab.machines.machine_types import machine_types
from trimtab.sizing.ranking.candidates import CandidateRules, CoreSpeeds, list_candidates, read_core_speeds
from trimtab.sizing.ranking.capacity import Candidate
from trimtab.sizing.ranking.commitments import CommitmentCover, cover_by_commitments
from trimtab.sizing.ranking.packing import NodeStock, check_by_packing
from trimtab.sizing.ranking.rank_types import Ranking, RankingRules, rank_types
from trimtab.sizing.ranking.score import DOLLAR, TypeScore
from trimtab.sizing.ranking.type_sets import find_cheapest_sets
from trimtab.sizing.ranking.workload import PoolWorkload, measure_workload

if TYPE_CHECKING:
    from trimtab.compaction.replace.migration import PoolMigration
    from trimtab.compaction.replace.node_templates import NodeTemplate

MAX_GROUPS = 6
"""The largest number of node groups that are compared with a pool, the cheapest by core first."""


def build_ranking(
    pool_nodes: SelectedNodes,
    types: TypeOptions,
    priced: inputs.PricedTypes,
    rules: RankingRules,
    zones: int | None = None,
    used_cores: float | None = None,
    commitments: Mapping[str, int] | None = None,
) -> Ranking:
    """Returns the ranking of the types for the part of the workload that does not fit on committed nodes
    (`commitments`: type → nodes).

    Raises UsageError if the pods of these nodes request nothing, and for a commitment to an unknown type.
    """
    workload = read_workload(pool_nodes, types, zones, used_cores)
    candidate_rules = CandidateRules(
        architectures=frozenset(types.architectures) or workload.architectures,
        names=types.names,
        included_uses=types.uses,
        max_pods=types.max_pods,
        uses_interface_limits=types.uses_interface_limits,
        speeds=find_core_speeds(pool_nodes, types),
    )
    candidates = list_candidates(priced.types, priced.prices, priced.profiles, candidate_rules)
    cover = CommitmentCover()
    if commitments:
        cover = cover_by_commitments(
            workload, _list_committed(priced, commitments, candidate_rules), commitments, rules.capacity
        )
    ranked = rank_types(cover.rest or workload, candidates.candidates, rules)
    return replace(ranked, left_out={**candidates.left_out, **ranked.left_out}, cover=cover)


def _list_committed(
    priced: inputs.PricedTypes, commitments: Mapping[str, int], rules: CandidateRules
) -> tuple[Candidate, ...]:
    """Returns the machine types of the commitments. They are included even if `--types` and `--include` exclude them,
    because their nodes are already paid for."""
    kinds = [kind for kind in priced.types if kind.name in commitments]
    anything = replace(rules, names=None, included_uses=frozenset(kind.use for kind in kinds))
    candidates = list_candidates(kinds, priced.prices, priced.profiles, anything)
    missing = sorted(commitments.keys() - {candidate.name for candidate in candidates.candidates})
    if missing:
        raise UsageError(
            [
                ConfigError(
                    file="--commitment",
                    expected="a machine type with a price in the region, on which the pods can run",
                    got=name,
                )
                for name in missing
            ]
        )
    return tuple(candidates.candidates)


def read_workload(
    pool_nodes: SelectedNodes, types: TypeOptions | None, zones: int | None = None, used_cores: float | None = None
) -> PoolWorkload:
    speeds = find_core_speeds(pool_nodes, types) if types else CoreSpeeds()
    workload = measure_workload(pool_nodes.inventory, pool_nodes.nodes, speeds.factors)
    if isinstance(workload, NotYet):
        raise UsageError(
            [ConfigError(file="--cluster", expected=f"a workload with {workload.need}", got=str(workload))]
        )
    return replace(workload, zones=zones or workload.zones, used_cores=used_cores)


def find_core_speeds(pool_nodes: SelectedNodes, types: TypeOptions) -> CoreSpeeds:
    """Returns the speeds of cores, if they count for these nodes."""
    present = {node.labels.get(INSTANCE_TYPE_LABEL, "") for node in pool_nodes.nodes}
    return read_core_speeds(machine_types(), present, types.performance)


def pack_best_sets(
    pool_nodes: SelectedNodes, ranking: Ranking, buffer_pods: float, packs: bool
) -> tuple[PackedSetReport | None, list[PackedSetReport]]:
    """Returns the best single type and the cheapest other sets of types.

    Another set is packed with the real pods only if it can still be the cheapest."""
    best = ranking.best
    if best is None or (ranking.cover.nodes and ranking.cover.rest is None):
        return None, []
    winner = _pack_set(pool_nodes, ranking, (best,), (best.node_count,), packs, None)
    bound = winner.packed_cost
    reports: list[PackedSetReport] = []
    for one in find_cheapest_sets(ranking, buffer_pods):
        if one.types == (best,):
            continue
        reports.append(_pack_set(pool_nodes, ranking, one.types, one.node_counts, packs, bound))
        cost = reports[-1].packed_cost
        if cost is not None and (bound is None or cost < bound):
            bound = cost
    return winner, reports


def _pack_set(
    pool_nodes: SelectedNodes,
    ranking: Ranking,
    types: tuple[TypeScore, ...],
    counts: tuple[int, ...],
    packs: bool,
    bound: float | None,
) -> PackedSetReport:
    if not packs:
        return report_set(types, counts, None, "")
    modelled = sum(count * score.candidate.price for count, score in zip(counts, types, strict=True)) / 1_000_000
    stock = [
        NodeStock(candidate=score.candidate, capacity=score.capacity, count=count)
        for score, count in zip(types, counts, strict=True)
    ]
    max_scale = None if bound is None else bound / modelled
    committed = [
        NodeStock(candidate=one.candidate, capacity=one.capacity, count=one.count) for one in ranking.cover.nodes
    ]
    check = check_by_packing(pool_nodes.inventory, pool_nodes.nodes, ranking.workload, stock, max_scale, committed)
    return report_set(
        types,
        counts,
        check,
        ""
        if check
        else "with the pods of the snapshot this set of types costs more than the set that was best by the sum of "
        "requests",
    )


def list_migrations(pool_nodes: SelectedNodes, autoscaler: Autoscaler | None) -> list[MigrationReport]:
    """Returns the migrations to the other node groups, the largest saving first."""
    # Imported here, because a ranking without a pool needs none of it.
    from trimtab.compaction.replace.migration import plan_migration
    from trimtab.compaction.replace.node_templates import NodeTemplate, find_templates

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


def _price_of_core(templates: "list[NodeTemplate]") -> tuple[float, str]:
    amounts = templates[0].node.allocatable
    cores = amounts.get("cpu", 0) if isinstance(amounts, dict) else 0
    return templates[0].price / cores if cores else float("inf"), templates[0].group


def _report_migration(migration: "PoolMigration") -> MigrationReport:
    return MigrationReport(
        group=migration.group,
        type=migration.instance_type,
        nodes=migration.new_nodes,
        cost=round(migration.price_after / DOLLAR, 4),
        saves=round(migration.saves / DOLLAR, 4),
        unplaced=list(migration.unplaced),
        is_possible=migration.is_possible,
    )
