"""The command line of `trimtab simulate`: it repeats plan and drain until no more node can be removed."""

from dataclasses import replace

import click

from trimtab.cli.output import show_spinner
from trimtab.cli.reporting.emit import add_report_options, emit_report
from trimtab.cli.reports.plan_explanation import check_subjects
from trimtab.cli.reports.resizes import simulate_resizes
from trimtab.cli.shared_options import add_plan_options as plan_inputs
from trimtab.cli.simulate import page
from trimtab.cli.simulate.report import build_report, explain_subject
from trimtab.cli.simulate.table import VIEW
from trimtab.cluster.cluster_state import Inventory
from trimtab.compaction.simulate import Scheduler, Simulation, simulate_rounds
from trimtab.inputs import plan_inputs as inputs
from trimtab.inputs.plan_inputs import PlanOptions

_VIEW = replace(VIEW, texts={"html": page.render_page})


@click.command("simulate")
@plan_inputs
@click.option(
    "--scheduler",
    type=click.Choice([str(kind.value) for kind in Scheduler]),
    default="plan",
    show_default=True,
    help="How evicted pods get their nodes: from the plan, or from a scheduler that spreads or packs pods.",
)
@click.option(
    "--marked",
    is_flag=True,
    help="Let the scheduler avoid nodes that are drained next or reserved, as Trimtab's soft taints do.",
)
@click.option("--explain", "subjects", multiple=True, type=(click.Choice(["node", "pod"]), str), metavar="KIND NAME",
              help="Show the rounds that change one node or one pod (NAMESPACE/NAME), and why it stays.")  # fmt: skip
@add_report_options
def verb(
    options: PlanOptions, scheduler: str, marked: bool, subjects: tuple[tuple[str, str], ...], form: str,
    output_file: str | None,
) -> None:  # fmt: skip
    """Simulate the plan round by round until no more node can be drained, and show what is left.

    Each round makes a plan, drains the nodes of the first wave, places the new pods with a model of the scheduler, and
    starts again with full budgets. The command reads the same input as `trimtab plan`, and changes nothing. --resize
    simulates once more, after the pods of policies with `running: resize` were made smaller.
    """
    plan_inputs = inputs.read_inputs(options)
    check_subjects(plan_inputs, subjects)
    with show_spinner("Simulating"):

        def simulate(inventory: Inventory) -> Simulation:
            return simulate_rounds(
                inventory,
                plan_inputs.pools,
                Scheduler(scheduler),
                plan_inputs.context,
                marked=marked,
                again=plan_inputs.readmitted_requests,
            )

        simulation = simulate(plan_inputs.inventory)
        resize = (
            simulate_resizes(plan_inputs, simulation, simulate) if plan_inputs.wants_resizes and not subjects else None
        )
        chains = [explain_subject(plan_inputs, simulation, kind, name) for kind, name in subjects]
        simulate_report = build_report(plan_inputs, simulation, chains, resize)
    emit_report(form, output_file, simulate_report, _VIEW)
