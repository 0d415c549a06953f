"""All commands of `trimtab`, in the order of its help."""

from collections.abc import Iterator
from typing import Any

import click

from trimtab.cli.main import cli


def iterate_contexts(**settings: Any) -> Iterator[click.Context]:
    """Yields a context for `trimtab` and for each command below it, parents first; `settings` are those of
    `click.Context`. A command's words are `context.command_path`. This imports every verb, which takes a moment."""
    yield from _iterate_below(click.Context(cli, info_name="trimtab", **{**cli.context_settings, **settings}))


def _iterate_below(context: click.Context) -> Iterator[click.Context]:
    yield context
    group = context.command
    if isinstance(group, click.Group):
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            yield from _iterate_below(click.Context(command, info_name=name, parent=context))
