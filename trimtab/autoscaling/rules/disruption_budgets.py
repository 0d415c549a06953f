"""Rules about PodDisruptionBudgets."""

from collections import defaultdict
from collections.abc import Iterable
from math import ceil
from typing import Any

from trimtab.autoscaling.lint_snapshot import DEFAULT_NAMESPACE, LintSnapshot, LintWorkload, subject_of
from trimtab.autoscaling.objects import LintPod
from trimtab.autoscaling.rule import (
    FindingIterator,
    Fix,
    LintRule,
    LintSeverity,
    LintSubject,
    ManifestChange,
    NewManifest,
    lint_rule,
)
from trimtab.cluster.api.meta import value_or
from trimtab.cluster.api.workload import PodDisruptionBudget
from trimtab.cluster.free_name import choose_free_name
from trimtab.cluster.kinds import DAEMON_SET, built_in
from trimtab.cluster.selectors import labels_match

_GUIDE = "Gardener's guide on pod autoscaling (shoot_pod_autoscaling_best_practices.md)"
_SLEEPING = 1 << 30
"""Stands for the number of pods of a workload that has 0 replicas now, because the number that it has at other times is
not known."""
_BUDGETED_KINDS = ("Deployment", "StatefulSet", "Rollout")


@lint_rule(
    "L29",
    LintSeverity.WARNING,
    "Several replicas without a PodDisruptionBudget",
    why="Drains of several nodes can remove all replicas at once, and a VPA that evicts pods can remove half of them.",
    source=_GUIDE,
    fix="Add a PodDisruptionBudget with maxUnavailable 1.",
)
def missing_budget(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each Deployment or StatefulSet that wants at least two replicas and that no budget
    selects."""
    taken_names: defaultdict[str, set[str]] = defaultdict(set)
    for pdb in snapshot.pdbs:
        taken_names[subject_of("PodDisruptionBudget", pdb.metadata).namespace].add(pdb.metadata.name)
    for workload in snapshot.workloads:
        replicas = snapshot.needed_replicas(workload)
        if workload.subject.kind not in _BUDGETED_KINDS or replicas is None or replicas < 2:
            continue
        if not snapshot.pdbs_of(workload):
            yield rule.report_problem(
                workload.subject,
                f"{workload.subject} has {snapshot.describe_replicas(workload)}, but no PodDisruptionBudget "
                f"selects its pods.",
                changes=_new_budget(workload, taken_names[workload.namespace]),
            )


def _new_budget(workload: LintWorkload, taken_names: set[str]) -> tuple[Fix, ...]:
    """Returns the budget that the workload lacks, and adds its name to those that are taken in the namespace."""
    if not workload.pod_labels:
        return ()
    name = choose_free_name(workload.subject.name, workload.subject.kind, taken_names)
    taken_names.add(name)
    subject = LintSubject(built_in("PodDisruptionBudget"), workload.namespace, name)
    manifest: dict[str, Any] = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": subject.name, "namespace": subject.namespace},
        "spec": {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": dict(workload.pod_labels)},
        },
    }
    return (NewManifest(subject, manifest),)


@lint_rule(
    "L30",
    LintSeverity.ERROR,
    "A PodDisruptionBudget that never allows an eviction",
    why="Every eviction of the budget's pods is refused: node upgrades, the cluster autoscaler's scale-down and "
    "the VPA's updater all wait.",
    source="Kubernetes eviction API (policy/v1)",
    fix="Allow one pod to be unavailable: maxUnavailable 1, or a minAvailable below the number of pods.",
)
def blocking_budget(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each budget whose maxUnavailable is 0 (or 0 %), or whose minAvailable is the number of all
    pods that it may select."""
    for pdb in snapshot.pdbs:
        replicas = _most_replicas(snapshot, snapshot.workloads_of_pdb(pdb))
        subject = subject_of("PodDisruptionBudget", pdb.metadata)
        problem, change = _blocking_problem(pdb, subject, replicas)
        if problem:
            writer = _writer_of(pdb)
            yield rule.report_problem(
                subject,
                problem,
                path=change[0],
                fix=f"{writer} has created the budget and would undo a change of it: see its own settings."
                if writer
                else "",
                changes=() if writer else [ManifestChange(subject, change[0], change[1])],
            )


def _writer_of(pdb: PodDisruptionBudget) -> str:
    """Returns the kind and name of the object from whose settings a controller writes the budget; empty if none does.

    Some controllers do not mark their owner reference as the controller's, so every owner counts.
    """
    owners = pdb.metadata.owner_references
    owner = pdb.metadata.controller_owner or (owners[0] if owners else None)
    return "" if owner is None else f"{owner.kind_name} {owner.name}"


def _most_replicas(snapshot: LintSnapshot, workloads: Iterable[LintWorkload]) -> int | None:
    """Returns the largest number of pods that the workloads together may have, by their HPAs or their own counts; None
    if it is unknown."""
    counts = []
    for workload in workloads:
        hpas = snapshot.hpas_of(workload.subject)
        if not workload.is_scaled_by_count:
            return None
        counts.append(
            max(
                (h.spec.max_replicas for h in hpas),
                default=workload.replicas or (1 if workload.replicas is None else _SLEEPING),
            )
        )
    return sum(counts) if counts else None


def _blocking_problem(
    pdb: PodDisruptionBudget, subject: LintSubject, replicas: int | None
) -> tuple[str, tuple[tuple[str, ...], Any]]:
    """Returns a sentence about how the budget blocks evictions, and the change that allows them; an empty text if it
    does not block."""
    unavailable, available = value_or(pdb.spec.max_unavailable, None), value_or(pdb.spec.min_available, None)
    path = ("spec", "maxUnavailable" if unavailable is not None else "minAvailable")
    if unavailable is not None:
        blocks = unavailable == 0 or unavailable in ("0", "0%")
        return (f"{subject} has maxUnavailable 0." if blocks else ""), (path, 1)
    if available == "100%":
        # A percentage is rounded up: 99 % of three pods are three. Of an unknown number, a half is safe from two on.
        is_known = replicas is not None and replicas < _SLEEPING
        return f"{subject} requires that 100 % of its pods are available.", (
            path,
            max(0, (replicas or 1) - 1) if is_known else "50%",
        )
    if replicas is None or replicas <= 0 or available is None:
        return "", (path, None)
    needed = available if isinstance(available, int) else _round_up_percent(str(available), replicas)
    if needed is None or needed < replicas:
        return "", (path, None)
    pods = "pod" if replicas == 1 else "pods"
    return f"{subject} requires that {available} of {replicas} {pods} are available.", (path, replicas - 1)


def _round_up_percent(text: str, replicas: int) -> int | None:
    """Returns a percentage of the replicas, rounded up as the disruption controller does; None if the text is not a
    percentage."""
    number = text.removesuffix("%")
    return ceil(int(number) * replicas / 100) if number.isdecimal() and len(number) < 5 else None


@lint_rule(
    "L31",
    LintSeverity.WARNING,
    "A PodDisruptionBudget that protects unhealthy pods",
    why="A pod that crashes because it lacks memory counts as protected: neither the VPA nor a drain can replace "
    "it while too few other pods of the budget are healthy.",
    source=_GUIDE + "; unhealthyPodEvictionPolicy, stable since Kubernetes 1.31",
    fix="Set unhealthyPodEvictionPolicy to AlwaysAllow.",
)
def protected_unhealthy_pods(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each budget whose unhealthyPodEvictionPolicy is not AlwaysAllow. A budget that a controller
    writes is left out: the controller would undo the change, and may protect pods that are not ready yet on purpose."""
    for pdb in snapshot.pdbs:
        if not _writer_of(pdb) and pdb.spec.unhealthy_pod_eviction_policy != "AlwaysAllow":
            subject = subject_of("PodDisruptionBudget", pdb.metadata)
            path = ("spec", "unhealthyPodEvictionPolicy")
            yield rule.report_problem(
                subject,
                f"{subject} has no unhealthyPodEvictionPolicy AlwaysAllow.",
                path=path,
                changes=[ManifestChange(subject, path, "AlwaysAllow")],
            )


@lint_rule(
    "L32",
    LintSeverity.INFO,
    "A PodDisruptionBudget over the pods of a DaemonSet",
    why="Drains do not evict pods of DaemonSets, and the disruption controller cannot compute how many pods a "
    "DaemonSet should have: a percentage in the budget cannot be evaluated, and then every eviction of the "
    "pods is refused.",
    source=_GUIDE + "; Kubernetes disruption controller (only kinds with a scale subresource are counted)",
    fix="Use the DaemonSet's updateStrategy instead of a PodDisruptionBudget.",
)
def daemon_budget(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each budget that selects the pods of a DaemonSet."""
    for workload in snapshot.workloads:
        if workload.subject.kind == "DaemonSet":
            for pdb in snapshot.pdbs_of(workload):
                subject, writer = subject_of("PodDisruptionBudget", pdb.metadata), _writer_of(pdb)
                yield rule.report_problem(
                    subject,
                    f"{subject} selects pods of the DaemonSet {workload.subject}.",
                    path=("spec", "selector"),
                    fix=f"{writer} has created the budget: see its own settings." if writer else "",
                )


@lint_rule(
    "L48",
    LintSeverity.ERROR,
    "Several PodDisruptionBudgets over one pod",
    why="The eviction API refuses every eviction of a pod that several budgets select, whatever the budgets allow: "
    "drains, node upgrades, the cluster autoscaler and the VPA's updater wait.",
    source='Kubernetes eviction API, pkg/registry/core/pod/storage/eviction.go: "This pod has more than one '
    'PodDisruptionBudget, which the eviction subresource does not support"',
    fix="Keep one budget, or let the selectors of the budgets select different pods.",
)
def several_budgets(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each owner of pods, or pod without an owner, whose pods several budgets select. Pods of
    DaemonSets are not evicted."""
    budgets = {workload.subject: snapshot.pdbs_of(workload) for workload in snapshot.workloads}
    for owner, pod in snapshot.other_owners if snapshot.pdbs else ():
        budgets[owner] = tuple(pdb for pdb in snapshot.pdbs if _selects(pdb, pod))
    for subject, pdbs in budgets.items():
        if len(pdbs) > 1 and subject.kind != DAEMON_SET:
            names = ", ".join(sorted(pdb.metadata.name for pdb in pdbs))
            yield rule.report_problem(
                subject, f"{len(pdbs)} PodDisruptionBudgets select the pods of {subject}: {names}."
            )


def _selects(pdb: PodDisruptionBudget, pod: LintPod) -> bool:
    selector = value_or(pdb.spec.selector, None)
    return (
        selector is not None
        and (pdb.metadata.namespace or DEFAULT_NAMESPACE) == (pod.metadata.namespace or DEFAULT_NAMESPACE)
        and labels_match(selector, value_or(pod.metadata.labels, {}))
    )
