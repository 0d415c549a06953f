"""Markup is read in one place, and only from literals, so that a text of others is never markup."""

import ast
from pathlib import Path

import pytest

COMMANDS = Path(__file__).parents[2] / "trimtab" / "cli"
READER = COMMANDS / "printable_text.py"
MODULES = sorted(path for path in COMMANDS.rglob("*.py") if path != READER)


def markup_mistakes(module: ast.Module) -> list[str]:
    """What the module does with markup although only `printable_text.py` may."""
    mistakes = []
    for part in ast.walk(module):
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


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(COMMANDS)))
def test_no_command_reads_markup_but_from_its_own_literals(path: Path) -> None:
    assert markup_mistakes(ast.parse(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "code", ["styled(f'[b]{name}[/]')", "Text.from_markup(name)", "Console()", "from rich.markup import escape"]
)
def test_a_module_that_reads_markup_is_noticed(code: str) -> None:
    assert len(markup_mistakes(ast.parse(code))) == 1
