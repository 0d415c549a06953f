"""The reason codes of a VPA's status: why Trimtab recommends nothing for it, or keeps what is there."""

from trimtab.cluster.reason import Code

ANOTHER_RECOMMENDER = Code(
    "vpa-another-recommender",
    "The VPA names no recommender or another one, so Trimtab does not write its status.",
    "Set `spec.recommenders` of the VPA to `[{name: trimtab}]` if Trimtab should recommend.",
)
SEVERAL_RECOMMENDERS = Code(
    "vpa-several-recommenders",
    "The VPA names several recommenders, one of which is Trimtab. Each would overwrite the status of the others, so "
    "Trimtab does not write it.",
    "Name one recommender in `spec.recommenders`.",
)
NO_TARGET = Code(
    "vpa-without-target",
    "The VPA names no target, so it is not known which containers it is for.",
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
    "There is less than a day of usage of a container. Trimtab recommends nothing for it, and a recommendation that "
    "the VPA already has stays.",
    "Wait, or let the recommender read a longer history from Prometheus.",
)
NOT_LOWERED_YET = Code(
    "vpa-not-lowered-yet",
    "The usage of a container is known for less than eight days, so Trimtab does not lower an amount that the VPA "
    "already has: the recommender before may have seen a peak that Trimtab has not.",
    "Wait, or let the recommender read a longer history from Prometheus.",
)
NO_PODS = Code(
    "vpa-without-pods",
    "No pod belongs to the VPA's target at present.",
    "Nothing, if the target is scaled to zero or runs at times; otherwise check `spec.targetRef`.",
)
FROM_RECORDED_USAGE = Code(
    "vpa-from-usage", "Trimtab computed the VPA's recommendation from the usage of its target.", "Nothing."
)
NOTHING_CONTROLLED = Code(
    "vpa-controls-nothing",
    "The VPA's policies switch off every container of its target, or every resource of them.",
    "Remove `mode: Off`, or name `cpu` or `memory` in `controlledResources`.",
)
