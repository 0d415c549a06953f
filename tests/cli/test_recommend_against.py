"""`--against`: what changed since an earlier report."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.recommending import usage, web
from tests.cli.snapshots import snapshot, told, trimtab
from tests.cli.test_recommend_totals import series, workload
from tests.cluster_of import Item
from tests.reasons import has_facts


def saved_report(folder: Path, usage_file: Path, *items: Item) -> Path:
    path = folder / "before.json"
    arguments = (
        "recommend",
        "--usage",
        usage_file,
        "--cluster",
        snapshot(folder, *items),
        "--now",
        "2026-01-19T00:00:00Z",
    )
    assert trimtab(*arguments, "-o", "json", "--output-file", path).exit_code == 0
    return path


def against(
    before: Path, folder: Path, usage_file: Path, *items: Item, options: tuple[str, ...] = ()
) -> dict[str, Any]:
    arguments = ("recommend", "--usage", usage_file, "--cluster", snapshot(folder, *items), "--against", before)
    result = told(*arguments, *options)["against"]
    assert isinstance(result, dict)
    return result


def words(result: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    return [(one["resource"], one["what"], one["before"], one["after"]) for one in result["differences"]]


def test_nothing_changed(tmp_path: Path) -> None:
    path = usage(tmp_path)
    result = against(saved_report(tmp_path, path, web()), tmp_path, path, web())
    assert (result["differences"], result["new"], result["gone"]) == ([], [], [])
    assert result["at"] == "2026-01-19T00:00:00Z"
    assert result["saved"] > 15


def test_what_was_applied_is_told_from_what_was_changed_otherwise(tmp_path: Path) -> None:
    path = usage(tmp_path)
    before = saved_report(tmp_path, path, web())
    applied = against(before, tmp_path, path, web(requests={"cpu": "208m", "memory": "1Gi"}))
    assert words(applied) == [("cpu", "applied", "1", "208m")]
    other = against(before, tmp_path, path, web(requests={"cpu": "500m", "memory": "1Gi"}))
    assert words(other) == [("cpu", "request-changed", "1", "500m")]


def test_a_recommendation_that_moved_is_told_and_a_small_move_is_not(tmp_path: Path) -> None:
    before = saved_report(tmp_path, usage(tmp_path), web())
    assert words(against(before, tmp_path, usage(tmp_path, cpu=0.204), web())) == []
    (word,) = words(against(before, tmp_path, usage(tmp_path, cpu=0.4), web()))
    assert word[:3] == ("cpu", "recommendation-changed", "208m")


def test_what_came_and_what_went_is_told_unless_it_was_not_selected(tmp_path: Path) -> None:
    path = series(tmp_path, ("shop", "cart-0"), ("ops", "log-0"))
    before = saved_report(tmp_path, path, *workload("shop", "cart", team="red"), *workload("ops", "log"))
    now = (*workload("shop", "cart", team="red"), *workload("shop", "till"))
    result = against(before, tmp_path, path, *now)
    assert [one["workload"] for one in result["new"]] == ["till"]
    assert [one["workload"] for one in result["gone"]] == ["log"]
    for options in (("-n", "shop"), ("-l", "team=red")):
        assert against(before, tmp_path, path, *now, options=options)["gone"] == []


def test_the_table_tells_it_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    path = usage(tmp_path)
    before = saved_report(tmp_path, path, web())
    changed = snapshot(tmp_path, web(requests={"cpu": "208m", "memory": "1Gi"}), *workload("ops", "log"))
    text = trimtab("recommend", "--usage", path, "--cluster", changed, "--against", before).output
    assert has_facts(text, "Since", "2026-01-19T00:00:00Z", "saved $")
    changes = "0 other requests changed, 0 recommendations changed, 1 new in this report, 0 no longer in this report."
    assert f"1 applied as recommended, {changes}" in " ".join(text.split())
    assert has_facts(text, "shop/web/app", "cpu: 1 → 208m", "as recommended")
    assert "new: ops/log/app" in text


def test_a_report_of_a_version_that_knew_less_is_read(tmp_path: Path) -> None:
    path = usage(tmp_path)
    full = json.loads(saved_report(tmp_path, path, web()).read_text())
    (row,) = full["containers"]
    names = ("namespace", "kind", "workload", "container")
    old = {
        "apiVersion": full["apiVersion"],
        "kind": full["kind"],
        "rule": "p95",
        "saved": 1.0,
        "containers": [
            {
                **{name: row[name] for name in names},
                "cpu": {"now": "1", "proposed": None},
                "memory": {"now": "1Gi", "proposed": "346Mi"},
            }
        ],
    }
    before = tmp_path / "old.json"
    before.write_text(json.dumps(old))
    assert words(against(before, tmp_path, path, web())) == [("cpu", "recommendation-changed", "1", "208m")]


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (None, "a file that can be read"),
        ("{}", "required field"),
        ("[", "got a document with another structure (Expected `object`"),
        ('{"kind": "PlanReport", "containers": []}', "a report of the kind PlanReport"),
    ],
)
def test_a_file_that_is_no_report_is_named(tmp_path: Path, content: str | None, word: str) -> None:
    path = tmp_path / "before.json"
    if content is not None:
        path.write_text(content)
    result = trimtab("recommend", "--usage", usage(tmp_path), "--against", path)
    assert result.exit_code == 2
    assert str(path) in result.output
    assert word in result.output
