"""The command line of `trimtab savings`, which reads what the compactor stored."""

from dataclasses import dataclass
from typing import Annotated

import click

from trimtab.cli.options import takes
from trimtab.cli.reporting.emit import ReportOutput, write_report
from trimtab.cli.savings.expected import EXPECTED_VIEW, build_expected_report
from trimtab.cli.savings.report import VIEW, build_savings_report
from trimtab.cli.since import parse_since
from trimtab.cluster.api.core import Namespace
from trimtab.cluster.api.meta import value_or
from trimtab.cluster.config_error import ConfigError
from trimtab.compaction.drain.savings import MAX_DAYS
from trimtab.inputs.command_faults import UsageError, check_names
from trimtab.inputs.flags import POOL, SINCE, TEAM_LABEL
from trimtab.inputs.option import option
from trimtab.inputs.stored_state import StoredStateOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class SavingsOptions:
    """The options of `trimtab savings`."""

    since: Annotated[
        str,
        SINCE.with_help(
            f"The start of the report: an age such as 12h, 30d or 4w, or a date such as 2026-11-01. {MAX_DAYS} days "
            "are stored; the report contains whole days in UTC."
        ),
    ] = "30d"
    pool: Annotated[str | None, POOL.with_help("Show only this pool.")] = None
    team_label: Annotated[
        str | None,
        TEAM_LABEL.with_help(
            "A label of namespaces whose value is the name of the team. Default: each namespace is a team."
        ),
    ] = None
    expected: Annotated[
        bool,
        option(
            "--expected",
            help="Show instead what the drains promised to save, and what became of them, by pool and by day.",
        ),
    ] = False
    source: StoredStateOptions
    output: ReportOutput


@click.command("savings")
@takes(SavingsOptions)
def verb(options: SavingsOptions) -> None:
    """Show what removed nodes saved, by pool and by team.

    A node's saving is divided among the namespaces whose pods were moved from it, by the number of their pods. The
    command reads what the compactor stored, in the live cluster or in a capture of it; `trimtab compactor history` has
    the single decisions. With --expected it compares what the plans of the drains promised with what became of the
    drains.
    """
    if options.expected and options.team_label is not None:
        raise UsageError([ConfigError(file="--expected", expected="no --team-label: teams share drains", got="both")])
    compactor_state = options.source.read()
    pool, team_label = options.pool, options.team_label
    if pool is not None:
        check_names("--pool", "a pool that has a stored state", [pool], compactor_state.pool_states)
    begin = parse_since(options.since, compactor_state.read_at)
    if options.expected:
        expected_report = build_expected_report(compactor_state.pool_states, begin, compactor_state.read_at, only=pool)
        write_report(options.output, expected_report, EXPECTED_VIEW)
        return
    labels = {
        shape.metadata.name: value_or(shape.metadata.labels, {})
        for shape in compactor_state.snapshot.objects_of(Namespace)
    }

    def team_of(namespace: str) -> str:
        return labels.get(namespace, {}).get(team_label, "(no team)") if team_label else namespace

    report = build_savings_report(compactor_state.pool_states, begin, compactor_state.read_at, team_of, only=pool)
    write_report(options.output, report, VIEW)
