"""Prints lines and documents that may contain text of others; no command calls `click.echo` itself.

It imports no console, so that commands start quickly. Reports are printed by a console of `printable_text`.
"""

import sys

import click

from trimtab.cluster.control_characters import on_one_line, replace_control_characters


def print_text(text: object, *, err: bool = False, newline: bool = True) -> None:
    """Print a text of any origin on standard output, or on standard error. This is the way in which commands print
    lines: control characters are replaced."""
    click.echo(replace_control_characters(str(text)), err=err, nl=newline)


def print_progress(what: str) -> None:
    """Show what is being read on standard error until the next text replaces it; nothing if it is no terminal."""
    if not sys.stderr.isatty():
        return
    line = on_one_line(what)
    click.echo(f"\r\x1b[Kreading {line} …\r\x1b[K", err=True, nl=False)


def print_document(text: str) -> None:
    """Print data on standard output as it is; on a terminal, control characters are replaced."""
    sys.stdout.write(replace_control_characters(text) if sys.stdout.isatty() else text)
