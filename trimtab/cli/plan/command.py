"""The command line of `trimtab plan`: it reads the inputs, plans, and writes the report."""

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import click

from trimtab.cli.options import takes
from trimtab.cli.output import show_spinner
from trimtab.cli.reporting.emit import PageOutput, write_report
from trimtab.cli.reports import plan_explanation as explain
from trimtab.cli.reports.plan import PlanReport, build_report
from trimtab.cli.reports.plan_comparison import NO_COMPARISON, compare_plans
from trimtab.cli.reports.plan_screen import view_on_screen
from trimtab.cli.reports.plan_table import VIEW
from trimtab.cli.reports.replacements import report_replacements
from trimtab.cli.reports.resizes import plan_resizes
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.pool import pool_name
from trimtab.compaction.plan import make_plan
from trimtab.inputs import plan_inputs as inputs
from trimtab.inputs.command_faults import UsageError, check_names
from trimtab.inputs.flags import COMPARE, EXPLAIN
from trimtab.inputs.option import option
from trimtab.inputs.plan_inputs import PlanOptions
from trimtab.scheduling.cluster_model import build_cluster_model

MAX_COMPARED_NODES = 500
"""The largest number of nodes for which a comparison is made without --compare. A comparison computes about a dozen
more plans."""
_NOT_COMPARED = (
    f"the cluster has more than {MAX_COMPARED_NODES} nodes, so the presets are not compared, and what each reason to "
    "stay costs is not computed; --compare does both"
)


def _render_page(report: PlanReport) -> str:
    from trimtab.cli.plan.page import render_page  # a page needs templates, and a table does not

    return render_page(report)


_VIEW = replace(VIEW, texts={"html": _render_page})


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanVerbOptions:
    """The options of `trimtab plan`."""

    inputs: PlanOptions
    subjects: Annotated[tuple[tuple[Literal["node", "pod"], str], ...], EXPLAIN] = ()
    compares: Annotated[
        bool | None,
        COMPARE.with_help(
            "Compare the three presets, and show how much a plan would save without each reason that blocks nodes. "
            f"Default: for up to {MAX_COMPARED_NODES} nodes, or with -o html."
        ),
    ] = None
    wanted: Annotated[
        str | None,
        option(
            "--for",
            metavar="FILE|AMOUNTS",
            help="Show instead which pods have to move so that the pods of this manifest fit, or pods with these "
            "amounts, such as cpu=16,memory=64Gi,nvidia.com/gpu=8,count=4,within=zone.",
        ),
    ] = None
    serves_pending: Annotated[
        bool, option("--for-pending", help="Like --for, for the pods of the cluster that wait for a node.")
    ] = False
    free_pool: Annotated[
        str | None,
        option(
            "--for-node-of",
            metavar="POOL",
            help="Like --for, but so that one node of this pool has no pods of a workload any more.",
        ),
    ] = None
    lists_order: Annotated[
        bool,
        option(
            "--as-order",
            help="With --for and its siblings: also print the commands that evict these pods, or drain the node.",
        ),
    ] = False
    details: Annotated[
        bool, option("--details", help="Also show targets, prices, presets, pools and notes, as -o wide does.")
    ] = False
    output: PageOutput


@click.command("plan")
@takes(PlanVerbOptions)
def verb(options: PlanVerbOptions) -> None:
    """Show which nodes can be drained, in which order, where every pod would move, and why the other nodes stay.

    Reads a snapshot (nodes, pods, pdb; better with rs, deploy, sts, pv, pvc, csinodes, cm) and changes nothing. Without
    --pools it uses the pool ConfigMaps of the snapshot; if there are none, it plans each pool that nodes name by a
    label, or by the annotation of their MachineSet, with the preset balanced. If there are policies (--policies, or the
    PodPolicies of the snapshot), a pod counts with the larger of its present requests and the requests that it would
    get if it were created again, as in the compactor. --resize also shows what more is freed if the pods of policies
    with `running: resize` are made smaller first, and which resizes that needs. Without --now, rules that need a time
    (ages, windows, quiet times) use the present time if the cluster is live and its pools have settings; otherwise they
    are not applied.
    """
    subjects = options.subjects
    if options.wanted is not None or options.serves_pending or options.free_pool is not None:
        _show_room(options)
        return
    if options.lists_order:
        raise UsageError([ConfigError(file="--as-order", expected="--for or --for-pending", got="neither")])
    plan_inputs = inputs.read_inputs(options.inputs, like_compactor=True)
    explain.check_subjects(plan_inputs, subjects)
    with show_spinner("Planning"):
        cluster_model = build_cluster_model(plan_inputs.inventory, plan_inputs.readmitted_requests)
        draining_plan = make_plan(cluster_model, plan_inputs.pools, plan_inputs.context)
    is_small = len(plan_inputs.inventory.nodes) <= MAX_COMPARED_NODES
    is_compared = options.compares
    if is_compared is None:
        is_compared = options.output.form == "html" or is_small
        if plan_inputs.is_assumed and not is_compared:
            plan_inputs = replace(plan_inputs, notes=(*plan_inputs.notes, _NOT_COMPARED))
    comparison = NO_COMPARISON
    if is_compared and not subjects:
        with show_spinner("Comparing"):
            comparison = compare_plans(plan_inputs, cluster_model, draining_plan)
    chains = [explain.explain_subject(plan_inputs, cluster_model, draining_plan, kind, name) for kind, name in subjects]
    resize = plan_resizes(plan_inputs, draining_plan) if plan_inputs.wants_resizes and not subjects else None
    with show_spinner("Comparing with new nodes"):
        replacements = report_replacements(plan_inputs, draining_plan) if not subjects else None
    plan_report = build_report(plan_inputs, cluster_model, draining_plan, chains, comparison, resize, replacements)
    is_short = options.output.form == "table" and not options.details
    write_report(options.output, plan_report, view_on_screen(plan_report) if is_short else _VIEW)


def _show_room(options: PlanVerbOptions) -> None:
    """Write which pods have to move so that others fit."""
    # Imported here, because a plan without --for needs none of it.
    from trimtab.cli.reports.room import VIEW as ROOM_VIEW
    from trimtab.cli.reports.room import build_node_report, build_room_report
    from trimtab.compaction.room.make_room import free_node, make_room
    from trimtab.inputs.wanted_pods import WantedManifests, find_wanted_pods, read_wanted

    pool = options.free_pool
    if (options.wanted is not None) + options.serves_pending + (pool is not None) > 1:
        expected = "one of --for, --for-pending and --for-node-of"
        raise UsageError([ConfigError(file="--for", expected=expected, got="several of them")])
    request = read_wanted(options.wanted) if options.wanted is not None else None
    plan_inputs = inputs.read_inputs(
        options.inputs, like_compactor=True, keeps_documents=isinstance(request, WantedManifests)
    )
    readmitted, pools, now = plan_inputs.readmitted_requests, plan_inputs.pools, plan_inputs.context.now
    if pool is not None:
        check_names("--for-node-of", "a pool", [pool], map(pool_name, plan_inputs.inventory.machines))
        names = {node.name for node in plan_inputs.inventory.machines if pool_name(node) == pool}
        room = free_node(plan_inputs.inventory, names, now, readmitted, pools)
        report = build_node_report(room, pool, plan_inputs.cluster_notes, lists_order=options.lists_order)
        write_report(options.output, report, ROOM_VIEW)
        return
    wanted = find_wanted_pods(request, plan_inputs, options.inputs)
    if wanted.refusal is None:
        with show_spinner("Making room"):
            room = make_room(wanted.inventory, wanted.pods, now, readmitted, wanted.within, pools)
    else:
        room = wanted.refusal
    notes = (*plan_inputs.cluster_notes, *wanted.notes)
    room_report = build_room_report(room, len(wanted.pods), notes, lists_order=options.lists_order)
    write_report(options.output, room_report, ROOM_VIEW)
