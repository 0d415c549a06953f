"""Tables in pipes: one line for each row, nothing cut."""

from io import StringIO

from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from trimtab.cli.plain_columns import PlainConsole, format_columns


def test_columns_are_as_wide_as_their_cells_and_numbers_are_right_aligned() -> None:
    table = Table(title="Pools")
    table.add_column("name")
    table.add_column("nodes", justify="right")
    table.add_row("web", "9")
    table.add_row("x" * 200, Text("12", style="bold"))
    assert format_columns(table) == ["Pools", f"{'NAME':200}   NODES", f"{'web':200}       9", f"{'x' * 200}      12"]


def test_a_cell_with_several_lines_stays_on_one() -> None:
    table = Table("a", "b", show_header=False)
    table.add_row(Text("one\ntwo"), Group(Text("three"), Text("four")))
    assert format_columns(table) == ["one; two   three; four"]


def test_a_plain_console_draws_no_box_and_folds_no_table() -> None:
    file = StringIO()
    console = PlainConsole(file=file, width=20)
    assert isinstance(console, Console)
    table = Table("name")
    table.add_row("a-name-that-is-longer-than-the-console")
    console.print(table)
    console.print(Panel(Group(Text("inside")), title="Frame"))
    assert file.getvalue() == "NAME\na-name-that-is-longer-than-the-console\nFrame\n  inside\n"
