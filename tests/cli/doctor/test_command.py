"""The report as people read it."""

from dataclasses import replace
from io import StringIO

import pytest
from click.testing import CliRunner
from rich.console import Console

from tests.cli.doctor.worlds import HIDDEN, OURS, WELL
from tests.reasons import has_facts
from trimtab.cli.doctor.command import ABSENT_VIEW, VIEW, build_report, judge_cluster
from trimtab.cli.main import cli
from trimtab.cli.reporting.draw import draw_report
from trimtab.diagnosis.observed import NamespaceState, ObservedCluster
from trimtab.diagnosis.process_states import is_absent


def drawn(seen: ObservedCluster) -> str:
    console = Console(record=True, width=140, file=StringIO())
    actual_report = build_report(
        judge_cluster(seen), server="https://x", namespace=OURS, at="", without=(), strict=False
    )
    draw_report(console, actual_report, VIEW)
    return console.export_text()


def test_what_is_wrong_stands_with_its_code_and_its_fix() -> None:
    text = drawn(replace(WELL, own_namespace=NamespaceState(paused="[somebody] paused it"), policies=HIDDEN))
    assert "warn" in text
    assert "[somebody] paused it [all-paused]" in text
    assert "annotate namespace trimtab-system trimtab.dev/paused-" in text
    assert "unknown" in text
    assert "problems found:" in text
    assert "no problems" not in text


def test_what_is_well_is_one_line_without_a_fix() -> None:
    text = drawn(WELL)
    assert "→" not in text
    assert "no problems found:" in text


def test_a_check_that_does_not_exist_cannot_be_skipped() -> None:
    result = CliRunner().invoke(cli, ["doctor", "--without", "clocks"])
    assert result.exit_code == 2
    assert has_facts(result.output, "autoscaling", "clocks", "clock")


def test_a_cluster_without_an_installation_is_said_in_three_lines() -> None:
    nothing = replace(
        WELL, crd=None, validating=None, mutating=(), processes=dict.fromkeys(WELL.processes), policies=(), secret=None
    )
    assert is_absent(nothing)
    console = Console(record=True, width=80, file=StringIO())
    report = build_report(judge_cluster(nothing), server="https://x", namespace=OURS, at="", without=(), strict=False)
    draw_report(console, report, ABSENT_VIEW)
    lines = console.export_text().splitlines()
    assert len(lines) <= 3
    assert has_facts(" ".join(lines), "not installed", "trimtab install --apply")
    assert not report.well


@pytest.mark.parametrize("part", ["crd", "validating", "mutating", "processes"])
def test_what_is_left_or_cannot_be_read_is_checked(part: str) -> None:
    nothing = replace(WELL, crd=None, validating=None, mutating=(), processes=dict.fromkeys(WELL.processes))
    hidden = dict.fromkeys(WELL.processes, HIDDEN) if part == "processes" else HIDDEN
    assert not is_absent(replace(nothing, **{part: hidden}))
    assert not is_absent(replace(nothing, **{part: getattr(WELL, part)}))
