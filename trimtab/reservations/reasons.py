"""The reasons about measured reservations."""

from trimtab.cluster.reason import Code

NO_SAMPLES = Code(
    "overhead-not-measured",
    "No kubelet of the pool reported what it and the container runtime use.",
    "Check that the nodes answer, and that the account may `get` nodes/proxy; or read from Prometheus.",
)
TOO_FLAT = Code(
    "overhead-slope-unknown",
    "The measured nodes have nearly the same number of pods: what each pod adds is not separable from the base.",
    "Measure longer, or several pools together. Until then what was measured counts, without a model.",
)
LOW_COVERAGE = Code(
    "overhead-coverage-low",
    "Too few nodes or moments were measured to recommend a reservation.",
    "Find out why nodes are silent; a reservation for nodes that were not measured would be a guess.",
)
WITHIN_TOLERANCE = Code(
    "reserved-within-tolerance",
    "The measured need is close to what is reserved now.",
    "Nothing: a change of the reservation replaces nodes or restarts kubelets, so small differences stay.",
)
TOO_SMALL = Code(
    "reserved-too-small",
    "The kubelet and the runtime use more than is reserved for them, so they take it from pods.",
    "Raise the reservation for new nodes. Running nodes keep theirs until they are replaced.",
)
TOO_LARGE = Code(
    "reserved-too-large",
    "More is reserved than the kubelet and the runtime ever used.",
    "Lower the reservation with the next change of nodes; never below the measured maximum of memory.",
)
LOWER_LATER = Code(
    "reserved-lower-later",
    "More is reserved than was used so far, and too little time was measured to lower it.",
    "Measure for seven days: a peak of the week may be missing.",
)
RESERVED_UNKNOWN = Code(
    "reserved-not-known",
    "What is reserved on the nodes now is not known.",
    "Give the nodes (--cluster), so that their capacity and allocatable show it.",
)
