"""The reason codes of this package: why a request is proposed, changed by a bound, or left as it is."""

from trimtab.cluster.reason import Code

INSUFFICIENT = Code(
    "insufficient-history",
    "There is too little history: a recommendation needs an hour of usage with ten samples of cpu or one peak of "
    "memory. A lower request needs a day of usage, or runs on seven days, with 100 samples of cpu (20 of a CronJob) or "
    "four peaks of memory.",
    "Wait, or provide a longer history with `--prometheus` or `--usage`.",
)
OVER_NODE = Code(
    "usage-above-node",
    "The container would request more than any node that its pod may use has free next to DaemonSets and the "
    "rest of the pod.",
    "Add a larger machine type, or split the workload.",
)
VPA_DOWN = Code(
    "vpa-webhook-down",
    "A VPA manages the workload, but its webhook cannot change pods: a request of P5 would stay, so the request "
    "is P95.",
    "Repair the VPA's admission controller.",
)
HPA_COUNTS = Code(
    "hpa-uses-request",
    "An HPA scales by a share of the request, so a different request leads to a different number of replicas.",
    "Use the target `averageValue` instead, or pass `--allow-hpa` and check the effect.",
)
INIT_CONTAINER = Code(
    "init-container",
    "An init container ends before the others begin, and the pod requests the larger of the two, so little is saved.",
    "Nothing.",
)
FROM_VPA = Code(
    "from-vpa",
    "There is too little usage of the container, but a VPA recommends this amount: its P90 of decaying usage, "
    "with a margin.",
    "Provide a longer history with `--prometheus` or `--usage`: then the request is a P95 of the usage.",
)
LIMIT_TOO_SMALL = Code(
    "limit-below-need",
    "The container was killed because it ran out of memory, and its memory limit is below its need: no request "
    "prevents the next kill.",
    "Raise its memory limit to at least the amount in this row. With `--guaranteed` the request and the limit of "
    "a Guaranteed pod are proposed together.",
)
AS_IT_IS = Code("within-tolerance", "The current request is at most a tenth above the recommended one.", "Nothing.")
NO_SUCH_WORKLOAD = Code(
    "workload-not-in-snapshot",
    "The container has usage, but its current request is not known, because it is not in the snapshot.",
    "Provide a newer snapshot with `--cluster`, or read the cluster `live`.",
)
NO_USAGE = Code(
    "no-usage",
    "The source has no usage of the container.",
    "Check whether the source covers its namespace and the time at which the container ran.",
)

FEW_PODS = Code(
    "too-few-sandbox-pods",
    "Too few pods of the RuntimeClass were measured to compute its overhead.",
    "Measure while at least this many pods of the RuntimeClass run, or measure several times.",
)
