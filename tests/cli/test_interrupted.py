"""A command that its user stops with Ctrl-C."""

import click
from click.testing import CliRunner

from trimtab.cli.main import Verbs


class Interrupted(Verbs):
    """The group of verbs, of which each is interrupted."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        @click.command(cmd_name)
        def stop() -> None:
            raise KeyboardInterrupt

        return stop


def test_an_interrupted_command_has_an_exit_code_of_its_own() -> None:
    result = CliRunner().invoke(Interrupted("trimtab"), ["lint"])
    assert (result.exit_code, result.output) == (130, "interrupted\n")
