"""Which words of one policy mean something else than their author surely meant?

All of this is sound in form: a quantity without its unit, a kind that no controller has, requirements that no node can
meet together. So it is told as a finding, and refused by nobody.
"""

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from trimtab.cluster import quantity
from trimtab.cluster.api.meta import SelectorRequirement
from trimtab.cluster.api.pod import PodSpec
from trimtab.cluster.config_error import nearest
from trimtab.cluster.reason import Code, Reason
from trimtab.policy.actions.placement_fields import PlacementAction
from trimtab.policy.actions.request_fields import ContainerRequests, RequestRule, RequestsAction, rules_of
from trimtab.policy.affinity_conflicts import contradiction
from trimtab.policy.pod_context import DEFAULT_TERMS
from trimtab.policy.podpolicy import Conditions, NamespaceMatch, PodPolicy

ODD_AMOUNT = Code(
    "unusual-amount",
    "An amount is far from what any container asks for: a unit is missing, or is another one than was meant.",
    "Write memory with Mi or Gi, and cpu in cores or with m: 128Mi, 500m, 2.",
)
ODD_BOUND = Code(
    "ineffective-bound",
    "Two amounts of one rule make one of them count for nothing.",
    "Raise `otherwise` to `min` at least, or lower `min`.",
)
NEVER_MEANS = Code(
    "never-matches",
    "No pod can ever meet the policy's `match`.",
    "Write kinds as Kubernetes does (Deployment), and exclude less than you include.",
)
NO_SUCH_NODE = Code(
    "no-node-can-match",
    "No node can meet all that the policy requires of its labels.",
    "Take back one of the requirements; several values of one label go into one `in`.",
)
WEIGHT_UNREAD = Code(
    "weight-without-effect",
    "A weight counts only under `prefer`.",
    "Remove it, or move the entry from `require` to `prefer`.",
)

WORD_UNREAD = Code(
    "field-without-effect",
    "A word of the policy counts for nothing beside the others.",
    "Remove it, or say what reads it.",
)
EVERY_CONTAINER = Code(
    "resource-for-every-container",
    "An extended resource goes to every container of the pods, and each piece is taken from a node.",
    "Name the containers: `match.containers`, or `names`, `roles` or `images` under `requests.containers`.",
)

KINDS = (
    "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicaSet", "ReplicationController", "Pod", "Rollout",
)  # fmt: skip
_SMALLEST_MEMORY = quantity.scheduler_value("memory", "1Mi")
_LARGEST = {
    "cpu": quantity.scheduler_value("cpu", "448"), "memory": quantity.scheduler_value("memory", "32Ti"),
    "ephemeral-storage": quantity.scheduler_value("memory", "256Ti"),
}  # fmt: skip
"""More than the largest machine that clouds rent out holds."""
_LARGEST_NUMBER = 2**63
_IN_BYTES = ("memory", "ephemeral-storage")
_LONGEST_SECONDS = 7 * 86400
"""A week. A node with such a pod is as good as never drained."""


def odd_words(policy: PodPolicy) -> Iterator[Reason]:
    """All that is odd about one policy, whatever others and the cluster say."""
    yield from _requests(policy)
    yield from _asked(policy)
    yield from _sizes(policy)
    yield from _never(policy)
    if policy.spec.actions.placement is not None:
        yield from _placement(policy.spec.actions.placement)


def _requests(policy: PodPolicy) -> Iterator[Reason]:
    requests = policy.spec.actions.requests
    if requests is None:
        return
    every: list[tuple[str, RequestsAction | ContainerRequests]] = [("requests", requests)]
    every += [(f"requests.containers[{n}]", rules) for n, rules in enumerate(requests.containers)]
    for where, rules in every:
        for resource, rule in rules_of(rules):
            yield from _amounts(f"{where}.{resource}", resource, rule)
        if rules.extended and not _is_narrow(policy, rules):
            names = ", ".join(rules.extended)
            yield EVERY_CONTAINER(f"{where}.extended gives {names} to every container of a pod, its sidecars included")


def _is_narrow(policy: PodPolicy, rules: "RequestsAction | ContainerRequests") -> bool:
    """Does it mean some containers of a pod only?"""
    special = isinstance(rules, ContainerRequests) and (rules.names or rules.roles or rules.images)
    return bool(special) or policy.spec.match.containers is not None


def _amounts(where: str, resource: str, rule: RequestRule) -> Iterator[Reason]:
    yield from _odd_amounts(where, resource, [(word, getattr(rule, word)) for word in ("otherwise", "min", "max")])
    if rule.otherwise and rule.min and quantity.compare(rule.otherwise, rule.min) < 0:
        yield ODD_BOUND(f"{where}.otherwise {rule.otherwise} is below min {rule.min}, which is given instead")
    if rule.percent != 100 and rule.from_ not in ("limit", "request"):
        yield WORD_UNREAD(f"{where}.percent is read with `from: limit` and `from: request` only")


def _odd_amounts(where: str, resource: str, given: Iterable[tuple[str, str | None]]) -> Iterator[Reason]:
    for word, written in given:
        odd = "" if written is None else _odd(resource, written)
        if odd:
            yield ODD_AMOUNT(f"{where}.{word} {written} is {odd}")


def _odd(resource: str, written: str) -> str:
    """What the amount comes to, where nobody means that; empty where somebody may."""
    number = quantity.scheduler_value(resource, written)
    if number > _LARGEST.get(resource, _LARGEST_NUMBER):
        return f"{number // 1000} cores" if resource == "cpu" else f"{number} bytes"
    if resource in _IN_BYTES and quantity.parse(written) < _SMALLEST_MEMORY * quantity.NANO:
        return "less than 1 byte" if quantity.parse(written) < quantity.NANO else f"{number} bytes"
    return ""


def _asked(policy: PodPolicy) -> Iterator[Reason]:
    """Amounts by which pods, or containers, are told."""
    match = policy.spec.match
    for where, conditions in (("match", match), *((f"match.exclude[{n}]", c) for n, c in enumerate(match.exclude))):
        of_containers = conditions.containers.requests if conditions.containers is not None else None
        for inner, amounts in ((where, conditions.requests), (f"{where}.containers", of_containers)):
            for resource, amount in (amounts or {}).items():
                given = (("atLeast", amount.at_least), ("below", amount.below))
                yield from _odd_amounts(f"{inner}.requests[{resource}]", resource, given)


def _sizes(policy: PodPolicy) -> Iterator[Reason]:
    """Other amounts and times."""
    actions = policy.spec.actions
    if actions.empty_dirs is not None:
        yield from _odd_amounts("emptyDirs", "ephemeral-storage", [("sizeLimit", actions.empty_dirs.size_limit)])
    period = actions.termination_grace_period
    if period is not None:
        for word, seconds in (("minSeconds", period.min_seconds), ("maxSeconds", period.max_seconds)):
            if seconds is not None and seconds > _LONGEST_SECONDS:
                days = seconds // 86400
                yield ODD_AMOUNT(f"terminationGracePeriod.{word} {seconds} is {days} days: a drain waits as long")


def _never(policy: PodPolicy) -> Iterator[Reason]:
    match = policy.spec.match
    for conditions in (match, *match.exclude):
        for owner in conditions.owners:
            kind = owner.partition("/")[0]
            known = _kind_meant(kind)
            if known:
                yield NEVER_MEANS(f"no pod is owned by a {kind}: did you mean {known}?")
    if any(_same(conditions, match) for conditions in match.exclude):
        yield NEVER_MEANS("what it excludes is all that it means")
    spaces = match.namespaces or NamespaceMatch()
    for name in spaces.include:
        if any(_covers(pattern, name) for pattern in spaces.exclude):
            yield NEVER_MEANS(f"namespace {name} is included, and excluded by {', '.join(spaces.exclude)}")
        elif name in DEFAULT_TERMS.system_namespaces:
            yield NEVER_MEANS(f"pods of {name} are never changed")


def _kind_meant(kind: str) -> str:
    """The kind that was surely meant by a word that is none; empty for a pattern, and for what may be one."""
    if not kind or set(kind) & set("*?[") or kind in KINDS:
        return ""
    plain = kind.lower()
    found = next((known for known in KINDS if plain in (known.lower(), f"{known.lower()}s")), "")
    if found or kind[0].isupper():
        return found
    return nearest(kind.capitalize(), KINDS).removeprefix("did you mean ").strip("?'") or "a kind such as Deployment"


def _covers(pattern: str, name: str) -> bool:
    """Does one pattern mean all that the other does? Only what can be told from the words."""
    return pattern == name or fnmatchcase(name, pattern)


def _same(excluded: Conditions, match: Conditions) -> bool:
    names = Conditions.__dataclass_fields__
    given = [name for name in names if getattr(excluded, name) != getattr(_EVERY_POD, name)]
    return bool(given) and all(getattr(excluded, name) == getattr(match, name) for name in given)


_EVERY_POD = Conditions()


def _placement(placement: PlacementAction) -> Iterator[Reason]:
    needed = [
        SelectorRequirement(key=k, operator="In", values=(v,)) for k, v in (placement.node_selector or {}).items()
    ]
    needed += [label.requirement for label in placement.require]
    impossible = contradiction(PodSpec(), needed)
    if impossible:
        yield NO_SUCH_NODE(impossible)
    for group in placement.require_any if not impossible else ():
        impossible = contradiction(PodSpec(), [*needed, *(label.requirement for label in group)])
        if impossible:
            yield NO_SUCH_NODE(f"a group of requireAny: {impossible}")
    for word, labels in (("require", placement.require), *(("requireAny", group) for group in placement.require_any)):
        for label in labels:
            if label.weight is not None:
                yield WEIGHT_UNREAD(f"placement.{word} of {label.label} has weight {label.weight}")
