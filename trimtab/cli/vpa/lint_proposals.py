"""Proposed VPAs as `trimtab lint` leaves them: a rule that would change one of them has changed it already."""

from collections.abc import Sequence
from dataclasses import replace

from trimtab.autoscaling.fixes import change_value, plan_fixes
from trimtab.autoscaling.lint import check_snapshot
from trimtab.autoscaling.lint_snapshot import LintSnapshot
from trimtab.autoscaling.read_snapshot import read_lint_snapshot
from trimtab.autoscaling.rule import LintSubject, ManifestChange, RuleFinding
from trimtab.autoscaling.rules import ALL_RULES
from trimtab.autoscaling.simulation.propose_vpas import VpaProposal
from trimtab.cluster.kinds import built_in
from trimtab.cluster.yaml_documents import Document


def lint_proposals(proposals: Sequence[VpaProposal], documents: Sequence[Document]) -> list[VpaProposal]:
    """Returns the proposals with the fixes of all rules of lint that change only proposed VPAs, next to the objects of
    the cluster."""
    subjects = {_subject_of(one): one for one in proposals if one.manifest is not None}
    proposed = [
        Document(file="proposed", index=index, value=dict(one.manifest or {}))
        for index, one in enumerate(subjects.values())
    ]
    # A proposed VPA replaces the VPA of the same name.
    snapshot = read_lint_snapshot((*documents, *proposed), is_live=True).snapshot

    def find_problems(checked: LintSnapshot) -> list[RuleFinding]:
        return [
            finding
            for finding in check_snapshot(checked, ALL_RULES).findings
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
