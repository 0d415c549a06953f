"""Rules about the object that an HPA names as its target."""

from trimtab.autoscaling.lint_snapshot import LintSnapshot, subject_of
from trimtab.autoscaling.rule import FindingIterator, LintRule, LintSeverity, LintSubject, ManifestChange, lint_rule
from trimtab.cluster.kinds import REPLICATION_CONTROLLER, group_kind, groups_of, is_former_group, spell_kind


@lint_rule(
    "L46",
    LintSeverity.ERROR,
    "An HPA whose target has no API group, a former one, or a misspelt kind",
    why="Without an apiVersion, the HPA's controller looks for the kind in the core group; with extensions/v1beta1, in "
    "a group that no API server has served workloads in since Kubernetes 1.16. It finds nothing (FailedGetScale), "
    "so it neither adds nor removes pods. The API server of Kubernetes 1.36 refuses a new HPA without a group, and "
    "accepts one with a former group; those that are stored already remain. No group has a kind `deployment`: the "
    "names of kinds are case-sensitive.",
    source="Kubernetes HPA, podautoscaler/horizontal.go: ParseGroupVersion of scaleTargetRef.apiVersion",
    fix="Set scaleTargetRef.apiVersion to the present one, such as apps/v1 for a Deployment, and spell kind exactly.",
)
def target_without_group(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each HPA whose target is in a former group of its kind, or in the core group, unless it is a
    ReplicationController, the only kind of that group with a replica count."""
    for hpa in snapshot.hpas:
        target, subject = hpa.spec.scale_target_ref, subject_of("HorizontalPodAutoscaler", hpa.metadata)
        group, spelling = target.api_version.rpartition("/")[0], spell_kind(target.kind_name)
        if group and spelling != target.kind_name and group in groups_of(spelling):
            yield rule.report_problem(
                subject,
                f"{subject} names the kind {target.kind_name} as its target instead of {spelling}, so it scales "
                "nothing.",
                path=("spec", "scaleTargetRef"),
                changes=[ManifestChange(subject, ("spec", "scaleTargetRef", "kind"), spelling)],
            )
            continue
        if (group and not is_former_group(group, target.kind_name)) or target.kind_name == REPLICATION_CONTROLLER:
            continue
        namespace = subject.namespace
        where = f"in group {group}, where no API server serves it any more" if group else "without an API group"
        meant = snapshot.workloads_by_subject.get(LintSubject(group_kind("", target.kind_name), namespace, target.name))
        path = ("spec", "scaleTargetRef", "apiVersion")
        yield rule.report_problem(
            subject,
            f"{subject} names {target.kind_name} {target.name} as its target {where}, so it scales nothing.",
            path=path[:2],
            changes=[ManifestChange(subject, path, meant.api_version)] if meant is not None else (),
        )
