"""Reasons why no evictions make room for pods: one code per rule."""

from trimtab.cluster.reason import Code

NO_NODE_ADMITS = Code(
    "room-no-node-admits",
    "No node has the labels that the pod requires and only taints that it tolerates.",
    "Compare the pod's nodeSelector, affinity and tolerations with the nodes.",
)
TOO_LITTLE = Code(
    "room-too-little",
    "No node has enough of a resource, even without all pods that may move.",
    "Request less, or add a larger node.",
)
NO_OTHER_PLACE = Code(
    "room-no-other-place",
    "The pods that would have to move fit on no other node.",
    "Add a node for them, or request less. They would be Pending.",
)
KEPT_AWAY = Code(
    "room-kept-away",
    "Other pods, or its own affinity or spread, keep the pod away from the nodes with room.",
    "Compare the affinity, spread and host ports of the pods.",
)
CANNOT_JUDGE = Code(
    "room-pod-not-judged",
    "Trimtab cannot judge where the pod fits.",
    "See in the message what the pod needs that Trimtab does not count.",
)
NO_NODE_CAN_BE_FREE = Code(
    "room-no-node-can-be-free",
    "Every node of the pool has a pod that may not move or fits nowhere else.",
    "Remove what keeps the pod that the message names, or add a node. The message names the node that lacks least.",
)
NOT_ADMITTED = Code(
    "room-pod-refused",
    "The API server or a policy would refuse a pod that is to run.",
    "Change what the message names, or add its kind to the snapshot.",
)
CLASS_NOT_KNOWN = Code(
    "room-class-not-known",
    "The pod names a class of a kind that the snapshot does not have.",
    "Add the kind to the snapshot, or the class to the manifest.",
)
QUOTA_TOO_SMALL = Code(
    "room-quota-too-small",
    "A ResourceQuota of the namespace has no room for all the pods.",
    "Enlarge the quota, or create fewer pods.",
)
