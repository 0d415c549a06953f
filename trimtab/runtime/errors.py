"""What a process of ours cannot start with, as one tree.

RuntimeFault                 all of them; the text is for the person who starts the process
├── SettingsError            the environment asks for something we don't understand; `mistakes` has all of it
└── CannotServe              the server cannot be brought up as asked
    └── NoPair               it was asked well; the cluster gave no certificate in time
"""

from trimtab.cluster.mistake import Mistake


class RuntimeFault(Exception):
    """A process cannot go on as it was asked to."""


class SettingsError(RuntimeFault):
    """All mistakes of one environment, together."""

    def __init__(self, mistakes: tuple[Mistake, ...]) -> None:
        super().__init__("\n".join(str(mistake) for mistake in mistakes))
        self.mistakes = mistakes


class CannotServe(RuntimeFault):
    """The server cannot be brought up as asked; the text says why."""


class NoPair(CannotServe):
    """No certificate could be had from the cluster in time; the text says why."""
