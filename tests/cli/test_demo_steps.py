"""A pool goes from a rehearsal to the real thing before one's eyes."""

import io
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from tests.controlplane import environ
from tests.reasons import has_facts
from trimtab.cli.demo import compaction, sample_pool
from trimtab.cli.demo.compaction import CompactionOutcome
from trimtab.cli.demo.conclusion import draw_conclusion, list_proofs
from trimtab.cli.main import cli


def shown() -> str:
    written = io.StringIO()
    compaction.draw_compaction(Console(file=written, width=200), sample_pool.build_inputs())
    return written.getvalue()


def test_a_rehearsal_does_nothing_and_the_real_thing_breaks_no_budget() -> None:
    rehearsed, _, acted = shown().partition("mode: act")
    assert has_facts(rehearsed, "drain", "shop-9", "begins")
    assert has_facts(rehearsed, "cordoned: 0", "evicted: 0")
    assert "removed" in acted
    assert "9 nodes → 4" in acted
    assert has_facts(acted, "evicted", "0 of them twice", "0 PodDisruptionBudgets")


PROVEN = CompactionOutcome(
    cordoned_in_rehearsal=0, evicted_in_rehearsal=0, nodes_before=9, nodes_after=4, moved_twice=0, violated=0
)


def concluded(outcome: CompactionOutcome, *, are_equal: bool = True) -> tuple[bool, str]:
    written = io.StringIO()
    proofs = tuple(list_proofs(reviews=9, are_equal=are_equal, planned_nodes=4, outcome=outcome))
    return draw_conclusion(Console(file=written, width=80), proofs), written.getvalue()


def test_the_demo_ends_with_what_it_proved() -> None:
    holds, text = concluded(PROVEN)
    assert holds
    assert "FAILED" not in text
    assert len(text.splitlines()) == 6


@pytest.mark.parametrize(
    "field", ["cordoned_in_rehearsal", "evicted_in_rehearsal", "nodes_after", "moved_twice", "violated"]
)
def test_one_fact_that_is_otherwise_is_no_proof(field: str) -> None:
    holds, text = concluded(replace(PROVEN, **{field: 1}))
    assert not holds
    assert text.count("FAILED") == 1


def test_an_answer_that_differs_is_no_proof() -> None:
    holds, _ = concluded(PROVEN, are_equal=False)
    assert not holds


@pytest.mark.parametrize("columns", ["80", "120"])
def test_the_whole_demo_is_one_screen_of_at_most_60_lines(columns: str, tmp_path: Path) -> None:
    """`make demo` prints one more line while it installs. The folder may be one of an earlier demo, whose webhook is
    gone."""
    (tmp_path / "ready.json").write_text('{"url": "https://127.0.0.1:1"}')
    result = subprocess.run(
        [sys.executable, "-m", "trimtab", "demo", "--keep", str(tmp_path)],
        env={**environ.plain(), "COLUMNS": columns},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.splitlines()) < 60
    assert result.stdout.count("\n  ok ") == 4
    assert "FAILED" not in result.stdout
    suggested = [shlex.split(line)[1:] for line in result.stdout.splitlines() if line.startswith("  trimtab ")]
    assert [command[0] for command in suggested] == ["plan", "why", "recommend", "admit"]
    for command in suggested:
        assert CliRunner().invoke(cli, command).exit_code == 0, command
