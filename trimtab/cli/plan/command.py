"""`trimtab plan`: which nodes can go, in which order, and why does every other node stay?"""

from typing import Any

import click

from trimtab.cli import output
from trimtab.cli.output import working
from trimtab.cli.plan import explain, inputs, page
from trimtab.cli.plan.comparison import NOTHING, compared
from trimtab.cli.plan.inputs import PlanOptions
from trimtab.cli.plan.inputs import inputs as plan_inputs
from trimtab.cli.plan.report import report
from trimtab.cli.plan.table import draw
from trimtab.compaction.plan import plan
from trimtab.scheduling.cluster_model import build


@click.command("plan")
@plan_inputs
@click.option("--explain", "subjects", multiple=True, type=(click.Choice(["node", "pod"]), str), metavar="KIND NAME",
              help="The chain of reasons for one node, or one pod (NAMESPACE/NAME).")  # fmt: skip
@click.option("--compare/--no-compare", "compares", default=None,
              help="The three presets beside each other, and what keeps the rest, priced. Default: where no pool has "
                   "settings, and with -o html.")  # fmt: skip
@output.options
def verb(
    given: PlanOptions,
    subjects: tuple[tuple[str, str], ...],
    compares: bool | None,
    output: str,
    output_file: str | None,
) -> None:
    """Which nodes can go, in which order, where would every pod go, and why does every other node stay?

    Reads a snapshot (nodes, pods, pdb; better with rs, deploy, sts, pv, pvc, csinodes, cm) and changes nothing.
    Without --pools the pool ConfigMaps of the snapshot count, else each pool that the nodes name, by label or by the
    annotation of their MachineSet, is planned with the preset balanced. Where policies stand (--policies, else the
    snapshot's PodPolicies) a pod counts with the larger of what it asks now and what it would be given when admitted
    again, as the compactor counts it.
    """
    found = inputs.read(given)
    explain.check(found, subjects)
    with working("Planning"):
        world = build(found.inventory, found.again)
        made = plan(world, found.pools, found.now)
    is_asked = found.assumed or output == "html" if compares is None else compares
    with working("Comparing"):
        others = compared(found, world, made) if is_asked and not subjects else NOTHING
    chains = [explain.chain(found, world, made, kind, name) for kind, name in subjects]
    told = report(found, world, made, chains, others)
    _emit(output, output_file, told)


def _emit(form: str, output_file: str | None, told: Any) -> None:
    output.emit(
        form, output_file, told, lambda console: draw(console, told), "trimtab plan", page=lambda: page.page(told)
    )
