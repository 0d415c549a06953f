"""The command line of `trimtab machines`: profile and rank, and the group of the other subcommands."""

import importlib
from collections.abc import Mapping
from dataclasses import replace

import click

from trimtab.cli import output
from trimtab.cli.main import SuggestingGroup
from trimtab.cli.output import show_spinner
from trimtab.cli.reports import machines_table as table
from trimtab.cli.reports.machines import (
    PackedSetReport,
    build_profile_report,
    build_rank_report,
    count_present_types,
    report_set,
)
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.format_count import format_count
from trimtab.cluster.reason import NotYet
from trimtab.inputs import machine_types as inputs
from trimtab.inputs.errors import UsageError
from trimtab.inputs.machine_types import SelectedNodes, TypeOptions
from trimtab.machines.machine_types import machine_types
from trimtab.sizing.ranking.candidates import CandidateRules, list_candidates, speed_factor
from trimtab.sizing.ranking.capacity import Candidate, CapacityRules
from trimtab.sizing.ranking.commitments import CommitmentCover, cover_by_commitments
from trimtab.sizing.ranking.packing import NodeStock, check_by_packing
from trimtab.sizing.ranking.rank_types import Ranking, RankingRules, decide_switch, rank_types
from trimtab.sizing.ranking.score import SurchargeRules, TypeScore
from trimtab.sizing.ranking.type_sets import find_cheapest_sets
from trimtab.sizing.ranking.workload import PoolWorkload, measure_fill, measure_workload

SUBCOMMANDS = {"priorities": "trimtab.cli.machines.priorities", "legacy": "trimtab.cli.machines.legacy"}
"""Subcommand → the module of its command line, which is imported only when the subcommand is used."""
SCALE_DOWN_OFF_SHARE = 0.10
"""The share of a node's price that is added to the price if the autoscaler does not remove nodes (`--scale-down
off`)."""


class _Subcommands(SuggestingGroup):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *SUBCOMMANDS])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in SUBCOMMANDS:
            command = importlib.import_module(SUBCOMMANDS[cmd_name]).verb
            assert isinstance(command, click.Command)
            return command
        return super().get_command(ctx, cmd_name)


@click.group("machines", cls=_Subcommands)
def verb() -> None:
    """Rank machine types for a workload, and make the cluster autoscaler buy the best ones."""


@verb.command("profile")
@inputs.add_pool_options
@output.add_output_options
def profile(pool_nodes: SelectedNodes, output: str, output_file: str | None) -> None:
    """Show the sums of what the pods of a pool request, the ratios of these sums, and which resource fills the nodes
    first.

    Reads a snapshot (nodes, pods; better with pv, pvc, csinodes) and changes nothing.
    """
    report = build_profile_report(
        pool_nodes, _read_workload(pool_nodes, None), measure_fill(pool_nodes.inventory, pool_nodes.nodes)
    )
    _emit(output, output_file, report, lambda console: table.draw_profile(console, report), "trimtab machines profile")


def _parse_commitments(_context: click.Context, _option: click.Parameter, texts: tuple[str, ...]) -> dict[str, int]:
    """Returns machine type → number of committed nodes. Raises UsageError with every mistake."""
    parsed = {text: text.rpartition("=") for text in texts}
    mistakes = [
        ConfigError(file="--commitment", expected="TYPE=NODES, such as m7i.2xlarge=10", got=text)
        for text, (kind, _, nodes) in parsed.items()
        if not (kind and nodes.isascii() and nodes.isdigit() and len(nodes) < 7)
    ]
    if mistakes:
        raise UsageError(mistakes)
    return {kind: int(nodes) for kind, _, nodes in parsed.values()}


@verb.command("rank")
@inputs.add_pool_options
@inputs.add_type_options
@click.option(
    "--zones", type=click.IntRange(1), help="The number of zones of the workload. Default: the zones of the nodes."
)
@click.option("--buffer-pods", type=click.FloatRange(0), default=1.0, show_default=True,
              help="The number of average pods for which each node keeps room.")  # fmt: skip
@click.option("--last-node-fill", type=click.FloatRange(0, 1), default=0.5, show_default=True,
              help="The share of the last node of a zone that is filled on average.")  # fmt: skip
@click.option("--volume-packing", type=click.FloatRange(0, 1), default=0.10, show_default=True,
              help=
                  "The surcharge on the price of a type, as a share, if the limit on volumes is reached before "
                  "cpu and memory.")  # fmt: skip
@click.option("--scale-down", type=click.Choice(["on", "off"]), default="on", show_default=True,
              help="`off` means that nodes are never removed; Trimtab then adds a tenth to the price.")  # fmt: skip
@click.option("--load-cap", type=click.FloatRange(1, 100), metavar="PERCENT",
              help="The share of a node's cores that may be in use. This option needs --used-cores.")  # fmt: skip
@click.option("--used-cores", type=click.FloatRange(0, min_open=True), metavar="CORES",
              help="The number of cores that the workload really uses, for --load-cap.")  # fmt: skip
@click.option("--min-nodes-per-zone", type=click.IntRange(1), default=1, show_default=True,
              help="Leave out types of which a zone would need fewer nodes than this.")  # fmt: skip
@click.option(
    "--max-node-share",
    type=click.FloatRange(0, 100, min_open=True),
    metavar="PERCENT",
    help="Leave out types of which a single node would hold a larger share of the workload than this.",
)
@click.option(
    "--current",
    default="",
    metavar="TYPE",
    help="The type to compare with. Default: the type of most nodes. The report says what the best type would save.",
)
@click.option("--hysteresis", type=click.FloatRange(0), default=5.0, show_default=True, metavar="PERCENT",
              help="How much cheaper than the current type another type must be, as a share.")  # fmt: skip
@click.option("--wins", type=click.IntRange(0), default=1, show_default=True,
              help="In how many consecutive runs, this one included, the best type was that much cheaper; after three "
                   "runs Trimtab recommends a switch.")  # fmt: skip
@click.option("--commitment", "commitments", multiple=True, metavar="TYPE=NODES", callback=_parse_commitments,
              help=
                  "Nodes that you pay for whether they run or not. Trimtab ranks types for the part of the "
                  "workload that these nodes do not hold. You can repeat the option.")  # fmt: skip
@click.option(
    "--pack/--no-pack",
    "packs",
    default=True,
    help="Also place the pods of the snapshot on empty nodes of the best types.",
)
@click.option("--rows", type=click.IntRange(1), default=10, show_default=True, help="The number of types in the table.")
@output.add_output_options
def rank(
    pool_nodes: SelectedNodes, types: TypeOptions, zones: int | None, buffer_pods: float, last_node_fill: float,
    volume_packing: float, scale_down: str, load_cap: float | None, used_cores: float | None, min_nodes_per_zone: int,
    max_node_share: float | None, current: str, hysteresis: float, wins: int, commitments: dict[str, int], packs: bool,
    rows: int,
    output: str, output_file: str | None,
) -> None:  # fmt: skip
    """Rank machine types by the cost of this workload on them, and check the best ones with the real pods.

    For each type, the workload is scaled until it fills a node: until cpu, memory, volumes, pods or load is full, after
    reservations and DaemonSets. Sets of two types are compared too. The best ones are then checked by placing the real
    pods on empty nodes by kube-scheduler's filters. Reads a snapshot and changes nothing.
    """
    if (load_cap is None) != (used_cores is None):
        expected, got = "--load-cap together with --used-cores", "only one of these two options"
        raise UsageError([ConfigError(file="command line", expected=expected, got=got)])
    rules = RankingRules(
        capacity=CapacityRules(buffer_pods=buffer_pods, max_load=None if load_cap is None else load_cap / 100),
        surcharges=SurchargeRules(
            last_node_fill=last_node_fill, volume_packing_share=volume_packing,
            scale_down_share=SCALE_DOWN_OFF_SHARE if scale_down == "off" else 0.0,
        ),
        min_nodes_per_zone=min_nodes_per_zone, max_node_share=None if max_node_share is None else max_node_share / 100,
    )  # fmt: skip
    priced = inputs.read_priced_types(pool_nodes, types)
    ranking = build_ranking(pool_nodes, types, priced, rules, zones, used_cores, commitments)
    with show_spinner("Packing"):
        winner, sets = pack_best_sets(pool_nodes, ranking, buffer_pods, packs)
    current = current or _find_current_type(pool_nodes, ranking)
    decision = decide_switch(ranking, current, wins, hysteresis / 100) if current else None
    report = build_rank_report(
        pool_nodes, priced, ranking, winner, sets, (current, decision) if decision else None,
        _list_notes(types, priced, ranking), wins,
    )  # fmt: skip
    _emit(
        output, output_file, report, lambda console: table.draw_ranking(console, report, rows), "trimtab machines rank"
    )


def _find_current_type(pool_nodes: SelectedNodes, ranking: Ranking) -> str:
    """Returns the type of most present nodes; an empty string if that type is not ranked."""
    for name, _ in count_present_types(pool_nodes).most_common(1):
        return name if ranking.score_of(name) is not None else ""
    return ""


def build_ranking(
    pool_nodes: SelectedNodes, types: TypeOptions, priced: inputs.PricedTypes, rules: RankingRules,
    zones: int | None = None, used_cores: float | None = None, commitments: Mapping[str, int] | None = None,
) -> Ranking:  # fmt: skip
    """Returns the ranking of the types for the part of the workload that does not fit on committed nodes
    (`commitments`: type → nodes).

    Raises UsageError if the pods of these nodes request nothing, and for a commitment to an unknown type.
    """
    workload = _read_workload(pool_nodes, types, zones, used_cores)
    candidate_rules = CandidateRules(
        architectures=frozenset(types.architectures) or workload.architectures, names=types.names,
        included_uses=types.uses, max_pods=types.max_pods, uses_interface_limits=types.uses_interface_limits,
        performance=types.performance,
    )  # fmt: skip
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
        raise UsageError([
            ConfigError(
                file="--commitment", expected="a machine type with a price in the region, on which the pods can run",
                got=name,
            )
            for name in missing
        ])  # fmt: skip
    return tuple(candidates.candidates)


def _emit(form: str, output_file: str | None, report: object, draw: output.Draw, title: str) -> None:
    output.emit_report(form, output_file, report, draw, title)  # type: ignore[arg-type]


def _read_workload(
    pool_nodes: SelectedNodes, types: TypeOptions | None, zones: int | None = None, used_cores: float | None = None
) -> PoolWorkload:
    speeds = {name: speed_factor(kind, types.performance) for name, kind in machine_types().items()} if types else {}
    workload = measure_workload(pool_nodes.inventory, pool_nodes.nodes, speeds)
    if isinstance(workload, NotYet):
        raise UsageError(
            [ConfigError(file="--cluster", expected=f"a workload with {workload.need}", got=str(workload))]
        )
    return replace(workload, zones=zones or workload.zones, used_cores=used_cores)


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
    pool_nodes: SelectedNodes, ranking: Ranking, types: tuple[TypeScore, ...], counts: tuple[int, ...], packs: bool,
    bound: float | None,
) -> PackedSetReport:  # fmt: skip
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


def _list_notes(types: TypeOptions, priced: inputs.PricedTypes, ranking: Ranking) -> list[str]:
    clouds = sorted({machine_types()[score.candidate.name].cloud for score in ranking.scores})
    names = ", ".join(priced.profiles.get(cloud, priced.profiles[""]).name for cloud in clouds)
    notes = [
        f"the reservations for kubelets are computed with the profile {names or types.profile}, for "
        f"{format_count(types.max_pods, 'pod')} on each node"
    ]
    if not types.price_paths:
        notes.append(
            f"the prices are on-demand list prices of {priced.region}, of July 2026; pass the prices that you "
            "pay with --prices"
        )
    return notes
