"""The reason codes of this package: why a machine type is not a candidate."""

from trimtab.cluster.reason import Code

TOO_SMALL = Code(
    "machine-too-small",
    "After its reservations, the DaemonSets and one more pod, a node of this type has no room left for the workload.",
    "Nothing.",
)
LARGEST_POD = Code(
    "machine-below-largest-pod",
    "A pod of the workload requests more than an empty node of this type has.",
    "Rank a separate pool for such pods, or split the pods into smaller ones.",
)
OTHER_ARCHITECTURE = Code(
    "machine-of-another-architecture",
    "The workload runs on nodes of another architecture, and Trimtab does not know whether its images exist for "
    "this one.",
    "If the images exist for this architecture, add it with `--arch`.",
)
SPECIAL_USE = Code(
    "machine-for-special-use",
    "The type has accelerators, shares its cores, or is made for HPC (high-performance computing).",
    "To rank such types as well, pass their use with `--include`.",
)
TOO_FEW_NODES = Code(
    "too-few-nodes-per-zone",
    "Nodes of this type are so large that a zone would have fewer nodes than you require.",
    "Lower `--min-nodes-per-zone`.",
)
SHARE_TOO_LARGE = Code(
    "node-holds-too-much",
    "One node of this type would hold a larger share of the workload than you allow.",
    "Raise `--max-node-share`.",
)
NOT_ALLOWED = Code("machine-not-asked-for", "The name of the type does not match `--types`.", "Change `--types`.")
NO_LIST_PRICE = Code(
    "machine-without-price", "No price of this type is known in the region.", "Pass a price file with `--prices`."
)
NO_WORKLOAD = Code(
    "no-workload",
    "The pods on the nodes request no cpu or no memory, so Trimtab cannot compute a ratio by which types could "
    "be compared.",
    "Set requests for the pods first: `trimtab recommend` prints them.",
)
