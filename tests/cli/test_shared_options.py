"""Options that many verbs share mean the same on each, and a former name is refused with the present one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import click
import pytest

from tests.cli.snapshots import trimtab
from trimtab.cli.command_tree import iterate_contexts

MEANINGS: Mapping[str, str] = {
    "--cluster": r"A file or folder from|The source of the objects",
    "--prices": "the prices that you pay",
    "-A": "Include all namespaces, even if --namespace names one",
    "-l": r"(Include only|Drain the) .* with these labels",
    "--pool": r"\bonly\b.* (this )?pool|the nodes of this pool|Reopen this pool",
    "--now": "The present time, from which ages and histories count back",
    "-n": r"The namespace of the workloads? that you ask about",
    "--system-namespace": "The namespace in which Trimtab is installed",
}
"""Option → what its help says on every verb."""


def iterate_uses(option: str) -> Iterator[tuple[str, click.Option]]:
    """Yields each verb that has the option, and the option there."""
    for context in iterate_contexts():
        for parameter in context.command.params:
            if isinstance(parameter, click.Option) and option in parameter.opts:
                yield context.command_path.removeprefix("trimtab "), parameter


@pytest.mark.parametrize("option", MEANINGS)
def test_an_option_has_its_one_meaning_on_every_verb(option: str) -> None:
    by_verb = {verb: use.help or "" for verb, use in iterate_uses(option)}
    assert len(by_verb) > 4
    assert {verb: text for verb, text in by_verb.items() if not re.search(MEANINGS[option], text)} == {}


@pytest.mark.parametrize("option", MEANINGS)
def test_an_option_has_one_long_name_and_one_form_on_every_verb(option: str) -> None:
    assert len({(*use.opts, use.metavar, use.multiple) for _, use in iterate_uses(option)}) == 1


def test_a_verb_that_selects_namespaces_of_a_list_selects_all_of_them_and_labels_too() -> None:
    """A verb about one object has its namespace alone."""
    uses = {flag: {verb for verb, _ in iterate_uses(flag)} for flag in ("-n", "-A", "-l")}
    assert uses["-n"] - uses["-A"] == {"why pod", "metrics-api propose-hpa"}
    assert uses["-A"] - uses["-l"] == set()


FORMER = (
    ("doctor -n trimtab", "-n", "--system-namespace"),
    ("doctor -ntrimtab", "-n", "--system-namespace"),
    ("compactor status --namespace=trimtab", "--namespace", "--system-namespace"),
    ("install --namespace trimtab", "--namespace", "--system-namespace"),
    ("certs status --namespace trimtab", "--namespace", "--system-namespace"),
    ("why node web-0 -n trimtab", "-n", "--system-namespace"),
    ("machines priorities -n kube-system", "-n", "--autoscaler-namespace"),
    ("scheduler manifests -n kube-system", "-n", "--scheduler-namespace"),
    ("plan --pool all=keen", "--pool", "--preset"),
    ("admit --explain", "--explain", "--details"),
    ("lint --rule=L41", "--rule", "--only"),
)
"""A command line, the former name of an option in it, and its present name."""


@pytest.mark.parametrize(("line", "former", "present"), FORMER, ids=[line for line, _, _ in FORMER])
def test_a_former_name_is_refused_with_the_present_one(line: str, former: str, present: str) -> None:
    result = trimtab(*line.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith(f"{former} is now called {present}")


def test_no_former_name_is_a_name_of_another_option_of_its_verb() -> None:
    """`vpa propose -n` selects workloads, and nothing refuses it."""
    assert trimtab("metrics-api", "propose-hpa", "--help").stderr == ""
    result = trimtab("vpa", "propose", "-n", "shop", "--usage", "nosuch.csv")
    assert "is now called" not in result.stderr
