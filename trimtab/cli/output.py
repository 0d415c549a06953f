"""Writes texts and documents, shows progress, and defines the parts that all reports share.

Progress is shown on standard error, only on a terminal, and only if the work takes long.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import click
import msgspec
import yaml
from rich.console import Console
from rich.progress import Progress, track
from rich.text import Text

from trimtab.cli.plain_columns import PlainConsole
from trimtab.cli.print_text import print_document
from trimtab.cli.printable_text import ReportConsole
from trimtab.cluster.control_characters import escape_in_json
from trimtab.cluster.reason import Reason
from trimtab.cluster.yaml_format import PrintableDumper
from trimtab.inputs.option import option
from trimtab.inputs.private_file import write_private_file

API_VERSION = "trimtab.dev/v1alpha1"


def _keep_no_headers(is_chosen: bool) -> bool:
    click.get_current_context().meta[_NO_HEADERS] = is_chosen
    return is_chosen


NO_HEADERS = option("--no-headers", convert=_keep_no_headers, help="Print plain columns without the line of headers.")
OUTPUT_FORM = option("-o", "--output", help="The format of the report.")
OUTPUT_FILE = option(
    "-O",
    "--output-file",
    type=click.Path(dir_okay=False, writable=True),
    help="Write to this file instead of the terminal.",
)


_NO_HEADERS = f"{__name__}.no_headers"
"""The key of the option --no-headers in click's context."""


def has_headers() -> bool:
    """Return whether tables have a line of headers: False with `--no-headers`."""
    context = click.get_current_context(silent=True)
    return context is None or not context.meta.get(_NO_HEADERS, False)


def write_text(text: str, output_file: str | None) -> None:
    """Print the text, or write it to a file that only its owner may read. Raises UsageError if the file cannot be
    written."""
    if output_file is None:
        print_document(text)
        return
    write_private_file(output_file, text.encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestOutput:
    """How and where manifests are written."""

    form: Annotated[Literal["yaml", "json"], OUTPUT_FORM.with_help("The format of the manifests.")] = "yaml"
    file: Annotated[str | None, OUTPUT_FILE] = None


def write_manifests(to: ManifestOutput, manifests: Iterable[Mapping[str, Any]]) -> None:
    """Print the manifests in the format that was chosen, or write them to the file."""
    write_text(format_manifests(manifests, to.form), to.file)


def format_json(document: object) -> str:
    """Return the document as indented JSON, in which control characters are escaped."""
    return escape_in_json(msgspec.json.format(msgspec.json.encode(document), indent=2).decode()) + "\n"


def format_manifests(manifests: Iterable[Mapping[str, Any]], form: str = "yaml") -> str:
    """Return all manifests as one text: a stream of YAML documents, or a JSON List."""
    if form == "json":
        listed = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
        return format_json(listed)
    return yaml.dump_all(manifests, Dumper=_ManifestDumper, sort_keys=False, allow_unicode=True, width=120)


def format_yaml(*documents: object, width: int = 120) -> str:
    """Return the documents as YAML, in which control characters are escaped."""
    return yaml.dump_all(documents, Dumper=PrintableDumper, sort_keys=False, allow_unicode=True, width=width)


class _ManifestDumper(PrintableDumper):
    """A YAML dumper without anchors and aliases; text with several lines is written as a block, which is easy to
    edit."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_ManifestDumper.add_representer(str, _represent_text)


def create_console() -> Console:
    """Return a console for standard output; it writes plain columns if that is no terminal, or with --no-headers.

    In a pipe, text is wrapped at COLUMNS or 120 characters; tables are as wide as their cells.
    """
    console = ReportConsole()
    if console.is_terminal and has_headers():
        return console
    width = None if "COLUMNS" in os.environ or console.is_terminal else 120
    return PlainConsole(has_headers=has_headers(), width=width)


T = TypeVar("T")

MIN_ITEMS_WITH_PROGRESS = 200
"""The number of items from which a progress bar is shown."""


def show_progress(items: Sequence[T], doing: str) -> Iterable[T]:
    """Return the items; iterating over them shows a progress bar, which disappears at the end."""
    console = ReportConsole(stderr=True)
    if len(items) < MIN_ITEMS_WITH_PROGRESS or not console.is_terminal:
        return items
    return track(items, doing, console=console, transient=True)


@contextmanager
def show_spinner(doing: str) -> Iterator[None]:
    """Show a spinner during work of unknown length."""
    console = ReportConsole(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(Text(f"{doing} …")):
        yield


@contextmanager
def show_counted_progress(total: int, doing: str) -> Iterator[Callable[[int], None]]:
    """Show a progress bar of `total` parts; the yielded function takes the number of parts that are done so far."""
    console = ReportConsole(stderr=True)
    if not console.is_terminal:
        yield lambda done: None
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task(doing, total=total)
        yield lambda done: bar.update(task, completed=done)


class ReportPart(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of reports and of their parts: names are camelCase, and every field is always present. A report, which
    is a document with a `kind`, also says by which command it is printed; its schema is published."""

    printed_by: ClassVar[str]


class ReasonReport(ReportPart, frozen=True, kw_only=True):
    """A reason in a report: a stable code, a sentence, and the URL of the documentation page about the code."""

    code: str
    """The code of the reason: `trimtab explain CODE` says what it means and what to do."""
    text: str
    """The reason as a sentence with its values."""
    page: str
    """The page of the documentation about the code, with its anchor."""


def report_reason(reason: Reason) -> ReasonReport:
    """Return the reason in the form of reports."""
    return ReasonReport(code=reason.code.name, text=reason.sentence, page=reason.page_path)
