"""The codes for requests of whole pods (pod-level resources): why a pod gets one, or why its containers keep theirs."""

from trimtab.cluster.reason import Code

FROM_POD_SUM = Code(
    "from-sum-of-containers",
    "One request for all containers of the pod is smaller than their requests together, because the containers do not "
    "peak at the same time. The request follows from the usage of their sum.",
    "Nothing.",
)
POD_LEVEL_SAVES_NOTHING = Code(
    "pod-level-saves-nothing",
    "One request for all containers of the pod would not be smaller than their requests together.",
    "Nothing.",
)
POD_LEVEL_ONE_CONTAINER = Code(
    "pod-level-one-container",
    "The pod has a single container, whose request is that of the pod.",
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
    "The pod has huge pages. Up to Kubernetes 1.36 the API server then fills in the other requests of the pod as a "
    "whole before the last webhook has run, and refuses the pod if that one adds a container.",
    "Nothing.",
)
POD_LEVEL_SCHEDULER = Code(
    "pod-level-other-scheduler",
    "Another scheduler than kube-scheduler places the pod. If it does not count requests of whole pods, it places the "
    "pod where there is no room, and the kubelet refuses the pod.",
    "Leave the containers their own requests, or let a policy set the scheduler of the pod if it counts them.",
)
POD_LEVEL_VPA = Code(
    "pod-level-next-to-vpa",
    "A VPA writes requests of containers. The API server refuses a pod whose containers request more together than the "
    "pod does.",
    "Remove the VPA, or leave the containers their own requests.",
)
POD_LEVEL_HPA = Code(
    "pod-level-next-to-hpa",
    "An HPA divides the usage of a pod by its request, so a smaller request leads to more pods.",
    "Let the HPA use the target `averageValue` instead.",
)
POD_LEVEL_CONTAINER_HPA = Code(
    "pod-level-next-to-container-hpa",
    "An HPA divides the usage of one container by its request, and cannot scale if the container has none.",
    "Leave the containers their own requests.",
)
POD_LEVEL_KUBELET = Code(
    "pod-level-needs-kubelet",
    "Kubelets older than 1.34 do not put the resources of whole pods into force: such a node would run the pod as if "
    "it requested nothing.",
    "Upgrade the nodes that may take the pod, or keep the pod away from them; a snapshot must include nodes.",
)
POD_LEVEL_LIMIT_RANGE = Code(
    "pod-level-below-default",
    "A LimitRange gives each container without a request a default one, and together these are more than the pod would "
    "request. The API server refuses such a pod.",
    "Remove the default request of the LimitRange.",
)
POD_LEVEL_OTHER_CONTAINERS = Code(
    "pod-level-other-containers",
    "The policy does not apply to all containers of the pod, so it does not decide about the pod as a whole.",
    "Remove `containers` from the `match` of the policy, or leave the containers their own requests.",
)
POD_LEVEL_NO_USAGE = Code(
    "pod-level-no-usage",
    "The usage of the sum of the containers is not known for long enough. It is recorded only if the setting "
    "`TRIMTAB_RECOMMENDER_RECORD_POD_SUMS` of the recommender is true, and begins anew when a container comes or goes.",
    "Set it, and wait for a day.",
)
POD_LEVEL_REFUSED = Code(
    "pod-level-refused",
    "The API server would refuse the pod with this request for all its containers together, because of the requests "
    "that containers keep, a LimitRange or a quota.",
    "Read the sentence: it names what refuses the pod.",
)
