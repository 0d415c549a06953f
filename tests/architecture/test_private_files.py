"""Commands write files with data of a cluster through one function."""

import ast

from tests.architecture.source_words import source_files

COMMANDS = ("trimtab/cli/", "trimtab/inputs/", "trimtab/diagnosis/", "trimtab/installation/")
OTHERS = {
    "trimtab/inputs/private_file.py": "the function itself",
    "trimtab/cli/policies/example_cases.py": "cases of policies, which are written by their author",
    "trimtab/cli/demo/command.py": "the demonstration's own files",
}
"""Which other files may write, and what."""
WRITING = {"write_text", "write_bytes"}


def writes_a_file(call: ast.Call) -> bool:
    """Whether the call is `path.write_text(…)`, `os.open(…)`, or opens a file in a mode that writes."""
    function = call.func
    if not isinstance(function, ast.Attribute | ast.Name):
        return False
    name = function.attr if isinstance(function, ast.Attribute) else function.id
    if name in WRITING and isinstance(function, ast.Attribute):
        # `output.write_text(text, file)` is ours; a path's method has one positional argument.
        return len(call.args) == 1
    modes = [
        one.value for one in [*call.args, *(word.value for word in call.keywords)] if isinstance(one, ast.Constant)
    ]
    return name == "open" and any(isinstance(mode, str) and mode in ("w", "a", "x", "w+", "wb", "ab") for mode in modes)


def test_no_command_writes_a_file_in_another_way() -> None:
    texts = {
        file.name
        for file in source_files()
        if file.name.startswith(COMMANDS)
        for call in file.nodes
        if isinstance(call, ast.Call) and writes_a_file(call)
    }
    assert texts <= OTHERS.keys()
