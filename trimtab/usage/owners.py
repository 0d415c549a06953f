"""Finds the topmost owner of a pod.

It is taken from the first of these that knows it: the source of the usage, the cluster (or its metrics), the pod's own
name. Most pods of the last two weeks no longer exist, so their names must be enough; controllers build the names of
pods by fixed rules.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from trimtab.cluster.kinds import CRON_JOB, DAEMON_SET, DEPLOYMENT, POD, STATEFUL_SET
from trimtab.cluster.owner import OwnerKey

_TAIL = "[bcdfghjklmnpqrstvwxz2456789]"
"""A character of a generated name (k8s.io/apimachinery/pkg/util/rand)."""
_JOB = re.compile(rf"(.+)-(\d{{8}})(?:-\d+)?-{_TAIL}{{5}}")
_REPLICA = re.compile(rf"(.+)-({_TAIL}{{6,10}})-{_TAIL}{{5}}")
_ORDINAL = re.compile(r"(.+)-(\d{1,5})")
_DAEMON = re.compile(rf"(.+)-{_TAIL}{{5}}")
# From the most to the least specific pattern: a later one also matches names of earlier ones.
_NAME_PATTERNS = ((_JOB, CRON_JOB), (_REPLICA, DEPLOYMENT), (_ORDINAL, STATEFUL_SET), (_DAEMON, DAEMON_SET))


@dataclass(frozen=True, slots=True)
class OwnerIndex:
    """The owners of pods and the workloads that are known."""

    pods: Mapping[tuple[str, str], OwnerKey] = field(default_factory=dict)
    """(namespace, pod) → its topmost owner."""
    workloads: Mapping[tuple[str, str], OwnerKey] = field(default_factory=dict)
    """(namespace, name) → the workload of this name, whatever its kind."""

    def topmost_owner(self, namespace: str, pod: str) -> OwnerKey:
        """Returns the topmost owner of a pod; `Pod/NAME` if no owner is known."""
        owner = self.pods.get((namespace, pod))
        return (
            owner
            or self._existing_workload(namespace, pod)
            or owner_by_name(namespace, pod)
            or OwnerKey(namespace, POD, pod)
        )

    def _existing_workload(self, namespace: str, pod: str) -> OwnerKey | None:
        """Returns the existing workload whose pods would have such a name, or None if there is none."""
        for shape, _ in _NAME_PATTERNS:
            match = shape.fullmatch(pod)
            if match and (namespace, match[1]) in self.workloads:
                return self.workloads[namespace, match[1]]
        return None


def owner_by_name(namespace: str, pod: str) -> OwnerKey | None:
    """Returns the owner that can be derived from the pod's name alone, or None if none can."""
    for shape, kind in _NAME_PATTERNS:
        match = shape.fullmatch(pod)
        if match:
            return OwnerKey(namespace, kind, match[1])
    return None


def topmost_owners(owners: Mapping[OwnerKey, OwnerKey]) -> dict[tuple[str, str], OwnerKey]:
    """Returns (namespace, pod) → topmost owner. `owners` maps pods, and the owners of pods, to their owners."""
    return {(pod.namespace, pod.name): _topmost(owners, owner) for pod, owner in owners.items() if pod.kind == POD}


def _topmost(owners: Mapping[OwnerKey, OwnerKey], owner: OwnerKey) -> OwnerKey:
    # Owner references may form a circle: the API server does not check them.
    for _ in range(6):
        next_owner = owners.get(owner)
        if next_owner is None:
            break
        owner = next_owner
    return owner
