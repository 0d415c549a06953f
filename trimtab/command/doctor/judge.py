"""Everything that is looked at, in order: what others rest on first."""

from collections.abc import Collection
from dataclasses import dataclass

from trimtab.command.doctor.checks import around, calls, documents, ground, processes
from trimtab.command.doctor.finding import Check, Finding, Severity, unknown
from trimtab.command.doctor.seen import Seen

CHECKS: tuple[Check, ...] = (
    *ground.CHECKS, *processes.CHECKS, *calls.CHECKS, *around.CHECKS, *documents.CHECKS,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Told:
    """A finding, and what was looked at."""

    check: Check
    finding: Finding


def judged(seen: Seen, *, without: Collection[str] = ()) -> tuple[Told, ...]:
    """At least one finding of every check that is not left out."""
    return tuple(Told(check, found) for check in CHECKS if check.name not in without for found in _of(check, seen))


def _of(check: Check, seen: Seen) -> tuple[Finding, ...]:
    """A check that says nothing could not say anything."""
    found = tuple(check.judge(seen)) or (unknown("nothing of it is there to be looked at"),)
    return tuple(one.at(seen.namespace) for one in found)


def is_well(told: Collection[Told], *, strict: bool = False) -> bool:
    """Nothing is wrong, and everything was looked at; strictly: nothing could be better either."""
    bad = {Severity.ERROR, Severity.UNKNOWN} | ({Severity.WARN} if strict else set())
    return not any(each.finding.severity in bad for each in told)
