"""Reason codes of this package: why a running pod differs from the policies, and why a policy is or is not harmful."""

from trimtab.cluster.reason import Code

BEFORE_POLICY = Code(
    "created-before-policy",
    "The pod is older than the last change of the policy. Policies change pods only when they are created.",
    "Restart the workload (`kubectl rollout restart`) if the policy should change these pods.",
)
BEFORE_WEBHOOK = Code(
    "created-before-webhook",
    "The pod was created before Trimtab's webhook was registered.",
    "Restart the workload, so that the webhook receives its new pods.",
)
NO_WEBHOOK = Code(
    "webhook-not-registered",
    "Trimtab's MutatingWebhookConfiguration is missing, so only compiled policies change pods.",
    "Install Trimtab (`trimtab install`), or apply what `trimtab policies compile` prints. If no pod should be "
    "changed, remove the policies.",
)
MISSED = Code(
    "missed-by-webhook",
    "The webhook did not change the pod, although the policy was in force. The webhook was down, too slow, paused, "
    "not called for this namespace, or had not yet read the policy or the objects of the cluster.",
    "Check that the webhook is available, then restart the workload. Its metric is `trimtab_errors`, the API "
    "server's is `apiserver_admission_webhook_fail_open_count`.",
)
DECIDED_OTHERWISE = Code(
    "decision-changed-since",
    "The webhook would decide otherwise now, because the cluster has changed since.",
    "Restart the workload if its pods should get the current decision.",
)
COMPILED_OTHERWISE = Code(
    "compiled-policy-decided-otherwise",
    "The webhook would change more than the compiled policy did. The compiled policy differs by design, or is older "
    "than the policy.",
    "Compile the policy again after you change it. docs/explanation/without-a-webhook.md describes the differences.",
)
CAUSE_UNKNOWN = Code(
    "cause-unknown",
    "The pod lacks a change, and may be older than the policy. Policies from a folder have no creation time, so "
    "Trimtab cannot know.",
    "Restart the workload. If its new pods are still unchanged, the API server does not call the webhook for them.",
)
ONLY_WATCHING = Code(
    "policy-not-in-apply-mode",
    "The policy only reports what it would change. It is in mode `warn` or `audit`.",
    "Set its `mode: apply` when you agree with the changes.",
)
OVERHEAD_STALE = Code(
    "overhead-stale",
    "The RuntimeClass got another overhead after the pod was created.",
    "Restart the workload. Until then the scheduler counts the old overhead for its pods.",
)
SETTING_WRONG = Code(
    "overhead-setting-wrong",
    "`TRIMTAB_OVERHEAD` names another writer of pod overhead than running pods show.",
    "Set it to the value that the message names, in the webhook and the watchdog.",
)
NO_EVIDENCE = Code(
    "overhead-no-evidence",
    "No running pod shows whether the API server's RuntimeClass admission is on.",
    "Nothing to do: Trimtab checks each new pod with a RuntimeClass. The RuntimeClass must have overhead.",
)


HARMFUL = Code(
    "harm-brake",
    "The watchdog set the policy to `warn`, because pods that it changed fail more often. They fail clearly more "
    "often than pods that it did not change, in a way that the policy may cause (killed because they ran out of "
    "memory, evicted by their node, or not scheduled).",
    "Check the pods that the message names, and correct the policy. The brake ends with the next change of its spec; "
    "Trimtab does not release it.",
)
HARM_IN_ONE_NAMESPACE = Code(
    "harm-in-one-namespace",
    "Pods that the policy changed fail more often, but only in one namespace. The policy stays in force: failures in "
    "one namespace must not take it from all others.",
    "Check these pods, and exclude the namespace in `match` if the policy harms them. Or set the policy's `mode: "
    "warn`.",
)
HARM_WITH_REQUIRED_ACTION = Code(
    "harm-with-required-action",
    "Pods that the policy changed fail more often, but one of its actions is `required`. The policy stays in force: "
    "otherwise the author of pods that fail could switch the action off.",
    "Check these pods; correct the policy if it harms them. Or set its `mode: warn`.",
)
TOO_FEW = Code(
    "harm-too-few-pods",
    "Too few pods have or lack the change to distinguish harm from chance.",
    "Nothing to do: Trimtab compares again in every round.",
)
QUIET = Code("harm-not-found", "Pods that the policy changed do not fail more often than others.", "Nothing.")
EVERYWHERE = Code(
    "harm-everywhere",
    "Pods that the policy never changed fail as often, so the policy is not the cause.",
    "Check the cluster, for example for nodes without free memory.",
)
