"""Runs the rules over one snapshot: findings, what the objects' authors ignore, and what was not checked.

An object ignores rules with the annotation `trimtab.dev/lint-ignore: "L35 a reason"`; several entries are separated by
semicolons or lines. The reason is for readers. An entry without a reason counts too, and the report says that there is
no reason.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from trimtab.autoscaling.lint_snapshot import LintSnapshot
from trimtab.autoscaling.rule import LintRule, LintSubject, Needs, RuleFinding
from trimtab.cluster.format_count import format_count

IGNORE_ANNOTATION = "trimtab.dev/lint-ignore"
_RULE_CODE = re.compile(r"[LN]\d{2}")

_AVAILABLE: Mapping[Needs, Callable[[LintSnapshot], bool]] = {
    Needs.LIVE: lambda snapshot: snapshot.is_live,
    Needs.USAGE: lambda snapshot: snapshot.usage is not None and bool(snapshot.usage.containers),
    Needs.REPLICAS: lambda snapshot: snapshot.usage is not None and bool(snapshot.usage.replicas),
    Needs.MANIFESTS: lambda snapshot: not snapshot.is_live,
    Needs.VERSION: lambda snapshot: snapshot.minor is not None,
    Needs.VPA_WEBHOOK: lambda snapshot: {"MutatingWebhookConfiguration", "EndpointSlice"} <= snapshot.kinds,
    Needs.AUTOSCALER_FLAGS: lambda snapshot: bool(snapshot.autoscalers),
    Needs.RESERVATIONS: lambda snapshot: bool(snapshot.reservations),
    Needs.KUBELETS: lambda snapshot: bool(snapshot.kubelets),
    Needs.POLICIES: lambda snapshot: bool(snapshot.policies),
}
"""Each need of a rule → the function that returns whether a snapshot meets the need."""


@dataclass(frozen=True, slots=True)
class IgnoredFinding:
    """A finding that the object's author ignores."""

    finding: RuleFinding
    reason: str
    """The reason in the annotation; empty if it gives none."""


@dataclass(frozen=True, slots=True)
class NotChecked:
    """The rules that were not checked, and what was missing for that."""

    need: Needs
    rules: tuple[str, ...]

    def __str__(self) -> str:
        count = format_count(len(self.rules), "rule was", "rules were")
        return f"{count} not checked, because this input is missing: {self.need.value} ({', '.join(self.rules)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class LintResult:
    """The result of one run of `trimtab lint`."""

    findings: tuple[RuleFinding, ...]
    """The findings: errors first, then by rule and object."""
    ignored: tuple[IgnoredFinding, ...] = ()
    not_checked: tuple[NotChecked, ...] = ()
    checked: tuple[str, ...] = ()
    """The codes of the rules that ran."""


def missing_needs(rule: LintRule, snapshot: LintSnapshot) -> tuple[Needs, ...]:
    """Returns what the rule needs and the snapshot lacks."""
    return tuple(need for need in rule.needs if not _AVAILABLE[need](snapshot))


def check_snapshot(snapshot: LintSnapshot, rules: Iterable[LintRule]) -> LintResult:
    """Returns the findings of all rules that can be checked."""
    findings: list[RuleFinding] = []
    missing: dict[Needs, list[str]] = defaultdict(list)
    checked: list[str] = []
    for rule in rules:
        needs = missing_needs(rule, snapshot)
        if needs:
            missing[needs[0]].append(rule.code)
            continue
        checked.append(rule.code)
        findings += rule.find_problems(snapshot)
    ignored = [
        IgnoredFinding(finding, reason)
        for finding in findings
        if (reason := ignore_reason(snapshot, finding)) is not None
    ]
    hidden = {id(entry.finding) for entry in ignored}
    return LintResult(
        findings=tuple(sorted((f for f in findings if id(f) not in hidden), key=lambda f: f.sort_key)),
        ignored=tuple(sorted(ignored, key=lambda entry: entry.finding.sort_key)),
        not_checked=tuple(NotChecked(need, tuple(missing[need])) for need in Needs if need in missing),
        checked=tuple(checked),
    )


def ignore_reason(snapshot: LintSnapshot, finding: RuleFinding) -> str | None:
    """Returns the reason that the object's author gives for ignoring the finding's rule, or None if the object does not
    ignore the rule."""
    return ignored_rules(snapshot, finding.subject).get(finding.rule)


def ignored_rules(snapshot: LintSnapshot, subject: LintSubject) -> dict[str, str]:
    """Returns each rule that an object ignores → the reason, from the annotations of the object and of its pod
    template."""
    workload = snapshot.workloads_by_subject.get(subject)
    texts = [_annotation_of(snapshot, subject)]
    if workload is not None:
        texts.append(workload.pod_annotations.get(IGNORE_ANNOTATION, ""))
    return {code: reason for text in texts for code, reason in parse_ignores(text)}


def parse_ignores(text: str) -> Iterable[tuple[str, str]]:
    """Yields (rule, reason) for each entry of the annotation. Entries that do not begin with a rule's code are left
    out."""
    for entry in re.split(r"[;\n]", text):
        code, _, reason = entry.strip().partition(" ")
        if _RULE_CODE.fullmatch(code.rstrip(":,")):
            yield code.rstrip(":,"), reason.strip()


def _annotation_of(snapshot: LintSnapshot, subject: LintSubject) -> str:
    metadata = snapshot.document_value(subject).get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    text = annotations.get(IGNORE_ANNOTATION) if isinstance(annotations, dict) else None
    return text if isinstance(text, str) else ""


def select_rules(rules: Iterable[LintRule], only: Collection[str], without: Collection[str]) -> tuple[LintRule, ...]:
    """Returns the rules that are in `only` (all rules if it is empty) and not in `without`."""
    return tuple(rule for rule in rules if (not only or rule.code in only) and rule.code not in without)
