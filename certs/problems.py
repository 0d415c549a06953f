"""Why a pair is due, or not to be trusted: a code for machines, a sentence for people.

What can go wrong with a pair, as one tree.

CertsError                   all of them; `problem` is the named reason
├── Missing                  a file of the folder is not there
├── Unusable                 a file is there and is not what its name says
└── Unwritable               the folder refuses the new files; what was there is still there
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One named reason.

    `code` is stable and short (`expired`, `key-mismatch`, …); `says` is a whole sentence with the
    values that led to it. Key material is never part of it.
    """

    code: str
    says: str

    def __str__(self) -> str:
        return f"{self.code}: {self.says}"


class CertsError(Exception):
    """Something about a certificate folder that its caller has to know; the text is one sentence."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.says)
        self.problem = problem


class MissingFile(CertsError):
    """A file that must be there is not."""


class UnusableFile(CertsError):
    """A file holds something else than what is expected in it."""


class UnwritableFile(CertsError):
    """The folder could not be written; files already renamed stay, `status` tells what is out of step."""
