"""The reason codes of this package: why a machine type is not a candidate."""

from trimtab.cluster.reason import Code

TOO_SMALL = Code(
    "machine-too-small",
    "A node of this type has no room for the workload. Its reservations, the DaemonSets and one more pod count too.",
    "Nothing.",
)
LARGEST_POD = Code(
    "machine-below-largest-pod",
    "A pod of the workload requests more than an empty node of this type has.",
    "Rank a pool of its own for such pods, or split them.",
)
OTHER_ARCHITECTURE = Code(
    "machine-of-another-architecture",
    "The type has another architecture than the workload's nodes. Trimtab does not know whether its images exist for "
    "it.",
    "Add the architecture with `--arch` if the images exist for it.",
)
SPECIAL_USE = Code(
    "machine-for-special-use",
    "The type has accelerators, shares its cores, or is made for high-performance computing (HPC).",
    "Rank such types too with `--include`.",
)
TOO_FEW_NODES = Code(
    "too-few-nodes-per-zone",
    "Nodes of this type are so large that a zone would have too few.",
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
    "The pods request no cpu or no memory, so types cannot be compared.",
    "Set requests for the pods first: `trimtab recommend` prints them.",
)
