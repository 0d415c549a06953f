"""Reasons why a pod does not fit on a node: one code per constraint, in the order in which kube-scheduler checks
them."""

from trimtab.cluster.reason import Code

NODE_CLOSED = Code(
    "node-takes-no-pods",
    "The node accepts no new pods: it is cordoned, not ready, being drained or deleted, or cannot be read.",
    "If the state of the node is intended, do nothing. If a user cordoned the node, uncordon it with `kubectl "
    "uncordon`.",
)
NOT_SELECTED = Code(
    "node-not-selected",
    "The node does not match the pod's node selector or required node affinity.",
    "Compare the node's labels with spec.nodeSelector and spec.affinity.nodeAffinity of the pod.",
)
NOT_TOLERATED = Code(
    "taint-not-tolerated",
    "The node has a taint that the pod does not tolerate.",
    "Add a toleration to the pod, or keep the node for the pods for which it was tainted.",
)
ONLY_IF_SELECTED = Code(
    "node-only-if-selected",
    "The node is no machine, or an edge node, and the pod does not select such nodes.",
    "If the pod may run there, select the node with a node selector or a required node affinity.",
)
NOT_THE_SYSTEM = Code(
    "other-operating-system",
    "The node has an operating system on which the pod does not run. The scheduler does not check this.",
    "Set a node selector for kubernetes.io/os on the pod, so that the scheduler never chooses such a node.",
)
NOT_THE_ARCHITECTURE = Code(
    "other-architecture",
    "The node has an architecture on which no ready pod of the workload runs, and the pod does not say that its image "
    "is for that architecture too.",
    "Set a node selector or a node affinity for kubernetes.io/arch on the pod: with the architecture of the image, or "
    "with all architectures if the image is for several.",
)
HANDLER_MISSING = Code(
    "runtime-handler-missing",
    "The node does not report the handler of the pod's RuntimeClass.",
    "Set `scheduling.nodeSelector` in the RuntimeClass, so that the scheduler chooses only nodes with the handler.",
)
NODE_FEATURE_MISSING = Code(
    "node-feature-missing",
    "The container runtime of the node lacks a feature that the pod uses.",
    "Update the container runtime of the node, or select nodes that have the feature.",
)
VOLUME_DRIVER_MISSING = Code(
    "csi-driver-missing",
    "The CSI driver of the pod's volume is registered on other nodes, but not on this one.",
    "Check the driver's node plugin, which is a DaemonSet, on the node.",
)
NO_ROOM = Code(
    "no-room",
    "The node does not have enough free capacity of a resource that the pod requests.",
    "Lower the request if the usage of the pod allows it (`trimtab recommend`), or keep more nodes.",
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
    "Another pod uses the pod's volume, which allows only one pod (ReadWriteOncePod) or one node (ReadWriteOnce).",
    "Stop the other pod first, or give each pod its own volume.",
)
TOO_CLOSE = Code(
    "anti-affinity",
    "A required pod anti-affinity, of the pod itself or of another pod, does not allow the node.",
    "Provide more nodes (or zones) than there are replicas, or make the anti-affinity a preference.",
)
NO_COMPANY = Code(
    "affinity-not-met",
    "The pod requires another pod in the same node or zone by its affinity, but there is no such pod.",
    "Start the pod that the affinity selects first.",
)
UNEVEN = Code(
    "topology-spread",
    "On this node, the pod would violate a topology spread constraint with the action DoNotSchedule.",
    "Raise maxSkew, use ScheduleAnyway, or set nodeTaintsPolicy: Honor, so that a node that is being drained no "
    "longer counts.",
)
NO_SUCCESSOR = Code(
    "no-successor",
    "The pod would not be created again, or Trimtab does not know on which nodes.",
    "The message names the cause: what the API server would refuse today (by a LimitRange, a quota, or a PriorityClass "
    "or RuntimeClass that does not exist any more), a policy that denies the pod, a VPA without a recommendation, or a "
    "template of the owner that selects nodes otherwise than this pod does.",
)
UNJUDGED = Code(
    "unknown-placement-rule",
    "Trimtab does not know all conditions under which this pod can be scheduled.",
    "The message names the cause: a scheduler, resource claims, an extended resource that a DeviceClass gives, or "
    "volumes or namespaces that are missing in the snapshot.",
)
