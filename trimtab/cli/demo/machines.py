"""The part of the demo about machine types: which of them would cost least for the sample pool."""

from rich.console import Console

from trimtab.cli.demo.sample_pool import build_inputs
from trimtab.cli.printable_text import styled
from trimtab.cli.reporting.draw import draw_report
from trimtab.cli.reports.machine_ranking import build_ranking, pack_best_sets
from trimtab.cli.reports.machines import build_rank_report
from trimtab.cli.reports.machines_table import view_ranking
from trimtab.inputs import machine_types as inputs
from trimtab.sizing.ranking.rank_types import RankingRules

_ROWS, _BUFFER_PODS = 4, 1.0


def draw_machines(console: Console) -> None:
    """Draw the best machine types for the pods of the sample pool, by list prices of its region."""
    console.print(
        styled(
            "\n[bold]Which machine type costs least for these pods?[/] The types are ranked by the sum of all "
            "requests; then the pods are placed on empty nodes of the best types to check the result."
        ),
        highlight=False,
    )
    inventory = build_inputs().inventory
    pool_nodes = inputs.SelectedNodes(inventory=inventory, nodes=inventory.nodes, pool="", notes=())
    options = inputs.TypeOptions()
    priced = inputs.read_priced_types(pool_nodes, options)
    ranking = build_ranking(pool_nodes, options, priced, RankingRules())
    winner, sets = pack_best_sets(pool_nodes, ranking, _BUFFER_PODS, packs=True)
    report = build_rank_report(pool_nodes, priced, ranking, winner, sets, None, ())
    draw_report(console, report, view_ranking(_ROWS))
