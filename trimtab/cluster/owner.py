"""Who made this pod, and who made them?"""

from collections.abc import Callable
from dataclasses import dataclass

from trimtab.cluster.api.meta import Metadata, get


@dataclass(frozen=True, slots=True)
class Owner:
    """A controller, as people name it: kind and name within the pod's namespace."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


Above = Callable[[str, Owner], Owner | None]
"""(namespace, owner) → its own controller as far as known; None where it has none or is not known."""

_MOST = 6
"""No real chain is longer; a cycle is."""


def chain(metadata: Metadata, namespace: str, above: Above) -> tuple[Owner, ...]:
    """The pod's controllers from the nearest to the topmost; empty for a bare pod.

    A ReplicaSet not known yet (the first pod of a rollout outruns every watch) still tells its Deployment: its
    name ends in the pod's own `pod-template-hash`. (An Argo Rollout's carries the hash under a label of its own.)
    """
    reference = metadata.controller
    found: list[Owner] = []
    owner = Owner(reference.kind, reference.name) if reference else None
    while owner is not None and owner not in found and len(found) < _MOST:
        found.append(owner)
        owner = above(namespace, owner) or _by_hash(metadata, owner)
    return tuple(found)


_MAKERS = {"pod-template-hash": "Deployment", "rollouts-pod-template-hash": "Rollout"}
"""Label with the hash → who makes ReplicaSets that are named by it."""


def _by_hash(metadata: Metadata, owner: Owner) -> Owner | None:
    if owner.kind != "ReplicaSet":
        return None
    labels = get(metadata.labels, {})
    for label, kind in _MAKERS.items():
        suffix = "-" + labels.get(label, "")
        if len(suffix) > 1 and owner.name.endswith(suffix):
            return Owner(kind, owner.name.removesuffix(suffix))
    return None
