"""Declares every reason code of the policy package: why a field is changed or not changed.

The reference page of reasons is generated from these codes.
"""

from trimtab.cluster.reason import Code

# Why a field is changed ------------------------------------------------------------------------------------------
POLICY_SAYS = Code(
    "set-by-policy",
    "A policy gives this value.",
    "Nothing to do. To keep a pod's own value, match fewer pods or opt the pod out with `trimtab.dev/opt-out`.",
)
FROM_USAGE = Code(
    "from-usage",
    "The request comes from the recorded usage of the container: by the policy's rule for a static workload, or P5 if "
    "a VPA takes over.",
    "Nothing to do. `trimtab admit` shows the percentile and the days that it was computed from.",
)
VPA_TARGET = Code(
    "vpa-target",
    "The container has no request, and a VerticalPodAutoscaler recommends this one. The VPA's webhook would write the "
    "same value.",
    "Nothing to do. If the VPA's webhook acts after Trimtab, it writes the same value.",
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
FROM_REQUEST = Code(
    "from-request",
    "The request is a share, which the policy sets, of the container's own request. The pod's annotation "
    "`trimtab.dev/written-requests` holds that request.",
    "Nothing to do.",
)
LIMIT_REMOVED = Code(
    "limit-removed",
    "The policy removes this limit. The request stays.",
    "Nothing to do. To keep a limit, set `limits: keep` in a policy of higher priority that matches the pod.",
)
CLEANED_UP = Code(
    "cleaned-up",
    "A field that belonged to the replaced value was removed with it, because the API server would refuse the pod.",
    "Nothing to do: the API server fills it again.",
)
CLASS_BRINGS = Code(
    "set-from-runtime-class",
    "The RuntimeClass brings this, and the API server's own RuntimeClass admission is off.",
    "Nothing to do. Where that admission is on, set `overhead: server`.",
)
OVERHEAD_STRIPPED = Code(
    "overhead-stripped",
    "The pod had an overhead that no RuntimeClass defines. The API server would have refused the pod.",
    "Remove `overhead` from the pod's template.",
)

# Why the whole pod is left alone ---------------------------------------------------------------------------------
MIRROR_POD = Code(
    "mirror-pod",
    "The pod mirrors a static pod of the kubelet. A change would make the two differ.",
    "Nothing to do.",
)
SYSTEM_NAMESPACE = Code(
    "system-namespace",
    "Pods of kube-system, of Trimtab's own namespace and of the namespaces in the settings are never changed.",
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
    "To switch them on again, remove `trimtab.dev/paused` from Trimtab's namespace, or set `TRIMTAB_WEBHOOK_PAUSED` to "
    "false.",
)
TOO_LARGE = Code(
    "too-large",
    "The pod has more containers, terms, tolerations, amounts or bytes than Trimtab accepts: other reviews would wait "
    "while it decides.",
    "Make the pod smaller: the message says which limit it exceeds. No pod of ordinary size is near these limits.",
)
NO_POLICY = Code(
    "no-policy", "No policy matches the pod.", "Run `trimtab policies explain` to see what each policy matches."
)

# Why a pod is denied ---------------------------------------------------------------------------------------------
REQUIRED = Code(
    "required",
    "A policy requires an action (`required: true`), and the pod would run without it.",
    "Change what the message names: the pod's own contradiction, the missing class, or the policy that decided first.",
)

# Why one field is left alone -------------------------------------------------------------------------------------
OVERRULED = Code(
    "overruled",
    "A policy of higher priority has decided this field already.",
    "Give the policy a higher `priority`, or narrow the `match` of the other one.",
)
ALREADY_SET = Code(
    "already-set",
    "The pod sets this itself, and the policy only fills what is missing.",
    "Set `when: always` (requests) or `override: true` in the policy to replace it.",
)
APPLIED = Code(
    "applied-as-written",
    "The pod itself is managed by `kubectl apply` or by server-side apply, which wrote this value. With another value "
    "the API server would refuse the next apply.",
    "Let a Deployment or Job create the pod, create it with `kubectl create`, or change the value in its file.",
)
NOT_IN_ROLLOUT = Code(
    "not-in-rollout",
    "The policy is rolled out to a share of the owners, and this owner is not among them yet.",
    "Raise `rollout`. As `rollout` grows, the owners that are included stay included.",
)
LIMIT_RANGE_DEFAULT = Code(
    "limitrange-default",
    "A LimitRange of the namespace set this request, and the policy only has a default. A recommendation from usage, "
    "or one of a VPA, would replace it.",
    "Wait for a day of usage, or remove the default from the LimitRange.",
)
GUARANTEED_LEFT_ALONE = Code(
    "guaranteed-unchanged",
    "The pod is Guaranteed, and a change would lower its class of service.",
    "Set `guaranteed: change` in the policy if that is what you want.",
)
CIRCULAR = Code(
    "circular-request-and-limit",
    "The request is a share of the limit, and the limit would follow the request: neither has a value of its own.",
    "Give one of them a value of its own: `from: usage` or `from: policy` for the request, or `limits: keep`.",
)
QOS_WOULD_CHANGE = Code(
    "qos-would-change",
    "The change would give the pod another class of service (Guaranteed, BestEffort), which no policy requests.",
    "For Guaranteed, remove the limit as well, or set both on purpose. For BestEffort, give the container a request "
    "above zero.",
)
POD_LEVEL_RESOURCES = Code(
    "pod-level-resources",
    "The pod sets resources for the pod as a whole; its containers' requests and limits are left alone.",
    "Nothing to do.",
)
LIMIT_RANGE_KEEPS_LIMIT = Code(
    "limitrange-keeps-limit",
    "A LimitRange of the namespace sets a default or maximum limit: the limit would be set again, or the pod refused.",
    "Remove `default`, `max` and `maxLimitRequestRatio` of this resource from the LimitRange.",
)
QUOTA_COUNTS_LIMIT = Code(
    "quota-counts-limit",
    "A ResourceQuota of the namespace counts limits of this resource: a pod without one would be refused.",
    "Let the quota count requests instead of limits.",
)
QUOTA_COUNTS_QOS = Code(
    "quota-counts-qos",
    "A ResourceQuota of the namespace counts pods by whether they are BestEffort. With requests, another quota "
    "applies.",
    "Drop the scopes BestEffort and NotBestEffort from the quota, or set requests in the pod's template.",
)
MARKER_NOT_OURS = Code(
    "changed-annotation-ignored",
    "The pod has a `trimtab.dev/changed` annotation that Trimtab did not write for it just now. It has no effect.",
    "Nothing to do. Leave the annotation out of manifests that were copied from a cluster.",
)
MARKER_UNVERIFIED = Code(
    "changed-annotation-unverified",
    "The pod has a `trimtab.dev/changed` annotation, and there is no key to verify who wrote it. It has no effect.",
    "Nothing to do in an offline command. If the webhook reports this, it could not read the Secret with its signing "
    "keys: see its log.",
)
FACTS_MISSING = Code(
    "facts-missing",
    "The objects of the cluster on which this decision depends are not known yet, and Trimtab assumes nothing about "
    "them.",
    "Nothing: the webhook reads the objects within seconds of its start. In an offline command, pass a snapshot with "
    "`--cluster`.",
)
REQUEST_CAPPED = Code(
    "request-capped",
    "The request was lowered to the largest allowed amount: the container's limit, a LimitRange, the policy's max, "
    "the VPA's maxAllowed or the largest node.",
    "Raise the bound that is named if the container needs more.",
)
REQUEST_RAISED = Code(
    "request-raised",
    "The request was raised to the least allowed amount: a LimitRange, its limit:request ratio, the policy's min, or "
    "the VPA.",
    "Lower the bound that is named if the container needs less.",
)
LIMIT_RANGE_REFUSES = Code(
    "limitrange-refuses",
    "The LimitRange does not allow the value that a policy wants, so the container was left as it is.",
    "Change the LimitRange or the policy's bounds.",
)
RECOMMENDATION_ENDED = Code(
    "recommendation-expired",
    "The recommendation had ended (by its own end, or the policy's `maxAge`) before the workload was created, so it "
    "does not apply to this workload. Workloads that existed before the end keep their requests.",
    "Find out why the recommender has no newer usage: see its log and "
    "`trimtab_recommender_collected_timestamp_seconds`. Until then the policy's `otherwise` is used.",
)
LOW_CONFIDENCE = Code(
    "low-confidence",
    "The confidence of the recommendation is too low. It must be at least 0.5 to lower a request, and at least the "
    "policy's `minConfidence`, where that is set, to be used at all.",
    "Wait until more is known, or lower `minConfidence` in the policy.",
)
OOM_KILLED = Code(
    "oom-killed",
    "The container was killed because it ran out of memory within the last two weeks, so its request is at least a "
    "fifth (and at least 100 MiB) above what it used, or its limit, at that time. In the second week this addition "
    "decreases.",
    "Nothing to do. Where a limit keeps the request down, raise the limit.",
)
CHANGED_RECENTLY = Code(
    "changed-recently",
    "The usage of the last day differs from that of the week before, so the confidence is below 0.5.",
    "Wait some days, or find out what changed: a release, the load, a job that ended.",
)
GROWS = Code(
    "grows",
    "The usage grew on nearly every day of the last week. A request that covers today may not cover next week.",
    "Watch whether the growth goes on. Until it ends, leave room with headroom such as `rule: adaptive +20%`.",
)
PODS_DIFFER = Code(
    "pods-differ",
    "A pod of the workload uses far more than the others all the time, and fewer than a tenth of the pods do, so the "
    "common request does not cover it.",
    "Give that pod a workload of its own, or set `pods: largest` in the policy. Then all pods request as much.",
)
RARE_PEAKS = Code(
    "rare-peaks",
    "The largest memory peak of the window is above the request by more than a quarter: it is rare, or days ago.",
    "Where the peak recurs, such as each week, set `rule: max` in the policy, or set the request yourself.",
)
YOUNG_HISTORY = Code(
    "short-history",
    "Less than a day of the container's usage is known. That is enough to set a missing request or to raise one that "
    "is too low, but not to lower one.",
    "Wait for a day of usage.",
)
LIMIT_AFTER_DEFAULT = Code(
    "limit-after-default",
    "The limit would follow a request that is only a default of the policy, and no usage of the container is known. "
    "The "
    "container could be killed at once, so no limit is set.",
    "Wait for a day of usage, or write the request or the limit yourself.",
)
LIMIT_NOT_LOWERED = Code(
    "limit-not-lowered",
    "The limit of memory, or of local storage, is the author's own, and it is never lowered.",
    "Lower it in the pod's template if that is what you want.",
)
LIMIT_BELOW_PEAK = Code(
    "limit-below-peak",
    "The memory limit is below the largest known usage. The container is killed when it uses as much again.",
    "Raise the limit in the pod's template, or the LimitRange's max.",
)
VPA_DECIDES = Code(
    "vpa-decides",
    "A VerticalPodAutoscaler has a recommendation for this container; its webhook sets the request.",
    "Nothing to do.",
)
VPA_RATIO = Code(
    "vpa-ratio",
    "A VPA scales this limit by the limit:request ratio. With a smaller request it would multiply the limit.",
    "Remove the limit by policy, or set `controlledValues: RequestsOnly` in the VPA.",
)
VPA_BOOSTS = Code(
    "vpa-boosts",
    "The VPA boosts this container's cpu while it starts.",
    "Nothing to do.",
)
RUNTIME_CLASS_NOT_FOUND = Code(
    "runtimeclass-not-found",
    "The RuntimeClass does not exist. The API server would refuse a pod that names it.",
    "Create the class, or correct the name in the policy.",
)
RUNTIME_CLASS_CONFLICT = Code(
    "runtimeclass-conflict",
    "The scheduling of the class contradicts that of the pod. The API server would refuse the pod.",
    "Let the policy match only pods that may run on the nodes of the class.",
)
OVERHEAD_STRAY = Code(
    "overhead-without-class",
    "The pod has an overhead without a RuntimeClass that defines it. The API server refuses such pods.",
    "Remove `overhead` from the pod's template, or let a policy strip it (`overhead: {stray: strip}`).",
)
OVERHEAD_CONTRADICTS = Code(
    "overhead-contradicts",
    "The pod's overhead is not what its RuntimeClass defines.",
    "Remove `overhead` from the pod's template: the class defines its own.",
)
OVERHEAD_MISSING = Code(
    "overhead-missing",
    "The pod names a RuntimeClass with overhead and has none: the API server's RuntimeClass admission seems to be off.",
    "Switch that admission on, or set `overhead: webhook`.",
)
WINDOWS = Code("windows-pod", "The action does not apply to Windows pods.", "Nothing to do.")
ON_ITS_NODE = Code("node-name-set", "The pod names its node itself, so placement has no effect.", "Nothing to do.")
SCHEDULER_NOT_RUNNING = Code(
    "scheduler-not-running",
    "The leader of the scheduler that the policy names does not renew its Lease: the pod would stay pending.",
    "Start the scheduler, or correct `lease` in the policy (`none` for a scheduler without a Lease). Pods that are "
    "created later are changed again.",
)
DAEMON = Code(
    "daemonset-pod",
    "Pods of a DaemonSet run on every node. Placement leaves them alone unless the policy names DaemonSet as an owner.",
    "Set `owners: [DaemonSet]` in the policy's match.",
)
CONTRADICTION = Code(
    "contradiction",
    "What the policy requires of a node contradicts what the pod requires. No node could run the pod.",
    "Let the policy match fewer pods, or correct the pod.",
)
PLACEMENT_PART = Code(
    "placement-not-whole",
    "A part of the policy's placement cannot be applied to this pod. A part of the placement alone would keep the pod "
    "Pending, or allow it on nodes that are not meant for it, so none of the placement is applied.",
    "See the reason for the part that the message names. If policies contradict each other, let them match different "
    "pods.",
)
LIMIT_READ = Code(
    "limit-read",
    "A container reads this limit of its own (`resourceFieldRef`), for example as GOMAXPROCS. Without the limit it "
    "would see the whole node.",
    "Read `requests` instead of `limits` in the pod's template, or keep the limit.",
)
CRITICAL_POD = Code(
    "critical-pod",
    "The pod belongs to the node or the cluster itself (`system-node-critical`, `system-cluster-critical`). Only a "
    "policy that names its PriorityClass applies to it.",
    "Name the class in the policy's `match.priorityClasses` if that is what you want.",
)
NO_NODE = Code(
    "no-node-could-run-it",
    "With this action, no node that the pod may use has room for it next to the node's DaemonSet pods, or a spread "
    "constraint leaves some pods of its owner without a node; without it, a node has. The action is not applied.",
    "Add nodes that are large enough or have the labels, or let the policy match fewer pods. The message names the "
    "amounts, the labels or the topology.",
)
NODE_UNKNOWN = Code(
    "no-known-node-matches",
    "No node that accepts pods now has what the policy requires. Such nodes may be cordoned, or the autoscaler may "
    "add one to an empty node group, whose labels are not known. The action is applied.",
    "Nothing to do where the node group may grow from zero. Otherwise correct the labels or tolerations in the policy.",
)
QUOTA_WOULD_REFUSE = Code(
    "quota-would-refuse",
    "With this action, the pods of the owner would use more than 90% of the namespace's ResourceQuota, so the action "
    "is applied to none of them.",
    "Raise the quota, or let it count less. A new owner needs room for all its replicas and for a rollout's surge.",
)
QUOTA_MAY_REFUSE = Code(
    "quota-may-refuse",
    "A policy requires the action (`required: true`), so it is applied, although the pods of the owner would use more "
    "than 90% of the namespace's ResourceQuota. The API server may refuse the pod because of the quota.",
    "Raise the quota by what the message names, for example the overhead of the RuntimeClass, or run fewer pods.",
)
NAMESPACE_LABEL_MISSING = Code(
    "namespace-label-missing",
    "The policy takes a value from a label of the pod's namespace, and the namespace does not have it.",
    "Label the namespace, or leave it out of the policy's `match`.",
)
POD_LABEL_MISSING = Code(
    "pod-label-missing",
    "The policy lets a pod choose a value by one of its labels, and the pod does not have that label.",
    "Nothing to do. Or label the pod with one of the values that the policy lists.",
)
POD_LABEL_NOT_LISTED = Code(
    "pod-label-not-listed",
    "The pod chooses a value by one of its labels that the policy does not list.",
    "Use one of the values that the reason names, or add it to the policy's `among`.",
)
PRIORITY_CLASS_NOT_FOUND = Code(
    "priorityclass-not-found",
    "The PriorityClass does not exist. The API server would refuse a pod that names it.",
    "Create the class, or correct the name in the policy.",
)
CONTROLLERS_LABEL = Code(
    "controller-label",
    "Controllers find their pods by this label. With another value, the owner would not find the pod, and would create "
    "others without end.",
    "Choose another label in the policy.",
)
NO_SELECTOR_LABEL = Code(
    "no-selector-label",
    "The pod has none of the labels that would select its replicas.",
    "Add one of the labels, or name another one in the policy's `by`.",
)
NEVER_EVICT = Code(
    "never-evict",
    "The pod says that it must not be evicted.",
    'Remove `cluster-autoscaler.kubernetes.io/safe-to-evict: "false"` if that is not meant.',
)
CHANGED_AFTER_US = Code(
    "changed-by-another",
    "Something else has changed this field after Trimtab, and Trimtab does not change it back and forth.",
    "Decide with the owner of the other webhook which of the two sets the field.",
)
NOT_A_QUANTITY = Code(
    "not-a-quantity",
    "The pod has an amount that is not a Kubernetes quantity. The API server refuses such pods.",
    "Correct the amount in the pod's template.",
)
ACTION_FAILED = Code(
    "action-failed",
    "An action failed because of a bug in Trimtab. The other actions are applied.",
    "Please report it with the pod and the policy.",
)

# Why a running pod does not follow its recommendation -------------------------------------------------------------
RUNNING_VPA = Code(
    "resize-vpa-manages",
    "A VerticalPodAutoscaler manages this resource of the container, so Trimtab does not resize it.",
    "Nothing to do: the VPA changes running pods itself, if its mode says so.",
)
RUNNING_HPA = Code(
    "resize-hpa-divides",
    "A HorizontalPodAutoscaler scales by the utilization of this resource: another request would change the number of "
    "replicas.",
    "Let the HPA scale by an AverageValue or by another metric, or leave the pods alone.",
)
RUNNING_AUTOSCALERS_UNSEEN = Code(
    "resize-autoscalers-unknown",
    "It is not known yet whether a VPA or an HPA counts on the requests of the pod.",
    "Wait: the lists are read within a minute of the first policy that needs them.",
)
RUNNING_NOT_MEASURED = Code(
    "resize-not-measured",
    "Running pods follow a recommendation only: one that has not ended, with more than a day of usage and enough "
    "confidence. The value for new pods comes from something else.",
    "Wait for usage, or see `trimtab recommend` for what is missing.",
)
