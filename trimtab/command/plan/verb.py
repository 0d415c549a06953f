"""`trimtab plan`: which nodes can go, in which order, and why does every other node stay?"""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from trimtab.command import live, output
from trimtab.command.plan import asked, explain, page
from trimtab.command.plan.draw import draw
from trimtab.command.plan.tell import report
from trimtab.command.progress import working
from trimtab.compaction.plan import plan
from trimtab.packing.world import build

F = TypeVar("F", bound=Callable[..., Any])


def inputs(function: F) -> F:
    """What a plan is made of; `trimtab simulate` reads the same."""
    for option in (
        click.option("--pool", "named", multiple=True, metavar="NAME=PRESET",
                     help="careful, balanced or keen for this pool; the pool `all` is every node."),
        click.option("--autoscaler-flags", metavar="FLAGS", default="",
                     help="As the cluster autoscaler runs with; a capture leaves command lines out."),
        click.option("--now", metavar="TIME", help="The moment to plan in, or `now`. Without it no clock is asked."),
        click.option("--pools", "pool_paths", multiple=True, metavar="PATH",
                     help="Pool ConfigMaps, or an estafette configuration. Default: those of the snapshot."),
        live.options,
    ):  # fmt: skip
        function = option(function)
    return function


@click.command("plan")
@inputs
@click.option("--explain", "subjects", multiple=True, type=(click.Choice(["node", "pod"]), str), metavar="KIND NAME",
              help="The chain of reasons for one node, or one pod (NAMESPACE/NAME).")  # fmt: skip
@output.options
def verb(
    cluster: live.Asked,
    pool_paths: tuple[str, ...],
    now: str | None,
    named: tuple[str, ...],
    autoscaler_flags: str,
    subjects: tuple[tuple[str, str], ...],
    output: str,
    output_file: str | None,
) -> None:
    """Which nodes can go, in which order, where would every pod go, and why does every other node stay?

    Reads a snapshot (nodes, pods, pdb; better with rs, deploy, sts, pv, pvc, csinodes, cm) and changes nothing.
    Without --pools the pool ConfigMaps of the snapshot count, else each pool that the nodes' labels tell is planned
    with the preset balanced.
    """
    found = asked.read(cluster, pool_paths, now, named, autoscaler_flags)
    explain.check(found, subjects)
    with working("Planning"):
        world = build(found.inventory)
        made = plan(world, found.pools, found.now)
    told = report(found, made, [explain.chain(found, world, made, kind, name) for kind, name in subjects])
    _emit(output, output_file, told)


def _emit(form: str, output_file: str | None, told: Any) -> None:
    output.emit(
        form, output_file, told, lambda console: draw(console, told), "trimtab plan", page=lambda: page.page(told)
    )
