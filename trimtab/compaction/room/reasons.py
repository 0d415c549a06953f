"""Reasons why no evictions make room for pods: one code per rule."""

from trimtab.cluster.reason import Code

NO_NODE_ADMITS = Code(
    "room-no-node-admits",
    "No node has the labels, and no taint but those, that the pod requires.",
    "Compare the pod's nodeSelector, affinity and tolerations with the nodes.",
)
TOO_LITTLE = Code(
    "room-too-little",
    "No node has enough of a resource, even if all of its pods that may move did.",
    "Request less, or add a larger node.",
)
NO_OTHER_PLACE = Code(
    "room-no-other-place",
    "The pods that would have to move fit on no other node, so that they would be Pending.",
    "Add a node for them, or request less.",
)
CANNOT_JUDGE = Code(
    "room-pod-not-judged",
    "Trimtab cannot judge where the pod fits.",
    "The message names what the pod needs that Trimtab does not count.",
)
NO_NODE_CAN_BE_FREE = Code(
    "room-no-node-can-be-free",
    "Each node of the pool has a pod that may not move, or that fits on no other node.",
    "The message names the node that lacks least. Remove what keeps its pod, or add a node.",
)
