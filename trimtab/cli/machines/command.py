"""The command line of `trimtab machines`: profile and rank, and the group of the other subcommands."""

import importlib

import click

from trimtab.cli.machine_options import add_pool_options, add_type_options
from trimtab.cli.main import SuggestingGroup
from trimtab.cli.output import show_spinner
from trimtab.cli.reporting.emit import add_report_options, emit_report
from trimtab.cli.reports import machines_table as table
from trimtab.cli.reports.machine_ranking import build_ranking, pack_best_sets, read_workload
from trimtab.cli.reports.machines import (
    build_profile_report,
    build_rank_report,
    count_present_types,
)
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.format_count import format_count
from trimtab.inputs import machine_types as inputs
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.machine_types import SelectedNodes, TypeOptions
from trimtab.machines.machine_types import machine_types
from trimtab.sizing.ranking.capacity import CapacityRules
from trimtab.sizing.ranking.rank_types import Ranking, RankingRules, decide_switch
from trimtab.sizing.ranking.score import SurchargeRules
from trimtab.sizing.ranking.workload import measure_fill

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
@add_pool_options
@add_report_options
def profile(pool_nodes: SelectedNodes, form: str, output_file: str | None) -> None:
    """Show the sums of what the pods of a pool request, the ratios of these sums, and which resource fills the nodes
    first.

    Reads a snapshot (nodes, pods; better with pv, pvc, csinodes) and changes nothing.
    """
    report = build_profile_report(
        pool_nodes, read_workload(pool_nodes, None), measure_fill(pool_nodes.inventory, pool_nodes.nodes)
    )
    emit_report(form, output_file, report, table.PROFILE_VIEW)


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
@add_pool_options
@add_type_options
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
@add_report_options
def rank(
    pool_nodes: SelectedNodes, types: TypeOptions, zones: int | None, buffer_pods: float, last_node_fill: float,
    volume_packing: float, scale_down: str, load_cap: float | None, used_cores: float | None, min_nodes_per_zone: int,
    max_node_share: float | None, current: str, hysteresis: float, wins: int, commitments: dict[str, int], packs: bool,
    rows: int,
    form: str, output_file: str | None,
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
    emit_report(form, output_file, report, table.view_ranking(rows))


def _find_current_type(pool_nodes: SelectedNodes, ranking: Ranking) -> str:
    """Returns the type of most present nodes; an empty string if that type is not ranked."""
    for name, _ in count_present_types(pool_nodes).most_common(1):
        return name if ranking.score_of(name) is not None else ""
    return ""


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
