"""Rules about an HPA and a VPA on one workload."""

from collections.abc import Iterator
from math import ceil
from typing import Any

from trimtab.autoscaling.container_amounts import format_amount, request_of, running_containers, vpa_containers
from trimtab.autoscaling.lint_snapshot import (
    LintSnapshot,
    LintWorkload,
    controls_resource,
    subject_of,
    target_subject,
    update_mode_of,
)
from trimtab.autoscaling.replica_prediction import (
    HPA_TOLERANCE,
    describe_prediction,
    predict_replicas,
    ratios_at_rest,
    settle_on_average_value,
)
from trimtab.autoscaling.rule import FindingIterator, LintRule, LintSeverity, LintSubject, ManifestChange, lint_rule
from trimtab.cluster.api.autoscaling import HorizontalPodAutoscaler, ScalingRules, VerticalPodAutoscaler
from trimtab.cluster.quantity import NotAQuantity, parse
from trimtab.cluster.utilization_metrics import UtilizationMetric, utilization_metrics

VPA_MARGIN = 0.15
MAX_COUNT = 200
"""Used as the maximum of an HPA without maxReplicas. The API server accepts no such HPA, so it can only come from a
file."""
MIN_SCALE_DOWN_WINDOW_SECONDS = 1800
MIN_SECONDS_PER_REMOVED_POD = 300
SLOW_SCALE_DOWN: dict[str, Any] = {
    "stabilizationWindowSeconds": MIN_SCALE_DOWN_WINDOW_SECONDS,
    "policies": [{"type": "Pods", "value": 1, "periodSeconds": MIN_SECONDS_PER_REMOVED_POD}],
}
"""The scaleDown block from Gardener's guide: half an hour of stability, then one pod in five minutes."""
_VERSIONS_WITH_BEHAVIOR = ("autoscaling/v2", "autoscaling/v2beta2")
_GUIDE = "Gardener's guide on pod autoscaling (shoot_pod_autoscaling_best_practices.md)"


@lint_rule(
    "L01",
    LintSeverity.ERROR,
    "An HPA on the utilization of a resource that a VPA sizes",
    why="The HPA divides usage by the request, and the VPA computes the request from usage. Each of the two "
    "reacts to the other, so the replica count rises without bound, falls, or stays only while the "
    "distribution of usage does not change.",
    source=_GUIDE,
    fix="Let the HPA scale on an average value or a custom metric, or remove the resource from the VPA's "
    "controlledResources.",
)
def shared_resource(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each HPA metric of type Utilization whose request is set by a VPA on the same target."""
    for hpa in snapshot.hpas:
        target = target_subject(hpa.metadata, hpa.spec.scale_target_ref)
        workload = snapshot.workloads_by_subject.get(target)
        for metric in utilization_metrics(hpa):
            vpa = _vpa_of_metric(snapshot, target, workload, metric)
            if vpa is None:
                continue
            subject = subject_of("HorizontalPodAutoscaler", hpa.metadata)
            yield rule.report_problem(
                subject,
                f"{subject} scales {target.kind} {target.name} at {metric.percent} % of the {metric.resource} request, "
                f"and VPA {vpa.metadata.name} changes that request.",
                path=metric.path,
                outcome=_predict_outcome(snapshot, hpa, workload, metric),
                fix=_describe_fix(snapshot, hpa, workload, metric),
                changes=_average_value_changes(subject, workload, metric),
            )


def _vpa_of_metric(
    snapshot: LintSnapshot, target: LintSubject, workload: LintWorkload | None, metric: UtilizationMetric
) -> VerticalPodAutoscaler | None:
    """Returns the VPA that sets the requests with which the HPA's metric compares the usage, or None if there is
    none."""
    if workload is None:
        names = [metric.container or "*"]
    else:
        names = [one.name for one in vpa_containers(workload.spec) if metric.container in ("", one.name)]
    for vpa in snapshot.vpas_of(target):
        if any(controls_resource(vpa, name, metric.resource) for name in names):
            return vpa
    return None


def _predict_outcome(
    snapshot: LintSnapshot, hpa: HorizontalPodAutoscaler, workload: LintWorkload | None, metric: UtilizationMetric
) -> str:
    usage = _usage_of_metric(snapshot, workload, metric)
    if usage is None or workload is None:
        lowest, highest = (100 * ratio for ratio in ratios_at_rest(metric.percent))
        # The mean is never above P90 by much: a share of more than 100 % is no case that happens.
        above = "above that, the replica count rises round after round at constant load, and " if highest < 100 else ""
        return (
            f"The replica count stays only while the mean of the usage is {min(100, lowest):.0f} to "
            f"{min(100, highest):.0f} % of its 90th percentile: {above}below that, the count falls. With --usage "
            "the direction is known."
        )
    mean, p90 = usage
    replicas = _running_count(snapshot, hpa, workload)
    # The HPA's tolerance: the smallest of the tolerances for scaling up, for scaling down, and the default 0.1.
    shares = [
        share
        for direction in (hpa.spec.behavior.scale_up, hpa.spec.behavior.scale_down)
        if (share := read_tolerance(direction)) is not None
    ]
    prediction = predict_replicas(
        mean_to_p90=min(1.0, mean / p90),
        replicas=replicas,
        total=mean * replicas,
        target_percent=metric.percent,
        min_replicas=_least_count(hpa),
        max_replicas=hpa.spec.max_replicas or MAX_COUNT,
        tolerance=min((*shares, HPA_TOLERANCE)),
    )
    return (
        f"{describe_prediction(prediction)} At present the mean of the usage is {100 * min(1.0, mean / p90):.0f} "
        "% of its 90th percentile."
    )


def _usage_of_metric(
    snapshot: LintSnapshot, workload: LintWorkload | None, metric: UtilizationMetric
) -> tuple[float, float] | None:
    """Returns the mean and the P90 of the usage that the metric measures (of the pod or of a container), or None if a
    part is unknown."""
    if workload is None:
        return None
    names = [metric.container] if metric.container else [c.name for c in running_containers(workload.spec)]
    mean_sum, p90_sum = 0.0, 0.0
    for name in names:
        usage = snapshot.usage_of(workload, name, metric.resource)
        if usage is None or usage.mean is None:
            return None
        mean_sum, p90_sum = mean_sum + usage.mean, p90_sum + usage.p90
    return (mean_sum, p90_sum) if p90_sum > 0 and mean_sum > 0 else None


def read_tolerance(direction: ScalingRules | None) -> float | None:
    """Returns the tolerance of one direction as a share, or None if it is absent or is not a quantity."""
    if direction is None or direction.tolerance is None:
        return None
    try:
        return parse(direction.tolerance) / 1e9
    except NotAQuantity:
        return None


def _request_of_metric(workload: LintWorkload | None, metric: UtilizationMetric) -> int | None:
    """Returns the present request with which the HPA's metric compares the usage, or None if a container has no
    request."""
    if workload is None:
        return None
    requests = [
        request_of(container, metric.resource)
        for container in running_containers(workload.spec)
        if metric.container in ("", container.name)
    ]
    return None if not requests or None in requests else sum(filter(None, requests))


def _describe_fix(
    snapshot: LintSnapshot, hpa: HorizontalPodAutoscaler, workload: LintWorkload | None, metric: UtilizationMetric
) -> str:
    request = _request_of_metric(workload, metric)
    if not request:
        return ""
    amount = ceil(request * metric.percent / 100)
    value = format_amount(metric.resource, amount)
    return (
        f"Use an average value: {value} of {metric.resource} per pod is {metric.percent} % of the present "
        f"request{_settled_text(snapshot, hpa, workload, metric, amount)}. Or remove {metric.resource} from the "
        "VPA's controlledResources, or scale on a custom metric."
    )


def _settled_text(
    snapshot: LintSnapshot,
    hpa: HorizontalPodAutoscaler,
    workload: LintWorkload | None,
    metric: UtilizationMetric,
    amount: int,
) -> str:
    """Returns a sentence that says how many replicas, with which request, the workload has in the end if the metric's
    target is the average value `amount`. Empty if usage is unknown."""
    usage = _usage_of_metric(snapshot, workload, metric)
    if usage is None or workload is None:
        return ""
    mean, p90 = usage
    replicas = _running_count(snapshot, hpa, workload)
    settled = settle_on_average_value(
        total=mean * replicas,
        average_value=amount,
        mean_to_p90=min(1.0, mean / p90),
        min_replicas=_least_count(hpa),
        max_replicas=hpa.spec.max_replicas or MAX_COUNT,
    )
    pods = "pod" if settled.replicas == 1 else "pods"
    return (
        f"; the replica count then stays at {settled.replicas} {pods} of "
        f"{format_amount(metric.resource, settled.request)}"
    )


def _running_count(snapshot: LintSnapshot, hpa: HorizontalPodAutoscaler, workload: LintWorkload) -> int:
    """Returns how many pods run: by the HPA's status; otherwise at quiet times of the history; otherwise the number
    that the workload is meant to have."""
    subject = workload.subject
    counts = snapshot.usage.replicas if snapshot.usage is not None else {}
    observed = counts.get(subject.key)
    quiet = 0 if observed is None else round(observed.p5)
    return hpa.status.current_replicas or max(quiet, snapshot.needed_replicas(workload) or 1)


def _least_count(hpa: HorizontalPodAutoscaler) -> int:
    return 1 if hpa.spec.min_replicas is None else max(1, hpa.spec.min_replicas)


def _average_value_changes(
    subject: LintSubject, workload: LintWorkload | None, metric: UtilizationMetric
) -> tuple[ManifestChange, ...]:
    """Returns the change of the metric to an average value; empty for API versions that have no such target."""
    request = _request_of_metric(workload, metric)
    if not request or metric.is_old:
        return ()
    value = format_amount(metric.resource, ceil(request * metric.percent / 100))
    return (ManifestChange(subject, metric.path, {"type": "AverageValue", "averageValue": value}),)


@lint_rule(
    "L05",
    LintSeverity.WARNING,
    "An HPA that removes pods quickly while a VPA sizes them",
    why="Each pod that the HPA removes moves its load to the other pods. The VPA includes this load in its "
    "history, and keeps it for days.",
    source=_GUIDE,
    fix="Set a stabilization window of 1800 seconds in behavior.scaleDown, and a policy of one pod in 300 seconds.",
)
def fast_scale_down(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each HPA whose scale-down has a window below 1800 seconds, or removes more than one pod in
    300 seconds. The finding is only an info if no VPA has the same target."""
    for hpa in snapshot.hpas:
        problem = _scale_down_problem(hpa)
        if not problem:
            continue
        target = target_subject(hpa.metadata, hpa.spec.scale_target_ref)
        vpas = [vpa for vpa in snapshot.vpas_of(target) if update_mode_of(vpa) != "Off"]
        subject = subject_of("HorizontalPodAutoscaler", hpa.metadata)
        beside = f" while VPA {vpas[0].metadata.name} sizes its pods" if vpas else ""
        slow_down = ManifestChange(subject, ("spec", "behavior", "scaleDown"), SLOW_SCALE_DOWN)
        has_behavior = snapshot.document_value(subject).get("apiVersion") in _VERSIONS_WITH_BEHAVIOR
        yield rule.report_problem(
            subject,
            f"{subject} {problem}{beside}.",
            path=("spec", "behavior", "scaleDown"),
            severity=LintSeverity.WARNING if vpas else LintSeverity.INFO,
            outcome="" if vpas else "A short drop in load removes pods that are needed again minutes later.",
            changes=[slow_down] if has_behavior else (),
        )


def _scale_down_problem(hpa: HorizontalPodAutoscaler) -> str:
    """Returns in which way the scale-down is too fast, or an empty string if it is slow enough or disabled."""
    down = hpa.spec.behavior.scale_down or ScalingRules()
    if down.select_policy == "Disabled":
        return ""
    window = 300 if down.stabilization_window_seconds is None else down.stabilization_window_seconds
    if window < MIN_SCALE_DOWN_WINDOW_SECONDS:
        return f"removes pods after {window} seconds of lower load"
    rates = list(_removal_rates(down, hpa.spec.max_replicas))
    rate = (min if down.select_policy == "Min" else max)(rates, default=float("inf"))
    if rate > 1 / MIN_SECONDS_PER_REMOVED_POD:
        return "may remove more than one pod in 300 seconds"
    return ""


def _removal_rates(down: ScalingRules, max_replicas: int) -> Iterator[float]:
    """Yields, for each policy, how many pods per second it may remove. A percentage is taken of the HPA's maximum."""
    for policy in down.policies:
        pods = policy.value if policy.type == "Pods" else max(1, policy.value * max(1, max_replicas) / 100)
        yield pods / max(1, policy.period_seconds)


@lint_rule(
    "N06",
    LintSeverity.WARNING,
    "An HPA tolerance below the VPA's margin",
    why="The VPA's own changes of the request move the utilization by up to its margin of 15 %. With a smaller "
    "tolerance, the HPA changes the replica count after each of these changes.",
    source="VPA recommender, --recommendation-margin-fraction; HPA tolerance (beta since Kubernetes 1.35)",
    fix="Set the tolerance to 0.15 or more, or scale on a metric that does not depend on requests.",
)
def tolerance_below_margin(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each direction of an HPA whose tolerance is set to less than 0.15, if a VPA acts on the same
    target."""
    for hpa in snapshot.hpas:
        target = target_subject(hpa.metadata, hpa.spec.scale_target_ref)
        if not any(update_mode_of(vpa) != "Off" for vpa in snapshot.vpas_of(target)):
            continue
        subject = subject_of("HorizontalPodAutoscaler", hpa.metadata)
        for name, direction in (("scaleUp", hpa.spec.behavior.scale_up), ("scaleDown", hpa.spec.behavior.scale_down)):
            share = read_tolerance(direction)
            if share is not None and share < VPA_MARGIN:
                path = ("spec", "behavior", name, "tolerance")
                yield rule.report_problem(
                    subject,
                    f"{subject} has a tolerance of {share:g} for {name}, but a VPA changes requests by up to 15 %.",
                    path=path,
                    changes=[ManifestChange(subject, path, "150m")],
                )
