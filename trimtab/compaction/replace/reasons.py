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
    "The node group, or the cluster as a whole, has reached its maximum.",
    "Raise that maximum, if the group should grow.",
)
GROUP_OF_SEVERAL_KINDS = Code(
    "replace-group-of-several-kinds",
    "The nodes of the group differ in capacity type or architecture. So the kind of the next node is not known.",
    "Give each kind a node group of its own.",
)
GROUP_IN_BACK_OFF = Code(
    "replace-group-in-back-off",
    "The node group is in back-off. The cloud did not provide its last node, or the group is not healthy.",
    "Nothing to do: the group is compared again when its back-off has ended.",
)
GROUP_WITHOUT_LABEL = Code(
    "replace-group-without-label",
    "No label distinguishes the nodes of the group from others in their zone. So no pod can select a node of this "
    "group.",
    "Label the nodes, for example with the name of the group.",
)
NEW_NODE_WITHOUT_PRICE = Code(
    "replace-price-unknown",
    "The price of a node of this group is not known. So Trimtab cannot say whether it is cheaper.",
    "Set the price in the pool's prices or in a price file (--prices).",
)
LEGACY_GROUP = Code(
    "replace-legacy-group",
    "The nodes of the group are tainted as legacy. So the group should get no more nodes.",
    "Nothing to do.",
)
DAEMON_REJECTS_TAINT = Code(
    "daemon-does-not-tolerate-legacy",
    "A DaemonSet does not tolerate the legacy taint, so the taint's effect is only PreferNoSchedule. The DaemonSet "
    "runs on the nodes of the legacy pool.",
    f"Add a toleration for {LEGACY_TAINT_KEY} to the DaemonSet.",
)
ONLY_ON_LEGACY = Code(
    "runs-only-on-legacy",
    "A pod fits only on the legacy pool, so its taint has the effect PreferNoSchedule. It may also be the template "
    "of a workload.",
    "Change the pod's node selector or affinity, or move its volume.",
)
TARGET_EMPTY = Code(
    "target-without-nodes",
    "The pool that should receive the pods has no node. So its labels, taints and machine type are not known.",
    "Set the minimum size of its node group to 1.",
)
TARGET_NOT_BETTER = Code(
    "target-not-cheaper",
    "The new nodes for the legacy pool's pods would cost as much as the old ones, or an unknown sum.",
    "Compare node groups with `trimtab machines rank --pool POOL`, or skip this with `--no-compare`.",
)
