"""Each bench prints its RESULT line by one function, which records the figures; `make bench-brief` runs every one."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from docs.pages import measured
from tests.bench import results

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "tests" / "bench"
TARGETS = set(re.findall(r"^bench-(\w+):", (BENCH / "Makefile.inc").read_text(), re.MULTILINE)) - {
    "data",
    "against",
    "brief",
}

PLACES = {"BENCH_CHURN_LOG", "BENCH_LIVE_LOG", "BENCH_PEERS_LOG", "TRIMTAB_BENCH_DATA", "TRIMTAB_SHARED"}


@pytest.fixture
def document(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A file for figures that is read instead of docs/measured.json; no page is changed."""
    path = tmp_path / "measured.json"
    path.write_text("{}")
    monkeypatch.setattr(measured, "DOCUMENT", path)
    monkeypatch.setattr(measured, "pages", tuple)
    for variable in ("BENCH_BRIEF", "BENCH_RECORD"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(results, "_changes", [])
    return path


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_a_bench_reports_its_result_under_its_name(target: str) -> None:
    file = BENCH / ("steps.py" if target == "steps" else f"bench_{target}.py")
    assert re.search(rf'report_result\(\s*"{target}",', file.read_text())


def test_all_benches_run_in_brief() -> None:
    makefile = (BENCH / "Makefile.inc").read_text()
    [benches] = re.findall(r"^BENCHES := (.+)$", makefile, re.MULTILINE)
    assert set(benches.split()) == TARGETS


def test_make_says_to_a_bench_that_it_is_brief() -> None:
    line = ["make", "--dry-run", "--print-data-base", "bench-lint", "BRIEF=1"]
    made = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "BENCH_BRIEF := 1" in made.stdout


def test_a_whole_run_records_its_figures(document: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results.report_result("x", "cores=5 share=nan", broken={"cores": False})
    assert capsys.readouterr().out == "RESULT cores=5 share=nan\n"
    assert json.loads(document.read_text())["bench-x"]["figures"]["cores"]["value"] == "5"


def test_a_brief_run_and_a_generated_set_say_so_and_record_nothing(
    document: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    results.report_result("x", "cores=5", broken={}, is_generated=True)
    monkeypatch.setenv("BENCH_BRIEF", "1")
    results.report_result("x", "cores=5", broken={})
    assert capsys.readouterr().out == "RESULT cores=5 generated=1\nRESULT cores=5 brief=1\n"
    assert document.read_text() == "{}"


def test_a_run_with_another_value_of_a_knob_says_so_and_records_nothing(
    document: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODS", "7")
    assert (results.read_knob("PODS", "1000"), results.read_knob("SECONDS", "180")) == ("7", "180")
    results.report_result("x", "cores=5", broken={})
    assert (capsys.readouterr().out, document.read_text()) == ("RESULT cores=5 changed=PODS\n", "{}")


def test_a_run_that_breaks_a_bound_prints_its_result_and_records_nothing(
    document: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="cores"):
        results.report_result("x", "cores=5", broken={"cores": True, "nodes": False})
    assert (capsys.readouterr().out, document.read_text()) == ("RESULT cores=5\n", "{}")


@pytest.mark.parametrize("file", sorted(BENCH.glob("*.py")), ids=lambda file: file.stem)
def test_a_bench_reads_what_changes_its_figures_as_knobs(file: Path) -> None:
    """Only results.py and the places of data and logs read the environment themselves."""
    variables = set(re.findall(r'environ(?:\.get\(|\[)"(\w+)"', file.read_text()))
    assert variables <= PLACES or file.name == "results.py"


def test_a_brief_run_has_the_smaller_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_BRIEF", "1")
    assert results.choose_size(5, 2) == 2
    monkeypatch.setenv("BENCH_BRIEF", "")
    assert results.choose_size(5, 2) == 5
