"""No spreadsheet computes a cell, at whatever character it divides a line, and a reader of CSV finds the same cells."""

import ast
import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.architecture.source_words import source_files
from trimtab.cli.csv_table import csv_cell, format_csv_table

COMMAND = "cmd|' /C calc'!A0"
SIGNS = "=+-@\uff1d\uff0b\uff0d\uff20"
SEPARATORS = ",;|\t\n\r"


@pytest.mark.parametrize(
    "text", ["=1", "+1+1", f"-{COMMAND}", "@SUM(A1)", " =1", "\uff1d1", "-1+2", "+1|x", "-1,5+A1", '"=1', "\xa0=1"]
)
def test_a_cell_that_begins_a_formula_is_text(text: str) -> None:
    assert str(csv_cell(text)).startswith("'")


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("separator", [*";,|\t\n", "; ", ';"', ";'", "\r\n"])
def test_a_formula_after_a_separator_inside_a_cell_is_text(separator: str, sign: str) -> None:
    assert parts_with_formula(str(csv_cell(f"x{separator}{sign}{COMMAND};"))) == []


@pytest.mark.parametrize("value", ["-1.5", "web", "", 5, -2.5, "+15", "+50m", "-256Mi", "-5e3", None, "a-b, c"])
def test_a_number_a_quantity_and_a_name_stay_as_they_are(value: str | float | None) -> None:
    assert csv_cell(value) == value


def test_every_cell_is_in_quotes() -> None:
    assert format_csv_table([["a", 1, None], ['x"y', "", 2.5]]) == '"a","1",""\n"x""y","","2.5"\n'


@given(
    st.lists(st.lists(st.text(alphabet=[*SIGNS, *SEPARATORS, *"a1'\" \u200b\x00"]), min_size=2, max_size=3), min_size=1)
)
def test_no_part_of_a_line_begins_a_formula_at_any_separator(rows: list[list[str]]) -> None:
    text = format_csv_table(rows)
    assert parts_with_formula(text) == []
    assert [len(row) for row in csv.reader(io.StringIO(text, newline=""))] == [len(row) for row in rows]


def parts_with_formula(text: str) -> list[str]:
    """The parts that a spreadsheet would compute, whichever of the separators divides its cells."""
    parts = [part.strip(' \xa0"') for part in re.split(f"[{SEPARATORS}]", text)]
    return [part for part in parts if part[:1] in [*SIGNS] and not re.fullmatch(r"[-+]\d+\w*", part)]


def test_no_module_but_one_writes_csv() -> None:
    def is_writer(node: ast.AST) -> bool:
        name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        from_csv = isinstance(node, ast.ImportFrom) and node.module == "csv"
        return from_csv or name in ("csv.writer", "csv.DictWriter")

    writers = [file.name for file in source_files() if any(is_writer(node) for node in file.nodes)]
    assert writers == ["trimtab/cli/csv_table.py"]
