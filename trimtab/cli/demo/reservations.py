"""The part of the demo about reservations: the resources of a node that vendors reserve and that pods cannot use."""

from rich.console import Console

from trimtab.cli.printable_text import styled
from trimtab.cli.reporting.draw import draw_report
from trimtab.cli.reports.reservation_formula import build_report
from trimtab.cli.reports.reservation_table import view_formulas
from trimtab.inputs.node_shapes import DensityOptions, SizeOptions, size_shape
from trimtab.reservations.read_profile import shipped_profiles

PROFILES = ("gke", "aks-1.29", "eks", "openshift-2026", "gardener")


def draw_reservations(console: Console) -> None:
    """Draw what a node of four cores and 16 GiB reserves by the formulas of five vendors."""
    console.print(
        styled(
            "\n[bold]How much of a node is reserved for its kubelet?[/] The vendors' formulas differ, and none of "
            "them measures the workload; `trimtab reserved measure` does."
        ),
        highlight=False,
    )
    shape = size_shape(SizeOptions(cpu="4", memory="16Gi", max_pods=110), DensityOptions())
    profiles = [shipped_profiles()[name] for name in PROFILES]
    draw_report(console, build_report(profiles, [shape]), view_formulas(explain=False))
