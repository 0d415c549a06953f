"""The controllers above a pod, from the nearest to the topmost."""

from collections.abc import Callable
from dataclasses import dataclass

from trimtab.cluster.api.meta import Metadata, value_or


@dataclass(frozen=True, slots=True)
class Owner:
    """A controller: its kind and its name in the pod's namespace."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


OwnerKey = tuple[str, str, str]
"""(namespace, kind, name) of an owner, or of the pod itself if it has none."""

Above = Callable[[str, Owner], Owner | None]
"""(namespace, owner) → the owner's own controller, or None if it has none or is unknown."""

# Real chains are shorter; only a cycle of owner references is longer.
_MAX_CHAIN_LENGTH = 6


def owner_chain(metadata: Metadata, namespace: str, above: Above) -> tuple[Owner, ...]:
    """Returns the pod's controllers from the nearest to the topmost, or an empty tuple for a bare pod.

    The Deployment of a ReplicaSet that is not known yet (the first pod of a rollout can arrive before its ReplicaSet)
    follows from the ReplicaSet's name, which ends in the pod's `pod-template-hash`. An Argo Rollout's ReplicaSet has
    the hash under another label.
    """
    reference = metadata.controller_owner
    owners: list[Owner] = []
    owner = Owner(reference.kind, reference.name) if reference else None
    while owner is not None and owner not in owners and len(owners) < _MAX_CHAIN_LENGTH:
        owners.append(owner)
        owner = above(namespace, owner) or _owner_by_hash(metadata, owner)
    return tuple(owners)


CONTROLLER_BY_HASH_LABEL = {"pod-template-hash": "Deployment", "rollouts-pod-template-hash": "Rollout"}
"""Label that holds the hash → kind of the controller whose ReplicaSets are named by it."""


def _owner_by_hash(metadata: Metadata, owner: Owner) -> Owner | None:
    """Returns the controller of a ReplicaSet by the hash in its name, or None if the name does not end in the pod's
    hash."""
    if owner.kind != "ReplicaSet":
        return None
    labels = value_or(metadata.labels, {})
    for label, kind in CONTROLLER_BY_HASH_LABEL.items():
        suffix = "-" + labels.get(label, "")
        if len(suffix) > 1 and owner.name.endswith(suffix):
            return Owner(kind, owner.name.removesuffix(suffix))
    return None
