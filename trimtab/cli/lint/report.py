"""The report of `trimtab lint`, and its table."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from typing import Any, ClassVar

from msgspec import structs
from rich.text import Text

from trimtab.autoscaling.baseline import BaselineComparison, ChangeComparison
from trimtab.autoscaling.fixes import is_fixable
from trimtab.autoscaling.lint import LintResult
from trimtab.autoscaling.lint_snapshot import LintSnapshot
from trimtab.autoscaling.rule import LintSeverity, RuleFinding
from trimtab.autoscaling.rules import RULES_BY_CODE
from trimtab.cli.output import API_VERSION, ReportPart
from trimtab.cli.reporting.columns import Column, Frame, Paragraph, ReportView, Section, number_column
from trimtab.cli.reporting.draw import build_table
from trimtab.cli.reporting.notes import group_notes
from trimtab.cluster.control_characters import on_one_line
from trimtab.cluster.format_count import format_count
from trimtab.cluster.yaml_documents import format_path

RULE_PAGE = "docs/reference/lint.md"
_STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan"}


class LintFindingReport(ReportPart, frozen=True, kw_only=True):
    """One finding of a rule."""

    rule: str
    """The code of the rule, such as L01."""
    severity: str
    """The severity: error, warning or info."""
    kind: str
    """The kind of the object."""
    namespace: str
    """The namespace of the object; empty if it is cluster-scoped."""
    name: str
    """The name of the object."""
    field: str
    """The path of the field that has the problem; empty if it is no single field."""
    file: str
    """The file of the object; empty if the object was read from a cluster."""
    line: int | None
    """The line of the field in its document; null if the document is not known."""
    sentence: str
    """What is wrong, as a sentence with the values."""
    outcome: str
    """What will happen in the cluster if the finding is not fixed."""
    fix: str
    """What to do, in a sentence."""
    fixable: bool
    """Whether `--fix` writes the change that fixes the finding."""
    page: str
    """The page of the documentation about the rule, with its anchor."""

    def on_one_line(self) -> "LintFindingReport":
        """Returns the finding without line ends in its texts."""
        texts = {name: on_one_line(text) for name, text in structs.asdict(self).items() if isinstance(text, str)}
        return structs.replace(self, **texts)


class LintIgnoredReport(ReportPart, frozen=True, kw_only=True):
    """A finding that an annotation of the object excludes."""

    rule: str
    """The code of the rule that the annotation excludes."""
    object: str
    """The object, as a kind with namespace and name."""
    reason: str
    """The reason in the annotation; empty if it gives none."""


class LintComparisonReport(ReportPart, frozen=True, kw_only=True):
    """What applying the files changes in the cluster. New findings are in `findings` of the report."""

    gone: list[LintFindingReport]
    """The findings of the cluster that it no longer has after the files are applied."""
    same: int
    """The number of findings that the cluster has before and after; they are not among `findings`."""


class LintReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab lint`. Published as deploy/schemas/lint-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab lint -f FILE"
    api_version: str = API_VERSION
    kind: str = "LintReport"
    findings: list[LintFindingReport]
    """The findings; with files and a cluster, only those that are new."""
    ignored: list[LintIgnoredReport]
    """The findings that annotations of the objects exclude."""
    accepted: int
    """The number of findings that the baseline accepts; they are not among `findings`."""
    gone: list[str]
    """The entries of the baseline that have no finding any more."""
    comparison: LintComparisonReport | None
    """With files and a cluster: what applying the files changes. Otherwise null."""
    not_checked: list[str]
    """The rules that lacked data, each with what is missing, as text."""
    notes: list[str]
    """What the findings rest on, one sentence each."""
    objects: int
    """The number of objects that were checked."""
    rules: int
    """The number of rules that were checked."""
    counts: dict[str, int]
    """Severity → the number of findings."""


def build_lint_report(
    result: LintResult,
    compared: BaselineComparison,
    snapshot: LintSnapshot,
    notes: Iterable[str],
    comparison: ChangeComparison | None = None,
    files: Container[str] = (),
) -> LintReport:
    """Returns the report of the findings. Findings that the baseline accepts are only counted. `files` are the files
    that are compared with a cluster."""
    severities = [finding.severity.value for finding in compared.new]
    return LintReport(
        findings=[report_finding(finding, snapshot, files) for finding in compared.new],
        ignored=[
            LintIgnoredReport(rule=entry.finding.rule, object=str(entry.finding.subject), reason=entry.reason)
            for entry in result.ignored
        ],
        accepted=compared.accepted,
        gone=[f"{e.rule} {e.kind} {e.namespace}/{e.name} {e.field}".strip() for e in compared.gone],
        comparison=None
        if comparison is None
        else LintComparisonReport(
            gone=[report_finding(finding, snapshot) for finding in comparison.gone], same=comparison.same
        ),
        not_checked=[str(missing) for missing in result.not_checked],
        notes=list(notes),
        objects=len(snapshot.documents),
        rules=len(result.checked),
        counts={severity.value: severities.count(severity.value) for severity in LintSeverity},
    )


def report_finding(finding: RuleFinding, snapshot: LintSnapshot, files: Container[str] = ()) -> LintFindingReport:
    """Returns a finding with its file and line. An object of a cluster has a file only if that is one of `files`."""
    document = snapshot.documents.get(finding.subject)
    is_of_file = document is not None and (not snapshot.is_live or document.file in files)
    line = document.position_of(finding.path)[0] if document is not None else None
    return LintFindingReport(
        rule=finding.rule,
        severity=finding.severity.value,
        kind=finding.subject.kind,
        namespace=finding.subject.namespace,
        name=finding.subject.name,
        field=format_path(finding.path),
        file=document.file if document is not None and is_of_file else "",
        line=line,
        sentence=finding.sentence,
        outcome=finding.outcome,
        fix=finding.fix,
        fixable=not files and is_fixable(finding, snapshot),
        page=f"{RULE_PAGE}#{finding.rule.lower()}",
    )


MAX_LISTED = 6
"""The largest number of findings that a terminal lists; more are counted by rule."""
MAX_ERRORS = 3
MAX_RULES = 20


def _describe_findings(report: LintReport) -> Iterator[Paragraph]:
    """Yields every finding, what was ignored or not checked, and what the numbers are."""
    report = structs.replace(report, **_texts_on_one_line(report))
    yield from _list_findings(report.findings)
    for entry in report.ignored:
        why = entry.reason or "no reason given"
        yield Text.assemble(("ignored", "dim"), f" {entry.rule} {entry.object}: {why}")
    for text in group_notes((*report.not_checked, *report.notes)):
        yield Text(text, style="dim")
    for text in report.gone:
        yield Text(f"This finding of the baseline no longer exists: {text}", style="dim")
    if report.comparison is not None:
        for finding in report.comparison.gone:
            yield Text.assemble(("gone", "green"), " ", (finding.rule, "bold"), f" {finding.sentence}")
    yield _count_findings(report)


def _list_findings(findings: Iterable[LintFindingReport]) -> Iterator[Paragraph]:
    """Yields for each finding what is wrong, what will happen and what to do.

    If successive findings have the same outcome and the same fix, these two sentences are printed only once."""
    last_texts = ("", "", "")
    for finding in findings:
        style = _STYLES[finding.severity]
        place = f"{finding.file}:{finding.line}" if finding.file and finding.line else finding.file
        where = (f"  {place}" if place else "", "dim")
        yield Text.assemble((finding.severity, style), " ", (finding.rule, "bold"), f" {finding.sentence}", where)
        if last_texts != (finding.rule, finding.outcome, finding.fix):
            yield f"    {finding.outcome}"
            yield Text.assemble("    ", ("→", "bold"), f" {finding.fix}")
        last_texts = finding.rule, finding.outcome, finding.fix


def _count_by_rule(report: LintReport) -> Iterator[Paragraph]:
    """Yields the findings on one screen: the numbers, the first errors in full, and a line for each rule."""
    comparison = report.comparison
    if len(report.findings) + len(report.ignored) + len(comparison.gone if comparison else ()) <= MAX_LISTED:
        yield from _describe_findings(report)
        return
    report = structs.replace(report, **_texts_on_one_line(report))
    yield _count_findings(report)
    yield from _list_findings([one for one in report.findings if one.severity == LintSeverity.ERROR][:MAX_ERRORS])
    counts = Counter((finding.severity, finding.rule) for finding in report.findings)
    columns: tuple[Column[tuple[tuple[str, str], int]], ...] = (
        Column("severity", lambda row: Text(row[0][0], style=_STYLES[row[0][0]])),
        Column("rule", lambda row: row[0][1], style="bold"),
        number_column("findings", lambda row: row[1]),
        Column("finding", lambda row: RULES_BY_CODE[row[0][1]].title),
    )
    yield build_table(list(counts.items())[:MAX_RULES], columns, frame=Frame.NONE)
    more = f"… and {format_count(len(counts) - MAX_RULES, 'more rule')}. " if len(counts) > MAX_RULES else ""
    missing = (
        f"More rules need {format_count(len(report.not_checked), 'input that is', 'inputs that are')} missing. "
        if report.not_checked
        else ""
    )
    code = next(iter(counts))[1] if counts else "L35"
    yield Text(f"{more}{missing}All findings: -o wide; one rule: --only {code}, trimtab explain {code}", style="dim")


def _texts_on_one_line(report: LintReport) -> dict[str, Any]:
    """Returns the fields of the report whose texts are printed, each text on one line: names in them are of others, and
    a line end in a name would begin a finding of its own."""
    comparison = report.comparison
    return {
        "findings": [finding.on_one_line() for finding in report.findings],
        "ignored": [
            structs.replace(entry, object=on_one_line(entry.object), reason=on_one_line(entry.reason))
            for entry in report.ignored
        ],
        "not_checked": [on_one_line(text) for text in report.not_checked],
        "notes": [on_one_line(text) for text in report.notes],
        "gone": [on_one_line(text) for text in report.gone],
        "comparison": comparison
        and structs.replace(comparison, gone=[finding.on_one_line() for finding in comparison.gone]),
    }


def _count_findings(report: LintReport) -> Text:
    """Returns the last line of the table: what was checked, and how many findings there are."""
    counts = ", ".join(
        format_count(count, severity, "info" if severity == "info" else "")
        for severity, count in report.counts.items()
        if count
    )
    parts = [counts or "no findings"]
    if report.comparison is not None:
        parts = [
            f"{counts or 'no findings'} new",
            f"{len(report.comparison.gone):,} gone",
            f"{report.comparison.same:,} as before",
        ]
    if report.ignored:
        parts.append(f"{format_count(len(report.ignored), 'finding')} ignored")
    if report.accepted:
        parts.append(f"{format_count(report.accepted, 'finding')} accepted by the baseline")
    checked = f"{format_count(report.objects, 'object')}, {format_count(report.rules, 'rule')}"
    return Text.assemble(f"{checked}: ", (parts[0], "bold"), *(f", {part}" for part in parts[1:]))


VIEW: ReportView[LintReport] = ReportView(
    title="trimtab lint",
    sections=(
        Section(
            key="findings",
            rows=lambda report: report.findings,
            columns=(
                Column("severity", lambda finding: finding.severity),
                Column("rule", lambda finding: finding.rule),
                Column("kind", lambda finding: finding.kind),
                Column("namespace", lambda finding: finding.namespace),
                Column("name", lambda finding: finding.name),
                Column("field", lambda finding: finding.field),
                Column("file", lambda finding: finding.file),
                number_column("line", lambda finding: finding.line),
                Column("finding", lambda finding: finding.sentence),
                Column("outcome", lambda finding: finding.outcome),
                Column("fix", lambda finding: finding.fix),
            ),
            name=lambda finding: f"{finding.kind}/{finding.name}",
            lines=_describe_findings,
            screen_lines=_count_by_rule,
        ),
    ),
)
