"""The words and grain of the product's source and of its tests, measured from their syntax trees."""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("trimtab", "webhook", "certs")
SHIPPED = (*PACKAGES, "policies")
"""What the wheel holds."""
USER_TEXT = (*PACKAGES, "deploy", "docs")
"""Folders with texts for users: `deploy` and `docs` write the chart, the dashboards and the reference pages."""

PARTICIPLES = frozenset(
    {
        "found",
        "told",
        "made",
        "held",
        "seen",
        "kept",
        "known",
        "taken",
        "given",
        "asked",
        "said",
        "standing",
        "again",
        "wanted",
        "listed",
    }
)
"""Words that say nothing of what a variable holds."""

TOOL_COMMENT = re.compile(r"#\s*(type:|noqa|fmt:|pragma)")
"""Comments that speak to a tool."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class SourceFile:
    """One file of the product or of its tests."""

    path: Path
    text: str

    @property
    def name(self) -> str:
        """The path from the project's root."""
        return str(self.path.relative_to(ROOT))

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the tree, which most rules walk through."""
        return tuple(ast.walk(self.tree))

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())

    def comments(self) -> int:
        """Comment lines that are meant for a reader."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return sum(token.type == tokenize.COMMENT and not TOOL_COMMENT.match(token.string) for token in tokens)

    def functions(self) -> Iterator[Function]:
        return (node for node in self.nodes if isinstance(node, Function))

    def classes(self) -> Iterator[ast.ClassDef]:
        """Public classes at the top of the file."""
        return (node for node in self.tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_"))

    def variables(self) -> Iterator[tuple[int, str]]:
        """(line, name) of every variable that is assigned, and every parameter."""
        for node in self.nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.lineno, node.id
            elif isinstance(node, ast.arg):
                yield node.lineno, node.arg


def source_files(packages: tuple[str, ...] = PACKAGES) -> tuple[SourceFile, ...]:
    """Every Python file of the product, or of other folders."""
    return tuple(file for package in packages for file in _files_in(package))


def files_of_tests() -> tuple[SourceFile, ...]:
    """Every Python file of the tests."""
    return _files_in("tests")


@cache
def _files_in(folder: str) -> tuple[SourceFile, ...]:
    paths = sorted((ROOT / folder).rglob("*.py"))
    return tuple(SourceFile(path, path.read_text(encoding="utf-8")) for path in paths)


def participle_variables(files: Iterable[SourceFile]) -> list[str]:
    """`file:line name` of each variable that is a bare participle."""
    return [
        f"{file.name}:{line} {name}"
        for file in files
        for line, name in file.variables()
        if name.strip("_") in PARTICIPLES
    ]


def one_word_functions() -> tuple[list[str], int]:
    """Names of public functions and methods of one word, and how many public functions there are."""
    names = [
        f"{file.name}:{function.lineno} {function.name}"
        for file in source_files()
        for function in file.functions()
        if not function.name.startswith("_")
    ]
    return [name for name in names if "_" not in name.split()[-1]], len(names)


def messages(file: SourceFile) -> Iterator[tuple[int, str]]:
    """(line, text) of the file's string literals that are no docstrings: nearly all of them are read by users."""
    docstrings = {id(node.value) for node in file.nodes if isinstance(node, ast.Expr)}
    for node in file.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value


def compared_sentences(file: SourceFile) -> Iterator[int]:
    """The line of each assertion of the file that holds a text of five words or more."""
    for node in file.nodes:
        if isinstance(node, ast.Assert) and any(
            isinstance(each, ast.Constant) and isinstance(each.value, str) and len(each.value.split()) >= 5
            for each in ast.walk(node.test)
        ):
            yield node.lineno
