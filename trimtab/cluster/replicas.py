"""The number of pods that an owner wants, and how many more its rollout may create."""

from functools import lru_cache
from math import ceil

import msgspec

from trimtab.cluster.api.meta import Metadata, value_or
from trimtab.cluster.api.workload import Workload


class Replicas(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The number of pods that one owner wants."""

    wanted: int
    surge: int = 0
    """The number of pods that a rollout may create in addition to `wanted`."""
    revision: str = ""
    """The revision of the rollout, for a Deployment and its ReplicaSets; empty if unknown."""
    selected: tuple[str, ...] | None = None
    """The keys of the labels by which the owner selects its pods, or None if only the owner's metadata was read."""

    @property
    def at_most(self) -> int:
        """The largest number of pods that may exist at once according to the owner's spec."""
        return self.wanted + self.surge


def replicas_of(kind: str, owner: Workload) -> Replicas | None:
    """Returns how many pods the owner wants, and by which labels it selects them, or None if it does not say how many
    it wants (see `_count_replicas`)."""
    replicas = _count_replicas(kind, owner)
    return None if replicas is None else msgspec.structs.replace(replicas, selected=_selected_labels(owner))


def _selected_labels(owner: Workload) -> tuple[str, ...]:
    selector = value_or(owner.spec.selector, None)
    if selector is None:
        return ()
    expressions = value_or(selector.match_expressions, ())
    return _shared_labels((*value_or(selector.match_labels, {}), *(expression.key for expression in expressions)))


# Thousands of Deployments select by the same few labels.
@lru_cache(maxsize=4096)
def _shared_labels(labels: tuple[str, ...]) -> tuple[str, ...]:
    return labels


def _count_replicas(kind: str, owner: Workload) -> Replicas | None:
    """Returns how many pods the owner wants, counted as its controller counts, or None if it does not say.

    Pass only complete objects: an object of which only the metadata was read has default values in all other fields.

    - Deployment: `replicas`, 1 if absent, and `maxSurge` (25 % if absent, rounded up; 0 with `Recreate`);
    - ReplicaSet, StatefulSet, ReplicationController: `replicas`, 1 if absent;
    - Job: `parallelism`, at most `completions`, and 0 while it is suspended;
    - DaemonSet: the number of nodes that its status wants.
    """
    spec = owner.spec
    if kind == "DaemonSet":
        # A DaemonSet has no replica count in its spec; before its controller has looked, its status is 0.
        return Replicas(wanted=owner.status.desired_number_scheduled) if owner.status.observed_generation else None
    if kind == "Job":
        return Replicas(
            wanted=0 if spec.suspend else min(value_or(spec.parallelism, 1), value_or(spec.completions, 1 << 31))
        )
    if kind not in ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"):
        return None
    wanted = value_or(spec.replicas, 1)
    if kind != "Deployment":
        return Replicas(wanted=wanted)
    return Replicas(wanted=wanted, surge=max_surge_of(owner, wanted), revision=_revision(owner.metadata))


_WANTED, _AT_MOST = "deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas"
_REVISION = "deployment.kubernetes.io/revision"
"""The annotation with the revision of a rollout. The Deployment controller writes the same value on the Deployment and
on the ReplicaSet of its current template."""


def replicas_from_annotations(replica_set: Metadata) -> Replicas | None:
    """Returns how many pods the Deployment of a ReplicaSet wants, or None if the ReplicaSet has no Deployment.

    The Deployment controller writes this number into an annotation of the ReplicaSet whenever it changes the
    ReplicaSet's size (`SetReplicasAnnotations`, pkg/controller/deployment/util).
    """
    annotations = value_or(replica_set.annotations, {})
    wanted, at_most = annotations.get(_WANTED, ""), annotations.get(_AT_MOST, "")
    if not (wanted.isdecimal() and at_most.isdecimal()):
        return None
    return _shared_replicas(int(wanted), max(0, int(at_most) - int(wanted)), _revision(replica_set))


def _revision(metadata: Metadata) -> str:
    """Returns the revision of an object, or an empty string if the annotation is not a number of at most `_MAX_DIGITS`
    digits."""
    text = value_or(metadata.annotations, {}).get(_REVISION, "")
    return text if text.isdecimal() and len(text) <= _MAX_DIGITS else ""


# The digits of a 64-bit number.
_MAX_DIGITS = 19


# Thousands of ReplicaSets want the same few numbers: one object for each keeps memory small.
@lru_cache(maxsize=4096)
def _shared_replicas(wanted: int, surge: int, revision: str) -> Replicas:
    return Replicas(wanted=wanted, surge=surge, revision=revision)


def max_surge_of(deployment: Workload, replicas: int) -> int:
    """Returns how many pods a rollout may create in addition to `replicas` (`ResolveFenceposts` of the Deployment
    controller: a percentage is rounded up)."""
    strategy = deployment.spec.strategy
    if strategy.type == "Recreate":
        return 0
    max_surge = strategy.rolling_update.max_surge if strategy.rolling_update is not None else "25%"
    if isinstance(max_surge, int):
        return max(0, max_surge)
    percentage = max_surge.removesuffix("%")
    return ceil(replicas * int(percentage) / 100) if percentage.isdecimal() else 0


def updated_pods_of(kind: str, owner: Workload) -> int:
    """Returns the number of pods of the owner's current template, according to its status; 0 while the status describes
    an older generation."""
    status = owner.status
    if status.observed_generation < owner.metadata.generation:
        return 0
    match kind:
        case "Deployment" | "StatefulSet":
            return status.updated_replicas
        case "ReplicaSet" | "ReplicationController":
            return status.replicas
        case "DaemonSet":
            return status.updated_number_scheduled
    return 0
