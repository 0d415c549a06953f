"""Every command prints what is stored, in every format and on five clusters. `make golden` stores it anew."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.golden.commands import ARGUMENTS, LEFT_OUT, iter_commands
from tests.golden.outputs import FOLDER, GoldenRuns, list_cases, open_runs, output_file, shorten_text

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = dict(iter_commands())


@pytest.fixture(scope="module")
def enter_snapshot() -> Iterator[Callable[[str], GoldenRuns]]:
    with open_runs() as enter:
        yield enter


@pytest.mark.parametrize(("name", "words"), list_cases(), ids=[f"{words} of {name}" for name, words in list_cases()])
def test_a_command_prints_what_is_stored(enter_snapshot: Callable[[str], GoldenRuns], name: str, words: str) -> None:
    text = enter_snapshot(name).render_command(words, COMMANDS[words])
    assert text == output_file(name, words).read_text(encoding="utf-8"), "`make golden` shows and stores the difference"


def test_every_command_has_stored_outputs_or_a_reason_why_it_has_none() -> None:
    assert sorted([*ARGUMENTS, *LEFT_OUT]) == sorted(COMMANDS)


def test_no_output_is_stored_of_a_command_that_does_not_exist() -> None:
    stored = {str(file.relative_to(FOLDER)) for file in FOLDER.rglob("*.txt")}
    assert stored == {str(output_file(*case).relative_to(FOLDER)) for case in list_cases()}


def test_outputs_do_not_depend_on_the_process_that_prints_them() -> None:
    """Not on the order of hashes, the time zone, the locale, or the terminal."""
    others = {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "LC_ALL": "C", "COLUMNS": "33", "NO_COLOR": "1"}
    environment = {**os.environ, **others, "KUBECONFIG": "/dev/null"}
    line = [sys.executable, "-m", "tests.golden", "--check", "plan", "recommend", "lint", "why pod", "pools"]
    result = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, ""), result.stdout


def test_a_long_output_is_stored_as_its_ends_and_a_digest() -> None:
    text = "".join(f"line {number}\n" for number in range(500))
    assert "line 39\n… 500 lines\nline 488\n" in shorten_text(text)
    assert shorten_text(text).splitlines()[-1] != shorten_text(text.replace("line 250", "line x")).splitlines()[-1]
    assert shorten_text("short\n") == "short\n"
