"""Reasons why a pod does not fit on a node: one code per constraint, in the order in which kube-scheduler checks
them."""

from trimtab.cluster.reason import Code

NODE_CLOSED = Code(
    "node-takes-no-pods",
    "The node accepts no new pods: it is cordoned, not ready, being drained or deleted, or cannot be read.",
    "If that is intended, do nothing. Uncordon a node that a user cordoned with `kubectl uncordon`.",
)
NOT_SELECTED = Code(
    "node-not-selected",
    "The node does not match the pod's node selector or required node affinity.",
    "Compare the node's labels with spec.nodeSelector and spec.affinity.nodeAffinity of the pod.",
)
NOT_TOLERATED = Code(
    "taint-not-tolerated",
    "The node has a taint that the pod does not tolerate.",
    "Add a toleration to the pod, or leave the node to the pods for which it was tainted.",
)
NO_ROOM = Code(
    "no-room",
    "A resource that the pod requests is not free on the node.",
    "Lower the request if usage allows it (`trimtab recommend`), or keep more nodes.",
)
PORT_TAKEN = Code(
    "host-port-taken",
    "Another pod on the node uses the host port.",
    "Use a Service instead of a host port where possible.",
)
VOLUME_ELSEWHERE = Code(
    "volume-elsewhere",
    "The pod's volume cannot be reached from the node.",
    "Keep nodes in the volume's zone, or move the volume.",
)
VOLUME_IN_USE = Code(
    "volume-in-use",
    "Another pod uses the pod's volume, which allows only one pod (ReadWriteOncePod) or one node (ReadWriteOnce).",
    "Stop the other pod first, or give each pod its own volume.",
)
TOO_CLOSE = Code(
    "anti-affinity",
    "Required pod anti-affinity, the pod's own or another pod's, forbids the node.",
    "Provide more nodes (or zones) than replicas, or make the anti-affinity preferred.",
)
NO_COMPANY = Code(
    "affinity-not-met",
    "Required pod affinity finds no matching pod in the node's domain.",
    "Start the pod that the affinity selects first.",
)
UNEVEN = Code(
    "topology-spread",
    "The placement would violate a topology spread constraint (DoNotSchedule).",
    "Raise maxSkew, use ScheduleAnyway, or set nodeTaintsPolicy: Honor so that a node being drained no longer counts.",
)
UNJUDGED = Code(
    "unknown-placement-rule",
    "Trimtab does not know all the conditions under which this pod can be scheduled.",
    "The message names the cause: a scheduler, resource claims, or volumes or namespaces that are missing in the "
    "snapshot.",
)
