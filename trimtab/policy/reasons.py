"""Declares every reason code of the policy package: why a field is changed or not changed.

The reference page of reasons is generated from these codes.
"""

from trimtab.cluster.reason import Code

# Why a field is changed ------------------------------------------------------------------------------------------
POLICY_SAYS = Code(
    "set-by-policy",
    "A policy sets this value.",
    "Match fewer pods, or opt pods out with `trimtab.dev/opt-out`, to keep their own value.",
)
FROM_USAGE = Code(
    "from-usage",
    "The request follows from the recorded usage of the container. The policy's rule computes it. If a VPA adjusts "
    "the request later, it is the 5th percentile.",
    "Nothing to do: `trimtab admit` shows the percentile and the days of history from which it was computed.",
)
VPA_TARGET = Code(
    "vpa-target",
    "The container has no request, so it gets the VPA's recommendation. The VPA's webhook would write the same.",
    "Nothing to do. If the VPA's webhook acts after Trimtab, it writes the same value.",
)
FROM_DEFAULT = Code(
    "from-default",
    "The container's usage is not known yet, so the policy's `otherwise` is used.",
    "Wait for a day of usage, or write a request into the pod's template.",
)
FROM_LIMIT = Code(
    "from-limit", "The request is a share of the container's limit. The policy sets the percentage.", "Nothing to do."
)
FROM_REQUEST = Code(
    "from-request",
    "The request is a share of the container's own request. The policy sets the percentage. The pod's annotation "
    "`trimtab.dev/written-requests` records the original request.",
    "Nothing to do.",
)
LIMIT_REMOVED = Code(
    "limit-removed",
    "The policy removes this limit. The request of the container stays. The message says so if nothing in the pod "
    "shows which language runtime the container has: whether that runtime reads the limit is not known then.",
    "Set `limits: keep` in a policy of higher priority to keep it. That policy must match the pod.",
)
CLEANED_UP = Code(
    "cleaned-up",
    "A field that belonged to the replaced value was removed. The API server would refuse the pod otherwise.",
    "Nothing to do: the API server fills it again.",
)
CLASS_BRINGS = Code(
    "set-from-runtime-class",
    "The RuntimeClass defines this value, which the API server does not add. Its RuntimeClass admission plugin is off.",
    "Set `overhead: server` if the API server's RuntimeClass admission plugin is on.",
)
OVERHEAD_STRIPPED = Code(
    "overhead-stripped",
    "Trimtab removed an overhead that no RuntimeClass defines. The API server would have refused the pod.",
    "Remove `overhead` from the pod's template.",
)

# Why the whole pod is left alone ---------------------------------------------------------------------------------
MIRROR_POD = Code(
    "mirror-pod",
    "The pod mirrors a static pod of the kubelet, from which it may not differ.",
    "Nothing to do.",
)
SYSTEM_NAMESPACE = Code(
    "system-namespace",
    "Pods of kube-system, of Trimtab's namespace and of configured ones are never changed.",
    "Nothing to do.",
)
OPTED_OUT = Code(
    "opted-out",
    'The pod or its namespace has `trimtab.dev/opt-out: "true"`.',
    "Remove that label or annotation to let policies apply again.",
)
PAUSED = Code(
    "paused",
    "Trimtab is paused, so it changes no pod.",
    "Remove the annotation `trimtab.dev/paused` from Trimtab's namespace, or set `TRIMTAB_WEBHOOK_PAUSED` to false.",
)
TOO_LARGE = Code(
    "too-large",
    "The pod is larger than Trimtab accepts, because it would delay other requests. It has too many containers, "
    "affinity terms, tolerations, amounts or bytes.",
    "Make the pod smaller; the message names the limit. Pods of ordinary size are far below these limits.",
)
NO_POLICY = Code(
    "no-policy", "No policy matches the pod.", "Run `trimtab policies explain` to see what each policy matches."
)

# Why a pod is denied ---------------------------------------------------------------------------------------------
REQUIRED = Code(
    "required",
    "The pod would run without an action that a policy requires. The policy has `required: true`.",
    "Correct what the message names. It is a contradiction in the pod itself, a class that does not exist, or a "
    "policy that decided first.",
)

# Why one field is left alone -------------------------------------------------------------------------------------
OVERRULED = Code(
    "overruled",
    "A policy of higher priority has already decided this field.",
    "Give this policy a higher `priority`, or narrow the other's `match`.",
)
ALREADY_SET = Code(
    "already-set",
    "The pod sets this value itself, and the policy only fills in missing ones.",
    "Set `when: always` (for requests) or `override: true` to replace the pod's own value.",
)
APPLIED = Code(
    "applied-as-written",
    "`kubectl apply` manages this value of the pod, and would conflict with a change. The same holds for server-side "
    "apply: if Trimtab changed the value, the API server would refuse the next apply.",
    "Create the pod by a Deployment, a Job or `kubectl create`, or change its manifest.",
)
NOT_IN_ROLLOUT = Code(
    "not-in-rollout",
    "The policy's rollout does not include the pod's owner yet.",
    "Raise `rollout` in the policy. Owners that are already included stay included.",
)
LIMIT_RANGE_DEFAULT = Code(
    "limitrange-default",
    "A LimitRange set this request, and the policy has only a default for it. Only a recommendation from usage or of "
    "a VPA would replace the request.",
    "Wait for a day of usage, or remove the default from the LimitRange.",
)
GUARANTEED_LEFT_ALONE = Code(
    "guaranteed-unchanged",
    "The change would take the QoS class Guaranteed from the pod.",
    "Set `guaranteed: change` in the policy if the pod may lose the class.",
)
CIRCULAR = Code(
    "circular-request-and-limit",
    "The request is a share of the limit, and the limit would follow the request. So neither would have a fixed value.",
    "Give the request `from: usage` or `from: policy`, or the limit `limits: keep`.",
)
QOS_WOULD_CHANGE = Code(
    "qos-would-change",
    "The change would give the pod another QoS class than intended. It would be Guaranteed or BestEffort.",
    "Remove the limit too, or keep a request above zero. If the pod would become Guaranteed, you can also set the "
    "request and the limit yourself; if it would become BestEffort, give the container a request.",
)
POD_LEVEL_RESOURCES = Code(
    "pod-level-resources",
    "The pod sets resources as a whole, so those of its containers are not changed.",
    "Nothing to do.",
)
LIMIT_RANGE_KEEPS_LIMIT = Code(
    "limitrange-keeps-limit",
    "A LimitRange sets a default or maximum limit for the namespace. Without a limit, the API server would add one "
    "or refuse the pod.",
    "Remove the resource's `default`, `max` and `maxLimitRequestRatio` from the LimitRange.",
)
QUOTA_COUNTS_LIMIT = Code(
    "quota-counts-limit",
    "A ResourceQuota counts this limit, so a pod without it would be refused.",
    "Let the quota count requests instead of limits.",
)
QUOTA_COUNTS_QOS = Code(
    "quota-counts-qos",
    "A ResourceQuota counts only BestEffort pods, or only others. With requests, another quota would apply to the pod.",
    "Remove the scopes BestEffort and NotBestEffort from the quota, or set requests in the template.",
)
MARKER_NOT_OURS = Code(
    "changed-annotation-ignored",
    "Trimtab did not write the pod's `trimtab.dev/changed` annotation in this request, so it is ignored.",
    "Leave the annotation out when you copy manifests from a cluster.",
)
MARKER_UNVERIFIED = Code(
    "changed-annotation-unverified",
    "Trimtab has no key to verify the pod's `trimtab.dev/changed` annotation, so it is ignored.",
    "If the webhook reports this, see its log: it could not read its Secret. The Secret has the signing keys. In an "
    "offline command, nothing to do.",
)
FACTS_MISSING = Code(
    "facts-missing",
    "The decision needs objects of the cluster that Trimtab has not read yet. Trimtab assumes nothing about them.",
    "Nothing to do: the webhook reads the objects within seconds of its start. For an offline command, pass a "
    "snapshot with `--cluster`.",
)
REQUEST_CAPPED = Code(
    "request-capped",
    "The request was lowered to the largest allowed amount. The bound is the container's limit, a LimitRange, the "
    "policy's max, the VPA's maxAllowed or the largest node.",
    "Raise the bound that the message names if the container needs more.",
)
REQUEST_RAISED = Code(
    "request-raised",
    "The request was raised to the smallest allowed amount. The bound is a LimitRange, its ratio of limit to "
    "request, the policy's min, or the VPA.",
    "Lower the bound that the message names if the container needs less.",
)
LIMIT_RANGE_REFUSES = Code(
    "limitrange-refuses",
    "A LimitRange forbids the value, so the container stays unchanged. A policy or a recommendation would set it.",
    "Change the LimitRange, the container's limit, or the policy's bounds.",
)
RECOMMENDATION_ENDED = Code(
    "recommendation-expired",
    "The recommendation ended before the workload was created. It ended by itself, or after the policy's `maxAge`. "
    "Older workloads keep their requests.",
    "Find out in the recommender's log why it has no newer usage. See also the metric "
    "`trimtab_recommender_collected_timestamp_seconds`. Until then the policy's `otherwise` is used.",
)
LOW_CONFIDENCE = Code(
    "low-confidence",
    "The confidence in the recommendation is too low. To lower a request, it must be at least 0.5. If the policy "
    "sets `minConfidence`, it must be at least that value for any use.",
    "Wait for more usage, or lower `minConfidence` in the policy.",
)
OOM_KILLED = Code(
    "oom-killed",
    "The request is higher, because the container ran out of memory within the last two weeks. It is larger than the "
    "memory that the container used at that time (or than its limit): by 20 %, and by at least 100 MiB. In the "
    "second week this addition decreases.",
    "Raise the limit if it prevents a higher request.",
)
CHANGED_RECENTLY = Code(
    "changed-recently",
    "The last day's usage differs from that of the week before. So the confidence is below 0.5.",
    "Wait some days, or find out what changed. It may be a release, the load, or a job that ended.",
)
GROWS = Code(
    "grows",
    "The usage grew on nearly every day of the last week. A request that is sufficient today may be too low next week.",
    "Add headroom, such as `rule: adaptive +20%`, as long as the growth continues.",
)
PODS_DIFFER = Code(
    "pods-differ",
    "One pod always uses far more than the others of its workload. Fewer than a tenth of the pods use that much, so "
    "the common request is too low for this pod.",
    "Give it a workload of its own, or set `pods: largest` in the policy. That gives all pods a request of this size.",
)
RARE_PEAKS = Code(
    "rare-peaks",
    "The largest memory peak is more than a quarter above the request. Such peaks are rare or days ago.",
    "Set `rule: max` in the policy if the peak recurs. Or write a request into the pod's template.",
)
YOUNG_HISTORY = Code(
    "short-history",
    "Less than a day of the container's usage is known. That is enough to set a missing request or to raise a low "
    "request, but not enough to lower one.",
    "Wait for a day of usage.",
)
LIMIT_AFTER_DEFAULT = Code(
    "limit-after-default",
    "The limit would follow a guessed request and could kill the container, so none is set. The request is only a "
    "default of the policy, and no usage of the container is known.",
    "Wait for a day of usage, or write a request or a limit into the pod's template.",
)
LIMIT_NOT_LOWERED = Code(
    "limit-not-lowered",
    "Trimtab never lowers a limit of memory or local storage that the author set.",
    "Set a lower limit in the pod's template if it is right.",
)
LIMIT_BELOW_PEAK = Code(
    "limit-below-peak",
    "The memory limit is below the largest known usage. If the container uses that much again, it is killed.",
    "Raise the limit in the pod's template, or the max of the LimitRange.",
)
VPA_DECIDES = Code(
    "vpa-decides",
    "The VPA's webhook sets the container's request to the VPA's recommendation.",
    "Nothing to do.",
)
VPA_RATIO = Code(
    "vpa-ratio",
    "The VPA would multiply the limit if Trimtab lowered the request. It keeps the ratio of limit to request.",
    "Remove the limit with a policy, or set `controlledValues: RequestsOnly` in the VPA.",
)
VPA_BOOSTS = Code("vpa-boosts", "The VPA raises this container's cpu during its start.", "Nothing to do.")
RUNTIME_CLASS_NOT_FOUND = Code(
    "runtimeclass-not-found",
    "The RuntimeClass does not exist, so the API server would refuse the pod.",
    "Create it, or correct its name in the policy.",
)
RUNTIME_CLASS_CONFLICT = Code(
    "runtimeclass-conflict",
    "The RuntimeClass's scheduling rules contradict those of the pod. The API server would refuse the pod.",
    "Let the policy match only pods that may run on the class's nodes.",
)
OVERHEAD_STRAY = Code(
    "overhead-without-class",
    "No RuntimeClass defines the pod's overhead, so the API server refuses the pod.",
    "Remove `overhead` from the template, or let a policy do so (`overhead: {stray: strip}`).",
)
OVERHEAD_CONTRADICTS = Code(
    "overhead-contradicts",
    "The pod's overhead differs from that of its RuntimeClass.",
    "Remove `overhead` from the pod's template. The RuntimeClass defines it.",
)
OVERHEAD_MISSING = Code(
    "overhead-missing",
    "The pod lacks the overhead of its RuntimeClass. The API server's RuntimeClass admission plugin seems to be off.",
    "Switch the API server's RuntimeClass admission plugin on, or set `overhead: webhook`.",
)
WINDOWS = Code(
    "windows-pod",
    "The action does not apply to pods that run on Windows. There, limits are the only protection of the node, and "
    "sandboxes of Linux do not run.",
    "Nothing to do.",
)
ON_ITS_NODE = Code("node-name-set", "The pod names its node itself, so placement has no effect.", "Nothing to do.")
SCHEDULER_NOT_RUNNING = Code(
    "scheduler-not-running",
    "The scheduler that the policy names does not run, so the pod would stay Pending. No replica of it renews its "
    "Lease.",
    "Start it, or correct `lease` in the policy. Write `none` for a scheduler without a Lease. The policy then "
    "changes pods that are created later.",
)
DAEMON = Code(
    "daemonset-pod",
    "The pod belongs to a DaemonSet, which the policy does not name as an owner. A DaemonSet runs on every node.",
    "Set `owners: [DaemonSet]` in the policy's match to place such pods too.",
)
CONTRADICTION = Code(
    "contradiction",
    "The policy and the pod require contradicting labels of a node. No node could run the pod.",
    "Let the policy match fewer pods, or correct the pod's node selector or affinity.",
)
PLACEMENT_PART = Code(
    "placement-not-whole",
    "A part of the policy's placement does not suit this pod, so none is applied. The other parts alone would keep "
    "the pod Pending, or allow it on nodes that are not meant for it.",
    "See the reason that the message gives for this part. If policies contradict each other, let them match "
    "different pods.",
)
CONTAINER_READS_LIMIT = Code(
    "container-reads-limit",
    "Something in the pod reads this limit, and would use the whole node without it. It may be a variable or a file "
    "of the downward API (`resourceFieldRef`); a language runtime that sizes itself by the limit, such as a JVM "
    "without `-Xmx`; or the kubelet, which gives an emptyDir in memory its size by the pod's memory limit. The "
    "message names it, and where it is visible in the pod.",
    "Keep the limit, or set a size in the pod's template. That is `-Xmx` for a JVM's memory, "
    "`-XX:ActiveProcessorCount` for its cpu, `GOMAXPROCS` for Go, `sizeLimit` for an emptyDir with `medium: Memory`. "
    "For the downward API, read `requests` instead of `limits`. The page docs/how-to/write-a-policy.md has a table.",
)
RUNTIME_UNKNOWN = Code(
    "runtime-unknown",
    "The limit stays, because the container's language runtime is not known and may read it. The policy keeps such "
    "limits (`unknownRuntime: keep`).",
    "Set `unknownRuntime: remove`, or name the runtime in the label `app.kubernetes.io/runtime`. The label is in the "
    "pod's template, and its value is for example `go`, `java` or `nodejs`.",
)
CRITICAL_POD = Code(
    "critical-pod",
    "The pod is system-critical, and the policy does not name its PriorityClass. That is `system-node-critical` or "
    "`system-cluster-critical`.",
    "Name the PriorityClass in `match.priorityClasses` if the policy should apply.",
)
NAMESPACE_LABEL_MISSING = Code(
    "namespace-label-missing",
    "The pod's namespace lacks the label from which the policy takes a value.",
    "Add the label, or exclude the namespace in the policy's `match`.",
)
POD_LABEL_MISSING = Code(
    "pod-label-missing",
    "The pod lacks the label from which the policy takes a value.",
    "Label the pod with a value that the policy lists, to use the policy.",
)
POD_LABEL_NOT_LISTED = Code(
    "pod-label-not-listed",
    "The pod's label has a value that the policy does not list. The policy takes a value from this label.",
    "Use a value that the message names, or add this one to the policy's `among`.",
)
PRIORITY_CLASS_NOT_FOUND = Code(
    "priorityclass-not-found",
    "The PriorityClass does not exist, so the API server would refuse the pod.",
    "Create it, or correct its name in the policy.",
)
CONTROLLERS_LABEL = Code(
    "controller-label",
    "The pod's owner finds its pods by this label, so it is not replaced. With another value the owner would create "
    "more and more pods.",
    "Choose another label in the policy.",
)
NO_SELECTOR_LABEL = Code(
    "no-selector-label",
    "The pod has no label that could select the replicas of its workload.",
    "Add a label to the pod's template, or name another one in the policy's `by`.",
)
NEVER_EVICT = Code(
    "never-evict",
    "An annotation of the pod says that it must not be evicted.",
    'Remove `cluster-autoscaler.kubernetes.io/safe-to-evict: "false"` if the pod may be evicted.',
)
CHANGED_AFTER_US = Code(
    "changed-by-another",
    "Another webhook changed this field after Trimtab, which leaves it so.",
    "Agree with the owner of that webhook which of the two sets the field.",
)
NOT_A_QUANTITY = Code(
    "not-a-quantity",
    "The pod has an amount that is no valid Kubernetes quantity. The API server refuses such pods.",
    "Correct the amount in the pod's template.",
)
ACTION_FAILED = Code(
    "action-failed",
    "An action failed because of a bug in Trimtab. The other actions of the policies are applied.",
    "Report the bug, with the pod and the policy.",
)
NOT_IN_CLUSTER = Code(
    "not-in-the-cluster",
    "The policy names a namespace, a label or nodes that do not exist now.",
    "Correct the name, unless the object is created later. A node group may grow from zero.",
)
