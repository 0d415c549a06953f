"""Messages name only flags and verbs that exist, and are written in plain words."""

import re
from collections.abc import Iterator

import click
import pytest

from tests.architecture.source_words import messages, source_files
from tests.docs.test_commands import problem
from trimtab.cli.main import cli
from trimtab.cluster import cluster_autoscaler

FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*[a-z0-9](?!-)")
VERB = re.compile(r"`trimtab ([^`]+)`")
OF_KUBECTL = {"--force-conflicts", "--server-side", "--raw"}
OF_THE_AUTOSCALER = {
    "--scale-down-delay-after-add", "--scale-down-enabled", "--scale-down-utilization-threshold",
    "--status-config-map-name", "--write-status-configmap",
}  # fmt: skip

BANNED = re.compile(
    r"\b(came|is told|are told|was told|tells?|nobody|somebody|anybody|whoever|we|us|ours?|mend(ed|s)?|given back|taken back)\b",
    re.IGNORECASE,
)
"""Words that the documentation style guide of Kubernetes has plainer ones for."""


def options(command: click.Command, context: click.Context) -> Iterator[str]:
    """All options of a command and of those below it."""
    for parameter in command.params:
        yield from (*parameter.opts, *parameter.secondary_opts)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from options(child, context)


def test_every_flag_that_a_message_names_exists() -> None:
    ours = set(options(cli, click.Context(cli, info_name="trimtab")))
    known = ours | OF_KUBECTL | OF_THE_AUTOSCALER | {"--help"}
    unknown = {
        f"{file.name}:{line} {flag}"
        for file in source_files()
        for line, text in messages(file)
        for flag in FLAG.findall(text)
        if flag not in known
    }
    assert unknown == set()


def test_every_verb_that_a_message_names_exists() -> None:
    wrong = {
        f"{file.name}:{line} {command}": why
        for file in source_files()
        for line, text in messages(file)
        for command in VERB.findall(text)
        if (why := problem(command))
    }
    assert wrong == {}


@pytest.mark.parametrize("file", source_files(), ids=lambda file: file.name)
def test_messages_are_in_plain_words(file) -> None:  # type: ignore[no-untyped-def]
    assert [f"{line}: {text}" for line, text in messages(file) if BANNED.search(text)] == []
