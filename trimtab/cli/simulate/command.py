"""`trimtab simulate`: what would be left, if the plan were carried out until nothing more can go?"""

from typing import Any

import click

from trimtab.cli import output
from trimtab.cli.output import working
from trimtab.cli.plan import inputs
from trimtab.cli.plan.explain import check_subjects
from trimtab.cli.plan.inputs import PlanOptions
from trimtab.cli.plan.inputs import add_plan_options as plan_inputs
from trimtab.cli.simulate import page
from trimtab.cli.simulate.report import chain, report
from trimtab.cli.simulate.table import draw
from trimtab.compaction.simulate import Scheduler, simulate


@click.command("simulate")
@plan_inputs
@click.option("--scheduler", type=click.Choice([str(kind.value) for kind in Scheduler]), default="plan",
              show_default=True,
              help="Who places evicted pods: the plan, or a scheduler that spreads or packs.")  # fmt: skip
@click.option("--marked", is_flag=True,
              help="The scheduler avoids nodes that go next, as with the compactor's soft taint on them.")  # fmt: skip
@click.option("--explain", "subjects", multiple=True, type=(click.Choice(["node", "pod"]), str), metavar="KIND NAME",
              help="The rounds of one node, or one pod (NAMESPACE/NAME), and why it stays.")  # fmt: skip
@output.options
def verb(
    options: PlanOptions, scheduler: str, marked: bool, subjects: tuple[tuple[str, str], ...], output: str,
    output_file: str | None,
) -> None:  # fmt: skip
    """What would be left, if the plan were carried out round by round until nothing more can go?

    Each round plans, empties the nodes of the first wave, lets a model of the scheduler place the successors, and
    begins again with budgets full. Reads what `trimtab plan` reads, and changes nothing.
    """
    found = inputs.read_inputs(options)
    check_subjects(found, subjects)
    with working("Simulating"):
        made = simulate(found.inventory, found.pools, Scheduler(scheduler), found.now, marked=marked, again=found.again)
        told = report(found, made, [chain(found, made, kind, name) for kind, name in subjects])
    _emit(output, output_file, told)


def _emit(form: str, output_file: str | None, told: Any) -> None:
    output.emit(
        form, output_file, told, lambda console: draw(console, told), "trimtab simulate", page=lambda: page.page(told)
    )
