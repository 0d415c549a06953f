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
    "The container would request more than any node that its pod may use has free, after the DaemonSets and the "
    "other containers of the pod.",
    "Add a larger machine type, or split the workload.",
)
VPA_DOWN = Code(
    "vpa-webhook-down",
    "A VPA manages the workload, but its webhook cannot change pods: a request at the 5th percentile of the "
    "usage would never be raised, so Trimtab recommends the 95th percentile.",
    "Repair the VPA's admission controller.",
)
HPA_COUNTS = Code(
    "hpa-uses-request",
    "An HPA scales by a share of the request, so another request leads to another number of replicas.",
    "Let the HPA use the target `averageValue` instead, or pass `--allow-hpa` and check the effect.",
)
INIT_CONTAINER = Code(
    "init-container",
    "The init container ends before the other containers start, and the pod requests only the larger of the two "
    "amounts, so a lower request saves little.",
    "Nothing.",
)
FROM_VPA = Code(
    "from-vpa",
    "Too little usage of the container is known, but a VPA recommends this amount: the 90th percentile of its "
    "usage, in which old usage counts less, with a margin.",
    "Provide a longer history with `--prometheus` or `--usage`; then Trimtab recommends the 95th percentile of "
    "the usage.",
)
LIMIT_TOO_SMALL = Code(
    "limit-below-need",
    "The container was killed because it ran out of memory, and its memory limit is below its need: only a "
    "higher limit prevents the next kill.",
    "Raise the memory limit at least to the amount in this row. With `--guaranteed` Trimtab proposes the request "
    "and the limit of a Guaranteed pod together.",
)
AS_IT_IS = Code("within-tolerance", "The current request is at most a tenth above the recommended request.", "Nothing.")
NO_SUCH_WORKLOAD = Code(
    "workload-not-in-snapshot",
    "The usage of the container is known, but its current request is not, because the container is not in the "
    "snapshot.",
    "Pass a newer snapshot with `--cluster`, or read the live cluster with `--cluster live`.",
)
NO_USAGE = Code(
    "no-usage",
    "The source of usage has no usage of the container.",
    "Check whether the source covers the namespace of the container and the time at which the container ran.",
)
FEW_PODS = Code(
    "too-few-sandbox-pods",
    "Too few pods of the RuntimeClass were measured to compute its overhead.",
    "Measure while more pods of the RuntimeClass run, or measure several times.",
)
