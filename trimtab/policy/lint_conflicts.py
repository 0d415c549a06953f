"""Which policies say different things of the same pods, or the same things in vain?

Whether two policies can mean one pod is told from their words alone: they can, unless a condition of one rules out one
of the other. So nothing is passed over, and two that never meet in a cluster may be named.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from fnmatch import fnmatchcase

from pydantic.alias_generators import to_camel

from trimtab.cluster.reason import Code, Reason
from trimtab.policy.actions.limits import limit_rules
from trimtab.policy.actions.placement import shown
from trimtab.policy.actions.request_fields import RequestRule, rules_of
from trimtab.policy.podpolicy import Match, NamespaceMatch, PodPolicy

DISAGREES = Code(
    "policies-conflict",
    "Two policies of equal priority want different values of one field for the same pods; the first by name decides.",
    "Give one of them a higher priority, or narrow a match.",
)
NEVER_DECIDES = Code(
    "always-overruled",
    "A policy of higher priority means every pod of this one and decides all that this one would.",
    "Raise this policy's priority, or narrow the other one's match.",
)


def disagreements(policy: PodPolicy, before: tuple[PodPolicy, ...]) -> Iterator[Reason]:
    """With policies of equal priority that are asked before this one."""
    if not _acts(policy):
        return
    for other in before:
        if other.spec.priority != policy.spec.priority or not _acts(other):
            continue
        mine, theirs = wanted(policy), wanted(other)
        fields = sorted(field for field in mine.keys() & theirs.keys() if mine[field] != theirs[field])
        if fields and can_meet(policy.spec.match, other.spec.match):
            said = ", ".join(f"{field} {mine[field]} (there {theirs[field]})" for field in fields)
            yield DISAGREES(f"{other.name} has priority {other.spec.priority}, too, and decides first: {said}")


def overruled(policy: PodPolicy, before: tuple[PodPolicy, ...]) -> Iterator[Reason]:
    """By one that is asked before and means at least the same pods."""
    for other in before:
        decides = always_decides(policy)
        if decides and decides <= always_decides(other) and _means_all_of(other, policy):
            whom = "every pod" if other.spec.match == Match() else "the same pods"
            yield NEVER_DECIDES(f"{other.name} means {whom} and has decided all of it: {', '.join(sorted(decides))}")


def _acts(policy: PodPolicy) -> bool:
    return policy.spec.enabled and policy.spec.mode == "apply" and policy.spec.rollout > 0


def _means_all_of(other: PodPolicy, policy: PodPolicy) -> bool:
    spec = other.spec
    whole = spec.enabled and spec.mode == "apply" and spec.rollout == 100
    reaches_less = (
        (spec.opt_out != policy.spec.opt_out and spec.opt_out != "nobody")
        or (spec.guaranteed == "leave" and policy.spec.guaranteed == "change")
    )  # fmt: skip
    return whole and not reaches_less and spec.match in (Match(), policy.spec.match)


def always_decides(policy: PodPolicy) -> frozenset[str]:
    """The fields that a policy always decides for whatever it means: those nothing in the pod can settle first. None
    where it says anything else, too."""
    actions, found = policy.spec.actions, set()
    if actions.limits is not None:
        found |= {f"limits.{name}" for name, _ in limit_rules(actions.limits)}
    if actions.runtime_class is not None:
        found.add("runtimeClassName")
    if actions.priority_class is not None:
        found.add("priorityClassName")
    settled = {"limits", "runtime_class", "priority_class"}
    others = (getattr(actions, name) for name in type(actions).__dataclass_fields__ if name not in settled)
    return frozenset() if any(part is not None for part in others) else frozenset(found)


def wanted(policy: PodPolicy) -> Mapping[str, str]:
    """Field → the value that the policy wants, in words, of the fields that only one policy can decide."""
    actions, found = policy.spec.actions, dict[str, str]()
    if actions.requests is not None:
        found |= {f"requests.{resource}": _said(rule) for resource, rule in rules_of(actions.requests)}
        found |= {f"requests.{name}": str(pieces) for name, pieces in (actions.requests.extended or {}).items()}
    if actions.limits is not None:
        found |= {f"limits.{resource}": rule for resource, rule in limit_rules(actions.limits)}
    for field, choice in (
        ("runtimeClassName", actions.runtime_class), ("priorityClassName", actions.priority_class),
        ("schedulerName", actions.scheduler_name),
    ):  # fmt: skip
        if choice is not None:
            found[field] = choice.name
    for field, added in (("labels", actions.labels), ("annotations", actions.annotations)):
        if added is not None:
            found |= {f"{field}[{key}]": value for key, value in (added.add or {}).items()}
    if actions.placement is not None:
        found |= {f"nodeSelector[{key}]": value for key, value in (actions.placement.node_selector or {}).items()}
        found |= {f"require[{label.label}]": shown(label.requirement) for label in actions.placement.require}
    return found


def _said(rule: RequestRule) -> str:
    """The words of a rule that are not the default ones."""
    plain = {field.name: field.default for field in fields(rule)}
    given = [
        f"{to_camel(name.strip('_'))}: {getattr(rule, name)}" for name in plain if getattr(rule, name) != plain[name]
    ]
    return "{" + ", ".join(given) + "}"


# Can two policies mean one pod? -------------------------------------------------------------------------------------


def can_meet(a: Match, b: Match) -> bool:
    """Does no condition of one rule out the other? An exclusion counts where it leaves out, in the same words, all that
    the other asks for."""
    return (
        _namespaces_meet(a.namespaces or NamespaceMatch(), b.namespaces or NamespaceMatch())
        and _labels_meet(a.pod_labels or {}, b.pod_labels or {})
        and _any_meets(a.runtime_classes, b.runtime_classes)
        and _any_meets(a.priority_classes, b.priority_classes)
        and _any_meets(_kinds(a.owners), _kinds(b.owners))
        and (a.vpa is None or b.vpa is None or a.vpa == b.vpa)
        and (a.hpa is None or b.hpa is None or a.hpa == b.hpa)
        and not _leaves_out(a, b)
        and not _leaves_out(b, a)
    )


def _namespaces_meet(a: NamespaceMatch, b: NamespaceMatch) -> bool:
    if a.selector is not None and b.selector is not None and a.selector != b.selector:
        labels, others = a.selector.match_labels or {}, b.selector.match_labels or {}
        if any(others.get(key, value) != value for key, value in labels.items()):
            return False
    if not _any_meets(a.include, b.include):
        return False
    return not (_all_excluded(a.include, b.exclude) or _all_excluded(b.include, a.exclude))


def _all_excluded(included: tuple[str, ...], excluded: tuple[str, ...]) -> bool:
    return bool(included) and all(any(fnmatchcase(name, pattern) for pattern in excluded) for name in included)


def _labels_meet(a: Mapping[str, str], b: Mapping[str, str]) -> bool:
    return all(_meet(pattern, b[key]) for key, pattern in a.items() if key in b)


def _any_meets(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """Nothing given: nothing is asked."""
    return not a or not b or any(_meet(one, other) for one in a for other in b)


def _meet(a: str, b: str) -> bool:
    """May one name be meant by both patterns? Two patterns always may."""
    wild = [bool(set(pattern) & set("*?[")) for pattern in (a, b)]
    if all(wild):
        return True
    return fnmatchcase(a, b) if wild[1] else fnmatchcase(b, a)


def _kinds(owners: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(owner.partition("/")[0] for owner in owners)


def _leaves_out(a: Match, b: Match) -> bool:
    """Does one exclude, by a single condition, all that the other asks for by the same?"""
    for excluded in a.exclude:
        given = [n for n in type(excluded).__dataclass_fields__ if getattr(excluded, n) != getattr(_EVERY_POD, n)]
        if given and all(getattr(excluded, name) == getattr(b, name) for name in given):
            return True
    return False


_EVERY_POD = Match()
