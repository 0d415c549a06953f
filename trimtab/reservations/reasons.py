"""Reasons why a reservation is changed or not, or is not known."""

from trimtab.cluster.reason import Code

NO_SAMPLES = Code(
    "overhead-not-measured",
    "No kubelet of the pool reported the usage of itself and the container runtime.",
    "Check that the nodes answer, and that the account may `get` nodes/proxy; or read the usage from Prometheus.",
)
TOO_FLAT = Code(
    "overhead-slope-unknown",
    "The measured nodes have nearly the same number of pods, so the usage that each pod adds cannot be separated "
    "from the base.",
    "Measure longer, or several pools together. Until then Trimtab uses the measured amounts without a model.",
)
LOW_COVERAGE = Code(
    "overhead-coverage-low",
    "Too few nodes or moments were measured to recommend a reservation.",
    "Find out why nodes do not answer; a reservation for nodes that were not measured would be a guess.",
)
WITHIN_TOLERANCE = Code(
    "reserved-within-tolerance",
    "The measured need is close to the present reservation.",
    "Nothing to do: a change of the reservation replaces nodes or restarts kubelets, so small differences are "
    "not corrected.",
)
TOO_SMALL = Code(
    "reserved-too-small",
    "The kubelet and the runtime use more than is reserved for them, so they take it from pods.",
    "Raise the reservation for new nodes. Running nodes keep theirs until they are replaced.",
)
TOO_LARGE = Code(
    "reserved-too-large",
    "The reservation is larger than the kubelet and the runtime ever used.",
    "Lower the reservation when nodes are replaced, but never below the measured maximum of memory.",
)
LOWER_LATER = Code(
    "reserved-lower-later",
    "The reservation is larger than the usage so far, but the time that was measured is too short to lower it.",
    "Measure for seven days, because the week may have a peak that is not included yet.",
)
RESERVED_UNKNOWN = Code(
    "reserved-not-known",
    "The present reservation of the nodes is not known.",
    "Pass the nodes (--cluster): their capacity and allocatable amounts show the reservation.",
)
