"""What `trimtab plan -o json` says about a group's move, and about the costs that pods state."""

import csv
from io import StringIO
from pathlib import Path

from tests.cli.snapshots import pool, snapshot, told, trimtab
from tests.compaction.groups.test_group_moves import world
from trimtab.cluster.disruption_terms import COST_ANNOTATION

TEXT = "1 pod of group default/train on b"


def test_the_pods_on_other_nodes_are_named_and_counted_and_the_stated_cost_is_shown(tmp_path: Path) -> None:
    items = world()
    items[5]["metadata"].setdefault("annotations", {})[COST_ANNOTATION] = "50"
    report = told(
        "plan", "--cluster", snapshot(tmp_path, *items, pool("all", "preset: keen\nnodes: all\ngroups: move"))
    )
    [wave] = report["waves"]
    [step] = wave["nodes"]
    assert step["companions"] == [{"pod": "default/web-1", "node": "b", "group": "default/train"}]
    assert step["statedCost"] == 20, "the ceiling of the pool"
    assert [report["evictions"], wave["evictions"], report["pools"][0]["evictions"]] == [2, 2, 2]


def test_the_table_and_the_page_name_them(tmp_path: Path) -> None:
    path = snapshot(tmp_path, *world(), pool("all", "preset: keen\nnodes: all\ngroups: move"))
    rows = csv.DictReader(StringIO(trimtab("plan", "--cluster", path, "-o", "csv").output))
    [row] = [row for row in rows if row["table"] == "nodes"]
    assert (row["Companions"], TEXT in row["Targets"]) == ("1", True)
    assert TEXT in trimtab("plan", "--cluster", path, "-o", "html").output
    assert "COMPANIONS" in trimtab("plan", "--cluster", path).output.upper()


def test_without_a_group_and_a_cost_both_are_empty(tmp_path: Path) -> None:
    items = [item for item in world() if item["metadata"]["name"] != "web-1"]
    report = told("plan", "--cluster", snapshot(tmp_path, *items, pool("all", "preset: keen\nnodes: all")))
    [step] = [step for wave in report["waves"] for step in wave["nodes"]]
    assert (step["companions"], step["statedCost"]) == ([], 0)
