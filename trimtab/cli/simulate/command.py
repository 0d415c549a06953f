"""The command line of `trimtab simulate`: it repeats plan and drain until no more node can be removed."""

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import click

from trimtab.cli.options import takes
from trimtab.cli.output import show_spinner
from trimtab.cli.reporting.emit import PageOutput, write_report
from trimtab.cli.reports.plan_explanation import check_subjects
from trimtab.cli.reports.resizes import simulate_resizes
from trimtab.cli.simulate.churn_flags import ChurnFlags
from trimtab.cli.simulate.report import SimulateReport, build_report, explain_subject
from trimtab.cli.simulate.table import SCREEN_VIEW, VIEW
from trimtab.cluster.cluster_state import Inventory
from trimtab.compaction.replace.simulate import simulate_with_replacements
from trimtab.compaction.simulate import Scheduler, Simulation, simulate_rounds
from trimtab.inputs import plan_inputs as inputs
from trimtab.inputs.flags import EXPLAIN
from trimtab.inputs.option import option
from trimtab.inputs.plan_inputs import PlanOptions


def _render_page(report: SimulateReport) -> str:
    from trimtab.cli.simulate.page import render_page  # a page needs templates, and a table does not

    return render_page(report)


_VIEW = replace(VIEW, texts={"html": _render_page})


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateOptions:
    """The options of `trimtab simulate`."""

    inputs: PlanOptions
    scheduler: Annotated[
        Scheduler,
        option(
            "--scheduler",
            help="How evicted pods get their nodes: from the plan, or from a scheduler that spreads or packs pods.",
        ),
    ] = Scheduler.PLAN
    marked: Annotated[
        bool,
        option(
            "--marked",
            help="Let the scheduler avoid nodes that are drained next or reserved, as Trimtab's soft taints do.",
        ),
    ] = False
    replaces: Annotated[
        bool,
        option(
            "--replace",
            help="Also carry out the advised replacements, as if every node group gave the nodes that they need.",
        ),
    ] = False
    subjects: Annotated[
        tuple[tuple[Literal["node", "pod"], str], ...],
        EXPLAIN.with_help("Show the rounds that change one node or one pod (NAMESPACE/NAME), and why it stays."),
    ] = ()
    churn: ChurnFlags
    output: PageOutput


@click.command("simulate")
@takes(SimulateOptions)
def verb(options: SimulateOptions) -> None:
    """Simulate the plan round by round until no more node can be drained, and show what is left.

    Each round makes a plan, drains the nodes of the first wave, places the new pods with a model of the scheduler, and
    starts again with full budgets. The command reads the same input as `trimtab plan`, and changes nothing. --resize
    simulates once more, after the pods of policies with `running: resize` were made smaller. --replace also carries out
    the replacements that `trimtab plan` advises. --churn needs no snapshot.
    """
    if options.churn.is_wanted:
        # Imported here: the compactor's loop and its client take longer to import than a plan takes.
        from trimtab.cli.simulate import churn_report
        from trimtab.cli.simulate.churn_command import simulate_churn

        with show_spinner("Simulating"):
            report = simulate_churn(options.churn)
        write_report(options.output, report, churn_report.VIEW)
        return
    plan_inputs, subjects = inputs.read_inputs(options.inputs), options.subjects
    check_subjects(plan_inputs, subjects)
    with show_spinner("Simulating"):

        def simulate_drains(inventory: Inventory) -> Simulation:
            return simulate_rounds(
                inventory,
                plan_inputs.pools,
                options.scheduler,
                plan_inputs.context,
                marked=options.marked,
                again=plan_inputs.readmitted_requests,
            )

        def simulate(inventory: Inventory) -> Simulation:
            if not options.replaces:
                return simulate_drains(inventory)
            return simulate_with_replacements(
                inventory, plan_inputs.pools, plan_inputs.context, plan_inputs.readmitted_requests, simulate_drains
            )

        simulation = simulate(plan_inputs.inventory)
        resize = (
            simulate_resizes(plan_inputs, simulation, simulate) if plan_inputs.wants_resizes and not subjects else None
        )
        chains = [explain_subject(plan_inputs, simulation, kind, name) for kind, name in subjects]
        simulate_report = build_report(plan_inputs, simulation, chains, resize)
    write_report(options.output, simulate_report, SCREEN_VIEW if options.output.form == "table" else _VIEW)
