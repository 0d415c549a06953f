"""Everything that is looked at, in order: what others rest on first.

The report of `trimtab doctor`.

The report as a table: what needs somebody stands with its fix under it.

`trimtab doctor`: is everything wired?
"""

import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from trimtab.cli import live_cluster, output
from trimtab.cli.doctor import check_installation, check_integrations, check_signatures, check_webhook
from trimtab.cli.doctor.finding import Check, DoctorFinding, FindingSeverity, unknown
from trimtab.cli.doctor.observed import ObservedCluster
from trimtab.cli.install.names import InstallValues
from trimtab.cli.main import FOUND, RuntimeFailure, UsageError
from trimtab.cli.output import API_VERSION, ReasonReport, ReportPart, why
from trimtab.cluster.config_error import ConfigError

CHECKS: tuple[Check, ...] = (
    *check_installation.INSTALLATION_CHECKS, *check_installation.PROCESS_CHECKS, *check_signatures.CHECKS,
    *check_webhook.CHECKS, *check_integrations.CHECKS, *check_installation.CHECKS,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A finding, and what was looked at."""

    check: Check
    finding: DoctorFinding


def judged(seen: ObservedCluster, *, without: Collection[str] = ()) -> tuple[CheckResult, ...]:
    """At least one finding of every check that is not left out."""
    return tuple(
        CheckResult(check, found) for check in CHECKS if check.name not in without for found in _of(check, seen)
    )


def _of(check: Check, seen: ObservedCluster) -> tuple[DoctorFinding, ...]:
    """A check that says nothing could not say anything."""
    found = tuple(check.judge(seen)) or (unknown("nothing of it is there to be looked at"),)
    return tuple(one.at(seen.namespace) for one in found)


def is_well(told: Collection[CheckResult], *, strict: bool = False) -> bool:
    """Nothing is wrong, and everything was looked at; strictly: nothing could be better either."""
    bad = {FindingSeverity.ERROR, FindingSeverity.UNKNOWN} | ({FindingSeverity.WARN} if strict else set())
    return not any(each.finding.severity in bad for each in told)


class DoctorFindingReport(ReportPart, frozen=True, kw_only=True):
    check: str
    """What was looked at: stable, kebab-case."""
    asks: str
    severity: str
    """ok, warn, error; unknown where it could not be looked at, which is never taken for ok."""
    reason: ReasonReport
    fix: str
    """A command or a sentence; empty where nothing needs mending."""


class DoctorReport(ReportPart, frozen=True, kw_only=True):
    """Published as deploy/schemas/doctor-report.schema.json."""

    api_version: str = API_VERSION
    kind: str = "DoctorReport"
    server: str
    namespace: str
    at: str
    """RFC 3339, by this machine's clock."""
    well: bool
    """No error, and nothing unknown; with --strict no warning either."""
    counts: dict[str, int]
    """Severity → findings."""
    left_out: list[str]
    """Checks that were not to be made."""
    findings: list[DoctorFindingReport]


def report(told: Iterable[CheckResult], *, server: str, namespace: str, at: str, without: Iterable[str],
strict: bool) -> (
    DoctorReport
):  # fmt: skip
    told, without = tuple(told), set(without)
    severities = [each.finding.severity for each in told]
    return DoctorReport(
        server=server,
        namespace=namespace,
        at=at,
        well=is_well(told, strict=strict),
        counts={severity.value: severities.count(severity) for severity in FindingSeverity},
        left_out=[check.name for check in CHECKS if check.name in without],
        findings=[_finding(each) for each in told],
    )


def _finding(told: CheckResult) -> DoctorFindingReport:
    found = told.finding
    return DoctorFindingReport(
        check=told.check.name, asks=told.check.asks, severity=found.severity.value, reason=why(found.reason),
        fix=found.fix,
    )  # fmt: skip


_STYLES = {"ok": "green", "warn": "yellow", "error": "red", "unknown": "magenta"}


def draw(console: Console, report: DoctorReport) -> None:
    console.print(f"{report.server}, namespace {report.namespace}")
    table = Table("", "check", "finding", box=None, pad_edge=False)
    for found in report.findings:
        style = _STYLES[found.severity]
        table.add_row(f"[{style}]{found.severity}[/]", found.check, _told(found))
    console.print(table)
    for name in report.left_out:
        console.print(f"left out: {name}")
    console.print(_sum(report))


def _told(found: DoctorFindingReport) -> str:
    told = escape(found.reason.text)
    if found.severity == "ok":
        return told
    return f"{told} [dim]\\[{found.reason.code}][/]\n[bold]→[/] {escape(found.fix)}"


def _sum(report: DoctorReport) -> str:
    counts = ", ".join(f"{count} {severity}" for severity, count in report.counts.items() if count)
    return f"[bold green]well[/]: {counts}" if report.well else f"[bold red]not well[/]: {counts}"


@click.command("doctor")
@click.option("--namespace", default=InstallValues().namespace, show_default=True, help="Where we are installed.")
@click.option(
    "--ask-in", default="default", show_default=True, metavar="NAMESPACE",
    help="Where pods are asked for, none of which is stored: one whose pods are to be changed.",
)  # fmt: skip
@click.option(
    "--without", multiple=True, type=click.Choice([check.name for check in CHECKS]), metavar="CHECK",
    help="Leave a check out; the report says so. May be given several times.",
)  # fmt: skip
@click.option("--strict", is_flag=True, help="Warnings count, too.")
@output.options
@live_cluster.login
def verb(
    namespace: str,
    ask_in: str,
    without: tuple[str, ...],
    strict: bool,
    output: str,
    output_file: str | None,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Is everything wired? Certificates, caBundles, the way from the API server to us, rights, Leases, autoscaler, …

    Each finding comes with what mends it. Nothing is stored: two pods and a policy are created as a dry run. What
    could not be looked at is told as unknown, with the right that is missing. Exits 1 where something is wrong or
    unknown, 3 where no API server answers.
    """
    found = _looked(live_cluster.ClusterOptions((), kubeconfig, context), namespace, ask_in, without, strict=strict)
    _emit(output, output_file, found)
    if not found.well:
        sys.exit(FOUND)


def _emit(form: str, output_file: str | None, found: DoctorReport) -> None:
    output.emit(form, output_file, found, lambda console: draw(console, found), "trimtab doctor")


def _looked(
    asked: live_cluster.ClusterOptions, namespace: str, ask_in: str, without: tuple[str, ...], *, strict: bool
) -> DoctorReport:
    from trimtab.cli.doctor.cluster_reader import look
    from trimtab.kube.client import connect
    from trimtab.kube.errors import KubeFault, NotConfigured

    try:
        client = connect(asked.kubeconfig, asked.context)
    except NotConfigured as error:
        raise UsageError(
            [ConfigError(file=asked.kubeconfig or "kubeconfig", expected="a cluster", got=str(error))]
        ) from None
    try:
        seen = look(client, namespace, ask_in)
    except KubeFault as error:
        raise RuntimeFailure(str(error)) from None
    finally:
        client.close()
    told = judged(seen, without=without)
    at = seen.here.strftime("%Y-%m-%dT%H:%M:%SZ")
    return report(told, server=client.server, namespace=namespace, at=at, without=without, strict=strict)
