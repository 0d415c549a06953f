"""Finds the topmost owner of a pod.

It is taken from the first of these that knows it: the source of the usage, the cluster, the metrics of owners, the
pod's own name. Most pods of the last two weeks no longer exist, so their names must be enough: controllers build the
names of pods by fixed rules, and a name says the kind of the controller. A pod of which two workloads may be the owner
belongs to neither.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from trimtab.cluster.kinds import (
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    POD,
    REPLICA_SET,
    ROLLOUT,
    STATEFUL_SET,
    GroupKind,
    built_in,
    kind_name,
)
from trimtab.cluster.owner import OwnerKey

_TAIL = "[bcdfghjklmnpqrstvwxz2456789]"
"""A character of a generated name (k8s.io/apimachinery/pkg/util/rand)."""
_MAX_OWNERS = 6
_REPLICATION_CONTROLLER = built_in("ReplicationController")
_DEPLOYMENT_CONFIG = built_in("DeploymentConfig")


@dataclass(frozen=True, slots=True)
class NameShape:
    """A rule by which controllers name pods."""

    pattern: re.Pattern[str]
    """Matches the names; the first group is the name of the workload."""
    kinds: tuple[GroupKind, ...]
    """The kinds whose pods have such names."""
    guess: GroupKind
    """The kind of the workload if only the name is known."""
    custom_kinds: frozenset[str] = frozenset()
    """The names of kinds of further groups whose pods have such names."""


CRON_JOB_SHAPE = NameShape(re.compile(rf"(.+)-(\d{{8}}|\d{{10}})(?:-\d+)?-{_TAIL}{{5}}"), (CRON_JOB,), CRON_JOB)
"""The time of the run, in minutes since 1970 or, before Kubernetes 1.21, in seconds."""
REPLICA_SHAPE = NameShape(re.compile(rf"(.+)-({_TAIL}{{6,10}})-{_TAIL}{{5}}"), (DEPLOYMENT, ROLLOUT), DEPLOYMENT)
"""The hash of the template that a ReplicaSet has in its name."""
NAME_SHAPES = (
    CRON_JOB_SHAPE,
    REPLICA_SHAPE,
    NameShape(re.compile(r"(.+)-(\d{1,5})"), (STATEFUL_SET,), STATEFUL_SET),
    # The number of a rollout, after which a DeploymentConfig names its ReplicationController
    # (docs.openshift.com, "Understanding deployments"); or the index of an indexed Job.
    NameShape(re.compile(rf"(.+)-(\d{{1,5}})-{_TAIL}{{5}}"), (JOB, _DEPLOYMENT_CONFIG), _DEPLOYMENT_CONFIG),
    NameShape(
        re.compile(rf"(.+)-{_TAIL}{{5}}"),
        (DAEMON_SET, JOB, _REPLICATION_CONTROLLER, REPLICA_SET),
        DAEMON_SET,
        frozenset({"CloneSet"}),
    ),
)
"""From the most to the least specific shape: a later one also matches names of earlier ones."""
_SHAPES_BY_KIND_NAME = {
    name: index
    for index, shape in reversed(list(enumerate(NAME_SHAPES)))
    for name in (*map(kind_name, shape.kinds), *shape.custom_kinds)
}
"""The name of a kind, of any group → the index of the shape of its pods' names."""
_INTERMEDIATE = (REPLICA_SET, JOB, _REPLICATION_CONTROLLER)
"""The kinds that stand between pods and their workload. One that exists says by its owner whose pods they are."""

_GENERATED_LENGTH, _SUFFIX_LENGTH = 58, 5
"""The API server cuts a longer start of a generated name, and adds random characters (k8s.io/apiserver,
pkg/storage/names: maxNameLength, randomLength)."""
_LONG_NAME = _GENERATED_LENGTH - len("-1234567890-")
"""From this length of a workload's name on, its pods' names may be cut."""
_CUT_TAILS = {
    **dict.fromkeys((DEPLOYMENT, ROLLOUT), re.compile(f"{_TAIL}{{1,10}}")),
    CRON_JOB: re.compile(r"\d{1,10}"),
    **dict.fromkeys((REPLICA_SET, JOB, DAEMON_SET, _REPLICATION_CONTROLLER), re.compile("")),
}
"""Kind → what follows the workload's name and a hyphen in the cut start of a pod's name: a part of the hash, or of the
time."""

PodName = tuple[str, str]
"""The namespace and name of a pod."""
_Base = tuple[str, int, str]
"""(namespace, index of the shape, name of the workload as it is part of its pods' names)."""


def _no_live_pods() -> Iterable[tuple[PodName, OwnerKey]]:
    return ()


@dataclass(slots=True)
class OwnerIndex:
    """The owners of pods and the workloads that are known."""

    pods: Mapping[PodName, OwnerKey] = field(default_factory=dict)
    """(namespace, pod) → its topmost owner, as the cluster or the source of the usage knows it."""
    owners: Mapping[OwnerKey, OwnerKey | None] = field(default_factory=dict)
    """A workload, or an object between a workload and its pods → its controller, or None if it has none."""
    live_pods: Callable[[], Iterable[tuple[PodName, OwnerKey]]] = _no_live_pods
    """Returns the pods that exist, with their topmost owners. It is called only for a pod that does not exist."""
    reported: Mapping[PodName, OwnerKey] = field(default_factory=dict)
    """(namespace, pod) → its topmost owner, as metrics report it: their kinds have no group."""
    others: Iterable[OwnerKey] = ()
    """Workloads of kinds that `owners` does not contain."""
    _custom: dict[_Base, frozenset[OwnerKey]] | None = field(default=None, init=False)
    _by_name: dict[tuple[str, str, str], frozenset[OwnerKey]] | None = field(default=None, init=False)
    _living: frozenset[OwnerKey] | None = field(default=None, init=False)
    _long_names: dict[str, list[OwnerKey]] | None = field(default=None, init=False)

    def topmost_owner(self, namespace: str, pod: str) -> OwnerKey:
        """Returns the topmost owner of a pod; `Pod/NAME` if no owner is known, or if several workloads may be it."""
        key = (namespace, pod)
        return (
            self.pods.get(key)
            or self._reported_owner(key)
            or self._existing_workload(namespace, pod)
            or owner_by_name(namespace, pod)
            or OwnerKey(namespace, POD, pod)
        )

    def _reported_owner(self, key: PodName) -> OwnerKey | None:
        """Returns the owner that metrics report, with the group of the workload that exists with its kind and name."""
        owner = self.reported.get(key)
        if owner is None or (owner.kind == REPLICA_SET and owner not in self.owners):
            # A ReplicaSet whose own owner is not reported: the name of the pod says more.
            return None
        same = self._workloads_by_name().get((owner.namespace, kind_name(owner.kind), owner.name), frozenset())
        return self._choose({*same, owner} if owner in self.owners or not same else {*same}, key)

    def _existing_workload(self, namespace: str, pod: str) -> OwnerKey | None:
        """Returns the existing workload whose pods have such a name, or None if there is none."""
        matches = list(_match_shapes(pod))
        for index, base in matches:
            for kind in _INTERMEDIATE:
                parent = OwnerKey(namespace, kind, base)
                if kind in NAME_SHAPES[index].kinds and (self.owners.get(parent) or _is_lone_set(parent, self.owners)):
                    return self.top_of(parent)
        for index, base in matches:
            keys = (OwnerKey(namespace, kind, base) for kind in NAME_SHAPES[index].kinds)
            candidates = {self.top_of(key) for key in keys if key in self.owners}
            candidates |= self._custom_workloads().get((namespace, index, base), frozenset())
            if candidates:
                return self._choose(candidates, (namespace, pod))
        candidates = set(self._owners_of_cut_name(namespace, pod))
        return self._choose(candidates, (namespace, pod)) if candidates else None

    def _owners_of_cut_name(self, namespace: str, pod: str) -> Iterator[OwnerKey]:
        """Yields the topmost owners of a pod whose name the API server has cut, which may end within the hash."""
        if len(pod) != _GENERATED_LENGTH + _SUFFIX_LENGTH:
            return
        generated = pod[:_GENERATED_LENGTH]
        for owner in self._long_named_workloads().get(namespace, ()):
            prefix = f"{owner.name}-"
            if len(prefix) >= _GENERATED_LENGTH:
                is_owner = prefix.startswith(generated)
            else:
                tail = generated.removeprefix(prefix)
                is_owner = tail != generated and _CUT_TAILS[owner.kind].fullmatch(tail) is not None
            if is_owner:
                yield self.top_of(owner)

    def _long_named_workloads(self) -> dict[str, list[OwnerKey]]:
        """Returns namespace → the workloads the names of whose pods may be cut."""
        if self._long_names is None:
            self._long_names = {}
            for owner in self.owners:
                if len(owner.name) >= _LONG_NAME and owner.kind in _CUT_TAILS:
                    self._long_names.setdefault(owner.namespace, []).append(owner)
        return self._long_names

    def _choose(self, candidates: set[OwnerKey], pod: PodName) -> OwnerKey:
        """Returns the only candidate, or the only one that owns live pods. If there are several, the pod is its own
        owner."""
        if len(candidates) > 1:
            if self._living is None:
                self._living = frozenset(owner for _, owner in self.live_pods())
            candidates = candidates & self._living
        return next(iter(candidates)) if len(candidates) == 1 else OwnerKey(pod[0], POD, pod[1])

    def top_of(self, workload: OwnerKey) -> OwnerKey:
        """Returns the topmost controller of a workload; the workload itself if none is known."""
        # Owner references may form a circle: the API server does not check them.
        for _ in range(_MAX_OWNERS):
            above = self.owners.get(workload)
            if above is None:
                break
            workload = above
        return workload

    def _custom_workloads(self) -> dict[_Base, frozenset[OwnerKey]]:
        """Returns the workloads that own live pods or are in `others`, but are not in `owners`."""
        if self._custom is None:
            bases: dict[_Base, set[OwnerKey]] = {}
            for (_, pod), owner in self.live_pods():
                if owner not in self.owners and (base := _base_of_pod(owner, pod)) is not None:
                    bases.setdefault(base, set()).add(owner)
            for owner in self.others:
                index = _SHAPES_BY_KIND_NAME.get(kind_name(owner.kind))
                if owner not in self.owners and index is not None:
                    bases.setdefault((owner.namespace, index, owner.name), set()).add(owner)
            self._custom = {base: frozenset(owners) for base, owners in bases.items()}
        return self._custom

    def _workloads_by_name(self) -> dict[tuple[str, str, str], frozenset[OwnerKey]]:
        """Returns (namespace, name of the kind without its group, name) → the workloads that `owners` does not
        contain."""
        if self._by_name is None:
            by_name: dict[tuple[str, str, str], set[OwnerKey]] = {}
            for owner in chain.from_iterable(self._custom_workloads().values()):
                by_name.setdefault((owner.namespace, kind_name(owner.kind), owner.name), set()).add(owner)
            self._by_name = {name: frozenset(owners) for name, owners in by_name.items()}
        return self._by_name


def _is_lone_set(workload: OwnerKey, owners: Mapping[OwnerKey, OwnerKey | None]) -> bool:
    """Returns whether this is a ReplicaSet without a controller. Its name may be that of a Deployment with a hash."""
    return workload.kind == REPLICA_SET and workload in owners


def _base_of_pod(owner: OwnerKey, pod: str) -> _Base | None:
    """Returns how the pods of an owner are named, as its kind says it, or else one of its pods; None if the pods are
    not named by a known rule."""
    index = _SHAPES_BY_KIND_NAME.get(kind_name(owner.kind))
    if index is not None:
        return (owner.namespace, index, owner.name)
    matches = list(_match_shapes(pod))
    own = [(index, base) for index, base in matches if base == owner.name]
    return next(((owner.namespace, index, base) for index, base in own or matches), None)


def _match_shapes(pod: str) -> Iterator[tuple[int, str]]:
    """Yields the index of each shape that a pod's name has, with the name of the workload."""
    is_of_cron_job = False
    for index, shape in enumerate(NAME_SHAPES):
        match = shape.pattern.fullmatch(pod)
        if match is None or (is_of_cron_job and shape is REPLICA_SHAPE):
            continue
        # A time of eight digits may consist of characters of a hash, but a hash of digits alone is very rare.
        is_of_cron_job = is_of_cron_job or shape is CRON_JOB_SHAPE
        yield index, match[1]


def owner_by_name(namespace: str, pod: str) -> OwnerKey | None:
    """Returns the owner that can be derived from the pod's name alone, or None if none can."""
    return next((OwnerKey(namespace, NAME_SHAPES[index].guess, base) for index, base in _match_shapes(pod)), None)


def topmost_owners(owners: Mapping[OwnerKey, OwnerKey]) -> dict[tuple[str, str], OwnerKey]:
    """Returns (namespace, pod) → topmost owner. `owners` maps pods, and the owners of pods, to their owners."""
    return {(pod.namespace, pod.name): _topmost(owners, owner) for pod, owner in owners.items() if pod.kind == POD}


def _topmost(owners: Mapping[OwnerKey, OwnerKey], owner: OwnerKey) -> OwnerKey:
    # Owner references may form a circle: the API server does not check them.
    for _ in range(_MAX_OWNERS):
        next_owner = owners.get(owner)
        if next_owner is None:
            break
        owner = next_owner
    return owner
