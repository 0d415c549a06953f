"""The replacements in the reports of `trimtab plan` and `trimtab simulate --replace`."""

from pathlib import Path

import pytest

from tests.cli.snapshots import pool, snapshot, told, trimtab
from tests.cluster_of import pod
from tests.compaction.replace.dear_nodes import big, small
from tests.reasons import has_facts

KEEN = ("--preset", "all=keen")


@pytest.fixture
def dear(tmp_path: Path) -> Path:
    return snapshot(tmp_path, big(), *small(), pod("web-0", "a", "1"), pod("api-0", "a", "2"))


def test_a_plan_has_the_replacement_and_its_condition(dear: Path) -> None:
    [one] = told("plan", "--cluster", dear, *KEEN)["replace"]["replacements"]
    assert (one["nodes"], one["group"], one["isBeforeDrains"]) == (["a"], "small", False)
    assert one["label"] == "cloud.google.com/gke-nodepool=small"
    assert has_facts(one["condition"], "small", "z1")
    assert sorted(move["pod"] for move in one["moves"]) == ["default/api-0", "default/web-0"]


def test_the_table_names_the_nodes_and_the_group(dear: Path) -> None:
    assert has_facts(trimtab("plan", "--cluster", dear, *KEEN).stdout, "REPLACE", "a", "small", "z1")


@pytest.mark.parametrize("said", ["preset: careful", "replace: off"])
def test_settings_switch_it_off(tmp_path: Path, said: str) -> None:
    settings = "\n".join(("nodes: all", said))
    cluster = snapshot(tmp_path, big(), *small(), pod("web-0", "a", "1"), pool("all", settings))
    assert told("plan", "--cluster", cluster)["replace"] is None


def test_a_simulation_carries_it_out(dear: Path) -> None:
    report = told("simulate", "--cluster", dear, "--replace", *KEEN)
    assert [(one["nodes"], len(one["newNodes"])) for one in report["rounds"]] == [(["a"], 1)]
    assert report["costAfter"]["amount"] < report["costBefore"]["amount"]
    assert told("simulate", "--cluster", dear, *KEEN)["rounds"] == []
