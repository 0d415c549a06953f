"""`trimtab simulate` as its users call it."""

from pathlib import Path

import pytest

from tests.cli.snapshots import half_empty, snapshot, told, trimtab
from tests.cluster_of import SAFE, node, pod
from tests.reasons import has_facts

KEEN = ("--preset", "all=keen")


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    return snapshot(tmp_path, *half_empty())


@pytest.mark.parametrize("scheduler", ["plan", "spread", "pack"])
def test_what_is_left_is_told_for_each_scheduler(cluster: Path, scheduler: str) -> None:
    report = told("simulate", "--cluster", cluster, *KEEN, "--scheduler", scheduler)
    assert (report["scheduler"], report["nodesBefore"], report["nodesAfter"]) == (scheduler, 3, 1)
    assert (report["evictions"], report["movedTwice"], report["waiting"]) == (2, 0, 0)


def test_rounds_add_up_to_what_is_left(cluster: Path) -> None:
    report = told("simulate", "--cluster", cluster, *KEEN)
    assert report["rounds"][-1]["nodesLeft"] == report["nodesAfter"] >= report["nodesBound"]
    assert sum(round_report["evictions"] for round_report in report["rounds"]) == report["evictions"]


def test_cost_is_told_before_and_after(cluster: Path) -> None:
    report = told("simulate", "--cluster", cluster, *KEEN)
    assert report["costBefore"] == {"amount": 12.0, "unit": "cores"}
    assert report["costAfter"] == {"amount": 4.0, "unit": "cores"}


def test_pods_are_drawn_where_they_came_to_run(cluster: Path) -> None:
    nodes = told("simulate", "--cluster", cluster, *KEEN, "--scheduler", "spread")["nodes"]
    assert sum(result["after"]["pods"] for result in nodes if result["after"]) == 4


def test_the_chart_has_a_bar_for_each_round(cluster: Path) -> None:
    lines = trimtab("simulate", "--cluster", cluster, *KEEN).output.splitlines()
    assert has_facts(lines[0], "3 nodes → 1", "1 round", "2 evictions")
    assert "0 pods" not in lines[0]
    (before,) = [line for line in lines if line.startswith(" before")]
    (after,) = [line for line in lines if line.startswith("round 1")]
    assert before.count("█") == 50
    assert (after.count("█"), after.count("░")) == (16, 34)


def test_nothing_to_do_is_no_failure(tmp_path: Path) -> None:
    created_pod = pod("web-0", on="a", annotations={SAFE: "false"})
    result = trimtab("simulate", "--cluster", snapshot(tmp_path, node("a"), created_pod), *KEEN)
    assert result.exit_code == 0
    assert has_facts(result.output, "no node", "drained")


def test_the_page_shows_rounds(cluster: Path) -> None:
    text = trimtab("simulate", "--cluster", cluster, *KEEN, "-o", "html").stdout
    assert "Round by round" in text
    assert "removed in round 1" in text
    assert "://" not in text


def test_bad_input_is_named(tmp_path: Path) -> None:
    result = trimtab("simulate", "--cluster", tmp_path / "nothing.json", "--now", "later")
    assert result.exit_code == 2
    assert "nothing.json" in result.output


# ── why ──────────────────────────────────────────────────────────────────
def explained(cluster: Path, kind: str, name: str) -> list[str]:
    (result,) = told("simulate", "--cluster", cluster, *KEEN, "--explain", kind, name)["explained"]
    chain: list[str] = result["chain"]
    return chain


def test_a_node_is_explained_by_its_round_or_by_what_keeps_it(cluster: Path) -> None:
    report = told("simulate", "--cluster", cluster, *KEEN)
    gone = next(each["nodes"][0] for each in report["rounds"] if each["landings"])
    assert "the node is drained" in explained(cluster, "node", gone)[0]
    assert f"node {report['stays'][0]['node']} stays" in " ".join(
        explained(cluster, "node", report["stays"][0]["node"])
    )


def test_a_pod_is_explained_by_its_rounds_or_by_what_keeps_it(cluster: Path) -> None:
    moved = [
        landing for each in told("simulate", "--cluster", cluster, *KEEN)["rounds"] for landing in each["landings"]
    ]
    chain = explained(cluster, "pod", moved[0]["pod"])
    assert chain[1] == f"pod {moved[0]['pod']} moves to node {moved[0]['target']}"
    rest = next(f"default/web-{n}" for n in range(4) if f"default/web-{n}" not in {each["pod"] for each in moved})
    assert "node b stays" in " ".join(explained(cluster, "pod", rest))


def test_what_is_not_there_is_a_mistake(cluster: Path) -> None:
    assert trimtab("simulate", "--cluster", cluster, "--explain", "node", "ghost").exit_code == 2
