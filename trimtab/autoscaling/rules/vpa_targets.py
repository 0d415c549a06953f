"""Rules about what a VPA targets, and whether it can act."""

from collections.abc import Mapping

from trimtab.autoscaling.container_amounts import RESOURCES, amount_in, format_amount, request_of
from trimtab.autoscaling.lint_snapshot import (
    EVICTING_MODES,
    RESIZING_MODES,
    LintSnapshot,
    LintWorkload,
    controls_resource,
    subject_of,
    target_subject,
    update_mode_of,
)
from trimtab.autoscaling.objects import LintPod
from trimtab.autoscaling.rule import FindingIterator, LintRule, LintSeverity, ManifestChange, Needs, lint_rule
from trimtab.autoscaling.rules.quality_of_service import elects_leader
from trimtab.autoscaling.rules.vpa_bounds import active_vpas, least_replicas
from trimtab.cluster.api.autoscaling import VerticalPodAutoscaler
from trimtab.cluster.api.meta import ResourceList, value_or
from trimtab.cluster.format_count import format_count
from trimtab.cluster.timestamps import parse_timestamp

LONG_GRACE_SECONDS = 300
UNUSED_ADVICE_DAYS = 14
UNUSED_ADVICE_SHARE = 0.2
_SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
_GUIDE = "Gardener's guide on pod autoscaling (shoot_pod_autoscaling_best_practices.md)"


@lint_rule(
    "L24",
    LintSeverity.ERROR,
    "Two VPAs for one pod",
    why="The VPA does not define which of the two sets the requests of a pod; the choice can differ for every pod.",
    source="VPA, known limitations: several VPAs that match one pod have undefined behavior",
    fix="Remove one of the VPAs, or set its updateMode to Off.",
)
def several_vpas(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each VPA except the first, if one target has several VPAs whose mode is not Off."""
    vpas_by_target: dict[object, VerticalPodAutoscaler] = {}
    for vpa, subject, _ in active_vpas(snapshot):
        target = target_subject(vpa.metadata, vpa.spec.target_ref)
        first = vpas_by_target.setdefault(target, vpa)
        if first is not vpa:
            yield rule.report_problem(
                subject,
                f"{subject} and VPA {first.metadata.name} both set the requests of {target}.",
                path=("spec", "targetRef"),
            )


@lint_rule(
    "L49",
    LintSeverity.ERROR,
    "A VPA with several recommenders",
    why="The VPA's admission controller refuses a VPA with more than one recommender. Where it does not run, each of "
    "them overwrites the recommendation of the others; Trimtab's leaves such a VPA alone.",
    source="VPA, pkg/admission-controller/resource/vpa/validation.go: spec.recommenders must have at most 1 item",
    fix="Name one recommender.",
)
def several_recommenders(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each VPA that names more than one recommender, in any mode."""
    for vpa in snapshot.vpas:
        names = [selector.name for selector in vpa.spec.recommenders]
        if len(names) > 1:
            subject = subject_of("VerticalPodAutoscaler", vpa.metadata)
            yield rule.report_problem(
                subject, f"{subject} names the recommenders {', '.join(names)}.", path=("spec", "recommenders")
            )


@lint_rule(
    "L25",
    LintSeverity.ERROR,
    "A VPA whose target is not the topmost controller",
    why="The VPA reports ConfigUnsupported and does nothing, because its target must be the topmost controller "
    "of the pods.",
    source="VPA, target selector: the targetRef must be the topmost well-known or scalable controller",
    fix="Name the topmost controller in targetRef.",
)
def inner_target(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each VPA whose target is a pod or an object with a controller."""
    for vpa in snapshot.vpas:
        target = target_subject(vpa.metadata, vpa.spec.target_ref)
        top = snapshot.topmost_owner(target)
        subject = subject_of("VerticalPodAutoscaler", vpa.metadata)
        if top != target or target.kind == "Pod":
            better = (
                f"the topmost controller of these pods is {top}"
                if top != target
                else "the VPA never updates a pod without a controller"
            )
            owner = snapshot.workloads_by_subject.get(top) if top != target else None
            fields = {} if owner is None else {"apiVersion": owner.api_version, "kind": top.kind, "name": top.name}
            yield rule.report_problem(
                subject,
                f"{subject} has {target} as its target, but {better}.",
                path=("spec", "targetRef"),
                changes=[ManifestChange(subject, ("spec", "targetRef", key), fields[key]) for key in fields],
            )


@lint_rule(
    "L26",
    LintSeverity.WARNING,
    "A VPA that never updates its single pod",
    why="The VPA's updater does not evict pods of workloads with fewer than two live pods: the pod keeps its "
    "first request until the next rollout.",
    source="VPA updater, --min-replicas (2 by default)",
    fix="Set updatePolicy.minReplicas to 1, or run two replicas.",
)
def too_few_replicas(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each VPA in a mode that evicts, if its workload wants fewer replicas than
    updatePolicy.minReplicas (2 if absent)."""
    for vpa, subject, workload in active_vpas(snapshot):
        replicas = None if workload is None else snapshot.needed_replicas(workload)
        needed = least_replicas(vpa)
        if replicas is None or not 0 < replicas < needed or update_mode_of(vpa) not in EVICTING_MODES:
            continue
        path = ("spec", "updatePolicy", "minReplicas")
        yield rule.report_problem(
            subject,
            f"{subject} needs at least {format_count(needed, 'live pod')}, but its target may have only {replicas}.",
            path=path,
            changes=[ManifestChange(subject, path, replicas)],
        )


@lint_rule(
    "L27",
    LintSeverity.INFO,
    "A VPA that evicts pods which are not replaced in time",
    why="Until the new pod is ready, the node of a DaemonSet has no pod, and a controller with one leader does "
    "not work.",
    source=_GUIDE,
    fix="Use updateMode Initial, or InPlaceOrRecreate if the cluster can resize pods.",
)
def evicted_singleton(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each VPA in mode Recreate whose target is a DaemonSet, or a single replica that elects a
    leader."""
    for vpa, subject, workload in active_vpas(snapshot):
        if workload is None or update_mode_of(vpa) != "Recreate":
            continue
        single = snapshot.needed_replicas(workload) == 1 and any(map(elects_leader, workload.spec.containers))
        if workload.subject.kind == "DaemonSet" or single:
            yield rule.report_problem(
                subject, f"{subject} evicts pods of {workload.subject}.", path=("spec", "updatePolicy", "updateMode")
            )


@lint_rule(
    "L28",
    LintSeverity.INFO,
    "A VPA that evicts sensitive pods to make them smaller",
    why="A small saving does not justify the eviction of a pod that takes long to stop or must not be moved.",
    source=_GUIDE,
    fix="Add evictionRequirements with TargetHigherThanRequests, so that the VPA evicts pods only to raise requests.",
)
def eviction_to_shrink(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each VPA without evictionRequirements whose mode evicts, if evictions do harm to its target.

    That is so if the target is a StatefulSet, has pods that an annotation protects from eviction, or has pods that take
    five minutes or more to terminate."""
    for vpa, subject, workload in active_vpas(snapshot):
        if workload is None or update_mode_of(vpa) not in EVICTING_MODES:
            continue
        reason = _why_sensitive(workload)
        if reason and not vpa.spec.update_policy.eviction_requirements:
            path = ("spec", "updatePolicy", "evictionRequirements")
            value = [{"resources": list(RESOURCES), "changeRequirement": "TargetHigherThanRequests"}]
            yield rule.report_problem(
                subject,
                f"{subject} may evict pods of {workload.subject} to lower their requests, but {reason}.",
                path=path,
                changes=[ManifestChange(subject, path, value)],
            )


def _why_sensitive(workload: LintWorkload) -> str:
    """Returns why an eviction of the workload's pods does harm, or an empty string if nothing indicates that."""
    if workload.subject.kind == "StatefulSet":
        return "a StatefulSet replaces its pods one after the other"
    if workload.pod_annotations.get(_SAFE_TO_EVICT) == "false":
        return "the annotation safe-to-evict of its pods is false"
    if (workload.spec.termination_grace_period_seconds or 0) >= LONG_GRACE_SECONDS:
        return f"its pods may take {workload.spec.termination_grace_period_seconds} seconds to end"
    return ""


@lint_rule(
    "L40",
    LintSeverity.WARNING,
    "A VPA webhook with fewer than two ready endpoints",
    why="While the VPA's webhook is down, new pods get the requests of their manifests, which are small on "
    "purpose: Gardener's guide calls this a catastrophic under-reservation.",
    source=_GUIDE,
    fix="Run two replicas of the admission controller, with a PodDisruptionBudget.",
    needs=(Needs.VPA_WEBHOOK,),
)
def weak_vpa_webhook(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each webhook configuration of the VPA whose Service has fewer than two ready endpoints."""
    for configuration in snapshot.mutating_webhooks:
        services = {
            (hook.client_config.service.namespace, hook.client_config.service.name)
            for hook in configuration.webhooks
            if hook.client_config.service is not None and "vpa" in hook.name
        }
        for namespace, name in sorted(services):
            ready = sum(
                endpoint.conditions.ready is not False
                for slice_ in snapshot.endpoint_slices
                if slice_.metadata.namespace == namespace
                and value_or(slice_.metadata.labels, {}).get("kubernetes.io/service-name") == name
                for endpoint in slice_.endpoints or ()
            )
            if ready < 2:
                subject = subject_of("MutatingWebhookConfiguration", configuration.metadata, namespaced=False)
                yield rule.report_problem(
                    subject,
                    f"The VPA's webhook Service {namespace}/{name} has {ready} ready "
                    f"endpoint{'' if ready == 1 else 's'}.",
                )


@lint_rule(
    "L44",
    LintSeverity.INFO,
    "A VPA recommendation that is not used",
    why="The VPA only recommends: the requests stay wrong although better amounts are known.",
    source="Trimtab",
    fix="Set the requests to the VPA's target, or set an updateMode with which the VPA changes pods.",
    needs=(Needs.LIVE,),
)
def unused_advice(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each VPA in mode Off that is older than two weeks and whose recommended target differs from
    the request by more than 20 %."""
    for vpa in snapshot.vpas:
        created = parse_timestamp(vpa.metadata.creation_timestamp)
        workload = snapshot.workloads_by_subject.get(target_subject(vpa.metadata, vpa.spec.target_ref))
        if update_mode_of(vpa) != "Off" or workload is None or created is None or snapshot.now is None:
            continue
        if snapshot.now - created < UNUSED_ADVICE_DAYS * 86400:
            continue
        subject = subject_of("VerticalPodAutoscaler", vpa.metadata)
        for recommended in vpa.status.recommendation.container_recommendations:
            for container in workload.spec.containers:
                for resource in RESOURCES if container.name == recommended.container_name else ():
                    target, request = amount_in(recommended.target, resource), request_of(container, resource)
                    if target and request and abs(target - request) > UNUSED_ADVICE_SHARE * request:
                        yield rule.report_problem(
                            subject,
                            f"{subject} recommends {format_amount(resource, target)} of {resource} for container "
                            f"{container.name}, but the container requests {format_amount(resource, request)}.",
                        )


@lint_rule(
    "N03",
    LintSeverity.WARNING,
    "A VPA with in-place updates for a container that restarts, or on a node without room",
    why="In-place updates should not disturb pods. With resizePolicy RestartContainer each change restarts the "
    "container, and on a full node the resize stays Deferred (preemption for a resize is alpha in Kubernetes "
    "1.37).",
    source="Kubernetes in-place resize (stable since 1.35); VPA InPlaceOrRecreate",
    fix="Set restartPolicy NotRequired in the container's resizePolicy, and keep free room on the nodes.",
)
def resize_without_effect(rule: LintRule, snapshot: LintSnapshot) -> FindingIterator:
    """Yields a finding for each VPA in an in-place mode whose pods cannot be resized without disruption.

    That is so if a container must restart for a resource that the VPA controls, or if pods are on nodes with less free
    capacity than the VPA wants to add."""
    for vpa, subject, workload in active_vpas(snapshot):
        if workload is None or update_mode_of(vpa) not in RESIZING_MODES:
            continue
        for container in workload.spec.containers:
            for policy in container.resize_policy:
                controls = controls_resource(vpa, container.name, policy.resource_name)
                if policy.restart_policy == "RestartContainer" and controls:
                    yield rule.report_problem(
                        subject,
                        f"{subject} resizes container {container.name} of {workload.subject}, whose resizePolicy "
                        f"restarts it for {policy.resource_name}.",
                    )
        yield from _find_full_nodes(rule, snapshot, vpa, workload)


def _find_full_nodes(
    rule: LintRule, snapshot: LintSnapshot, vpa: VerticalPodAutoscaler, workload: LintWorkload
) -> FindingIterator:
    """Yields one finding for each resource, with the first pod that cannot grow and the number of the others."""
    targets = {
        recommended.container_name: recommended.target
        for recommended in vpa.status.recommendation.container_recommendations
    }
    if not targets:
        return
    for resource in RESOURCES:
        stuck = [
            (pod, growth, free)
            for pod in snapshot.pods_of(workload)
            if (free := snapshot.free_on_nodes.get((pod.spec.node_name, resource))) is not None
            and (growth := _growth_of(pod, targets, resource)) > free
        ]
        if stuck:
            pod, growth, free = stuck[0]
            subject = subject_of("VerticalPodAutoscaler", vpa.metadata)
            others = (
                f" ({format_count(len(stuck) - 1, 'more pod has', 'more pods have')} the same problem)"
                if len(stuck) > 1
                else ""
            )
            yield rule.report_problem(
                subject,
                f"{subject} wants {format_amount(resource, growth)} more {resource} for pod {pod.metadata.name}, "
                f"but node {pod.spec.node_name} has {format_amount(resource, max(0, free))} free{others}.",
                outcome="The resize stays Deferred until another pod leaves the node.",
            )


def _growth_of(pod: LintPod, targets: Mapping[str, ResourceList], resource: str) -> int:
    """Returns by how much the VPA wants to increase the pod's requests."""
    return sum(
        max(0, (amount_in(targets.get(container.name, {}), resource) or 0) - (request_of(container, resource) or 0))
        for container in pod.spec.containers
    )
