"""Tests run commands through `trimtab` itself, as a user does, so that a command has all settings of its parents."""

import ast

from tests.architecture.source_words import SourceFile, files_of_tests


def invocations_of_other_commands(file: SourceFile) -> list[str]:
    """Returns the calls `invoke(COMMAND, …)` in which the command is not `cli`."""
    calls = [node for node in file.nodes if isinstance(node, ast.Call) and node.args]
    invoked = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "invoke"]
    return [f"{file.name}:{call.lineno}" for call in invoked if ast.unparse(call.args[0]) != "cli"]


def test_tests_invoke_the_whole_command() -> None:
    assert [place for file in files_of_tests() for place in invocations_of_other_commands(file)] == []
