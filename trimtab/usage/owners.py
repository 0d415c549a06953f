"""Finds the topmost owner of a pod.

It is taken from the first of these that knows it: the source of the usage, the cluster (or its metrics), the pod's own
name. Most pods of the last two weeks no longer exist, so their names must be enough; controllers build the names of
pods by fixed rules.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trimtab.cluster.owner import Owner

_TAIL = "[bcdfghjklmnpqrstvwxz2456789]"
"""A character of a generated name (k8s.io/apimachinery/pkg/util/rand)."""
_JOB = re.compile(rf"(.+)-(\d{{8}})(?:-\d+)?-{_TAIL}{{5}}")
_REPLICA = re.compile(rf"(.+)-({_TAIL}{{6,10}})-{_TAIL}{{5}}")
_ORDINAL = re.compile(r"(.+)-(\d{1,5})")
_DAEMON = re.compile(rf"(.+)-{_TAIL}{{5}}")
# From the most to the least specific pattern: a later one also matches names of earlier ones.
_NAME_PATTERNS = ((_JOB, "CronJob"), (_REPLICA, "Deployment"), (_ORDINAL, "StatefulSet"), (_DAEMON, "DaemonSet"))


@dataclass(frozen=True, slots=True)
class OwnerIndex:
    """The owners of pods and the workloads that are known."""

    pods: Mapping[tuple[str, str], Owner] = field(default_factory=dict)
    """(namespace, pod) → its topmost owner."""
    workloads: Mapping[tuple[str, str], Owner] = field(default_factory=dict)
    """(namespace, name) → the workload of this name, whatever its kind."""

    def topmost_owner(self, namespace: str, pod: str) -> Owner:
        """Returns the topmost owner of a pod; `Pod/NAME` if no owner is known."""
        owner = self.pods.get((namespace, pod))
        return owner or self._existing_workload(namespace, pod) or owner_by_name(pod) or Owner("Pod", pod)

    def _existing_workload(self, namespace: str, pod: str) -> Owner | None:
        """Returns the existing workload whose pods would have such a name, or None if there is none."""
        for shape, _ in _NAME_PATTERNS:
            match = shape.fullmatch(pod)
            if match and (namespace, match[1]) in self.workloads:
                return self.workloads[namespace, match[1]]
        return None


def owner_by_name(pod: str) -> Owner | None:
    """Returns the owner that can be derived from the pod's name alone, or None if none can."""
    for shape, kind in _NAME_PATTERNS:
        match = shape.fullmatch(pod)
        if match:
            return Owner(kind, match[1])
    return None


def topmost_owners(owned: Iterable[tuple[str, str, str, str, str]]) -> dict[tuple[str, str], Owner]:
    """Returns (namespace, pod) → topmost owner. `owned` has (namespace, kind, name, owner's kind, owner's name) for
    pods and for their owners."""
    owners = {(ns, kind, name): Owner(owner_kind, owner) for ns, kind, name, owner_kind, owner in owned}
    top_owners = {}
    for (namespace, kind, name), owner in owners.items():
        if kind == "Pod":
            top_owners[namespace, name] = _topmost(owners, namespace, owner)
    return top_owners


def _topmost(owners: Mapping[tuple[str, str, str], Owner], namespace: str, owner: Owner) -> Owner:
    # Owner references may form a circle: the API server does not check them.
    for _ in range(6):
        next_owner = owners.get((namespace, owner.kind, owner.name))
        if next_owner is None:
            break
        owner = next_owner
    return owner
