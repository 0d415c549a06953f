"""Reason codes of this package: why a running pod differs from the policies, and why a policy is or is not harmful."""

from trimtab.cluster.reason import Code

BEFORE_POLICY = Code(
    "created-before-policy",
    "The pod was created before the policy was last changed. Policies change pods only when they are created.",
    "Nothing to do. If the current policies should change these pods, restart the workload (`kubectl rollout "
    "restart`).",
)
BEFORE_WEBHOOK = Code(
    "created-before-webhook",
    "The pod was created before Trimtab's webhook was registered.",
    "Restart the workload, so that the webhook receives its new pods.",
)
NO_WEBHOOK = Code(
    "webhook-not-registered",
    "The cluster does not contain Trimtab's MutatingWebhookConfiguration, so only compiled policies change pods.",
    "Install Trimtab (`trimtab install`), apply what `trimtab policies compile` prints, or remove the policies "
    "if no pod should be changed.",
)
MISSED = Code(
    "missed-by-webhook",
    "The pod was created while the policy was in force, but the webhook did not change it. The webhook was down, "
    "too slow, paused, not called for this namespace, or had not yet read the policy or the objects of the "
    "cluster.",
    "Check the availability of the webhook (its metric `trimtab_errors`, and the API server's metric "
    "`apiserver_admission_webhook_fail_open_count`), then restart the workload.",
)
DECIDED_OTHERWISE = Code(
    "decision-changed-since",
    "The webhook decided about the pod, but would decide differently now, because the cluster has changed since.",
    "Nothing to do. If the pods should get the current decision, restart the workload.",
)
COMPILED_OTHERWISE = Code(
    "compiled-policy-decided-otherwise",
    "The API server changed the pod according to a compiled policy, but the webhook would make another change as "
    "well: the compiled policy differs by design, or is older than the policy.",
    "docs/explanation/without-a-webhook.md describes the differences. Compile the policy again after you change it.",
)
CAUSE_UNKNOWN = Code(
    "cause-unknown",
    "The pod lacks a change of the policy, and Trimtab does not know whether the pod is older than the policy, "
    "because policies from a folder have no creation time.",
    "Restart the workload. If its new pods are still unchanged, the API server does not call the webhook for them.",
)
ONLY_WATCHING = Code(
    "policy-not-in-apply-mode",
    "The policy is in mode `warn` or `audit`: it changes no pods, and reports what it would change.",
    "When you agree with the changes that the policy reports, set its `mode: apply`.",
)
OVERHEAD_STALE = Code(
    "overhead-stale",
    "The pod's overhead differs from the overhead of its RuntimeClass, because the RuntimeClass was changed "
    "after the pod was created.",
    "Restart the workload. Until then the scheduler counts the old overhead for its pods.",
)
SETTING_WRONG = Code(
    "overhead-setting-wrong",
    "The setting `TRIMTAB_OVERHEAD` names one component as the writer of pod overhead, but running pods show "
    "that the other component writes it.",
    "Set `TRIMTAB_OVERHEAD` of the webhook and the watchdog to the value that the message names.",
)
NO_EVIDENCE = Code(
    "overhead-no-evidence",
    "No running pod shows whether the API server's RuntimeClass admission is on.",
    "Nothing to do: Trimtab checks each new pod that names a RuntimeClass with overhead.",
)


HARMFUL = Code(
    "harm-brake",
    "Pods that the policy changed fail clearly more often than pods that it did not change, in a way that the "
    "policy may cause (killed because they ran out of memory, evicted by their node, or not scheduled). The "
    "watchdog set the policy to `warn`.",
    "Check the pods that the message names, and correct the policy. The brake ends with the next change of its spec; "
    "Trimtab does not release it.",
)
HARM_IN_ONE_NAMESPACE = Code(
    "harm-in-one-namespace",
    "Pods that the policy changed fail clearly more often, but only in one namespace, and the policy matches pods of "
    "others as well. The policy stays in force: failures in one namespace must not take it from all others.",
    "Check the pods in this namespace. If the policy harms them, exclude the namespace in `match`, or set the "
    "policy's `mode: warn`.",
)
HARM_WITH_REQUIRED_ACTION = Code(
    "harm-with-required-action",
    "Pods that the policy changed fail clearly more often, but an action of the policy is `required`. The policy stays "
    "in force: otherwise the author of pods that fail could switch the action off.",
    "Check the pods that the message names. If the policy harms them, correct it, or set its `mode: warn`.",
)
TOO_FEW = Code(
    "harm-too-few-pods",
    "Too few pods have the change of the policy, or too few pods lack it, to distinguish harm from chance.",
    "Nothing to do: Trimtab compares the counts again in every round.",
)
QUIET = Code("harm-not-found", "Pods that the policy changed do not fail more often than other pods.", "Nothing.")
EVERYWHERE = Code(
    "harm-everywhere",
    "Pods that the policy never changed fail as often as the changed pods, so the cause is in the cluster and "
    "not in the policy.",
    "Check the cluster, for example for nodes that run out of memory or have no free capacity.",
)
