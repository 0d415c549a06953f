"""The command line of `trimtab reserved`, with the subcommands formula and measure."""

from __future__ import annotations

import click

from trimtab.cli.main import SuggestingGroup
from trimtab.cli.reserved.formula_command import compare_formulas
from trimtab.cli.reserved.measure_command import measure_reservations


@click.group("reserved", cls=SuggestingGroup)
def verb() -> None:
    """Show what is reserved of a node for its kubelet, its runtime and its system.

    `formula` computes what vendors reserve of a node of some size; `measure` shows what is really used, and
    recommends a reservation. Nothing is changed.
    """


verb.add_command(compare_formulas)
verb.add_command(measure_reservations)
