"""Which sound policies will not do what they say?"""

from collections.abc import Iterator
from dataclasses import dataclass

from trimtab.cluster.reason import Code, Reason
from trimtab.policy import reasons
from trimtab.policy.actions.priority_class import BUILT_IN
from trimtab.policy.document import Match, PodPolicy, Policies
from trimtab.policy.facts import Facts

NEVER_DECIDES = Code(
    "never-decides",
    "A policy of higher priority means every pod and decides all that this one would.",
    "Raise this policy's priority, or narrow the other one's match.",
)
SWITCHED_OFF = Code("switched-off", "The policy is on file and does nothing.", "Say `enabled: true` to switch it on.")
NO_SHARE = Code("no-share", "The policy is rolled out to nobody.", "Raise `rollout` above 0%.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something about a policy that its author would want to know."""

    policy: str
    reason: Reason


def lint(policies: Policies, facts: Facts | None = None) -> tuple[Finding, ...]:
    """All findings, policies in the order in which they decide. `facts` None: no cluster is known."""
    found: list[Finding] = []
    for index, policy in enumerate(policies.all):
        reasons_found = [*_idle(policy), *_missing(policy, facts), *_overruled(policy, policies.all[:index])]
        found += [Finding(policy=policy.name, reason=reason) for reason in reasons_found]
    return tuple(found)


def _idle(policy: PodPolicy) -> Iterator[Reason]:
    if not policy.spec.enabled:
        yield SWITCHED_OFF("`enabled` is false")
    elif policy.spec.rollout == 0:
        yield NO_SHARE("`rollout` is 0%")


def _missing(policy: PodPolicy, facts: Facts | None) -> Iterator[Reason]:
    """Objects it names that the cluster does not have."""
    if facts is None:
        return
    actions = policy.spec.actions
    if actions.runtime_class and actions.runtime_class.name not in facts.runtime_classes:
        yield reasons.RUNTIME_CLASS_NOT_FOUND(f"RuntimeClass {actions.runtime_class.name} does not exist")
    known = {*facts.priority_classes, *BUILT_IN}
    if actions.priority_class and actions.priority_class.name not in known:
        yield reasons.PRIORITY_CLASS_NOT_FOUND(f"PriorityClass {actions.priority_class.name} does not exist")


def _overruled(policy: PodPolicy, before: tuple[PodPolicy, ...]) -> Iterator[Reason]:
    for other in before:
        if _means_all(other) and _decides(policy) and _decides(policy) <= _decides(other):
            fields = ", ".join(sorted(_decides(policy)))
            yield NEVER_DECIDES(f"{other.name} means every pod and has decided all of it: {fields}")


def _means_all(policy: PodPolicy) -> bool:
    spec = policy.spec
    whole = spec.enabled and spec.mode == "apply" and spec.rollout == 100
    return whole and spec.match == Match()


def _decides(policy: PodPolicy) -> frozenset[str]:
    """The fields that a policy always decides for whatever it means: those nothing in the pod can settle first."""
    actions, found = policy.spec.actions, set()
    if actions.limits is not None:
        found |= {f"limits.{name}" for name in ("cpu", "memory") if getattr(actions.limits, name) is not None}
    if actions.runtime_class is not None:
        found.add("runtimeClassName")
    if actions.priority_class is not None:
        found.add("priorityClassName")
    others = (actions.requests, actions.placement, actions.topology_spread, actions.labels, actions.annotations)
    return frozenset() if any(part is not None for part in others) else frozenset(found)
