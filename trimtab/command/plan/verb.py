"""`trimtab plan`: which nodes can go, in which order, and why does every other node stay?"""

from typing import Any

import click

from trimtab.command import output
from trimtab.command.plan import asked, explain, page
from trimtab.command.plan.draw import draw
from trimtab.command.plan.given import Given, inputs
from trimtab.command.plan.tell import report
from trimtab.command.progress import working
from trimtab.compaction.plan import plan
from trimtab.packing.world import build


@click.command("plan")
@inputs
@click.option("--explain", "subjects", multiple=True, type=(click.Choice(["node", "pod"]), str), metavar="KIND NAME",
              help="The chain of reasons for one node, or one pod (NAMESPACE/NAME).")  # fmt: skip
@output.options
def verb(given: Given, subjects: tuple[tuple[str, str], ...], output: str, output_file: str | None) -> None:
    """Which nodes can go, in which order, where would every pod go, and why does every other node stay?

    Reads a snapshot (nodes, pods, pdb; better with rs, deploy, sts, pv, pvc, csinodes, cm) and changes nothing.
    Without --pools the pool ConfigMaps of the snapshot count, else each pool that the nodes' labels tell is planned
    with the preset balanced. Where policies stand (--policies, else the snapshot's PodPolicies) a pod counts with the
    larger of what it asks now and what it would be given when admitted again, as the compactor counts it.
    """
    found = asked.read(given)
    explain.check(found, subjects)
    with working("Planning"):
        world = build(found.inventory, found.again)
        made = plan(world, found.pools, found.now)
    told = report(found, made, [explain.chain(found, world, made, kind, name) for kind, name in subjects])
    _emit(output, output_file, told)


def _emit(form: str, output_file: str | None, told: Any) -> None:
    output.emit(
        form, output_file, told, lambda console: draw(console, told), "trimtab plan", page=lambda: page.page(told)
    )
