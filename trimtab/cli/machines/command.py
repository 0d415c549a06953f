"""The command line of `trimtab machines`: profile and rank, and the group of the other subcommands."""

from dataclasses import dataclass
from typing import Annotated, Literal

import click

from trimtab.cli.main import LazyGroup
from trimtab.cli.options import takes
from trimtab.cli.output import show_spinner
from trimtab.cli.reporting.emit import ReportOutput, write_report
from trimtab.cli.reports import machines_table as table
from trimtab.cli.reports.machine_ranking import (
    build_ranking,
    find_core_speeds,
    list_migrations,
    pack_best_sets,
    read_workload,
)
from trimtab.cli.reports.machines import MigrationReport, build_profile_report, build_rank_report, count_present_types
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.format_count import format_count, join_first
from trimtab.inputs import machine_types as inputs
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.flags import ROWS
from trimtab.inputs.machine_types import PoolOptions, SelectedNodes, TypeOptions, read_pool_nodes
from trimtab.inputs.option import option
from trimtab.machines.machine_types import machine_types
from trimtab.sizing.ranking.candidates import CoreSpeeds
from trimtab.sizing.ranking.capacity import CapacityRules
from trimtab.sizing.ranking.rank_types import Ranking, RankingRules, decide_switch
from trimtab.sizing.ranking.score import SurchargeRules
from trimtab.sizing.ranking.workload import measure_fill

SUBCOMMANDS = {"priorities": "trimtab.cli.machines.priorities", "legacy": "trimtab.cli.machines.legacy"}
"""Subcommand → the module of its command line, which is imported only when the subcommand is used."""
SCALE_DOWN_OFF_SHARE = 0.10
"""The share of a node's price that is added to the price if the autoscaler does not remove nodes (`--scale-down
off`)."""


@click.group("machines", cls=LazyGroup, modules=SUBCOMMANDS)
def verb() -> None:
    """Rank machine types for a workload, and make the cluster autoscaler buy the best ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinesProfileOptions:
    """The options of `trimtab machines profile`."""

    nodes: PoolOptions
    output: ReportOutput


@verb.command("profile")
@takes(MachinesProfileOptions)
def profile(options: MachinesProfileOptions) -> None:
    """Show the sums of what the pods of a pool request, the ratios of these sums, and which resource fills the nodes
    first.

    Reads a snapshot (nodes, pods; better with pv, pvc, csinodes) and changes nothing.
    """
    pool_nodes = read_pool_nodes(options.nodes)
    report = build_profile_report(
        pool_nodes, read_workload(pool_nodes, None), measure_fill(pool_nodes.inventory, pool_nodes.nodes)
    )
    write_report(options.output, report, table.PROFILE_VIEW)


def _parse_commitments(texts: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """Returns pairs of a machine type and the number of its committed nodes. Raises UsageError with every mistake."""
    parsed = {text: text.rpartition("=") for text in texts}
    mistakes = [
        ConfigError(file="--commitment", expected="TYPE=NODES, such as m7i.2xlarge=10", got=text)
        for text, (kind, _, nodes) in parsed.items()
        if not (kind and nodes.isascii() and nodes.isdigit() and len(nodes) < 7)
    ]
    if mistakes:
        raise UsageError(mistakes)
    return tuple((kind, int(nodes)) for kind, _, nodes in parsed.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinesRankOptions:
    """The options of `trimtab machines rank`."""

    nodes: PoolOptions
    types: TypeOptions
    zones: Annotated[
        int | None,
        option("--zones", minimum=1, help="The number of zones of the workload. Default: the zones of the nodes."),
    ] = None
    buffer_pods: Annotated[
        float, option("--buffer-pods", minimum=0, help="The number of average pods for which each node keeps room.")
    ] = 1.0
    last_node_fill: Annotated[
        float,
        option(
            "--last-node-fill",
            minimum=0,
            maximum=1,
            help="The share of the last node of a zone that is filled on average.",
        ),
    ] = 0.5
    volume_packing: Annotated[
        float,
        option(
            "--volume-packing",
            minimum=0,
            maximum=1,
            help="The surcharge on the price of a type, as a share, if the limit on volumes is reached before cpu and "
            "memory.",
        ),
    ] = 0.10
    scale_down: Annotated[
        Literal["on", "off"],
        option(
            "--scale-down", help="`off` means that nodes are never removed; Trimtab then adds a tenth to the price."
        ),
    ] = "on"
    load_cap: Annotated[
        float | None,
        option(
            "--load-cap",
            minimum=1,
            maximum=100,
            metavar="PERCENT",
            help="The share of a node's cores that may be in use. This option needs --used-cores.",
        ),
    ] = None
    used_cores: Annotated[
        float | None,
        option(
            "--used-cores",
            type=click.FloatRange(0, min_open=True),
            metavar="CORES",
            help="The number of cores that the workload really uses, for --load-cap.",
        ),
    ] = None
    min_nodes_per_zone: Annotated[
        int,
        option(
            "--min-nodes-per-zone", minimum=1, help="Leave out types of which a zone would need fewer nodes than this."
        ),
    ] = 1
    max_node_share: Annotated[
        float | None,
        option(
            "--max-node-share",
            type=click.FloatRange(0, 100, min_open=True),
            metavar="PERCENT",
            help="Leave out types of which a single node would hold a larger share of the workload than this.",
        ),
    ] = None
    current: Annotated[
        str | None,
        option(
            "--current",
            metavar="TYPE",
            help="The type to compare with. Default: the type of most nodes. The report says what the best type would "
            "save.",
        ),
    ] = None
    hysteresis: Annotated[
        float,
        option(
            "--hysteresis",
            minimum=0,
            metavar="PERCENT",
            help="How much cheaper than the current type another type must be, as a share.",
        ),
    ] = 5.0
    wins: Annotated[
        int,
        option(
            "--wins",
            minimum=0,
            help="In how many consecutive runs, this one included, the best type was that much cheaper; after three "
            "runs Trimtab recommends a switch.",
        ),
    ] = 1
    commitments: Annotated[
        tuple[tuple[str, int], ...],
        option(
            "--commitment",
            type=str,
            metavar="TYPE=NODES",
            convert=_parse_commitments,
            help="Nodes that you pay for whether they run or not. Trimtab ranks types for the part of the workload "
            "that these nodes do not hold. You can repeat the option.",
        ),
    ] = ()
    packs: Annotated[
        bool, option("--pack/--no-pack", help="Also place the pods of the snapshot on empty nodes of the best types.")
    ] = True
    rows: Annotated[int, ROWS.with_help("The number of types in the table.")] = 10
    output: ReportOutput

    @property
    def rules(self) -> RankingRules:
        """The rules of the ranking. Raises UsageError if only one of two options that belong together is given."""
        if (self.load_cap is None) != (self.used_cores is None):
            expected, got = "--load-cap together with --used-cores", "only one of these two options"
            raise UsageError([ConfigError(file="command line", expected=expected, got=got)])
        return RankingRules(
            capacity=CapacityRules(
                buffer_pods=self.buffer_pods, max_load=None if self.load_cap is None else self.load_cap / 100
            ),
            surcharges=SurchargeRules(
                last_node_fill=self.last_node_fill,
                volume_packing_share=self.volume_packing,
                scale_down_share=SCALE_DOWN_OFF_SHARE if self.scale_down == "off" else 0.0,
            ),
            min_nodes_per_zone=self.min_nodes_per_zone,
            max_node_share=None if self.max_node_share is None else self.max_node_share / 100,
        )


@verb.command("rank")
@takes(MachinesRankOptions)
def rank(options: MachinesRankOptions) -> None:
    """Rank machine types by the cost of this workload on them, and check the best ones with the real pods.

    For each type, the workload is scaled until it fills a node: until cpu, memory, volumes, pods or load is full, after
    reservations and DaemonSets. Sets of two types are compared too. The best ones are then checked by placing the real
    pods on empty nodes by kube-scheduler's filters. Reads a snapshot and changes nothing.
    """
    pool_nodes, types = read_pool_nodes(options.nodes), options.types
    rules = options.rules
    priced = inputs.read_priced_types(pool_nodes, types)
    ranking = build_ranking(
        pool_nodes, types, priced, rules, options.zones, options.used_cores, dict(options.commitments)
    )
    with show_spinner("Packing"):
        winner, sets = pack_best_sets(pool_nodes, ranking, options.buffer_pods, options.packs)
        migrations = _list_migrations(pool_nodes, types) if options.packs and pool_nodes.pool else []
    current = options.current or _find_current_type(pool_nodes, ranking)
    decision = decide_switch(ranking, current, options.wins, options.hysteresis / 100) if current else None
    report = build_rank_report(
        pool_nodes,
        priced,
        ranking,
        winner,
        sets,
        (current, decision) if decision else None,
        _list_notes(pool_nodes, types, priced, ranking),
        options.wins,
        migrations,
    )
    is_screen = options.output.form == "table"
    write_report(options.output, report, table.view_ranking(options.rows, is_screen=is_screen))


def _list_migrations(pool_nodes: SelectedNodes, types: TypeOptions) -> list[MigrationReport]:
    return list_migrations(inputs.add_node_prices(pool_nodes, types.price_paths), inputs.find_autoscaler(pool_nodes))


def _find_current_type(pool_nodes: SelectedNodes, ranking: Ranking) -> str:
    """Returns the type of most present nodes; an empty string if that type is not ranked."""
    for name, _ in count_present_types(pool_nodes).most_common(1):
        return name if ranking.score_of(name) is not None else ""
    return ""


def _list_notes(
    pool_nodes: SelectedNodes, types: TypeOptions, priced: inputs.PricedTypes, ranking: Ranking
) -> list[str]:
    clouds = sorted({machine_types()[score.candidate.name].cloud for score in ranking.scores})
    names = ", ".join(priced.profiles.get(cloud, priced.profiles[""]).name for cloud in clouds)
    notes = [
        f"the reservations for kubelets are computed with the profile {names or types.profile}, for "
        f"{format_count(types.max_pods, 'pod')} on each node"
    ]
    if not types.price_paths:
        notes.append(
            f"the prices are on-demand list prices{f' of {priced.region}' * (not priced.notes)}, of July 2026; pass "
            "the prices that you pay with --prices"
        )
    return [*notes, *_note_speeds(find_core_speeds(pool_nodes, types)), *priced.notes]


def _note_speeds(speeds: CoreSpeeds) -> list[str]:
    """Returns how the speeds of cores count."""
    if speeds.unknown:
        names = join_first([name or "a node without the label of its type" for name in speeds.unknown], 3)
        return [f"every core counts as one, because the speed of a core is not known of {names}"]
    if not speeds.factors:
        return []
    if speeds.is_limited:
        return [
            "a core counts by its speed, which is an estimate here: what the same processor does on another cloud "
            "(CoreMark, between 0.8 and 1.5). So no type counts as faster than the slowest present one, but slower "
            "ones count as slower; --performance estimated takes the estimates as they are, and off counts every core "
            "as one"
        ]
    return [
        "a core counts by its speed (CoreMark, between 0.8 and 1.5); a type whose speed is not known counts as the "
        "slowest present one; --performance off counts every core as one"
    ]
