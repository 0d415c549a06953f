"""Why does a policy change something, or leave it alone? Every code of this room, for the reference."""

from trimtab.cluster.reason import Code

# Why a field is changed ------------------------------------------------------------------------------------------
POLICY_SAYS = Code(
    "policy-says",
    "A policy gives this value.",
    "Nothing to do. To keep a pod's own value, match fewer pods or opt the pod out with `trimtab.dev/opt-out`.",
)
FROM_USAGE = Code(
    "from-usage",
    "The request comes from what the container was seen to use: P95 for a static workload, P5 where a VPA takes over.",
    "Nothing to do. `trimtab admit` shows the percentile and the days it was made of.",
)
FROM_DEFAULT = Code(
    "from-default",
    "Nothing is known of the container's usage yet, so the policy's `otherwise` was used.",
    "Wait for a day of usage, or set the request yourself.",
)
FROM_LIMIT = Code(
    "from-limit",
    "The request is the share of the container's limit that the policy names.",
    "Nothing to do.",
)
LIMIT_REMOVED = Code(
    "limit-removed",
    "A limit that the policy finds needless was removed; the request stays.",
    "Nothing to do. To keep a limit, set `limits: keep` in a policy of higher priority that matches the pod.",
)
CLEANED_UP = Code(
    "cleaned-up",
    "A field that belonged to the value we replaced was removed with it, or the API server would refuse the pod.",
    "Nothing to do: the API server fills it again.",
)
CLASS_BRINGS = Code(
    "class-brings",
    "The RuntimeClass brings this, and the API server's own RuntimeClass admission is off.",
    "Nothing to do. Where that admission is on, set `overhead: server`.",
)
OVERHEAD_STRIPPED = Code(
    "overhead-stripped",
    "The pod carried an overhead that no RuntimeClass stands for; the API server would have refused it.",
    "Remove `overhead` from the pod's template.",
)

# Why the whole pod is left alone ---------------------------------------------------------------------------------
MIRROR_POD = Code(
    "mirror-pod",
    "The pod mirrors a static pod of the kubelet; changing it would make the two differ.",
    "Nothing to do.",
)
SYSTEM_NAMESPACE = Code(
    "system-namespace",
    "Pods of kube-system, of our own namespace and of those in the settings are never changed.",
    "Nothing to do.",
)
OPTED_OUT = Code(
    "opted-out",
    'The pod or its namespace says `trimtab.dev/opt-out: "true"`.',
    "Remove the label or annotation to have policies apply again.",
)
PAUSED = Code(
    "paused",
    "All changes are switched off.",
    "Take `trimtab.dev/paused` off Trimtab's namespace, or set `TRIMTAB_PAUSED` to false, to switch them on again.",
)
NO_POLICY = Code("no-policy", "No policy matches the pod.", "See `trimtab policies explain` for what each one matches.")

# Why one field is left alone -------------------------------------------------------------------------------------
OVERRULED = Code(
    "overruled",
    "A policy of higher priority has decided this field already.",
    "Give the policy a higher `priority`, or let the other one match less.",
)
ALREADY_SET = Code(
    "already-set",
    "The pod sets this itself, and the policy only fills what is missing.",
    "Say `when: always` (requests) or `override: true` in the policy to replace it.",
)
APPLIED = Code(
    "applied-as-written",
    "The pod has no owner and is kept by `kubectl apply`; without this value, applying the same file again is refused.",
    "Let a Deployment or Job make the pod, create it with `kubectl create`, or change the value in its file.",
)
NOT_IN_ROLLOUT = Code(
    "not-in-rollout",
    "The policy is rolled out to a share of owners, and this one is not among them yet.",
    "Raise `rollout`. The same owners stay in as it grows.",
)
GUARANTEED_LEFT_ALONE = Code(
    "guaranteed-left-alone",
    "The pod is Guaranteed, and a change would lower its class of service.",
    "Say `guaranteed: change` in the policy if that is what you want.",
)
CIRCULAR = Code(
    "circular",
    "The request is a share of the limit, and the limit would follow the request: neither has a value to start from.",
    "Give one of them a value of its own: `from: usage` or `from: policy` for the request, or `limits: keep`.",
)
QOS_WOULD_CHANGE = Code(
    "qos-would-change",
    "The change would have given the pod another class of service (Guaranteed, BestEffort), which no policy asked for.",
    "Guaranteed: remove the limit as well, or set one on purpose. BestEffort: give the container a request above zero.",
)
POD_LEVEL_RESOURCES = Code(
    "pod-level-resources",
    "The pod sets resources for the pod as a whole; its containers' requests and limits are left alone.",
    "Nothing to do.",
)
LIMIT_RANGE_KEEPS_LIMIT = Code(
    "limitrange-keeps-limit",
    "A LimitRange of the namespace gives a default or maximum limit: it would come back, or the pod be refused.",
    "Remove `default`, `max` and `maxLimitRequestRatio` of this resource from the LimitRange.",
)
QUOTA_COUNTS_LIMIT = Code(
    "quota-counts-limit",
    "A ResourceQuota of the namespace counts limits of this resource: a pod without one would be refused.",
    "Let the quota count requests instead of limits.",
)
QUOTA_COUNTS_QOS = Code(
    "quota-counts-qos",
    "A ResourceQuota of the namespace counts pods by whether they are BestEffort; with requests, another quota holds.",
    "Drop the scopes BestEffort and NotBestEffort from the quota, or set requests in the pod's template.",
)
FACTS_MISSING = Code(
    "facts-missing",
    "What this depends on in the cluster is not known yet, so nothing was assumed.",
    "It resolves itself once the first list has arrived; offline, give a snapshot with `--cluster`.",
)
REQUEST_CAPPED = Code(
    "request-capped",
    "The request was lowered to what is allowed: the container's limit, a LimitRange, the policy's max, the VPA's "
    "maxAllowed or the largest node.",
    "Raise the bound that is named if the container needs more.",
)
REQUEST_RAISED = Code(
    "request-raised",
    "The request was raised to what is demanded: a LimitRange, its limit:request ratio, the policy's min, or the VPA.",
    "Lower the bound that is named if the container needs less.",
)
LIMIT_RANGE_REFUSES = Code(
    "limitrange-refuses",
    "The LimitRange cannot be met with the value a policy wants, so the container was left as it is.",
    "Change the LimitRange or the policy's bounds.",
)
VPA_DECIDES = Code(
    "vpa-decides",
    "A VerticalPodAutoscaler has a recommendation for this container; its webhook sets the request.",
    "Nothing to do.",
)
VPA_RATIO = Code(
    "vpa-ratio",
    "A VPA scales this limit by the limit:request ratio it sees; a smaller request would make it multiply the limit.",
    "Remove the limit by policy, or set `controlledValues: RequestsOnly` in the VPA.",
)
VPA_BOOSTS = Code(
    "vpa-boosts",
    "The VPA boosts this container's cpu while it starts.",
    "Nothing to do.",
)
RUNTIME_CLASS_NOT_FOUND = Code(
    "runtimeclass-not-found",
    "The RuntimeClass does not exist; a pod naming it would be refused.",
    "Create the class, or mend the name in the policy.",
)
RUNTIME_CLASS_CONFLICT = Code(
    "runtimeclass-conflict",
    "The class's scheduling contradicts the pod's; the API server would refuse the pod.",
    "Let the policy match only pods that may run where the class runs.",
)
OVERHEAD_STRAY = Code(
    "overhead-stray",
    "The pod carries an overhead without a RuntimeClass that defines it; the API server refuses such pods.",
    "Remove `overhead` from the pod's template, or let a policy strip it (`overhead: {stray: strip}`).",
)
OVERHEAD_CONTRADICTS = Code(
    "overhead-contradicts",
    "The pod's overhead is not what its RuntimeClass defines.",
    "Remove `overhead` from the pod's template: the class brings its own.",
)
OVERHEAD_MISSING = Code(
    "overhead-missing",
    "The pod names a RuntimeClass with overhead and carries none: the API server's RuntimeClass admission seems off.",
    "Switch that admission on, or set `overhead: webhook`.",
)
WINDOWS = Code("windows", "Does not apply to Windows pods.", "Nothing to do.")
ON_ITS_NODE = Code("on-its-node", "The pod names its node already; placement has no say.", "Nothing to do.")
DAEMON = Code(
    "daemon",
    "Pods of a DaemonSet belong on every node; placement leaves them alone unless the policy names DaemonSet as owner.",
    "Say `owners: [DaemonSet]` in the policy's match.",
)
CONTRADICTION = Code(
    "contradiction",
    "What the policy requires of a node contradicts what the pod requires; no node could take it.",
    "Let the policy match fewer pods, or mend the pod.",
)
PRIORITY_CLASS_NOT_FOUND = Code(
    "priorityclass-not-found",
    "The PriorityClass does not exist; a pod naming it would be refused.",
    "Create the class, or mend the name in the policy.",
)
CONTROLLERS_LABEL = Code(
    "controllers-label",
    "The label is one by which controllers tell their pods; with another value the pod would be lost to its owner.",
    "Take another label.",
)
NO_SELECTOR_LABEL = Code(
    "no-selector-label",
    "The pod carries none of the labels its replicas could be told by.",
    "Add one of the labels, or name another in the policy's `by`.",
)
NEVER_EVICT = Code(
    "never-evict",
    "The pod says that it must not be evicted.",
    'Remove `cluster-autoscaler.kubernetes.io/safe-to-evict: "false"` if that is not meant.',
)
CHANGED_AFTER_US = Code(
    "changed-after-us",
    "Something else has changed this field after us; we do not change it back and forth.",
    "Settle with the other webhook (or person) who owns the field.",
)
NOT_A_QUANTITY = Code(
    "not-a-quantity",
    "The pod says an amount that is no Kubernetes quantity; the API server refuses such pods.",
    "Mend the amount in the pod's template.",
)
ACTION_FAILED = Code(
    "action-failed",
    "An action failed: our bug. The rest of the decision stands.",
    "Please report it with the pod and the policy.",
)
