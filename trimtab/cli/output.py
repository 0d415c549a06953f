"""One report, in the form that was asked for: a table for people, JSON or YAML for machines, HTML to pass around.

All forms are made of the same report value, so they tell the same facts.

A sign of life for long work: on standard error, only on a terminal, only when there is much to do.

A reason as reports tell it: a stable code, a sentence, a page.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec
import yaml
from rich.console import Console
from rich.progress import Progress, track

from trimtab.cli.main import UsageError
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.reason import Reason

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
        got = (error.strerror or type(error).__name__).lower()
        raise UsageError([ConfigError(file=output_file, expected="a file that can be written", got=got)]) from None


def manifests_text(manifests: Iterable[Mapping[str, Any]], form: str = "yaml") -> str:
    """All manifests as one text: several YAML documents, or a JSON List."""
    if form == "json":
        listed = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
        return msgspec.json.format(msgspec.json.encode(listed), indent=2).decode() + "\n"
    return yaml.dump_all(manifests, Dumper=_Manifests, sort_keys=False, allow_unicode=True, width=120)


class _Manifests(yaml.SafeDumper):
    """Parts that manifests share are written out where they stand; text of several lines is a block, to be edited."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _block(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Manifests.add_representer(str, _block)


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


T = TypeVar("T")

MUCH = 200
"""Items that take long enough for somebody to wonder."""


def progress(items: Sequence[T], doing: str) -> Iterable[T]:
    """The items, with a bar that goes away when they are done."""
    console = Console(stderr=True)
    if len(items) < MUCH or not console.is_terminal:
        return items
    return track(items, doing, console=console, transient=True)


@contextmanager
def working(doing: str) -> Iterator[None]:
    """Something turns while a work of unknown length is done."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(f"{doing} …"):
        yield


@contextmanager
def counted(total: int, doing: str) -> Iterator[Callable[[int], None]]:
    """A bar for parts that take long one by one: whoever works says how many are done."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done: None
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task(doing, total=total)
        yield lambda done: bar.update(task, completed=done)


class ReportPart(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of a report: camelCase, every field always there."""


class ReasonReport(ReportPart, frozen=True, kw_only=True):
    """A reason: a stable code, a sentence, a page."""

    code: str
    text: str
    page: str


def why(reason: Reason) -> ReasonReport:
    return ReasonReport(code=reason.code.name, text=reason.sentence, page=reason.page)
