"""Writes reports as CSV, which is how texts of others reach a spreadsheet.

A spreadsheet computes a cell that begins a formula (OWASP, CSV Injection). It also decides by itself at which
characters it divides a line: in many countries at semicolons, and a program may add tabs. So every cell is in quotes,
and a formula is text wherever a separator could begin a cell.
"""

import csv
import io
import re
from collections.abc import Iterable

from trimtab.cluster.control_characters import on_one_line

Cell = str | int | float | None
"""A cell: a text, a number, or nothing."""


def format_csv_table(rows: Iterable[Iterable[Cell]], *, line_end: str = "\n") -> str:
    """Returns the rows as CSV in which every cell is quoted. No other function of the command line writes CSV."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator=line_end)
    writer.writerows([csv_cell(cell) for cell in row] for row in rows)
    return text.getvalue()


def csv_cell(value: Cell) -> Cell:
    """Returns the value of a cell. A part of a text that a spreadsheet would compute as a formula begins with an
    apostrophe, so that the spreadsheet shows it as text. Control characters and line ends are replaced. Numbers and
    quantities stay as they are."""
    if not isinstance(value, str) or _NUMBER.fullmatch(value):
        return value
    return "".join(f"'{part}" if _FORMULA.match(part) else part for part in _SEPARATOR.split(on_one_line(value)))


_SEPARATOR = re.compile(r"([;,|])")
"""Where a spreadsheet may begin a cell or a row, if the user or the country says so."""

_FORMULA = re.compile(
    r"[\s\"']*[-=+@\N{FULLWIDTH EQUALS SIGN}\N{FULLWIDTH PLUS SIGN}\N{FULLWIDTH HYPHEN-MINUS}"
    r"\N{FULLWIDTH COMMERCIAL AT}]"
)
"""How a formula begins (OWASP, CSV Injection), after blanks and quotes that a spreadsheet removes."""

_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?[A-Za-z]{0,2}")
"""A number, or a quantity such as +50m and -256Mi: its first character is a digit, so it names no cell and no
function."""
