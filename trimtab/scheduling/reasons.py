"""Why does a pod not fit a node? One code per constraint, in the scheduler's order of checking."""

from trimtab.cluster.reason import Code

NODE_CLOSED = Code(
    "node-takes-no-pods",
    "The node takes no new pods: it is cordoned, not ready, being emptied or deleted, or cannot be understood.",
    "Nothing, if that is meant. A node left cordoned by hand is uncordoned with `kubectl uncordon`.",
)
NOT_SELECTED = Code(
    "node-not-selected",
    "The pod's node selector or required node affinity does not choose this node.",
    "Compare the node's labels with spec.nodeSelector and spec.affinity.nodeAffinity of the pod.",
)
NOT_TOLERATED = Code(
    "taint-not-tolerated",
    "The node has a taint that the pod does not tolerate.",
    "Tolerate it in the pod, or leave the node to the pods it was tainted for.",
)
NO_ROOM = Code(
    "no-room",
    "A resource the pod asks for is not free on the node.",
    "Lower the request if usage allows it (`trimtab recommend`), or keep more nodes.",
)
PORT_TAKEN = Code(
    "host-port-taken",
    "Another pod on the node holds the host port.",
    "Use a Service instead of a host port where possible.",
)
VOLUME_ELSEWHERE = Code(
    "volume-elsewhere",
    "The pod's volume cannot be reached from the node.",
    "Nodes of the volume's zone must stay, or the volume must move.",
)
VOLUME_IN_USE = Code(
    "volume-in-use",
    "Another pod uses the pod's volume, which one pod (ReadWriteOncePod) or one node (ReadWriteOnce) has for itself.",
    "Stop the other pod first, or give each a volume of its own.",
)
TOO_CLOSE = Code(
    "anti-affinity",
    "Required pod anti-affinity, the pod's own or another pod's, keeps it off.",
    "More nodes (or zones) than replicas are needed; or make the anti-affinity preferred.",
)
NO_COMPANY = Code(
    "affinity-not-met",
    "Required pod affinity finds no matching pod there.",
    "The pod it wants to be near must be there first.",
)
UNEVEN = Code(
    "topology-spread",
    "A topology spread constraint (DoNotSchedule) would be broken.",
    "Raise maxSkew, say ScheduleAnyway, or set nodeTaintsPolicy: Honor so that a node being emptied no longer counts.",
)
UNJUDGED = Code(
    "unknown-placement-rule",
    "Something decides about this pod's place that we do not know.",
    "See the sentence: a foreign scheduler, resource claims, volumes or namespaces missing from the snapshot.",
)
