"""Why a command cannot go on: its inputs have mistakes, or reading them failed."""

from collections.abc import Iterable

from trimtab.cluster.config_error import ConfigError, suggest_name
from trimtab.cluster.format_count import join_first


class CommandFault(Exception):
    """A command cannot go on; the text says why, and what to do."""


class UsageError(CommandFault):
    """The command line or a file has mistakes; the text names every mistake, and nothing was done."""

    def __init__(self, mistakes: Iterable[ConfigError]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(map(str, self.mistakes)))


class LoginError(CommandFault):
    """The kubeconfig names no usable cluster; the text is kubectl's, and nothing was done."""


class RuntimeFailure(CommandFault):
    """Trimtab or the cluster failed; the text names the operation and the object."""


MAX_NAMES = 8
"""The largest number of names that a mistake lists."""


def check_names(option: str, noun: str, names: Iterable[str], choices: Iterable[str]) -> None:
    """Raise UsageError for each of these names that is not among the choices, with the most similar name.

    An empty report of a misspelt name looks like a good result. So every verb that selects by name asks here.
    `option`: where the user wrote the names, such as --pool. `noun`: what they name, such as `a pool of the cluster`.
    """
    existing = sorted(set(choices) - {""})
    first_names = join_first(existing, MAX_NAMES) if existing else "there is none"
    mistakes = [
        ConfigError(file=option, expected=f"{noun} ({first_names})", got=name, todo=suggest_name(name, existing))
        for name in sorted(set(names).difference(existing))
    ]
    if mistakes:
        raise UsageError(mistakes)


def check_namespaces(names: Iterable[str], choices: Iterable[str]) -> None:
    """Raise UsageError for each namespace after --namespace that the input does not have."""
    check_names("--namespace", "a namespace of the input", names, choices)
