"""Which workload is this pod of?

In this order: what the source says, what the cluster (or its metrics) knows, the pod's own name. Most pods of two
weeks are gone when somebody asks, so their names must do: controllers build them by rule.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trimtab.cluster.owner import Owner

_TAIL = "[bcdfghjklmnpqrstvwxz2456789]"
"""The alphabet of generated names (apimachinery util/rand)."""
_JOB = re.compile(rf"(.+)-(\d{{8}})(?:-\d+)?-{_TAIL}{{5}}")
_REPLICA = re.compile(rf"(.+)-({_TAIL}{{6,10}})-{_TAIL}{{5}}")
_ORDINAL = re.compile(r"(.+)-(\d{1,5})")
_DAEMON = re.compile(rf"(.+)-{_TAIL}{{5}}")
_SHAPES = ((_JOB, "CronJob"), (_REPLICA, "Deployment"), (_ORDINAL, "StatefulSet"), (_DAEMON, "DaemonSet"))


@dataclass(frozen=True, slots=True)
class OwnerIndex:
    """What is known of pods and workloads."""

    pods: Mapping[tuple[str, str], Owner] = field(default_factory=dict)
    """(namespace, pod) → its topmost owner."""
    workloads: Mapping[tuple[str, str], Owner] = field(default_factory=dict)
    """(namespace, name) → the workload of this name, whatever its kind."""

    def of(self, namespace: str, pod: str) -> Owner:
        """`Pod/NAME` where nothing tells more."""
        known = self.pods.get((namespace, pod))
        return known or self._named(namespace, pod) or by_name(pod) or Owner("Pod", pod)

    def _named(self, namespace: str, pod: str) -> Owner | None:
        """The workload that stands now and would name its pods so."""
        for shape, _ in _SHAPES:
            match = shape.fullmatch(pod)
            if match and (namespace, match[1]) in self.workloads:
                return self.workloads[namespace, match[1]]
        return None


def by_name(pod: str) -> Owner | None:
    """What the name alone tells; None where it could be anybody's."""
    for shape, kind in _SHAPES:
        match = shape.fullmatch(pod)
        if match:
            return Owner(kind, match[1])
    return None


def chained(owned: Iterable[tuple[str, str, str, str, str]]) -> dict[tuple[str, str], Owner]:
    """(namespace, kind, name, owner's kind, owner's name) of pods and what is between → pods' topmost owners."""
    above = {(ns, kind, name): Owner(owner_kind, owner) for ns, kind, name, owner_kind, owner in owned}
    found = {}
    for (namespace, kind, name), owner in above.items():
        if kind == "Pod":
            found[namespace, name] = _top(above, namespace, owner)
    return found


def _top(above: Mapping[tuple[str, str, str], Owner], namespace: str, owner: Owner) -> Owner:
    for _ in range(6):
        further = above.get((namespace, owner.kind, owner.name))
        if further is None:
            break
        owner = further
    return owner
