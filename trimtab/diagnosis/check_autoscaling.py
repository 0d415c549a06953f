"""Checks whether other parts of the cluster work against Trimtab, by the rules of `trimtab lint`."""

from collections.abc import Iterator
from itertools import groupby

from trimtab.autoscaling.rule import LintSeverity
from trimtab.cluster.format_count import format_count
from trimtab.cluster.reason import Unreadable
from trimtab.diagnosis.finding import Check, DoctorFinding, report_ok, report_unknown, report_warning
from trimtab.diagnosis.observed import ObservedCluster
from trimtab.diagnosis.reasons import LINT_FINDING

MAX_FINDINGS = 3
"""The number of findings of one rule that are reported in full; further ones are only counted."""


def check_autoscaling(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yields the lint errors and warnings that concern Trimtab's own work, all as warnings."""
    state = cluster.autoscaling
    if isinstance(state, Unreadable):
        yield report_unknown(state)
        return
    findings = [finding for finding in state.findings if finding.severity is not LintSeverity.INFO]
    for code, group in groupby(sorted(findings, key=lambda finding: finding.rule), key=lambda finding: finding.rule):
        of_rule = list(group)
        for finding in of_rule[:MAX_FINDINGS]:
            sentence = f"{code}: {finding.sentence} {finding.outcome}".removesuffix(".")
            yield report_warning(LINT_FINDING, sentence, finding.fix)
        if len(of_rule) > MAX_FINDINGS:
            more = f"the rule {code} of `trimtab lint` has {format_count(len(of_rule) - MAX_FINDINGS, 'more finding')}"
            yield report_warning(
                LINT_FINDING, more, f"`trimtab lint --cluster live --only {code}` shows all findings of this rule."
            )
    for note in state.notes:
        yield report_unknown(note, "Permit what the note names, or correct it, then run the command again.")
    if not findings and not state.notes:
        yield report_ok("the rules of `trimtab lint` find nothing in the cluster that works against Trimtab")


CHECKS = (
    Check(
        name="autoscaling",
        asks="Does anything in the cluster work against Trimtab, by the rules of `trimtab lint`?",
        judge=check_autoscaling,
        may=(LINT_FINDING,),
    ),
)
