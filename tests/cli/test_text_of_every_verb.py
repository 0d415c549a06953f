"""Every verb, in each of its formats, reads a cluster with hostile text in every string, and prints it as text."""

import re
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.cli.hostile_runs import (
    LINE,
    MORE_RUNS,
    RUNS,
    WITHOUT_SNAPSHOT,
    HostileFiles,
    all_verbs,
    format_option,
    string_fields,
)
from trimtab.cli.main import cli
from trimtab.cluster.control_characters import has_control_characters

SEQUENCES = ("\x1b]", "\x1b[7m", "\x1b[2J", "\x9b", "\x07", "\x85", "\x7f", "\u202e", "\u2066", "\u200b", "\u2028")
"""What a terminal would obey, apart from the colours of Trimtab's own."""
ALL_RUNS = {**RUNS, **MORE_RUNS}
FORMATS = [(words, form) for words in ALL_RUNS for form in all_verbs()[words.partition(" --")[0]]]
TABLES = ("table", "wide", "")
SHOWS_NO_TEXT = {
    "autoscaler propose": "it prints numbers and flags",
    "policies compile": "names of policies have a pattern, and a description is not compiled",
    "pools import": "it refuses what is no configuration of estafette",
    "scheduler config": "it prints Trimtab's own manifests",
    "scheduler manifests": "it prints Trimtab's own manifests",
    "compactor history": "it prints what the compactor stored, and the hostile cluster has no such state",
    "savings": "it prints what the compactor stored, and the hostile cluster has no such state",
    "reserved measure": "it prints pools, which the labels of nodes name, and amounts",
}
"""Verb → why its reports quote no text of the snapshot."""


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> HostileFiles:
    """Hostile text behind names, kinds, reasons and the like."""
    return HostileFiles(tmp_path_factory.mktemp("named"))


@pytest.fixture(scope="module")
def everywhere(tmp_path_factory: pytest.TempPathFactory) -> HostileFiles:
    """Hostile text behind every string that is no amount."""
    return HostileFiles(tmp_path_factory.mktemp("everywhere"), None)


def run(verb: str, form: str, files: HostileFiles, *, on_terminal: bool = False) -> Result:
    colours = {"FORCE_COLOR": "1", "TERM": "xterm-256color"} if on_terminal else {}
    options = [format_option(verb), form] if form else []
    arguments = [*verb.split(), *map(str, ALL_RUNS[verb](files)), *options]
    result = CliRunner(env={"COLUMNS": "400", **colours}).invoke(cli, arguments, color=on_terminal)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def test_every_verb_reads_the_hostile_cluster_or_says_why_not() -> None:
    assert sorted(all_verbs()) == sorted([*RUNS, *WITHOUT_SNAPSHOT])


@pytest.mark.parametrize(("verb", "form"), FORMATS, ids=lambda part: part or "text")
def test_no_format_has_a_character_that_a_terminal_obeys(
    verb: str, form: str, named: HostileFiles, everywhere: HostileFiles
) -> None:
    for files in (named, everywhere):
        assert not has_control_characters(output_of(verb, form, files))


@pytest.mark.parametrize(
    ("verb", "form"), [pair for pair in FORMATS if pair[1] in TABLES], ids=lambda part: part or "text"
)
def test_no_table_on_a_terminal_obeys_it(verb: str, form: str, named: HostileFiles, everywhere: HostileFiles) -> None:
    for files in (named, everywhere):
        output = run(verb, form, files, on_terminal=True).output
        assert [sequence for sequence in SEQUENCES if sequence in output] == []


@pytest.mark.parametrize(("verb", "form"), FORMATS, ids=lambda part: part or "text")
def test_no_line_begins_with_a_text_of_others(
    verb: str, form: str, named: HostileFiles, everywhere: HostileFiles
) -> None:
    """Such a line would be a command of the CI system that shows the output, or a finding of others."""
    is_of_lines = verb == "lint" or form in ("name", "krr-csv", "csv")
    refused = ("::", "##[", "##vso[", *([LINE] if is_of_lines else []))
    for files in (named, everywhere):
        result = run(verb, form, files)
        lines = [line.strip() for line in result.stdout.splitlines() + result.stderr.splitlines()]
        assert [line for line in lines if line.startswith(refused[:3])] == []
        assert [line for line in map(str.strip, result.stdout.splitlines()) if line.startswith(refused)] == []


@pytest.mark.parametrize(("verb", "form"), [pair for pair in FORMATS if "csv" in pair[1]])
def test_no_cell_of_a_spreadsheet_is_a_formula(
    verb: str, form: str, named: HostileFiles, everywhere: HostileFiles
) -> None:
    for files in (named, everywhere):
        parts = re.split(r"[;,|\t\n]", run(verb, form, files).stdout)
        assert [part for part in parts if part.strip(' "')[:1] in [*"=@\uff1d"]] == []


@cache
def output_of(verb: str, form: str, files: HostileFiles) -> str:
    """Returns what several tests read of the same run."""
    return run(verb, form, files).output


@pytest.mark.parametrize("verb", sorted(RUNS))
def test_the_text_is_in_the_report_or_there_is_a_reason(
    verb: str, named: HostileFiles, everywhere: HostileFiles
) -> None:
    """Otherwise the tests above would show nothing."""
    forms = {all_verbs()[verb][0], all_verbs()[verb][-1]}
    outputs = [output_of(verb, form, files) for form in forms for files in (named, everywhere)]
    is_shown = any("evil.example" in output for output in outputs)
    assert is_shown != (verb in SHOWS_NO_TEXT)


@pytest.mark.parametrize("field", string_fields())
def test_hostile_text_in_one_field_alone_is_text(field: str, tmp_path: Path) -> None:
    """The object may be unreadable by it, and reports then quote it."""
    files = HostileFiles(tmp_path, (field,))
    for verb in ("plan", "lint", "admit"):
        assert not has_control_characters(run(verb, "table", files).output)
