"""Rules about minAllowed, maxAllowed and limits under a VPA."""

from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any

from trimtab.autoscaling.container_amounts import (
    CPU,
    MEMORY,
    RESOURCES,
    QualityOfService,
    amount_in,
    format_amount,
    limit_of,
    request_of,
    vpa_containers,
)
from trimtab.autoscaling.lint_snapshot import (
    EVICTING_MODES,
    LintSnapshot,
    LintWorkload,
    container_policy_of,
    controls_resource,
    policies_path,
    subject_of,
    target_subject,
    update_mode_of,
)
from trimtab.autoscaling.node_sizes import largest_allocatable
from trimtab.autoscaling.objects import LintContainer
from trimtab.autoscaling.ratio_minima import minimum_changes, unmet_minima, wildcard_policy
from trimtab.autoscaling.request_changes import cap_at_limit, change_request
from trimtab.autoscaling.rule import (
    FindingIterator,
    LintRule,
    LintSeverity,
    LintSubject,
    ManifestChange,
    Needs,
    lint_rule,
)
from trimtab.autoscaling.vpa_recommenders import read_recommenders
from trimtab.cluster.api.autoscaling import VerticalPodAutoscaler

MAX_LIMIT_RATIO = 1.2
VPA_MARGIN_FACTOR = 1.15
"""The factor by which the recommender multiplies a percentile: --recommendation-margin-fraction is 0.15."""
UPDATER_MIN_REPLICAS = 2
"""The default of the updater's --min-replicas."""
POD_FLOOR = {CPU: 25, MEMORY: 250 << 20}
"""The defaults of the recommender's --pod-recommendation-min-cpu-millicores and --pod-recommendation-min-memory-mb (in
MiB)."""
_FLOOR_FLAGS = {CPU: "pod-recommendation-min-cpu-millicores", MEMORY: "pod-recommendation-min-memory-mb"}
_CAP_FLAGS = {CPU: "container-recommendation-max-allowed-cpu", MEMORY: "container-recommendation-max-allowed-memory"}
_TOO_SMALL_ALONE = (
    "The VPA's updater does not evict pods of a workload with so few replicas: the pods keep a request that is "
    "too small until they are recreated and the VPA's webhook changes it."
)
_GUIDE = "Gardener's guide on pod autoscaling (shoot_pod_autoscaling_best_practices.md)"


def active_vpas(snapshot: LintSnapshot) -> Iterator[tuple[VerticalPodAutoscaler, LintSubject, LintWorkload | None]]:
    """Yields (VPA, identity of its target, target) for each VPA whose mode is not Off. The target is None if it is not
    among the objects."""
    for vpa in snapshot.vpas:
        if update_mode_of(vpa) != "Off":
            target = snapshot.workloads_by_subject.get(target_subject(vpa.metadata, vpa.spec.target_ref))
            yield vpa, subject_of("VerticalPodAutoscaler", vpa.metadata), target


def least_replicas(vpa: VerticalPodAutoscaler) -> int:
    """Returns the number of live pods below which the updater does not act on the VPA's target."""
    written = vpa.spec.update_policy.min_replicas
    return UPDATER_MIN_REPLICAS if written is None else written


def limit_ratios(vpa: VerticalPodAutoscaler, workload: LintWorkload) -> Iterator[tuple[LintContainer, str, float]]:
    """Yields (container, resource, limit ÷ request) for each limit that the VPA changes in proportion to the
    request."""
    if workload.quality is not QualityOfService.BURSTABLE:
        return
    for container in workload.spec.containers:
        if container_policy_of(vpa, container.name).controlled_values == "RequestsOnly":
            continue
        for resource in RESOURCES:
            request, limit = request_of(container, resource), limit_of(container, resource)
            if request and limit and controls_resource(vpa, container.name, resource):
                yield container, resource, limit / request


def requests_only_change(vpa: VerticalPodAutoscaler, subject: LintSubject, container: str) -> ManifestChange:
    """Returns the change that sets the VPA's policy for a container to RequestsOnly."""
    path = policies_path(vpa, container)
    if isinstance(path[-1], int):
        return ManifestChange(subject, (*path, "controlledValues"), "RequestsOnly")
    value: Any = {"containerName": "*", "controlledValues": "RequestsOnly"}
    return ManifestChange(subject, (*path, len(vpa.spec.resource_policy.container_policies)), value)


@lint_rule(
    "L14",
    LintSeverity.ERROR,
    "A VPA that multiplies limits",
    why="With RequestsAndLimits, the default, the VPA keeps the ratio of limit to request: if the request grows "
    "tenfold, the limit also grows tenfold, far beyond the range that was tested.",
    source=_GUIDE + "; VPA, pkg/utils/vpa/limit_and_request_scaling.go",
    fix="Set controlledValues to RequestsOnly.",
)
def multiplied_limits(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each VPA with RequestsAndLimits that sizes a Burstable container whose limit is more than
    1.2 times its request."""
    for vpa, subject, workload in active_vpas(snapshot):
        if workload is None:
            continue
        for container, resource, ratio in limit_ratios(vpa, workload):
            if ratio > MAX_LIMIT_RATIO:
                limit = limit_of(container, resource) or 0
                yield rule.report_problem(
                    subject,
                    f"{subject} scales the {resource} limit of container {container.name}, which is {ratio:g} "
                    "times the request.",
                    path=policies_path(vpa, container.name),
                    outcome=f"If the VPA doubles the request, the limit rises from {format_amount(resource, limit)} "
                    f"to {format_amount(resource, 2 * limit)}.",
                    changes=_requests_only_changes(snapshot, vpa, subject, workload, container),
                )


def _requests_only_changes(
    snapshot: LintSnapshot,
    vpa: VerticalPodAutoscaler,
    subject: LintSubject,
    workload: LintWorkload,
    container: LintContainer,
) -> list[ManifestChange]:
    """Returns the changes that give the container RequestsOnly. Under a LimitRange's ratio of limit to request it also
    needs a minimum, so only its own policy is changed."""
    path = policies_path(vpa, container.name)
    governed = [one for one in vpa_containers(workload.spec) if policies_path(vpa, one.name) == path]
    if not any(unmet_minima(snapshot, vpa, workload, one) for one in governed):
        return [requests_only_change(vpa, subject, container.name)]
    minima = unmet_minima(snapshot, vpa, workload, container)
    return minimum_changes(snapshot, vpa, subject, container.name, minima)


@lint_rule(
    "L16",
    LintSeverity.WARNING,
    "A VPA without minAllowed",
    why="After a quiet night the requests are so small that the pods have too few resources in the morning, and "
    "the VPA evicts them.",
    source=_GUIDE,
    fix="Set minAllowed to the highest recommendation for an idle container.",
)
def missing_minimum(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each VPA that has no minAllowed for a container that it controls. If usage is known, the fix
    has the numbers of the quietest day."""
    for vpa, subject, workload in active_vpas(snapshot):
        names = _container_names(workload)
        missing = [
            name
            for name in names
            if any(controls_resource(vpa, name, r) for r in RESOURCES)
            and not container_policy_of(vpa, name).min_allowed
        ]
        if missing:
            changes = _idle_minimum(snapshot, vpa, subject, workload, missing)
            minima = (
                change.value.get("minAllowed", change.value) for change in changes if isinstance(change.value, dict)
            )
            amounts = "; ".join(" and ".join(f"{amount} of {name}" for name, amount in one.items()) for one in minima)
            yield rule.report_problem(
                subject,
                f"{subject} has no minAllowed for {_list_names(missing)}.",
                path=policies_path(vpa, missing[0]),
                changes=changes,
                fix=f"Set minAllowed to {amounts}, which is the 90th percentile of the usage on the quietest day "
                "plus 15 %."
                if amounts
                else "",
            )


def _container_names(workload: LintWorkload | None) -> list[str]:
    return ["*"] if workload is None else [container.name for container in vpa_containers(workload.spec)]


def _list_names(names: list[str]) -> str:
    if names == ["*"]:
        return "its containers"
    return f"container {names[0]}" if len(names) == 1 else f"containers {', '.join(names[:-1])} and {names[-1]}"


def _idle_minimum(
    snapshot: LintSnapshot,
    vpa: VerticalPodAutoscaler,
    subject: LintSubject,
    workload: LintWorkload | None,
    names: list[str],
) -> list[ManifestChange]:
    """Returns the changes that set minAllowed for each container from its quietest day, and that raise requests below
    it. Empty if the quietest day is unknown for any container."""
    changes: list[ManifestChange] = []
    base = ("spec", "resourcePolicy", "containerPolicies")
    present = [policy.container_name for policy in vpa.spec.resource_policy.container_policies]
    added = len(present)
    for name in names:
        minima = _idle_amounts(snapshot, workload, name)
        if workload is None or not minima:
            return []
        amounts = {resource: format_amount(resource, minimum) for resource, minimum in minima.items()}
        if name in present:
            changes.append(ManifestChange(subject, (*base, present.index(name), "minAllowed"), amounts))
        else:
            policy = {**wildcard_policy(snapshot, subject), "containerName": name, "minAllowed": amounts}
            changes.append(ManifestChange(subject, (*base, added), policy))
            added += 1
        for resource, minimum in minima.items():
            changes += _raise_request(workload, vpa, name, resource, minimum)
    return changes


def _idle_amounts(snapshot: LintSnapshot, workload: LintWorkload | None, container: str) -> dict[str, int]:
    """Returns resource → the P90 of the quietest day with the recommender's margin, for the resources for which it is
    known."""
    amounts = {
        resource: snapshot.usage_of(workload, container, resource) if workload is not None else None
        for resource in RESOURCES
    }
    return {
        resource: ceil(usage.idle * VPA_MARGIN_FACTOR)
        for resource, usage in amounts.items()
        if usage is not None and usage.idle is not None
    }


def _raise_request(
    workload: LintWorkload, vpa: VerticalPodAutoscaler, container: str, resource: str, least: int
) -> list[ManifestChange]:
    """Returns the changes that raise a container's request to `least`, the smallest request that its VPA sets (see
    L18); an empty list if the request is not below that."""
    return [
        change
        for spec_container in workload.spec.containers
        if spec_container.name == container
        and (request := request_of(spec_container, resource)) is not None
        and request < cap_at_limit(vpa, spec_container, resource, least)
        for change in change_request(workload, vpa, spec_container, resource, least)
    ]


@lint_rule(
    "L17",
    LintSeverity.WARNING,
    "A minAllowed below the recommendation for an idle container",
    why="The VPA's recommendation goes up and down between the two amounts every day, and the VPA evicts the "
    "pods each time.",
    source=_GUIDE,
    fix="Raise minAllowed to the highest recommendation of an idle period.",
    needs=(Needs.USAGE,),
)
def low_minimum(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each minAllowed that is more than 10 % below the P90 of the quietest day with the
    recommender's margin of 15 %."""
    for vpa, subject, workload in active_vpas(snapshot):
        for container in () if workload is None else workload.spec.containers:
            policy = container_policy_of(vpa, container.name)
            for resource in RESOURCES:
                minimum = amount_in(policy.min_allowed, resource)
                usage = None if workload is None else snapshot.usage_of(workload, container.name, resource)
                if minimum is None or usage is None or usage.idle is None:
                    continue
                idle = usage.idle * VPA_MARGIN_FACTOR
                if minimum < 0.9 * idle:
                    path = (*policies_path(vpa, container.name), "minAllowed", resource)
                    yield rule.report_problem(
                        subject,
                        f"{subject} has minAllowed {format_amount(resource, minimum)} of {resource} for "
                        f"{container.name}, but on the quietest day its recommendation would be "
                        f"{format_amount(resource, idle)}.",
                        path=path,
                        changes=[
                            ManifestChange(subject, path, format_amount(resource, ceil(idle))),
                            *(_raise_request(workload, vpa, container.name, resource, ceil(idle)) if workload else ()),
                        ],
                    )


@lint_rule(
    "L18",
    LintSeverity.ERROR,
    "An initial request below the VPA's minimum",
    why="The VPA evicts each such pod as soon as it runs, because the pod's request is outside of the "
    "recommended range.",
    source=_GUIDE + "; VPA recommender, --pod-recommendation-min-cpu-millicores and -memory-mb",
    fix="Set the initial request to at least minAllowed and at least the recommender's minimum.",
)
def low_initial_request(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each container whose request is too small under a VPA whose mode evicts or resizes.

    The request is too small if it is below the VPA's minAllowed, or below the container's share of the recommender's
    minimum for a pod. The finding is only a warning if the updater does not act because there are too few pods (see
    L26)."""
    recommenders = read_recommenders(snapshot)
    for vpa, subject, workload in active_vpas(snapshot):
        if workload is None or update_mode_of(vpa) not in EVICTING_MODES:
            continue
        replicas = snapshot.needed_replicas(workload)
        is_left_alone = replicas is not None and replicas < least_replicas(vpa)
        containers = vpa_containers(workload.spec)
        for container in workload.spec.containers:
            for resource in RESOURCES:
                request = request_of(container, resource)
                if request is None or not controls_resource(vpa, container.name, resource):
                    continue
                floor, name = least_request(recommenders.flags_of(vpa), vpa, container, resource, len(containers))
                if request < floor:
                    path = workload.container_path(container, "resources", "requests", resource)
                    yield rule.report_problem(
                        workload.subject,
                        f"Container {container.name} of {workload.subject} starts with a request of "
                        f"{format_amount(resource, request)} of {resource}, but {name} of {subject} is "
                        f"{format_amount(resource, floor)}.",
                        path=path,
                        severity=LintSeverity.WARNING if is_left_alone else LintSeverity.ERROR,
                        outcome=_TOO_SMALL_ALONE if is_left_alone else "",
                        changes=change_request(workload, vpa, container, resource, floor),
                    )


def least_request(
    flags: Mapping[str, str] | None,
    vpa: VerticalPodAutoscaler,
    container: LintContainer,
    resource: str,
    containers: int,
) -> tuple[int, str]:
    """Returns the smallest request that the VPA sets for a container, and the name of the setting that determines it.

    `flags`: the flags of the VPA's recommender; None if it is not the default one and its flags are not known. Then
    only the VPA's own minimum counts."""
    policy = container_policy_of(vpa, container.name)
    minimum = amount_in(policy.min_allowed, resource) or 0
    maximum = amount_in(policy.max_allowed, resource)
    text = (flags or {}).get(_FLOOR_FLAGS[resource], "")
    pod_floor = 0 if flags is None else POD_FLOOR[resource]
    if text.isdecimal():
        pod_floor = int(text) << (20 if resource == MEMORY else 0)
    floor = ceil(pod_floor / containers)
    if resource == MEMORY:
        # Whole mebibytes: the change is written in them.
        floor = -(-floor >> 20) << 20
    if maximum is not None:
        floor = min(floor, maximum)
    least, setting = (minimum, "minAllowed") if minimum >= floor else (floor, "the recommender's minimum")
    capped = cap_at_limit(vpa, container, resource, least)
    return capped, setting if capped == least else f"{setting}, capped at the container's limit,"


@lint_rule(
    "L19",
    LintSeverity.ERROR,
    "A VPA without a maximum, or with a maximum that is larger than any node",
    why="If a recommendation is larger than the largest node, the pods stay Pending.",
    source=_GUIDE,
    fix="Set maxAllowed to the allocatable amount of the largest node that the pods may use, minus the requests "
    "of its DaemonSets.",
)
def unbounded_maximum(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields an error for each maxAllowed above the largest node, and a warning for each resource without a maxAllowed,
    unless the recommender has a cap of its own for it."""
    room = largest_allocatable(snapshot)
    recommenders = read_recommenders(snapshot)
    for vpa, subject, workload in active_vpas(snapshot):
        flags = recommenders.flags_of(vpa) or {}
        uncapped = [resource for resource in RESOURCES if _CAP_FLAGS[resource] not in flags]
        names = _container_names(workload)
        for resource in uncapped:
            open_ended = [
                name
                for name in names
                if controls_resource(vpa, name, resource)
                and amount_in(container_policy_of(vpa, name).max_allowed, resource) is None
            ]
            if open_ended:
                yield rule.report_problem(
                    subject,
                    f"{subject} has no maxAllowed of {resource} for {_list_names(open_ended)}.",
                    path=policies_path(vpa, open_ended[0]),
                    severity=LintSeverity.WARNING,
                )
        for name in names:
            resources = [resource for resource in RESOURCES if controls_resource(vpa, name, resource)]
            maximum = container_policy_of(vpa, name).max_allowed
            path = policies_path(vpa, name)
            for resource in resources:
                most = amount_in(maximum, resource)
                if most is not None and room is not None and most > room[resource]:
                    largest = format_amount(resource, room[resource])
                    field = (*path, "maxAllowed", resource)
                    yield rule.report_problem(
                        subject,
                        f"{subject} allows {format_amount(resource, most)} of {resource} for "
                        f"{_list_names([name])}, but the largest node has only {largest} for pods.",
                        path=field,
                        changes=[ManifestChange(subject, field, largest)],
                    )


@lint_rule(
    "L20",
    LintSeverity.ERROR,
    "A minAllowed that cannot be satisfied",
    why="The VPA's webhook refuses a minimum above the maximum. If such an object is stored nevertheless, the "
    "maximum is used and the minimum has no effect. If the minimum is larger than a node, every pod stays "
    "Pending.",
    source="VPA, pkg/utils/vpa/capping.go: the recommendation is raised to minAllowed, then lowered to maxAllowed",
    fix="Lower minAllowed below maxAllowed and below the largest node.",
)
def impossible_minimum(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each minAllowed above maxAllowed, and for each pod whose minima together are above the
    largest node."""
    room = largest_allocatable(snapshot)
    for vpa, subject, workload in active_vpas(snapshot):
        for index, policy in enumerate(vpa.spec.resource_policy.container_policies):
            for resource in RESOURCES:
                minimum, maximum = amount_in(policy.min_allowed, resource), amount_in(policy.max_allowed, resource)
                if minimum is not None and maximum is not None and minimum > maximum:
                    path = ("spec", "resourcePolicy", "containerPolicies", index, "minAllowed", resource)
                    yield rule.report_problem(
                        subject,
                        f"{subject} has minAllowed {format_amount(resource, minimum)} above maxAllowed "
                        f"{format_amount(resource, maximum)} of {resource} for {policy.container_name}.",
                        path=path,
                        changes=[ManifestChange(subject, path, policy.max_allowed[resource])],
                        outcome="The VPA's webhook refuses such an object. If the object is stored nevertheless, the "
                        "maximum is used and the minimum has no effect.",
                    )
        for resource in RESOURCES if workload is not None and room is not None else ():
            assert workload is not None
            assert room is not None
            total = sum(
                amount_in(container_policy_of(vpa, name).min_allowed, resource) or 0
                for name in _container_names(workload)
            )
            if total > room[resource]:
                yield rule.report_problem(
                    subject,
                    f"{subject} needs at least {format_amount(resource, total)} of {resource} for a pod, but the "
                    f"largest node has only {format_amount(resource, room[resource])} for pods.",
                    path=("spec", "resourcePolicy"),
                    outcome="Every pod whose requests the VPA sets stays Pending.",
                )
