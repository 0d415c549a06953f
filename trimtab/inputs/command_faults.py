"""Why a command cannot go on: its inputs have mistakes, or reading them failed."""

from collections.abc import Iterable

from trimtab.cluster.config_error import ConfigError


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
