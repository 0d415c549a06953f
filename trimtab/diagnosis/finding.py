"""A finding of a check: its severity, its reason, and the fix; and the type of a check."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self, overload

from trimtab.cluster.reason import Code, Reason, Unreadable
from trimtab.diagnosis.observed import ObservedCluster
from trimtab.diagnosis.reasons import NOT_CHECKED, NOTHING_WRONG


class FindingSeverity(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    WARN = "warn"
    """The checked part works, but not as well as it should, or not for as long as it should."""
    ERROR = "error"
    """Something that is installed does not work."""
    UNKNOWN = "unknown"
    """The check could not be made. This never counts as ok."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorFinding:
    """One result of a check."""

    severity: FindingSeverity
    reason: Reason
    fix: str = ""
    """A command or a sentence; empty if nothing needs a fix."""

    def with_namespace(self, namespace: str) -> Self:
        """Returns the finding with `namespace` for the word NAMESPACE in the fix, so that the command can be copied."""
        return replace(self, fix=re.sub(r"\bNAMESPACE\b", namespace, self.fix))


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check of `trimtab doctor`."""

    name: str
    """The name of the check, in kebab-case; it never changes."""
    asks: str
    """The question that the check answers, as users read it."""
    judge: Callable[[ObservedCluster], Iterable[DoctorFinding]]
    """Returns the findings; if it returns none, the check is reported as unknown."""
    may: tuple[Code, ...]
    """The codes of the problems that the check may find."""


def report_ok(sentence: str) -> DoctorFinding:
    """Returns a finding of severity ok, with this sentence."""
    return DoctorFinding(severity=FindingSeverity.OK, reason=NOTHING_WRONG(sentence))


def report_warning(code: Code, sentence: str, fix: str = "") -> DoctorFinding:
    """Returns a warning; if `fix` is empty, the code's remedy is the fix."""
    return DoctorFinding(severity=FindingSeverity.WARN, reason=code(sentence), fix=fix or code.todo)


def report_error(code: Code, sentence: str, fix: str = "") -> DoctorFinding:
    """Returns an error; if `fix` is empty, the code's remedy is the fix."""
    return DoctorFinding(severity=FindingSeverity.ERROR, reason=code(sentence), fix=fix or code.todo)


@overload
def report_unknown(why: Unreadable, fix: str = "") -> DoctorFinding: ...
@overload
def report_unknown(why: Unreadable | str, fix: str) -> DoctorFinding: ...
def report_unknown(why: Unreadable | str, fix: str = "") -> DoctorFinding:
    """Returns a finding of severity unknown, with the reason why the check was not possible.

    What could not be read is usually a matter of permissions, which the default fix is about. Every other reason needs
    a fix of its own.
    """
    return DoctorFinding(severity=FindingSeverity.UNKNOWN, reason=NOT_CHECKED(str(why)), fix=fix or NOT_CHECKED.todo)
