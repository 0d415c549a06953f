"""A terminal shows one screen of an answer: the answer, what to do, and the first rows. `-o wide` has the rest."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from tests.cli.snapshots import snapshot, trimtab
from tests.cli.test_plan_screen import MAX_LINES, twelve_nodes
from tests.golden.objects import container, workload
from trimtab.cli import output

WIDTH = 80


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> StringIO:
    text = StringIO()
    monkeypatch.setattr(output, "create_console", lambda: Console(file=text, width=WIDTH))
    return text


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Twelve nodes with ninety pods of nine workloads, of which the Deployments are there too."""
    limits = {"cpu": "1", "memory": "2Gi"}
    owners = [
        workload(f"team-{number}-service", "shop", (), container("app", "200m", "256Mi", limits=limits))[0]
        for number in range(30)
    ]
    objects = twelve_nodes()
    for item in objects:
        if item["kind"] == "Node":
            item["status"]["capacity"] = item["status"]["allocatable"]
        elif item["kind"] == "Pod":
            item["spec"]["containers"][0]["resources"]["requests"]["memory"] = "256Mi"
    return snapshot(tmp_path, *objects, *owners)


VERBS = (
    "plan",
    "simulate",
    "lint",
    "idle",
    "admit --running",
    "machines rank",
    "machines profile",
    "reserved formula",
    "runtimeclass cost",
    "scheduler config",
    "policies check",
    "policies list",
    "pools check",
)


@pytest.mark.parametrize("verb", VERBS)
def test_an_answer_about_twelve_nodes_is_one_screen(verb: str, cluster: Path, terminal: StringIO) -> None:
    result = trimtab(*verb.split(), "--cluster", cluster)
    assert result.exit_code in (0, 1), result.output
    lines = (result.stdout + terminal.getvalue()).splitlines()
    assert 0 < len(lines) <= MAX_LINES
    assert max(map(len, lines)) <= WIDTH


def test_findings_of_lint_are_counted_by_rule(cluster: Path, terminal: StringIO) -> None:
    trimtab("lint", "--cluster", cluster)
    lines = terminal.getvalue().splitlines()
    counts = json.loads(trimtab("lint", "--cluster", cluster, "-o", "json").stdout)["counts"]
    assert f"{counts['warning']} warnings" in lines[0]
    (row,) = [line.split() for line in lines if line.startswith("warning") and " L35 " in line]
    assert row[2] == "30"


def test_the_wide_table_of_lint_and_its_pipe_have_every_finding(cluster: Path, terminal: StringIO) -> None:
    names = [f"shop/team-{number}-service" for number in range(30)]
    trimtab("lint", "--cluster", cluster, "-o", "wide")
    assert all(name in terminal.getvalue() for name in names)
    assert "All findings" not in terminal.getvalue()


def test_a_few_findings_of_lint_are_shown_in_full(cluster: Path, terminal: StringIO) -> None:
    trimtab("lint", "--cluster", cluster, "--only", "L14")
    assert "All findings" not in terminal.getvalue()


def test_pods_that_change_alike_are_one_line(cluster: Path, terminal: StringIO, tmp_path: Path) -> None:
    owners = [item for item in json.loads(cluster.read_text())["items"] if item["kind"] == "Deployment"]
    file = tmp_path / "manifests.yaml"
    file.write_text(yaml.safe_dump_all(owners))
    trimtab("admit", "-f", file)
    text = terminal.getvalue()
    lines = text.splitlines()
    assert lines[0].startswith("30 of 30")
    assert len(lines) <= MAX_LINES
    assert text.count("no-cpu-limits") == 1
    assert "(30 pods)" in " ".join(text.split())


def test_running_pods_that_differ_alike_are_one_row(cluster: Path, terminal: StringIO) -> None:
    trimtab("admit", "--running", "--cluster", cluster)
    findings = json.loads(trimtab("admit", "--running", "--cluster", cluster, "-o", "json").stdout)["findings"]
    causes = {(finding["policy"], finding["reason"]["code"]) for finding in findings if finding["what"] == "unpatched"}
    assert sum(code in line for line in terminal.getvalue().splitlines() for _, code in causes) <= len(causes)


def test_policies_of_a_cluster_without_any_are_no_empty_table(cluster: Path, terminal: StringIO) -> None:
    for verb in ("list", "check"):
        assert trimtab("policies", verb, "--cluster", cluster).exit_code == 0
    assert terminal.getvalue().count("has no PodPolicy") == 2
