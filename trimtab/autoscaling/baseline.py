"""A baseline: findings that are known and accepted, so that a CI run fails only for new ones.

A finding is recognised by its rule, its object and its field. Its sentence is not compared, because it contains numbers
that change.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from trimtab.autoscaling.rule import RuleFinding
from trimtab.cluster.yaml_documents import format_path

BASELINE_VERSION = 1


class BaselineEntry(msgspec.Struct, frozen=True, order=True):
    """One accepted finding in a baseline file."""

    rule: str
    kind: str
    namespace: str
    name: str
    field: str


class Baseline(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The content of a baseline file."""

    version: int = BASELINE_VERSION
    findings: tuple[BaselineEntry, ...] = ()


class DamagedBaseline(ValueError):
    """Raised for a text that is not a baseline; `str(error)` says what was expected."""


@dataclass(frozen=True, slots=True)
class BaselineComparison:
    """The findings that are new, and the entries of the baseline whose finding no longer exists."""

    new: tuple[RuleFinding, ...]
    accepted: int
    gone: tuple[BaselineEntry, ...]


@dataclass(frozen=True, slots=True)
class ChangeComparison:
    """What a change of objects does to the findings."""

    new: tuple[RuleFinding, ...]
    gone: tuple[RuleFinding, ...]
    same: int
    """The number of findings that the objects have with and without the change."""


def compare_findings(before: Iterable[RuleFinding], after: Iterable[RuleFinding]) -> ChangeComparison:
    """Returns which findings a change adds and removes. A finding of the same rule, object and field is the same."""
    old = {(baseline_entry(finding), finding.severity): finding for finding in before}
    all_after = tuple(after)
    now = {(baseline_entry(finding), finding.severity) for finding in all_after}
    new = tuple(finding for finding in all_after if (baseline_entry(finding), finding.severity) not in old)
    gone = tuple(finding for key, finding in old.items() if key not in now)
    return ChangeComparison(new, gone, len(all_after) - len(new))


def baseline_entry(finding: RuleFinding) -> BaselineEntry:
    """Returns the baseline entry that identifies a finding."""
    subject = finding.subject
    return BaselineEntry(finding.rule, subject.kind, subject.namespace, subject.name, format_path(finding.path))


def encode_baseline(findings: Iterable[RuleFinding]) -> str:
    """Returns the baseline file that accepts these findings. It is sorted, so that differences between versions are
    easy to read."""
    entries = tuple(sorted({baseline_entry(finding) for finding in findings}))
    return msgspec.json.format(msgspec.json.encode(Baseline(findings=entries)), indent=1).decode() + "\n"


def decode_baseline(text: bytes | str) -> Baseline:
    """Returns the baseline of a file. Raises DamagedBaseline."""
    try:
        baseline = msgspec.json.decode(text, type=Baseline)
    except msgspec.DecodeError as error:
        raise DamagedBaseline(f"a file that --write-baseline wrote ({error})") from None
    if baseline.version != BASELINE_VERSION:
        raise DamagedBaseline(f"version {BASELINE_VERSION} of the format, not {baseline.version}")
    return baseline


def compare_baseline(findings: Iterable[RuleFinding], baseline: Baseline) -> BaselineComparison:
    """Returns the findings that the baseline does not accept, and the entries whose finding no longer exists."""
    accepted = frozenset(baseline.findings)
    all_findings = tuple(findings)
    present = {baseline_entry(finding) for finding in all_findings}
    new = tuple(finding for finding in all_findings if baseline_entry(finding) not in accepted)
    return BaselineComparison(new, len(all_findings) - len(new), tuple(sorted(accepted - present)))
