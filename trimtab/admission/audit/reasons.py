"""Why is a running pod not as policy says? Every code of this folder, for the reference.

Why is a policy stopped, or not? Every code of this folder, for the reference.
"""

from trimtab.cluster.reason import Code

BEFORE_POLICY = Code(
    "created-before-policy",
    "The pod was created before the policy was written, or last changed; policies only change pods when they are made.",
    "Nothing, or restart the workload (`kubectl rollout restart`): its new pods are admitted by today's policies.",
)
BEFORE_WEBHOOK = Code(
    "created-before-webhook",
    "The pod was created before our webhook was registered.",
    "Restart the workload to have its pods admitted again.",
)
NO_WEBHOOK = Code(
    "webhook-not-registered",
    "No MutatingWebhookConfiguration of ours is in the cluster, so no pod is changed.",
    "Install it (`trimtab install`), or remove the policies if nothing is meant to change.",
)
MISSED = Code(
    "missed-by-webhook",
    "The pod was created while the policy was in force, and our webhook did not change it: it was down, too slow, "
    "paused, not called for this namespace, or a policy or the cluster's facts had not reached it yet.",
    "Look at the webhook's availability (`trimtab_errors`, the API server's "
    "`apiserver_admission_webhook_fail_open_count`), then restart the workload.",
)
DECIDED_OTHERWISE = Code(
    "decision-changed-since",
    "The webhook saw the pod, and would decide otherwise now: what it knows of the cluster has changed since.",
    "Nothing, or restart the workload.",
)
CAUSE_UNKNOWN = Code(
    "cause-unknown",
    "The pod lacks what the policy says, and nothing tells whether it is older than the policy: policies from a folder "
    "carry no time.",
    "Restart the workload; pods that still come through unchanged are missed by the webhook.",
)
ONLY_WATCHING = Code(
    "policy-not-in-apply-mode",
    "The policy is in mode `warn` or `audit`: it changes nothing, and tells what it would change.",
    "Say `mode: apply` in the policy when you agree with what it would do.",
)
OVERHEAD_STALE = Code(
    "overhead-stale",
    "The pod carries another overhead than its RuntimeClass defines now: the class was changed after the pod was made.",
    "Restart the workload; until then the scheduler counts the old overhead for its pods.",
)
SETTING_WRONG = Code(
    "overhead-setting-wrong",
    "The setting `overhead` says that one writes pod overhead, and running pods show that it is the other.",
    "Set `TRIMTAB_OVERHEAD` (webhook and watchdog alike) to what the pods show.",
)
NO_EVIDENCE = Code(
    "overhead-no-evidence",
    "No running pod shows whether the API server's RuntimeClass admission is on.",
    "Nothing to do: it is looked for again with each new pod that names a RuntimeClass with overhead.",
)


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
    "harm-not-found",
    "Pods that the policy changed fare no worse than others.",
    "Nothing to do.",
)
EVERYWHERE = Code(
    "harm-everywhere",
    "Pods that the policy never touched are hit as often: the trouble is the cluster's, not the policy's.",
    "Look for what is wrong with the cluster: nodes short of memory, no room left.",
)
