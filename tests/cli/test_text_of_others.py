"""Names, kinds and reasons of others are only text in every report: no link, no style, no sequence, no formula."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.table import Table

from tests.cluster_of import node, pod
from trimtab.cli.main import cli
from trimtab.cli.output import format_json
from trimtab.cli.plain_columns import PlainConsole
from trimtab.cli.printable_text import ReportConsole, csv_cell, replace_control_characters

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


def hostile(value: Any) -> Any:
    """The value with the sequences behind every name and reason, but not in numbers, labels of the platform or words
    of the API."""
    if isinstance(value, list):
        return [hostile(one) for one in value]
    if not isinstance(value, dict):
        return value
    fields = ("name", "kind", "reason", "namespace", "uid", "nodeName", "image", "message")
    return {
        key: f"{one}{HOSTILE}" if key in fields and isinstance(one, str) else hostile(one) for key, one in value.items()
    }


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    items = [node("a"), node("b")]
    items += [pod(f"p{number}", "a") for number in range(3)]
    items = [{"kind": one["kind"], "apiVersion": "v1", **hostile({k: v for k, v in one.items() if k != "kind"})}
             for one in items]  # fmt: skip
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return path


REPORTS = (
    ("plan",), ("plan", "-o", "wide"), ("plan", "-o", "html"), ("plan", "-o", "json"), ("simulate",), ("idle",),
    ("machines", "rank"), ("lint",), ("lint", "-o", "junit"), ("lint", "-o", "sarif"), ("reserved", "measure"),
)  # fmt: skip


@pytest.mark.parametrize("arguments", REPORTS, ids=" ".join)
def test_no_report_of_a_hostile_snapshot_has_a_sequence_that_a_terminal_obeys(
    snapshot: Path, arguments: tuple[str, ...]
) -> None:
    output = CliRunner(env={"FORCE_COLOR": "1", "TERM": "xterm-256color"}).invoke(
        cli, [*arguments, "--cluster", str(snapshot)], color=True
    )
    assert not any(sequence in output.output for sequence in WORKED), arguments


@pytest.mark.parametrize(
    "text", ["=1+1", "+1+1", "-cmd|'/c calc'!A0", "@SUM(A1)", " =1", "\t=1", "\uff1d1", "-1+2", "+1|x"]
)
def test_a_cell_that_begins_a_formula_is_text(text: str) -> None:
    assert str(csv_cell(text)).startswith("'")


@pytest.mark.parametrize("value", ["-1.5", "web", "", 5, -2.5, "+15", "+50m", "-256Mi", "-5e3"])
def test_a_number_a_quantity_and_a_name_stay_as_they_are(value: object) -> None:
    assert csv_cell(value) == value


@pytest.mark.parametrize("text", ["größer", "web-1", "a\x9bm\x7f\u202eb", "\x1b]8;;"])
def test_json_has_the_same_data_and_no_control_character(text: str) -> None:
    document = format_json({"name": text})
    assert json.loads(document) == {"name": text}
    assert replace_control_characters(document) == document
