"""The options of all verbs, as `trimtab explain --autoscaler-flags` explains them."""

import click

from trimtab.cli.catalog import CatalogEntry

OPTION = "option"
_PAGE = "docs/reference/commands.md"


def find_options(name: str) -> list[CatalogEntry]:
    """Returns an entry for each meaning that an option has in the verbs of `trimtab`; none if no verb has it.

    Verbs for which it means the same share an entry. This imports every verb, which takes a moment."""
    from trimtab.cli.command_tree import iterate_contexts

    verbs_by_meaning: dict[str, list[str]] = {}
    for context in iterate_contexts():
        for option in context.command.params:
            if isinstance(option, click.Option) and name in (*option.opts, *option.secondary_opts):
                verbs_by_meaning.setdefault(option.help or "", []).append(context.command_path)
    return [
        CatalogEntry(kind=OPTION, name=name, means=means, value=", ".join(verbs), page=_PAGE)
        for means, verbs in verbs_by_meaning.items()
    ]
