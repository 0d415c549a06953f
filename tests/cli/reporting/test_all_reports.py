"""Every report with rows has every format, and only one module makes tables."""

import ast

import click
import pytest

from tests.architecture.source_words import source_files
from tests.golden.commands import iter_commands
from trimtab.cli.reporting.emit import FORMS

DRAWS = "trimtab/cli/reporting/draw.py"


def makes_table(node: ast.AST) -> bool:
    """Whether a node creates a table of rich, or imports its class."""
    if isinstance(node, ast.ImportFrom):
        return node.module == "rich.table" and any(name.name == "Table" for name in node.names)
    return isinstance(node, ast.Call) and ast.unparse(node.func) in ("Table", "Table.grid")


READERS = {"trimtab/cli/plain_columns.py", "trimtab/cli/page/console_page.py"}
"""The modules that read tables, to write them in another form."""


def test_only_one_module_makes_tables() -> None:
    makers = {file.name for file in source_files() if any(map(makes_table, file.nodes))}
    assert makers - READERS == {DRAWS}
    readers = [file for file in source_files() if file.name in READERS]
    assert not any(isinstance(node, ast.Call) and makes_table(node) for file in readers for node in file.nodes)


def forms_of(command: click.Command) -> list[str]:
    """The formats of a command."""
    choices = [
        option.type.choices
        for option in command.params
        if isinstance(option.type, click.Choice) and "-o" in option.opts
    ]
    return [str(choice) for each in choices for choice in each]


REPORTS = {words: command for words, command in iter_commands() if "table" in forms_of(command)}


@pytest.mark.parametrize("words", REPORTS)
def test_every_report_has_every_format(words: str) -> None:
    assert set(FORMS) <= set(forms_of(REPORTS[words]))


def test_there_are_many_reports() -> None:
    assert len(REPORTS) > 30
