"""Declares the reason codes of the admission package: why an action that a ResourceQuota may refuse is not applied, or
is applied nevertheless; why a proposed request is changed or left out because of the whole pod; whether a node could
run the pod; and why a running pod does not follow its recommendation."""

from trimtab.cluster.reason import Code

QUOTA_WOULD_REFUSE = Code(
    "quota-would-refuse",
    "With this action, the owner's pods would exceed the namespace's ResourceQuota. So Trimtab applies it to none of "
    "them.",
    "Raise the quota, or let it count fewer resources. A new owner needs room for all its replicas and for the "
    "additional pods of a rollout.",
)
QUOTA_TOO_CLOSE = Code(
    "quota-too-close",
    "With this action, less than 10% of the namespace's ResourceQuota would be left. The status of a quota does not "
    "yet count the newest pods, which may need this room, so Trimtab applies the action to no pod of the owner.",
    "Raise the quota a little, or write `required: true` into the policy. Then only the API server decides. The "
    "quota can also count fewer resources.",
)
QUOTA_ROOM_UNKNOWN = Code(
    "quota-room-unknown",
    "The action needs room in a ResourceQuota for an unknown number of pods. Trimtab does not know how many pods the "
    "owner creates. It applies the action to none of them, because the quota might refuse the last ones.",
    "Let Trimtab read the owner, or let the quota count fewer resources.",
)
QUOTA_WITHHELD = frozenset({QUOTA_WOULD_REFUSE, QUOTA_TOO_CLOSE, QUOTA_ROOM_UNKNOWN})
"""The codes of an action that is not applied because of a quota."""
QUOTA_MAY_REFUSE = Code(
    "quota-may-refuse",
    "A required action is applied although the namespace's ResourceQuota may refuse the pod. The policy has "
    "`required: true`. The pods of the owner would use more than 90% of the quota, or their number is not known.",
    "Raise the quota by the amount that the message names, or run fewer pods. It is for example the overhead of the "
    "RuntimeClass.",
)

REQUEST_REFUSED = Code(
    "request-refused",
    "The API server would refuse the recommended request, so it stays unchanged. A LimitRange, a quota or another "
    "limit of the pod forbids it.",
    "Change the LimitRange, the quota or the limit that the message names.",
)
POD_LEVEL_CAPS = Code(
    "pod-level-limit",
    "The containers' requests rise only as far as the pod-level limit allows (`spec.resources.limits`). Together "
    "they would request more.",
    "Raise the pod-level limit.",
)
POD_LEVEL_RISES = Code(
    "pod-level-request-rises",
    "The pod-level request rises to the sum of the containers' requests. The API server does not accept a smaller "
    "one (`spec.resources.requests`).",
    "Apply both together; `trimtab recommend --patch` writes them.",
)
CONTAINER_NOT_IN_TEMPLATE = Code(
    "container-not-in-template",
    "A webhook adds the container, so a patch of the template would add one without an image. The template of the "
    "workload does not have it.",
    "Change the request where the container is configured. That may be the settings of the service mesh.",
)

# Whether a node could run the pod with an action ------------------------------------------------------------------
NO_NODE = Code(
    "no-node-could-run-it",
    "With the action, no node could run the pod, so it is not applied. No node that the pod may use has room for it "
    "in addition to the node's DaemonSet pods, or reports the runtime handler of its RuntimeClass, or a spread "
    "constraint leaves some pods of the same owner without a node. Without the action there is such a node.",
    "Add nodes with the room or the labels that the message names, or match fewer pods. The message also names a "
    "topology or taints.",
)
NODE_UNKNOWN = Code(
    "no-known-node-matches",
    "No node that accepts pods has the labels that the policy requires now. Such nodes may be cordoned, or the "
    "autoscaler may add one from an empty node group, whose labels are not known. Trimtab applies the action.",
    "Correct the labels or tolerations, unless the node group may grow from zero.",
)

# Why a running pod does not follow its recommendation -------------------------------------------------------------
RUNNING_VPA = Code(
    "resize-vpa-manages",
    "A VPA manages this resource of the container, so Trimtab does not resize it.",
    "Nothing to do: the VPA changes running pods itself, if its mode allows it.",
)
RUNNING_HPA = Code(
    "resize-hpa-divides",
    "An HPA divides usage by this request, so another one would change the number of replicas.",
    "Let the HPA use AverageValue or another metric, or do not resize these pods.",
)
RUNNING_AUTOSCALERS_UNSEEN = Code(
    "resize-autoscalers-unknown",
    "It is not known yet whether a VPA or an HPA uses the pod's requests.",
    "Wait: Trimtab reads the lists within a minute. The first policy that needs them starts that.",
)
RUNNING_NOT_MEASURED = Code(
    "resize-not-measured",
    "The pod's new request does not follow from enough usage to resize it. That needs a recommendation that has not "
    "ended, with more than a day of usage and enough confidence. The value for new pods has another source.",
    "Wait for more usage; `trimtab recommend` shows what is missing.",
)
