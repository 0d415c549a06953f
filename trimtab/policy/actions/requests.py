"""What should this container ask for?

From usage (P95 where the request is static, P5 where a VPA takes over), from the policy, or a share of its limit;
bounded by the policy here, by everything else in `policy/settle.py`.
"""

from typing import Annotated, Literal

from pydantic import Field

from trimtab.cluster import quantity
from trimtab.cluster.quantity import Written
from trimtab.cluster.reason import NotYet, Reason
from trimtab.cluster.recommendation import ContainerUsage, Percentiles
from trimtab.cluster.resources import limits_of, requests_of
from trimtab.policy import reasons, vpa
from trimtab.policy.containers import means
from trimtab.policy.draft import Draft, Share, Want
from trimtab.policy.subject import Place, Subject
from trimtab.policy.vocabulary import Pattern, Percent, Quantity, Role, words

RESOURCES = ("cpu", "memory")


@words
class Request:
    """How one resource's request is found."""

    from_: Annotated[Literal["usage", "policy", "limit"], Field(alias="from")] = "usage"
    """`usage`: P95 of what the container uses, P5 where a VPA will take over; `otherwise` until that is known.
    `policy`: always `otherwise`. `limit`: a share of the container's limit (see `percent`)."""
    otherwise: Quantity | None = None
    """Used where nothing better is known, and only where the container asks for nothing itself (unless `from: policy`
    with `when: always`). Absent: leave the container as it is."""
    min: Quantity | None = None
    """Never less."""
    max: Quantity | None = None
    """Never more."""
    percent: Percent = 100
    """The share of the limit, with `from: limit`."""
    round: Quantity | None = None
    """Rounded up to a multiple of this; default 1m of cpu, 1Mi of memory (a share of a limit is rounded down)."""
    when: Literal["missing", "always"] = "missing"
    """`missing`: only where the container does not ask itself. `always`: replace what it asks, where something is
    known; a mere `otherwise` never replaces what a team wrote, unless the rule says `from: policy`."""

    def __post_init__(self) -> None:
        if self.from_ == "policy" and self.otherwise is None:
            raise ValueError("`otherwise` with `from: policy`: it is the value")
        if self.min and self.max and quantity.compare(self.min, self.max) > 0:
            raise ValueError(f"a min ({self.min}) not above the max ({self.max})")
        if self.otherwise and self.max and quantity.compare(self.otherwise, self.max) > 0:
            raise ValueError(f"an `otherwise` ({self.otherwise}) not above the max ({self.max})")


@words
class ContainerRequests:
    """A rule for some containers; the first that means a container counts."""

    names: tuple[Pattern, ...] = ()
    roles: tuple[Role, ...] = ()
    images: tuple[Pattern, ...] = ()
    cpu: Request | None = None
    memory: Request | None = None


@words
class Requests:
    """First requests for containers."""

    cpu: Request | None = None
    memory: Request | None = None
    containers: tuple[ContainerRequests, ...] = ()
    """Rules for single containers, before the ones above."""


def propose(settings: Requests, draft: Draft, places: tuple[Place, ...]) -> None:
    """One want per container and resource that this policy is the first to decide."""
    manager = draft.subject.once(vpa.of)
    for place in places:
        for resource in RESOURCES:
            rule = _rule(settings, place, resource)
            if rule is not None:
                _propose(rule, draft, place, resource, vpa.sizing(manager, draft.subject, place, resource))


def _rule(settings: Requests, place: Place, resource: str) -> Request | None:
    for special in settings.containers:
        if means(special.names, special.roles, special.images, place):
            return special.cpu if resource == "cpu" else special.memory
    return settings.cpu if resource == "cpu" else settings.memory


def _propose(rule: Request, draft: Draft, place: Place, resource: str, sizing: vpa.Sizing | None) -> None:
    name = f"{place.name}.requests.{resource}"
    written = requests_of(place.container.resources).get(resource)
    if rule.from_ == "limit" and not draft.decided_by_another(name):
        bounded = bool(rule.min or rule.max or rule.round)
        draft.shares.setdefault((place, resource), Share(draft.policy, rule.percent, bounded))
    if vpa.boosts(draft.subject, place, resource):
        draft.leave(name, reasons.VPA_BOOSTS(f"the VPA boosts {place.container.name} while it starts"))
        return
    if sizing is not None and sizing.recommends:
        if rule.when == "always" or written is None:
            draft.leave(
                name, reasons.VPA_DECIDES(f"VPA {sizing.name} recommends {resource} for {place.container.name}")
            )
        return
    if written is not None and rule.when == "missing":
        draft.leave(name, reasons.ALREADY_SET(f"the container asks for {written} itself"))
        return
    found = _found(rule, draft.subject, place, resource, written, sizing)
    if found is None:
        return
    value, reason = _bounded(rule, resource, *found)
    if draft.decide_first(name, value):
        draft.requests[place, resource] = Want(
            place=place, resource=resource, value=value, policy=draft.policy, reason=reason,
            changes_guaranteed=draft.changes_guaranteed,
        )  # fmt: skip


def _found(
    rule: Request, subject: Subject, place: Place, resource: str, written: Written | None, sizing: vpa.Sizing | None
) -> tuple[int, Reason] | None:
    """The scheduler's number and where it is from; None where the rule has nothing to say."""
    if rule.from_ == "limit":
        limit = limits_of(place.container.resources).get(resource)
        return None if limit is None else _share(rule, resource, limit)
    if rule.from_ == "usage":
        seen = _seen(subject, place, resource)
        if not isinstance(seen, NotYet):
            return _percentile(resource, seen, sizing)
        if written is not None or rule.otherwise is None:
            return None
        return quantity.of(resource, rule.otherwise), reasons.FROM_DEFAULT(
            f"{seen.reason}; the policy says {rule.otherwise}"
        )
    if rule.otherwise is None:
        return None
    return quantity.of(resource, rule.otherwise), reasons.POLICY_SAYS(f"the policy says {rule.otherwise}")


def _seen(subject: Subject, place: Place, resource: str) -> tuple[ContainerUsage, Percentiles] | NotYet:
    """Of the topmost owner that usage is known of."""
    answer: NotYet | None = None
    for owner in reversed(subject.owners):
        usage = subject.facts.recommendations.find(subject.namespace, owner.kind, owner.name, place.container.name)
        if isinstance(usage, NotYet):
            answer = answer or usage
            continue
        seen = usage.of(resource)
        if seen is not None:
            return usage, seen
    if answer is not None:
        return answer
    sentence = f"no usage is known of container {place.container.name}"
    return NotYet(reason=reasons.FROM_DEFAULT(sentence), have="no history", need="a day of usage")


def _percentile(
    resource: str, seen: tuple[ContainerUsage, Percentiles], sizing: vpa.Sizing | None
) -> tuple[int, Reason]:
    usage, percentiles = seen
    share, value = ("P5", percentiles.p5) if sizing is not None else ("P95", percentiles.p95)
    history = f" over {usage.days:g} days" if usage.days is not None else ""
    if usage.confidence is not None and usage.confidence < 1:
        history += f" (sure to {usage.confidence:.0%})"
    why = f", VPA {sizing.name} takes over" if sizing is not None else ""
    peaks = " of peaks" if resource == "memory" else ""
    return quantity.of(resource, value), reasons.FROM_USAGE(f"{share}{peaks}{history} is {value}{why}")


def _share(rule: Request, resource: str, limit: Written) -> tuple[int, Reason]:
    step = _step(rule, resource)
    part = quantity.of(resource, limit) * rule.percent // 100
    number = max(part // step * step, min(step, part), 1)
    return number, reasons.FROM_LIMIT(f"{rule.percent}% of the limit {limit}")


def _bounded(rule: Request, resource: str, number: int, reason: Reason) -> tuple[str, Reason]:
    step = _step(rule, resource)
    rounded = number if rule.from_ == "limit" else -(-number // step) * step
    least = quantity.of(resource, rule.min) if rule.min else 1
    most = quantity.of(resource, rule.max) if rule.max else None
    if rounded < least:
        rounded, reason = least, reasons.REQUEST_RAISED(f"{reason}; the policy's min is {rule.min or 1}")
    if most is not None and rounded > most:
        rounded, reason = most, reasons.REQUEST_CAPPED(f"{reason}; the policy's max is {rule.max}")
    return quantity.write(resource, rounded), reason


def _step(rule: Request, resource: str) -> int:
    """1m of cpu and 1Mi of memory unless the rule says otherwise; usage below that is kept as it is."""
    return quantity.of(resource, rule.round) if rule.round else (1 if resource == "cpu" else 1 << 20)
