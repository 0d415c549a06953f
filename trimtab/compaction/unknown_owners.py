"""Sentences about pods whose owner is of a kind that is not known to recreate them."""

from trimtab.cluster.kinds import GROUPS_BY_KIND
from trimtab.cluster.owner import OwnerKey

_SERVED_BY_KUBERNETES = ("", "apps", "autoscaling", "batch", "policy")


def describe_unknown_owner(pod: str, owner: OwnerKey) -> str:
    """Returns a sentence about why it is not known whether the pod's successor would be created.

    A pod may be owned directly by a kind that Kubernetes serves and that creates no pods, such as a Deployment, which
    creates ReplicaSets. Then another program created the pod, and only that program may recreate it."""
    group = GROUPS_BY_KIND.get(owner.kind)
    if group is not None and (group in _SERVED_BY_KUBERNETES or group.endswith(".k8s.io")):
        return (
            f"pod {pod} belongs directly to {owner.described}, and Kubernetes creates no pod of a {owner.kind} "
            f"itself: which program would recreate the pod is not known"
        )
    return (
        f"pod {pod} belongs to {owner.described}, and Trimtab does not know whether the controller of this kind "
        f"recreates its pods"
    )
