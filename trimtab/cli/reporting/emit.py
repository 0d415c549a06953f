"""The options of a verb whose report has rows, and the output in each format."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import click
import msgspec

from trimtab.cli import output
from trimtab.cli.csv_table import Cell, format_csv_table
from trimtab.cli.plain_columns import cell_text
from trimtab.cli.reporting.columns import Column, ReportView
from trimtab.cli.reporting.draw import draw_report

R = TypeVar("R", bound=msgspec.Struct)
F = TypeVar("F", bound=Callable[..., Any])


FORMS = ("table", "wide", "name", "json", "yaml", "csv", "html")


def add_report_options(function: F) -> F:
    """Decorate a click command whose report has rows with the options `-o`, `-O` and `--no-headers`. The command
    receives them as `form` and `output_file`."""
    return add_report_options_with()(function)


def add_report_options_with(*more_forms: str) -> Callable[[F], F]:
    """Returns a decorator like `add_report_options` that also has the formats `more_forms`."""

    def decorate(function: F) -> F:
        function = output.add_no_headers_option(output.add_output_file_option(function))
        return click.option(
            "-o", "--output", "form", type=click.Choice((*FORMS, *more_forms)), default="table", show_default=True,
            help="The format of the report.",
        )(function)  # fmt: skip

    return decorate


def emit_rows(form: str, output_file: str | None, report: R, view: ReportView[R]) -> None:
    """Prints the report in this format, or writes it to the file."""
    if form == "csv":
        output.write_text(render_csv(report, view, has_headers=output.has_headers()), output_file)
    elif form == "name":
        output.write_lines(_names(report, view), output_file)
    elif form in view.texts and form != "html":
        output.write_text(view.texts[form](report), output_file)
    else:
        render_page = view.texts.get("html")
        output.emit_report(
            form,
            output_file,
            report,
            lambda console: draw_report(console, report, view, is_wide=form == "wide"),
            view.title,
            page=None if render_page is None else partial(render_page, report),
        )


def render_csv(report: R, view: ReportView[R], *, has_headers: bool = True) -> str:
    """Returns the rows of all sections as one table in CSV, with all their columns. If there are several sections, the
    first column names the section of a row, and a cell of another section's column is empty."""
    tables = [(section, (section.csv_columns or section.columns)(report)) for section in view.list_sections(report)]
    tables = [(section, columns) for section, columns in tables if columns]
    titles = list(dict.fromkeys(_csv_title(column) for _, columns in tables for column in columns))
    has_keys = len({section.key for section, _ in tables}) > 1
    lines: list[list[Cell]] = [[*(["table"] if has_keys else []), *titles]] if has_headers else []
    for section, columns in tables:
        for row in section.rows(report):
            cells = {_csv_title(column): _value(column, row) for column in columns}
            lines.append([*([section.key] if has_keys else []), *map(cells.get, titles)])
    return format_csv_table(lines)


def _csv_title(column: Column[Any]) -> str:
    return column.csv_title or column.title


def _value(column: Column[Any], row: Any) -> Cell:
    return cell_text(column.cell(row)) if column.value is None else column.value(row)


def _names(report: R, view: ReportView[R]) -> Iterator[str]:
    named = [(section.name, section.named or section.rows) for section in view.list_sections(report)]
    return iter(dict.fromkeys(name(row) for name, rows in named if name is not None for row in rows(report)))
