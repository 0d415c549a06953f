"""What decides whether a Deployment may have more pods for a while: its count, its rollout, and who owns the count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from trimtab.cluster.api.autoscaling import HorizontalPodAutoscaler
from trimtab.cluster.api.meta import value_or
from trimtab.cluster.api.workload import Workload
from trimtab.cluster.count_autoscalers import CountAutoscaler, read_count_autoscaler
from trimtab.cluster.kinds import DEPLOYMENT, REPLICA_SET
from trimtab.cluster.owner import OwnerKey, controller_key
from trimtab.cluster.replicas import max_surge_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalableDeployment:
    """One Deployment as its object and its status describe it."""

    key: OwnerKey
    wanted: int
    """The number of pods that the Deployment wants."""
    available: int
    """The number of its pods that have been ready for `minReadySeconds`, according to its status."""
    is_paused: bool = False
    is_rolling: bool = False
    """Whether a rollout is in progress, or its controller has not observed the object's present version."""
    recreates: bool = False
    """Whether the strategy is `Recreate`: no pod of a new template starts while one of the old template runs."""
    has_no_surge: bool = False
    """Whether `maxSurge` of the strategy is 0: not even a rollout may have more pods than wanted."""
    controller: OwnerKey | None = None
    """The object that controls the Deployment and may write its count; None if no other object controls it."""
    autoscalers: tuple[CountAutoscaler, ...] = ()
    """The HorizontalPodAutoscalers that write the count; more than one is a mistake of their authors."""

    @property
    def autoscaler(self) -> CountAutoscaler | None:
        """The only HorizontalPodAutoscaler that writes the count; None if there is none, or if there are several."""
        return self.autoscalers[0] if len(self.autoscalers) == 1 else None


@dataclass(slots=True, kw_only=True)
class ScalableDeployments:
    """The Deployments of a cluster, found by their ReplicaSets. They are read when one is first asked for, because most
    plans ask for none."""

    deployments: Sequence[Workload] = ()
    replica_sets: Sequence[Workload] = ()
    autoscalers: Sequence[HorizontalPodAutoscaler] = ()
    surging: frozenset[OwnerKey] = frozenset()
    """The Deployments whose count is not their own now, because a drain in progress gives them more pods."""
    reverted: frozenset[OwnerKey] = frozenset()
    """The Deployments whose additional pods another client took back a short time ago."""
    _by_key: dict[OwnerKey, ScalableDeployment] | None = field(default=None, init=False)
    _by_replica_set: dict[OwnerKey, OwnerKey] = field(default_factory=dict, init=False)
    """ReplicaSet → the Deployment that controls it."""

    def deployment_of(self, owner: OwnerKey | None) -> ScalableDeployment | None:
        """Returns the Deployment of a ReplicaSet; None if no Deployment controls it, or if the Deployment is not
        known."""
        key = self.controller_of(owner)
        return self.find(key) if key is not None else None

    def controller_of(self, owner: OwnerKey | None) -> OwnerKey | None:
        """Returns the Deployment that controls a ReplicaSet, which may not be known; None if none controls it."""
        self._read()
        return self._by_replica_set.get(owner) if owner is not None else None

    def find(self, key: OwnerKey) -> ScalableDeployment | None:
        """Returns the Deployment with this key, or None if it is not known."""
        return self._read().get(key)

    def _read(self) -> dict[OwnerKey, ScalableDeployment]:
        if self._by_key is None:
            writers: dict[OwnerKey, tuple[CountAutoscaler, ...]] = {}
            for target, autoscaler in _scale_writers(self.autoscalers):
                writers[target] = (*writers.get(target, ()), autoscaler)
            states = (_read_deployment(shape, writers) for shape in self.deployments)
            self._by_key = {state.key: state for state in states}
            self._by_replica_set = dict(_controllers_of(self.replica_sets))
        return self._by_key


def _scale_writers(autoscalers: Iterable[HorizontalPodAutoscaler]) -> Iterator[tuple[OwnerKey, CountAutoscaler]]:
    """Yields each Deployment that a HorizontalPodAutoscaler scales, with the autoscaler."""
    for shape in autoscalers:
        target, namespace = shape.spec.scale_target_ref, shape.metadata.namespace
        # The group is left out: an autoscaler that names an old group may be corrected at any time.
        if target.kind_name == DEPLOYMENT:
            yield OwnerKey(namespace, DEPLOYMENT, target.name), read_count_autoscaler(shape)


def _controllers_of(replica_sets: Iterable[Workload]) -> Iterator[tuple[OwnerKey, OwnerKey]]:
    for shape in replica_sets:
        metadata = shape.metadata
        controller = controller_key(metadata, metadata.namespace) if metadata.owner_references else None
        if controller is not None and controller.kind == DEPLOYMENT:
            yield OwnerKey(metadata.namespace, REPLICA_SET, metadata.name), controller


def _read_deployment(shape: Workload, writers: Mapping[OwnerKey, tuple[CountAutoscaler, ...]]) -> ScalableDeployment:
    metadata, status = shape.metadata, shape.status
    key = OwnerKey(metadata.namespace, DEPLOYMENT, metadata.name)
    wanted = value_or(shape.spec.replicas, 1)
    return ScalableDeployment(
        key=key,
        wanted=wanted,
        available=status.available_replicas,
        is_paused=shape.spec.paused,
        # As `kubectl rollout status`, but a pod of the present template that is not ready is no rollout.
        is_rolling=status.observed_generation < metadata.generation
        or not status.updated_replicas == status.replicas == wanted,
        recreates=shape.spec.strategy.type == "Recreate",
        has_no_surge=not max_surge_of(shape, max(1, wanted)),
        controller=controller_key(metadata, metadata.namespace) if metadata.owner_references else None,
        autoscalers=writers.get(key, ()),
    )
