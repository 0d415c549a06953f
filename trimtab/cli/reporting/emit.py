"""The options of a verb whose report has rows, and the output in each format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import StringIO
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import click
import msgspec

from trimtab.cli import output
from trimtab.cli.output import NO_HEADERS, OUTPUT_FILE, OUTPUT_FORM, ReportPart
from trimtab.cli.plain_columns import PlainConsole, cell_text
from trimtab.cli.reporting.columns import Column, ReportView
from trimtab.cli.reporting.draw import draw_report
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.control_characters import on_one_line, replace_control_characters
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.option import Option

if TYPE_CHECKING:
    from trimtab.cli.csv_table import Cell

R = TypeVar("R", bound=ReportPart)


FORMS = ("table", "wide", "name", "json", "yaml", "csv")


def output_form(*more_forms: str, help: str = OUTPUT_FORM.help) -> Option:  # noqa: A002 - the word of click
    """Returns the option `-o` of a verb that has `more_forms` beside those of every report."""
    return replace(OUTPUT_FORM, type=click.Choice((*FORMS, *more_forms)), help=help)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOutput:
    """How and where a report is written. A verb with more formats has a subclass with another `form`."""

    form: Annotated[str, output_form()] = "table"
    no_headers: Annotated[bool, NO_HEADERS] = False
    file: Annotated[str | None, OUTPUT_FILE] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOutput(ReportOutput):
    """How and where a report is written that can also be a page to send to others."""

    form: Annotated[str, output_form("html")] = "table"


def write_report(to: ReportOutput, report: R, view: ReportView[R]) -> None:
    """Prints the report in the format that was chosen, or writes it to the file."""
    if to.form in ("table", "wide") and to.file is None:
        draw_report(output.create_console(), report, view, is_wide=to.form == "wide")
    else:
        output.write_text(render_report(to.form, report, view), to.file)


def render_report(form: str, report: R, view: ReportView[R]) -> str:
    """Returns the report as text in this format. All formats are made from the same value, so they contain the same
    facts."""
    if form in view.texts:
        text = view.texts[form](report)
        return replace_control_characters(text) if form == "html" else text
    if form == "csv":
        return render_csv(report, view, has_headers=output.has_headers())
    if form == "name":
        _require_names(view)
        return "".join(f"{on_one_line(name)}\n" for name in _names(report, view))
    if form == "json":
        return output.format_json(report)
    if form == "yaml":
        return output.format_yaml(msgspec.json.decode(msgspec.json.encode(report)))
    if form == "html":
        raise UsageError([ConfigError(file="--output", expected=f"one of {', '.join(FORMS)}", got=form)])
    console = PlainConsole(has_headers=output.has_headers(), record=True, width=160, file=StringIO())
    draw_report(console, report, view, is_wide=form == "wide")
    return console.export_text()


def render_csv(report: R, view: ReportView[R], *, has_headers: bool = True) -> str:
    """Returns the rows of all sections as one table in CSV, with all their columns. If there are several sections, the
    first column names the section of a row, and a cell of another section's column is empty."""
    from trimtab.cli.csv_table import format_csv_table

    tables = [(section, section.list_csv_columns(report)) for section in view.list_sections(report)]
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
    if column.value is not None:
        return column.value(row)
    text = cell_text(column.cell(row))
    return None if text in ("–", "-") else text


def _require_names(view: ReportView[R]) -> None:
    """Raises UsageError if the rows of the report are no objects: an empty list would say that there are none."""
    if not callable(view.sections) and all(section.name is None for section in view.sections):
        expected = "another format: the rows of this report are no objects that have a name"
        raise UsageError([ConfigError(file="--output", expected=expected, got="name")])


def _names(report: R, view: ReportView[R]) -> Iterator[str]:
    named = [(section.name, section.named or section.rows) for section in view.list_sections(report)]
    return iter(dict.fromkeys(name(row) for name, rows in named if name is not None for row in rows(report)))
