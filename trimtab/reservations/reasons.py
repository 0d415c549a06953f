"""Reasons why a reservation is changed or not, or is not known."""

from trimtab.cluster.reason import Code

NO_SAMPLES = Code(
    "overhead-not-measured",
    "No kubelet of the pool reported its usage and the container runtime's.",
    "Check that the nodes answer and that the account may `get` nodes/proxy. Or read the usage from Prometheus.",
)
TOO_FLAT = Code(
    "overhead-slope-unknown",
    "The nodes have nearly the same number of pods, so the usage of one more is unknown.",
    "Measure for a longer time, or measure several pools together. Until then Trimtab uses the measured amounts "
    "without a model.",
)
LOW_COVERAGE = Code(
    "overhead-coverage-low",
    "Too few nodes or points in time were measured for a reservation.",
    "Find out why nodes do not answer. A reservation for nodes that were not measured would be a guess.",
)
WITHIN_TOLERANCE = Code(
    "reserved-within-tolerance",
    "The measured need is close to the reservation.",
    "Nothing to do. A change of the reservation replaces nodes or restarts kubelets, so Trimtab does not recommend "
    "small changes.",
)
TOO_SMALL = Code(
    "reserved-too-small",
    "Kubelet and container runtime use more than is reserved for them. So fewer resources remain for pods.",
    "Raise the reservation for new nodes. Running nodes keep their reservation until they are replaced.",
)
TOO_LARGE = Code(
    "reserved-too-large",
    "Kubelet and container runtime never use all that is reserved for them.",
    "Lower the reservation when nodes are replaced, not below the measured maximum of memory.",
)
LOWER_LATER = Code(
    "reserved-lower-later",
    "The reservation may be too large, but was measured for too short a time to lower it.",
    "Measure for seven days. The week may have a peak that is not included yet.",
)
RESERVED_UNKNOWN = Code(
    "reserved-not-known",
    "The present reservation of the nodes is not known.",
    "Pass the nodes with --cluster. Their capacity and allocatable amounts show the reservation.",
)
