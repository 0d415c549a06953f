"""What becomes of an overhead that no RuntimeClass stands for, and who writes the one that a class brings?"""

from collections.abc import Mapping
from typing import Literal

from trimtab.cluster.api.core import RuntimeClass
from trimtab.cluster.api.meta import UNSET, change, get
from trimtab.cluster.quantity import Written
from trimtab.cluster.reason import Reason
from trimtab.cluster.resources import same
from trimtab.cluster.selectors import covered
from trimtab.policy import reasons
from trimtab.policy.field_types import Required, policy_type
from trimtab.policy.pod_changes import PodChanges
from trimtab.policy.pod_context import ContainerRef, PodBeforeAndAfter

FIELD = "overhead"


@policy_type
class OverheadAction:
    """Overhead that the pod brings itself."""

    stray: Literal["warn", "strip", "deny", "keep"] = "warn"
    """Overhead without a class that defines it. The API server refuses such pods: `strip` saves them, `warn` only
    tells, `deny` refuses with our words, `keep` says nothing."""
    contradicting: Literal["deny", "strip", "warn"] = "deny"
    """Overhead other than the class defines, where the API server's RuntimeClass admission is off. Where it is on the
    server has filled or refused it before us: what we see then is its newer value, and only told."""
    required: Required = False


def propose_changes(settings: OverheadAction, draft: PodChanges, places: tuple[ContainerRef, ...]) -> None:
    """Treat what the pod brings as the policy says."""
    if draft.spec.overhead is UNSET or "RuntimeClass" not in draft.subject.facts.known:
        return
    if draft.subject.is_windows and not settings.required:
        return
    name = get(draft.spec.runtime_class_name, "")
    found = draft.subject.facts.runtime_classes.get(name)
    if found is None and name:
        return
    defined = found.overhead.pod_fixed if found else {}
    if not defined:
        _stray(settings, draft)
    elif not same(defined, get(draft.spec.overhead, {})):
        _contradicting(settings, draft, name, defined)


def find_unmet_field(settings: OverheadAction, result: PodBeforeAndAfter) -> str | None:
    """The field, where the pod carries an overhead that its class does not define."""
    own = get(result.spec.overhead, {})
    found = result.after.facts.runtime_classes.get(get(result.spec.runtime_class_name, ""))
    return FIELD if own and not (found is not None and same(found.overhead.pod_fixed, own)) else None


def _stray(settings: OverheadAction, draft: PodChanges) -> None:
    own = shown(get(draft.spec.overhead, {}))
    reason = reasons.OVERHEAD_STRAY(f"the pod brings overhead {own or '{}'} and no RuntimeClass that defines it")
    if settings.stray == "strip":
        _strip(draft, own)
    elif settings.stray == "deny" and own and draft.decide_first(FIELD, "denied"):
        draft.denied = reason
    elif settings.stray == "warn" and own:
        draft.leave_unchanged(FIELD, reason, loud=True)


def _contradicting(settings: OverheadAction, draft: PodChanges, name: str, defined: Mapping[str, Written]) -> None:
    own = shown(get(draft.spec.overhead, {}))
    if draft.subject.terms.overhead == "server" or draft.applied_before.get(FIELD) == own:
        draft.leave_unchanged(FIELD, overhead_contradiction(name, own, shown(defined)), loud=True)
        return
    if settings.contradicting == "strip":
        _strip(draft, own)
        return
    reason = overhead_contradiction(name, own, shown(defined))
    if settings.contradicting == "deny" and draft.decide_first(FIELD, "denied"):
        draft.denied = reason
    elif settings.contradicting == "warn":
        draft.decide_first(FIELD, own)
        draft.leave_unchanged(FIELD, reason, loud=True)


def _strip(draft: PodChanges, own: str) -> None:
    if draft.claim_field(FIELD, own, None, reasons.OVERHEAD_STRIPPED("no RuntimeClass stands for it"), replaces=False):
        draft.spec = change(draft.spec, overhead=UNSET)


def overhead_contradiction(name: str, own: str, defined: str) -> Reason:
    return reasons.OVERHEAD_CONTRADICTS(f"the pod brings overhead {own}, RuntimeClass {name} defines {defined}")


def finish_overhead(draft: PodChanges) -> None:
    """After all policies, for the class the pod will have.

    Where the server's RuntimeClass admission is on, look whether it did its work; where it is off, do it: overhead
    exactly `podFixed`, node selector and tolerations.
    """
    name = get(draft.spec.runtime_class_name, "")
    found = draft.subject.facts.runtime_classes.get(name)
    if found is None or draft.denied is not None:
        return
    draft.policy = ""
    if draft.subject.terms.overhead == "server":
        _verify(draft, found)
    else:
        _bring(draft, found)


def _verify(draft: PodChanges, found: RuntimeClass) -> None:
    """Only a class that the pod had before us can have been served already."""
    had = get(draft.subject.pod.spec.runtime_class_name, "") == found.metadata.name
    if had and found.overhead.pod_fixed and not get(draft.spec.overhead, {}):
        name = found.metadata.name
        reason = reasons.OVERHEAD_MISSING(f"RuntimeClass {name} defines overhead and the pod carries none")
        draft.leave_unchanged(FIELD, reason, loud=True)


def _bring(draft: PodChanges, found: RuntimeClass) -> None:
    own, defined = get(draft.spec.overhead, {}), found.overhead.pod_fixed
    reason = reasons.CLASS_BRINGS(f"RuntimeClass {found.metadata.name} brings it")
    if own and not same(defined, own):
        if not draft.is_decided(FIELD) and draft.applied_before.get(FIELD) != shown(own):
            draft.denied = overhead_contradiction(found.metadata.name, shown(own), shown(defined) or "none")
        return
    if defined and not own:
        draft.record_change(FIELD, None, shown(defined), reason)
        draft.spec = change(draft.spec, overhead=dict(defined))
    _bring_scheduling(draft, found, reason)


def _bring_scheduling(draft: PodChanges, found: RuntimeClass, reason: Reason) -> None:
    selector = get(draft.spec.node_selector, {})
    missing = {k: v for k, v in found.scheduling.node_selector.items() if k not in selector}
    for key, value in sorted(missing.items()):
        draft.record_change(f"nodeSelector[{key}]", None, value, reason)
    tolerations = get(draft.spec.tolerations, ())
    lacking = tuple(t for t in found.scheduling.tolerations if not covered(t, tolerations))
    for toleration in lacking:
        draft.record_change(
            f"tolerations[{toleration.key}]", None, toleration.value or toleration.operator or "Equal", reason
        )
    if missing:
        draft.spec = change(draft.spec, node_selector={**selector, **missing})
    if lacking:
        draft.spec = change(draft.spec, tolerations=tolerations + lacking)


def shown(amounts: Mapping[str, Written]) -> str:
    return ", ".join(f"{name} {amounts[name]}" for name in sorted(amounts))
