"""Rules about the metrics, bounds and behavior of an HPA."""

from trimtab.autoscaling.container_amounts import CPU, request_of, running_containers, running_request
from trimtab.autoscaling.lint_snapshot import LintSnapshot, LintWorkload, subject_of, target_subject
from trimtab.autoscaling.rule import (
    REMOVED,
    FindingIterator,
    LintRule,
    LintSeverity,
    LintSubject,
    ManifestChange,
    Needs,
    lint_rule,
)
from trimtab.autoscaling.usage_history import ResourceUsage
from trimtab.cluster.api.autoscaling import HorizontalPodAutoscaler, ScalingRules
from trimtab.cluster.api.meta import value_or
from trimtab.cluster.format_count import format_count
from trimtab.cluster.kinds import DAEMON_SET, DEPLOYMENT, REPLICA_SET, STATEFUL_SET
from trimtab.cluster.timestamps import parse_timestamp
from trimtab.cluster.utilization_metrics import (
    follows_no_resource,
    follows_pods_only,
    utilization_metrics,
)

ZERO_REPLICAS_MINOR = 37
"""The minor version of Kubernetes from which on the feature HPAScaleToZero is on by default (beta in 1.37)."""
MAX_UP_WINDOW_SECONDS = 60
LONG_AT_MAX_SECONDS = 3600
SPREAD_OF_CONNECTIONS = 2.0
_GUIDE = "Gardener's guide on pod autoscaling (shoot_pod_autoscaling_best_practices.md)"


def _subject(hpa: HorizontalPodAutoscaler) -> LintSubject:
    return subject_of("HorizontalPodAutoscaler", hpa.metadata)


def _workload(snapshot: LintSnapshot, hpa: HorizontalPodAutoscaler) -> LintWorkload | None:
    return snapshot.workloads_by_subject.get(target_subject(hpa.metadata, hpa.spec.scale_target_ref))


@lint_rule(
    "L03",
    LintSeverity.ERROR,
    "An HPA on utilization of pods without a request",
    why="The HPA cannot compute the metric (FailedGetResourceMetric), so it neither adds nor removes pods.",
    source="Kubernetes HPA, metrics/utilization.go: a container without a request fails the whole metric",
    fix="Give every container a request for the resource, or use a ContainerResource metric of a container that "
    "has a request.",
)
def missing_request(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each utilization metric for which a container has no request. A limit and a LimitRange of
    the namespace each count as a request. A pod-level request counts for metrics of whole pods, not for those of one
    container (`calculateRequests` of the HPA's controller)."""
    for hpa in snapshot.hpas:
        workload = _workload(snapshot, hpa)
        if workload is None:
            continue
        has_pod_level = value_or(workload.spec.resources, None) is not None
        for metric in utilization_metrics(hpa):
            if snapshot.default_request_in(workload.namespace, metric.resource):
                continue
            if has_pod_level and not metric.container and running_request(workload.spec, metric.resource):
                continue
            names = [
                container.name
                for container in running_containers(workload.spec)
                if metric.container in ("", container.name) and request_of(container, metric.resource) is None
            ]
            if names:
                yield rule.report_problem(
                    _subject(hpa),
                    f"{_subject(hpa)} needs the {metric.resource} request of every pod of {workload.subject}, "
                    f"but {_join_names(names)} none.",
                    path=metric.path,
                )


def _join_names(names: list[str]) -> str:
    return f"container {names[0]} has" if len(names) == 1 else f"containers {', '.join(names)} have"


@lint_rule(
    "L04",
    LintSeverity.WARNING,
    "An HPA on the sum of a pod that has several containers",
    why="The metric is the sum over all containers of a pod. A sidecar with a large request and little usage "
    "hides that the main container is at its limit.",
    source=_GUIDE + "; ContainerResource metrics, stable since Kubernetes 1.30",
    fix="Use a metric of type ContainerResource for the container that does the work.",
)
def sum_of_containers(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each utilization metric of type Resource whose pods have several containers, either in the
    template or because a webhook has injected some into the running pods."""
    for hpa in snapshot.hpas:
        workload = _workload(snapshot, hpa)
        if workload is None:
            continue
        names = {container.name for container in running_containers(workload.spec)}
        for pod in snapshot.pods_of(workload):
            names |= {container.name for container in running_containers(pod.spec)}
        for metric in utilization_metrics(hpa):
            if not metric.container and len(names) > 1:
                yield rule.report_problem(
                    _subject(hpa),
                    f"{_subject(hpa)} uses the sum of {format_count(len(names), 'container')} of each pod "
                    f"({', '.join(sorted(names))}).",
                    path=metric.path,
                )


@lint_rule(
    "L06",
    LintSeverity.INFO,
    "An HPA that adds pods no faster than it removes them",
    why="Load rises faster than it falls. Pods that are added too late cause errors, while pods that are removed "
    "late cost little.",
    source=_GUIDE,
    fix="Let the HPA add pods fast: with a window of at most 60 seconds, and with policies at least as fast as "
    "those for scale-down.",
)
def slow_scale_up(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each HPA whose scale-up window is above 60 seconds, or above its scale-down window."""
    for hpa in snapshot.hpas:
        up, down = hpa.spec.behavior.scale_up, hpa.spec.behavior.scale_down or ScalingRules()
        window = 0 if up is None else up.stabilization_window_seconds or 0
        down_window = 300 if down.stabilization_window_seconds is None else down.stabilization_window_seconds
        if window > MAX_UP_WINDOW_SECONDS or window > down_window:
            path = ("spec", "behavior", "scaleUp", "stabilizationWindowSeconds")
            yield rule.report_problem(
                _subject(hpa),
                f"{_subject(hpa)} waits {window} seconds before it adds a pod, but only {down_window} before it "
                "removes one.",
                path=path,
                changes=[ManifestChange(_subject(hpa), path, min(MAX_UP_WINDOW_SECONDS, down_window))],
            )


@lint_rule(
    "L07",
    LintSeverity.ERROR,
    "A replica count in the manifest of a workload that an HPA scales",
    why="Each time that the manifest is applied, the workload is scaled to the count in the manifest. At peak "
    "load most of its pods are deleted at once, and the others get the whole load until the HPA has read its "
    "metrics again and new pods are ready.",
    source=_GUIDE + "; Kubernetes, Server-Side Apply: transferring ownership",
    fix="Remove spec.replicas from the manifest; the HPA's minReplicas is the lower bound. Before you apply the "
    "manifest for the first time, transfer the ownership of the running count, or it may fall to 1: apply "
    "only the count with --server-side and another --field-manager, or remove it with `kubectl apply "
    "edit-last-applied`.",
    needs=(Needs.MANIFESTS,),
)
def fixed_replicas(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each workload whose manifest has `replicas` although an HPA scales it."""
    for workload in snapshot.workloads:
        hpas = snapshot.hpas_of(workload.subject)
        if workload.replicas is None or not hpas or not workload.is_scaled_by_count:
            continue
        hpa = hpas[0]
        yield rule.report_problem(
            workload.subject,
            f"{workload.subject} has {format_count(workload.replicas, 'replica')} in its manifest, but HPA "
            f"{hpa.metadata.name} scales it up to {hpa.spec.max_replicas}.",
            path=("spec", "replicas"),
            outcome=_outcome_of_applying(workload.replicas, hpa.spec.max_replicas),
            changes=[ManifestChange(workload.subject, ("spec", "replicas"), REMOVED)],
        )


def _outcome_of_applying(written: int, maximum: int) -> str:
    """Returns what happens to the number of replicas each time the manifest is applied."""
    if written < maximum:
        lost = maximum - written
        pods = "1 pod is" if lost == 1 else f"up to {lost} pods are"
        return (
            f"If the manifest is applied at peak load, {pods} deleted at once, and the others get the whole load until "
            "the HPA has read its metrics again and new pods are ready."
        )
    return (
        f"Each time the manifest is applied, the workload is scaled to {written} at once, until the HPA lowers "
        "the count again."
    )


@lint_rule(
    "L08",
    LintSeverity.INFO,
    "A minimum of replicas that differs much from the count at quiet times",
    why="If the minimum is above the count at quiet times, you pay for pods that are not needed. If the minimum "
    "is far below, the workload has too few pods at the start of each rise in load.",
    source=_GUIDE,
    fix="Set minReplicas near the fifth percentile of the observed replica count.",
    needs=(Needs.REPLICAS,),
)
def unusual_minimum(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each HPA whose minReplicas differs from the P5 of the observed number of replicas by more
    than 20 % and by more than one pod."""
    assert snapshot.usage is not None
    for hpa in snapshot.hpas:
        target = target_subject(hpa.metadata, hpa.spec.scale_target_ref)
        counts = snapshot.usage.replicas.get(target.key)
        minimum = 1 if hpa.spec.min_replicas is None else hpa.spec.min_replicas
        if counts is not None and abs(counts.p5 - minimum) > max(1.0, 0.2 * counts.p5):
            yield rule.report_problem(
                _subject(hpa),
                f"{_subject(hpa)} has minReplicas {minimum}, but at quiet times {counts.p5:g} pods ran.",
                path=("spec", "minReplicas"),
            )


@lint_rule(
    "L09",
    LintSeverity.ERROR,
    "A minimum of no replicas with metrics of pods only",
    why="Without pods there is no cpu and no memory to measure, so the workload would never be scaled up again. "
    "The API server refuses such an HPA. Before Kubernetes 1.37 it refuses any minimum of 0, unless a "
    "feature gate allows it.",
    source="Kubernetes, feature gate HPAScaleToZero (alpha until 1.36)",
    fix="Set minReplicas to 1 or more, or add an Object or External metric.",
)
def zero_minimum(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each HPA with minReplicas 0 and no Object or External metric, before Kubernetes 1.37 (see
    N05)."""
    if snapshot.minor is not None and snapshot.minor >= ZERO_REPLICAS_MINOR:
        return
    for hpa in snapshot.hpas:
        if hpa.spec.min_replicas == 0 and follows_pods_only(hpa):
            yield rule.report_problem(
                _subject(hpa),
                f"{_subject(hpa)} has minReplicas 0 and uses only metrics of its pods.",
                path=("spec", "minReplicas"),
                changes=[ManifestChange(_subject(hpa), ("spec", "minReplicas"), 1)],
            )


@lint_rule(
    "N05",
    LintSeverity.ERROR,
    "A minimum of no replicas without a metric that can scale the workload up (Kubernetes 1.37 and later)",
    why="From Kubernetes 1.37 on, a minimum of 0 is allowed with an Object or External metric. Metrics of pods "
    "cannot scale up a workload that has no pods, so the API server refuses an HPA that has only such "
    "metrics.",
    source="Kubernetes 1.37, HPAScaleToZero (beta); this rule replaces L09",
    fix="Add an Object or External metric, or set minReplicas to 1.",
    needs=(Needs.VERSION,),
)
def unwakeable_minimum(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each HPA with minReplicas 0 and no Object or External metric, from Kubernetes 1.37 on."""
    if snapshot.minor is None or snapshot.minor < ZERO_REPLICAS_MINOR:
        return
    for hpa in snapshot.hpas:
        if hpa.spec.min_replicas == 0 and follows_pods_only(hpa):
            yield rule.report_problem(
                _subject(hpa),
                f"{_subject(hpa)} has minReplicas 0, but no Object or External metric.",
                path=("spec", "minReplicas"),
                changes=[ManifestChange(_subject(hpa), ("spec", "minReplicas"), 1)],
            )


@lint_rule(
    "L10",
    LintSeverity.WARNING,
    "A minimum of replicas below what availability requires",
    why="At its minimum the workload cannot lose a pod: its PodDisruptionBudget allows no eviction, or a zone "
    "has no pod.",
    source=_GUIDE + "; PodDisruptionBudgets",
    fix="Raise minReplicas above the budget's minAvailable, and at least to the number of zones that the pods "
    "must cover.",
)
def minimum_below_availability(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each HPA whose minimum is at most the minAvailable of a budget, or is below the minDomains
    of a topology spread constraint with DoNotSchedule."""
    for hpa in snapshot.hpas:
        workload = _workload(snapshot, hpa)
        if workload is None:
            continue
        minimum = 1 if hpa.spec.min_replicas is None else hpa.spec.min_replicas
        needed, reason = 0, ""
        for pdb in snapshot.pdbs_of(workload):
            available = value_or(pdb.spec.min_available, None)
            if isinstance(available, int) and available + 1 > needed and available < hpa.spec.max_replicas:
                needed, reason = available + 1, f"budget {pdb.metadata.name} keeps {available} available"
        for constraint in value_or(workload.spec.topology_spread_constraints, ()):
            domains = value_or(constraint.min_domains, 0)
            if constraint.when_unsatisfiable == "DoNotSchedule" and domains > needed:
                needed, reason = (
                    domains,
                    f"the pods must cover {format_count(domains, 'value')} of {constraint.topology_key}",
                )
        if 0 < minimum < needed:
            yield rule.report_problem(
                _subject(hpa),
                f"{_subject(hpa)} may scale the workload down to {minimum}, but {reason}.",
                path=("spec", "minReplicas"),
                changes=[ManifestChange(_subject(hpa), ("spec", "minReplicas"), min(needed, hpa.spec.max_replicas))],
            )


@lint_rule(
    "L11",
    LintSeverity.WARNING,
    "An HPA that has been at its maximum for an hour",
    why="At its maximum an HPA adds no pods: more load increases the latency, and no Event reports this.",
    source=_GUIDE,
    fix="Raise maxReplicas to the largest count that the workload may need, and set an alert for when the count "
    "is close to it.",
    needs=(Needs.LIVE,),
)
def count_at_maximum(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each HPA that runs at least 90 % of its maxReplicas and has not changed the number of
    replicas for more than an hour."""
    for hpa in snapshot.hpas:
        current, maximum = hpa.status.current_replicas, hpa.spec.max_replicas
        changed = parse_timestamp(hpa.status.last_scale_time or "")
        if maximum < 2 or current < 0.9 * maximum or changed is None or snapshot.now is None:
            continue
        if snapshot.now - changed > LONG_AT_MAX_SECONDS:
            hours = (snapshot.now - changed) // 3600
            yield rule.report_problem(
                _subject(hpa),
                f"{_subject(hpa)} has {current} of {format_count(maximum, 'replica')}, and has not changed the "
                f"count for {hours} h.",
                path=("spec", "maxReplicas"),
            )


@lint_rule(
    "L12",
    LintSeverity.WARNING,
    "An HPA on cpu of pods that are ready before their start-up peak is over",
    why="The HPA counts a pod's cpu as soon as the pod is ready. Each new pod seems overloaded, so the HPA adds "
    "even more pods.",
    source=_GUIDE,
    fix="Let a startupProbe or the readinessProbe succeed only after the peak, or give the pod more cpu during "
    "its start.",
    needs=(Needs.USAGE,),
)
def early_readiness(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each HPA on cpu with a container whose peak after its start is more than twice its median,
    and which has neither a startupProbe nor a readinessProbe with a delay."""
    for hpa in snapshot.hpas:
        workload = _workload(snapshot, hpa)
        if workload is None or not any(metric.resource == CPU for metric in utilization_metrics(hpa)):
            continue
        for container in workload.spec.containers:
            usage = snapshot.usage_of(workload, container.name, CPU)
            probe = container.readiness_probe
            if usage is None or usage.start_peak is None or container.startup_probe is not None:
                continue
            if usage.start_peak > 2 * usage.p50 and (probe is None or probe.initial_delay_seconds < 30):
                yield rule.report_problem(
                    _subject(hpa),
                    f"Container {container.name} of {workload.subject} uses {usage.start_peak:.0f}m of cpu "
                    f"during its start and {usage.p50:.0f}m later, but its pod is ready before the start-up peak "
                    "is over.",
                )


@lint_rule(
    "L13",
    LintSeverity.INFO,
    "An HPA over pods with uneven load",
    why="The HPA uses the mean over all pods: a pod with a third of all connections is overloaded while the mean "
    "is low. A VPA also computes only one request for all pods.",
    source=_GUIDE,
    fix="Balance requests instead of connections, or let clients reconnect from time to time.",
    needs=(Needs.USAGE,),
)
def uneven_pods(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each HPA on cpu if one pod's mean usage is above 50m and more than twice the mean usage of
    another pod."""
    for hpa in snapshot.hpas:
        workload = _workload(snapshot, hpa)
        if workload is None:
            continue
        for container in workload.spec.containers:
            usage = snapshot.usage_of(workload, container.name, CPU)
            if usage is not None and _is_uneven(usage):
                low, high = min(usage.pod_means), max(usage.pod_means)
                yield rule.report_problem(
                    _subject(hpa),
                    f"Pods of {workload.subject} use {low:.0f}m to {high:.0f}m of cpu on average (container "
                    f"{container.name}).",
                )


def _is_uneven(usage: ResourceUsage) -> bool:
    means = usage.pod_means
    return len(means) > 1 and max(means) >= 50 and max(means) > SPREAD_OF_CONNECTIONS * min(means)


@lint_rule(
    "L42",
    LintSeverity.INFO,
    "An HPA without a resource metric",
    why="While the metrics adapter or its source is down, the HPA cannot change the replica count. With cpu as a "
    "second metric it can still add pods.",
    source="Kubernetes HPA: if one of several metrics fails, the HPA still adds pods but removes none",
    fix="Add a cpu metric with a high average value, which is used while the other metrics fail.",
)
def no_resource_metric(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each HPA whose metrics are all custom or external."""
    for hpa in snapshot.hpas:
        if follows_no_resource(hpa):
            kinds = ", ".join(sorted({metric.type for metric in hpa.spec.metrics}))
            yield rule.report_problem(
                _subject(hpa), f"{_subject(hpa)} uses only metrics of type {kinds}.", path=("spec", "metrics")
            )


@lint_rule(
    "L41",
    LintSeverity.ERROR,
    "A proportional autoscaler",
    why="The replica count or the size depends on the number of nodes and not on the load. If an HPA or a VPA "
    "also acts on the workload, two controllers write the same field, and the last write counts.",
    source=_GUIDE,
    fix="Scale the workload by its load, with only an HPA or only a VPA.",
)
def proportional_autoscaler(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each cluster-proportional autoscaler, recognised by its image. It is an error if its target
    has an HPA or a VPA too."""
    for workload in snapshot.workloads:
        for container in workload.spec.containers:
            vertical = "cluster-proportional-vertical-autoscaler" in container.image
            if not vertical and "cluster-proportional-autoscaler" not in container.image:
                continue
            target = _proportional_target(workload.namespace, container.arguments)
            others = () if target is None else (*snapshot.hpas_of(target), *snapshot.vpas_of(target))
            others_text = ", and another autoscaler changes the same workload" if others else ""
            yield rule.report_problem(
                workload.subject,
                f"{workload.subject} scales {target or 'its target'} by the number of nodes{others_text}.",
                severity=LintSeverity.ERROR if others else LintSeverity.INFO,
            )


def _proportional_target(namespace: str, arguments: tuple[str, ...]) -> LintSubject | None:
    """Returns the target of `--target=deployment/NAME` (the kind in upper or lower case), or None if there is no such
    argument."""
    kinds = {"deployment": DEPLOYMENT, "statefulset": STATEFUL_SET, "daemonset": DAEMON_SET, "replicaset": REPLICA_SET}
    for argument in arguments:
        flag, _, value = argument.partition("=")
        if flag == "--namespace" and value:
            namespace = value
    for argument in arguments:
        flag, _, value = argument.partition("=")
        kind, _, name = value.partition("/")
        if flag == "--target" and name and kind.lower() in kinds:
            return LintSubject(kinds[kind.lower()], namespace, name)
    return None
