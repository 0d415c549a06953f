"""Reasons why a node group gets no part in a replacement: one code per rule."""

from trimtab.cluster.reason import Code

GROUP_WITHOUT_NODE = Code(
    "replace-group-without-node",
    "The node group has no ready node, so the labels, taints and resources of its next node are not known.",
    "Scale the group to one node, if it should be compared.",
)
GROUP_AT_MAXIMUM = Code(
    "replace-group-at-maximum",
    "The node group has as many nodes as its maximum allows.",
    "Raise the maximum of the group, if it should grow.",
)
GROUP_IN_BACK_OFF = Code(
    "replace-group-in-back-off",
    "The cloud did not provide the last node of the group, or the group is not healthy.",
    "Nothing to do: the group is compared again when its back-off has ended.",
)
GROUP_WITHOUT_LABEL = Code(
    "replace-group-without-label",
    "The nodes of the group have no label that only they have, so that no pod can select a node of this group.",
    "Label the nodes of the group, for example with the name of the group.",
)
NEW_NODE_WITHOUT_PRICE = Code(
    "replace-price-unknown",
    "The price of a node of this group is not known, so that Trimtab cannot say whether it is cheaper.",
    "Set the price in the pool's prices or in a price file (--prices).",
)
LEGACY_GROUP = Code(
    "replace-legacy-group",
    "The nodes of the group are tainted as legacy, so that the group should get no more nodes.",
    "Nothing to do.",
)
