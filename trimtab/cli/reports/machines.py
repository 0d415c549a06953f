"""The reports of `trimtab machines profile` and `trimtab machines rank`."""

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

from trimtab.cli.output import API_VERSION, ReasonReport, ReportPart, report_reason
from trimtab.cluster.format_count import format_count
from trimtab.cluster.node import INSTANCE_TYPE_LABEL
from trimtab.inputs.machine_types import PricedTypes, SelectedNodes
from trimtab.sizing.ranking.break_even import FamilyCost, compare_families, list_break_evens, usable_ratio
from trimtab.sizing.ranking.packing import PackingCheck
from trimtab.sizing.ranking.rank_types import DEFAULT_DWELL, Ranking, SwitchDecision
from trimtab.sizing.ranking.score import TypeScore
from trimtab.sizing.ranking.workload import PoolFill, PoolWorkload

_DOLLAR = 1_000_000


class WorkloadReport(ReportPart, frozen=True, kw_only=True):
    """The sums of what the pods request, except DaemonSet pods and static pods."""

    cores: float
    gib: float
    """The GiB of memory that the pods request."""
    pods: int
    volumes: int
    gib_per_core: float
    pods_per_gib: float
    """The number of pods for each GiB that is requested."""
    zones: int
    """The number of zones in which the nodes are; nodes without a zone count as one zone."""
    architectures: list[str]
    """The architectures of the nodes on which the pods run, such as amd64."""
    daemon_cores: float
    """The cores that the DaemonSet pods of one node request."""
    daemon_gib: float
    """The GiB that the DaemonSet pods of one node request."""
    daemon_pods: float
    """The number of DaemonSet pods on one node."""
    largest_pods: list[list[float]]
    """The largest pods, as [cores, GiB]: those for which no other pod requests more of both resources."""


class FillReport(ReportPart, frozen=True, kw_only=True):
    """How full the present nodes are."""

    nodes: int
    requested_share: dict[str, float]
    """Resource → the share of what the nodes can allocate that pods request, from 0 to 1."""
    binding: str
    """The resource that fills the nodes first."""
    instance_types: dict[str, int]
    """Machine type → the number of nodes that have it."""


class MachineProfileReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab machines profile`. Published as deploy/schemas/machine-profile-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab machines profile --cluster SNAPSHOT"
    api_version: str = API_VERSION
    kind: str = "MachineProfileReport"
    pool: str
    """The name of the pool; empty for all nodes."""
    workload: WorkloadReport
    fill: FillReport
    """How full the present nodes are, and what fills them first."""
    notes: list[str]


class SurchargeReport(ReportPart, frozen=True, kw_only=True):
    """What a node costs in addition to its price, in dollars an hour."""

    last_node: float
    """For the last node of each zone, which is only partly full."""
    volumes: float
    scale_down: float
    """For nodes that stay when the load falls."""


class TypeReport(ReportPart, frozen=True, kw_only=True):
    """The score of one machine type for this workload."""

    name: str
    """The machine type."""
    family: str
    """The family of the type, such as m7i."""
    architecture: str
    """The processor architecture: amd64 or arm64."""
    price: float
    """The price of one node in dollars an hour."""
    bottleneck: str
    """The resource that fills a node first: cpu, memory, volumes, pods or load."""
    limits: dict[str, float]
    """Resource → the GiB of the workload that would fit on a node if only this resource were limited. Unlimited
    resources are left out."""
    usable_gib: float
    """The GiB of the workload that fit on a node."""
    reserved_cores: float
    """The cores of a node that kubelet, runtime and DaemonSets take."""
    reserved_gib: float
    """The GiB of a node that kubelet, runtime and DaemonSets take."""
    performance: float
    """As how many cores one core of the type counts: 1 with --performance off, or if the speeds are not known."""
    surcharges: SurchargeReport
    """What a node costs in addition to its price."""
    efficiency: float
    """The share of a node's price and surcharges that pays for used capacity, from 0 to 1."""
    gib_per_dollar: float
    """The GiB of the workload per dollar an hour, by which types are ranked."""
    nodes: int
    """The number of nodes needed, rounded up in every zone."""
    cost: float
    """The cost of all nodes that are needed, in dollars an hour."""
    node_share: float
    """The share of the workload that is lost if one node fails."""


class PackedSetReport(ReportPart, frozen=True, kw_only=True):
    """One or two machine types and the number of nodes of each, computed in two ways: from the sums of requests, and by
    packing the real pods."""

    types: list[str]
    modelled_nodes: list[int]
    """The number of nodes of each type, in the order of `types`, computed from the sums of requests."""
    modelled_cost: float
    """The cost in dollars an hour if the number of nodes is computed from the sums of requests."""
    packed_nodes: list[int] | None
    """The number of nodes of each type after packing the real pods.

    None if packing was not requested, or if another set was packed that costs less."""
    packed_cost: float | None
    """The cost of `packed_nodes` in dollars an hour; null where these are null."""
    explanation: str
    """Why packing differs by more than 5 % from the model, or why the set was not packed; otherwise empty."""


class CommitmentReport(ReportPart, frozen=True, kw_only=True):
    """Committed nodes of one type: nodes that are paid for whether they run or not."""

    type: str
    nodes: int
    """The number of committed nodes that the workload uses."""
    unused: int
    """The number of committed nodes that the workload does not need."""
    share: float
    """The share of the workload that fits on the committed nodes, from 0 to 1."""


class LeftOutReport(ReportPart, frozen=True, kw_only=True):
    """The machine types that are left out for one reason. The report gives the reason for the first of them."""

    count: int
    """The number of machine types that are left out for this reason."""
    types: list[str]
    reason: ReasonReport


class BreakEvenReport(ReportPart, frozen=True, kw_only=True):
    """The ratio of GiB to cores at which two types cost the same."""

    less_memory: str
    """The type with less memory for each core: it costs less below the ratio."""
    more_memory: str
    """The type with more memory for each core: it costs less above the ratio."""
    gib_per_core: float


class FamilyReport(ReportPart, frozen=True, kw_only=True):
    """What the cores and the memory of a family cost, by its best type, and at which prices it would be as good as the
    best type of all."""

    family: str
    """The family of machine types, such as m7i."""
    type: str
    gib_per_core: float
    """The GiB for each core that pods can use on a node."""
    core_price: float
    """Dollars an hour for each core that pods can use."""
    gib_price: float
    """Dollars an hour for each GiB that pods can use."""
    break_even_core_price: float
    """The `core_price` at which the family would cost this workload as much as the best type."""
    break_even_gib_price: float
    """The `gib_price` at which the family would cost this workload as much as the best type."""


class SwitchReport(ReportPart, frozen=True, kw_only=True):
    """Whether to switch from the current type to the best one."""

    current: str
    """The type that most nodes have now, or that of --current."""
    preferred: str
    """The type that is recommended: the best one, or the current one if no switch pays."""
    is_switch: bool
    """Whether a switch is recommended."""
    gain: float | None
    """By what share the best type is better, by GiB per dollar: 0.05 is 5 %. Null if the ranking does not contain the
    current type."""
    why: str
    best: str
    """The best type of this run."""
    saving: float | None
    """What the best type costs less than the current one for this workload, in dollars an hour, by the sums of
    requests; null if the current type was left out."""
    runs: int
    """In how many consecutive runs, this one included, the best type was that much better (`--wins`)."""
    needed_runs: int
    """After how many such runs Trimtab recommends a switch."""


class PresentTypeReport(ReportPart, frozen=True, kw_only=True):
    """The present nodes of one machine type."""

    type: str
    nodes: int
    price: float | None
    """The price of one node in dollars an hour; null if it is not known."""


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


class MachineRankReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab machines rank`. Published as deploy/schemas/machine-rank-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab machines rank --cluster SNAPSHOT"
    api_version: str = API_VERSION
    kind: str = "MachineRankReport"
    pool: str
    region: str
    workload: WorkloadReport
    """The part of the workload that does not fit on committed nodes; the whole workload if all of it fits on them."""
    commitments: list[CommitmentReport]
    """The nodes that are paid for whether they run or not, which are filled first."""
    today: list[PresentTypeReport]
    """The machine types of the present nodes, the most frequent first."""
    types: list[TypeReport]
    """The scored types, the best first."""
    winner: PackedSetReport | None
    """The best single type, packed with the real pods; null if there is none."""
    recommended: PackedSetReport | None
    """The cheapest of all packed sets, the best single type included; null if there is none."""
    sets: list[PackedSetReport]
    """The cheapest sets of two types, packed with the real pods."""
    families: list[FamilyReport]
    """The best families, the best one first."""
    break_evens: list[BreakEvenReport]
    """The ratios of memory to cores at which one type becomes cheaper than another."""
    switch: SwitchReport | None
    """Whether to switch to the best type; null if there is no present type to compare with."""
    migrations: list[MigrationReport]
    """What moving the pool to the other node groups would cost, as plans compare nodes with new ones; empty without
    --pool or with --no-pack."""
    left_out: list[LeftOutReport]
    notes: list[str]


def report_workload(workload: PoolWorkload) -> WorkloadReport:
    """Returns the workload in the form of reports."""
    return WorkloadReport(
        cores=round(workload.cores, 3),
        gib=round(workload.gib, 3),
        pods=int(workload.pods),
        volumes=int(workload.volumes),
        gib_per_core=round(workload.gib_per_core, 3),
        pods_per_gib=round(workload.pods_per_gib, 4),
        zones=workload.zones,
        architectures=sorted(workload.architectures),
        daemon_cores=round(workload.daemons.cores, 3),
        daemon_gib=round(workload.daemons.gib, 3),
        daemon_pods=round(workload.daemons.pods, 2),
        largest_pods=[[round(cores, 3), round(gib, 3)] for cores, gib in workload.largest_pods],
    )


def build_profile_report(pool_nodes: SelectedNodes, workload: PoolWorkload, fill: PoolFill) -> MachineProfileReport:
    """Returns the report of `trimtab machines profile`."""
    types = Counter(node.labels.get(INSTANCE_TYPE_LABEL, "unknown") for node in pool_nodes.nodes)
    return MachineProfileReport(
        pool=pool_nodes.pool,
        workload=report_workload(workload),
        notes=list(pool_nodes.notes),
        fill=FillReport(
            nodes=fill.nodes,
            requested_share={name: round(share, 4) for name, share in fill.requested_share.items()},
            binding=fill.binding,
            instance_types=dict(types.most_common()),
        ),
    )


def report_type(score: TypeScore, workload: PoolWorkload) -> TypeReport:
    """Returns a scored type in the form of reports."""
    candidate, capacity = score.candidate, score.capacity
    return TypeReport(
        name=candidate.name,
        family=candidate.family,
        architecture=candidate.architecture,
        price=candidate.price / _DOLLAR,
        bottleneck=capacity.bottleneck.value,
        limits={name.value: round(limit, 2) for name, limit in capacity.limits.items() if limit != float("inf")},
        usable_gib=round(capacity.usable_gib, 3),
        reserved_cores=round(capacity.reserved_cores, 4),
        reserved_gib=round(capacity.reserved_gib, 4),
        performance=round(candidate.performance, 3),
        surcharges=SurchargeReport(
            last_node=round(score.surcharges.last_node, 6),
            volumes=round(score.surcharges.volumes, 6),
            scale_down=round(score.surcharges.scale_down, 6),
        ),
        efficiency=round(score.efficiency, 4),
        gib_per_dollar=round(score.gib_per_dollar, 3),
        nodes=score.node_count,
        cost=score.total_price / _DOLLAR,
        node_share=round(min(1.0, capacity.usable_gib / workload.gib), 5),
    )


def report_set(
    types: Sequence[TypeScore], modelled: Sequence[int], check: PackingCheck | None, why_not_packed: str
) -> PackedSetReport:
    """Returns a set of types in the form of reports; `check` is None if the set was not packed."""
    packed = None if check is None or check.unplaced else check.packed
    cost = sum(count * score.candidate.price for count, score in zip(modelled, types, strict=True)) / _DOLLAR
    return PackedSetReport(
        types=[score.candidate.name for score in types],
        modelled_nodes=list(modelled),
        modelled_cost=round(cost, 4),
        packed_nodes=None if packed is None else list(packed),
        packed_cost=None
        if packed is None
        else round(sum(count * score.candidate.price for count, score in zip(packed, types, strict=True)) / _DOLLAR, 4),
        explanation=why_not_packed or _explain_packing(types, check),
    )


def _explain_packing(types: Sequence[TypeScore], check: PackingCheck | None) -> str:
    if check is None:
        return ""
    if check.unplaced:
        first = check.unplaced[0]
        count = format_count(len(check.unplaced), "pod")
        return (
            f"an empty node of this type has no room for {count}, the first of which is {first.pod}: "
            f"{first.reason.sentence}"
        )
    if check.ratio < 0.95:
        return (
            "the sums of requests include room for average pods on each node (--buffer-pods), but the pods of "
            "the snapshot need less room"
        )
    if check.ratio <= 1.05:
        return ""
    if any(score.candidate.performance != 1.0 for score in types):
        return (
            f"the pods of the snapshot need more nodes ({check.ratio - 1:+.0%}), because requests do not shrink on "
            "faster cores until they follow from usage; --performance off counts every core as one"
        )
    ratios = ", ".join(
        f"{score.candidate.name} {score.capacity.free_gib / score.capacity.free_cores:.2f}" for score in types
    )
    return (
        f"the sums of requests treat pods as divisible, but the pods of the snapshot need {check.ratio - 1:.0%} "
        f"more nodes. Memory in GiB for each core that is left for pods: {ratios}"
    )


def build_rank_report(
    pool_nodes: SelectedNodes,
    priced: PricedTypes,
    ranking: Ranking,
    winner: PackedSetReport | None,
    sets: Sequence[PackedSetReport],
    switch: tuple[str, SwitchDecision] | None,
    notes: Sequence[str],
    runs: int = 1,
    migrations: Sequence[MigrationReport] = (),
) -> MachineRankReport:
    """Returns the report of `trimtab machines rank`. `runs`: in how many consecutive runs the best type was better."""
    packed = [one for one in (winner, *sets) if one is not None and one.packed_cost is not None]
    recommended = min(packed, key=lambda one: (one.packed_cost or 0.0, len(one.types)), default=winner)
    reports = []
    for name, count in count_present_types(pool_nodes).most_common():
        price = priced.prices.get(name)
        reports.append(PresentTypeReport(type=name, nodes=count, price=None if price is None else price / _DOLLAR))
    return MachineRankReport(
        pool=pool_nodes.pool,
        region=priced.region,
        workload=report_workload(ranking.workload),
        today=reports,
        commitments=[
            CommitmentReport(type=one.candidate.name, nodes=one.count, unused=one.unused, share=round(one.share, 4))
            for one in ranking.cover.nodes
        ],
        types=[report_type(score, ranking.workload) for score in ranking.scores],
        winner=winner,
        recommended=recommended,
        sets=list(sets),
        left_out=_group_left_out(ranking),
        families=[_report_family(one) for one in compare_families(ranking)],
        break_evens=[
            BreakEvenReport(
                less_memory=point.less_memory.candidate.name,
                more_memory=point.more_memory.candidate.name,
                gib_per_core=round(point.gib_per_core, 3),
            )
            for point in list_break_evens(ranking)
        ],
        migrations=list(migrations),
        switch=None if switch is None else _report_switch(*switch, ranking, runs),
        notes=[*pool_nodes.notes, *notes],
    )


def _report_family(one: FamilyCost) -> FamilyReport:
    return FamilyReport(
        family=one.score.candidate.family,
        type=one.score.candidate.name,
        gib_per_core=round(usable_ratio(one.score), 3),
        core_price=round(one.core_price, 6),
        gib_price=round(one.gib_price, 6),
        break_even_core_price=round(one.core_price * one.break_even, 6),
        break_even_gib_price=round(one.gib_price * one.break_even, 6),
    )


def _report_switch(current: str, decision: SwitchDecision, ranking: Ranking, runs: int) -> SwitchReport:
    best, score = ranking.best, ranking.score_of(current)
    assert best is not None  # otherwise there is no decision
    return SwitchReport(
        current=current,
        preferred=decision.preferred,
        is_switch=decision.is_switch,
        gain=decision.gain,
        why=decision.why,
        best=best.candidate.name,
        runs=runs,
        needed_runs=DEFAULT_DWELL,
        saving=None if score is None else round((score.total_price - best.total_price) / _DOLLAR, 4),
    )


def count_present_types(pool_nodes: SelectedNodes) -> Counter[str]:
    """Returns machine type → the number of present nodes; nodes without the label of their type are left out."""
    types = (node.labels.get(INSTANCE_TYPE_LABEL, "") for node in pool_nodes.nodes)
    return Counter(filter(None, types))


def _group_left_out(ranking: Ranking) -> list[LeftOutReport]:
    groups: dict[str, list[str]] = {}
    for name, reason in sorted(ranking.left_out.items()):
        groups.setdefault(reason.code.name, []).append(name)
    return [
        LeftOutReport(count=len(names), types=names, reason=report_reason(ranking.left_out[names[0]]))
        for _, names in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    ]
