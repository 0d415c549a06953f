"""Proposed VPAs as `trimtab lint` leaves them: a rule that would change one of them has changed it already, and none of
them adds an error."""

from collections.abc import Sequence
from dataclasses import replace

from trimtab.autoscaling.fixes import change_value, plan_fixes
from trimtab.autoscaling.lint import check_snapshot
from trimtab.autoscaling.lint_snapshot import LintSnapshot
from trimtab.autoscaling.read_snapshot import read_lint_snapshot
from trimtab.autoscaling.rule import LintSeverity, LintSubject, ManifestChange, RuleFinding
from trimtab.autoscaling.rules import ALL_RULES
from trimtab.autoscaling.simulation.proposal_reasons import VPA_CONTRADICTS_LINT
from trimtab.autoscaling.simulation.propose_vpas import API_VERSIONS, VpaAction, VpaProposal
from trimtab.cluster.kinds import built_in, group_kind
from trimtab.cluster.yaml_documents import Document


def lint_proposals(proposals: Sequence[VpaProposal], documents: Sequence[Document]) -> list[VpaProposal]:
    """Returns the proposals with the fixes of all rules of lint that change only proposed VPAs, next to the objects of
    the cluster. A VPA with which a rule would report another error is not proposed."""
    fixed = _fix_proposals(proposals, documents)
    errors = _find_errors(fixed, documents)
    return [
        replace(one, action=VpaAction.NONE, reason=VPA_CONTRADICTS_LINT(errors[_subject_of(one)]), manifest=None)
        if one.action is VpaAction.ADD and _subject_of(one) in errors
        else one
        for one in fixed
    ]


def _find_errors(proposals: Sequence[VpaProposal], documents: Sequence[Document]) -> dict[LintSubject, str]:
    """Returns a proposed VPA → the first error that lint reports about it or its workload, and not without the
    proposals."""
    owners = {
        subject: _subject_of(one)
        for one in proposals
        if one.action is VpaAction.ADD
        for subject in (_subject_of(one), _workload_of(one))
    }
    proposed = [
        Document(file="proposed", index=index, value=dict(one.manifest))
        for index, one in enumerate(proposals)
        if one.manifest is not None
    ]
    known, found = (
        [
            finding
            for finding in check_snapshot(read_lint_snapshot(all_documents, is_live=True).snapshot, ALL_RULES).findings
            if finding.severity is LintSeverity.ERROR and finding.subject in owners
        ]
        for all_documents in (documents, (*documents, *proposed))
    )
    sentences = {finding.sentence for finding in known}
    errors: dict[LintSubject, str] = {}
    for finding in found:
        if finding.sentence not in sentences:
            errors.setdefault(owners[finding.subject], f"{finding.rule}: {finding.sentence}")
    return errors


def _workload_of(proposal: VpaProposal) -> LintSubject:
    workload = proposal.workload
    return LintSubject(group_kind(API_VERSIONS[workload.kind], workload.kind), workload.namespace, workload.name)


def _fix_proposals(proposals: Sequence[VpaProposal], documents: Sequence[Document]) -> list[VpaProposal]:
    subjects = {_subject_of(one): one for one in proposals if one.manifest is not None}
    proposed = [
        Document(file="proposed", index=index, value=dict(one.manifest or {}))
        for index, one in enumerate(subjects.values())
    ]
    # A proposed VPA replaces the VPA of the same name.
    snapshot = read_lint_snapshot((*documents, *proposed), is_live=True).snapshot

    def find_problems(snapshot: LintSnapshot) -> list[RuleFinding]:
        return [
            finding
            for finding in check_snapshot(snapshot, ALL_RULES).findings
            if all(isinstance(change, ManifestChange) and change.subject in subjects for change in finding.changes)
        ]

    plan = plan_fixes(snapshot, find_problems, lambda before, after: before.kind == after.kind)
    return [
        one
        if one.manifest is None
        else replace(one, manifest=change_value(dict(one.manifest), plan.changes.get(_subject_of(one), ())))
        for one in proposals
    ]


def _subject_of(proposal: VpaProposal) -> LintSubject:
    metadata = (proposal.manifest or {}).get("metadata", {})
    kind = built_in("VerticalPodAutoscaler")
    return LintSubject(kind, metadata.get("namespace") or "default", metadata.get("name") or "")
