"""The options of all verbs, as `trimtab explain --autoscaler-flags` explains them."""

from collections.abc import Iterator

import click

from trimtab.cli.explain.catalog import CatalogEntry

OPTION = "option"
_PAGE = "docs/reference/commands.md"


def find_options(name: str) -> list[CatalogEntry]:
    """Returns an entry for each meaning that an option has in the verbs of `trimtab`; none if no verb has it.

    Verbs for which it means the same share an entry. This imports every verb, which takes a moment."""
    from trimtab.cli.main import cli

    verbs_by_meaning: dict[str, list[str]] = {}
    for verb, option in _iterate_options(cli, "trimtab"):
        if name in (*option.opts, *option.secondary_opts):
            verbs_by_meaning.setdefault(option.help or "", []).append(verb)
    return [
        CatalogEntry(kind=OPTION, name=name, means=means, value=", ".join(verbs), page=_PAGE)
        for means, verbs in verbs_by_meaning.items()
    ]


def _iterate_options(command: click.Command, path: str) -> Iterator[tuple[str, click.Option]]:
    """Yields (verb, option) for a command and all commands below it."""
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            yield path, parameter
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None:
                yield from _iterate_options(child, f"{path} {name}")
