"""What does a decision need to know of the cluster?

One port, `ClusterFacts`, filled from a snapshot file now and from watches in a process. Absent is not empty: a kind
that nobody has listed yet is not in `known`, and what depends on it is not decided.

Which facts did a decision rest on, and are they still the same?

`watched` hands out facts that note each question asked of them. Whoever keeps an answer keeps the `FactDependencies`
beside it and asks `verdict` when newer facts have come: the answer may be given again exactly where every question
would be answered as it was. Nothing has to know which facts an action, a match or a check reads.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum, auto
from typing import Any, TypeVar

import msgspec

from trimtab.cluster.api.autoscaling import HorizontalPodAutoscaler, VerticalPodAutoscaler
from trimtab.cluster.api.core import LimitRange, Namespace, Node, PriorityClass, ResourceQuota, RuntimeClass
from trimtab.cluster.api.meta import Labels, Metadata, get
from trimtab.cluster.api.pod import Pod, PodSpec
from trimtab.cluster.api.workload import DaemonSet
from trimtab.cluster.cluster_autoscaler import growing_groups_of_any
from trimtab.cluster.limit_ranges import LimitRangeBounds, container_bounds
from trimtab.cluster.node_shapes import (
    NO_NODES,
    Machine,
    Machines,
    NodeShape,
    NodeShapes,
    OneMachine,
    ShapeCounter,
    daemon_of,
    seen_node,
    shapes_by_state,
)
from trimtab.cluster.owner import Owner, chain
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.recommendation import KEY, LABEL, ContainerUsage, Recommendations, Workloads, decode
from trimtab.cluster.replicas import Replicas, replicas_of, replicas_told, updated_of
from trimtab.cluster.resources import larger
from trimtab.cluster.snapshot import ConfigMap, Snapshot
from trimtab.cluster.timestamps import Seconds, seconds
from trimtab.policy.vpa_webhook import EVERYWHERE, WebhookReach

OWN_NAMESPACE = "trimtab-system"

EVERYTHING = frozenset(
    {"Namespace", "RuntimeClass", "LimitRange", "ResourceQuota", "PriorityClass", "Node"}
    | {"VerticalPodAutoscaler", "HorizontalPodAutoscaler"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """Indexed once, read many times. All mappings are by name, or by namespace where the object has one."""

    known: frozenset[str] = EVERYTHING
    """Kinds that have been listed at least once. A kind outside it is unknown, not empty."""
    namespaces: Mapping[str, Labels] = field(default_factory=dict)
    runtime_classes: Mapping[str, RuntimeClass] = field(default_factory=dict)
    priority_classes: Mapping[str, PriorityClass] = field(default_factory=dict)
    limit_ranges: Mapping[str, tuple[LimitRange, ...]] = field(default_factory=dict)
    bounds: Mapping[str, Mapping[str, LimitRangeBounds]] = field(default_factory=dict)
    """Namespace → resource → what its LimitRanges say of containers; made of `limit_ranges`."""
    quotas: Mapping[str, tuple[ResourceQuota, ...]] = field(default_factory=dict)
    vpas: Mapping[tuple[str, str, str], tuple[VerticalPodAutoscaler, ...]] = field(default_factory=dict)
    """(namespace, kind, name) of the target → its VPAs, oldest first."""
    vpa_reach: tuple[WebhookReach, ...] = EVERYWHERE
    """Which pods the VPA's own webhook is called for; empty where it cannot act: what a VPA manages is static then."""
    hpas: Mapping[tuple[str, str, str], tuple[HorizontalPodAutoscaler, ...]] = field(default_factory=dict)
    """(namespace, kind, name) of the target → its HPAs, in order of name."""
    owners: Mapping[tuple[str, str, str], Owner | None] = field(default_factory=dict)
    """(namespace, kind, name) → its controller; None where it is known to have none."""
    replicas: Mapping[tuple[str, str, str], Replicas] = field(default_factory=dict)
    """(namespace, kind, name) of an owner → the pods that it wants; without those that do not say."""
    updated: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    """(namespace, kind, name) of an owner → pods of its present template that exist, where there are any."""
    created: Mapping[tuple[str, str, str], Seconds] = field(default_factory=dict)
    """(namespace, kind, name) of an owner without a controller → when it was made, where that is known."""
    recommendations: Recommendations = field(default_factory=Recommendations)
    largest_node: Mapping[str, int] = field(default_factory=dict)
    """Resource → the most that one node of the cluster can hold; empty where no node is known."""
    nodes: NodeShapes = NO_NODES
    """The kinds of nodes that take pods, and what runs on each of them anyway."""
    machines: Machines = field(default_factory=dict)
    """(label, value) that one node alone has → that node, in order of name; without cordoned nodes."""
    problems: tuple[Unreadable, ...] = ()
    """What was there and made no sense."""

    @property
    def vpa_acts(self) -> bool:
        """Is the VPA's own webhook able to act on any pod?"""
        return bool(self.vpa_reach)

    def find_controller(self, namespace: str, owner: Owner) -> Owner | None:
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
        return chain(pod.metadata, namespace, self.find_controller)


NOTHING_KNOWN = ClusterFacts(known=frozenset())
"""Before the first list of anything: what depends on the cluster is left alone and told as missing."""


def from_snapshot(
    snapshot: Snapshot, *, vpa_reach: tuple[WebhookReach, ...] = EVERYWHERE, own_namespace: str = OWN_NAMESPACE
) -> ClusterFacts:
    """Everything a decision may ask, from one snapshot; what is not in it is taken not to exist."""
    replicas, updated = _counts(snapshot)
    shapes, closed, machines = _nodes(snapshot)
    growing = growing_groups_of_any(snapshot.all(ConfigMap))
    by_target = sorted(snapshot.all(DaemonSet), key=lambda d: (d.metadata.namespace or "default", d.metadata.name))
    found = map(daemon_of, by_target)
    daemons = tuple(daemon for daemon in found if daemon is not None)
    ranges = _by_namespace(snapshot.all(LimitRange))
    recommendations, problems = _recommendations(snapshot.all(ConfigMap), own_namespace)
    return ClusterFacts(
        namespaces={n.metadata.name: get(n.metadata.labels, {}) for n in snapshot.all(Namespace)},
        runtime_classes={c.metadata.name: c for c in snapshot.all(RuntimeClass)},
        priority_classes={c.metadata.name: c for c in snapshot.all(PriorityClass)},
        limit_ranges=ranges,
        bounds={namespace: container_bounds(found) for namespace, found in ranges.items()},
        quotas=_by_namespace(snapshot.all(ResourceQuota)),
        vpas=_by_target(snapshot.all(VerticalPodAutoscaler)),
        vpa_reach=vpa_reach,
        hpas=_hpas(snapshot.all(HorizontalPodAutoscaler)),
        owners=_owners(snapshot),
        replicas=replicas,
        updated=updated,
        created=_created(snapshot),
        recommendations=recommendations,
        largest_node=largest_allocatable(shapes),
        nodes=build_node_shapes(shapes, daemons, closed, growing),
        machines=machines,
        problems=problems,
    )


_Namespaced = TypeVar("_Namespaced", LimitRange, ResourceQuota)
Target = tuple[str, str, str]


def namespace_of(found: LimitRange | ResourceQuota) -> str:
    """The namespace it speaks for."""
    return found.metadata.namespace or "default"


def name_order(found: LimitRange | ResourceQuota | HorizontalPodAutoscaler) -> str:
    """The order within a namespace, so that equal facts give equal decisions."""
    return found.metadata.name


def age_order(vpa: VerticalPodAutoscaler) -> tuple[str, str]:
    """The oldest counts."""
    return (vpa.metadata.creation_timestamp or "", vpa.metadata.name)


def vpa_target(vpa: VerticalPodAutoscaler) -> Target:
    """The VPA itself keys by namespace, kind and name (not the API group)."""
    return (vpa.metadata.namespace or "default", vpa.spec.target_ref.kind, vpa.spec.target_ref.name)


def hpa_target(hpa: HorizontalPodAutoscaler) -> Target:
    return (hpa.metadata.namespace or "default", hpa.spec.scale_target_ref.kind, hpa.spec.scale_target_ref.name)


def _by_namespace(objects: Iterable[_Namespaced]) -> dict[str, tuple[_Namespaced, ...]]:
    found: dict[str, list[_Namespaced]] = {}
    for item in sorted(objects, key=name_order):
        found.setdefault(namespace_of(item), []).append(item)
    return {namespace: tuple(items) for namespace, items in found.items()}


def _by_target(vpas: Iterable[VerticalPodAutoscaler]) -> dict[Target, tuple[VerticalPodAutoscaler, ...]]:
    found: dict[Target, list[VerticalPodAutoscaler]] = {}
    for vpa in sorted(vpas, key=age_order):
        found.setdefault(vpa_target(vpa), []).append(vpa)
    return {target: tuple(same) for target, same in found.items()}


def _hpas(hpas: Iterable[HorizontalPodAutoscaler]) -> dict[Target, tuple[HorizontalPodAutoscaler, ...]]:
    found: dict[Target, list[HorizontalPodAutoscaler]] = {}
    for hpa in sorted(hpas, key=name_order):
        found.setdefault(hpa_target(hpa), []).append(hpa)
    return {target: tuple(same) for target, same in found.items()}


def _owners(snapshot: Snapshot) -> dict[tuple[str, str, str], Owner | None]:
    found: dict[tuple[str, str, str], Owner | None] = {}
    for kind, item in snapshot.workloads():
        above = item.metadata.controller
        key = (item.metadata.namespace or "default", kind, item.metadata.name)
        found[key] = Owner(above.kind, above.name) if above else None
    return found


def _counts(snapshot: Snapshot) -> tuple[dict[Target, Replicas], dict[Target, int]]:
    """What owners want, and how many pods of their present template they have."""
    replicas: dict[Target, Replicas] = {}
    updated: dict[Target, int] = {}
    for kind, item in snapshot.workloads():
        key, have = (item.metadata.namespace or "default", kind, item.metadata.name), updated_of(kind, item)
        # As in a process, where of ReplicaSets only the metadata is read: see `held.COUNTED`.
        told = kind == "ReplicaSet"
        wanted = replicas_told(item.metadata) if told else replicas_of(kind, item)
        if wanted is not None:
            replicas[key] = wanted
            if have and not told:
                updated[key] = have
    return replicas, updated


def _created(snapshot: Snapshot) -> dict[tuple[str, str, str], Seconds]:
    found: dict[tuple[str, str, str], Seconds] = {}
    for kind, item in snapshot.workloads():
        moment = creation_time(item.metadata)
        if item.metadata.controller is None and moment is not None:
            found[item.metadata.namespace or "default", kind, item.metadata.name] = moment
    return found


def _nodes(snapshot: Snapshot) -> tuple[tuple[NodeShape, ...], tuple[NodeShape, ...], Machines]:
    """The kinds of nodes, open and closed, and which node is of which."""
    counter = ShapeCounter()
    seen = [found for found in map(seen_node, snapshot.all(Node)) if found is not None]
    machines: dict[Machine, tuple[OneMachine, ...]] = {}
    for node in sorted(seen, key=lambda found: found.name):
        for one in counter.put(node):
            machines[one.machine] = (*machines.get(one.machine, ()), one)
    return (*shapes_by_state(counter.shapes()), machines)


def build_node_shapes(
    shapes: tuple[NodeShape, ...],
    daemons: tuple[PodSpec, ...],
    closed: tuple[NodeShape, ...],
    growing: tuple[str, ...] | None,
) -> NodeShapes:
    """The one that stands for nothing, where nothing is known."""
    found = NodeShapes(shapes, daemons, closed, growing)
    return NO_NODES if found == NO_NODES else found


def creation_time(metadata: Metadata) -> Seconds | None:
    """When the object was made; None where that is not written, or makes no sense."""
    return seconds(metadata.creation_timestamp)


def _recommendations(maps: Iterable[ConfigMap], own_namespace: str) -> tuple[Recommendations, tuple[Unreadable, ...]]:
    """In order of name: where two shards speak of one workload, the last counts."""
    workloads: dict[str, Mapping[str, ContainerUsage]] = {}
    problems: list[Unreadable] = []
    for shard in sorted(maps, key=lambda found: found.metadata.name):
        found = decode_shard(shard, own_namespace)
        if isinstance(found, Unreadable):
            problems.append(found)
        else:
            workloads |= found or {}
    return Recommendations(workloads), tuple(problems)


def decode_shard(found: ConfigMap, own_namespace: str) -> Workloads | Unreadable | None:
    """A shard of recommendations, or what is wrong with it; None: it is none.

    Only our own namespace is believed: a label is something that every tenant can write.
    """
    if get(found.metadata.labels, {}).get(LABEL) != "v1" or found.metadata.namespace != own_namespace:
        return None
    return decode(f"ConfigMap {found.metadata.namespace}/{found.metadata.name}", found.data.get(KEY, ""))


def largest_allocatable(shapes: Iterable[NodeShape]) -> dict[str, int]:
    """Per resource, the most that one kind of nodes can hold."""
    found: dict[str, int] = {}
    for shape in shapes:
        found = larger(found, shape.allocatable)
    return found


class Freshness(Enum):
    """What newer facts mean for a decision made with older ones."""

    SAME = auto()
    """It would read the very same."""
    USED = auto()
    """All that differs is how much of a quota is used, or how many pods an owner has: no decision reads that, the
    check before sending does."""
    NODES = auto()
    """Kinds of nodes came or went, or daemons, which only that check reads; perhaps a use differs, too."""
    OTHER = auto()


class _Mark(Enum):
    ABSENT = auto()
    WHOLE = auto()
    """The key of a question about a mapping as a whole."""
    ANY = auto()
    """The key of the question whether there is anything in it."""


_Question = tuple[str, Hashable]
"""A field of Facts, and the key asked for."""

_UNREAD = frozenset({"problems", "nodes"})
"""Told to people, never decided by; or compared apart."""


class FactDependencies(msgspec.Struct, eq=False, gc=False):
    """Every question asked of the facts with its answer; grows while a decision is made."""

    plain: tuple[Any, ...]
    """Fields of the facts that are not asked by key; all taken as read."""
    nodes: NodeShapes
    """Every check of an outcome asks for them; replaced by those that it was made with last."""
    seen: dict[_Question, Any]
    """What was asked by key. The facts themselves are not held: they would be kept alive, version by version."""

    @property
    def quotas(self) -> bool:
        """Was a quota read, so that `Freshness.USED` may come?"""
        return any(name == "quotas" and isinstance(value, tuple) for (name, _), value in self.seen.items())

    def since(self, facts: ClusterFacts) -> Freshness:
        """Would all that was read be read again from these facts?"""
        if not all(map(_alike, self.plain, _plain(facts))):
            return Freshness.OTHER
        found = Freshness.SAME if facts.nodes is self.nodes else Freshness.NODES
        for (name, key), before in self.seen.items():
            now = _asked(facts, name, key)
            if _alike(before, now):
                continue
            if name != _COUNTS and not (name == "quotas" and _same_but_used(before, now)):
                return Freshness.OTHER
            found = found if found is Freshness.NODES else Freshness.USED
        return found


def watched(facts: ClusterFacts) -> tuple[ClusterFacts, FactDependencies]:
    """The same facts, and what is read of them from now on."""
    seen: dict[_Question, Any] = {}
    values: dict[str, Any] = {name: getattr(facts, name) for name in _NOT_KEYED}
    for name in _KEYED:
        values[name] = _Noted(name, getattr(facts, name), seen)
    usage = facts.recommendations
    values[_USAGE] = Recommendations(_Noted(_USAGE, usage.workloads, seen), usage.missing)
    return ClusterFacts(**values), FactDependencies(_plain(facts), facts.nodes, seen)


def _plain(facts: ClusterFacts) -> tuple[Any, ...]:
    return tuple([getattr(facts, name) for name in _PLAIN])


class _Noted(Mapping[Any, Any]):
    """A mapping that writes down what it is asked."""

    __slots__ = ("_inner", "_name", "_seen")

    def __init__(self, name: str, inner: Mapping[Any, Any], seen: dict[_Question, Any]) -> None:
        self._name, self._inner, self._seen = name, inner, seen

    def get(self, key: Any, default: Any = None) -> Any:
        found = self._seen[self._name, key] = self._inner.get(key, _Mark.ABSENT)
        return default if found is _Mark.ABSENT else found

    def __getitem__(self, key: Any) -> Any:
        found = self.get(key, _Mark.ABSENT)
        if found is _Mark.ABSENT:
            raise KeyError(key)
        return found

    def __contains__(self, key: object) -> bool:
        return self.get(key, _Mark.ABSENT) is not _Mark.ABSENT

    def __bool__(self) -> bool:
        found = self._seen[self._name, _Mark.ANY] = bool(self._inner)
        return found

    def __iter__(self) -> Iterator[Any]:
        self._seen[self._name, _Mark.WHOLE] = self._inner
        return iter(self._inner)

    def __len__(self) -> int:
        self._seen[self._name, _Mark.WHOLE] = self._inner
        return len(self._inner)


_USAGE = "recommendations"
_COUNTS = "updated"
"""How many pods an owner has changes with every pod, and is read beside a quota's use."""
_EMPTY = ClusterFacts()
_KEYED = tuple(f.name for f in fields(ClusterFacts) if isinstance(getattr(_EMPTY, f.name), Mapping))
_NOT_KEYED = tuple(f.name for f in fields(ClusterFacts) if f.name not in {*_KEYED, _USAGE})
_PLAIN = tuple(f.name for f in fields(ClusterFacts) if f.name not in {*_KEYED, *_UNREAD, _USAGE})


def _asked(facts: ClusterFacts, name: str, key: Hashable) -> Any:
    mapping: Mapping[Any, Any] = facts.recommendations.workloads if name == _USAGE else getattr(facts, name)
    if key is _Mark.WHOLE:
        return mapping
    return bool(mapping) if key is _Mark.ANY else mapping.get(key, _Mark.ABSENT)


_PLAIN_TYPES = (bool, int, str, frozenset, Owner, type(None))


def _alike(before: Any, now: Any) -> bool:
    """The same object, as everything is that did not change; or a plain value that says the same.

    Equal is not enough for the rest: two equal mappings may still be written out in another order.
    """
    return before is now or (type(before) is type(now) and isinstance(before, _PLAIN_TYPES) and before == now)


def _same_but_used(before: Any, now: Any) -> bool:
    if before is _Mark.ABSENT or now is _Mark.ABSENT or not isinstance(before, tuple):
        return False
    return list(map(_without_use, before)) == list(map(_without_use, now))


def _without_use(quota: ResourceQuota) -> tuple[Any, ...]:
    """All that is read of a quota but `status.used`."""
    return quota.metadata.name, quota.spec, quota.status.hard
