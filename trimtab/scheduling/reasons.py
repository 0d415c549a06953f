"""Reasons why a pod does not fit on a node: one code per constraint, in the order in which kube-scheduler checks
them."""

from trimtab.cluster.reason import Code

NODE_CLOSED = Code(
    "node-takes-no-pods",
    "The node is cordoned, not ready, leaving, or cannot be read. It accepts no new pods.",
    "Uncordon it with `kubectl uncordon` if a user cordoned it. If its state is intended, do nothing.",
)
NOT_SELECTED = Code(
    "node-not-selected",
    "The pod's node selector or required node affinity excludes the node.",
    "Compare spec.nodeSelector and spec.affinity.nodeAffinity of the pod with the node's labels.",
)
NOT_TOLERATED = Code(
    "taint-not-tolerated",
    "The node has a taint that the pod does not tolerate.",
    "Add a toleration to the pod, or keep the node for the pods that have one.",
)
ONLY_IF_SELECTED = Code(
    "node-only-if-selected",
    "Pods get this node only if they select it. It is a virtual node (serverless, or another cluster) or an edge node.",
    "Select it with a node selector or a required node affinity.",
)
NOT_THE_SYSTEM = Code(
    "other-operating-system",
    "The pod does not run on the node's operating system, which the scheduler does not check.",
    "Set a node selector for kubernetes.io/os on the pod.",
)
NOT_THE_ARCHITECTURE = Code(
    "other-architecture",
    "No ready pod of the workload runs on the node's architecture. The pod does not say that its image is for that "
    "architecture too.",
    "Set a node selector or affinity for kubernetes.io/arch on the pod. Name the architecture of the image, or all "
    "if the image is for several.",
)
HANDLER_MISSING = Code(
    "runtime-handler-missing",
    "The node does not report the handler of the pod's RuntimeClass.",
    "Set `scheduling.nodeSelector` in the RuntimeClass. The scheduler then chooses only nodes with the handler.",
)
NODE_FEATURE_MISSING = Code(
    "node-feature-missing",
    "The container runtime of the node lacks a feature that the pod uses.",
    "Update the container runtime, or select nodes that have the feature.",
)
VOLUME_DRIVER_MISSING = Code(
    "csi-driver-missing",
    "The CSI driver of the pod's volume is not registered on this node. It is on others.",
    "Check the DaemonSet of the driver on the node.",
)
NO_ROOM = Code(
    "no-room",
    "The node lacks free capacity of a resource that the pod requests.",
    "Lower the request if the usage allows it (`trimtab recommend`), or keep more nodes.",
)
PORT_TAKEN = Code(
    "host-port-taken",
    "Another pod on the node uses the host port.",
    "If possible, use a Service instead of a host port.",
)
VOLUME_ELSEWHERE = Code(
    "volume-elsewhere",
    "The pod's volume cannot be attached on the node.",
    "Keep nodes in the zone of the volume, or move the volume.",
)
VOLUME_IN_USE = Code(
    "volume-in-use",
    "Another pod uses the volume, which allows only one pod or one node. It is ReadWriteOncePod or ReadWriteOnce.",
    "Stop the other pod first, or give each pod its own volume.",
)
TOO_CLOSE = Code(
    "anti-affinity",
    "A required anti-affinity, of this pod or of another, does not allow the node.",
    "Provide more nodes (or zones) than replicas, or make the anti-affinity a preference.",
)
NO_COMPANY = Code(
    "affinity-not-met",
    "The pod requires another pod nearby by its affinity, but there is none.",
    "Start the pod that the affinity selects first.",
)
UNEVEN = Code(
    "topology-spread",
    "A topology spread constraint (DoNotSchedule) does not allow the pod on this node.",
    "Raise maxSkew, use ScheduleAnyway, or set nodeTaintsPolicy: Honor. With the latter, a node that is being "
    "drained no longer counts.",
)
NO_SUCCESSOR = Code(
    "no-successor",
    "The pod would not be created again, or not on known nodes.",
    "Remove the cause that the message names. It may be what the API server would refuse today (by a LimitRange, a "
    "quota, or a PriorityClass or RuntimeClass that does not exist any more), a policy that denies the pod, a VPA "
    "without a recommendation, or a template of the owner that selects nodes otherwise than this pod does.",
)
UNJUDGED = Code(
    "unknown-placement-rule",
    "Trimtab does not know all conditions under which the pod can be scheduled.",
    "See the cause in the message. It is a scheduler, resource claims, an extended resource that a DeviceClass "
    "gives, or volumes or namespaces that are missing in the snapshot.",
)
