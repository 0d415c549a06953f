"""Reasons why a node group gets no part in a replacement, and why a pool cannot simply be emptied."""

from trimtab.cluster.node import LEGACY_TAINT_KEY
from trimtab.cluster.reason import Code

GROUP_WITHOUT_NODE = Code(
    "replace-group-without-node",
    "The node group has no ready node, so the labels, taints and resources of its next node are not known.",
    "Scale the group to one node, or describe its next node with --group, if it should be compared.",
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
    "The nodes of the group have no label that no other node of their zone has, so that no pod can select a node of "
    "this group.",
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
DAEMON_REJECTS_TAINT = Code(
    "daemon-does-not-tolerate-legacy",
    "A DaemonSet that runs on the nodes of the legacy pool does not tolerate their taint, so Trimtab only uses "
    "the effect PreferNoSchedule.",
    f"Add a toleration for {LEGACY_TAINT_KEY} to the DaemonSet.",
)
ONLY_ON_LEGACY = Code(
    "runs-only-on-legacy",
    "A pod, or the template of a workload, fits on no node outside of the legacy pool, so Trimtab only uses the "
    "effect PreferNoSchedule for the taint.",
    "Change the node selector or affinity of the pod, or move its volume.",
)
TARGET_EMPTY = Code(
    "target-without-nodes",
    "The pool that should receive the pods has no node, so its labels, taints and machine type are not known.",
    "Let the node group of the pool keep one node: set its minimum size to 1.",
)
TARGET_NOT_BETTER = Code(
    "target-not-cheaper",
    "The new nodes that the pods of the legacy pool need would cost as much as its nodes, or it is not known what they "
    "would cost.",
    "`trimtab machines rank --pool POOL` compares the node groups. `--no-compare` skips the comparison.",
)
