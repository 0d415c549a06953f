"""`trimtab plan` of a small cluster is one screen: the answer first, then nodes, then reasons."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tests.cli.snapshots import snapshot, trimtab
from tests.cluster_of import SAFE, Item, budget, node, pod
from trimtab.cli import output

DOMAIN = ".eu-west-1.compute.internal"
WIDTH, MAX_LINES = 80, 40
KIND, REGION, ZONE = "node.kubernetes.io/instance-type", "topology.kubernetes.io/region", "topology.kubernetes.io/zone"


def twelve_nodes() -> list[Item]:
    """Twelve nodes of two pools in a region without list prices, and ninety pods of nine workloads."""
    nodes = [
        node(
            f"ip-10-0-{number // 4}-{10 + number}{DOMAIN}",
            labels={
                KIND: "m5.xlarge" if number < 8 else "r5.xlarge",
                REGION: "eu-west-1",
                ZONE: f"eu-west-1{'abc'[number % 3]}",
                "eks.amazonaws.com/nodegroup": "web" if number < 8 else "batch",
            },
        )
        for number in range(12)
    ]
    names = [item["metadata"]["name"] for item in nodes]
    pods = [
        pod(
            f"{workload}-6c5f4d8b97-{number:05x}",
            names[number % 12],
            cpu=("100m", "200m", "300m")[number % 3],
            app=workload,
            **({"annotations": {SAFE: "false"}} if number in (5, 41) else {"owner": ""} if number == 62 else {}),
        )
        for number in range(90)
        for workload in (f"team-{number % 9}-service",)
    ]
    return [*nodes, *pods, *(budget(f"team-{number}-service", 1, name=f"team-{number}") for number in range(3))]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> StringIO:
    text = StringIO()
    monkeypatch.setattr(output, "create_console", lambda: Console(file=text, width=WIDTH))
    return text


def test_a_plan_of_twelve_nodes_is_one_screen(tmp_path: Path, terminal: StringIO) -> None:
    trimtab("plan", "--cluster", snapshot(tmp_path, *twelve_nodes()))
    lines = terminal.getvalue().splitlines()
    assert lines[0].startswith("12 nodes → ")
    assert 10 < len(lines) <= MAX_LINES
    assert max(map(len, lines)) <= WIDTH


def test_a_suffix_that_all_nodes_share_is_said_once(tmp_path: Path, terminal: StringIO) -> None:
    trimtab("plan", "--cluster", snapshot(tmp_path, *twelve_nodes()))
    text = terminal.getvalue()
    assert text.count(DOMAIN) == 1
    assert "ip-10-0-" in text


def test_the_details_have_the_rest(tmp_path: Path, terminal: StringIO) -> None:
    file = snapshot(tmp_path, *twelve_nodes())
    trimtab("plan", "--cluster", file)
    short = terminal.getvalue()
    trimtab("plan", "--cluster", file, "--details")
    details = terminal.getvalue().removeprefix(short)
    assert ("Note: " in short, "Note: " in details) == (False, True)
    assert len(details.splitlines()) > 2 * len(short.splitlines())
