"""What the options that many verbs share mean on each of them: no verb gives one a meaning that is not listed here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import click
import pytest

from trimtab.cli.command_tree import iterate_contexts

MEANINGS: Mapping[str, Mapping[str, str]] = {
    "--cluster": {"objects": r"A file or folder from|The source of the objects"},
    "--prices": {"prices": "the prices that you pay"},
    "-A": {"all": "Include all namespaces, even if --namespace names one"},
    "-l": {"select": r"(Include only|Drain the) .* with these labels"},
    "--pool": {"select": r"\bonly\b.* (this )?pool|the nodes of this pool|Reopen this pool"},
    "--now": {
        "present": r"The (present time|time of the (plan|snapshot))",
        "end of history": "The end of the history",
    },
    "-n": {
        "select": r"(Include|Read) only",
        "ours": r"Trimtab's own namespace|namespace of Trimtab|of the compactor|in which Trimtab is installed",
        "object": r"of the (pod|Deployment|scheduler|cluster autoscaler|placeholder pods)\b",
    },
}
"""Option → meaning → what its help says then. The first meaning is the one that a new verb gives it."""

OTHERWISE: Mapping[tuple[str, str], int] = {("--now", "end of history"): 2, ("-n", "ours"): 17, ("-n", "object"): 5}
"""Option and another meaning than the first → the number of verbs that give it this meaning. It only falls."""


def iterate_uses(option: str) -> Iterator[tuple[str, click.Option]]:
    """Yields each verb that has the option, and the option there."""
    for context in iterate_contexts():
        for parameter in context.command.params:
            if isinstance(parameter, click.Option) and option in parameter.opts:
                yield context.command_path.removeprefix("trimtab "), parameter


def find_meanings(option: str, text: str) -> list[str]:
    return [meaning for meaning, pattern in MEANINGS[option].items() if re.search(pattern, text)]


@pytest.mark.parametrize("option", MEANINGS)
def test_an_option_has_one_of_its_listed_meanings_on_every_verb(option: str) -> None:
    by_verb = {verb: find_meanings(option, use.help or "") for verb, use in iterate_uses(option)}
    assert len(by_verb) > 4
    assert {verb: meanings for verb, meanings in by_verb.items() if len(meanings) != 1} == {}


@pytest.mark.parametrize("option", MEANINGS)
def test_an_option_has_one_long_name_and_one_form_on_every_verb(option: str) -> None:
    assert len({(*use.opts, use.metavar, use.multiple) for _, use in iterate_uses(option)}) == 1


@pytest.mark.parametrize(("option", "meaning"), OTHERWISE, ids=" ".join)
def test_no_more_verbs_give_an_option_another_meaning(option: str, meaning: str) -> None:
    verbs = [verb for verb, use in iterate_uses(option) if meaning in find_meanings(option, use.help or "")]
    assert len(verbs) == OTHERWISE[option, meaning], verbs


def test_every_meaning_but_the_first_has_its_number() -> None:
    others = {(option, meaning) for option, meanings in MEANINGS.items() for meaning in [*meanings][1:]}
    assert set(OTHERWISE) == others
