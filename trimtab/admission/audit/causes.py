"""Why did a pod come through without what policy says?"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from trimtab.admission.audit import reasons
from trimtab.cluster.reason import Code, NotYet, Reason
from trimtab.cluster.timestamps import written

Moment = float
"""Seconds since 1970, by the API server's clock: it wrote all that are compared here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeTimes:
    """Since when has what stands in the cluster been what it is?"""

    policies: Mapping[str, Moment] = field(default_factory=dict)
    """Policy → when its spec was last written. Policies from a folder are not in it."""
    classes: Mapping[str, Moment] = field(default_factory=dict)
    """RuntimeClass → when it was last written."""
    webhook: Moment | NotYet | None = None
    """When our webhook was first registered; None: it is not; NotYet: nobody looked."""


UNREGISTERED_UNKNOWN = NotYet(
    reason=reasons.CAUSE_UNKNOWN("the webhook configurations were not read"), have="none", need="their list"
)


def unpatched(policy: str, created: Moment | None, carries_marker: bool, since: ChangeTimes) -> Reason:
    """The most likely cause, the surest first."""
    code = _code(policy, created, carries_marker, since)
    return code(_SENTENCES[code].format(policy=policy, since=_told(since.policies.get(policy)), created=_told(created)))


def _code(policy: str, created: Moment | None, carries_marker: bool, since: ChangeTimes) -> Code:
    began = since.policies.get(policy)
    if since.webhook is None:
        return reasons.NO_WEBHOOK
    if created is None:
        return reasons.CAUSE_UNKNOWN
    if began is not None and created < began:
        return reasons.BEFORE_POLICY
    if carries_marker:
        return reasons.DECIDED_OTHERWISE
    if not isinstance(since.webhook, NotYet) and created < since.webhook:
        return reasons.BEFORE_WEBHOOK
    return reasons.CAUSE_UNKNOWN if began is None else reasons.MISSED


_SENTENCES = {
    reasons.BEFORE_POLICY: "created {created}, before {policy} was last written ({since})",
    reasons.BEFORE_WEBHOOK: "created {created}, before our webhook was registered",
    reasons.NO_WEBHOOK: "no webhook of ours is registered",
    reasons.MISSED: "created {created}, with {policy} in force since {since}: our webhook did not change it",
    reasons.DECIDED_OTHERWISE: "our webhook saw it and left this as it was; {policy} would change it now",
    reasons.CAUSE_UNKNOWN: "lacks what {policy} says; nothing tells which of the two is older",
}


def _told(moment: Moment | None) -> str:
    return "at an unknown time" if moment is None else written(int(moment))
