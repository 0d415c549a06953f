"""Each report is found, and its schema published, by what the report itself says."""

from docs.pages.schemas import kind_of, list_reports
from tests.architecture.source_words import ROOT
from trimtab.cli.output import ReportPart


def test_each_document_says_by_which_command_it_is_printed() -> None:
    reports = set(list_reports().values())
    assert [one.__name__ for one in ReportPart.__subclasses__() if kind_of(one) and one not in reports] == []


def test_each_published_schema_is_one_of_a_report() -> None:
    published = {file.name.removesuffix(".schema.json") for file in (ROOT / "deploy" / "schemas").iterdir()}
    assert published == {"podpolicy", *list_reports()}
