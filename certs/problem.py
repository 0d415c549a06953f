"""Why a pair is due, or not to be trusted: a code for machines, a sentence for people."""

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
