"""Declares every reason code of the policy package: why a field is changed or not changed.

The reference page of reasons is generated from these codes.
"""

from trimtab.cluster.reason import Code

# Why a field is changed ------------------------------------------------------------------------------------------
POLICY_SAYS = Code(
    "set-by-policy",
    "A policy sets this value.",
    "Nothing to do. If pods should keep their own value, let the policy match fewer pods, or opt the pods out "
    "with `trimtab.dev/opt-out`.",
)
FROM_USAGE = Code(
    "from-usage",
    "The request is computed from the recorded usage of the container: by the policy's rule, or, if a VPA "
    "adjusts the request later, as the 5th percentile.",
    "Nothing to do. `trimtab admit` shows the percentile and the number of days from which the request was computed.",
)
VPA_TARGET = Code(
    "vpa-target",
    "The container has no request, and a VerticalPodAutoscaler recommends this value, which the VPA's webhook "
    "would also write.",
    "Nothing to do. If the VPA's webhook acts after Trimtab, it writes the same value.",
)
FROM_DEFAULT = Code(
    "from-default",
    "Trimtab does not know the container's usage yet, so it used the policy's `otherwise`.",
    "Wait for a day of usage, or write a request into the pod's template.",
)
FROM_LIMIT = Code(
    "from-limit", "The request is a share of the container's limit; the policy sets the percentage.", "Nothing to do."
)
FROM_REQUEST = Code(
    "from-request",
    "The request is a share of the container's own request; the policy sets the percentage. The pod's annotation "
    "`trimtab.dev/written-requests` records the original request.",
    "Nothing to do.",
)
LIMIT_REMOVED = Code(
    "limit-removed",
    "The policy removes this limit. The request of the container stays. The message says so if nothing in the pod "
    "shows which language runtime the container has: whether that runtime reads the limit is not known then.",
    "Nothing to do. To keep a limit, set `limits: keep` in a policy of higher priority that matches the pod.",
)
CLEANED_UP = Code(
    "cleaned-up",
    "A field that belonged to the previous value was removed together with that value, because the API server "
    "would refuse the pod otherwise.",
    "Nothing to do: the API server fills it again.",
)
CLASS_BRINGS = Code(
    "set-from-runtime-class",
    "The RuntimeClass defines this value, and the API server does not add it, because its RuntimeClass admission "
    "plugin is off.",
    "Nothing to do. If the API server's RuntimeClass admission plugin is on, set `overhead: server`.",
)
OVERHEAD_STRIPPED = Code(
    "overhead-stripped",
    "The pod had an overhead that no RuntimeClass defines, so Trimtab removed it: the API server would have "
    "refused the pod.",
    "Remove `overhead` from the pod's template.",
)

# Why the whole pod is left alone ---------------------------------------------------------------------------------
MIRROR_POD = Code(
    "mirror-pod",
    "The pod is the API server's copy of a static pod of the kubelet. A change would make the copy differ from "
    "the static pod.",
    "Nothing to do.",
)
SYSTEM_NAMESPACE = Code(
    "system-namespace",
    "Pods of kube-system, of Trimtab's own namespace and of the namespaces in the settings are never changed.",
    "Nothing to do.",
)
OPTED_OUT = Code(
    "opted-out",
    'The pod or its namespace has the label or annotation `trimtab.dev/opt-out: "true"`.',
    "To let policies apply again, remove the label or annotation.",
)
PAUSED = Code(
    "paused",
    "Trimtab is paused, so it changes no pod.",
    "To end the pause, remove the annotation `trimtab.dev/paused` from Trimtab's namespace, or set "
    "`TRIMTAB_WEBHOOK_PAUSED` to false.",
)
TOO_LARGE = Code(
    "too-large",
    "The pod has more containers, affinity terms, tolerations, amounts or bytes than Trimtab accepts, because a "
    "decision about so large a pod would delay other requests.",
    "Make the pod smaller; the message names the limit that the pod exceeds. Pods of ordinary size are far below "
    "these limits.",
)
NO_POLICY = Code(
    "no-policy", "No policy matches the pod.", "Run `trimtab policies explain` to see what each policy matches."
)

# Why a pod is denied ---------------------------------------------------------------------------------------------
REQUIRED = Code(
    "required",
    "A policy requires an action (`required: true`), but the pod would run without this action.",
    "Correct what the message names: a contradiction in the pod itself, a class that does not exist, or a policy "
    "that decided first.",
)

# Why one field is left alone -------------------------------------------------------------------------------------
OVERRULED = Code(
    "overruled",
    "A policy of higher priority has already decided this field.",
    "Give this policy a higher `priority`, or narrow the `match` of the other policy.",
)
ALREADY_SET = Code(
    "already-set",
    "The pod sets this value itself, and the policy sets only values that are missing.",
    "To replace the pod's own value, set `when: always` (for requests) or `override: true` in the policy.",
)
APPLIED = Code(
    "applied-as-written",
    "`kubectl apply` or server-side apply manages the pod itself and wrote this value. If Trimtab changed the "
    "value, the API server would refuse the next apply.",
    "Let a Deployment or a Job create the pod, create the pod with `kubectl create`, or change the value in its "
    "manifest.",
)
NOT_IN_ROLLOUT = Code(
    "not-in-rollout",
    "The policy is rolled out to a share of the owners of pods, and this pod's owner is not included yet.",
    "To include more owners, raise `rollout` in the policy. Owners that are already included stay included.",
)
LIMIT_RANGE_DEFAULT = Code(
    "limitrange-default",
    "A LimitRange of the namespace set this request, and the policy has only a default value for it. Only a "
    "recommendation from usage or of a VPA would replace the request.",
    "Wait for a day of usage, or remove the default from the LimitRange.",
)
GUARANTEED_LEFT_ALONE = Code(
    "guaranteed-unchanged",
    "The pod has the QoS class Guaranteed, and the change would lower its class.",
    "If the pod may lose the class Guaranteed, set `guaranteed: change` in the policy.",
)
CIRCULAR = Code(
    "circular-request-and-limit",
    "The request is a share of the limit, and the limit would follow the request, so neither of the two would "
    "have a fixed value.",
    "Give one of the two a fixed value: `from: usage` or `from: policy` for the request, or `limits: keep` for "
    "the limit.",
)
QOS_WOULD_CHANGE = Code(
    "qos-would-change",
    "The change would give the pod another QoS class (Guaranteed or BestEffort), which is not requested.",
    "If the pod would become Guaranteed, also remove the limit, or set the request and the limit yourself. If "
    "the pod would become BestEffort, give the container a request above zero.",
)
POD_LEVEL_RESOURCES = Code(
    "pod-level-resources",
    "The pod sets resources for the pod as a whole, so Trimtab does not change the requests and limits of its "
    "containers.",
    "Nothing to do.",
)
LIMIT_RANGE_KEEPS_LIMIT = Code(
    "limitrange-keeps-limit",
    "A LimitRange of the namespace sets a default or maximum limit: without a limit, the API server would add "
    "one or refuse the pod.",
    "Remove `default`, `max` and `maxLimitRequestRatio` of this resource from the LimitRange.",
)
QUOTA_COUNTS_LIMIT = Code(
    "quota-counts-limit",
    "A ResourceQuota of the namespace counts limits of this resource: the API server would refuse a pod without "
    "a limit.",
    "Let the quota count requests instead of limits.",
)
QUOTA_COUNTS_QOS = Code(
    "quota-counts-qos",
    "A ResourceQuota of the namespace counts only BestEffort pods, or only other pods. With requests, another "
    "quota would apply to the pod.",
    "Remove the scopes BestEffort and NotBestEffort from the quota, or set requests in the pod's template.",
)
MARKER_NOT_OURS = Code(
    "changed-annotation-ignored",
    "The pod has a `trimtab.dev/changed` annotation that Trimtab did not write in this request. Trimtab ignores "
    "the annotation.",
    "Nothing to do. If you copy manifests from a cluster, leave the annotation out.",
)
MARKER_UNVERIFIED = Code(
    "changed-annotation-unverified",
    "The pod has a `trimtab.dev/changed` annotation, but Trimtab has no key to verify who wrote it. Trimtab "
    "ignores the annotation.",
    "In an offline command, nothing to do. If the webhook reports this reason, it could not read the Secret with "
    "its signing keys: see its log.",
)
FACTS_MISSING = Code(
    "facts-missing",
    "This decision depends on objects of the cluster that Trimtab has not read yet, and Trimtab assumes nothing "
    "about them.",
    "Nothing to do: the webhook reads the objects within seconds of its start. For an offline command, pass a "
    "snapshot with `--cluster`.",
)
REQUEST_CAPPED = Code(
    "request-capped",
    "The request was lowered to the largest allowed amount. The bound is the container's limit, a LimitRange, "
    "the policy's max, the VPA's maxAllowed or the largest node.",
    "If the container needs more, raise the bound that the message names.",
)
REQUEST_RAISED = Code(
    "request-raised",
    "The request was raised to the smallest allowed amount. The bound is a LimitRange, its ratio of limit to "
    "request, the policy's min, or the VPA.",
    "If the container needs less, lower the bound that the message names.",
)
LIMIT_RANGE_REFUSES = Code(
    "limitrange-refuses",
    "A LimitRange does not allow the value that a policy or a recommendation would set, so the container stays "
    "unchanged.",
    "Change the LimitRange, the limit of the container, or the policy's bounds.",
)
RECOMMENDATION_ENDED = Code(
    "recommendation-expired",
    "The recommendation ended (at its own end, or after the policy's `maxAge`) before the workload was created, "
    "so it does not apply to this workload. Older workloads keep their requests.",
    "Find out why the recommender has no newer usage: see its log and the metric "
    "`trimtab_recommender_collected_timestamp_seconds`. Until then the policy's `otherwise` is used.",
)
LOW_CONFIDENCE = Code(
    "low-confidence",
    "The confidence of the recommendation is too low. To lower a request, it must be at least 0.5. If the policy "
    "sets `minConfidence`, it must be at least that value for any use.",
    "Wait until more usage is known, or lower `minConfidence` in the policy.",
)
OOM_KILLED = Code(
    "oom-killed",
    "The container was killed within the last two weeks because it ran out of memory. Its request is therefore "
    "larger than the memory that it used at that time (or than its limit): by 20 %, and by at least 100 MiB. In "
    "the second week this addition decreases.",
    "Nothing to do. If a limit prevents a higher request, raise the limit.",
)
CHANGED_RECENTLY = Code(
    "changed-recently",
    "The usage of the last day differs from that of the week before, so the confidence is below 0.5.",
    "Wait some days, or find out what changed, for example a release, the load, or a job that ended.",
)
GROWS = Code(
    "grows",
    "The usage grew on nearly every day of the last week. A request that is sufficient today may be too low next week.",
    "Check whether the growth continues. As long as it does, add headroom, such as `rule: adaptive +20%`.",
)
PODS_DIFFER = Code(
    "pods-differ",
    "One pod of the workload always uses far more than the others, and fewer than a tenth of the pods use that "
    "much, so the common request is too low for this pod.",
    "Give that pod a workload of its own, or set `pods: largest` in the policy, which gives all pods a request "
    "of this size.",
)
RARE_PEAKS = Code(
    "rare-peaks",
    "The largest memory peak of the history is more than a quarter above the request, because such peaks are "
    "rare or days ago.",
    "If the peak recurs, for example each week, set `rule: max` in the policy, or write a request into the pod's "
    "template.",
)
YOUNG_HISTORY = Code(
    "short-history",
    "Less than a day of the container's usage is known. That is enough to set a missing request or to raise a "
    "low request, but not enough to lower one.",
    "Wait for a day of usage.",
)
LIMIT_AFTER_DEFAULT = Code(
    "limit-after-default",
    "The limit would follow a request that is only a default of the policy, and no usage of the container is "
    "known. The container could soon be killed, so Trimtab sets no limit.",
    "Wait for a day of usage, or write a request or a limit into the pod's template.",
)
LIMIT_NOT_LOWERED = Code(
    "limit-not-lowered",
    "The pod's author set this limit of memory or local storage, and Trimtab never lowers such a limit.",
    "If a lower limit is right, set it in the pod's template.",
)
LIMIT_BELOW_PEAK = Code(
    "limit-below-peak",
    "The memory limit is below the largest known usage. If the container uses that much again, it is killed.",
    "Raise the limit in the pod's template, or the max of the LimitRange.",
)
VPA_DECIDES = Code(
    "vpa-decides",
    "A VerticalPodAutoscaler has a recommendation for this container, so the VPA's webhook sets the request.",
    "Nothing to do.",
)
VPA_RATIO = Code(
    "vpa-ratio",
    "A VPA keeps the ratio of limit to request. If Trimtab lowered the request, the VPA would multiply the limit.",
    "Remove the limit with a policy, or set `controlledValues: RequestsOnly` in the VPA.",
)
VPA_BOOSTS = Code("vpa-boosts", "The VPA raises this container's cpu during its start.", "Nothing to do.")
RUNTIME_CLASS_NOT_FOUND = Code(
    "runtimeclass-not-found",
    "The RuntimeClass does not exist. The API server would refuse a pod that names it.",
    "Create the RuntimeClass, or correct its name in the policy.",
)
RUNTIME_CLASS_CONFLICT = Code(
    "runtimeclass-conflict",
    "The scheduling rules of the RuntimeClass contradict those of the pod. The API server would refuse the pod.",
    "Let the policy match only pods that may run on the nodes of the RuntimeClass.",
)
OVERHEAD_STRAY = Code(
    "overhead-without-class",
    "The pod has an overhead without a RuntimeClass that defines it. The API server refuses such pods.",
    "Remove `overhead` from the pod's template, or let a policy remove it (`overhead: {stray: strip}`).",
)
OVERHEAD_CONTRADICTS = Code(
    "overhead-contradicts",
    "The pod's overhead differs from the overhead that its RuntimeClass defines.",
    "Remove `overhead` from the pod's template, because the RuntimeClass defines it.",
)
OVERHEAD_MISSING = Code(
    "overhead-missing",
    "The pod names a RuntimeClass with overhead, but has no overhead: the API server's RuntimeClass admission "
    "plugin seems to be off.",
    "Switch the RuntimeClass admission plugin on, or set `overhead: webhook`.",
)
WINDOWS = Code(
    "windows-pod",
    "This action does not apply to pods that run on Windows. There, limits are the only protection of the node, and "
    "sandboxes of Linux do not run.",
    "Nothing to do.",
)
ON_ITS_NODE = Code(
    "node-name-set", "The pod itself names the node that it runs on, so placement has no effect.", "Nothing to do."
)
SCHEDULER_NOT_RUNNING = Code(
    "scheduler-not-running",
    "No replica of the scheduler that the policy names renews its Lease, so the pod would stay Pending.",
    "Start the scheduler, or correct `lease` in the policy (`none` for a scheduler without a Lease). The policy "
    "then changes pods that are created later.",
)
DAEMON = Code(
    "daemonset-pod",
    "The pod belongs to a DaemonSet, which runs on every node. A policy places such pods only if it names "
    "DaemonSet as an owner.",
    "To place pods of DaemonSets as well, set `owners: [DaemonSet]` in the policy's match.",
)
CONTRADICTION = Code(
    "contradiction",
    "The labels that the policy requires of a node contradict those that the pod requires. No node could run the pod.",
    "Let the policy match fewer pods, or correct the pod's node affinity or selector.",
)
PLACEMENT_PART = Code(
    "placement-not-whole",
    "A part of the policy's placement cannot be applied to this pod. The other parts alone would keep the pod "
    "Pending, or allow it on nodes that are not meant for it, so Trimtab applies none of them.",
    "See the reason that the message gives for this part. If policies contradict each other, let them match "
    "different pods.",
)
CONTAINER_READS_LIMIT = Code(
    "container-reads-limit",
    "Something reads this limit: a variable or a file of the downward API (`resourceFieldRef`); a language runtime "
    "that sizes itself by the limit, such as a JVM without `-Xmx`; or the kubelet, which gives an emptyDir in memory "
    "its size by the pod's memory limit. Without the limit, the size would be that of the whole node. The message "
    "names what reads the limit, and where that is visible in the pod.",
    "Keep the limit, or set a size in the pod's template: `-Xmx` for a JVM's memory, `-XX:ActiveProcessorCount` for "
    "its cpu, `GOMAXPROCS` for Go, `sizeLimit` for an emptyDir with `medium: Memory`. For the downward API, read "
    "`requests` instead of `limits`. The page docs/how-to/write-a-policy.md has a table.",
)
RUNTIME_UNKNOWN = Code(
    "runtime-unknown",
    "Nothing in the pod shows which language runtime the container has, so it may read its limit. The policy keeps "
    "such limits (`unknownRuntime: keep`).",
    "To remove such limits, set `unknownRuntime: remove`. To show the runtime, set the label "
    "`app.kubernetes.io/runtime` in the pod's template, for example to `go`, `java` or `nodejs`.",
)
CRITICAL_POD = Code(
    "critical-pod",
    "The pod has the PriorityClass `system-node-critical` or `system-cluster-critical`. A policy applies to such "
    "a pod only if it names this PriorityClass.",
    "If the policy should apply to such pods, name the PriorityClass in its `match.priorityClasses`.",
)
NAMESPACE_LABEL_MISSING = Code(
    "namespace-label-missing",
    "The policy takes a value from a label of the pod's namespace, but the namespace does not have this label.",
    "Add the label to the namespace, or exclude the namespace in the policy's `match`.",
)
POD_LABEL_MISSING = Code(
    "pod-label-missing",
    "The policy takes a value from a label of the pod, but the pod does not have this label.",
    "Nothing to do. To use the policy, label the pod with one of the values that the policy lists.",
)
POD_LABEL_NOT_LISTED = Code(
    "pod-label-not-listed",
    "The policy takes a value from a label of the pod, but the value of this label is not in the policy's list.",
    "Use one of the values that the message names, or add the value to the policy's `among`.",
)
PRIORITY_CLASS_NOT_FOUND = Code(
    "priorityclass-not-found",
    "The PriorityClass does not exist. The API server would refuse a pod that names it.",
    "Create the PriorityClass, or correct its name in the policy.",
)
CONTROLLERS_LABEL = Code(
    "controller-label",
    "Controllers find their pods by this label. If the policy changed its value, the owner would not find the "
    "pod, and would create more and more pods.",
    "Choose another label in the policy.",
)
NO_SELECTOR_LABEL = Code(
    "no-selector-label",
    "The pod has none of the labels that could select the replicas of its workload.",
    "Add one of the labels to the pod's template, or name another label in the policy's `by`.",
)
NEVER_EVICT = Code(
    "never-evict",
    "An annotation of the pod says that it must not be evicted.",
    'If the pod may be evicted, remove `cluster-autoscaler.kubernetes.io/safe-to-evict: "false"`.',
)
CHANGED_AFTER_US = Code(
    "changed-by-another",
    "Another webhook changed this field after Trimtab, and Trimtab does not change it again.",
    "Agree with the owner of the other webhook which of the two sets the field.",
)
NOT_A_QUANTITY = Code(
    "not-a-quantity",
    "The pod has an amount that is not a valid Kubernetes quantity. The API server refuses such pods.",
    "Correct the amount in the pod's template.",
)
ACTION_FAILED = Code(
    "action-failed",
    "An action failed because of a bug in Trimtab. The other actions of the policies are applied.",
    "Report the bug, with the pod and the policy.",
)
NOT_IN_CLUSTER = Code(
    "not-in-the-cluster",
    "The policy names a namespace, a label or nodes that do not exist in the cluster at present.",
    "Correct the name in the policy. If a node group grows from zero, or the namespace or the pods are created later, "
    "do nothing.",
)
