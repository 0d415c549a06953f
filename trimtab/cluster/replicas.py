"""How many pods does an owner keep, and how many does it make beside them while it rolls out?"""

from functools import lru_cache
from math import ceil

import msgspec

from trimtab.cluster.api.meta import Metadata, get
from trimtab.cluster.api.workload import Workload


class Replicas(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Pods that one owner wants."""

    wanted: int
    surge: int = 0
    """Pods that a rollout may make beside them."""
    revision: str = ""
    """Of a Deployment and its ReplicaSets: the rollout that this is about; empty where it is not told."""

    @property
    def at_most(self) -> int:
        """Pods that may exist at once, by what the owner says of itself."""
        return self.wanted + self.surge


def replicas_of(kind: str, owner: Workload) -> Replicas | None:
    """What the owner wants, as its controller reads it; None where it does not say.

    An object of which only the metadata was read says nothing: whoever holds it must know that it is whole.

    - Deployment: `replicas`, one where absent, and `maxSurge` (25 % where absent, rounded up; none with `Recreate`);
    - ReplicaSet, StatefulSet, ReplicationController: `replicas`, one where absent;
    - Job: as many at once as `parallelism` says, no more than `completions`, none while it is suspended;
    - DaemonSet: as many as its status says that nodes want.
    """
    spec = owner.spec
    if kind == "DaemonSet":
        return Replicas(wanted=owner.status.desired_number_scheduled) if owner.status.observed_generation else None
    if kind == "Job":
        return Replicas(wanted=0 if spec.suspend else min(get(spec.parallelism, 1), get(spec.completions, 1 << 31)))
    if kind not in ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"):
        return None
    wanted = get(spec.replicas, 1)
    if kind != "Deployment":
        return Replicas(wanted=wanted)
    return Replicas(wanted=wanted, surge=_surge(owner, wanted), revision=_revision(owner.metadata))


_WANTED, _AT_MOST = "deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas"
_REVISION = "deployment.kubernetes.io/revision"
"""The Deployment controller writes the same on the Deployment and on the ReplicaSet of its present template."""


def replicas_told(replica_set: Metadata) -> Replicas | None:
    """What its Deployment wants, as the controller wrote it on the ReplicaSet in the same moment in which it sized that
    (`SetReplicasAnnotations`, pkg/controller/deployment/util); None of one that has no Deployment."""
    told = get(replica_set.annotations, {})
    wanted, most = told.get(_WANTED, ""), told.get(_AT_MOST, "")
    if not (wanted.isdecimal() and most.isdecimal()):
        return None
    return _shared(int(wanted), max(0, int(most) - int(wanted)), _revision(replica_set))


def _revision(metadata: Metadata) -> str:
    """A number of a few digits, whatever else somebody may have written."""
    told = get(metadata.annotations, {}).get(_REVISION, "")
    return told if told.isdecimal() and len(told) <= _MOST_DIGITS else ""


_MOST_DIGITS = 19
"""Of a 64-bit number."""


@lru_cache(maxsize=4096)
def _shared(wanted: int, surge: int, revision: str) -> Replicas:
    return Replicas(wanted=wanted, surge=surge, revision=revision)


def _surge(deployment: Workload, replicas: int) -> int:
    """(`ResolveFenceposts` of the Deployment controller: a share is rounded up.)"""
    strategy = deployment.spec.strategy
    if strategy.type == "Recreate":
        return 0
    written = strategy.rolling_update.max_surge if strategy.rolling_update is not None else "25%"
    if isinstance(written, int):
        return max(0, written)
    share = written.removesuffix("%")
    return ceil(replicas * int(share) / 100) if share.isdecimal() else 0


def updated_of(kind: str, owner: Workload) -> int:
    """Pods of the owner's present template that exist by its status; 0 while that speaks of an older template."""
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
