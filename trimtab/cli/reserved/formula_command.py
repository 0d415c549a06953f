"""The command line of `trimtab reserved formula`: one node size, a machine type, or the nodes of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from trimtab.cli.options import takes
from trimtab.cli.reporting.emit import ReportOutput, write_report
from trimtab.cli.reports.reservation_formula import build_report
from trimtab.cli.reports.reservation_table import view_formulas
from trimtab.cluster.config_error import ConfigError, suggest_name
from trimtab.inputs import live_cluster
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.flags import DETAILS, MAX_PODS, POOL
from trimtab.inputs.live_cluster import ClusterOptions
from trimtab.inputs.node_shapes import (
    DensityOptions,
    FormulaNode,
    SizeOptions,
    shapes_of_cluster,
    size_shape,
    type_shape,
)
from trimtab.inputs.option import option, quantity_option
from trimtab.reservations.profile import Profile
from trimtab.reservations.read_profile import read_profiles, shipped_profiles


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedFormulaOptions:
    """The options of `trimtab reserved formula`."""

    profile_names: Annotated[
        tuple[str, ...],
        option(
            "--profile",
            metavar="NAME|FILE",
            help="The name of a vendor's formula, or a YAML file with your own formula. Default: compare all formulas "
            "that Trimtab includes.",
        ),
    ] = ()
    cpu: Annotated[str | None, quantity_option("--cpu", help="The cores of the node, such as 8.")] = None
    memory: Annotated[str | None, quantity_option("--memory", help="The memory of the node, such as 32Gi.")] = None
    max_pods: Annotated[
        int | None,
        MAX_PODS.with_help(
            "The kubelet's maxPods, the largest number of pods of a node. Default: computed from --cni, otherwise 110."
        ),
    ] = None
    machine_type: Annotated[
        str | None, option("--type", metavar="NAME", help="A machine type of AWS, Azure or GCP.")
    ] = None
    cluster: ClusterOptions
    pool: Annotated[str | None, POOL.with_help("Compute only the nodes of this pool. Default: all nodes.")] = None
    disk: Annotated[
        str | None,
        quantity_option(
            "--disk",
            help="The size of the boot disk, such as 100Gi: the report then shows its reservation too.",
        ),
    ] = None
    local_disks: Annotated[
        int,
        option("--local-disks", minimum=0, maximum=64, help="The number of local disks that hold ephemeral storage."),
    ] = 0
    density: DensityOptions
    details: Annotated[bool, DETAILS.with_help("Print each term of each formula.")] = False
    output: ReportOutput

    @property
    def size(self) -> SizeOptions:
        """The size of the node, as far as the options give it."""
        return SizeOptions(self.cpu, self.memory, self.max_pods, self.disk, self.local_disks)


@click.command("formula")
@takes(ReservedFormulaOptions)
def compare_formulas(options: ReservedFormulaOptions) -> None:
    """Compare what vendors reserve of a node, and what is left for pods.

    Give a size (--cpu, --memory, --max-pods), a machine type (--type), or nodes that exist (--cluster). Kube reserved,
    system reserved and the eviction threshold are separate columns; the share of the price is what you pay for cpu and
    memory that pods cannot request.
    """
    profiles, mistakes = _read_profile_options(options.profile_names)
    try:
        shapes = _find_shapes(options)
    except UsageError as error:
        raise UsageError([*mistakes, *error.mistakes]) from None
    if mistakes:
        raise UsageError(mistakes)
    is_screen = options.output.form == "table" and not options.details
    view = view_formulas(explain=options.details, is_screen=is_screen)
    write_report(options.output, build_report(profiles, shapes), view)


def _read_profile_options(names: tuple[str, ...]) -> tuple[tuple[Profile, ...], list[ConfigError]]:
    """Returns the reservation profiles that the options name, or all shipped ones if there is no option; and the
    mistakes."""
    shipped = shipped_profiles()
    profiles: list[Profile] = []
    mistakes: list[ConfigError] = []
    for name in names:
        if name in shipped:
            profiles.append(shipped[name])
        elif Path(name).exists():
            for file, content in live_cluster.read_paths([name]):
                reading = read_profiles(file, content)
                profiles += reading.profiles
                mistakes += reading.mistakes
        else:
            expected = f"a file, or one of {', '.join(shipped)}"
            todo = suggest_name(name, shipped)
            mistakes.append(ConfigError(file="--profile", expected=expected, got=name, todo=todo))
    return tuple(profiles) if names else tuple(shipped.values()), mistakes


def _find_shapes(options: ReservedFormulaOptions) -> list[FormulaNode]:
    """Returns the node sizes to compute: those of --cpu and --memory, of --type, or of --cluster.

    Raises UsageError unless exactly one of these ways is used."""
    has_size = options.cpu is not None or options.memory is not None
    ways = {
        "--cpu together with --memory": has_size,
        "--type": options.machine_type is not None,
        "--cluster": bool(options.cluster.paths),
    }
    if options.pool is not None and not options.cluster.paths:
        raise UsageError([ConfigError(file="--pool", expected="--cluster", got="none")])
    chosen = [name for name, is_used in ways.items() if is_used]
    if len(chosen) != 1:
        got = " and ".join(chosen) or "none"
        raise UsageError([ConfigError(file="command line", expected=f"one of {', '.join(ways)}", got=got)])
    if options.machine_type is not None:
        return [type_shape(options.machine_type, options.size, options.density)]
    if has_size:
        return [size_shape(options.size, options.density)]
    snapshot = live_cluster.read_snapshot(options.cluster, ("Node",))
    return shapes_of_cluster(snapshot, options.size, options.density, options.pool)
