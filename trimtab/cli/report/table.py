"""How the joined report is shown on a terminal: the answer and the sums. The page has everything."""

from collections.abc import Iterator

from rich.text import Text

from trimtab.cli.report.report import JoinedReport
from trimtab.cli.reporting.columns import Column, Frame, Paragraph, ReportView, Section


def _describe_source(report: JoinedReport) -> Iterator[Paragraph]:
    yield Text(f"{report.at[:16]} UTC, trimtab {report.trimtab_version}: {report.command}", style="dim")


VIEW: ReportView[JoinedReport] = ReportView(
    title="trimtab report",
    before=lambda report: [Text(report.headline, style="bold")],
    sections=(
        Section(
            key="sums",
            rows=lambda report: report.parts,
            columns=(
                Column("report", lambda part: part.title, min_width=20),
                Column("sum", lambda part: part.sum or "–", min_width=12),
                Column("answer", lambda part: part.answer, min_width=24, rank=1),
            ),
            name=lambda part: f"report/{part.file}",
            frame=Frame.ROWS,
        ),
    ),
    after=_describe_source,
    notes=lambda report: report.notes,
)
"""The sums of all reports, one row each."""
