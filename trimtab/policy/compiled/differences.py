"""Where a pod of a compiled policy differs from the webhook's, although the policy was compiled: the fixed list.

`docs/explanation/without-a-webhook.md` shows it, and an end-to-end test holds that no pod differs for another reason.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """One reason for which the two pods may differ."""

    code: str
    sentence: str
    """What the API server's policy does and the webhook does not, or the other way round."""


DIFFERENCES = (
    Difference(
        "namespace-rules",
        "The namespace has a LimitRange or a quota: a compiled policy then removes no limit, changes no request that "
        "is there, adds no extended resource, and gives no request to a pod of class BestEffort. The webhook reads "
        "what they say.",
    ),
    Difference(
        "own-contradiction",
        "The pod's own required terms contradict each other: the webhook sees it and places nothing. CEL compares two "
        "conditions at a time.",
    ),
    Difference(
        "zero-request",
        "The container has a limit and a request of zero: the limit stays. The webhook removes it where another "
        "request keeps the pod from class BestEffort.",
    ),
    Difference(
        "old-class",
        "The policy replaces a RuntimeClass: node selector and tolerations that the old class had brought stay, and a "
        "pod whose selector contradicts the new class keeps the old one.",
    ),
    Difference("named-class", "Overhead of a pod that names a class which defines none stays: the class is not known."),
    Difference("managed-by-vpa", "A VerticalPodAutoscaler names the workload: its requests are left to it."),
    Difference("largest-node", "A request is not capped at the largest node of the cluster."),
    Difference(
        "applied",
        "A pod that is applied itself keeps what a policy would replace, also in fields that the author did not write.",
    ),
    Difference("job-of-a-cron-job", "The pods of a CronJob have no usage: a pod names the Job only."),
    Difference("order", "Two policies that decide one field do so in no fixed order; `compile` names such pairs."),
    Difference("paused", "The annotation `trimtab.dev/paused` stops the webhook only: delete the bindings instead."),
    Difference("capacity", "The webhook withholds what a full quota or a missing node would refuse; a policy cannot."),
)
"""All of them, the frequent ones first."""


def find_difference(code: str) -> Difference:
    """Returns the difference of this code. Raises KeyError for any other."""
    return {difference.code: difference for difference in DIFFERENCES}[code]
