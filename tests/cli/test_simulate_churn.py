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


HEADER = "cpu_milli,memory_mib,num_gpu,pod_phase,creation_time,deletion_time\n"


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n",
        HEADER,
        f"{HEADER}much,1,0,Running,1,2\n",
        f"{HEADER}1,1,0,Running,1,inf\n",
        f"{HEADER}1,1,0,{'x' * 200_000},1,2\n",
    ],
    ids=["other columns", "no pod", "no number", "no end", "a long cell"],
)
def test_a_file_that_is_no_trace_is_a_mistake(tmp_path: Path, text: str) -> None:
    (tmp_path / "pods.csv").write_text(text)
    assert trimtab(*SHORT, "--churn-trace", str(tmp_path / "pods.csv")).exit_code == 2


def test_a_trace_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    assert trimtab(*SHORT, "--churn-trace", str(tmp_path / "missing.csv")).exit_code == 2
