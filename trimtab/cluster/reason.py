"""Reasons: why something happened or did not happen.

A `Code` is a kind of reason: a stable name, its meaning, and advice. The page docs/reference/reasons.md is generated
from the codes. A `Reason` is one case of a code, with a sentence of its own. Missing knowledge is a value as well, and
never a zero: `NotYet` (more data is needed) and `Unreadable` (there is data, but it is not valid).
"""

from dataclasses import dataclass

import msgspec


class Code(msgspec.Struct, frozen=True):
    """A kind of reason, declared as a constant of a module: the reference page lists every such constant."""

    name: str
    """A stable name in kebab-case, which metrics, audit annotations and scripts use."""
    means: str
    todo: str

    def __call__(self, sentence: str) -> "Reason":
        return Reason(self, sentence)


class Reason(msgspec.Struct, frozen=True, gc=False):
    """One case of a code. It is a msgspec struct for speed, because one decision creates dozens of reasons."""

    code: Code
    sentence: str

    def __str__(self) -> str:
        return self.sentence

    @property
    def page_path(self) -> str:
        """The page of the documentation that explains the code."""
        return f"docs/reference/reasons.md#{self.code.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotYet:
    """Says that more data is needed: what there is, and what is needed. It blocks a decision, and is never used as a
    number."""

    reason: Reason
    have: str
    need: str

    def __str__(self) -> str:
        return f"{self.reason} (have {self.have}, need {self.need})"


def format_shortage(have: str, need: str) -> str:
    """Returns what there is and what is needed, each of which may contain commas."""
    return f"have {have}; need {need}"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Says that there is a value, but that it is not valid."""

    where: str
    problem: str

    def __str__(self) -> str:
        return f"{self.where}: {self.problem}"
