"""The command line of `trimtab report`, which joins printed reports."""

from collections import Counter
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Annotated

import click

from trimtab.cli.options import takes
from trimtab.cli.repeat_command import repeat_command
from trimtab.cli.report.printed_reports import Printed, read_printed
from trimtab.cli.report.report import JoinedReport, join_reports
from trimtab.cli.report.table import VIEW
from trimtab.cli.reporting.emit import PageOutput, write_report
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.timestamps import format_timestamp
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.live_cluster import read_paths
from trimtab.inputs.option import Argument, option
from trimtab.runtime import clock


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinOptions:
    """The options of `trimtab report`."""

    files: Annotated[tuple[str, ...], Argument("FILE...")]
    title: Annotated[
        str, option("--title", metavar="TEXT", help="The title of the page, such as the name of the cluster.")
    ] = "Trimtab report"
    output: PageOutput


@click.command("report")
@takes(JoinOptions)
def verb(options: JoinOptions) -> None:
    """Join reports in one file for others to read: the sums first, then what each report says.

    FILE is what `trimtab replay`, `plan`, `recommend`, `savings` or `lint` printed with -o json. With -o html the page
    has the picture of the replayed days and the tables. The command reads files only.
    """
    reports: list[tuple[str, str, Printed]] = []
    mistakes: list[ConfigError] = []
    files = read_paths(options.files)
    mistakes += [
        ConfigError(file=file, expected="each file once", got=f"it {count} times")
        for file, count in Counter(file for file, _ in files).items()
        if count > 1
    ]
    for file, content in files:
        printed = read_printed(file, content)
        if isinstance(printed, ConfigError):
            mistakes.append(printed)
        else:
            reports.append((file, *printed))
    if mistakes:
        raise UsageError(mistakes)
    report = join_reports(
        reports,
        title=options.title,
        at=format_timestamp(int(clock.utc_now().timestamp())),
        version=version("trimtab"),
        command=repeat_command(),
    )
    write_report(options.output, report, replace(VIEW, texts={"html": _render_page}))


def _render_page(report: JoinedReport) -> str:
    from trimtab.cli.report.page import render_page  # a page needs templates, and a table does not

    return render_page(report)
