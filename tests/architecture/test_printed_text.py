"""Text of others reaches a terminal in few ways, each of which replaces or escapes what a terminal would obey."""

import ast
from collections.abc import Iterable

import pytest

from tests.architecture.source_words import source_files

PRINTERS = {"trimtab/cli/print_text.py", "trimtab/cli/output.py", "trimtab/cluster/yaml_format.py"}
"""The modules that print and that write YAML."""
REFUSED_CALLS = {
    "print",
    "click.echo",
    "click.secho",
    "click.echo_via_pager",
    "sys.stdout.write",
    "sys.stderr.write",
    "sys.stdout.buffer.write",
    "sys.stderr.buffer.write",
    "os.write",
}
RAW_YAML = {"dump", "dump_all", "safe_dump", "safe_dump_all"}


def printing_mistakes(nodes: Iterable[ast.AST]) -> list[str]:
    """Returns how a module prints text, or writes YAML, without replacing or escaping control characters."""
    mistakes = []
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module == "click":
            mistakes += [alias.name for alias in node.names if f"click.{alias.name}" in REFUSED_CALLS]
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            is_raw_yaml = name.startswith("yaml.") and name.split(".")[-1] in RAW_YAML
            if name in REFUSED_CALLS or (is_raw_yaml and any(word.arg == "allow_unicode" for word in node.keywords)):
                mistakes.append(name)
    return mistakes


def test_no_module_prints_text_but_by_a_printer() -> None:
    modules = [file for file in source_files() if file.name not in PRINTERS]
    assert {file.name: mistakes for file in modules if (mistakes := printing_mistakes(file.nodes))} == {}


@pytest.mark.parametrize(
    "code",
    [
        "click.echo(node.name, err=True)",
        "print(reason)",
        "from click import echo",
        "sys.stdout.write(text)",
        "click.secho(name, fg='red')",
        "yaml.safe_dump(report, allow_unicode=True)",
    ],
)
def test_a_module_that_prints_text_itself_is_noticed(code: str) -> None:
    assert len(printing_mistakes(ast.walk(ast.parse(code)))) == 1
