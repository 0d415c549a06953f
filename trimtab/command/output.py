"""One report, in the form that was asked for: a table for people, JSON or YAML for machines, HTML to pass around.

All forms are made of the same report value, so they tell the same facts.
"""

import os
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec
import yaml
from rich.console import Console

from trimtab.cluster.mistake import Mistake
from trimtab.command.main import Wrong

API_VERSION = "trimtab.dev/v1alpha1"
FORMS = ("table", "json", "yaml", "html")

Draw = Callable[[Console], None]
"""Draws the report on a terminal (or on a page)."""
F = TypeVar("F", bound=Callable[..., Any])


def options(function: F) -> F:
    """`-o` and `--output-file`, for every verb that reports."""
    function = click.option(
        "--output-file", type=click.Path(dir_okay=False, writable=True), help="Write here instead of to the terminal."
    )(function)
    return click.option(
        "-o", "--output", type=click.Choice(FORMS), default="table", show_default=True, help="The form of the report."
    )(function)


def emit(
    form: str,
    output_file: str | None,
    report: msgspec.Struct,
    draw: Draw,
    title: str,
    page: Callable[[], str] | None = None,
) -> None:
    """Print the report in this form, or write it to the file. `page`: HTML of its own, instead of the drawn table."""
    if form == "table" and output_file is None:
        draw(terminal())
        return
    text = page() if form == "html" and page is not None else render(form, report, draw, title)
    write(text, output_file)


def write(text: str, output_file: str | None) -> None:
    """Print it, or write it to the file. Raises Wrong where that cannot be written."""
    if output_file is None:
        sys.stdout.write(text)
        return
    try:
        Path(output_file).write_text(text, encoding="utf-8")
    except OSError as error:
        came = (error.strerror or type(error).__name__).lower()
        raise Wrong([Mistake(file=output_file, expected="a file that can be written", came=came)]) from None


def terminal() -> Console:
    """Standard output; where that is no terminal, rows get the width that people's screens have, or COLUMNS."""
    console = Console()
    return console if console.is_terminal or "COLUMNS" in os.environ else Console(width=120)


def render(form: str, report: msgspec.Struct, draw: Draw, title: str) -> str:
    """The report as text in this form."""
    if form == "json":
        return msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n"
    if form == "yaml":
        plain = msgspec.json.decode(msgspec.json.encode(report))
        return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=120)
    console = Console(record=True, width=160, file=StringIO())
    draw(console)
    if form == "html":
        return console.export_html(inline_styles=True).replace("<head>", f"<head>\n<title>{title}</title>", 1)
    return console.export_text()
