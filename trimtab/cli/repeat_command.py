"""Writes down the command that makes a report again."""

import shlex
from collections.abc import Iterator

import click
from click.core import ParameterSource

LEFT_OUT = frozenset({"--output", "--output-file", "--no-headers"})
"""Options that change how a report is written, and not what it says."""
SECRET_OPTIONS = frozenset({"--header"})
"""Options whose values may be secrets: a report goes to other people."""


def repeat_command() -> str:
    """Returns the command that is running, with the options that its user gave; empty if none is running."""
    context = click.get_current_context(silent=True)
    return "" if context is None else shlex.join(["trimtab", *_list_words(context)])


def _list_words(context: click.Context) -> Iterator[str]:
    yield from context.command_path.split()[1:]
    for parameter in context.command.params:
        if context.get_parameter_source(parameter.name or "") is not ParameterSource.COMMANDLINE:
            continue
        values = context.params.get(parameter.name or "")
        if isinstance(parameter, click.Argument):
            yield from map(str, values if isinstance(values, tuple) else (values,))
            continue
        assert isinstance(parameter, click.Option)
        name = parameter.opts[-1]
        if name in LEFT_OUT:
            continue
        if parameter.is_flag:
            yield name if values or not parameter.secondary_opts else parameter.secondary_opts[-1]
            continue
        several = values if parameter.multiple and isinstance(values, tuple) else (values,)
        for value in several:
            yield name
            if name in SECRET_OPTIONS:
                yield "…"
            elif isinstance(value, tuple):
                yield from map(str, value)
            else:
                yield str(value)
