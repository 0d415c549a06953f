"""Names and CSV follow from the same columns as the table."""

from dataclasses import replace

import msgspec
import pytest

from trimtab.cli.output import ReportPart
from trimtab.cli.reporting.columns import Column, ReportView, Section
from trimtab.cli.reporting.emit import render_csv, render_report
from trimtab.inputs.command_faults import UsageError


class NodeRow(ReportPart, frozen=True, kw_only=True):
    name: str
    cost: float


class NodesReport(ReportPart, frozen=True, kw_only=True):
    nodes: list[NodeRow]


NAME: Column[NodeRow] = Column("node", lambda row: row.name)
COST: Column[NodeRow] = Column("cost", lambda row: f"${row.cost:,.2f}", value=lambda row: row.cost)
SECTION: Section[NodesReport, NodeRow] = Section(
    key="nodes", rows=lambda report: report.nodes, columns=(NAME, COST), name=lambda row: f"node/{row.name}"
)
VIEW: ReportView[NodesReport] = ReportView(title="nodes", sections=(SECTION,))
COSTS: Section[NodesReport, NodeRow] = Section(key="costs", rows=lambda report: report.nodes, columns=(COST,))
BOTH: ReportView[NodesReport] = ReportView(title="nodes", sections=(SECTION, COSTS))
REPORT = NodesReport(nodes=[NodeRow(name="n1", cost=1234.5), NodeRow(name="=n2", cost=0.5)])


def rendered(form: str = "table", view: ReportView[NodesReport] = VIEW) -> str:
    return render_report(form, REPORT, view)


def test_a_table_in_a_pipe_has_plain_columns() -> None:
    assert rendered().splitlines() == ["NODE   COST", "n1     $1,234.50", "=n2    $0.50"]


def test_no_headers_are_printed_if_none_are_wanted() -> None:
    assert render_csv(REPORT, VIEW, has_headers=False) == '"n1","1234.5"\n"\'=n2","0.5"\n'


def test_csv_has_numbers_and_no_formulas() -> None:
    assert rendered("csv") == '"node","cost"\n"n1","1234.5"\n"\'=n2","0.5"\n'


def test_several_tables_are_one_in_csv() -> None:
    assert rendered("csv", BOTH).splitlines() == [
        '"table","node","cost"',
        '"nodes","n1","1234.5"',
        '"nodes","\'=n2","0.5"',
        '"costs","","1234.5"',
        '"costs","","0.5"',
    ]


def test_names_are_one_per_line() -> None:
    assert rendered("name") == "node/n1\nnode/=n2\n"


def test_names_are_those_of_the_sections_that_have_names() -> None:
    assert rendered("name", BOTH) == "node/n1\nnode/=n2\n"


def test_a_report_whose_rows_are_no_objects_has_no_names() -> None:
    with pytest.raises(UsageError, match="no objects that have a name"):
        rendered("name", replace(VIEW, sections=(COSTS,)))


def test_only_some_rows_may_be_named() -> None:
    section = replace(SECTION, named=lambda report: report.nodes[:1])
    assert rendered("name", replace(VIEW, sections=(section,))) == "node/n1\n"


def test_csv_may_have_other_columns_than_the_table() -> None:
    section = replace(SECTION, csv_columns=(COST,))
    assert rendered("csv", replace(VIEW, sections=(section,))) == '"cost"\n"1234.5"\n"0.5"\n'


def test_a_dash_is_an_empty_cell_in_csv() -> None:
    dash: Column[NodeRow] = Column("why", lambda row: "–")
    section = replace(SECTION, columns=(dash,))
    assert rendered("csv", replace(VIEW, sections=(section,))) == '"why"\n""\n""\n'


def test_a_format_of_another_tool_is_the_text_of_the_view() -> None:
    view = replace(VIEW, texts={"html": lambda report: f"<p>{len(report.nodes)}</p>"})
    assert rendered("html", view) == "<p>2</p>"


def test_sections_may_follow_from_the_report() -> None:
    view = replace(VIEW, sections=lambda report: (SECTION,) * len(report.nodes))
    assert rendered("csv", view).count("n1") == 2


def test_json_is_the_report_itself() -> None:
    assert msgspec.json.decode(rendered("json"), type=NodesReport) == REPORT
