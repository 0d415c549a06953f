"""Why is a request proposed, changed on the way, or left as it is?"""

from trimtab.cluster.reason import Code

INSUFFICIENT = Code(
    "insufficient-history",
    "There is too little history to speak from: it takes an hour in which it was seen, with ten samples of cpu or "
    "a peak of memory. Before a request is lowered it takes a day, or runs on seven days, with 100 samples of cpu "
    "(20 of a CronJob) or four peaks of memory.",
    "Wait, or give a longer history with `--prometheus` or `--usage`.",
)
OVER_NODE = Code(
    "usage-above-node",
    "What the container would ask for is more than any node that its pod may use holds beside DaemonSets and the "
    "rest of the pod.",
    "Add a larger machine type, or split the workload.",
)
VPA_DOWN = Code(
    "vpa-webhook-down",
    "A VPA manages the workload and its webhook cannot act: a P5 would stay, so the request is P95.",
    "Mend the VPA's admission controller.",
)
HPA_COUNTS = Code(
    "hpa-uses-request",
    "An HPA aims at a share of the request: another request is another number of replicas.",
    "Aim at `averageValue` instead, or say `--allow-hpa` and look at what it would do.",
)
INIT_CONTAINER = Code(
    "init-container",
    "It runs before the others and ends; the pod asks for the larger of the two, so little is won.",
    "Nothing.",
)
FROM_VPA = Code(
    "from-vpa",
    "Too little was seen of the container, and a VPA recommends so much: its P90 of days that fade, with a margin.",
    "Give a longer history with `--prometheus` or `--usage`: then it is a P95 of what was seen.",
)
LIMIT_TOO_SMALL = Code(
    "limit-below-need",
    "The container was killed for want of memory, and its memory limit is below what it needs: no request prevents the "
    "next kill.",
    "Raise its memory limit at least to what the row says it needs. With `--guaranteed` the request and the limit of "
    "a Guaranteed pod are proposed together.",
)
AS_IT_IS = Code("within-tolerance", "What it asks for is within a tenth of what it would be given.", "Nothing.")
NO_SUCH_WORKLOAD = Code(
    "workload-not-in-snapshot",
    "Usage is known, and what the container asks for is not: it is not in the snapshot.",
    "Give a newer snapshot with `--cluster`, or read the cluster `live`.",
)
NO_USAGE = Code(
    "no-usage",
    "Nothing was seen of the container in what was read.",
    "See whether the source covers its namespace and the time it ran.",
)
