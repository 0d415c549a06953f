"""The reason codes of a VPA's status: why Trimtab recommends nothing for it, or keeps what is there."""

from trimtab.cluster.reason import Code

ANOTHER_RECOMMENDER = Code(
    "vpa-another-recommender",
    "The VPA does not name Trimtab as its recommender, so its status stays.",
    "Set `spec.recommenders` to `[{name: trimtab}]` if Trimtab should recommend.",
)
SEVERAL_RECOMMENDERS = Code(
    "vpa-several-recommenders",
    "The VPA names several recommenders, so Trimtab does not write its status. Each would overwrite the status of "
    "the others.",
    "Name one recommender in `spec.recommenders`.",
)
NO_TARGET = Code(
    "vpa-without-target",
    "The VPA names no target, so its containers are not known.",
    "Set `spec.targetRef` to the workload's kind, name and apiVersion.",
)
TARGET_HAS_OWNER = Code(
    "vpa-target-has-owner",
    "Another controller owns the VPA's target. Usage is stored for the topmost owner, and the VPA of another object "
    "would get the usage of all that the owner creates.",
    "Name the topmost owner in `spec.targetRef`.",
)
BAD_SETTINGS = Code(
    "vpa-unreadable-settings",
    "An annotation or an amount of the VPA is not valid. Trimtab changes nothing in its recommendation until it is.",
    "Correct the field that the message names.",
)
TOO_LITTLE_HISTORY = Code(
    "vpa-too-little-history",
    "There is less than a day of the container's usage, so nothing is recommended. A recommendation that the VPA "
    "already has stays.",
    "Wait, or let the recommender read a longer history from Prometheus.",
)
NOT_LOWERED_YET = Code(
    "vpa-not-lowered-yet",
    "Amounts of the VPA are not lowered before there are eight days of usage. The recommender before may have seen a "
    "peak that Trimtab has not.",
    "Wait, or let the recommender read a longer history from Prometheus.",
)
NO_PODS = Code(
    "vpa-without-pods",
    "No pod belongs to the VPA's target at present.",
    "Check `spec.targetRef`, unless the target is scaled to zero or runs at times.",
)
FROM_RECORDED_USAGE = Code(
    "vpa-from-usage", "Trimtab computed the VPA's recommendation from the usage of its target.", "Nothing."
)
NOTHING_CONTROLLED = Code(
    "vpa-controls-nothing",
    "The VPA switches off every container of its target, or every resource.",
    "Remove `mode: Off`, or name `cpu` or `memory` in `controlledResources`.",
)
