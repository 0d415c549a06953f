"""One finding: what was looked at, how bad it is, why, and what mends it."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from trimtab.cli.doctor.observed import ObservedCluster
from trimtab.cluster.reason import Code, Reason, Unreadable


class FindingSeverity(StrEnum):
    OK = "ok"
    WARN = "warn"
    """It works, and not as well or not for as long as it should."""
    ERROR = "error"
    """Something that was installed does not do its work."""
    UNKNOWN = "unknown"
    """It could not be looked at. Never taken for ok."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorFinding:
    severity: FindingSeverity
    reason: Reason
    fix: str = ""
    """A command, or a sentence; empty where nothing needs mending."""

    def at(self, namespace: str) -> Self:
        """The word NAMESPACE in the fix is ours: commands can be copied."""
        return replace(self, fix=re.sub(r"\bNAMESPACE\b", namespace, self.fix))


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that is looked at."""

    name: str
    """Stable, kebab-case."""
    asks: str
    """The question, as people read it."""
    judge: Callable[[ObservedCluster], Iterable[DoctorFinding]]
    """Nothing found is ok: then `fine` says it."""
    may: tuple[Code, ...]
    """What it may find wrong."""


WELL = Code(
    "no-problem-found",
    "`trimtab doctor` looked at this, and nothing is wrong with it.",
    "Nothing.",
)
UNSEEN = Code(
    "not-checked",
    "`trimtab doctor` could not look at this: whoever asked may not, or the API server did not answer. It is not taken "
    "for well.",
    "The sentence names the right that is missing, or what the API server said. Ask again as somebody who may.",
)


def ok(sentence: str) -> DoctorFinding:
    return DoctorFinding(severity=FindingSeverity.OK, reason=WELL(sentence))


def warn(code: Code, sentence: str, fix: str = "") -> DoctorFinding:
    return DoctorFinding(severity=FindingSeverity.WARN, reason=code(sentence), fix=fix or code.todo)


def error(code: Code, sentence: str, fix: str = "") -> DoctorFinding:
    return DoctorFinding(severity=FindingSeverity.ERROR, reason=code(sentence), fix=fix or code.todo)


def unknown(why: Unreadable | str, fix: str = "") -> DoctorFinding:
    return DoctorFinding(severity=FindingSeverity.UNKNOWN, reason=UNSEEN(str(why)), fix=fix or UNSEEN.todo)
