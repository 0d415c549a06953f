"""Finds the controllers above a pod, from its direct controller to the topmost one."""

from collections.abc import Callable
from dataclasses import dataclass

from trimtab.cluster.api.meta import Metadata, value_or


@dataclass(frozen=True, slots=True)
class Owner:
    """A controller: its kind, and its name. It is in the pod's namespace."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


OwnerKey = tuple[str, str, str]
"""(namespace, kind, name) of an owner, or of the pod itself if the pod has no owner."""

Above = Callable[[str, Owner], Owner | None]
"""A function of (namespace, owner) that returns the owner's own controller. It returns None if the owner has no
controller, or if the controller is unknown."""

# Real chains are shorter; only a cycle of owner references is longer.
_MAX_CHAIN_LENGTH = 6


def owner_chain(metadata: Metadata, namespace: str, above: Above) -> tuple[Owner, ...]:
    """Returns the pod's controllers from the direct one to the topmost one, or an empty tuple for a pod without a
    controller.

    The first pod of a rollout can arrive before its ReplicaSet is known. The Deployment then follows from the name of
    the ReplicaSet, which is the Deployment's name and the pod's `pod-template-hash`. The ReplicaSets of Argo Rollouts
    have their hash in another label.
    """
    reference = metadata.controller_owner
    owners: list[Owner] = []
    owner = Owner(reference.kind, reference.name) if reference else None
    while owner is not None and owner not in owners and len(owners) < _MAX_CHAIN_LENGTH:
        owners.append(owner)
        owner = above(namespace, owner) or _owner_by_hash(metadata, owner)
    return tuple(owners)


CONTROLLER_BY_HASH_LABEL = {"pod-template-hash": "Deployment", "rollouts-pod-template-hash": "Rollout"}
"""Label with a hash → the kind of the controller whose ReplicaSets have this hash in their names."""


def _owner_by_hash(metadata: Metadata, owner: Owner) -> Owner | None:
    """Returns the controller of a ReplicaSet, derived from the ReplicaSet's name without the pod's hash, or None if the
    name does not end in the hash."""
    if owner.kind != "ReplicaSet":
        return None
    labels = value_or(metadata.labels, {})
    for label, kind in CONTROLLER_BY_HASH_LABEL.items():
        suffix = "-" + labels.get(label, "")
        if len(suffix) > 1 and owner.name.endswith(suffix):
            return Owner(kind, owner.name.removesuffix(suffix))
    return None
