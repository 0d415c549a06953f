"""What the comparison quotes is what the pages with the measurements say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

EXPLANATION = Path(__file__).resolve().parents[2] / "docs" / "explanation"
PEERS = (EXPLANATION / "peers.md").read_text(encoding="utf-8")
SIZING = (EXPLANATION / "requests-from-usage.md").read_text(encoding="utf-8")
COSTS = (EXPLANATION / "what-our-processes-need.md").read_text(encoding="utf-8")
NODES = (EXPLANATION / "what-our-processes-need.md").read_text(encoding="utf-8")


def cells(text: str, first: str) -> list[str]:
    """Of the one row that begins so; thin spaces and bold apart."""
    [row] = [line for line in text.splitlines() if line.startswith(f"| {first}")]
    return [re.sub(r"[*\s\u202f\u00a0]", "", cell) for cell in row.strip("|").split("|")][1:]


@pytest.mark.parametrize(
    ("quoted", "first", "second"), [("cpu: waste, short", 1, 2), ("memory: waste, episodes", 4, 5)]
)
def test_sizing_is_quoted_as_it_was_measured(quoted: str, first: int, second: int) -> None:
    measured = [cells(SIZING, f"held out | {rule} |") for rule in ("adaptive", "p95", "krr")]
    assert cells(PEERS, quoted) == [f"{row[first]},{row[second]}" for row in measured]


@pytest.mark.parametrize(
    ("quoted", "measured"),
    [
        ("cluster-autoscaler, threshold 0.5", "cluster-autoscaler, threshold 0.5"),
        ("cluster-autoscaler, threshold 1.0", "cluster-autoscaler, threshold 1.0"),
        ("descheduler, 80, MostAllocated", "descheduler 80, MostAllocated"),
        ("Trimtab |", "**Trimtab, goal cost, live**"),
    ],
)
def test_nodes_are_quoted_as_they_were_measured(quoted: str, measured: str) -> None:
    cores, evictions, each, _ = cells(PEERS, quoted)
    _, freed, evicted, per, _ = cells(NODES, measured)
    assert (cores, evictions) == (freed, evicted)
    assert abs(float(each) - float(per)) < 0.06


def test_what_was_promised_is_quoted_beside_what_was_seen_live() -> None:
    _, cores, evictions, _, _ = cells(NODES, "**Trimtab, goal cost, places as planned**")
    text = re.sub(r"(?<=\d)[\s\u202f\u00a0](?=\d)", "", PEERS)
    assert f"promises {cores} cores for {evictions} evictions" in text


def test_the_cost_of_a_review_is_quoted_as_it_was_measured() -> None:
    decided, cached = cells(COSTS, "**total**")
    assert f"{cached} µs plus serving" in PEERS
    assert f"{decided} µs for any other pod" in PEERS


def test_the_page_names_where_others_are_better() -> None:
    section = PEERS.partition("## Choose another one when")[2].partition("\n## ")[0]
    for peer in ("Karpenter", "cluster autoscaler", "VPA", "Kyverno", "MutatingAdmissionPolicy", "descheduler", "KRR"):
        assert peer in section
