"""How does a VerticalPodAutoscaler stand to this pod? The one reader of VPAs, for every process and verb.

For each container and resource one number counts, the first of these that there is:

1. the request that is written;
2. the VPA's own target, where it recommends and its webhook is called for the pod;
3. P5, from which the VPA grows, where it can correct it on this very pod (see `_cannot_correct`); P95 otherwise.

The rules are those of the VPA's own admission controller (target by namespace, kind and name; the oldest VPA counts;
`Off` does nothing; init containers and sidecars are not its business) and updater.

Does a HorizontalPodAutoscaler count this pod's replicas by its requests?

Utilisation is use divided by request: whoever changes the request of such a pod changes the number of its replicas,
and whoever first gives it one wakes an autoscaler that could not count until then.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from trimtab.cluster import quantity
from trimtab.cluster.api.autoscaling import ContainerPolicy, HorizontalPodAutoscaler, MetricSpec, VerticalPodAutoscaler
from trimtab.cluster.api.meta import ResourceList, UnsetType
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.recommendation import VpaRecommendation, given
from trimtab.cluster.resources import Role
from trimtab.policy.lazy_property import Derived
from trimtab.policy.pod_context import ContainerRef, PodContext
from trimtab.policy.vpa_webhook import ANYWHERE

_FLOOR = {"cpu": "25m", "memory": "250Mi"}
"""Of what it recommends, and of nothing else. Per pod, shared by its containers (recommender flags
pod-recommendation-min-cpu-millicores, -memory-mb; the latter counts in units of 1024 * 1024 bytes, whatever it is
called)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VpaConstraints:
    """How a VPA stands to one resource of one container."""

    name: str
    """The VPA's."""
    target: int | None
    """What it recommends, within its own minAllowed and maxAllowed, in the scheduler's numbers; None: nothing yet."""
    uncorrected: str
    """Why it will not correct the requests of this very pod while that runs; empty where it will."""
    keeps_ratio: bool
    """controlledValues RequestsAndLimits: it multiplies a limit as it multiplies the request."""
    floor: int
    """The scheduler's number: its minAllowed; and where it evicts, what it would evict below."""
    ceiling: int | None
    growth: int | None = None
    """What a pod may be resized to where it runs; None: it is not resized there, or nobody knows how far."""

    @property
    def recommends(self) -> bool:
        """Has it a recommendation? Then its webhook decides."""
        return self.target is not None

    @property
    def corrects(self) -> bool:
        """Will it correct a first request on this very pod?"""
        return not self.uncorrected


BOOST = "vpaCpuStartupBoost/"
"""Annotation, the container's name behind it: the VPA gave the container more cpu for its start."""


def boosts(subject: PodContext, place: ContainerRef, resource: str) -> bool:
    """Is the VPA boosting this container's cpu? What it wrote down to go back to must stay true."""
    return resource == "cpu" and f"{BOOST}{place.container.name}" in subject.annotations


def is_sized_by_others(subject: PodContext) -> bool:
    """Does an annotation of the pod say that a VPA wrote, or boosts, a request of one of its containers?"""
    return WRITTEN_BY_VPA in subject.annotations or any(key.startswith(BOOST) for key in subject.annotations)


WRITTEN_BY_VPA = "vpaUpdates"
"""Annotation of the VPA's webhook: "Pod resources updated by NAME: container 0: cpu request, memory request"."""


def has_written(subject: PodContext, place: ContainerRef, resource: str) -> bool:
    """Does the VPA say that it wrote this request itself? That holds also before any VPA is known here."""
    if WRITTEN_BY_VPA not in subject.annotations:  # nearly every pod: asked for every container, resource and policy
        return False
    return place.role is Role.MAIN and (str(place.index), resource) in subject.once(_written)


def _written(subject: PodContext) -> frozenset[tuple[str, str]]:
    """(index of the container, resource) of each request that the annotation says the VPA wrote."""
    found = set[tuple[str, str]]()
    for part in subject.annotations.get(WRITTEN_BY_VPA, "").split(";"):
        _, mark, written = part.strip().rpartition("container ")
        index, colon, values = written.partition(": ")
        if mark and colon:
            found |= {
                (index, value.removesuffix(" request")) for value in values.split(", ") if value.endswith(" request")
            }
    return frozenset(found)


def of(subject: PodContext) -> VerticalPodAutoscaler | None:
    """The VPA that manages this pod; None where none does, or its webhook cannot act or is not called for it.

    A VPA targets the topmost controller that is well known or can be scaled. Whether a custom one can be scaled is
    not known here: it is looked at, and so is what stands below it, down to the first well-known one.
    """
    if not subject.facts.vpas or not _is_called(subject):
        return None
    for owner in reversed(subject.owners):
        for vpa in subject.facts.vpas.get((subject.namespace, owner.kind, owner.name), ()):
            if vpa.spec.update_policy.update_mode != "Off":
                return vpa
        if owner.kind in _WELL_KNOWN:
            break
    return None


def _is_called(subject: PodContext) -> bool:
    """Is the VPA's webhook called for this pod, as far as that is known?"""
    return any(
        reach == ANYWHERE or reach.includes(subject.namespace_labels, subject.labels)
        for reach in subject.facts.vpa_reach
    )


def advised(subject: PodContext, place: ContainerRef, resource: str) -> VpaRecommendation | None:
    """What a VPA says of this container, whether it acts by itself or not (`Off`); the oldest that says anything."""
    for owner in reversed(subject.owners):
        for vpa in subject.facts.vpas.get((subject.namespace, owner.kind, owner.name), ()):
            for container, about, advice in given(vpa):
                if (container, about) == (place.container.name, resource):
                    return advice
    return None


_WELL_KNOWN = frozenset(
    {"CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"}
)


class VpaConstraintsIndex:
    """How one VPA stands to the containers of one pod; each is worked out once, however many policies ask."""

    def __init__(self, vpa: VerticalPodAutoscaler | None, subject: PodContext) -> None:
        self._containers = len(subject.pod.spec.containers)
        self._said = None if vpa is None else _read(vpa, subject)
        self._known: dict[tuple[str, str], VpaConstraints | None] = {}

    def of(self, place: ContainerRef, resource: str) -> VpaConstraints | None:
        """How it stands to this container's resource; None: not at all."""
        if self._said is None or place.role is not Role.MAIN or resource not in _FLOOR:
            return None
        key = (place.container.name, resource)
        if key not in self._known:
            self._known[key] = _sizing(self._said, *key, self._containers)
        return self._known[key]


def sizings(subject: PodContext) -> VpaConstraintsIndex:
    """Of the VPA that manages the pod."""
    return VpaConstraintsIndex(subject.once(of), subject)


def sizing(
    vpa: VerticalPodAutoscaler | None, subject: PodContext, place: ContainerRef, resource: str
) -> VpaConstraints | None:
    """How the VPA stands to this container's resource; None: not at all."""
    return VpaConstraintsIndex(vpa, subject).of(place, resource)


def _sizing(said: "_Said", container: str, resource: str, containers: int) -> VpaConstraints | None:
    policy = said.policies.get(container) or said.policies.get("*") or _DEFAULT
    controlled = policy.controlled_resources
    if policy.mode == "Off" or (not isinstance(controlled, UnsetType) and resource not in controlled):
        return None
    least = _bound(resource, policy.min_allowed) or 0
    most = _bound(resource, policy.max_allowed)
    target = _target(said.targets.get(container), resource, least, most)
    # Its recommender's own least, whose flags nobody knows here, says nothing once it has recommended something.
    evicted_below = 0 if said.uncorrected or target is not None else _share(resource, containers)
    return VpaConstraints(
        name=said.name,
        target=target,
        uncorrected=said.uncorrected,
        keeps_ratio=policy.controlled_values == "RequestsAndLimits",
        floor=max(least, evicted_below),
        ceiling=most,
        growth=_growth(said.upper.get(container), resource, target, most) if said.resizes else None,
    )


MIN_REPLICAS = 2
"""Live pods below which the updater leaves a group alone where the VPA does not say (its flag --min-replicas)."""
_RAISING = ("", "Auto", "Recreate", "InPlaceOrRecreate", "InPlace")
"""Modes in which the updater looks at running pods."""
RESIZING = ("InPlaceOrRecreate", "InPlace")
"""Modes in which it resizes pods without an eviction."""
_EVICTABLE = frozenset({"ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Deployment"})
"""Owners whose pods come back as they were, so that the updater's eviction leads to better ones."""


def _cannot_correct(vpa: VerticalPodAutoscaler, subject: PodContext) -> str:
    """Why the VPA will not raise the requests of this very pod while it runs; empty where it will. It will when

    - its mode acts on running pods (not `Initial`; vertical-pod-autoscaler/pkg/updater/logic/updater.go, 1.7);
    - a controller makes the pod again after an eviction (no Job, no bare pod, no controller that nobody knows here);
    - that wants at least `minReplicas` pods, 2 unless the VPA says (pods_restriction_factory.go: "Too few replicas");
    - its eviction requirements let it raise a request.
    """
    rules = vpa.spec.update_policy
    if rules.update_mode not in _RAISING:
        return f"its mode {rules.update_mode} leaves running pods alone"
    if not subject.owners or subject.owners[0].kind not in _EVICTABLE:
        return f"it does not evict pods of a {subject.owners[0].kind}" if subject.owners else "it evicts no bare pod"
    if any(needed.change_requirement == "TargetLowerThanRequests" for needed in rules.eviction_requirements):
        return "its eviction requirements only let it lower requests"
    least = MIN_REPLICAS if rules.min_replicas is None else rules.min_replicas
    wanted = subject.replicas
    if wanted is None and least > 1:
        return f"how many replicas {subject.top} has is not known, and its updater needs {least}"
    if wanted is not None and wanted.wanted < least:
        return f"its updater leaves fewer than {least} replicas alone"
    return ""


def _target(said: ResourceList | None, resource: str, least: int, most: int | None) -> int | None:
    target = None if said is None else _bound(resource, said)
    if target is None:
        return None
    raised = max(target, least)
    return raised if most is None else min(raised, most)


GROWTH_PERCENT = 150
"""Of its target, the most that a pod which is resized in place is taken to need. The upper bound itself is a multiple
of that on a VPA's first days (its margin is one over the days of history; recommender/logic/estimator.go)."""


def _growth(said: ResourceList | None, resource: str, target: int | None, most: int | None) -> int | None:
    """The upper bound of the recommendation, within what the VPA allows and half as much again as the target."""
    upper = None if said is None else _bound(resource, said)
    if upper is None or target is None:
        return None
    bounded = max(target, min(upper, target * GROWTH_PERCENT // 100))
    return bounded if most is None else min(bounded, most)


def _bound(resource: str, written: ResourceList) -> int | None:
    """The scheduler's number; None where nothing readable is written."""
    try:
        return quantity.scheduler_value(resource, written[resource]) if resource in written else None
    except NotAQuantity:
        return None


def _share(resource: str, containers: int) -> int:
    """The floor of one container, rounded up to whole millicores and MiB: a floor that is read should be readable."""
    step = 1 if resource == "cpu" else 1 << 20
    part = quantity.scheduler_value(resource, _FLOOR.get(resource, 0)) // max(1, containers)
    return -(-part // step) * step


@dataclass(frozen=True, slots=True)
class _Said:
    """What a VPA says of containers, by their names."""

    name: str
    uncorrected: str
    policies: Mapping[str, ContainerPolicy]
    """`*` stands for all that are not named."""
    targets: Mapping[str, ResourceList]
    """Of one name, the first counts."""
    upper: Mapping[str, ResourceList]
    """The recommendation's upper bounds; likewise."""
    resizes: bool
    """It resizes pods where they run."""


_DEFAULT = ContainerPolicy()


def _read(vpa: VerticalPodAutoscaler, subject: PodContext) -> _Said:
    """A VPA and a pod may both name thousands of containers."""
    policies, targets, upper = _NAMED.of(vpa)
    return _Said(
        name=vpa.metadata.name, uncorrected=_cannot_correct(vpa, subject), policies=policies, targets=targets,
        upper=upper, resizes=vpa.spec.update_policy.update_mode in RESIZING,
    )  # fmt: skip


def _by_name(
    vpa: VerticalPodAutoscaler,
) -> tuple[Mapping[str, ContainerPolicy], Mapping[str, ResourceList], Mapping[str, ResourceList]]:
    """Policies, targets and upper bounds."""
    found = tuple(reversed(vpa.status.recommendation.container_recommendations))
    return (
        {p.container_name: p for p in vpa.spec.resource_policy.container_policies},
        {r.container_name: r.target for r in found},
        {r.container_name: r.upper_bound for r in found},
    )


_NAMED = Derived(_by_name)


KIND = "HorizontalPodAutoscaler"


def by_utilization(subject: PodContext) -> bool:
    """For the pod or any of its owners; True where HPAs are not listed yet (the cautious reading)."""
    if KIND not in subject.facts.known:
        return True
    return any(found.by_utilization for found in _scaled(subject))


def max_replicas(subject: PodContext) -> int:
    """The most replicas that an HPA may make of any of its owners; 0 where none may, or none says."""
    return max((found.max_replicas for found in _scaled(subject)), default=0)


@dataclass(frozen=True, slots=True)
class _Scaled:
    """What all HPAs of one owner say together."""

    by_utilization: bool
    max_replicas: int


def _scaled(subject: PodContext) -> list[_Scaled]:
    found = (subject.facts.hpas.get((subject.namespace, o.kind, o.name), ()) for o in subject.owners)
    return [_SCALED.of(hpas) for hpas in found if hpas]


def _together(hpas: tuple[HorizontalPodAutoscaler, ...]) -> _Scaled:
    return _Scaled(any(map(_by_utilization, hpas)), max(hpa.spec.max_replicas for hpa in hpas))


_SCALED = Derived(_together)


def _by_utilization(hpa: HorizontalPodAutoscaler) -> bool:
    """One that names no metric is given 80% of cpu (pkg/apis/autoscaling/v2/defaults.go)."""
    if hpa.spec.target_cpu_utilization_percentage is not None or not hpa.spec.metrics:
        return True
    return any(map(_is_utilization, hpa.spec.metrics))


def _is_utilization(metric: MetricSpec) -> bool:
    return any(source.target.type == "Utilization" for source in (metric.resource, metric.container_resource))
