"""A baseline: findings that are known and accepted, so that CI fails for new ones only.

A finding is recognized by its rule, its object and its field, not by its sentence, which has numbers that change.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from trimtab.autoscaling.rule import RuleFinding
from trimtab.cluster.yaml_documents import format_path

BASELINE_VERSION = 1


class BaselineEntry(msgspec.Struct, frozen=True, order=True):
    """One accepted finding."""

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
    """The text is not a baseline; `str(error)` says what was expected."""


@dataclass(frozen=True, slots=True)
class BaselineComparison:
    """Findings that are new, and entries of the baseline that were not found again."""

    new: tuple[RuleFinding, ...]
    accepted: int
    gone: tuple[BaselineEntry, ...]


def baseline_entry(finding: RuleFinding) -> BaselineEntry:
    """Returns what identifies a finding."""
    subject = finding.subject
    return BaselineEntry(finding.rule, subject.kind, subject.namespace, subject.name, format_path(finding.path))


def encode_baseline(findings: Iterable[RuleFinding]) -> str:
    """Returns the baseline file that accepts these findings: sorted, so that its differences are easy to read."""
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
    """Returns the findings that the baseline does not accept, and its entries that are gone."""
    accepted = frozenset(baseline.findings)
    all_findings = tuple(findings)
    present = {baseline_entry(finding) for finding in all_findings}
    new = tuple(finding for finding in all_findings if baseline_entry(finding) not in accepted)
    return BaselineComparison(new, len(all_findings) - len(new), tuple(sorted(accepted - present)))
