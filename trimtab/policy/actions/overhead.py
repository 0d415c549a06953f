"""Handles overhead that no RuntimeClass defines, and fills in the overhead of a RuntimeClass if the API server does
not."""

from collections.abc import Iterator, Mapping
from typing import Literal

from trimtab.cluster.api.core import RuntimeClass
from trimtab.cluster.api.meta import UNSET, change, value_or
from trimtab.cluster.quantity import Written
from trimtab.cluster.reason import Reason
from trimtab.cluster.resources import is_same_list
from trimtab.cluster.selectors import is_covered
from trimtab.policy import reasons
from trimtab.policy.actions.action import (
    Action,
    FieldValues,
    PolicyTerms,
    no_comparison,
    no_match_fields,
    no_missing_objects,
    no_odd_values,
    not_always,
    not_in_cel,
)
from trimtab.policy.cel import NotExpressible, join_all
from trimtab.policy.cel_patches import PatchPart, operation, pointer
from trimtab.policy.cel_pod import IS_WINDOWS
from trimtab.policy.field_types import Required, policy_type
from trimtab.policy.pod_changes import PodChanges
from trimtab.policy.pod_context import ContainerRef, PodBeforeAndAfter

FIELD = "overhead"


@policy_type
class OverheadAction:
    """What happens to overhead that the pod's author has set."""

    stray: Literal["warn", "strip", "deny", "keep"] = "warn"
    """What happens to overhead that no RuntimeClass of the pod defines. The API server refuses such pods: `strip`
    removes the overhead, `warn` only warns, `deny` refuses the pod with Trimtab's message, `keep` does nothing."""
    contradicting: Literal["deny", "strip", "warn"] = "deny"
    """What happens to overhead that differs from the RuntimeClass, if the API server's RuntimeClass admission plugin is
    off. If it is on, it has filled in or refused the overhead before the webhook is called, and Trimtab only warns."""
    required: Required = False


def propose_changes(settings: OverheadAction, changes: PodChanges, places: tuple[ContainerRef, ...]) -> None:
    """Removes, refuses or reports overhead that the pod's author has set, as the policy demands."""
    # Nearly every pod carries no overhead when the webhook is called, or the class's own.
    if changes.spec.overhead is UNSET or "RuntimeClass" not in changes.pod_context.facts.listed_kinds:
        return
    # RuntimeClasses of Linux sandboxes do not apply to Windows nodes.
    if changes.pod_context.is_windows and not settings.required:
        return
    name = value_or(changes.spec.runtime_class_name, "")
    runtime_class = changes.pod_context.facts.runtime_classes.get(name)
    # The class may have been deleted, or not be listed yet: the API server decides on such a pod.
    if runtime_class is None and name:
        return
    defined = runtime_class.overhead.pod_fixed if runtime_class else {}
    if not defined:
        _handle_stray(settings, changes)
    elif not is_same_list(defined, value_or(changes.spec.overhead, {})):
        _handle_contradicting(settings, changes, name, defined)


def find_unmet_field(settings: OverheadAction, result: PodBeforeAndAfter) -> str | None:
    """Returns the overhead field if the pod has overhead that its RuntimeClass does not define, otherwise None."""
    own = value_or(result.spec.overhead, {})
    runtime_class = result.after.facts.runtime_classes.get(value_or(result.spec.runtime_class_name, ""))
    return (
        FIELD
        if own and not (runtime_class is not None and is_same_list(runtime_class.overhead.pod_fixed, own))
        else None
    )


def _handle_stray(settings: OverheadAction, changes: PodChanges) -> None:
    own = format_amounts(value_or(changes.spec.overhead, {}))
    reason = reasons.OVERHEAD_STRAY(f"the pod has overhead {own or '{}'}, but no RuntimeClass that defines it")
    if settings.stray == "strip":
        _strip(changes, own)
    elif settings.stray == "deny" and own and changes.decide_first(FIELD, "denied"):
        changes.denied = reason
    elif settings.stray == "warn" and own:
        changes.leave_unchanged(FIELD, reason, loud=True)


def _handle_contradicting(
    settings: OverheadAction, changes: PodChanges, name: str, defined: Mapping[str, Written]
) -> None:
    own = format_amounts(value_or(changes.spec.overhead, {}))
    if changes.pod_context.settings.overhead == "server" or changes.applied_before.get(FIELD) == own:
        changes.leave_unchanged(FIELD, overhead_contradiction(name, own, format_amounts(defined)), loud=True)
        return
    if settings.contradicting == "strip":
        _strip(changes, own)
        return
    reason = overhead_contradiction(name, own, format_amounts(defined))
    if settings.contradicting == "deny" and changes.decide_first(FIELD, "denied"):
        changes.denied = reason
    elif settings.contradicting == "warn":
        changes.decide_first(FIELD, own)
        changes.leave_unchanged(FIELD, reason, loud=True)


def _strip(changes: PodChanges, own: str) -> None:
    if changes.claim_field(
        FIELD, own, None, reasons.OVERHEAD_STRIPPED("no RuntimeClass defines this overhead"), replaces=False
    ):
        changes.spec = change(changes.spec, overhead=UNSET)


def overhead_contradiction(name: str, own: str, defined: str) -> Reason:
    """Returns the reason that says that the pod's overhead differs from what its RuntimeClass defines."""
    return reasons.OVERHEAD_CONTRADICTS(f"the pod has overhead {own}, but RuntimeClass {name} defines {defined}")


def finish_overhead(changes: PodChanges) -> None:
    """Completes the overhead for the RuntimeClass that the pod has after all policies.

    If the API server's RuntimeClass admission plugin is on, this only checks that the plugin has done its work. If it
    is off, this does the same work: it sets the overhead exactly as in `podFixed`, and adds the class's node selector
    and tolerations.
    """
    name = value_or(changes.spec.runtime_class_name, "")
    runtime_class = changes.pod_context.facts.runtime_classes.get(name)
    if runtime_class is None or changes.denied is not None:
        return
    changes.policy = ""
    if changes.pod_context.settings.overhead == "server":
        _check_served(changes, runtime_class)
    else:
        _apply_runtime_class(changes, runtime_class)


def _check_served(changes: PodChanges, runtime_class: RuntimeClass) -> None:
    """Reports overhead that the RuntimeClass admission plugin should have filled in and did not. It only applies if the
    pod had the class before the webhook was called."""
    # The plugin runs before webhooks, and again only for a class that a webhook set.
    was_set_before = value_or(changes.pod_context.pod.spec.runtime_class_name, "") == runtime_class.metadata.name
    if was_set_before and runtime_class.overhead.pod_fixed and not value_or(changes.spec.overhead, {}):
        name = runtime_class.metadata.name
        reason = reasons.OVERHEAD_MISSING(f"RuntimeClass {name} defines overhead, but the pod has no overhead")
        changes.leave_unchanged(FIELD, reason, loud=True)


def _apply_runtime_class(changes: PodChanges, runtime_class: RuntimeClass) -> None:
    own, defined = value_or(changes.spec.overhead, {}), runtime_class.overhead.pod_fixed
    reason = reasons.CLASS_BRINGS(f"RuntimeClass {runtime_class.metadata.name} defines this overhead")
    if own and not is_same_list(defined, own):
        # An overhead that an earlier call of Trimtab wrote is no contradiction of the author's.
        if not changes.is_decided(FIELD) and changes.applied_before.get(FIELD) != format_amounts(own):
            # The RuntimeClass admission plugin would refuse the pod, too.
            changes.denied = overhead_contradiction(
                runtime_class.metadata.name, format_amounts(own), format_amounts(defined) or "none"
            )
        return
    if defined and not own:
        changes.record_change(FIELD, None, format_amounts(defined), reason)
        changes.spec = change(changes.spec, overhead=dict(defined))
    _apply_scheduling(changes, runtime_class, reason)


def _apply_scheduling(changes: PodChanges, runtime_class: RuntimeClass, reason: Reason) -> None:
    """Adds the node selector and the tolerations of the RuntimeClass, as the RuntimeClass admission plugin does
    (plugin/pkg/admission/runtimeclass/admission.go)."""
    selector = value_or(changes.spec.node_selector, {})
    missing = {k: v for k, v in runtime_class.scheduling.node_selector.items() if k not in selector}
    for key, value in sorted(missing.items()):
        changes.record_change(f"nodeSelector[{key}]", None, value, reason)
    tolerations = value_or(changes.spec.tolerations, ())
    lacking = tuple(t for t in runtime_class.scheduling.tolerations if not is_covered(t, tolerations))
    for toleration in lacking:
        changes.record_change(
            f"tolerations[{toleration.key}]", None, toleration.value or toleration.operator or "Equal", reason
        )
    if missing:
        changes.spec = change(changes.spec, node_selector={**selector, **missing})
    if lacking:
        changes.spec = change(changes.spec, tolerations=tolerations + lacking)


def format_amounts(amounts: Mapping[str, Written]) -> str:
    """Returns amounts as text, sorted by name, such as "cpu 250m, memory 120Mi"."""
    return ", ".join(f"{name} {amounts[name]}" for name in sorted(amounts))


def _describe(settings: OverheadAction) -> Iterator[str]:
    yield (
        f"removes or keeps pod overhead: without a RuntimeClass, {settings.stray}; if it contradicts the RuntimeClass, "
        f"{settings.contradicting}"
    )


_DECIDING_WORDS = ("strip", "deny")
"""The values of `stray` and `contradicting` with which the action decides. With `warn` and `keep`, another policy may
still decide."""


def _list_values(settings: OverheadAction) -> FieldValues:
    for name, word in (("stray", settings.stray), ("contradicting", settings.contradicting)):
        if word in _DECIDING_WORDS:
            yield f"overhead.{name}", word


def _compile(settings: OverheadAction, terms: PolicyTerms) -> Iterator[PatchPart]:
    if settings.stray == "deny":
        raise NotExpressible("spec.actions.overhead.stray: a mutating policy cannot deny a pod")
    if settings.stray == "strip":
        yield PatchPart(
            name="overhead",
            test=join_all(
                [
                    "has(object.spec.overhead)",
                    "!has(object.spec.runtimeClassName) || object.spec.runtimeClassName == ''",
                    *([] if settings.required else [f"!{IS_WINDOWS}"]),
                ]
            ),
            operations=f"[{operation('remove', pointer('spec', 'overhead'))}]",
            note="'overhead=removed'",
        )


def _list_differences(_settings: OverheadAction) -> tuple[str, ...]:
    return ("named-class",)


ACTION = Action(
    name="overhead",
    propose=propose_changes,
    unmet=find_unmet_field,
    describe=_describe,
    list_values=_list_values,
    compare=no_comparison,
    list_decided=not_always,
    list_match_fields=no_match_fields,
    find_odd=no_odd_values,
    find_missing=no_missing_objects,
    compile=_compile,
    require=not_in_cel("overhead"),
    order_matters=False,
    affects=frozenset({"quotas"}),
    list_differences=_list_differences,
)
