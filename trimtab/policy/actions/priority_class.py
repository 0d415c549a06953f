"""Sets the PriorityClass of pods.

`priorityClassName` is never changed alone. The API server has filled in `priority` and `preemptionPolicy` from the old
class before it calls webhooks, and it refuses a pod whose values do not agree with the new class. So the patch removes
both, and the API server fills them in again.
"""

from collections.abc import Iterator

from trimtab.cluster.api.meta import UNSET, change, value_or
from trimtab.cluster.reason import Reason
from trimtab.policy import reasons
from trimtab.policy.actions.action import (
    WRITTEN,
    Action,
    FieldValues,
    PolicyTerms,
    no_comparison,
    no_differences,
    no_odd_values,
    override_suffix,
)
from trimtab.policy.cel import NotExpressible, cel_string
from trimtab.policy.cel_patches import PatchPart
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.field_types import Flag, ObjectName, Required, policy_type
from trimtab.policy.pod_changes import PodChanges
from trimtab.policy.pod_context import CRITICAL, ContainerRef, PodBeforeAndAfter
from trimtab.policy.write_resources import find_newly_unmet_quota

FIELD = "priorityClassName"


@policy_type
class PriorityClassChoice:
    """The PriorityClass that pods get."""

    name: ObjectName
    """A PriorityClass of the cluster. If it does not exist, the pod stays unchanged, with a warning."""
    override: Flag = False
    """Replace a class that the pod's author has chosen. (The cluster's default class is replaced in any case.)"""
    required: Required = False


def propose_changes(settings: PriorityClassChoice, changes: PodChanges, places: tuple[ContainerRef, ...]) -> None:
    """Proposes the class and removes the fields that the API server has filled in from the old one, or records why
    nothing is changed."""
    classes = changes.pod_context.facts.priority_classes
    before = value_or(changes.spec.priority_class_name, "")
    if before == settings.name:
        changes.decide_first(FIELD, settings.name)
        return
    # The API server writes the name of the default class into pods that name none (plugin/pkg/admission/priority).
    own = before and not (before in classes and classes[before].global_default)
    if own and not settings.override:
        changes.leave_unchanged(FIELD, reasons.ALREADY_SET(f"the pod itself names PriorityClass {before}"))
        return
    if "PriorityClass" not in changes.pod_context.facts.listed_kinds:
        changes.leave_unchanged(
            FIELD, reasons.FACTS_MISSING("the list of PriorityClasses has not been read yet"), loud=True
        )
        return
    if settings.name not in classes and settings.name not in CRITICAL:
        reason = reasons.PRIORITY_CLASS_NOT_FOUND(f"PriorityClass {settings.name} does not exist")
        changes.leave_unchanged(FIELD, reason, loud=True)
        return
    quota = find_newly_unmet_quota(changes, change(changes.spec, priority_class_name=settings.name))
    if quota is not None:
        changes.leave_unchanged(
            FIELD,
            reasons.QUOTA_COUNTS_LIMIT(f"with PriorityClass {settings.name}, {quota} would refuse the pod"),
            loud=True,
        )
        return
    _set_class(settings, changes, before or None, own=bool(own))


def find_unmet_field(settings: PriorityClassChoice, result: PodBeforeAndAfter) -> str | None:
    """Returns the field `priorityClassName` if the pod has another class, otherwise None."""
    return None if value_or(result.spec.priority_class_name, "") == settings.name else FIELD


def _set_class(settings: PriorityClassChoice, changes: PodChanges, before: str | None, *, own: bool) -> None:
    reason = reasons.POLICY_SAYS(f"the policy says {settings.name}")
    if not changes.claim_field(FIELD, before, settings.name, reason, replaces=own):
        return
    cleanup = reasons.CLEANED_UP("the field belonged to the previous PriorityClass of the pod")
    if changes.spec.priority is not UNSET:
        changes.record_change("priority", changes.spec.priority, None, cleanup)
    if changes.spec.preemption_policy is not UNSET:
        changes.record_change("preemptionPolicy", changes.spec.preemption_policy, None, cleanup)
    changes.spec = change(changes.spec, priority_class_name=settings.name, priority=UNSET, preemption_policy=UNSET)


def _describe(settings: PriorityClassChoice) -> Iterator[str]:
    yield f"sets the PriorityClass {settings.name}{override_suffix(settings.override)}"


def _list_values(settings: PriorityClassChoice) -> FieldValues:
    yield FIELD, settings.name


def _list_decided(settings: PriorityClassChoice) -> dict[str, int]:
    return {FIELD: WRITTEN}


def _list_match_fields(settings: PriorityClassChoice) -> tuple[str, ...]:
    return (FIELD,)


def _find_missing(settings: PriorityClassChoice, terms: PolicyTerms, facts: ClusterFacts) -> Iterator[Reason]:
    # The system's two classes always exist (pkg/apis/scheduling, SystemPriorityClasses).
    if settings.name not in facts.priority_classes and settings.name not in CRITICAL:
        yield reasons.PRIORITY_CLASS_NOT_FOUND(f"PriorityClass {settings.name} does not exist")


def _compile(settings: PriorityClassChoice, terms: PolicyTerms) -> Iterator[PatchPart]:
    raise NotExpressible(
        "spec.actions.priorityClass: a quota may count pods of the PriorityClass, and CEL cannot check "
        "whether it would refuse the pod"
    )


def _require(settings: PriorityClassChoice, terms: PolicyTerms) -> FieldValues:
    yield FIELD, f"has(object.spec.{FIELD}) && object.spec.{FIELD} == {cel_string(settings.name)}"


ACTION = Action(
    name="priority_class",
    propose=propose_changes,
    unmet=find_unmet_field,
    describe=_describe,
    list_values=_list_values,
    compare=no_comparison,
    list_decided=_list_decided,
    list_match_fields=_list_match_fields,
    find_odd=no_odd_values,
    find_missing=_find_missing,
    compile=_compile,
    require=_require,
    order_matters=False,
    affects=frozenset({"quotas"}),
    list_differences=no_differences,
)
