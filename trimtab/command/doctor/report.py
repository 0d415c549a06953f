"""The report of `trimtab doctor`."""

from collections.abc import Iterable

from trimtab.command.doctor.finding import Severity
from trimtab.command.doctor.judge import CHECKS, Told, is_well
from trimtab.command.output import API_VERSION
from trimtab.command.why import Part, Why, why


class FindingReport(Part, frozen=True, kw_only=True):
    check: str
    """What was looked at: stable, kebab-case."""
    asks: str
    severity: str
    """ok, warn, error; unknown where it could not be looked at, which is never taken for ok."""
    reason: Why
    fix: str
    """A command or a sentence; empty where nothing needs mending."""


class DoctorReport(Part, frozen=True, kw_only=True):
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
    findings: list[FindingReport]


def report(told: Iterable[Told], *, server: str, namespace: str, at: str, without: Iterable[str], strict: bool) -> (
    DoctorReport
):  # fmt: skip
    told, without = tuple(told), set(without)
    severities = [each.finding.severity for each in told]
    return DoctorReport(
        server=server,
        namespace=namespace,
        at=at,
        well=is_well(told, strict=strict),
        counts={severity.value: severities.count(severity) for severity in Severity},
        left_out=[check.name for check in CHECKS if check.name in without],
        findings=[_finding(each) for each in told],
    )


def _finding(told: Told) -> FindingReport:
    found = told.finding
    return FindingReport(
        check=told.check.name, asks=told.check.asks, severity=found.severity.value, reason=why(found.reason),
        fix=found.fix,
    )  # fmt: skip
