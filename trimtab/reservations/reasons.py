"""Reasons why a reservation is changed or not, or is not known."""

from trimtab.cluster.reason import Code

NO_SAMPLES = Code(
    "overhead-not-measured",
    "No kubelet of the pool reported the usage of the kubelet itself and of the container runtime.",
    "Check that the nodes answer, and that the account has the permission `get` on nodes/proxy; or read the "
    "usage from Prometheus.",
)
TOO_FLAT = Code(
    "overhead-slope-unknown",
    "The measured nodes have nearly the same number of pods, so Trimtab cannot compute how much usage each pod adds.",
    "Measure for a longer time, or measure several pools together. Until then Trimtab uses the measured amounts "
    "without a model.",
)
LOW_COVERAGE = Code(
    "overhead-coverage-low",
    "Too few nodes or points in time were measured to recommend a reservation.",
    "Find out why nodes do not answer, because a reservation for nodes that were not measured would be a guess.",
)
WITHIN_TOLERANCE = Code(
    "reserved-within-tolerance",
    "The measured need is close to the present reservation.",
    "Nothing to do: a change of the reservation replaces nodes or restarts kubelets, so Trimtab does not "
    "recommend small changes.",
)
TOO_SMALL = Code(
    "reserved-too-small",
    "The kubelet and the container runtime use more resources than are reserved for them, so fewer resources "
    "remain for pods.",
    "Raise the reservation for new nodes. Running nodes keep their reservation until they are replaced.",
)
TOO_LARGE = Code(
    "reserved-too-large",
    "The reservation is larger than the largest usage of the kubelet and the container runtime.",
    "Lower the reservation when nodes are replaced, but never below the measured maximum of memory.",
)
LOWER_LATER = Code(
    "reserved-lower-later",
    "The reservation is larger than the usage so far, but the usage was measured for too short a time to lower "
    "the reservation.",
    "Measure for seven days, because the week may have a peak that is not included yet.",
)
RESERVED_UNKNOWN = Code(
    "reserved-not-known",
    "The present reservation of the nodes is not known.",
    "Pass the nodes with --cluster, because their capacity and allocatable amounts show the reservation.",
)
