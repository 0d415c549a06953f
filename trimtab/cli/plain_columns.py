"""Tables for pipes and files: one line per row, columns separated by blanks, no frames, no cell shortened or wrapped.

kubectl prints tables in the same way (k8s.io/cli-runtime/pkg/printers/tabwriter.go): upper-case headers, at least three
blanks between columns. `grep`, `awk` and `cut` then find each object on one line.
"""

from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from trimtab.cli.printable_text import ReportConsole

SEPARATOR = "   "


class PlainConsole(ReportConsole):
    """A console that writes tables as plain columns, and panels without their frame."""

    has_any_width = True

    def __init__(self, *, has_headers: bool = True, **options: Any) -> None:
        super().__init__(**options)
        self._has_headers, self._has_printed = has_headers, False

    def print(self, *objects: Any, **options: Any) -> None:
        """Print the objects; a table may be wider than the console."""
        if len(objects) == 1 and isinstance(objects[0], Panel):
            panel = objects[0]
            if panel.title:
                self.print(panel.title)
            content = panel.renderable
            for part in content.renderables if isinstance(content, Group) else [content]:
                lines = self._format(part) if isinstance(part, Table) else _render_lines(part)
                super().print(Text("\n".join(f"  {line}" for line in lines)), soft_wrap=True, highlight=False)
        elif len(objects) == 1 and isinstance(objects[0], Table):
            # An empty line before a table, as kubectl prints one between two kinds.
            lines = [*([""] if self._has_printed else []), *self._format(objects[0])]
            super().print(Text("\n".join(lines)), soft_wrap=True, highlight=False)
        else:
            super().print(*objects, **options)
        self._has_printed = True

    def _format(self, table: Table) -> list[str]:
        return format_columns(table, has_headers=self._has_headers)


def format_columns(table: Table, *, has_headers: bool = True) -> list[str]:
    """Return the lines of the table: its title, its headers, and one line for each row."""
    columns = [
        [cell_text(column.header).upper(), *map(cell_text, column.cells)]
        if table.show_header and has_headers
        else [*map(cell_text, column.cells)]
        for column in table.columns
    ]
    widths = [max(map(len, cells), default=0) for cells in columns]
    rows = zip(*columns, strict=True)
    aligned = [
        SEPARATOR.join(
            cell.rjust(width) if column.justify == "right" else cell.ljust(width)
            for cell, width, column in zip(row, widths, table.columns, strict=True)
        ).rstrip()
        for row in rows
    ]
    return [*([cell_text(table.title)] if table.title else []), *aligned]


def cell_text(cell: RenderableType) -> str:
    """Return the cell on one line; the lines of a cell are joined by a semicolon."""
    return "; ".join(cell_lines(cell))


def cell_lines(cell: RenderableType) -> list[str]:
    """Return the lines of the cell that are not empty."""
    if isinstance(cell, Group):
        lines = [cell_text(part) for part in cell.renderables]
    elif isinstance(cell, Text):
        lines = cell.plain.splitlines()
    elif isinstance(cell, str):
        lines = cell.splitlines()
    else:
        lines = [line.strip() for line in _render_lines(cell)]
    return [line for line in lines if line]


def _render_lines(part: RenderableType) -> list[str]:
    if isinstance(part, Text):
        return part.plain.splitlines()
    console = ReportConsole(width=1000, no_color=True)
    with console.capture() as capture:
        console.print(part, soft_wrap=True)
    return [line.rstrip() for line in capture.get().splitlines()]
