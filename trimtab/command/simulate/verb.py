"""`trimtab simulate`: what would be left, if the plan were carried out until nothing more can go?"""

from typing import Any

import click

from trimtab.command import output
from trimtab.command.plan import asked
from trimtab.command.plan.given import Given, inputs
from trimtab.command.progress import working
from trimtab.command.simulate import page
from trimtab.command.simulate.draw import draw
from trimtab.command.simulate.report import report
from trimtab.compaction.simulate import Scheduler, simulate


@click.command("simulate")
@inputs
@click.option("--scheduler", type=click.Choice([str(kind.value) for kind in Scheduler]), default="plan",
              show_default=True,
              help="Who places evicted pods: the plan, or a scheduler that spreads or packs.")  # fmt: skip
@click.option("--marked", is_flag=True,
              help="The scheduler avoids nodes that go next, as with the compactor's soft taint on them.")  # fmt: skip
@output.options
def verb(given: Given, scheduler: str, marked: bool, output: str, output_file: str | None) -> None:
    """What would be left, if the plan were carried out round by round until nothing more can go?

    Each round plans, empties the nodes of the first wave, lets a model of the scheduler place the successors, and
    begins again with budgets full. Reads what `trimtab plan` reads, and changes nothing.
    """
    found = asked.read(given)
    with working("Simulating"):
        made = simulate(found.inventory, found.pools, Scheduler(scheduler), found.now, marked=marked, again=found.again)
        told = report(found, made)
    _emit(output, output_file, told)


def _emit(form: str, output_file: str | None, told: Any) -> None:
    output.emit(
        form, output_file, told, lambda console: draw(console, told), "trimtab simulate", page=lambda: page.page(told)
    )
