"""Why did this happen, or not?

A `Code` is a kind of reason: a stable name, what it means, what to do about it; the pages of
docs/reference/reasons.md are made of them. A `Reason` is one case of it, with its own sentence. What is not known
has a name too, and is never a zero: `NotYet` (more is needed) and `Unreadable` (it is there and makes no sense).
"""

from dataclasses import dataclass

import msgspec

_CODES: dict[str, "Code"] = {}


class Code(msgspec.Struct, frozen=True):
    """A kind of reason. Making one registers it for the reference."""

    name: str
    """Stable, kebab-case: metrics, audit annotations and scripts carry it."""
    means: str
    todo: str

    def __post_init__(self) -> None:
        if self.name in _CODES and _CODES[self.name] != self:
            raise ValueError(f"the reason code {self.name} is declared twice")
        _CODES[self.name] = self

    def __call__(self, sentence: str) -> "Reason":
        return Reason(self, sentence)


class Reason(msgspec.Struct, frozen=True, gc=False):
    """One case of a code. A struct: a decision makes dozens."""

    code: Code
    sentence: str

    def __str__(self) -> str:
        return self.sentence

    @property
    def page(self) -> str:
        """Where the documentation tells more."""
        return f"docs/reference/reasons.md#{self.code.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotYet:
    """Not enough is known: what there is, and what it would take. Blocks; is never taken for a number."""

    reason: Reason
    have: str
    need: str

    def __str__(self) -> str:
        return f"{self.reason} (have {self.have}, need {self.need})"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Something is there and cannot be understood."""

    where: str
    problem: str

    def __str__(self) -> str:
        return f"{self.where}: {self.problem}"


def codes() -> tuple[Code, ...]:
    """Every code declared by what has been imported, by name."""
    return tuple(_CODES[name] for name in sorted(_CODES))
