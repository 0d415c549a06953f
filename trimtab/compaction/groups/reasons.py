"""Reasons why a group of pods on several nodes stays although the pool moves groups: one code per rule."""

from trimtab.cluster.reason import Code

MEMBER_STAYS = Code(
    "group-member-stays",
    "The pool moves groups of pods (groups: move), but another pod of the group may not be evicted, so all of them "
    "stay.",
    "See the reason of the pod that the message names.",
)
SEVERAL_POOLS = Code(
    "group-in-several-pools",
    "The pool moves groups of pods (groups: move), but pods of the group are pending, or on nodes of another pool or "
    "of none, or on a node that is being drained.",
    "Wait until all pods of the group run, or run the group on nodes of one pool.",
)
BUDGET_TOO_SMALL = Code(
    "group-budget-too-small",
    "A PodDisruptionBudget does not allow the evictions of all pods of a group at the same time.",
    "Raise maxUnavailable of the budget to the number of pods of a group, or let the group stay.",
)
OTHER_NODE_FIRST = Code(
    "group-moves-with-other-node",
    "The group of the pod is moved when another of its nodes is drained. It is not moved twice in one plan.",
    "Nothing: later plans try the other nodes.",
)
