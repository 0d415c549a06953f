"""Names, kinds and reasons of others are only text in every report: no link, no style, no sequence, no formula."""

import io
import json
import sys
from typing import Any

import pytest
import yaml
from rich.table import Table

from trimtab.cli.output import format_json, format_manifests, format_yaml
from trimtab.cli.plain_columns import PlainConsole
from trimtab.cli.print_text import print_progress, print_text
from trimtab.cli.printable_text import ReportConsole
from trimtab.cluster.control_characters import replace_control_characters

HOSTILE = "[link=https://evil.example][reverse][/]x[/]:bomb:\x1b]8;;https://evil.example\x07\x1b[2J\x9b7m"
WORKED = ("\x1b]", "\x1b[7m", "\x1b[2J", "\x9b", "\x07")
"""What a terminal would obey."""


@pytest.mark.parametrize("console_type", [ReportConsole, PlainConsole])
@pytest.mark.parametrize("place", ["line", "cell", "heading", "nested"])
def test_markup_in_a_text_is_printed_and_never_obeyed(console_type: type[ReportConsole], place: str) -> None:
    options: dict[str, Any] = {"has_headers": True} if console_type is PlainConsole else {}
    options |= {"force_terminal": True, "width": 300, "color_system": "standard", "highlight": False}
    written = io.StringIO()
    console = console_type(file=written, **options)
    table = Table(HOSTILE if place == "heading" else "name")
    inner = Table("inner")
    inner.add_row(HOSTILE)
    table.add_row(HOSTILE if place == "cell" else inner if place == "nested" else "x")
    console.print(HOSTILE if place == "line" else table)
    text = written.getvalue()
    assert "[link=https://evil.example]" in text.lower()
    assert not any(sequence in text for sequence in WORKED)


@pytest.mark.parametrize("text", ["größer", "web-1", "a\x9bm\x7f\u202eb", "\x1b]8;;"])
def test_json_has_the_same_data_and_no_control_character(text: str) -> None:
    document = format_json({"name": text})
    assert json.loads(document) == {"name": text}
    assert replace_control_characters(document) == document


@pytest.mark.parametrize("text", ["größer", "a\u202eb", "\u2066x: y", "a\x85b", "x\x9bm", "\x1b]8;;", "line\nb\u202e"])
@pytest.mark.parametrize("write", [format_yaml, lambda document: format_manifests([document])])
def test_yaml_has_the_same_data_and_no_control_character(text: str, write: Any) -> None:
    document = write({text: text, "list": [text, 1]})
    assert yaml.safe_load(document) == {text: text, "list": [text, 1]}
    assert replace_control_characters(document) == document


def test_yaml_keeps_letters_of_other_languages_readable() -> None:
    assert format_yaml({"name": "größer"}) == "name: größer\n"


def test_a_line_is_printed_without_what_a_terminal_obeys(capsys: pytest.CaptureFixture[str]) -> None:
    print_text(HOSTILE)
    print_text(HOSTILE, err=True)
    captured = capsys.readouterr()
    assert captured.out == captured.err == f"{replace_control_characters(HOSTILE)}\n"


def test_progress_has_no_sequence_but_its_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    print_progress(HOSTILE)
    rest = capsys.readouterr().err.replace("\r\x1b[K", "")
    assert (rest.startswith("reading "), "\x1b" in rest) == (True, False)


def test_progress_is_shown_on_a_terminal_only(capsys: pytest.CaptureFixture[str]) -> None:
    print_progress("pods")
    assert capsys.readouterr().err == ""
