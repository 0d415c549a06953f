"""Every command prints what is stored, in every format and on five clusters. `make golden` stores it anew.

On the large cluster, the narrow table and JSON are compared with every change; `make test-slow` compares every format.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.golden.__main__ import choose_cases
from tests.golden.broken_words import find_broken_words
from tests.golden.commands import ARGUMENTS, LEFT_OUT, iter_commands
from tests.golden.outputs import (
    FOLDER,
    GoldenRuns,
    list_cases,
    open_runs,
    output_file,
    select_brief_forms,
    shorten_text,
)
from tests.golden.snapshots import SNAPSHOTS

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = dict(iter_commands())
HINT = "`make golden` shows and stores the difference"
SMALL = [case for case in list_cases() if case[0] != "large"]
LARGE = [words for name, words in list_cases() if name == "large"]


@pytest.fixture(scope="module")
def enter_snapshot() -> Iterator[Callable[[str], GoldenRuns]]:
    with open_runs() as enter:
        yield enter


@pytest.mark.parametrize(("name", "words"), SMALL, ids=[f"{words} of {name}" for name, words in SMALL])
def test_a_command_prints_what_is_stored(enter_snapshot: Callable[[str], GoldenRuns], name: str, words: str) -> None:
    runs = enter_snapshot(name)
    text = runs.render_command(words, COMMANDS[words])
    assert text == output_file(name, words).read_text(encoding="utf-8"), HINT
    assert runs.broken_words == []


@pytest.mark.parametrize("words", LARGE)
def test_a_command_prints_of_a_large_cluster_what_is_stored(
    enter_snapshot: Callable[[str], GoldenRuns], words: str
) -> None:
    text = enter_snapshot("large").render_command(words, COMMANDS[words], has_brief_runs=True)
    stored = select_brief_forms(output_file("large", words).read_text(encoding="utf-8"), COMMANDS[words])
    # The empty line after a run is that of its last form.
    assert text.rstrip("\n") == stored.rstrip("\n"), HINT


@pytest.mark.slow
@pytest.mark.parametrize("words", LARGE)
def test_a_command_prints_of_a_large_cluster_what_is_stored_in_every_format(
    enter_snapshot: Callable[[str], GoldenRuns], words: str
) -> None:
    text = enter_snapshot("large").render_command(words, COMMANDS[words])
    assert text == output_file("large", words).read_text(encoding="utf-8"), HINT


def test_every_command_has_stored_outputs_or_a_reason_why_it_has_none() -> None:
    assert sorted([*ARGUMENTS, *LEFT_OUT]) == sorted(COMMANDS)


def test_no_output_is_stored_of_a_command_that_does_not_exist() -> None:
    stored = {str(file.relative_to(FOLDER)) for file in FOLDER.rglob("*.txt")}
    assert stored == {str(output_file(*case).relative_to(FOLDER)) for case in list_cases()}


def test_outputs_do_not_depend_on_the_process_that_prints_them() -> None:
    """Not on the order of hashes, the time zone, the locale, or the terminal."""
    others = {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "LC_ALL": "C", "COLUMNS": "33", "NO_COLOR": "1"}
    environment = {**os.environ, **others, "KUBECONFIG": "/dev/null"}
    line = [sys.executable, "-m", "tests.golden", "--check", "plan", "recommend", "lint", "why pod", "cluster=pools"]
    result = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, ""), result.stdout


def test_words_choose_verbs_and_clusters() -> None:
    assert {command.split()[0] for _, command in choose_cases(["pools", "plan"])} == {"pools", "plan"}
    assert {name for name, _ in choose_cases(["plan"])} == SNAPSHOTS.keys()
    assert choose_cases(["plan", "cluster=pools"]) == [("pools", "plan")]
    assert choose_cases([]) == list(list_cases())


@pytest.mark.parametrize("word", ["large", "cluster=lint", "plam"])
def test_a_word_that_chooses_nothing_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match=r"no (verb|cluster)"):
        choose_cases(["plan", word])


@pytest.mark.parametrize(
    ("narrow", "broken"),
    [
        ("│ Conta │ Request │\n│ iner  │         │\n│ postgres │ 100m │", ["conta of container"]),
        ("│ Container │\n│ Request   │\npostgres 100m", []),
    ],
)
def test_a_word_in_two_pieces_is_found(narrow: str, broken: list[str]) -> None:
    assert find_broken_words(narrow, ["CONTAINER   REQUEST\npostgres    100m"]) == broken


def test_a_long_output_is_stored_as_its_ends_and_a_digest() -> None:
    text = "".join(f"line {number}\n" for number in range(500))
    assert "line 39\n… 500 lines\nline 488\n" in shorten_text(text)
    assert shorten_text(text).splitlines()[-1] != shorten_text(text.replace("line 250", "line x")).splitlines()[-1]
    assert shorten_text("short\n") == "short\n"
