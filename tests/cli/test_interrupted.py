"""A command that its user stops with Ctrl-C."""

import click
import pytest

from tests.cli.snapshots import trimtab
from trimtab.cli.main import VERBS


@click.command("lint")
def verb() -> None:
    """Is interrupted."""
    raise KeyboardInterrupt


def test_an_interrupted_command_has_an_exit_code_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(VERBS, "lint", (__name__, ""))
    result = trimtab("lint")
    assert (result.exit_code, result.output) == (130, "interrupted\n")
