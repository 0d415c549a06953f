"""Text of others reaches a terminal in few ways, each of which replaces or escapes what a terminal would obey."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PRINTERS = {"trimtab/cli/print_text.py", "trimtab/cli/output.py", "trimtab/cluster/yaml_format.py"}
"""The modules that print and that write YAML."""
MODULES = sorted(
    file
    for package in ("trimtab", "webhook", "certs")
    for path in (ROOT / package).rglob("*.py")
    if (file := str(path.relative_to(ROOT))) not in PRINTERS
)
REFUSED_CALLS = {
    "print", "click.echo", "click.secho", "click.echo_via_pager", "sys.stdout.write", "sys.stderr.write",
    "sys.stdout.buffer.write", "sys.stderr.buffer.write", "os.write",
}  # fmt: skip
RAW_YAML = {"dump", "dump_all", "safe_dump", "safe_dump_all"}


def printing_mistakes(text: str) -> list[str]:
    """Returns how a module prints text, or writes YAML, without replacing or escaping control characters."""
    mistakes = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module == "click":
            mistakes += [alias.name for alias in node.names if f"click.{alias.name}" in REFUSED_CALLS]
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            is_raw_yaml = name.startswith("yaml.") and name.split(".")[-1] in RAW_YAML
            if name in REFUSED_CALLS or (is_raw_yaml and any(word.arg == "allow_unicode" for word in node.keywords)):
                mistakes.append(name)
    return mistakes


@pytest.mark.parametrize("file", MODULES)
def test_no_module_prints_text_but_by_a_printer(file: str) -> None:
    assert printing_mistakes((ROOT / file).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "code",
    [
        "click.echo(node.name, err=True)", "print(reason)", "from click import echo", "sys.stdout.write(text)",
        "click.secho(name, fg='red')", "yaml.safe_dump(report, allow_unicode=True)",
    ],
)  # fmt: skip
def test_a_module_that_prints_text_itself_is_noticed(code: str) -> None:
    assert len(printing_mistakes(code)) == 1
