"""The codes for requests of whole pods (pod-level resources): why a pod gets one, or why its containers keep theirs."""

from trimtab.cluster.reason import Code

FROM_POD_SUM = Code(
    "from-sum-of-containers",
    "The pod's request follows from the usage of all its containers together. It is smaller than their requests "
    "together, because the containers do not peak at the same time.",
    "Nothing.",
)
POD_LEVEL_SAVES_NOTHING = Code(
    "pod-level-saves-nothing",
    "One request for the whole pod would not be smaller than those of its containers.",
    "Nothing.",
)
POD_LEVEL_ONE_CONTAINER = Code(
    "pod-level-one-container",
    "The pod has a single container, so one request for all saves nothing.",
    "Nothing.",
)
POD_LEVEL_SET = Code(
    "pod-level-already-set",
    "The pod already sets resources for all its containers together (`spec.resources`).",
    "Nothing.",
)
POD_LEVEL_GUARANTEED = Code(
    "pod-level-guaranteed",
    "The pod is Guaranteed: each container's limit is its request.",
    "Remove the limits, if the pod need not be Guaranteed.",
)
POD_LEVEL_WINDOWS = Code("pod-level-windows", "Kubernetes supports resources of whole pods on Linux only.", "Nothing.")
POD_LEVEL_HUGE_PAGES = Code(
    "pod-level-huge-pages",
    "The pod has huge pages, and the API server might refuse it. Up to Kubernetes 1.36 the API server then fills in "
    "the other requests of the pod as a whole before the last webhook has run, and refuses the pod if that one adds "
    "a container.",
    "Nothing.",
)
POD_LEVEL_SCHEDULER = Code(
    "pod-level-other-scheduler",
    "Another scheduler than kube-scheduler may not count requests of whole pods. It would place the pod where there "
    "is no room, and the kubelet would refuse the pod.",
    "Leave the containers their requests, or let a policy set the scheduler if it counts them.",
)
POD_LEVEL_VPA = Code(
    "pod-level-next-to-vpa",
    "A VPA writes requests of containers, which together may exceed that of the pod. The API server refuses such a "
    "pod.",
    "Remove the VPA, or leave the containers their own requests.",
)
POD_LEVEL_HPA = Code(
    "pod-level-next-to-hpa",
    "An HPA divides usage by the pod's request, so a smaller one leads to more pods.",
    "Let the HPA use `averageValue` instead.",
)
POD_LEVEL_CONTAINER_HPA = Code(
    "pod-level-next-to-container-hpa",
    "An HPA divides usage by a container's request, and cannot scale without one.",
    "Leave the containers their own requests.",
)
POD_LEVEL_KUBELET = Code(
    "pod-level-needs-kubelet",
    "A kubelet older than 1.34 would run the pod as if it requested nothing. Such kubelets do not put the resources "
    "of whole pods into force.",
    "Upgrade the nodes that may take the pod, or keep it away from them. A snapshot must include nodes.",
)
POD_LEVEL_LIMIT_RANGE = Code(
    "pod-level-below-default",
    "The default requests of a LimitRange are together more than the pod would request. The LimitRange gives one to "
    "each container without a request. The API server refuses such a pod.",
    "Remove the default request of the LimitRange.",
)
POD_LEVEL_OTHER_CONTAINERS = Code(
    "pod-level-other-containers",
    "The policy leaves out containers of the pod, so it does not decide about the whole.",
    "Remove `containers` from the policy's `match`, or leave the containers their own requests.",
)
POD_LEVEL_NO_USAGE = Code(
    "pod-level-no-usage",
    "The usage of all containers together is not known for long enough. It is recorded only if the setting "
    "`TRIMTAB_RECOMMENDER_RECORD_POD_SUMS` of the recommender is true, and begins anew when a container comes or "
    "goes.",
    "Set TRIMTAB_RECOMMENDER_RECORD_POD_SUMS, and wait for a day.",
)
POD_LEVEL_REFUSED = Code(
    "pod-level-refused",
    "The API server would refuse the pod with this request for all its containers. The cause is the requests that "
    "containers keep, a LimitRange or a quota.",
    "Change what the message names.",
)
