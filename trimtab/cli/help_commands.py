"""`trimtab version` and `trimtab help COMMAND…`: the commands that people try first."""

import click

from trimtab.cli.main import cli
from trimtab.cli.print_text import print_text


@click.command("version")
def print_version() -> None:
    """Print the version."""
    from importlib.metadata import version

    print_text(f"trimtab {version('trimtab')}")


@click.command("help")
@click.argument("names", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def print_help(context: click.Context, names: tuple[str, ...]) -> None:
    """Print the help of a command; without a name, the help of `trimtab`."""
    command: click.Command = cli
    parent = context.find_root()
    for name in names:
        if not isinstance(command, click.Group):
            raise click.UsageError(f"{parent.command_path!r} has no command {name!r}")
        _, inner, _ = command.resolve_command(parent, [name])
        assert inner is not None
        command, parent = inner, click.Context(inner, info_name=name, parent=parent)
    print_text(command.get_help(parent))
