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
    "data", "against", "brief",
}  # fmt: skip


@pytest.fixture
def document(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A file for figures that is read instead of docs/measured.json; no page is changed."""
    path = tmp_path / "measured.json"
    path.write_text("{}")
    monkeypatch.setattr(measured, "DOCUMENT", path)
    monkeypatch.setattr(measured, "pages", tuple)
    for variable in ("BENCH_BRIEF", "BENCH_RECORD"):
        monkeypatch.delenv(variable, raising=False)
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
    results.report_result("x", "cores=5 share=nan")
    assert capsys.readouterr().out == "RESULT cores=5 share=nan\n"
    assert json.loads(document.read_text())["bench-x"]["figures"] == {"cores": {"value": "5"}}


def test_a_brief_run_and_a_generated_set_say_so_and_record_nothing(
    document: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    results.report_result("x", "cores=5", is_generated=True)
    monkeypatch.setenv("BENCH_BRIEF", "1")
    results.report_result("x", "cores=5")
    assert capsys.readouterr().out == "RESULT cores=5 generated=1\nRESULT cores=5 brief=1\n"
    assert document.read_text() == "{}"


def test_a_brief_run_has_the_smaller_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_BRIEF", "1")
    assert results.choose_size(5, 2) == 2
    monkeypatch.setenv("BENCH_BRIEF", "")
    assert results.choose_size(5, 2) == 5
