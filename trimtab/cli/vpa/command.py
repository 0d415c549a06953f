"""The command lines of `trimtab vpa simulate` and `trimtab vpa propose`, which only read."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import click

from trimtab.autoscaling.simulation.propose_vpas import VpaAction, propose_vpa
from trimtab.autoscaling.simulation.simulate_vpa import simulate_vpa
from trimtab.cli import output
from trimtab.cli.main import SuggestingGroup
from trimtab.cli.options import takes
from trimtab.cli.print_text import print_text
from trimtab.cli.reporting.emit import ReportOutput, write_report
from trimtab.cli.selection import SelectionOptions
from trimtab.cli.shared_options import needs_cluster, parse_minor_version
from trimtab.cli.vpa.lint_proposals import lint_proposals
from trimtab.cli.vpa.report import (
    PROPOSE_VIEW,
    SIMULATE_VIEW,
    VpaProposeReport,
    VpaSimulateReport,
    build_proposed_vpa,
    build_reaction_row,
    build_simulated_container,
)
from trimtab.cluster.config_error import ConfigError
from trimtab.histogram.batch_history import ContainerKey
from trimtab.histogram.vpa_estimators import DEFAULT_FLAGS, RecommenderFlags, parse_recommender_flags
from trimtab.inputs import live_cluster
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.flags import MANIFESTS, SERVER_VERSION, USAGE
from trimtab.inputs.option import option
from trimtab.inputs.stated_quantities import QUANTITY
from trimtab.inputs.usage_series import read_usage_series
from trimtab.inputs.workloads import (
    ClusterWorkloads,
    build_histories,
    group_series,
    leave_out_absent,
    leave_out_unsized,
    read_cluster_workloads,
)
from trimtab.usage.metric_names import NOTHING_STATED, StatedQuantities


def _select_containers(options: SelectionOptions, workloads: ClusterWorkloads) -> Callable[[ContainerKey], bool]:
    """Returns whether a container is of the workloads that the user asks about."""
    selection, containers = options.parse(), workloads.current.containers
    selection.check_namespaces(container.namespace for container in containers)

    def includes(key: ContainerKey) -> bool:
        container = containers.get(key)
        return selection.includes(key.namespace, container.merged_labels if container is not None else {})

    return includes


@click.group("vpa", cls=SuggestingGroup)
def verb() -> None:
    """Simulate a VPA on usage, and propose VPAs. Nothing is changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VpaSimulateOptions:
    """The options of `trimtab vpa simulate`."""

    cluster: live_cluster.ClusterOptions
    usage: Annotated[tuple[str, ...], USAGE]
    stated: Annotated[StatedQuantities, QUANTITY] = NOTHING_STATED
    flag_texts: Annotated[
        tuple[str, ...],
        option(
            "--flags",
            metavar="FLAGS",
            help="Flags of the recommender and the updater to compare with the defaults, such as "
            '"--cpu-histogram-decay-half-life=15m --target-cpu-percentile=0.95".',
        ),
    ] = ()
    workload: Annotated[str, option("--workload", metavar="KIND/NAME", help="Simulate only this workload.")] = ""
    update_mode: Annotated[
        Literal["Recreate", "InPlaceOrRecreate", "Initial"],
        option(
            "--update-mode",
            former=("--mode",),
            help="The updateMode of the simulated VPA. With in-place updates no pod is evicted.",
        ),
    ] = "Recreate"
    selection: SelectionOptions
    output: ReportOutput


@verb.command("simulate")
@takes(VpaSimulateOptions)
def simulate_flags(options: VpaSimulateOptions) -> None:
    """Show what a VPA with the given flags would have done to your workloads.

    For each set of flags: requests over time (-o json), minutes in which pods used more than they requested, waste,
    evictions, and the time until requests follow a step in usage. The present requests come from --cluster; without
    --cluster a pod has no requests before the first recommendation. The simulation assumes that usage does not depend
    on requests.
    """
    flag_sets = _parse_flag_sets(options.flag_texts)
    series, notes = read_usage_series(options.usage, stated=options.stated)
    workloads = read_cluster_workloads(options.cluster)
    includes = _select_containers(options.selection, workloads)
    grouped, absent_notes = leave_out_absent(group_series(series, workloads, includes, options.workload), workloads)
    notes += absent_notes
    if not grouped:
        notes.append("No usage was found: check --usage, --namespace, --selector and --workload.")
    report = VpaSimulateReport(
        reaction=[build_reaction_row(name, flags) for name, flags in flag_sets.items()],
        containers=[
            build_simulated_container(
                key,
                {
                    name: simulate_vpa(
                        grouped[key],
                        flags,
                        initial=workloads.initial_requests(key),
                        containers=_count_containers(key, grouped, workloads),
                        in_place=options.update_mode == "InPlaceOrRecreate",
                        updates=options.update_mode != "Initial",
                    )
                    for name, flags in flag_sets.items()
                },
            )
            for key in output.show_progress(list(grouped), "Simulating")
        ],
        notes=notes,
    )
    write_report(options.output, report, SIMULATE_VIEW)


def _count_containers(key: ContainerKey, grouped: dict[ContainerKey, Any], workloads: ClusterWorkloads) -> int:
    """Returns the number of containers of the workload's pod: the number in the cluster or in the usage, whichever is
    larger."""
    same = sum(other.owner == key.owner for other in grouped)
    return max(same, workloads.count_containers(key))


def _parse_flag_sets(texts: tuple[str, ...]) -> dict[str, RecommenderFlags]:
    """Returns name → flags of each set, the defaults first. Raises UsageError with every mistake."""
    flag_sets = {"default": DEFAULT_FLAGS}
    mistakes: list[str] = []
    for text in texts:
        try:
            flags, wrong = parse_recommender_flags(shlex.split(text))
        except ValueError as error:
            flags, wrong = DEFAULT_FLAGS, (str(error),)
        mistakes += wrong
        flag_sets[" ".join(text.split())] = flags
    if mistakes:
        expected = "flags of the VPA's recommender or updater"
        raise UsageError([ConfigError(file="--flags", expected=expected, got=mistake) for mistake in mistakes])
    return flag_sets


@dataclass(frozen=True, slots=True, kw_only=True)
class VpaProposeOptions:
    """The options of `trimtab vpa propose`."""

    cluster: live_cluster.ClusterOptions
    usage: Annotated[tuple[str, ...], USAGE]
    stated: Annotated[StatedQuantities, QUANTITY] = NOTHING_STATED
    server_version: Annotated[
        str | None,
        SERVER_VERSION.with_help("The Kubernetes version, such as 1.33. From 1.33 on pods can be resized in place."),
    ] = None
    prints_manifests: Annotated[bool, MANIFESTS.with_help("Print only the VPAs to add and to change, as YAML.")] = False
    selection: SelectionOptions
    output: ReportOutput


@verb.command("propose")
@takes(VpaProposeOptions)
def propose_changes(options: VpaProposeOptions) -> None:
    """Show which VPAs to add, to change and to remove.

    A VPA is proposed if usage is large and varies. It changes requests only. Its minimum is the request that an idle
    container would get; its maximum is what the largest node that the pod may use can hold in addition to its
    DaemonSets. It leaves out resources on whose utilization an HPA scales. VPAs to remove are in the report;
    --manifests names them on standard error.
    """
    version = parse_minor_version(options.server_version) if options.server_version else None
    if options.server_version and version is None:
        got = options.server_version
        raise UsageError([ConfigError(file="--server-version", expected="a version such as 1.33", got=got)])
    if options.prints_manifests and not options.cluster.paths:
        raise UsageError([needs_cluster("--manifests")])
    series, notes = read_usage_series(options.usage, stated=options.stated)
    workloads = read_cluster_workloads(options.cluster)
    includes = _select_containers(options.selection, workloads)
    grouped, absent_notes = leave_out_absent(group_series(series, workloads, includes), workloads)
    grouped, unsized_notes = leave_out_unsized(grouped)
    left_out = [*absent_notes, *unsized_notes]
    notes += left_out
    proposals = lint_proposals(
        [propose_vpa(history, version) for history in build_histories(grouped, workloads)], workloads.documents
    )
    if options.prints_manifests:
        chosen = [one for one in proposals if one.action in (VpaAction.ADD, VpaAction.CHANGE)]
        text = output.format_manifests(one.manifest for one in chosen if one.manifest is not None)
        output.write_text(text, options.output.file)
        for note in left_out:
            print_text(note, err=True)
        for one in proposals:
            if one.action is VpaAction.REMOVE:
                print_text(f"kubectl delete vpa --namespace {one.workload.namespace} {one.existing}", err=True)
        return
    if not options.cluster.paths:
        notes.append(
            "Without --cluster Trimtab proposes no maximum for VPAs, and does not know existing VPAs and HPAs."
        )
    if version is None:
        notes.append(
            "Without --server-version the proposed updateMode is Recreate; from Kubernetes 1.33 on pods can be "
            "resized in place."
        )
    report = VpaProposeReport(proposals=[build_proposed_vpa(one) for one in proposals], notes=notes)
    write_report(options.output, report, PROPOSE_VIEW)
