"""What the rules of lint that concern Trimtab say in the doctor's report."""

from dataclasses import replace

from tests.cli.doctor.worlds import HIDDEN, WELL, bad
from tests.reasons import has_facts
from trimtab.autoscaling.rule import LintSeverity, LintSubject, RuleFinding
from trimtab.autoscaling.rules import RULES_BY_CODE
from trimtab.cli.doctor.command import judge_cluster
from trimtab.diagnosis.autoscaling_state import OWN_RULES, READ_KINDS, AutoscalingState
from trimtab.kube.resources import LIST_SOURCES


def finding(name: str, severity: LintSeverity = LintSeverity.WARNING) -> RuleFinding:
    return RuleFinding(
        rule="N13",
        severity=severity,
        subject=LintSubject("LimitRange", "shop", name),
        sentence=f"LimitRange shop/{name} sets a cpu limit, but PodPolicy sizes removes it.",
        outcome="The policy has no effect.",
        fix="Remove the default limit.",
    )


def test_a_finding_is_a_warning_whatever_its_severity() -> None:
    state = AutoscalingState(findings=(finding("limits", LintSeverity.ERROR),))
    assert bad(autoscaling=state) == {"autoscaling-rule": "warn"}


def test_advice_is_left_to_lint() -> None:
    assert bad(autoscaling=AutoscalingState(findings=(finding("limits", LintSeverity.INFO),))) == {}


def test_what_cannot_be_read_is_unknown() -> None:
    assert bad(autoscaling=HIDDEN) == {"not-checked": "unknown"}
    notes = ("These objects are not checked, because you may not list them: limitranges.",)
    assert bad(autoscaling=AutoscalingState(notes=notes)) == {"not-checked": "unknown"}


def test_many_findings_of_a_rule_are_counted() -> None:

    state = AutoscalingState(findings=tuple(finding(f"limits-{n}") for n in range(10)))
    sentences = [
        result.finding.reason.sentence
        for result in judge_cluster(replace(WELL, autoscaling=state))
        if result.check.name == "autoscaling"
    ]
    assert len(sentences) == 4
    assert has_facts(sentences[-1], "N13", 7)


def test_the_rules_exist_and_their_kinds_can_be_listed() -> None:
    assert set(OWN_RULES) <= set(RULES_BY_CODE)
    assert set(READ_KINDS) <= set(LIST_SOURCES)
