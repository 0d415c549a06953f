"""A docstring names the parameters that its function has."""

import ast
import re

from tests.architecture.source_words import Function, source_files

_EXPLAINED = re.compile(r"(?:^|[.:]\s+|\n\n)`([a-z_]+)`(?::| (?:is|are|says|names) )")
"""A sentence that begins with a name and explains it."""


def unknown_names(function: Function) -> list[str]:
    """The names that the docstring explains and that are neither parameters nor used in the body."""
    arguments, docstring = function.args, ast.get_docstring(function) or ""
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
    body = " ".join(ast.unparse(statement) for statement in function.body[1:])
    known = {argument.arg for argument in every if argument is not None} | {*re.findall(r"\w+", body)}
    return [name for name in _EXPLAINED.findall(docstring) if name not in known]


def test_a_docstring_explains_parameters_that_exist() -> None:
    names = {
        f"{file.name}:{function.lineno} {function.name}": unknown_names(function)
        for file in source_files()
        for function in file.functions()
    }
    assert {place: unknown for place, unknown in names.items() if unknown} == {}, "name the parameters as they are now"


def test_a_former_name_is_seen() -> None:
    docstring = "Returns it.\n\n`memory`: the state. `now` is a time. `terms` are limits."
    text = f"def f(state, now):\n    {docstring!r}\n    return state"
    [function] = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    assert unknown_names(function) == ["memory", "terms"]
