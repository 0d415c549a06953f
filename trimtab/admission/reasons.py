"""Declares the reason codes of the admission package: why an action that a ResourceQuota may refuse is not applied, or
is applied nevertheless; why a proposed request is changed or left out because of the whole pod; whether a node could
run the pod; and why a running pod does not follow its recommendation."""

from trimtab.cluster.reason import Code

QUOTA_WOULD_REFUSE = Code(
    "quota-would-refuse",
    "With this action, the pods of the owner would use more than the namespace's ResourceQuota allows, so "
    "Trimtab applies the action to none of them.",
    "Raise the quota, or let it count fewer resources. A new owner needs room for all its replicas and for the "
    "additional pods of a rollout.",
)
QUOTA_TOO_CLOSE = Code(
    "quota-too-close",
    "With this action, the pods of the owner would fit into the namespace's ResourceQuota, but less than 10% of it "
    "would be left. The status of a quota does not yet count the newest pods, which may need this room, so Trimtab "
    "applies the action to no pod of the owner.",
    "Raise the quota a little, or let it count fewer resources. If the pods must have the action, write "
    "`required: true` into the policy: then only the API server decides.",
)
QUOTA_ROOM_UNKNOWN = Code(
    "quota-room-unknown",
    "The action would increase what the pod uses of the namespace's ResourceQuota, and Trimtab does not know how many "
    "pods the owner creates. It applies the action to none of them, because the quota might refuse the last ones.",
    "Let Trimtab read the owner, or let the quota count fewer resources.",
)
QUOTA_WITHHELD = frozenset({QUOTA_WOULD_REFUSE, QUOTA_TOO_CLOSE, QUOTA_ROOM_UNKNOWN})
"""The codes of an action that is not applied because of a quota."""
QUOTA_MAY_REFUSE = Code(
    "quota-may-refuse",
    "A policy requires the action (`required: true`), so Trimtab applies it, although the pods of the owner "
    "would use more than 90% of the namespace's ResourceQuota, or their number is not known. The API server may "
    "refuse the pod because of the quota.",
    "Raise the quota by the amount that the message names, for example the overhead of the RuntimeClass, or run "
    "fewer pods.",
)

REQUEST_REFUSED = Code(
    "request-refused",
    "The API server would refuse the pod with the recommended request, because of a LimitRange, a quota or another "
    "limit of the pod, so the request stays unchanged.",
    "Change the LimitRange, the quota or the limit that the message names.",
)
POD_LEVEL_CAPS = Code(
    "pod-level-limit",
    "The containers would together request more than the pod-level limit (`spec.resources.limits`), so their requests "
    "rise only as far as the limit allows.",
    "Raise the pod-level limit.",
)
POD_LEVEL_RISES = Code(
    "pod-level-request-rises",
    "The containers together request more than the pod-level request (`spec.resources.requests`), which the API "
    "server does not accept, so the pod-level request rises with their sum.",
    "Apply the pod-level request together with those of the containers; `trimtab recommend --patch` writes both.",
)
CONTAINER_NOT_IN_TEMPLATE = Code(
    "container-not-in-template",
    "A webhook adds the container to the pods, so the template of the workload does not have it, and a patch would add "
    "a container without an image.",
    "Change the request where the container is configured, for example in the settings of the service mesh.",
)

# Whether a node could run the pod with an action ------------------------------------------------------------------
NO_NODE = Code(
    "no-node-could-run-it",
    "With this action, no node that the pod may use has room for the pod in addition to the node's DaemonSet pods, "
    "or reports the runtime handler of its RuntimeClass, or a "
    "spread constraint leaves some pods of the same owner without a node. Without the action there is such a "
    "node, so Trimtab does not apply it.",
    "Add nodes that are large enough or have the labels, or let the policy match fewer pods. The message names "
    "the missing amounts, labels or topology, or the taints.",
)
NODE_UNKNOWN = Code(
    "no-known-node-matches",
    "At present no node that accepts pods has the labels that the policy requires. Such nodes may be cordoned, "
    "or the autoscaler may add one from an empty node group, whose labels are not known. Trimtab applies the "
    "action.",
    "If the node group may grow from zero, nothing to do. Otherwise correct the labels or tolerations in the policy.",
)

# Why a running pod does not follow its recommendation -------------------------------------------------------------
RUNNING_VPA = Code(
    "resize-vpa-manages",
    "A VerticalPodAutoscaler manages this resource of the container, so Trimtab does not resize it.",
    "Nothing to do: if the mode of the VPA allows it, the VPA changes running pods itself.",
)
RUNNING_HPA = Code(
    "resize-hpa-divides",
    "A HorizontalPodAutoscaler scales by the utilization of this resource, so another request would change the "
    "number of replicas.",
    "Let the HPA scale by an AverageValue or by another metric, or do not resize these pods.",
)
RUNNING_AUTOSCALERS_UNSEEN = Code(
    "resize-autoscalers-unknown",
    "Trimtab does not know yet whether a VPA or an HPA uses the requests of the pod.",
    "Wait: Trimtab reads the lists within a minute of the first policy that needs them.",
)
RUNNING_NOT_MEASURED = Code(
    "resize-not-measured",
    "The requests of running pods follow only a recommendation that has not ended, with more than a day of usage "
    "and enough confidence. The value for new pods has another source.",
    "Wait for more usage; `trimtab recommend` shows what is missing.",
)
