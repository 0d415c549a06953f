"""Every field of a VPA's spec and status, and what Trimtab does with it as the VPA's recommender.

The page docs/reference/vpa-fields.md is made from this table. A test compares it with the VPA's own definition, and
another has a case for each row.
"""

from dataclasses import dataclass
from enum import StrEnum


class FieldUse(StrEnum):
    """What Trimtab does with a field."""

    OBEYED = "obeyed"
    OTHERS = "for the VPA's other processes"
    IGNORED = "ignored"
    WRITTEN = "written"


@dataclass(frozen=True, slots=True)
class VpaField:
    """One field of a VerticalPodAutoscaler (autoscaling.k8s.io/v1, VPA 1.8)."""

    path: str
    use: FieldUse
    text: str
    """What Trimtab does with it, or why it does nothing; one or two sentences."""


_POLICY = "spec.resourcePolicy.containerPolicies[]"
_ENTRY = "status.recommendation.containerRecommendations[]"
_CONDITION = "status.conditions[]"
_BOOST_TEXT = (
    "The admission controller adds the boost to the target and the updater takes it back; the target has no boost."
)
_BOOST_FIELDS = ("type", "factor", "quantity", "durationSeconds")

VPA_FIELDS: tuple[VpaField, ...] = (
    VpaField(
        "spec.targetRef.kind",
        FieldUse.OBEYED,
        "With the name, the workload whose usage counts. A VPA without it gets ConfigUnsupported.",
    ),
    VpaField("spec.targetRef.name", FieldUse.OBEYED, "The name of the workload."),
    VpaField(
        "spec.targetRef.apiVersion",
        FieldUse.OBEYED,
        "Its group counts. For a kind of Kubernetes it may be left out.",
    ),
    VpaField(
        "spec.updatePolicy.updateMode",
        FieldUse.OTHERS,
        "The status is the same in every mode. With `Off` the VPA's processes leave the pods as they are.",
    ),
    VpaField("spec.updatePolicy.minReplicas", FieldUse.OTHERS, "The updater obeys it when it evicts."),
    VpaField(
        "spec.updatePolicy.evictionRequirements[].resources[]", FieldUse.OTHERS, "The updater obeys it when it evicts."
    ),
    VpaField(
        "spec.updatePolicy.evictionRequirements[].changeRequirement",
        FieldUse.OTHERS,
        "The updater obeys it when it evicts.",
    ),
    VpaField(
        "spec.updatePolicy.evictAfterOOMSeconds",
        FieldUse.OTHERS,
        "The updater obeys it: it decides whether a pod is evicted soon after an OOM kill.",
    ),
    VpaField(
        "spec.recommenders[].name",
        FieldUse.OBEYED,
        "Trimtab writes the status only if `trimtab` is the only name. With two names, which the API does not allow "
        "but a cluster without the VPA's webhook stores, it writes nothing and says so in its log and its metric.",
    ),
    *(VpaField(f"spec.startupBoost.cpu.{name}", FieldUse.OTHERS, _BOOST_TEXT) for name in _BOOST_FIELDS),
    VpaField(
        f"{_POLICY}.containerName",
        FieldUse.OBEYED,
        "The policy of a container; `*` is that of all containers without one of their own.",
    ),
    VpaField(f"{_POLICY}.mode", FieldUse.OBEYED, "A container with `Off` is left out of the recommendation."),
    VpaField(
        f"{_POLICY}.minAllowed",
        FieldUse.OBEYED,
        "Target, lower bound and upper bound are raised to it; the uncapped target is not. 0 bounds nothing.",
    ),
    VpaField(
        f"{_POLICY}.maxAllowed",
        FieldUse.OBEYED,
        "Target, lower bound and upper bound are lowered to it, after minAllowed; the uncapped target is not. 0 bounds "
        "nothing.",
    ),
    VpaField(
        f"{_POLICY}.controlledResources[]",
        FieldUse.OBEYED,
        "A resource that is not in the list is left out of the recommendation. Absent means cpu and memory.",
    ),
    VpaField(
        f"{_POLICY}.controlledValues",
        FieldUse.OTHERS,
        "The admission controller obeys it when it sets limits; the recommendation has requests only.",
    ),
    VpaField(
        f"{_POLICY}.oomBumpUpRatio",
        FieldUse.OBEYED,
        "After an OOM kill the target is at least this many times what the container had, up to three times its "
        "largest usage. Below 1 counts as 1; the default is 1.2.",
    ),
    VpaField(
        f"{_POLICY}.oomMinBumpUp",
        FieldUse.OBEYED,
        "After an OOM kill the target is at least this many bytes more than what the container had. The default is "
        "100Mi.",
    ),
    VpaField(
        f"{_POLICY}.memoryAggregationIntervalSeconds",
        FieldUse.IGNORED,
        "Trimtab records one memory peak of each pod in six hours. The annotation trimtab.dev/vpa-window-days chooses "
        "the window.",
    ),
    VpaField(
        f"{_POLICY}.memoryAggregationIntervalCount",
        FieldUse.IGNORED,
        "As memoryAggregationIntervalSeconds: the annotation trimtab.dev/vpa-window-days chooses the window.",
    ),
    *(VpaField(f"{_POLICY}.startupBoost.cpu.{name}", FieldUse.OTHERS, _BOOST_TEXT) for name in _BOOST_FIELDS),
    VpaField(
        f"{_ENTRY}.containerName",
        FieldUse.WRITTEN,
        "The main containers of the target's pods; if it has none, those with usage. No init container and no sidecar.",
    ),
    VpaField(
        f"{_ENTRY}.target",
        FieldUse.WRITTEN,
        "The amount of the VPA's rule, after OOM kills and within the policy, at least 10m and 16Mi.",
    ),
    VpaField(
        f"{_ENTRY}.lowerBound",
        FieldUse.WRITTEN,
        "The median usage, times the confidence in the recommendation, and at most the target. Below it the updater "
        "acts at once.",
    ),
    VpaField(
        f"{_ENTRY}.upperBound",
        FieldUse.WRITTEN,
        "The largest usage, up to doubled where the confidence is low, and at least the target. Above it the updater "
        "acts at once.",
    ),
    VpaField(f"{_ENTRY}.uncappedTarget", FieldUse.WRITTEN, "The target before minAllowed and maxAllowed."),
    VpaField(
        f"{_CONDITION}.type",
        FieldUse.WRITTEN,
        "RecommendationProvided always; LowConfidence, NoPodsMatched and ConfigUnsupported while they hold. "
        "FetchingHistory and ConfigDeprecated never; those of an earlier recommender are removed.",
    ),
    VpaField(
        f"{_CONDITION}.status",
        FieldUse.WRITTEN,
        "RecommendationProvided is True or False, the others are True or absent.",
    ),
    VpaField(f"{_CONDITION}.reason", FieldUse.WRITTEN, "The reason code without hyphens, such as `VpaFromUsage`."),
    VpaField(
        f"{_CONDITION}.message",
        FieldUse.WRITTEN,
        "A sentence. That of RecommendationProvided has the time until which the usage goes.",
    ),
    VpaField(
        f"{_CONDITION}.lastTransitionTime", FieldUse.WRITTEN, "It changes only when the condition's status changes."
    ),
    VpaField(f"{_CONDITION}.observedGeneration", FieldUse.WRITTEN, "As status.observedGeneration."),
    VpaField(
        "status.observedGeneration",
        FieldUse.WRITTEN,
        "The generation of the VPA from which the status was computed. A definition before VPA 1.8 drops the field.",
    ),
)
