"""Problems of certificates, with a code for machines and a sentence for people, and the exceptions that carry them.

CertsError                   base class; `problem` is the reason
├── MissingFile              a file of the folder does not exist
├── UnusableFile             a file does not contain what its name says
└── UnwritableFile           the folder cannot be written; its old content is intact
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One reason.

    `code` is stable and short (`expired`, `key-mismatch`, …); `says` is a sentence with the values that led to it. It
    never contains key material.
    """

    code: str
    says: str

    def __str__(self) -> str:
        return f"{self.code}: {self.says}"


class CertsError(Exception):
    """An error of a certificate folder; the text is one sentence."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.says)
        self.problem = problem


class MissingFile(CertsError):
    """Raised if a required file does not exist."""


class UnusableFile(CertsError):
    """Raised if a file does not contain what is expected."""


class UnwritableFile(CertsError):
    """Raised if the folder cannot be written. Files that were already renamed stay; `status` reports a mismatch."""
