"""The reason codes of this package: why a request is proposed, changed by a bound, or left as it is."""

from trimtab.cluster.reason import Code

INSUFFICIENT = Code(
    "insufficient-history",
    "There is too little history for a recommendation. It needs an hour of usage with ten samples of cpu or one peak "
    "of memory. A lower request needs a day of usage, or runs on seven days, with 100 samples of cpu (20 of a "
    "CronJob) or four peaks of memory.",
    "Wait, or provide a longer history with `--prometheus` or `--usage`.",
)
OVER_NODE = Code(
    "usage-above-node",
    "No node that the pod may use has as much free as the container would request. The DaemonSets and the other "
    "containers of the pod count too.",
    "Add a larger machine type, or split the workload.",
)
VPA_DOWN = Code(
    "vpa-webhook-down",
    "The VPA's webhook cannot change pods, so the 95th percentile is recommended. A request at the 5th percentile of "
    "the usage would never be raised.",
    "Repair the VPA's admission controller.",
)
HPA_COUNTS = Code(
    "hpa-uses-request",
    "An HPA divides usage by the request, so another request changes the number of replicas.",
    "Let the HPA use `averageValue`, or pass `--allow-hpa` and check the effect.",
)
INIT_CONTAINER = Code(
    "init-container",
    "A lower request of an init container saves little. It ends before the other containers start, and the pod "
    "requests only the larger of the two amounts.",
    "Nothing.",
)
FROM_VPA = Code(
    "from-vpa",
    "The amount is a VPA's recommendation, because too little usage is known. It is the 90th percentile, in which "
    "old usage counts less, with a margin.",
    "Provide a longer history with `--prometheus` or `--usage`. Trimtab then recommends the 95th percentile of the "
    "usage.",
)
LIMIT_TOO_SMALL = Code(
    "limit-below-need",
    "The container ran out of memory, and only a higher limit prevents the next kill. Its memory limit is below its "
    "need.",
    "Raise the memory limit at least to the amount in this row. With `--guaranteed` Trimtab proposes the request and "
    "the limit of a Guaranteed pod together.",
)
AS_IT_IS = Code("within-tolerance", "The request is at most a tenth above the recommended one.", "Nothing.")
NO_SUCH_WORKLOAD = Code(
    "workload-not-in-snapshot",
    "The container is not in the snapshot, so its current request is not known. Its usage is.",
    "Pass a newer snapshot with `--cluster`, or read `--cluster live`.",
)
NO_USAGE = Code(
    "no-usage",
    "The source of usage knows nothing of the container.",
    "Check that it covers the container's namespace and time.",
)
FEW_PODS = Code(
    "too-few-sandbox-pods",
    "Too few pods of the RuntimeClass were measured for its overhead.",
    "Measure several times, or while more of them run.",
)
