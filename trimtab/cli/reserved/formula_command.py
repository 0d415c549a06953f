"""The command line of `trimtab reserved formula`: one node size, a machine type, or the nodes of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from trimtab.cli.reporting.emit import add_report_options, emit_report
from trimtab.cli.reports.reservation_formula import build_report
from trimtab.cli.reports.reservation_table import view_formulas
from trimtab.cli.shared_options import add_cluster_options
from trimtab.cluster.config_error import ConfigError, suggest_name
from trimtab.inputs import live_cluster
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.node_shapes import (
    CNIS,
    DensityOptions,
    FormulaNode,
    SizeOptions,
    shapes_of_cluster,
    size_shape,
    type_shape,
)
from trimtab.reservations.profile import Profile
from trimtab.reservations.read_profile import read_profiles, shipped_profiles


@dataclass(frozen=True, slots=True)
class FormulaOptions:
    """The options of the command line that describe a node."""

    size: SizeOptions
    machine_type: str | None
    cluster: live_cluster.ClusterOptions


@click.command("formula")
@click.option(
    "--profile", "profile_names", multiple=True, metavar="NAME|FILE",
    help=
        "The name of a vendor's formula, or a YAML file with your own formula. Default: compare all formulas "
        "that Trimtab includes.",
)  # fmt: skip
@click.option("--cpu", metavar="QUANTITY", help="The cores of the node, such as 8.")
@click.option("--memory", metavar="QUANTITY", help="The memory of the node, such as 32Gi.")
@click.option(
    "--max-pods",
    type=click.IntRange(1, 10_000),
    help="The kubelet's maxPods, the largest number of pods of a node. Default: computed from --cni, otherwise 110.",
)
@click.option("--type", "machine_type", metavar="NAME", help="A machine type of AWS, Azure or GCP.")
@add_cluster_options
@click.option(
    "--disk",
    metavar="QUANTITY",
    help="The size of the boot disk, such as 100Gi: the report then shows its reservation too.",
)
@click.option(
    "--local-disks",
    default=0,
    type=click.IntRange(0, 64),
    help="The number of local disks that hold ephemeral storage.",
)
@click.option(
    "--cni", type=click.Choice(CNIS),
    help="How pods get addresses on an EC2 type: vpc (default), vpc-prefix, or cilium in ENI mode.",
)  # fmt: skip
@click.option(
    "--first-interface-index", default=0, type=click.IntRange(0, 15),
    help=
        "Cilium's setting for the first network interface that gives addresses to pods; interfaces with a lower "
        "index give none.",
)  # fmt: skip
@click.option(
    "--node-cidr", type=click.IntRange(16, 30), metavar="BITS",
    help="The prefix length of a node's pod range, such as 24 (node-cidr-mask-size).",
)  # fmt: skip
@click.option("--explain", is_flag=True, help="Print each term of each formula.")
@add_report_options
def compare_formulas(
    profile_names: tuple[str, ...],
    cpu: str | None,
    memory: str | None,
    max_pods: int | None,
    machine_type: str | None,
    cluster: live_cluster.ClusterOptions,
    disk: str | None,
    local_disks: int,
    cni: str | None,
    first_interface_index: int,
    node_cidr: int | None,
    explain: bool,
    form: str,
    output_file: str | None,
) -> None:
    """Compare what vendors reserve of a node, and what is left for pods.

    Give a size (--cpu, --memory, --max-pods), a machine type (--type), or nodes that exist (--cluster). Kube reserved,
    system reserved and the eviction threshold are separate columns; the share of the price is what you pay for cpu and
    memory that pods cannot request.
    """
    size = SizeOptions(cpu, memory, max_pods, disk, local_disks)
    density = DensityOptions(cni, first_interface_index, node_cidr)
    profiles, mistakes = _read_profile_options(profile_names)
    try:
        shapes = _find_shapes(FormulaOptions(size, machine_type, cluster), density)
    except UsageError as error:
        raise UsageError([*mistakes, *error.mistakes]) from None
    if mistakes:
        raise UsageError(mistakes)
    emit_report(form, output_file, build_report(profiles, shapes), view_formulas(explain=explain))


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


def _find_shapes(options: FormulaOptions, density: DensityOptions) -> list[FormulaNode]:
    """Returns the node sizes to compute: those of --cpu and --memory, of --type, or of --cluster.

    Raises UsageError unless exactly one of these ways is used."""
    has_size = options.size.cpu is not None or options.size.memory is not None
    ways = {"--cpu together with --memory": has_size, "--type": options.machine_type is not None,
            "--cluster": bool(options.cluster.paths)}  # fmt: skip
    chosen = [name for name, is_used in ways.items() if is_used]
    if len(chosen) != 1:
        got = " and ".join(chosen) or "none"
        raise UsageError([ConfigError(file="command line", expected=f"one of {', '.join(ways)}", got=got)])
    if options.machine_type is not None:
        return [type_shape(options.machine_type, options.size, density)]
    if has_size:
        return [size_shape(options.size, density)]
    return shapes_of_cluster(live_cluster.read_snapshot(options.cluster, ("Node",)), options.size, density)
