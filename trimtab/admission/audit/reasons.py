"""Reason codes of this package: why a running pod differs from the policies, and why a policy is or is not harmful."""

from trimtab.cluster.reason import Code

BEFORE_POLICY = Code(
    "created-before-policy",
    "The pod was created before the policy was last changed. Policies change pods only when they are created.",
    "Nothing to do. To have the current policies change the pods, restart the workload (`kubectl rollout restart`).",
)
BEFORE_WEBHOOK = Code(
    "created-before-webhook",
    "The pod was created before the webhook was registered.",
    "Restart the workload to have its pods admitted again.",
)
NO_WEBHOOK = Code(
    "webhook-not-registered",
    "Trimtab's MutatingWebhookConfiguration is not in the cluster, so only compiled policies change pods.",
    "Install Trimtab (`trimtab install`), apply what `trimtab policies compile` prints, or remove the policies "
    "if no pod should be changed.",
)
MISSED = Code(
    "missed-by-webhook",
    "The pod was created while the policy was in force, and the webhook did not change it: the webhook was down, too "
    "slow, paused, not called for this namespace, or had not received a policy or the cluster's facts yet.",
    "Check the webhook's availability (`trimtab_errors`, the API server's "
    "`apiserver_admission_webhook_fail_open_count`), then restart the workload.",
)
DECIDED_OTHERWISE = Code(
    "decision-changed-since",
    "The webhook made a decision for the pod and would make a different one now, because the cluster has changed "
    "since.",
    "Nothing to do. To have the current decision applied, restart the workload.",
)
COMPILED_OTHERWISE = Code(
    "compiled-policy-decided-otherwise",
    "The API server changed the pod by the compiled policy, and the webhook would also make the named change: "
    "the compiled policy differs by design, or is older than the policy.",
    "See docs/explanation/without-a-webhook.md for the differences. Compile the policy again after you change it.",
)
CAUSE_UNKNOWN = Code(
    "cause-unknown",
    "The pod lacks a change of the policy, and it is not known whether the pod is older than the policy: "
    "policies from a folder have no creation time.",
    "Restart the workload; if its new pods are still unchanged, the API server does not call the webhook for them.",
)
ONLY_WATCHING = Code(
    "policy-not-in-apply-mode",
    "The policy is in mode `warn` or `audit`: it changes no pods, and reports what it would change.",
    "Set `mode: apply` in the policy when you agree with the changes that it reports.",
)
OVERHEAD_STALE = Code(
    "overhead-stale",
    "The pod's overhead differs from that of its RuntimeClass, because the RuntimeClass was changed after the "
    "pod was created.",
    "Restart the workload; until then the scheduler counts the old overhead for its pods.",
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
    "policy may cause (killed for memory, evicted by their node, not scheduled). The policy was set to `warn`.",
    "Check the named pods. Correct the policy, then set `mode: apply` again: Trimtab does not restore the mode.",
)
TOO_FEW = Code(
    "harm-too-few-pods",
    "Too few pods have the policy's change, or too few pods are known without it, to distinguish harm from chance.",
    "Nothing to do: Trimtab compares the counts again in every round.",
)
QUIET = Code(
    "harm-not-found",
    "Pods that the policy changed do not fail more often than other pods.",
    "Nothing.",
)
EVERYWHERE = Code(
    "harm-everywhere",
    "Pods that the policy never changed fail as often, so the cause is the cluster and not the policy.",
    "Check the cluster, for example for nodes that are short of memory, or without free capacity.",
)
