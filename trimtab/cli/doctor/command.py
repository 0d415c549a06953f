"""`trimtab doctor`: all checks in order, the report, and its table.

A check comes after those that it depends on. In the table the fix follows the finding.
"""

import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import click
from rich.text import Text

from trimtab.cli.main import EXIT_FOUND
from trimtab.cli.options import takes
from trimtab.cli.output import API_VERSION, ReasonReport, ReportPart, report_reason
from trimtab.cli.reporting.columns import Column, Frame, ReportView, Section, no_paragraphs
from trimtab.cli.reporting.emit import ReportOutput, write_report
from trimtab.cluster.config_error import ConfigError, suggest_name
from trimtab.diagnosis import (
    check_autoscaling,
    check_compiled_policies,
    check_expander_map,
    check_installation,
    check_integrations,
    check_metrics_api,
    check_references,
    check_signatures,
    check_webhook,
)
from trimtab.diagnosis.finding import Check, DoctorFinding, FindingSeverity, report_unknown
from trimtab.diagnosis.observed import ObservedCluster
from trimtab.diagnosis.process_states import is_absent, is_recommender_only
from trimtab.diagnosis.vpa import check_recommendations
from trimtab.inputs import flags
from trimtab.inputs.command_faults import LoginError, RuntimeFailure, UsageError
from trimtab.inputs.live_cluster import Login
from trimtab.inputs.option import option
from trimtab.installation.names import InstallValues

CHECKS: tuple[Check, ...] = (
    *check_installation.INSTALLATION_CHECKS,
    *check_installation.PROCESS_CHECKS,
    *check_signatures.CHECKS,
    *check_webhook.CHECKS,
    *check_compiled_policies.CHECKS,
    *check_integrations.CHECKS,
    *check_recommendations.CHECKS,
    *check_metrics_api.CHECKS,
    *check_expander_map.CHECKS,
    *check_installation.CHECKS,
    *check_references.CHECKS,
    *check_autoscaling.CHECKS,
)


RECOMMENDER_CHECKS = frozenset(
    check.name
    for check in (
        *check_installation.INSTALLATION_CHECKS,
        *check_installation.PROCESS_CHECKS,
        *check_integrations.CHECKS,
        *check_recommendations.CHECKS,
    )
) - {"crd", "runtime-class", "autoscaler", "estafette"}
"""The checks that are made if only the recommender is installed. The others are about processes that are not there."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A finding, with the check that made it."""

    check: Check
    finding: DoctorFinding


def judge_cluster(cluster: ObservedCluster, *, without: Collection[str] = ()) -> tuple[CheckResult, ...]:
    """Runs every check that is not in `without`, and returns the findings. Each check returns at least one finding. If
    only the recommender is installed, runs `RECOMMENDER_CHECKS` alone."""
    return tuple(
        CheckResult(check, finding)
        for check in CHECKS
        if check.name not in without and (not is_recommender_only(cluster) or check.name in RECOMMENDER_CHECKS)
        for finding in _run_check(check, cluster)
    )


def _run_check(check: Check, cluster: ObservedCluster) -> tuple[DoctorFinding, ...]:
    """Returns the findings of the check. If there is none, the check had nothing to check, and is reported as
    unknown."""
    findings = tuple(check.judge(cluster)) or (
        report_unknown(
            "this cluster has no objects that this check applies to",
            f"Correct what other checks find first, or skip this check: --without {check.name}.",
        ),
    )
    return tuple(finding.with_namespace(cluster.namespace) for finding in findings)


def is_well(results: Collection[CheckResult], *, strict: bool = False) -> bool:
    """Returns whether no finding is an error or unknown; with `strict`, no warning either."""
    bad = {FindingSeverity.ERROR, FindingSeverity.UNKNOWN} | ({FindingSeverity.WARN} if strict else set())
    return not any(result.finding.severity in bad for result in results)


class DoctorFindingReport(ReportPart, frozen=True, kw_only=True):
    """One finding of the report."""

    check: str
    """The name of the check, in kebab-case; it never changes."""
    asks: str
    """What the check asks, as a question."""
    severity: str
    """ok, warn or error; unknown if the check could not be made, which never counts as ok."""
    reason: ReasonReport
    """What was found."""
    fix: str
    """A command or a sentence; empty if nothing needs a fix."""


class DoctorReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab doctor`. Published as deploy/schemas/doctor-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab doctor"
    api_version: str = API_VERSION
    kind: str = "DoctorReport"
    server: str
    """The version of the API server, such as v1.36.3."""
    namespace: str
    """Trimtab's namespace."""
    at: str
    """The time of the report by this machine's clock, as RFC 3339."""
    well: bool
    """Whether no finding is an error or unknown; with --strict, no warning either."""
    counts: dict[str, int]
    """The number of findings of each severity."""
    left_out: list[str]
    """The checks that --without skips."""
    findings: list[DoctorFindingReport]
    """The findings, in the order of the checks."""


def build_report(
    results: Iterable[CheckResult], *, server: str, namespace: str, at: str, without: Iterable[str], strict: bool
) -> DoctorReport:
    results, without = tuple(results), set(without)
    severities = [result.finding.severity for result in results]
    return DoctorReport(
        server=server,
        namespace=namespace,
        at=at,
        well=is_well(results, strict=strict),
        counts={severity.value: severities.count(severity) for severity in FindingSeverity},
        left_out=[check.name for check in CHECKS if check.name in without],
        findings=[_report_finding(result) for result in results],
    )


def _report_finding(result: CheckResult) -> DoctorFindingReport:
    finding = result.finding
    return DoctorFindingReport(
        check=result.check.name,
        asks=result.check.asks,
        severity=finding.severity.value,
        reason=report_reason(finding.reason),
        fix=finding.fix,
    )


_STYLES = {"ok": "green", "warn": "yellow", "error": "red", "unknown": "magenta"}


def _format_finding(finding: DoctorFindingReport) -> Text:
    if finding.severity == "ok":
        return Text(finding.reason.text)
    code = (f"[{finding.reason.code}]", "dim")
    return Text.assemble(f"{finding.reason.text} ", code, "\n", ("→", "bold"), f" {finding.fix}")


def _format_summary(report: DoctorReport) -> Text:
    counts = ", ".join(f"{count} {severity}" for severity, count in report.counts.items() if count)
    verdict = ("no problems found", "bold green") if report.well else ("problems found", "bold red")
    return Text.assemble(verdict, f": {counts}")


VIEW: ReportView[DoctorReport] = ReportView(
    title="trimtab doctor",
    before=lambda report: [f"{report.server}, namespace {report.namespace}"],
    sections=(
        Section(
            key="findings",
            rows=lambda report: report.findings,
            columns=(
                Column("", lambda row: Text(row.severity, style=_STYLES[row.severity])),
                Column("check", lambda row: row.check),
                Column("finding", _format_finding, min_width=30),
            ),
            csv_columns=(
                Column("severity", lambda row: row.severity),
                Column("check", lambda row: row.check),
                Column("finding", lambda row: row.reason.text),
                Column("reason", lambda row: row.reason.code),
                Column("fix", lambda row: row.fix),
            ),
            name=lambda row: f"check/{row.check}",
            frame=Frame.NONE,
        ),
    ),
    after=lambda report: [*(f"this check was skipped: {name}" for name in report.left_out), _format_summary(report)],
)


ABSENT_VIEW: ReportView[DoctorReport] = replace(
    VIEW,
    before=lambda report: [
        Text(f"Trimtab is not installed: {report.server}, namespace {report.namespace}", style="bold"),
        "Install it: trimtab install --apply, or the chart. Every check: trimtab doctor -o wide",
    ],
    sections=(),
    after=no_paragraphs,
)
"""Of a cluster without anything of Trimtab, one fact is worth reading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorOptions:
    """The options of `trimtab doctor`."""

    namespace: Annotated[str, flags.SYSTEM_NAMESPACE] = InstallValues().namespace
    ask_in: Annotated[
        str,
        option(
            "--ask-in",
            metavar="NAMESPACE",
            help="The namespace of the trial pods, none of which is stored. Choose a namespace whose pods "
            "policies change.",
        ),
    ] = "default"
    without: Annotated[
        tuple[str, ...],
        flags.WITHOUT.with_help(
            "Skip this check; the report lists the checks that are skipped. You can repeat the option."
        ),
    ] = ()
    strict: Annotated[bool, flags.STRICT] = False
    output: ReportOutput
    login: Login


@click.command("doctor")
@takes(DoctorOptions)
def verb(options: DoctorOptions) -> None:
    """Check the installation: certificates, caBundles, calls from the API server, permissions, Leases, autoscaler, …

    Each finding has its fix. Nothing is stored: the command creates two pods and a policy as a dry run. A check that is
    not possible is reported as unknown, with the missing permission. Exits with 1 if a finding is a problem or unknown,
    with 3 if no API server answers.
    """
    # Every name that no check has is a mistake.
    checks = [check.name for check in CHECKS]
    mistakes = [
        ConfigError(
            file="--without", expected=f"a check: {', '.join(checks)}", got=name, todo=suggest_name(name, checks)
        )
        for name in options.without
        if name not in checks
    ]
    if mistakes:
        raise UsageError(mistakes)
    cluster, server = _read_cluster(options)
    doctor_report = build_report(
        judge_cluster(cluster, without=options.without),
        server=server,
        namespace=options.namespace,
        at=cluster.local_time.strftime("%Y-%m-%dT%H:%M:%SZ"),
        without=options.without,
        strict=options.strict,
    )
    is_short = options.output.form == "table" and is_absent(cluster)
    write_report(options.output, doctor_report, ABSENT_VIEW if is_short else VIEW)
    if not doctor_report.well:
        sys.exit(EXIT_FOUND)


def _read_cluster(options: DoctorOptions) -> tuple[ObservedCluster, str]:
    """Returns the state of the cluster, and the address of its API server."""
    from trimtab.diagnosis.cluster_reader import read_cluster
    from trimtab.kube.client import connect_to_cluster
    from trimtab.kube.errors import KubeFault, NotConfigured

    try:
        client = connect_to_cluster(options.login.kubeconfig, options.login.context)
    except NotConfigured as error:
        raise LoginError(str(error)) from None
    try:
        return read_cluster(client, options.namespace, options.ask_in), client.server_url
    except KubeFault as error:
        raise RuntimeFailure(str(error)) from None
    finally:
        client.close()
