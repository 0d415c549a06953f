"""Markup is read in one place, and only from literals, so that a text of others is never markup."""

import ast
from collections.abc import Iterable

import pytest

from tests.architecture.source_words import source_files

COMMANDS = "trimtab/cli/"
READER = f"{COMMANDS}printable_text.py"


def markup_mistakes(nodes: Iterable[ast.AST]) -> list[str]:
    """What the module does with markup although only `printable_text.py` may."""
    mistakes = []
    for part in nodes:
        if isinstance(part, ast.ImportFrom) and part.module == "rich.markup":
            mistakes.append("imports rich.markup")
        if not isinstance(part, ast.Call):
            continue
        name = ast.unparse(part.func)
        if name.endswith("from_markup"):
            mistakes.append("reads markup")
        if name == "styled" and not all(isinstance(argument, ast.Constant) for argument in part.args):
            mistakes.append("styles a text that is no literal")
        if name == "Console":
            mistakes.append("makes a console that reads markup")
        if name in ("Panel", "Panel.fit") and any(
            word.arg in ("title", "subtitle") and isinstance(word.value, ast.Constant | ast.JoinedStr)
            for word in part.keywords
        ):
            mistakes.append("gives a panel a title with markup")
    return mistakes


def test_no_command_reads_markup_but_from_its_own_literals() -> None:
    modules = [file for file in source_files() if file.name.startswith(COMMANDS) and file.name != READER]
    assert len(modules) > 100
    assert {file.name: mistakes for file in modules if (mistakes := markup_mistakes(file.nodes))} == {}


@pytest.mark.parametrize(
    "code", ["styled(f'[b]{name}[/]')", "Text.from_markup(name)", "Console()", "from rich.markup import escape"]
)
def test_a_module_that_reads_markup_is_noticed(code: str) -> None:
    assert len(markup_mistakes(ast.walk(ast.parse(code)))) == 1
