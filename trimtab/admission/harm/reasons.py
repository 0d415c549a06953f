"""Why is a policy stopped, or not? Every code of this folder, for the reference."""

from trimtab.cluster.reason import Code

HARMFUL = Code(
    "harm-brake",
    "Pods that the policy changed are hit by a trouble it may cause (killed for memory, evicted by a node in need, no "
    "node takes them) clearly more often than those it did not change. The policy was put to `warn`.",
    "Look at the pods that are named. Mend the policy, then say `mode: apply` again: nobody else will.",
)
TOO_FEW = Code(
    "harm-too-few-pods",
    "Too few pods carry the policy's change, or too few are known that do not, to tell harm from chance.",
    "Nothing to do: it is looked at again with every round.",
)
QUIET = Code(
    "harm-none-seen",
    "Pods that the policy changed fare no worse than others.",
    "Nothing to do.",
)
EVERYWHERE = Code(
    "harm-everywhere",
    "Pods that the policy never touched are hit as often: the trouble is the cluster's, not the policy's.",
    "Look for what is wrong with the cluster: nodes short of memory, no room left.",
)
