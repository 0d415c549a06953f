"""What the demo says of the pods, and at its end of all that it proved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from trimtab.cli.demo.compaction import CompactionOutcome
from trimtab.cli.printable_text import styled
from trimtab.cli.reporting.draw import build_grid
from trimtab.cli.reports.admission import AdmitReport, PodReport
from trimtab.cli.reports.admission_table import format_short
from trimtab.cluster import quantity
from trimtab.cluster.format_count import format_count


@dataclass(frozen=True, slots=True)
class Proof:
    """A statement of the demo, and whether its run bears it out."""

    statement: str
    holds: bool


def draw_changes(console: Console, report: AdmitReport) -> None:
    """Draw a line for each workload, the reasons of one of them, and the totals."""
    console.print(build_grid([_format_row(pod) for pod in report.pods]))
    first = next(pod for pod in report.pods if pod.changes)
    for change in first.changes:
        _, _, resource = change.field.rpartition(".requests.")
        if resource in ("cpu", "memory"):
            text = f"{first.name}: {resource} {change.before or 'none'} → {change.after}, because {change.reason.text}"
            console.print(Text(text), highlight=False)
    totals = report.totals
    cores, gibibytes = (
        f"{_scale(totals.requests_before[resource], resource)} → {_scale(totals.requests_after[resource], resource)}"
        for resource in ("cpu", "memory")
    )
    console.print(
        Text.assemble(
            (f"{totals.changed} of {format_count(totals.pods, 'workload')} changed", "bold green"),
            f"; requests of all replicas: {cores} cores, {gibibytes} GiB",
        )
    )


def _format_row(pod: PodReport) -> tuple[str, ...]:
    return (
        f"{pod.kind} {pod.name}",
        f"× {pod.replicas}",
        f"cpu {_format_requests(pod, 'cpu')}",
        f"memory {_format_requests(pod, 'memory')}",
    )


def _format_requests(pod: PodReport, resource: str) -> str:
    before, after = (
        format_short(resource, shape.requests[resource]) if shape and resource in shape.requests else "–"
        for shape in (pod.before, pod.after)
    )
    return after if before == after else f"{before} → {after}"


def _scale(amount: str, resource: str) -> str:
    number = quantity.to_milli(amount) / 1000 if resource == "cpu" else float(quantity.to_whole_units(amount)) / 2**30
    return f"{number:.3g}"


def list_proofs(*, reviews: int, are_equal: bool, planned_nodes: int, outcome: CompactionOutcome) -> Iterator[Proof]:
    """Yield what the run of the demo shows, from the number of reviews and what the webhook, the plan and the compactor
    did."""
    yield Proof(f"{reviews} answers of the webhook over TLS match the offline decision.", are_equal)
    yield Proof(
        f"The rehearsal cordoned {format_count(outcome.cordoned_in_rehearsal, 'node')} and evicted "
        f"{format_count(outcome.evicted_in_rehearsal, 'pod')}.",
        outcome.cordoned_in_rehearsal == outcome.evicted_in_rehearsal == 0,
    )
    yield Proof(
        f"The compactor freed what the plan promised: {format_count(outcome.nodes_before, 'node')} → "
        f"{outcome.nodes_after}.",
        outcome.nodes_after == planned_nodes,
    )
    yield Proof(
        f"{outcome.violated} PodDisruptionBudgets were violated, and {format_count(outcome.moved_twice, 'pod')} moved "
        "twice.",
        outcome.violated == outcome.moved_twice == 0,
    )


def draw_conclusion(console: Console, proofs: tuple[Proof, ...]) -> bool:
    """Draw each statement with the word for whether it holds; return whether all of them do."""
    console.print(styled("\n[bold]What this proved[/]"))
    for proof in proofs:
        word = ("  ok     ", "green") if proof.holds else ("  FAILED ", "red")
        console.print(Text.assemble(word, proof.statement), highlight=False)
    return all(proof.holds for proof in proofs)
