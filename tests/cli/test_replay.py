"""`trimtab replay` as its users call it."""

from pathlib import Path
from typing import Any

import pytest

from tests.autoscaling.replay.simulated_captures import CLUSTER_UID, record_captures
from tests.cli.snapshots import told, trimtab
from trimtab.inputs.capture_series import find_series_files

Report = dict[str, Any]
EVERY = 60


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Captures of an hour of a small cluster that never rests."""
    path = tmp_path_factory.mktemp("captures")
    record_captures(path, every=EVERY)
    return path


@pytest.fixture(scope="module")
def report(captures: Path) -> Report:
    return told("replay", "--captures", str(captures))


def test_what_was_and_every_variant_are_there(report: Report) -> None:
    assert [row["variant"] for row in report["variants"]] == [
        "as it was",
        "autoscaler at 50 %",
        "autoscaler at 70 %",
        "Trimtab careful",
        "Trimtab balanced",
        "Trimtab keen",
    ]
    assert report["cluster"] == CLUSTER_UID
    assert report["everySeconds"] == EVERY


def test_days_and_pools_add_up_to_the_whole(report: Report) -> None:
    for row in report["variants"]:
        for parts in (report["days"], report["pools"]):
            hours = [part["coreHours"] for part in parts if part["variant"] == row["variant"]]
            assert sum(hours) == pytest.approx(row["coreHours"], abs=0.2)


def test_the_autoscaler_alone_is_close_to_what_was(report: Report) -> None:
    assert abs(report["modelError"]) < 0.05
    alone = report["variants"][1]
    assert alone["savedCoreHours"] == 0


def test_what_was_has_no_saving_and_no_evictions_that_captures_do_not_show(report: Report) -> None:
    was = report["variants"][0]
    assert was["savedCoreHours"] is was["saved"] is was["evictions"] is None


def test_disturbances_are_those_of_the_variant_that_is_shown(report: Report) -> None:
    shown = next(row for row in report["variants"] if row["variant"] == report["details"])
    assert sum(row["evictions"] for row in report["workloads"]) == shown["evictions"]


def test_what_captures_do_not_show_is_listed(report: Report) -> None:
    assert len(report["missing"]) >= 4


def test_the_same_captures_give_the_same_report(captures: Path, report: Report) -> None:
    assert told("replay", "--captures", str(captures), "--preset", "keen")["variants"][-1] == report["variants"][-1]


def test_one_file_of_a_series_is_enough(captures: Path, report: Report) -> None:
    (file,) = find_series_files([str(captures)])
    assert told("replay", "--captures", str(file), "--preset", "careful")["rounds"] == report["rounds"]


def test_a_short_series_is_refused(tmp_path: Path, captures: Path) -> None:
    (file,) = find_series_files([str(captures)])
    (tmp_path / file.name).write_bytes(file.read_bytes()[:4000])
    assert trimtab("replay", "--captures", str(tmp_path)).exit_code == 2


@pytest.mark.parametrize("words", [(), ("--captures", "no-such-folder"), ("--captures", ".", "--preset", "bold")])
def test_mistakes_are_named(words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert trimtab("replay", *words).exit_code == 2


@pytest.mark.parametrize("words", [("--hours", "1"), ("--days", "3"), ("--matcher", 'cluster="a"'), ("--step", "30")])
def test_an_option_of_prometheus_is_refused_for_captures(words: tuple[str, str], captures: Path) -> None:
    result = trimtab("replay", "--captures", str(captures), *words)
    assert result.exit_code == 2
    assert words[0] in result.output


def test_a_preset_that_does_not_exist_is_named_with_the_nearest_one(captures: Path) -> None:
    assert "balanced'" in trimtab("replay", "--captures", str(captures), "--preset", "balance").output


def test_a_preset_counts_once(captures: Path) -> None:
    words = ("--preset", "careful", "--preset", "careful", "--autoscaler-threshold", "50")
    report = told("replay", "--captures", str(captures), *words)
    assert [row["variant"] for row in report["variants"]][2:] == ["Trimtab careful"]


def test_a_series_has_one_folder_and_the_names_of_the_cluster(tmp_path: Path) -> None:
    without_folder = trimtab("capture", "--every", "5m")
    hashed = trimtab("capture", "--every", "5m", "--hash-names", "-O", str(tmp_path / "series"))
    no_time = trimtab("capture", "--every", "soon", "-O", str(tmp_path / "series"))
    assert [one.exit_code for one in (without_folder, hashed, no_time)] == [2, 2, 2]
    assert not (tmp_path / "series").exists()
