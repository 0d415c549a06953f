"""Finds the controllers above a pod, from its direct controller to the topmost one."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from trimtab.cluster.api.autoscaling import ScaleTargetRef, TargetRef
from trimtab.cluster.api.meta import Metadata, OwnerReference, value_or
from trimtab.cluster.kinds import (
    DEPLOYMENT,
    GROUPS_BY_KIND,
    REPLICA_SET,
    ROLLOUT,
    GroupKind,
    group_kind,
    group_name,
    kind_name,
    scale_target_kind,
)

TEMPLATE_HASH = "pod-template-hash"
CONTROLLER_BY_HASH_LABEL = {TEMPLATE_HASH: DEPLOYMENT, "rollouts-pod-template-hash": ROLLOUT}
"""Label → the kind of the controller that marks its ReplicaSets, their templates and their pods with it: the hash in
which the ReplicaSet's name ends."""
HASH_LABELS = {kind_name(kind): label for label, kind in CONTROLLER_BY_HASH_LABEL.items()}
"""Name of the kind → its label."""


# A NamedTuple, because its hash and its comparison are those of a tuple: it is the key of every lookup of a review.
class OwnerKey(NamedTuple):
    """The identity of an object that owns pods, or of a pod: its namespace, kind with group, and name.

    Objects of one name and of kinds of different groups are different objects. An owner is in the namespace of what it
    owns."""

    namespace: str
    kind: GroupKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"

    @property
    def stored(self) -> str:
        """The text in which owners are stored (see `parse_owner_key`)."""
        return f"{self.namespace}/{self.kind}/{self.name}"

    @property
    def described(self) -> str:
        """The object as it is written in sentences: `Deployment shop/web`."""
        return f"{self.kind} {self.namespace}/{self.name}"


def parse_owner_key(text: str) -> OwnerKey:
    """Returns the owner in a text of the form NAMESPACE/KIND/NAME, in which Trimtab stores owners.

    The kind is a `GroupKind`. In a text from before groups were stored it is a name, which means the kind of the group
    that is implied.
    """
    namespace, _, rest = text.partition("/")
    kind, _, name = rest.partition("/")
    return OwnerKey(namespace, GroupKind(kind), name)


def former_stored(owner: OwnerKey) -> str | None:
    """Returns the text in which an earlier version of Trimtab stored the owner, whose kind it wrote without the group.
    None if the text is the same, or if it would be that of a kind of another group, whose amounts must not be used."""
    name = kind_name(owner.kind)
    return None if name == owner.kind or name in GROUPS_BY_KIND else f"{owner.namespace}/{name}/{owner.name}"


NO_OWNER_KEY = OwnerKey("", GroupKind(""), "")
"""The key in place of the owner of a pod that has none. It is the key of no object."""


def kind_of_reference(reference: OwnerReference | TargetRef) -> GroupKind:
    """Returns the kind, with its group, that a reference names."""
    if isinstance(reference, ScaleTargetRef):
        return scale_target_kind(reference.api_version, reference.kind_name)
    return group_kind(reference.api_version, reference.kind_name)


def referenced_owner(reference: OwnerReference, namespace: str) -> OwnerKey:
    """Returns the identity of the owner that a reference of an object in this namespace names."""
    return OwnerKey(namespace, kind_of_reference(reference), reference.name)


def reference_to(owner: OwnerKey) -> OwnerReference:
    """Returns the reference by which an object names this owner as its controller. Its version is v1, because an
    identity has no version."""
    group = group_name(owner.kind)
    version = "" if group is None else f"{group}/v1" if group else "v1"
    return OwnerReference(api_version=version, kind_name=kind_name(owner.kind), name=owner.name, controller=True)


def controller_key(metadata: Metadata, namespace: str) -> OwnerKey | None:
    """Returns the controller of an object in this namespace, or None if the object has none."""
    reference = metadata.controller_owner
    return None if reference is None else referenced_owner(reference, namespace)


def target_key(target: TargetRef, namespace: str) -> OwnerKey:
    """Returns the identity of the object that an autoscaler in this namespace names as its target."""
    return OwnerKey(namespace, kind_of_reference(target), target.name)


Above = Callable[[OwnerKey], OwnerKey | None]
"""A function of an owner that returns the owner's own controller. It returns None if the owner has no controller, or if
the controller is unknown."""

# Real chains are shorter; only a cycle of owner references is longer.
_MAX_CHAIN_LENGTH = 6


def owner_chain(metadata: Metadata, namespace: str, above: Above) -> tuple[OwnerKey, ...]:
    """Returns the pod's controllers from the direct one to the topmost one, or an empty tuple for a pod without a
    controller.

    The first pod of a rollout can arrive before its ReplicaSet is known. The Deployment then follows from the name of
    the ReplicaSet, which is the Deployment's name and the pod's `pod-template-hash`. The ReplicaSets of Argo Rollouts
    have their hash in another label.
    """
    controller = controller_key(metadata, namespace)
    return () if controller is None else owners_from(controller, value_or(metadata.labels, {}), above)


def owners_from(controller: OwnerKey, labels: Mapping[str, str], above: Above) -> tuple[OwnerKey, ...]:
    """Returns the controllers of a pod with these labels, the direct one first (see `owner_chain`)."""
    owners: list[OwnerKey] = []
    owner: OwnerKey | None = controller
    while owner is not None and owner not in owners and len(owners) < _MAX_CHAIN_LENGTH:
        owners.append(owner)
        owner = above(owner) or controller_by_hash(labels, owner)
    return tuple(owners)


def controller_by_hash(labels: Mapping[str, str], owner: OwnerKey) -> OwnerKey | None:
    """Returns the controller of a ReplicaSet, derived from the ReplicaSet's name without the hash in the labels of its
    pod, or None if the name does not end in the hash (pkg/controller/deployment/sync.go)."""
    if owner.kind != REPLICA_SET:
        return None
    for label, kind in CONTROLLER_BY_HASH_LABEL.items():
        suffix = "-" + labels.get(label, "")
        if len(suffix) > 1 and owner.name.endswith(suffix):
            return OwnerKey(owner.namespace, kind, owner.name.removesuffix(suffix))
    return None
