"""Reasons why a group of pods on several nodes stays although the pool moves groups: one code per rule."""

from trimtab.cluster.reason import Code

MEMBER_STAYS = Code(
    "group-member-stays",
    "Another pod of the group may not be evicted, so all of them stay. The pool moves groups of pods as a whole "
    "(groups: move).",
    "See the reason of the pod that the message names.",
)
SEVERAL_POOLS = Code(
    "group-in-several-pools",
    "Pods of the group are pending, or on nodes outside of the pool or being drained. So the pool does not move the "
    "group (groups: move).",
    "Wait until all run, or run the group on nodes of one pool.",
)
BUDGET_TOO_SMALL = Code(
    "group-budget-too-small",
    "A PodDisruptionBudget does not allow all evictions of a group at once.",
    "Raise its maxUnavailable to the size of a group, or let the group stay.",
)
OTHER_NODE_FIRST = Code(
    "group-moves-with-other-node",
    "The group moves when another of its nodes is drained. It is not moved twice in one plan.",
    "Nothing to do: later plans try the other nodes.",
)
