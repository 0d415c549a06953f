"""The complete list of differences between a pod that a compiled policy has changed and one that the webhook has
changed.

`docs/explanation/without-a-webhook.md` shows this list, `trimtab policies compile` names those of the policies that it
compiles, and an end-to-end test checks that no pod differs for another reason.
"""

from dataclasses import dataclass

from trimtab.policy.all_actions import iterate_actions
from trimtab.policy.podpolicy import PodPolicy


@dataclass(frozen=True, slots=True)
class Difference:
    """One reason for which a compiled policy and the webhook may change a pod differently."""

    code: str
    sentence: str
    """What the compiled policy does and the webhook does not, or the other way round."""


DIFFERENCES = (
    Difference(
        "namespace-rules",
        "The namespace has a LimitRange or a quota: a compiled policy then removes no limit, changes no existing "
        "request, adds no extended resource, and gives no request to a pod of class BestEffort. The webhook "
        "reads the LimitRange and the quota.",
    ),
    Difference(
        "own-contradiction",
        "The pod's own required terms contradict each other: the webhook detects the contradiction and changes "
        "no placement. CEL can only compare two conditions at a time.",
    ),
    Difference(
        "zero-request",
        "The container has a limit and a request of zero: the limit stays. The webhook removes the limit if "
        "another request keeps the pod from class BestEffort.",
    ),
    Difference(
        "read-limit",
        "The container or the pod's labels show a language runtime that does not read the limit because of a setting "
        "such as `-Xmx`: the limit stays. The compiled policy finds the runtime, but not the setting.",
    ),
    Difference(
        "old-class",
        "The policy replaces a RuntimeClass: the node selector and tolerations of the old class stay in the pod, "
        "and a pod whose selector contradicts the new class keeps the old class.",
    ),
    Difference(
        "named-class",
        "A pod names a RuntimeClass that defines no overhead: the pod's overhead stays, because the policy does "
        "not know the RuntimeClass.",
    ),
    Difference(
        "limit-reached",
        "The policy replaces requests (`when: always`), and the new request would reach the container's limit: a "
        "compiled policy leaves the request as it is. The webhook sets it to the limit, unless the pod would become "
        "Guaranteed, and considers limits that the same policy removes.",
    ),
    Difference(
        "managed-by-vpa",
        "A VerticalPodAutoscaler names the workload: the compiled policy leaves the requests of the workload "
        "to the VPA.",
    ),
    Difference("largest-node", "The policy does not limit a request to the capacity of the largest node."),
    Difference(
        "applied",
        "A pod that is applied directly keeps the values that a policy would replace, also in fields that the "
        "author did not write.",
    ),
    Difference("job-of-a-cron-job", "The pods of a CronJob have no known usage, because a pod names only its Job."),
    Difference(
        "order",
        "The API server applies two policies that decide the same field in no fixed order; `trimtab policies "
        "compile` names such pairs.",
    ),
    Difference(
        "paused",
        "The annotation `trimtab.dev/paused` stops Trimtab's own processes, not the API server: to stop compiled "
        "policies, delete their bindings.",
    ),
    Difference(
        "capacity",
        "The webhook does not make a change with which the pod would exceed a quota or fit on no node; a "
        "compiled policy makes it.",
    ),
)
"""All differences, the most frequent first."""


def list_differences(policy: PodPolicy) -> tuple[Difference, ...]:
    """Returns the differences that may concern a pod which this policy changes, in the order of `DIFFERENCES`. `order`
    is left out, because it concerns pairs of policies."""
    codes = {"paused"}
    for action, settings in iterate_actions(policy.spec.actions):
        codes |= {*action.list_differences(settings)}
        if action.affects:
            codes.add("capacity")
        if getattr(settings, "override", False):
            codes.add("applied")
    return tuple(difference for difference in DIFFERENCES if difference.code in codes)
