"""The table of `trimtab plan`: how many evictions of a node need more pods of a Deployment first."""

import csv
from io import StringIO
from pathlib import Path

from tests.cli.snapshots import pool, snapshot, told, trimtab
from tests.compaction.surge.test_surge_plan import three_nodes


def planned(folder: Path, surge: str) -> Path:
    return snapshot(folder, *three_nodes("3"), pool("all", f"preset: keen\nnodes: all\n{surge}"))


def test_a_node_whose_drain_needs_more_pods_shows_how_often(tmp_path: Path) -> None:
    path = planned(tmp_path, "surge: {extraPods: 1}")
    [step] = [step for wave in told("plan", "--cluster", path)["waves"] for step in wave["nodes"]]
    assert [move["surge"] for move in step["moves"]] == [1]
    rows = csv.DictReader(StringIO(trimtab("plan", "--cluster", path, "-o", "csv").output))
    assert [(row["Node"], row["Surges"]) for row in rows if row["table"] == "nodes"] == [("a", "1")]
    assert "SURGES" in trimtab("plan", "--cluster", path, "--details").output.upper()


def test_without_surges_there_is_no_such_column(tmp_path: Path) -> None:
    path = planned(tmp_path, "surge: {extraPods: 0}")
    assert "SURGES" not in trimtab("plan", "--cluster", path, "--details").output.upper()
