"""docs/reference/commands.md: every command, with a sentence about it and about each of its options.

The help of a command has the whole texts. An option of several commands is described once, in the words of its
declaration.
"""

import re
from collections import Counter
from collections.abc import Iterable

import click

from docs.pages.sentences import first_sentence
from trimtab.cli.command_tree import iterate_contexts
from trimtab.inputs import flags
from trimtab.inputs.option import Option

_HEAD = """\
# Commands

Exit codes: 0 done, 1 a problem was found, 2 invalid command or input, 3 Trimtab or the cluster failed, 130 Ctrl-C.

This page has one sentence about each command and each option. After a command, `-h` prints its whole help with the
defaults; `trimtab explain` also explains options.

## Options of several commands

The last line of a command names those that it has. There, *cluster* means `--cluster`, `--kubeconfig` and `--context`;
*output* means `--output`, `--no-headers` and `--output-file`. In a command, an option can have a narrower meaning,
which its help says.
"""
BUNDLES = {
    "*cluster*": ("--cluster", "--kubeconfig", "--context"),
    "*output*": ("--output", "--no-headers", "--output-file"),
}
"""A word for options that most commands have together."""
_OWN = {"--apply", "--yes", "--undo", "--force", "--rows", "--write", "--details", "--strict", "--explain", "--once"}
"""Options that do something else in each command, which therefore describes them."""
_MIN_COMMANDS = 3
"""An option that at least this many commands have is described once, and also one that means the same in two."""
_HELP = "--help"
_DEFAULT = re.compile(r"\s*\[(?:default: )?[^\[\]]*\]$")
_NUMBER = re.compile(r" (?:INTEGER|FLOAT)(?: RANGE)?")


def page() -> str:
    """Returns the page's text."""
    contexts = [context for context in iterate_contexts(max_content_width=78) if context.parent is not None]
    records = [record for context in contexts for record in _records(context)]
    shared = _find_shared(records)
    lines = [_HEAD, *_describe_shared(shared, records)]
    for context in contexts:
        lines += _describe_command(context, shared)
    return "\n".join(lines)


def _records(context: click.Context) -> list[tuple[str, tuple[str, str]]]:
    """Returns (long name, (its spelling, its help)) of each option of a command, but for --help."""
    return [
        (max(option.opts, key=len), record)
        for option in context.command.get_params(context)
        if isinstance(option, click.Option)
        and _HELP not in option.opts
        and (record := option.get_help_record(context)) is not None
    ]


def _find_shared(records: Iterable[tuple[str, tuple[str, str]]]) -> set[str]:
    """Returns the long names of the options that are described once."""
    meanings: dict[str, list[str]] = {}
    for name, (_, text) in records:
        meanings.setdefault(name, []).append(text)
    return {
        name
        for name, texts in meanings.items()
        if name not in _OWN and (len(texts) >= _MIN_COMMANDS or len(texts) > len(set(texts)))
    }


def _describe_shared(shared: Iterable[str], records: Iterable[tuple[str, tuple[str, str]]]) -> list[str]:
    options = [one for one in vars(flags).values() if isinstance(one, Option)]
    declared = {name.partition("/")[0]: one.help for one in options for name in one.names}
    rows = []
    for name in sorted(shared):
        spelling, text = Counter(record for own, record in records if own == name).most_common(1)[0][0]
        rows.append(_describe_option(spelling, declared.get(name, text)))
    return [*rows, ""]


def _describe_option(spelling: str, text: str) -> str:
    return f"- `{_NUMBER.sub(' NUMBER', spelling)}`: {first_sentence(_DEFAULT.sub('', text))}"


def _describe_command(context: click.Context, shared: set[str]) -> list[str]:
    arguments = [part for part in context.command.collect_usage_pieces(context) if part != "[OPTIONS]"]
    usage = " ".join([context.command_path, *arguments])
    lines = [f"## {context.command_path}\n", *([f"`{usage}`\n"] if arguments else [])]
    lines.append(first_sentence((context.command.help or "").strip().partition("\n\n")[0]) + "\n")
    records = _records(context)
    lines += [_describe_option(*record) for name, record in records if name not in shared]
    common = [name for name, _ in records if name in shared]
    if common:
        lines.append(f"- also {', '.join(_join_bundles(common))}")
    return [*lines, ""]


def _join_bundles(names: list[str]) -> list[str]:
    """Returns the names, with the word of a bundle in place of all of its options."""
    words = [word for word, bundle in BUNDLES.items() if {*bundle} <= {*names}]
    bundled = {name for word in words for name in BUNDLES[word]}
    return [*words, *(f"`{name}`" for name in names if name not in bundled)]
