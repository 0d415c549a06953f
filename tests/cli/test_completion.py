"""Shells complete commands, options and names, for `trimtab` and for `kubectl trimtab`."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.reasons import has_facts
from trimtab.cli.completion import SHELLS, completion_script, find_completions, format_for_cobra
from trimtab.cli.main import cli


def values(*words: str) -> list[str]:
    *before, incomplete = words
    return [item.value for item in find_completions(before, incomplete)]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("com",), ["compactor", "completion"]),
        (("compactor", "hi"), ["history"]),
        (("compactor", "history", "--si"), ["--since"]),
        (("admit", "--overhead", ""), ["server", "webhook"]),
        (("policies", "list", "-o", "w"), ["wide"]),
        (("policies", "explain", "no-cpu"), ["no-cpu-limits"]),
        (("explain", "webhook-not-reg"), ["webhook-not-registered"]),
        (("explain", "TRIMTAB_NAMES"), ["TRIMTAB_NAMESPACE"]),
    ],
)
def test_commands_options_and_names_are_completed(words: tuple[str, ...], expected: list[str]) -> None:
    assert values(*words) == expected


def test_a_cluster_that_does_not_answer_completes_nothing(tmp_path: Path) -> None:
    missing = str(tmp_path / "nosuch")
    assert values("compactor", "history", "--kubeconfig", missing, "--pool", "") == []
    assert values("admit", "--kubeconfig", missing, "-n", "") == []


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_has_a_script_that_it_accepts(shell: str) -> None:
    script = CliRunner().invoke(cli, ["completion", shell]).stdout
    assert script == completion_script(shell)
    assert "_TRIMTAB_COMPLETE" in script
    program = shutil.which(shell)
    if program is not None:
        subprocess.run([program, "-n"], input=script, text=True, check=True)


def test_bash_completes_with_the_script() -> None:
    """The words that bash would put into COMP_WORDS, answered by the command itself."""
    environ = {"_TRIMTAB_COMPLETE": "bash_complete", "COMP_WORDS": "trimtab compactor hi", "COMP_CWORD": "2"}
    program = f"import sys; sys.path[:] = {sys.path!r}; sys.argv = ['trimtab']; import trimtab.cli; trimtab.cli.main()"
    process = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=True)
    assert process.stdout == "plain,history\n"


def test_kubectl_gets_what_cobra_would_print() -> None:
    printed = format_for_cobra(find_completions(["compactor"], "h"))
    assert has_facts(printed, "history", "the last decisions")
    assert printed.endswith("\n:4\n")
    assert format_for_cobra(find_completions(["compactor"], "nosuch")) == ":4\n"
    assert format_for_cobra(find_completions(["admit", "--output-file"], "x")) == ":0\n"
