"""What does a decision need to know of the cluster?

One port, `Facts`, filled from a snapshot file now and from watches in a process. Absent is not empty: a kind that
nobody has listed yet is not in `known`, and what depends on it is not decided.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from trimtab.cluster.api.meta import Labels, get
from trimtab.cluster.api.node import Node
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.api.rules import LimitRange, Namespace, PriorityClass, ResourceQuota, RuntimeClass
from trimtab.cluster.api.scaling import HorizontalPodAutoscaler, VerticalPodAutoscaler
from trimtab.cluster.limits import Bounds, container_bounds
from trimtab.cluster.owner import Owner, chain
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.recommendation import KEY, LABEL, ContainerUsage, Recommendations, Workloads, decode
from trimtab.cluster.resources import amounts, larger
from trimtab.cluster.snapshot import ConfigMap, Snapshot

OWN_NAMESPACE = "trimtab-system"

EVERYTHING = frozenset(
    {"Namespace", "RuntimeClass", "LimitRange", "ResourceQuota", "PriorityClass", "Node"}
    | {"VerticalPodAutoscaler", "HorizontalPodAutoscaler"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Indexed once, read many times. All mappings are by name, or by namespace where the object has one."""

    known: frozenset[str] = EVERYTHING
    """Kinds that have been listed at least once. A kind outside it is unknown, not empty."""
    namespaces: Mapping[str, Labels] = field(default_factory=dict)
    runtime_classes: Mapping[str, RuntimeClass] = field(default_factory=dict)
    priority_classes: Mapping[str, PriorityClass] = field(default_factory=dict)
    limit_ranges: Mapping[str, tuple[LimitRange, ...]] = field(default_factory=dict)
    bounds: Mapping[str, Mapping[str, Bounds]] = field(default_factory=dict)
    """Namespace → resource → what its LimitRanges say of containers; made of `limit_ranges`."""
    quotas: Mapping[str, tuple[ResourceQuota, ...]] = field(default_factory=dict)
    vpas: Mapping[tuple[str, str, str], tuple[VerticalPodAutoscaler, ...]] = field(default_factory=dict)
    """(namespace, kind, name) of the target → its VPAs, oldest first."""
    vpa_acts: bool = True
    """Is the VPA's own webhook able to act? False: what a VPA manages is treated as static."""
    hpas: Mapping[tuple[str, str, str], tuple[HorizontalPodAutoscaler, ...]] = field(default_factory=dict)
    """(namespace, kind, name) of the target → its HPAs, in order of name."""
    owners: Mapping[tuple[str, str, str], Owner | None] = field(default_factory=dict)
    """(namespace, kind, name) → its controller; None where it is known to have none."""
    recommendations: Recommendations = field(default_factory=Recommendations)
    largest_node: Mapping[str, int] = field(default_factory=dict)
    """Resource → the most that one node of the cluster can hold; empty where no node is known."""
    problems: tuple[Unreadable, ...] = ()
    """What was there and made no sense."""

    def above(self, namespace: str, owner: Owner) -> Owner | None:
        """The owner's own controller, as far as it is known or its name tells.

        A Job not listed yet tells its CronJob: its name ends in the minute of its schedule (eight digits).
        """
        key = (namespace, owner.kind, owner.name)
        if key in self.owners or owner.kind != "Job":
            return self.owners.get(key)
        base, dash, minute = owner.name.rpartition("-")
        known = dash and len(minute) == 8 and minute.isdecimal() and (namespace, "CronJob", base) in self.owners
        return Owner("CronJob", base) if known else None

    def chain(self, pod: Pod, namespace: str) -> tuple[Owner, ...]:
        """The pod's controllers, nearest first."""
        return chain(pod.metadata, namespace, self.above)


NOTHING_KNOWN = Facts(known=frozenset())
"""Before the first list of anything: what depends on the cluster is left alone and told as missing."""


def from_snapshot(snapshot: Snapshot, *, vpa_acts: bool = True, own_namespace: str = OWN_NAMESPACE) -> Facts:
    """Everything a decision may ask, from one snapshot; what is not in it is taken not to exist."""
    ranges = _by_namespace(snapshot.all(LimitRange))
    recommendations, problems = _recommendations(snapshot.all(ConfigMap), own_namespace)
    return Facts(
        namespaces={n.metadata.name: get(n.metadata.labels, {}) for n in snapshot.all(Namespace)},
        runtime_classes={c.metadata.name: c for c in snapshot.all(RuntimeClass)},
        priority_classes={c.metadata.name: c for c in snapshot.all(PriorityClass)},
        limit_ranges=ranges,
        bounds={namespace: container_bounds(found) for namespace, found in ranges.items()},
        quotas=_by_namespace(snapshot.all(ResourceQuota)),
        vpas=_by_target(snapshot.all(VerticalPodAutoscaler)),
        vpa_acts=vpa_acts,
        hpas=_hpas(snapshot.all(HorizontalPodAutoscaler)),
        owners=_owners(snapshot),
        recommendations=recommendations,
        largest_node=_largest(snapshot.all(Node)),
        problems=problems,
    )


_Namespaced = TypeVar("_Namespaced", LimitRange, ResourceQuota)
Target = tuple[str, str, str]


def home(found: LimitRange | ResourceQuota) -> str:
    """The namespace it speaks for."""
    return found.metadata.namespace or "default"


def by_name(found: LimitRange | ResourceQuota | HorizontalPodAutoscaler) -> str:
    """The order within a namespace, so that equal facts give equal decisions."""
    return found.metadata.name


def by_age(vpa: VerticalPodAutoscaler) -> tuple[str, str]:
    """The oldest counts."""
    return (vpa.metadata.creation_timestamp or "", vpa.metadata.name)


def vpa_target(vpa: VerticalPodAutoscaler) -> Target:
    """The VPA itself keys by namespace, kind and name (not the API group)."""
    return (vpa.metadata.namespace or "default", vpa.spec.target_ref.kind, vpa.spec.target_ref.name)


def hpa_target(hpa: HorizontalPodAutoscaler) -> Target:
    return (hpa.metadata.namespace or "default", hpa.spec.scale_target_ref.kind, hpa.spec.scale_target_ref.name)


def _by_namespace(objects: Iterable[_Namespaced]) -> dict[str, tuple[_Namespaced, ...]]:
    found: dict[str, list[_Namespaced]] = {}
    for item in sorted(objects, key=by_name):
        found.setdefault(home(item), []).append(item)
    return {namespace: tuple(items) for namespace, items in found.items()}


def _by_target(vpas: Iterable[VerticalPodAutoscaler]) -> dict[Target, tuple[VerticalPodAutoscaler, ...]]:
    found: dict[Target, list[VerticalPodAutoscaler]] = {}
    for vpa in sorted(vpas, key=by_age):
        found.setdefault(vpa_target(vpa), []).append(vpa)
    return {target: tuple(same) for target, same in found.items()}


def _hpas(hpas: Iterable[HorizontalPodAutoscaler]) -> dict[Target, tuple[HorizontalPodAutoscaler, ...]]:
    found: dict[Target, tuple[HorizontalPodAutoscaler, ...]] = {}
    for hpa in sorted(hpas, key=by_name):
        target = hpa_target(hpa)
        found[target] = (*found.get(target, ()), hpa)
    return found


def _owners(snapshot: Snapshot) -> dict[tuple[str, str, str], Owner | None]:
    found: dict[tuple[str, str, str], Owner | None] = {}
    for kind, item in snapshot.workloads():
        above = item.metadata.controller
        key = (item.metadata.namespace or "default", kind, item.metadata.name)
        found[key] = Owner(above.kind, above.name) if above else None
    return found


def _recommendations(maps: Iterable[ConfigMap], own_namespace: str) -> tuple[Recommendations, tuple[Unreadable, ...]]:
    """In order of name: where two shards speak of one workload, the last counts."""
    workloads: dict[str, Mapping[str, ContainerUsage]] = {}
    problems: list[Unreadable] = []
    for shard in sorted(maps, key=lambda found: found.metadata.name):
        found = shard_of(shard, own_namespace)
        if isinstance(found, Unreadable):
            problems.append(found)
        else:
            workloads |= found or {}
    return Recommendations(workloads), tuple(problems)


def shard_of(found: ConfigMap, own_namespace: str) -> Workloads | Unreadable | None:
    """A shard of recommendations, or what is wrong with it; None: it is none.

    Only our own namespace is believed: a label is something that every tenant can write.
    """
    if get(found.metadata.labels, {}).get(LABEL) != "v1" or found.metadata.namespace != own_namespace:
        return None
    return decode(f"ConfigMap {found.metadata.namespace}/{found.metadata.name}", found.data.get(KEY, ""))


def _largest(nodes: Iterable[Node]) -> dict[str, int]:
    """Per resource, over nodes that take pods at all."""
    found: dict[str, int] = {}
    for node in nodes:
        if not node.spec.unschedulable:
            found = larger(found, amounts(node.status.allocatable))
    return found
