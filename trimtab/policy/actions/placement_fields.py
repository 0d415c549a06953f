"""The settings of the placement action, and the step that fills in values which come from a label of the pod or of its
namespace. A pod's label may only choose among the values that the policy lists."""

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from trimtab.cluster.api.meta import UNSET, SelectorRequirement
from trimtab.cluster.api.pod import Toleration
from trimtab.cluster.reason import Reason
from trimtab.policy import reasons
from trimtab.policy.field_types import LabelKey, LabelValue, Required, Whole, policy_type
from trimtab.policy.pod_context import PodContext


def pod_label_unlisted(label: str, among: tuple[str, ...], pod_context: PodContext) -> Reason | None:
    """Returns why the pod's label chooses no value, because it is missing or not listed; None if its value is
    listed."""
    value = pod_context.labels.get(label)
    if value is None:
        return reasons.POD_LABEL_MISSING(f"the pod has no label {label}")
    # Only listed values: otherwise every author could choose any node pool.
    if value in among:
        return None
    return reasons.POD_LABEL_NOT_LISTED(
        f"the pod's label {label} is {value!r}, but the policy allows only {', '.join(among)}"
    )


def _check_listed(word: str, label: str | None, among: tuple[str, ...]) -> None:
    if (label is None) is bool(among):
        raise ValueError(f"`among` (the values that a pod may choose) exactly if {word} is set")


@policy_type
class NodeLabel:
    """A condition on a label of the node. Give exactly one condition."""

    label: LabelKey
    """The key of the node's label."""
    in_: Annotated[tuple[LabelValue, ...], Field(alias="in")] = ()
    """The label has one of these values."""
    not_in: tuple[LabelValue, ...] = ()
    """The label has none of these values, or does not exist."""
    exists: Literal[True] | None = None
    """The label exists, with any value."""
    absent: Literal[True] | None = None
    """The label does not exist."""
    above: Whole | None = None
    """The label's value is a whole number greater than this number."""
    below: Whole | None = None
    """The label's value is a whole number less than this number."""
    in_namespace_label: LabelKey | None = None
    """The node's label has the same value as this label of the pod's namespace. If the namespace does not have the
    label, the pod gets nothing of the policy's placement."""
    in_pod_label: LabelKey | None = None
    """The node's label has the same value as this label of the pod, which must be listed in `among`. If the pod does
    not have the label, it gets nothing of the policy's placement. Only with `match.namespaces`, so that a pod's author
    does not decide alone."""
    among: tuple[LabelValue, ...] = ()
    """The values that a pod may choose with `inPodLabel`."""
    weight: Annotated[int, Field(ge=1, le=100)] | None = None
    """Under `prefer`: the weight, 1 to 100 (default 50)."""

    @property
    def selector_requirement(self) -> SelectorRequirement:
        """The condition as it is written in a node selector term."""
        operator, values = self._condition
        return SelectorRequirement(key=self.label, operator=operator, values=values)

    @property
    def _condition(self) -> tuple[str, tuple[str, ...]]:
        # One of the conditions is set (`__post_init__`), so the order of these tests does not matter.
        if self.in_:
            return "In", self.in_
        if self.not_in:
            return "NotIn", self.not_in
        if self.above is not None:
            return "Gt", (str(self.above),)
        if self.below is not None:
            return "Lt", (str(self.below),)
        return ("DoesNotExist", ()) if self.absent else ("Exists", ())

    def __post_init__(self) -> None:
        conditions = [self.in_, self.not_in, self.exists, self.absent, self.in_namespace_label, self.in_pod_label]
        has_bounds = [self.above is not None, self.below is not None]
        if sum(map(bool, conditions)) + sum(has_bounds) != 1:
            # Kubernetes ANDs the expressions of a term, so two conditions are two entries of the list.
            raise ValueError("exactly one of in, notIn, exists, absent, above, below, inNamespaceLabel, inPodLabel")
        _check_listed("inPodLabel", self.in_pod_label, self.among)


@policy_type
class AddedToleration:
    """A taint that the pod shall tolerate."""

    key: LabelKey | None = None
    """The key of the taint. Absent, with `operator: Exists`: every taint."""
    operator: Literal["Equal", "Exists"] | None = None
    """How the value is compared. Default: Equal if there is a value, Exists if there is none."""
    value: LabelValue | None = None
    """The value of the taint; absent with `operator: Exists`."""
    value_from_namespace: LabelKey | None = None
    """The label of the pod's namespace whose value is used in place of `value`."""
    value_from_pod: LabelKey | None = None
    """The label of the pod whose value is used in place of `value`, if it is listed in `among`. Only with
    `match.namespaces`."""
    among: tuple[LabelValue, ...] = ()
    """The values that a pod may choose with `valueFromPod`."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """The effect of the taint. Absent: every effect."""
    seconds: Whole | None = None
    """The number of seconds for which the pod stays after a NoExecute taint appears. Absent: without end."""

    @property
    def api_toleration(self) -> Toleration:
        """The toleration as it is written in a pod's spec."""
        # Kubernetes defaults to Equal, also without a value. A policy without a value most likely means every value.
        operator = self.operator or ("Equal" if self.value is not None else "Exists")
        return Toleration(
            key=self.key or "",
            operator=operator,
            value=self.value or "",
            effect=self.effect or "",
            toleration_seconds=UNSET if self.seconds is None else self.seconds,
        )

    def __post_init__(self) -> None:
        values = [v for v in (self.value, self.value_from_namespace, self.value_from_pod) if v is not None]
        is_found_out = self.value_from_namespace is not None or self.value_from_pod is not None
        if is_found_out and (len(values) > 1 or self.operator == "Exists"):
            raise ValueError(
                "at most one of value, valueFromNamespace and valueFromPod, and none of them with operator Exists"
            )
        if self.key is None and is_found_out:
            raise ValueError("a key with valueFromNamespace and valueFromPod")
        _check_listed("valueFromPod", self.value_from_pod, self.among)
        if self.operator == "Exists" and self.value is not None:
            raise ValueError("no valueFromNamespace or valueFromPod with operator Exists")
        # An empty key is valid with operator Exists only (core/v1 Toleration).
        if self.key is None and (self.operator == "Equal" or self.value is not None):
            raise ValueError("a key (only the operator Exists needs none)")
        # The API server refuses tolerationSeconds with another effect (pkg/apis/core/validation, ValidateTolerations).
        if self.seconds is not None and self.effect != "NoExecute":
            raise ValueError("the effect NoExecute, because seconds are set")


@policy_type
class PlacementAction:
    """The nodes that a pod may run on, and those that it prefers."""

    require: tuple[NodeLabel, ...] = ()
    """Node labels that the pod needs: they are added to each of its required terms."""
    require_any: tuple[tuple[NodeLabel, ...], ...] = ()
    """Groups of node labels. The pod needs a node with all labels of at least one group, in addition to everything else
    that it needs.
    """
    prefer: tuple[NodeLabel, ...] = ()
    """Node labels that the pod prefers, with weights."""
    node_selector: dict[LabelKey, LabelValue] | None = None
    """Node labels that must have exactly these values: the short form of `require`."""
    tolerate: tuple[AddedToleration, ...] = ()
    """Taints that the pod tolerates, such as that of a dedicated pool."""
    required: Required = False


def resolve_labels(settings: PlacementAction, pod_context: PodContext) -> PlacementAction | Reason:
    """Returns the settings, with values filled in from labels of the namespace or of the pod. Returns a Reason if such
    a label is missing or its value is not listed."""
    groups = (settings.require, *settings.require_any, settings.prefer)
    labels_to_resolve = [label for group in groups for label in group if label.in_namespace_label or label.in_pod_label]
    taints_to_resolve = [taint for taint in settings.tolerate if taint.value_from_namespace or taint.value_from_pod]
    # Nearly every policy: nothing is copied.
    if not labels_to_resolve and not taints_to_resolve:
        return settings
    # All sources are checked before anything is resolved: placement is applied as a whole.
    sources = [(label.in_namespace_label, label.in_pod_label, label.among) for label in labels_to_resolve]
    sources += [(taint.value_from_namespace, taint.value_from_pod, taint.among) for taint in taints_to_resolve]
    missing = next(filter(None, (_missing_value(*source, pod_context) for source in sources)), None)
    if missing is not None:
        return missing
    of_namespace, of_pod = pod_context.namespace_labels or {}, pod_context.labels

    def resolve_label(label: NodeLabel) -> NodeLabel:
        if label.in_namespace_label is not None:
            # The resolved label is a plain `in` condition, so that no later step knows where the value came from.
            return replace(label, in_=(of_namespace[label.in_namespace_label],), in_namespace_label=None)
        if label.in_pod_label is not None:
            return replace(label, in_=(of_pod[label.in_pod_label],), in_pod_label=None, among=())
        return label

    def resolve_taint(taint: AddedToleration) -> AddedToleration:
        if taint.value_from_namespace is not None:
            return replace(taint, value=of_namespace[taint.value_from_namespace], value_from_namespace=None)
        if taint.value_from_pod is not None:
            return replace(taint, value=of_pod[taint.value_from_pod], value_from_pod=None, among=())
        return taint

    return replace(
        settings,
        require=tuple(map(resolve_label, settings.require)),
        require_any=tuple(tuple(map(resolve_label, group)) for group in settings.require_any),
        prefer=tuple(map(resolve_label, settings.prefer)),
        tolerate=tuple(map(resolve_taint, settings.tolerate)),
    )


def _missing_value(
    of_namespace: str | None, of_pod: str | None, among: tuple[str, ...], pod_context: PodContext
) -> Reason | None:
    """Returns why a value cannot be filled in from a label of the namespace or of the pod, or None if it can."""
    # An empty value counts as no value: `In ("")` would match nodes with an empty label.
    if of_namespace is not None and not (pod_context.namespace_labels or {}).get(of_namespace):
        return reasons.NAMESPACE_LABEL_MISSING(f"namespace {pod_context.namespace} has no label {of_namespace}")
    return None if of_pod is None else pod_label_unlisted(of_pod, among, pod_context)
