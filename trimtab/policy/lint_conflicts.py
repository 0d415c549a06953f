"""Finds policies that contradict each other for the same pods, and policies that never decide anything.

Whether two policies can match the same pod is derived from their conditions alone: they can, unless a condition of one
excludes a condition of the other. So no conflict is missed, but two policies may be reported that match no common pod
in a real cluster.
"""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from trimtab.cluster.reason import Code, Reason
from trimtab.policy.all_actions import iterate_actions
from trimtab.policy.conditions import Match, NamespaceMatch, can_meet_patterns, is_meeting
from trimtab.policy.lint_differences import find_differences
from trimtab.policy.podpolicy import PodPolicy

DISAGREES = Code(
    "policies-conflict",
    "Two policies of equal priority set different values of a field for the same pods. The policy whose name sorts "
    "first decides.",
    "Give one a higher priority, or narrow its `match`.",
)
NEVER_DECIDES = Code(
    "always-overruled",
    "A policy of higher priority decides every field that this policy sets. It matches all pods of this policy.",
    "Raise this policy's priority, or narrow the `match` of the other one.",
)


def find_disagreements(policy: PodPolicy, before: tuple[PodPolicy, ...]) -> Iterator[Reason]:
    """Yields a finding for each field for which another policy of equal priority, whose name sorts earlier, sets
    another value."""
    if not _is_effective(policy):
        return
    for other in before:
        # With different priorities the order is what the authors chose.
        if other.spec.priority != policy.spec.priority or not _is_effective(other):
            continue
        differences = find_differences(policy.spec.actions, other.spec.actions)
        if differences and can_meet(policy.spec.match, other.spec.match):
            text = ", ".join(f"{one.field} {one.own} ({one.other} in the other policy)" for one in differences)
            yield DISAGREES(f"policy {other.name} also has priority {other.spec.priority} and decides first: {text}")


def find_overruled(policy: PodPolicy, before: tuple[PodPolicy, ...]) -> Iterator[Reason]:
    """Yields a finding for each policy of a higher priority that overrules this policy completely. Such a policy
    matches at least the same pods and decides all fields of this policy."""
    for other in before:
        # Equal policies do no harm, and those that differ are reported as a conflict.
        if other.spec.priority == policy.spec.priority:
            continue
        own_fields, other_fields = always_decides(policy), always_decides(other)
        is_covered = all(other_fields.get(field, 0) >= reach for field, reach in own_fields.items())
        if own_fields and is_covered and _matches_all_pods_of(other, policy):
            pods = "every pod" if other.spec.match == Match() else "the same pods"
            fields = ", ".join(sorted(own_fields))
            yield NEVER_DECIDES(f"policy {other.name} matches {pods} and decides every field first: {fields}")


def _is_effective(policy: PodPolicy) -> bool:
    return policy.spec.enabled and policy.spec.mode == "apply" and policy.spec.rollout > 0


def _matches_all_pods_of(other: PodPolicy, policy: PodPolicy) -> bool:
    spec = other.spec
    is_fully_effective = spec.enabled and spec.mode == "apply" and spec.rollout == 100
    # A policy that leaves pods alone which this one changes does not decide all of its fields.
    reaches_less = (spec.opt_out != policy.spec.opt_out and spec.opt_out != "nobody") or (
        spec.guaranteed == "leave" and policy.spec.guaranteed == "change"
    )
    return is_fully_effective and not reaches_less and spec.match in (Match(), policy.spec.match)


def always_decides(policy: PodPolicy) -> dict[str, int]:
    """Returns the fields that a policy always decides for a pod that it matches, because nothing in the pod can prevent
    it, each with `MISSING` or `WRITTEN` (`actions.action`). Empty if the policy may also decide any other field."""
    fields = dict[str, int]()
    for action, settings in iterate_actions(policy.spec.actions):
        decided = action.list_decided(settings)
        if decided is None:
            return {}
        fields |= decided
    return fields


# Conditions under which two policies can match one pod --------------------------------------------------------------


def can_meet(a: Match, b: Match) -> bool:
    """Returns whether there can be a pod that satisfies both matches, because no condition of one excludes a condition
    of the other. An exclusion of one match counts only if it has the same conditions as the whole other match."""
    return (
        _namespaces_meet(a.namespaces or NamespaceMatch(), b.namespaces or NamespaceMatch())
        and _labels_meet(a.pod_labels or {}, b.pod_labels or {})
        and can_meet_patterns(a.runtime_classes, b.runtime_classes)
        and can_meet_patterns(a.priority_classes, b.priority_classes)
        and can_meet_patterns(_owner_kinds(a.owners), _owner_kinds(b.owners))
        and (a.vpa is None or b.vpa is None or a.vpa == b.vpa)
        and (a.hpa is None or b.hpa is None or a.hpa == b.hpa)
        and not _excludes(a, b)
        and not _excludes(b, a)
    )


def _namespaces_meet(a: NamespaceMatch, b: NamespaceMatch) -> bool:
    if a.selector is not None and b.selector is not None and a.selector != b.selector:
        # Only `matchLabels` are compared: match expressions of two selectors may overlap.
        labels, others = a.selector.match_labels or {}, b.selector.match_labels or {}
        if any(others.get(key, value) != value for key, value in labels.items()):
            return False
    if not can_meet_patterns(a.include, b.include):
        return False
    return not (_all_excluded(a.include, b.exclude) or _all_excluded(b.include, a.exclude))


def _all_excluded(included: tuple[str, ...], excluded: tuple[str, ...]) -> bool:
    return bool(included) and all(any(fnmatchcase(name, pattern) for pattern in excluded) for name in included)


def _labels_meet(a: Mapping[str, str], b: Mapping[str, str]) -> bool:
    return all(is_meeting(pattern, b[key]) for key, pattern in a.items() if key in b)


def _owner_kinds(owners: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(owner.partition("/")[0] for owner in owners)


def _excludes(a: Match, b: Match) -> bool:
    """Returns whether one match has an exclusion whose conditions equal those of the other match, so that it excludes
    everything that the other selects."""
    for excluded in a.exclude:
        set_fields = [n for n in type(excluded).__dataclass_fields__ if getattr(excluded, n) != getattr(_EVERY_POD, n)]
        if set_fields and all(getattr(excluded, name) == getattr(b, name) for name in set_fields):
            return True
    return False


_EVERY_POD = Match()
