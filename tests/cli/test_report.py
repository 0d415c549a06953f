"""`trimtab report`: what other verbs printed, joined, with the sums first."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from tests.cli.recommending import usage
from tests.cli.replay_reports import DETAILS, week
from tests.cli.snapshots import half_empty, snapshot, told, trimtab
from tests.cli.worlds import DEPLOYMENT, write
from tests.reasons import has_facts
from trimtab.cli.output import format_json
from trimtab.cli.savings.report import build_savings_report
from trimtab.compaction.drain.pool_state import PoolState

Printed = dict[str, str]


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Printed:
    """Verb → the file that it printed."""
    folder = tmp_path_factory.mktemp("printed")
    commands: dict[str, tuple[str | Path, ...]] = {
        "plan": ("plan", "--cluster", snapshot(folder, *half_empty())),
        "recommend": ("recommend", "--usage", usage(folder)),
        "lint": ("lint", "-f", write(folder, DEPLOYMENT)),
    }
    for verb, words in commands.items():
        result = trimtab(*words, "-o", "json", "-O", folder / f"{verb}.json")
        assert result.exit_code in (0, 1), result.output
    state = PoolState().with_drain("n", "d", ("micro-dollars an hour", 100_000), {"shop": 1}).with_success("n", 1000)
    savings = build_savings_report({"web": state}, 0, 2000, str)
    (folder / "replay.json").write_text(format_json(week()))
    (folder / "savings.json").write_text(format_json(savings))
    return {verb: str(folder / f"{verb}.json") for verb in (*commands, "replay", "savings")}


def test_every_report_has_its_sum_the_replay_first(printed: Printed) -> None:
    report = told("report", *printed.values())
    kinds = [part["kind"] for part in report["parts"]]
    assert kinds == ["ReplayReport", "PlanReport", "RecommendReport", "SavingsReport", "LintReport"]
    assert [bool(part["answer"]) for part in report["parts"]] == [True] * 5
    assert has_facts(report["headline"], DETAILS, "504.0 core hours", "$25.20", "30 evictions")


def test_the_sums_are_those_of_the_reports(printed: Printed) -> None:
    plan = json.loads(Path(printed["plan"]).read_text())
    part = told("report", printed["plan"])["parts"][0]
    assert part["answer"].startswith(f"{plan['nodesBefore']} → {plan['nodesAfter']} node")
    drained = sum(int(row[1]) for row in part["tables"][0]["rows"])
    assert drained == plan["nodesBefore"] - plan["nodesAfter"]


def test_what_is_not_in_it_is_named(printed: Printed) -> None:
    notes = told("report", printed["lint"])["notes"]
    assert len(notes) == 1
    assert "trimtab replay" in notes[0]
    assert "trimtab lint" not in notes[0]


def test_sums_are_never_added_up(printed: Printed) -> None:
    assert len(told("report", printed["plan"], printed["replay"])["notes"]) == 2


def test_two_plans_are_two_parts_with_the_names_of_their_files(printed: Printed, tmp_path: Path) -> None:
    other = tmp_path / "west.json"
    other.write_bytes(Path(printed["plan"]).read_bytes())
    titles = [part["title"] for part in told("report", printed["plan"], str(other))["parts"]]
    assert [printed["plan"] in titles[0], str(other) in titles[1]] == [True, True]


def test_the_command_and_the_title_are_in_the_report(printed: Printed) -> None:
    report = told("report", printed["plan"], "--title", "East of us")
    assert report["title"] == "East of us"
    assert report["command"] == f"trimtab report {printed['plan']} --title 'East of us'"


def replay_part(folder: Path, **changes: object) -> dict[str, Any]:
    """The part of a replay with these fields."""
    (folder / "changed.json").write_text(format_json(structs.replace(week(), **changes)))
    part: dict[str, Any] = told("report", folder / "changed.json")["parts"][0]
    return part


def test_what_weakens_the_answer_of_a_replay_is_in_its_part(tmp_path: Path) -> None:
    assert "a note" in replay_part(tmp_path)["notes"]
    doubt = "says nothing"
    assert not any(doubt in note for note in replay_part(tmp_path)["notes"])
    assert any(doubt in note for note in replay_part(tmp_path, model_error=0.2)["notes"])
    assert not any(doubt in note for note in replay_part(tmp_path, model_error=0.2, own_drains=1)["notes"])


def test_replays_of_two_clusters_are_named(printed: Printed, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text(format_json(structs.replace(week(), cluster="another-uid")))
    assert has_facts(told("report", printed["replay"], other)["notes"], "2 clusters", "0c7f4a1e", "another-uid")
    assert not has_facts(told("report", printed["replay"], printed["plan"])["notes"], "clusters")


def test_a_file_counts_once(printed: Printed) -> None:
    assert trimtab("report", printed["plan"], printed["lint"], printed["plan"]).exit_code == 2


DAMAGED: list[Callable[[str], str]] = [
    lambda text: "",
    lambda text: text[:-20],
    lambda text: "kind: PlanReport",
    lambda text: text.replace("PlanReport", "WhyNodeReport"),
    lambda text: text.replace('"nodesBefore": ', '"nodesBefore": "x", "was": '),
    lambda text: "[" * 100_000,
]


@pytest.mark.parametrize("damage", DAMAGED)
def test_what_is_no_report_is_refused(printed: Printed, tmp_path: Path, damage: Callable[[str], str]) -> None:
    file = tmp_path / "damaged.json"
    file.write_text(damage(Path(printed["plan"]).read_text()))
    result = trimtab("report", str(file), printed["lint"])
    assert result.exit_code == 2
    assert "damaged.json" in result.output
