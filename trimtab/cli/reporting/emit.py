"""The options of a verb whose report has rows, and the output in each format."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import click
import msgspec

from trimtab.cli import output
from trimtab.cli.csv_table import Cell, format_csv_table
from trimtab.cli.plain_columns import cell_text
from trimtab.cli.reporting.columns import Column, ReportView, Section
from trimtab.cli.reporting.draw import draw_report

R = TypeVar("R", bound=msgspec.Struct)
F = TypeVar("F", bound=Callable[..., Any])


def add_report_options(view: ReportView[Any]) -> Callable[[F], F]:
    """Returns a decorator of a click command that adds the options `-o`, `-O` and `--no-headers`, with the formats that
    the report has. The command receives them as `form` and `output_file`."""
    forms = ["table", "wide", *(["name"] if view.main.name is not None else []), "json", "yaml", "csv", "html"]

    def decorate(function: F) -> F:
        function = output.add_no_headers_option(output.add_output_file_option(function))
        return click.option(
            "-o", "--output", "form", type=click.Choice(forms), default="table", show_default=True,
            help="The format of the report.",
        )(function)  # fmt: skip

    return decorate


def emit_rows(form: str, output_file: str | None, report: R, view: ReportView[R]) -> None:
    """Prints the report in this format, or writes it to the file."""
    if form == "csv":
        output.write_text(render_csv(report, view.main, has_headers=output.has_headers()), output_file)
    elif form == "name":
        output.write_lines(_names(report, view.main), output_file)
    else:
        output.emit_report(
            form,
            output_file,
            report,
            lambda console: draw_report(console, report, view, is_wide=form == "wide"),
            view.title,
        )


def render_csv(report: R, section: Section[R, Any], *, has_headers: bool = True) -> str:
    """Returns the rows of a section as CSV, with all its columns."""
    columns = section.columns(report)
    header: list[Iterable[Cell]] = [[column.title for column in columns]] if has_headers else []
    return format_csv_table([*header, *([_value(column, row) for column in columns] for row in section.rows(report))])


def _value(column: Column[Any], row: Any) -> Cell:
    return cell_text(column.cell(row)) if column.value is None else column.value(row)


def _names(report: R, section: Section[R, Any]) -> Iterator[str]:
    assert section.name is not None
    for row in section.rows(report):
        yield section.name(row)
