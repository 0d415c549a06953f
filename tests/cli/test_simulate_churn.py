"""`trimtab simulate --churn` as its users call it."""

from pathlib import Path

import pytest

from tests.cli.snapshots import told, trimtab
from trimtab.autoscaling.churn.churn_script import ChurnOptions, draw_churn
from trimtab.autoscaling.churn.pod_shapes import generate_shapes
from trimtab.cli.simulate.churn_run import FOLLOW, run_variant

SHORT = ("simulate", "--churn", "--churn-hours", "1")


@pytest.fixture(scope="module")
def report() -> dict:  # type: ignore[type-arg]
    return told(*SHORT)


def test_each_variant_is_told_and_compared_with_the_stand_in_alone(report: dict) -> None:  # type: ignore[type-arg]
    assert [row["variant"] for row in report["variants"]] == [
        "stand-in 0.5",
        "stand-in 0.7",
        "Trimtab follows",
        "the same, no forecast",
        "Trimtab leads",
    ]
    compared = [row["variant"] for row in report["comparisons"]]
    assert compared == ["Trimtab follows", "the same, no forecast", "Trimtab leads"]
    assert all(row["broken"] == row["cordonsLeft"] == 0 for row in report["variants"])


def test_the_same_seed_gives_the_same_figures() -> None:
    churn = draw_churn(ChurnOptions(hours=1, cores=40), generate_shapes())
    assert run_variant(churn, FOLLOW) == run_variant(churn, FOLLOW)


def test_a_file_that_is_no_trace_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    missing = tmp_path / "missing.csv"
    codes = [trimtab(*SHORT, "--churn-trace", str(path)).exit_code for path in (tmp_path / "other.csv", missing)]
    assert codes == [2, 2]
