"""What users read of the program: its messages, reasons and help, taken from the syntax trees of the source."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from tests.architecture.source_words import USER_TEXT, SourceFile, source_files

_TWO_WORDS = re.compile(r"[A-Za-z]\S* +\S*[A-Za-z]")
_CODE = re.compile(r"==|&&|\|\||\{\{|<\w+ |group_left|\(\?|\$\w|\{\}\{\}|sum by|max by|rate\(")
"""CEL, PromQL, templates, SVG, regular expressions."""


@dataclass(frozen=True)
class UserText:
    """One text, with `{}` for each value that is filled in."""

    place: str
    """`file:line`."""
    text: str


@cache
def user_texts() -> tuple[UserText, ...]:
    """Every phrase in the source that is not a docstring or code, and the docstrings of commands, which are help."""
    return tuple(text for file in source_files(USER_TEXT) for text in _texts(file))


def _texts(file: SourceFile) -> Iterator[UserText]:
    name, docstrings = file.name, {id(node.value) for node in file.nodes if isinstance(node, ast.Expr)}
    for line, text in [*_phrases(file.tree, docstrings), *_helps(file)]:
        if _TWO_WORDS.search(text) and not _CODE.search(text):
            yield UserText(f"{name}:{line}", " ".join(text.split()))
    for line, event in _log_events(file):
        yield UserText(f"{name}:{line}", event.replace("-", " ").replace(".", ": "))


def _phrases(node: ast.AST, docstrings: set[int]) -> Iterator[tuple[int, str]]:
    text = _folded(node)
    if text is None:
        for child in ast.iter_child_nodes(node):
            yield from _phrases(child, docstrings)
    elif id(node) not in docstrings:
        assert isinstance(node, ast.expr)
        yield node.lineno, text
        for value in ast.walk(node):
            if isinstance(value, ast.FormattedValue):
                yield from _phrases(value.value, docstrings)


def _folded(node: ast.AST | None) -> str | None:
    """The text of a literal, an f-string, or a sum of them; None for anything else."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_folded(value) or "{}" for value in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            before, after = _folded(left), _folded(right)
            return None if before is after is None else f"{before or '{}'}{after or '{}'}"
    return None


def _helps(file: SourceFile) -> Iterator[tuple[int, str]]:
    for node in file.nodes:
        if isinstance(node, ast.FunctionDef) and any("command(" in ast.unparse(d) for d in node.decorator_list):
            yield node.lineno, ast.get_docstring(node) or ""


def _log_events(file: SourceFile) -> Iterator[tuple[int, str]]:
    """The names of log lines, which are the first argument of a logger's method."""
    for node in file.nodes:
        match node:
            case ast.Call(
                func=ast.Attribute(attr="debug" | "info" | "warning" | "error" | "exception"),
                args=[ast.Constant(value=str() as event), *_],
            ):
                yield node.lineno, event
