"""Each rule finds its bad manifest, leaves its good one alone, and judges what a real API server printed."""

import pytest

from tests.autoscaling.rule_cases_of import CODES, FOLDER, documents_of, findings_of, lint_case, snapshot_of
from trimtab.autoscaling.fixes import FixPlan, change_value, is_fixable, plan_fixes
from trimtab.autoscaling.lint import _AVAILABLE, check_snapshot
from trimtab.autoscaling.lint_snapshot import LintSnapshot
from trimtab.autoscaling.read_snapshot import reread_snapshot
from trimtab.autoscaling.rule import LintSeverity, ManifestChange, Needs, NewManifest, RuleFinding
from trimtab.autoscaling.rules import ALL_RULES, RULES_BY_CODE
from trimtab.cluster.yaml_documents import Document


def test_every_rule_has_its_cases() -> None:
    codes = {rule.code for rule in ALL_RULES}
    assert codes == set(CODES), f"add rule_cases/CODE/bad.yaml and good.yaml: {codes ^ set(CODES)}"


@pytest.mark.parametrize("code", CODES)
def test_the_bad_manifest_is_found(code: str) -> None:
    findings = findings_of(code, "bad.yaml")
    assert findings
    assert {finding.rule for finding in findings} == {code}


@pytest.mark.parametrize("code", CODES)
def test_the_good_manifest_is_left_alone(code: str) -> None:
    assert findings_of(code, "good.yaml") == ()


@pytest.mark.parametrize("code", CODES)
def test_a_finding_says_what_is_what_will_happen_and_what_to_do(code: str) -> None:
    order = list(LintSeverity)
    for finding in findings_of(code, "bad.yaml"):
        for text in (finding.sentence, finding.outcome, finding.fix):
            assert text[-1] in '.";', text
            assert "  " not in text, text
        assert order.index(finding.severity) >= order.index(RULES_BY_CODE[code].severity)


@pytest.mark.parametrize("code", CODES)
def test_a_finding_without_its_fix_is_there_and_with_it_gone(code: str) -> None:
    """Of a finding that claims a change: the changed manifests do not have it."""
    snapshot = snapshot_of(code, "bad.yaml")
    rule = RULES_BY_CODE[code]
    findings = rule.find_problems(snapshot)
    plan = plan_fixes(snapshot, rule.find_problems, accept_all)
    second_lint_snapshot = fixed_snapshot(snapshot, plan)
    assert findings
    left = {(finding.subject, finding.path) for finding in rule.find_problems(second_lint_snapshot)}
    assert left.isdisjoint({(finding.subject, finding.path) for finding in plan.fixed})


def errors_in(snapshot: LintSnapshot) -> set[tuple[str, str]]:
    findings = check_snapshot(snapshot, ALL_RULES).findings
    return {(finding.rule, str(finding.subject)) for finding in findings if finding.severity is LintSeverity.ERROR}


def every_finding(snapshot: LintSnapshot) -> tuple[RuleFinding, ...]:
    return check_snapshot(snapshot, ALL_RULES).findings


def accept_all(before: Document, after: Document) -> bool:
    """The answer of an API server that takes everything."""
    return before.kind == after.kind


def fixed_snapshot(snapshot: LintSnapshot, plan: FixPlan) -> LintSnapshot:
    """The snapshot of the manifests as the fixes leave them."""
    documents = [
        document.with_value(change_value(document.value, plan.changes.get(subject, ())))
        for subject, document in snapshot.documents.items()
    ]
    documents += [Document(file="added.yaml", index=0, value=addition.manifest) for addition in plan.new]
    return reread_snapshot(snapshot, documents)


@pytest.mark.parametrize("code", CODES)
def test_fixes_bring_no_new_error(code: str) -> None:
    """Of any rule: neither the fixes of this rule alone, nor those of all rules together."""
    snapshot = snapshot_of(code, "bad.yaml")
    before = errors_in(snapshot)
    for find_problems in (RULES_BY_CODE[code].find_problems, every_finding):
        assert errors_in(fixed_snapshot(snapshot, plan_fixes(snapshot, find_problems, accept_all))) <= before


@pytest.mark.parametrize("code", CODES)
def test_all_fixes_together_leave_nothing_that_they_claim_and_nothing_to_fix(code: str) -> None:
    snapshot = snapshot_of(code, "bad.yaml")
    plan = plan_fixes(snapshot, every_finding, accept_all)
    second_lint_snapshot = fixed_snapshot(snapshot, plan)
    claimed = {(finding.rule, finding.subject, finding.path) for finding in plan.fixed}
    assert claimed.isdisjoint(
        {(finding.rule, finding.subject, finding.path) for finding in every_finding(second_lint_snapshot)}
    )
    second = plan_fixes(second_lint_snapshot, every_finding, accept_all)
    assert (second.changes, second.new) == ({}, ())


@pytest.mark.parametrize("code", CODES)
def test_every_change_names_an_object_of_the_run(code: str) -> None:
    snapshot = snapshot_of(code, "bad.yaml")
    for finding in findings_of(code, "bad.yaml"):
        for change in finding.changes:
            if isinstance(change, ManifestChange):
                assert change.subject in snapshot.documents
                assert change.path
            else:
                assert isinstance(change, NewManifest)


def test_a_field_of_a_live_object_cannot_be_removed_by_an_apply_configuration() -> None:
    for is_live in (False, True):
        snapshot = snapshot_of("L35", "bad.yaml", is_live=is_live)
        [finding] = RULES_BY_CODE["L35"].find_problems(snapshot)
        assert is_fixable(finding, snapshot) is not is_live


LEFT_ALONE = {
    "L09": "the API server refused the bad one",
    "L46": "the API server refused the bad one",
    "N05": "the API server refused the bad one",
}
"""Rules that find nothing in what was captured, and why."""


@pytest.mark.parametrize("code", CODES)
def test_what_a_real_api_server_stored_is_judged_like_the_manifest(code: str) -> None:
    assert (FOLDER / code / "captured.json").exists(), f"run python -m tests.autoscaling.capture_objects {code}"
    of = documents_of(code, "captured.json")
    assert of
    findings = lint_case(code, "captured.json", is_live=True).findings
    assert bool(findings) is (code not in LEFT_ALONE)


def test_every_need_of_rules_can_be_looked_for() -> None:
    assert set(_AVAILABLE) == set(Needs), "add the need to _AVAILABLE in trimtab/autoscaling/lint.py"
    assert {need for rule in ALL_RULES for need in rule.needs} == set(Needs)


def test_the_autoscalers_flags_are_not_checked_where_there_are_none() -> None:
    assert check_snapshot(snapshot_of("L07", "bad.yaml"), [RULES_BY_CODE["N02"]]).checked == ()
    assert "N02" in lint_case("N02", "good.yaml").checked


def test_a_live_count_of_replicas_is_not_checked_for_manifests() -> None:
    assert [str(missing) for missing in lint_case("L07", "bad.yaml", is_live=True).not_checked]
