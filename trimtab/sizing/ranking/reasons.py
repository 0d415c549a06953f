"""The reason codes of this package: why a machine type is not a candidate, and why a pool cannot simply be emptied."""

from trimtab.cluster.node import LEGACY_TAINT_KEY
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
DAEMON_REJECTS_TAINT = Code(
    "daemon-does-not-tolerate-legacy",
    "A DaemonSet that runs on the nodes of the legacy pool does not tolerate their taint, so Trimtab only uses "
    "the effect PreferNoSchedule.",
    f"Add a toleration for {LEGACY_TAINT_KEY} to the DaemonSet.",
)
ONLY_ON_LEGACY = Code(
    "runs-only-on-legacy",
    "A pod, or the template of a workload, fits on no node outside of the legacy pool, so Trimtab only uses the "
    "effect PreferNoSchedule for the taint.",
    "Change the node selector or affinity of the pod, or move its volume.",
)
TARGET_EMPTY = Code(
    "target-without-nodes",
    "The pool that should receive the pods has no node, so its labels, taints and machine type are not known.",
    "Let the node group of the pool keep one node: set its minimum size to 1.",
)
TARGET_FULL = Code(
    "target-at-maximum",
    "The node group that should receive the pods already has its maximum number of nodes.",
    "Raise the maximum size of the node group.",
)
TARGET_OUT_OF_STOCK = Code(
    "target-in-backoff",
    "The cloud could not provide nodes for the node group that should receive the pods.",
    "Wait, or choose another pool with `--to-pool`.",
)
TARGET_NOT_BETTER = Code(
    "target-not-ranked-above",
    "The machine type of the new pool is not ranked above that of the legacy pool, so the migration would save "
    "nothing.",
    "`trimtab machines rank` shows the ranking.",
)
