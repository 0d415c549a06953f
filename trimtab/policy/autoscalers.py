"""Determines how VerticalPodAutoscalers (VPAs) and HorizontalPodAutoscalers (HPAs) affect a pod. All processes and
commands use this module.

For each container and resource, the first of these numbers that exists becomes the request:

1. the request that the author wrote;
2. the VPA's own target, if it recommends one and its webhook is called for the pod;
3. P5, from which the VPA grows, if it can correct the request of this very pod (see `_why_not_corrected`); otherwise
   P95.

The rules are those of the VPA's own admission controller (its target by namespace, kind and name; the oldest VPA
counts; `Off` does nothing; init containers and sidecars are ignored) and of its updater.

An HPA that scales by utilization divides the usage by the request. So another request changes the number of replicas,
and a first request starts an autoscaler that could not compute the utilization until then.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from trimtab.cluster import quantity
from trimtab.cluster.api.autoscaling import ContainerPolicy, HorizontalPodAutoscaler, VerticalPodAutoscaler
from trimtab.cluster.api.meta import ResourceList, UnsetType
from trimtab.cluster.format_count import format_count
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.recommendation import VPA_RECOMMENDER_NAME, VpaRecommendation, vpa_recommendations
from trimtab.cluster.resources import Role
from trimtab.cluster.utilization_metrics import utilization_metrics
from trimtab.policy.cluster_facts import Derived
from trimtab.policy.pod_context import ContainerRef, PodContext
from trimtab.policy.vpa_webhook import ANYWHERE

# The lowest amounts that the VPA recommends, per pod and shared by its containers (recommender flags
# pod-recommendation-min-cpu-millicores and -memory-mb; the latter counts in units of 1024 * 1024 bytes).
_FLOOR = {"cpu": "25m", "memory": "250Mi"}


@dataclass(frozen=True, slots=True, kw_only=True)
class VpaConstraints:
    """How a VPA affects one resource of one container."""

    name: str
    """The name of the VPA."""
    target: int | None
    """The VPA's recommendation within its own minAllowed and maxAllowed, in the scheduler's unit, or None if there is
    none yet."""
    uncorrected: str
    """Why the VPA will not correct the requests of this pod while the pod runs; empty if it will."""
    keeps_ratio: bool
    """Whether the VPA multiplies a limit by the same factor as the request (controlledValues: RequestsAndLimits)."""
    floor: int
    """The smallest request, in the scheduler's unit, that the VPA tolerates: its minAllowed and, if it evicts pods, the
    amount below which it would evict this one."""
    ceiling: int | None
    growth: int | None = None
    """The amount to which the VPA may resize the running pod, or None if it does not resize pods in place, or if the
    amount is not known."""

    @property
    def has_recommendation(self) -> bool:
        """Whether the VPA has a recommendation, so that its webhook decides the request."""
        return self.target is not None

    @property
    def can_correct(self) -> bool:
        """Whether the VPA will correct the first request of this pod while the pod runs."""
        return not self.uncorrected


# Annotation, followed by the container's name: the VPA gave the container more cpu for its start.
BOOST = "vpaCpuStartupBoost/"


def is_boosting_cpu(pod_context: PodContext, container: ContainerRef, resource: str) -> bool:
    """Returns whether the VPA is boosting this container's cpu for its start. The VPA has recorded the request to which
    it will return, so policies must not change the request."""
    return resource == "cpu" and f"{BOOST}{container.container.name}" in pod_context.annotations


def is_sized_by_others(pod_context: PodContext) -> bool:
    """Returns whether an annotation says that a VPA has set, or is boosting, a request of one of the pod's
    containers."""
    return WRITTEN_BY_VPA in pod_context.annotations or any(key.startswith(BOOST) for key in pod_context.annotations)


# Annotation of the VPA's webhook: "Pod resources updated by NAME: container 0: cpu request, memory request".
WRITTEN_BY_VPA = "vpaUpdates"


def has_vpa_written(pod_context: PodContext, container: ContainerRef, resource: str) -> bool:
    """Returns whether the VPA's annotation says that the VPA set this request. The annotation is enough: VPAs need not
    be listed yet."""
    # True for nearly every pod, and evaluated for every container, resource and policy: it must be cheap.
    if WRITTEN_BY_VPA not in pod_context.annotations:
        return False
    return container.role is Role.MAIN and (str(container.index), resource) in pod_context.compute_once(
        _requests_written_by_vpa
    )


def _requests_written_by_vpa(pod_context: PodContext) -> frozenset[tuple[str, str]]:
    """Returns (index of the container, resource) of each request that the VPA has set according to its annotation."""
    requests: set[tuple[str, str]] = set()
    for sentence in pod_context.annotations.get(WRITTEN_BY_VPA, "").split(";"):
        _, marker, container_text = sentence.strip().rpartition("container ")
        index, colon, values = container_text.partition(": ")
        if marker and colon:
            requests |= {
                (index, value.removesuffix(" request")) for value in values.split(", ") if value.endswith(" request")
            }
    return frozenset(requests)


def find_managing_vpa(pod_context: PodContext) -> VerticalPodAutoscaler | None:
    """Returns the VPA that manages this pod. None if there is none, or if its webhook cannot act or is not called for
    the pod.

    A VPA targets the topmost controller that is well known or can be scaled. It is not known here whether a custom
    controller can be scaled. So a VPA of a custom controller counts too, and so do the VPAs of the owners below it,
    down to the first well-known one.
    """
    # Whether the VPA's webhook is called for this pod, as far as the webhook's configuration is known.
    if not pod_context.facts.vpas or not any(
        reach == ANYWHERE or reach.includes_pod(pod_context.namespace_labels, pod_context.labels)
        for reach in pod_context.facts.vpa_reach
    ):
        return None
    for owner in reversed(pod_context.owners):
        for vpa in pod_context.facts.vpas.get(owner, ()):
            if vpa.spec.update_policy.update_mode != "Off":
                return vpa
        # The VPA's own fetcher stops at the first well-known controller, too
        # (vertical-pod-autoscaler/pkg/target/controller_fetcher).
        if owner.kind in _WELL_KNOWN:
            break
    return None


def find_vpa_recommendation(pod_context: PodContext, place: ContainerRef, resource: str) -> VpaRecommendation | None:
    """Returns the recommendation of a VPA for this container, or None if there is none. VPAs in mode `Off` count too;
    of several, the oldest that has a recommendation counts."""
    for owner in reversed(pod_context.owners):
        for vpa in pod_context.facts.vpas.get(owner, ()):
            for container, about, recommendation in vpa_recommendations(vpa):
                if (container, about) == (place.container.name, resource):
                    return recommendation
    return None


_WELL_KNOWN = frozenset(
    {"CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"}
)


class VpaConstraintsIndex:
    """How one VPA affects the containers of one pod. Each result is computed once for all policies."""

    def __init__(self, vpa: VerticalPodAutoscaler | None, pod_context: PodContext) -> None:
        self._vpa = None if vpa is None else _read_vpa(vpa, pod_context)
        self._containers = len(pod_context.pod.spec.containers)
        self._cache: dict[tuple[str, str], VpaConstraints | None] = {}

    def constraints_for(self, container: ContainerRef, resource: str) -> VpaConstraints | None:
        """Returns how the VPA affects this container's resource, or None if it does not."""
        # The VPA ignores init containers and sidecars, and recommends cpu and memory only.
        if self._vpa is None or container.role is not Role.MAIN or resource not in _FLOOR:
            return None
        key = (container.container.name, resource)
        if key not in self._cache:
            self._cache[key] = _build_constraints(self._vpa, *key, self._containers)
        return self._cache[key]


def index_vpa_constraints(pod_context: PodContext) -> VpaConstraintsIndex:
    """Returns the effects of the VPA that manages the pod."""
    vpa = pod_context.compute_once(find_managing_vpa)
    # The facts hold the VPA as long as contexts share what is computed with them, so its id names it.
    key = (index_vpa_constraints, id(vpa), len(pod_context.pod.spec.containers))
    index: VpaConstraintsIndex | None = pod_context.computed_of_owners.get(key)
    if index is None:
        index = pod_context.computed_of_owners[key] = VpaConstraintsIndex(vpa, pod_context)
    return index


def vpa_constraints_for(
    vpa: VerticalPodAutoscaler | None, pod_context: PodContext, container: ContainerRef, resource: str
) -> VpaConstraints | None:
    """Returns how this VPA affects the container's resource, or None if it does not."""
    return VpaConstraintsIndex(vpa, pod_context).constraints_for(container, resource)


def _build_constraints(content: "_VpaContent", container: str, resource: str, containers: int) -> VpaConstraints | None:
    policy = content.policies.get(container) or content.policies.get("*") or _DEFAULT_POLICY
    controlled = policy.controlled_resources
    # ContainerScalingMode and controlledResources as in the VPA's API; an absent list means all resources.
    if policy.mode == "Off" or (not isinstance(controlled, UnsetType) and resource not in controlled):
        return None
    minimum = _scheduler_value_of(resource, policy.min_allowed) or 0
    maximum = _scheduler_value_of(resource, policy.max_allowed)
    target = _bounded_target(content.targets.get(container), resource, minimum, maximum)
    # The recommender's own minimum depends on its flags, which are not known here. It no longer matters once there is
    # a recommendation.
    has_floor = not content.uncorrected and target is None and not content.names_trimtab
    evicted_below = _container_floor(resource, containers) if has_floor else 0
    return VpaConstraints(
        name=content.name,
        target=target,
        uncorrected=content.uncorrected,
        keeps_ratio=policy.controlled_values == "RequestsAndLimits",
        floor=max(minimum, evicted_below),
        ceiling=maximum,
        growth=_bounded_growth(content.upper.get(container), resource, target, maximum) if content.resizes else None,
    )


# Live pods below which the updater leaves a workload alone where the VPA sets no number (updater flag --min-replicas).
MIN_REPLICAS = 2
# Update modes in which the updater looks at running pods.
_UPDATING_MODES = ("", "Auto", "Recreate", "InPlaceOrRecreate", "InPlace")
# Update modes in which the VPA resizes pods without an eviction.
RESIZING = ("InPlaceOrRecreate", "InPlace")
# Owners that create evicted pods again, so that the updater's eviction leads to pods with better requests.
_EVICTABLE_OWNERS = frozenset({"ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Deployment"})


def _why_not_corrected(vpa: VerticalPodAutoscaler, pod_context: PodContext) -> str:
    """Returns why the VPA will not raise the requests of this pod while it runs, or an empty string if it will. It will
    if all of these hold:

    - its mode acts on running pods (not `Initial`; vertical-pod-autoscaler/pkg/updater/logic/updater.go, 1.7);
    - a controller creates the pod again after an eviction (no Job, no bare pod, no custom controller);
    - that controller wants at least `minReplicas` pods, 2 unless the VPA sets it (pods_restriction_factory.go: "Too few
      replicas");
    - the VPA's eviction requirements let it raise a request.
    """
    update_policy = vpa.spec.update_policy
    if update_policy.update_mode not in _UPDATING_MODES:
        return f"the VPA's mode {update_policy.update_mode} does not change running pods"
    if not pod_context.owners or pod_context.owners[0].kind not in _EVICTABLE_OWNERS:
        if not pod_context.owners:
            return "the VPA does not evict a pod without a controller"
        return f"the VPA does not evict pods of a {pod_context.owners[0].kind}"
    if any(
        requirement.change_requirement == "TargetLowerThanRequests"
        for requirement in update_policy.eviction_requirements
    ):
        return "the VPA's eviction requirements allow the VPA only to lower requests"
    min_replicas = MIN_REPLICAS if update_policy.min_replicas is None else update_policy.min_replicas
    replicas = pod_context.replicas
    if replicas is None and min_replicas > 1:
        return (
            f"the number of replicas of {pod_context.top_owner} is not known, and the VPA's updater needs at least "
            f"{min_replicas}"
        )
    if replicas is not None and replicas.wanted < min_replicas:
        return (
            "the VPA's updater does not evict pods of a workload with fewer than "
            f"{format_count(min_replicas, 'replica')}"
        )
    return ""


def _bounded_target(targets: ResourceList | None, resource: str, minimum: int, maximum: int | None) -> int | None:
    target = None if targets is None else _scheduler_value_of(resource, targets)
    if target is None:
        return None
    raised = max(target, minimum)
    return raised if maximum is None else min(raised, maximum)


# Of the target: the most that a pod which is resized in place is taken to need. On a VPA's first days its upper bound
# itself is a multiple of the target (the margin is one over the days of history; recommender/logic/estimator.go).
GROWTH_PERCENT = 150


def _bounded_growth(
    upper_bounds: ResourceList | None, resource: str, target: int | None, maximum: int | None
) -> int | None:
    """Returns the amount to which a container may grow: the recommendation's upper bound, limited by the VPA's maximum
    and by `GROWTH_PERCENT` of the target. None if there is no such amount."""
    upper = None if upper_bounds is None else _scheduler_value_of(resource, upper_bounds)
    if upper is None or target is None:
        return None
    bounded = max(target, min(upper, target * GROWTH_PERCENT // 100))
    return bounded if maximum is None else min(bounded, maximum)


def _scheduler_value_of(resource: str, amounts: ResourceList) -> int | None:
    """Returns the amount of a resource in the scheduler's unit, or None if there is none or it cannot be parsed."""
    try:
        return quantity.scheduler_value(resource, amounts[resource]) if resource in amounts else None
    except NotAQuantity:
        return None


def _container_floor(resource: str, containers: int) -> int:
    """Returns one container's share of the VPA's floor for a pod, rounded up to whole millicores or MiB, so that users
    see round numbers."""
    step = 1 if resource == "cpu" else 1 << 20
    part = quantity.scheduler_value(resource, _FLOOR.get(resource, 0)) // max(1, containers)
    return -(-part // step) * step


@dataclass(frozen=True, slots=True)
class _VpaContent:
    """The content of a VPA, keyed by the names of containers."""

    name: str
    uncorrected: str
    names_trimtab: bool
    """Whether Trimtab recommends for the VPA. Its recommender has no minimum of a pod."""
    policies: Mapping[str, ContainerPolicy]
    """Container → its policy; the entry `*` holds for all containers that are not named."""
    targets: Mapping[str, ResourceList]
    """Container → recommended target. If a name occurs twice, the first entry counts."""
    upper: Mapping[str, ResourceList]
    """Container → upper bound of the recommendation. If a name occurs twice, the first entry counts."""
    resizes: bool
    """Whether the VPA resizes running pods in place."""


_DEFAULT_POLICY = ContainerPolicy()


def _read_vpa(vpa: VerticalPodAutoscaler, pod_context: PodContext) -> _VpaContent:
    """Returns the content of a VPA for a pod, keyed by container because a VPA and a pod may both name thousands of
    containers."""
    policies, targets, upper = _BY_NAME.value_for(vpa)
    return _VpaContent(
        name=vpa.metadata.name,
        uncorrected=_why_not_corrected(vpa, pod_context),
        names_trimtab=[selector.name for selector in vpa.spec.recommenders] == [VPA_RECOMMENDER_NAME],
        policies=policies,
        targets=targets,
        upper=upper,
        resizes=vpa.spec.update_policy.update_mode in RESIZING,
    )


def _by_name(
    vpa: VerticalPodAutoscaler,
) -> tuple[Mapping[str, ContainerPolicy], Mapping[str, ResourceList], Mapping[str, ResourceList]]:
    """Returns the policies, the targets and the upper bounds of a VPA, each by container name."""
    # Reversed, because a dict keeps the last entry of a name and the VPA counts the first.
    entries = tuple(reversed(vpa.status.recommendation.container_recommendations))
    return (
        {p.container_name: p for p in vpa.spec.resource_policy.container_policies},
        {r.container_name: r.target for r in entries},
        {r.container_name: r.upper_bound for r in entries},
    )


_BY_NAME = Derived(_by_name)


KIND = "HorizontalPodAutoscaler"


def is_scaled_by_utilization(pod_context: PodContext) -> bool:
    """Returns whether an HPA scales an owner of the pod by utilization. While HPAs are not listed yet, returns True,
    which is the safe assumption."""
    if KIND not in pod_context.facts.listed_kinds:
        return True
    return any(hpa.by_utilization for hpa in _hpa_summaries(pod_context))


def counts_utilization_of(pod_context: PodContext, container: str, resource: str) -> str:
    """Returns the name of an HPA that scales an owner of the pod by the utilization of this container's resource, or an
    empty string if there is none.

    Such an HPA divides the usage by the request. An HPA with a target of type AverageValue, or with a metric of another
    source, does not.
    """
    by_owner = (pod_context.facts.hpas.get(o, ()) for o in pod_context.owners)
    return next(
        (
            hpa.metadata.name
            for hpas in by_owner
            for hpa in hpas
            if any(
                metric.resource == resource and metric.container in ("", container)
                for metric in utilization_metrics(hpa)
            )
        ),
        "",
    )


def max_replicas(pod_context: PodContext) -> int:
    """Returns the largest number of replicas that an HPA may create for any owner of the pod; 0 if there is no HPA."""
    return max((hpa.max_replicas for hpa in _hpa_summaries(pod_context)), default=0)


@dataclass(frozen=True, slots=True)
class _HpaSummary:
    """How all HPAs of one owner together affect its pods."""

    by_utilization: bool
    max_replicas: int


def _hpa_summaries(pod_context: PodContext) -> list[_HpaSummary]:
    by_owner = (pod_context.facts.hpas.get(o, ()) for o in pod_context.owners)
    return [_SUMMARIES.value_for(hpas) for hpas in by_owner if hpas]


def _summarize_hpas(hpas: tuple[HorizontalPodAutoscaler, ...]) -> _HpaSummary:
    return _HpaSummary(any(map(scales_by_utilization, hpas)), max(hpa.spec.max_replicas for hpa in hpas))


_SUMMARIES = Derived(_summarize_hpas)


def scales_by_utilization(hpa: HorizontalPodAutoscaler) -> bool:
    """Returns whether the HPA scales by the utilization of a request."""
    return any(True for _ in utilization_metrics(hpa))
