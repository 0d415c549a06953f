"""Rules about requests and limits, and their effect on the quality of service of a pod."""

from trimtab.autoscaling.container_amounts import CPU, MEMORY, RESOURCES, QualityOfService, format_amount, limit_of
from trimtab.autoscaling.limit_readers import find_limit_reader
from trimtab.autoscaling.lint_snapshot import LintSnapshot, LintWorkload, update_mode_of
from trimtab.autoscaling.objects import LintContainer
from trimtab.autoscaling.rule import (
    REMOVED,
    FindingIterator,
    LintRule,
    LintSeverity,
    ManifestChange,
    RuleFinding,
    lint_rule,
)
from trimtab.cluster.api.meta import value_or
from trimtab.cluster.runtime_signs import LimitReader

_GUIDE = "Gardener's guide on pod autoscaling (shoot_pod_autoscaling_best_practices.md)"
_LEASE_FLAGS = ("leader-elect", "leader-election", "enable-leader-election", "leader-election-enabled")


@lint_rule(
    "L33",
    LintSeverity.ERROR,
    "A pod without any request (BestEffort)",
    why="The scheduler counts the pod as if it used no resources: the pod may run on full nodes, is among the first "
    "that the kubelet evicts, and slows down other pods.",
    source=_GUIDE,
    fix="Give the pod requests for cpu and memory; `trimtab recommend` computes them from usage.",
)
def best_effort_pod(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each BestEffort workload: an error if its priority class is system-cluster-critical or
    system-node-critical, otherwise a warning. Workloads that get requests from a LimitRange or from a VPA that acts are
    left out."""
    for workload in snapshot.workloads:
        if workload.quality is not QualityOfService.BEST_EFFORT:
            continue
        if any(snapshot.default_request_in(workload.namespace, resource) for resource in RESOURCES):
            continue
        if any(update_mode_of(vpa) != "Off" for vpa in snapshot.vpas_of(workload.subject)):
            continue
        class_name = value_or(workload.spec.priority_class_name, "")
        priority = f" with priority class {class_name}" if workload.is_critical else ""
        # What the missing requests of a pod with this priority class cause.
        yield rule.report_problem(
            workload.subject,
            f"{workload.subject}{priority} has no requests and no limits.",
            path=workload.template_path,
            severity=LintSeverity.ERROR if workload.is_critical else LintSeverity.WARNING,
            outcome=(_WINDOWS_OUTCOME if workload.is_windows else _CRITICAL_OUTCOMES[class_name])
            if workload.is_critical
            else "",
        )


# The kubelet evicts no pod with such a priority (`evictPod` in pkg/kubelet/eviction/eviction_manager.go), and gives
# those of system-node-critical the OOM score of Guaranteed pods (pkg/kubelet/qos/policy.go, 1.36).
_CRITICAL_OUTCOMES = {
    "system-cluster-critical": "The scheduler counts the pod as if it used no resources: the pod may run "
    "on full nodes, where the kernel kills it first if the memory runs out, because the kubelet does not evict it.",
    "system-node-critical": "The scheduler counts the pod as if it used no resources: the pod may run on "
    "full nodes, where the kubelet evicts other pods in its place, because it does not evict this one.",
}
"""Priority class → what the missing requests cause on Linux."""
_WINDOWS_OUTCOME = (
    "The scheduler counts the pod as if it used no resources: the pod may run on full nodes. Windows ends no process "
    "if the memory runs out: it writes memory to disk, which slows down the whole node."
)


@lint_rule(
    "L34",
    LintSeverity.WARNING,
    "A Guaranteed pod without a stated reason",
    why="The pod cannot use more cpu than its request. A VPA sees only this limited usage, so it does not raise the "
    "request when the pod needs more.",
    source=_GUIDE,
    fix="Remove the cpu limit. If the limit is intended, keep it and state the reason: trimtab.dev/lint-ignore: "
    '"L34 pinned to cores by the CPU manager".',
)
def guaranteed_pod(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each Guaranteed workload, except those in which each container with a cpu limit reads
    it. If the workload is Guaranteed on purpose, its author states the reason in the annotation
    `trimtab.dev/lint-ignore`."""
    for workload in snapshot.workloads:
        if workload.quality is not QualityOfService.GUARANTEED or workload.is_windows:
            continue
        limited = [container for container in workload.spec.containers if limit_of(container, CPU)]
        # Without a limit of a container, the pod is Guaranteed by the resources of the whole pod.
        if limited and all(find_limit_reader(workload, container, CPU) is not None for container in limited):
            continue
        vpas = [vpa for vpa in snapshot.vpas_of(workload.subject) if update_mode_of(vpa) != "Off"]
        beside = f", and VPA {vpas[0].metadata.name} sizes it" if vpas else ""
        yield rule.report_problem(
            workload.subject,
            f"{workload.subject} is Guaranteed: its limits equal its requests{beside}.",
            path=workload.template_path,
        )


@lint_rule(
    "L35",
    LintSeverity.ERROR,
    "A cpu limit",
    why="The kernel stops the container for the rest of each 100 ms period in which the container has used up "
    "its limit, even if the node is idle. A container that therefore renews a Lease late loses the Lease.",
    source=_GUIDE,
    fix="Remove the cpu limit, unless the container reads it; the request alone ensures a fair share of the cpu.",
)
def cpu_limit(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each cpu limit of a pod that is not Guaranteed (see L34): an error for a container that
    elects a leader, otherwise a warning. A limit that the container reads is only an info, without advice to remove
    it."""
    for workload, container in _containers_with_limit(snapshot, CPU):
        if reader := find_limit_reader(workload, container, CPU):
            yield _read_limit(rule, workload, container, CPU, reader)
            continue
        leads = elects_leader(container)
        doing = " and renews a lease" if leads else ""
        path = workload.container_path(container, "resources", "limits", CPU)
        yield rule.report_problem(
            workload.subject,
            f"Container {container.name} of {workload.subject} has a cpu limit of "
            f"{format_amount(CPU, limit_of(container, CPU) or 0)}{doing}.",
            path=path,
            severity=LintSeverity.ERROR if leads else LintSeverity.WARNING,
            changes=_without_limit(workload, container),
        )


def _read_limit(
    rule: LintRule, workload: LintWorkload, container: LintContainer, resource: str, reader: LimitReader
) -> RuleFinding:
    """Returns the finding about a limit that must not be removed, because something in the container reads it."""
    return rule.report_problem(
        workload.subject,
        f"Container {container.name} of {workload.subject} has a {resource} limit of "
        f"{format_amount(resource, limit_of(container, resource) or 0)}, which {reader} reads.",
        path=workload.container_path(container, "resources", "limits", resource),
        severity=LintSeverity.INFO,
        outcome=f"Without the limit, {reader.without_limit}.",
        fix=f"Keep the limit (container-reads-limit). To do without it, first {reader.instead}.",
    )


def _without_limit(workload: LintWorkload, container: LintContainer) -> list[ManifestChange]:
    """Returns the changes that remove the cpu limit and keep the request. A container without a request gets one equal
    to the limit, as the API server has set it."""
    resources = value_or(container.resources, None)
    limits = value_or(resources.limits, {}) if resources is not None else {}
    requests = value_or(resources.requests, {}) if resources is not None else {}
    changes = [
        ManifestChange(workload.subject, workload.container_path(container, "resources", "limits", CPU), REMOVED)
    ]
    if CPU not in requests:
        path = workload.container_path(container, "resources", "requests", CPU)
        changes.append(ManifestChange(workload.subject, path, limits[CPU]))
    return changes


def _containers_with_limit(snapshot: LintSnapshot, resource: str) -> list[tuple[LintWorkload, LintContainer]]:
    return [
        (workload, container)
        for workload in snapshot.workloads
        if workload.quality is not QualityOfService.GUARANTEED and not workload.is_windows
        for container in workload.spec.containers
        if limit_of(container, resource)
    ]


def elects_leader(container: LintContainer) -> bool:
    """Returns whether a flag of the container turns on leader election."""
    for argument in container.arguments:
        name, _, value = argument.lstrip("-").partition("=")
        if argument.startswith("-") and name in _LEASE_FLAGS and value.lower() not in ("false", "0", "f"):
            return True
    return False


@lint_rule(
    "L36",
    LintSeverity.WARNING,
    "A memory limit without a stated healthy range",
    why="A container that needs a little more than usual is killed although its node has free memory.",
    source=_GUIDE,
    fix="Remove the limit, unless the container reads it. If the limit is intended, keep it well above all known "
    "peaks and state the reason: "
    'trimtab.dev/lint-ignore: "L36 peaks at 300Mi, more is a leak".',
)
def memory_limit(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each memory limit of a pod that is not Guaranteed; if usage is known, only for limits below
    1.5 times the peak. A limit that the container reads is only an info, without advice to remove it."""
    for workload, container in _containers_with_limit(snapshot, MEMORY):
        limit = limit_of(container, MEMORY) or 0
        usage = snapshot.usage_of(workload, container.name, MEMORY)
        if usage is not None and limit >= 1.5 * usage.max:
            continue
        if reader := find_limit_reader(workload, container, MEMORY):
            yield _read_limit(rule, workload, container, MEMORY, reader)
            continue
        peak_text = f"; its peak was {format_amount(MEMORY, usage.max)}" if usage is not None else ""
        yield rule.report_problem(
            workload.subject,
            f"Container {container.name} of {workload.subject} has a memory limit of "
            f"{format_amount(MEMORY, limit)}{peak_text}.",
            path=workload.container_path(container, "resources", "limits", MEMORY),
        )
