"""The topmost owner of a pod.

It is known, in this order, from the source, from the cluster (or its metrics), or from the pod's own name. Most pods of
two weeks no longer exist, so their names must suffice: controllers build them by rule.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trimtab.cluster.owner import Owner

_TAIL = "[bcdfghjklmnpqrstvwxz2456789]"
"""The alphabet of generated names (k8s.io/apimachinery/pkg/util/rand)."""
_JOB = re.compile(rf"(.+)-(\d{{8}})(?:-\d+)?-{_TAIL}{{5}}")
_REPLICA = re.compile(rf"(.+)-({_TAIL}{{6,10}})-{_TAIL}{{5}}")
_ORDINAL = re.compile(r"(.+)-(\d{1,5})")
_DAEMON = re.compile(rf"(.+)-{_TAIL}{{5}}")
# From the most to the least specific pattern: a later one also matches names of earlier ones.
_NAME_PATTERNS = ((_JOB, "CronJob"), (_REPLICA, "Deployment"), (_ORDINAL, "StatefulSet"), (_DAEMON, "DaemonSet"))


@dataclass(frozen=True, slots=True)
class OwnerIndex:
    """The known owners of pods, and the known workloads."""

    pods: Mapping[tuple[str, str], Owner] = field(default_factory=dict)
    """(namespace, pod) → its topmost owner."""
    workloads: Mapping[tuple[str, str], Owner] = field(default_factory=dict)
    """(namespace, name) → the workload of this name, of any kind."""

    def topmost_owner(self, namespace: str, pod: str) -> Owner:
        """Returns the topmost owner of a pod; `Pod/NAME` where nothing else is known."""
        owner = self.pods.get((namespace, pod))
        return owner or self._existing_workload(namespace, pod) or owner_by_name(pod) or Owner("Pod", pod)

    def _existing_workload(self, namespace: str, pod: str) -> Owner | None:
        """Returns the existing workload whose pods would have such a name."""
        for shape, _ in _NAME_PATTERNS:
            match = shape.fullmatch(pod)
            if match and (namespace, match[1]) in self.workloads:
                return self.workloads[namespace, match[1]]
        return None


def owner_by_name(pod: str) -> Owner | None:
    """Returns the owner that the name alone suggests, or None if it suggests none."""
    for shape, kind in _NAME_PATTERNS:
        match = shape.fullmatch(pod)
        if match:
            return Owner(kind, match[1])
    return None


def topmost_owners(owned: Iterable[tuple[str, str, str, str, str]]) -> dict[tuple[str, str], Owner]:
    """Returns (namespace, kind, name, owner's kind, owner's name) of pods and their owners → the topmost owners of
    pods."""
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
