"""Finds the most likely reason why a pod was admitted without a policy's change."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from trimtab.admission.audit import reasons
from trimtab.cluster.reason import Code, NotYet, Reason
from trimtab.cluster.timestamps import format_timestamp

Moment = float
"""A time in seconds since 1970, from the API server's clock, which has written all times that are compared here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeTimes:
    """When the policies and RuntimeClasses were last written, and when the webhook was registered."""

    policies: Mapping[str, Moment] = field(default_factory=dict)
    """Policy → when its spec was last written. Policies from a folder are not in the mapping."""
    classes: Mapping[str, Moment] = field(default_factory=dict)
    """RuntimeClass → when it was last written."""
    webhook: Moment | NotYet | None = None
    """When Trimtab's webhook was first registered. None: it is not registered. NotYet: its configuration was not
    read."""


UNREGISTERED_UNKNOWN = NotYet(
    reason=reasons.CAUSE_UNKNOWN("the webhook configurations were not read"),
    have="none",
    need="the list of webhook configurations",
)


def explain_unpatched(
    policy: str, created: Moment | None, carries_marker: bool, change_times: ChangeTimes, *, is_compiled: bool = False
) -> Reason:
    """Returns the most likely reason why the policy did not change the pod; reasons that are certain are checked first.

    `created`: when the pod was created. `carries_marker`: whether the webhook's annotation shows that it changed the
    pod. `change_times`: when policies, classes and the webhook last changed. `is_compiled`: an annotation says that the
    compiled policy has changed the pod, either instead of the webhook or before it.
    """
    code = _cause_code(policy, created, carries_marker, change_times)
    # A policy that was written later is the better explanation; whether a webhook was there is none.
    if is_compiled and code not in (reasons.BEFORE_POLICY, reasons.DECIDED_OTHERWISE):
        code = reasons.COMPILED_OTHERWISE
    return code(
        _SENTENCES[code].format(
            policy=policy, since=_time_text(change_times.policies.get(policy)), created=_time_text(created)
        )
    )


def _cause_code(policy: str, created: Moment | None, carries_marker: bool, change_times: ChangeTimes) -> Code:
    policy_time = change_times.policies.get(policy)
    if change_times.webhook is None:
        return reasons.NO_WEBHOOK
    if created is None:
        return reasons.CAUSE_UNKNOWN
    if policy_time is not None and created < policy_time:
        return reasons.BEFORE_POLICY
    if carries_marker:
        return reasons.DECIDED_OTHERWISE
    if not isinstance(change_times.webhook, NotYet) and created < change_times.webhook:
        return reasons.BEFORE_WEBHOOK
    return reasons.CAUSE_UNKNOWN if policy_time is None else reasons.MISSED


_SENTENCES = {
    reasons.BEFORE_POLICY: "the pod was created {created}, before policy {policy} was last changed ({since})",
    reasons.BEFORE_WEBHOOK: "the pod was created {created}, before the webhook was registered",
    reasons.NO_WEBHOOK: "Trimtab's webhook is not registered",
    reasons.MISSED: "the pod was created {created}, while policy {policy} was in force since {since}, but the "
    "webhook did not change the pod: the webhook was not called, did not respond in time, or Trimtab was paused then",
    reasons.DECIDED_OTHERWISE: "the webhook admitted the pod without this change, but policy {policy} would make "
    "the change now",
    reasons.COMPILED_OTHERWISE: "the API server changed the pod according to the compiled policy {policy}, but "
    "without this change",
    reasons.CAUSE_UNKNOWN: "the pod lacks a change of policy {policy}; Trimtab does not know whether the pod or the "
    "policy is older",
}


def _time_text(moment: Moment | None) -> str:
    return "at an unknown time" if moment is None else format_timestamp(int(moment))
