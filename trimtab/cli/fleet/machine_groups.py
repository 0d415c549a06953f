"""Machine types for groups of similar clusters, as reports contain them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trimtab.cli.output import ReportPart
from trimtab.cluster.cluster_state import Inventory
from trimtab.fleet.cluster_digest import ClusterDigest
from trimtab.fleet.like_clusters import ClusterGroup, group_clusters, rank_for_group
from trimtab.fleet.money_report import MICRO_DOLLARS
from trimtab.inputs.machine_types import PricedTypes, SelectedNodes, TypeOptions, read_priced_types
from trimtab.sizing.cost import HOURS_PER_MONTH
from trimtab.sizing.ranking.candidates import CandidateRules, list_candidates
from trimtab.sizing.ranking.capacity import Candidate

MAX_TYPES = 5


class GroupTypeReport(ReportPart, frozen=True, kw_only=True):
    """One machine type for a group of clusters."""

    name: str
    """The machine type."""
    nodes: int
    """The number of nodes that the workload of all clusters together needs, by the sums of its requests."""
    monthly_cost: float
    """The list price of these nodes in dollars per month."""
    bottleneck: str


class MachineGroupReport(ReportPart, frozen=True, kw_only=True):
    """A group of similar clusters, with the best machine types for them."""

    region: str
    """The region of the clusters; empty if their nodes name no region, or several regions."""
    architectures: list[str]
    """The architectures of the clusters' nodes, such as amd64."""
    clusters: list[str]
    cores: float
    """The sum of the cores that all pods request, without the pods of DaemonSets."""
    gib: float
    """The sum of the GiB of memory that all pods request, without the pods of DaemonSets."""
    gib_per_core: float
    nodes: int
    monthly_cost: float | None
    """The cost of the present nodes in dollars per month; null if no price is known."""
    types: list[GroupTypeReport]
    """The best machine types, the best first; empty if there is none."""
    problem: str
    """The reason why there is no machine type; empty if there is one."""
    notes: list[str]
    """What is guessed about the prices."""


def report_machine_groups(digests: Iterable[ClusterDigest]) -> list[MachineGroupReport]:
    """Returns all groups, the most expensive first."""
    return [_report_group(group) for group in group_clusters(digests)]


def list_price_notes(groups: Iterable[MachineGroupReport]) -> list[str]:
    """Returns what is guessed about the prices of the groups, each sentence once."""
    return list(dict.fromkeys(f"For machine types {note}." for group in groups for note in group.notes))


def _report_group(group: ClusterGroup) -> MachineGroupReport:
    options = TypeOptions(region=group.region)
    nothing = SelectedNodes(inventory=Inventory(nodes=(), pods=()), nodes=(), pool="", notes=())
    priced = read_priced_types(nothing, options)
    # Whole nodes in each cluster's zones count here: a small fleet does not need one large machine in each.
    ranked = rank_for_group(group, lambda like: _list_candidates(like, options, priced)).scores
    scores = tuple(sorted(ranked, key=lambda score: (score.total_price, -score.efficiency, score.candidate.name)))
    workload = group.workload
    return MachineGroupReport(
        region=group.region,
        architectures=list(group.architectures),
        clusters=list(group.clusters),
        cores=round(workload.cores, 3),
        gib=round(workload.gib, 3),
        gib_per_core=round(workload.gib_per_core, 3),
        nodes=group.nodes,
        monthly_cost=round(group.cost / MICRO_DOLLARS, 2) if group.cost else None,
        types=[
            GroupTypeReport(
                name=score.candidate.name,
                nodes=score.node_count,
                monthly_cost=round(score.total_price * HOURS_PER_MONTH / MICRO_DOLLARS, 2),
                bottleneck=score.capacity.bottleneck.value,
            )
            for score in scores[:MAX_TYPES]
        ],
        problem="" if scores else "no machine type has room for the pods of this group",
        notes=list(priced.notes),
    )


def _list_candidates(group: ClusterGroup, options: TypeOptions, priced: PricedTypes) -> Sequence[Candidate]:
    """Returns the machine types with a price in the group's region."""
    rules = CandidateRules(
        architectures=frozenset(group.architectures),
        names=None,
        included_uses=options.uses,
        max_pods=options.max_pods,
        uses_interface_limits=False,
    )
    return list_candidates(priced.types, priced.prices, priced.profiles, rules).candidates
