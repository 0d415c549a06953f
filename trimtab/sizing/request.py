"""What should this container ask for, within everything that bounds it?

In order: who else decides (a VPA that recommends, an HPA that counts by the request), is there enough history, the
rule's number rounded up (or else what a VPA advises), floors, ceilings, the limit. Every step that changes the number
says so.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from trimtab.cluster import quantity
from trimtab.cluster.advice import Advice
from trimtab.cluster.reason import NotYet, Reason
from trimtab.cluster.resources import QoS, Role
from trimtab.policy.reasons import (
    FROM_USAGE,
    GUARANTEED_LEFT_ALONE,
    REQUEST_CAPPED,
    REQUEST_RAISED,
    VPA_DECIDES,
    VPA_RATIO,
)
from trimtab.policy.vpa import Sizing
from trimtab.sizing import reasons
from trimtab.sizing.enough import Seen
from trimtab.sizing.rule import P5, P95, Rule

CLOSE = 0.1
STEP = {"cpu": 1, "memory": 1 << 20}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hpa:
    """One that aims at a share of this resource's request."""

    name: str
    target: int | None
    """Percent; None where it does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asks:
    """What a container asks for of one resource, and what surrounds it. Numbers are the scheduler's."""

    resource: str
    request: int | None
    limit: int | None
    role: Role = Role.MAIN
    qos: QoS = QoS.BURSTABLE
    replicas: int = 1
    vpa: Sizing | None = None
    """The VPA that sizes it."""
    vpa_down: str = ""
    """The name of a VPA that would, if its webhook could act."""
    hpa: Hpa | None = None
    advice: Advice | None = None
    """What a VPA says of it, which counts where too little was seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the installation, or whoever asks, wants."""

    rule: Rule = P95
    """For what no VPA takes over."""
    least_cpu: int = 10
    """Millicores; below, the scheduler's own rounding matters more."""
    least_memory: int = 16 << 20
    """Bytes; below, a container's runtime alone needs more."""
    most: tuple[tuple[str, int], ...] = ()
    """Per resource, what the largest node holds beside its DaemonSets; empty: not known."""
    allow_hpa: bool = False
    guaranteed: bool = False
    """Change Guaranteed pods too: request and limit together."""

    def least(self, resource: str) -> int:
        return self.least_cpu if resource == "cpu" else self.least_memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A request, and the limit that goes with it where that changes too."""

    request: int
    limit: int | None
    """None: as it is."""
    reasons: tuple[Reason, ...]
    """What it comes from first, then everything that changed it."""


@dataclass(frozen=True, slots=True)
class Stays:
    """Nothing is proposed, for this reason."""

    reason: Reason


def propose(asks: Asks, seen: Seen | NotYet, terms: Terms | None = None) -> Proposal | Stays | NotYet:
    """The request that usage leads to; Stays where it should be left as it is; NotYet where too little is known."""
    terms = terms or Terms()
    reason = _left(asks, terms)
    if reason is not None:
        return Stays(reason)
    if isinstance(seen, NotYet) and asks.advice is None:
        return seen
    number, origin = _advised(asks, asks.advice, seen) if isinstance(seen, NotYet) else _seen(asks, seen, terms)
    why = [origin]
    if isinstance(seen, Seen) and _would_kill(asks, seen, number):
        number = _rounded("memory", seen.max)
        why.append(REQUEST_RAISED(f"it held up to {_text(asks, number)}, and its limit changes too"))
    for bounded, reason in _bounds(asks, terms, number):
        number = bounded
        why.append(reason)
    return _weighed(asks, terms, number, why)


def _seen(asks: Asks, seen: Seen, terms: Terms) -> tuple[int, Reason]:
    rule = P5 if asks.vpa is not None else terms.rule
    number = _rounded(asks.resource, rule.of(seen))
    text = f"{rule.words(seen)} is {_text(asks, number)}"
    return number, FROM_USAGE(text + (f", VPA {asks.vpa.name} takes over" if asks.vpa else ""))


def _would_kill(asks: Asks, seen: Seen, number: int) -> bool:
    """The request of a Guaranteed container is its limit: memory above it is not lent, but kills."""
    return asks.qos is QoS.GUARANTEED and asks.resource == "memory" and _rounded("memory", seen.max) > number


def _advised(asks: Asks, advice: Advice | None, seen: NotYet) -> tuple[int, Reason]:
    assert advice is not None
    number = _rounded(asks.resource, advice.target / 1000 if asks.resource == "cpu" else advice.target)
    told = f"VPA {advice.vpa} recommends {_text(asks, number)}, its P90 and a margin; seen: {seen.have} of {seen.need}"
    return number, reasons.FROM_VPA(told)


def _left(asks: Asks, terms: Terms) -> Reason | None:
    """Does somebody else decide?"""
    if asks.role is Role.INIT:
        return reasons.INIT_CONTAINER("an init container ends before the others begin")
    if asks.vpa is not None and asks.vpa.recommends:
        return VPA_DECIDES(f"VPA {asks.vpa.name} recommends its {asks.resource} already")
    if asks.vpa is not None and asks.vpa.keeps_ratio and asks.limit is not None:
        return VPA_RATIO(f"VPA {asks.vpa.name} would multiply the limit of {_text(asks, asks.limit)}")
    if asks.qos is QoS.GUARANTEED and not terms.guaranteed:
        return GUARANTEED_LEFT_ALONE("the pod is Guaranteed: request and limit would have to change together")
    if asks.hpa is not None and not terms.allow_hpa:
        return reasons.HPA_COUNTS(f"HPA {asks.hpa.name} aims at {_aim(asks.hpa)} of the {asks.resource} request")
    return None


def _bounds(asks: Asks, terms: Terms, number: int) -> Iterator[tuple[int, Reason]]:
    """Each bound that changes the number, in order: floors, then ceilings, the limit last."""
    least, vpa, resource = terms.least(asks.resource), asks.vpa, asks.resource
    if number < least:
        number = least
        yield number, REQUEST_RAISED(f"the least that is asked for is {_text(asks, least)}")
    if vpa is not None and number < vpa.floor:
        number = vpa.floor
        yield number, REQUEST_RAISED(f"VPA {vpa.name} evicts what is below {_text(asks, number)}")
    if vpa is not None and vpa.ceiling is not None and number > vpa.ceiling:
        number = vpa.ceiling
        yield number, REQUEST_CAPPED(f"VPA {vpa.name} gives at most {_text(asks, number)}")
    most = dict(terms.most).get(resource)
    if most is not None and number > most:
        number = most
        yield number, reasons.OVER_NODE(f"the largest node holds {_text(asks, most)} beside its DaemonSets")
    if asks.limit is not None and number > asks.limit and asks.qos is not QoS.GUARANTEED:
        number = asks.limit
        yield number, REQUEST_CAPPED(f"the limit is {_text(asks, number)}")


def _weighed(asks: Asks, terms: Terms, number: int, why: list[Reason]) -> Proposal | Stays:
    if asks.request is not None and abs(number - asks.request) <= CLOSE * asks.request:
        return Stays(reasons.AS_IT_IS(f"{why[0]}; it asks for {_text(asks, asks.request)}"))
    if asks.vpa_down and why[0].code is FROM_USAGE and terms.rule.share == "P95":
        why.append(reasons.VPA_DOWN(f"the webhook of VPA {asks.vpa_down} cannot act, so P95 instead of P5"))
    if asks.hpa is not None:
        why.append(reasons.HPA_COUNTS(_consequence(asks, asks.hpa, number)))
    limit = number if asks.qos is QoS.GUARANTEED else None
    return Proposal(request=number, limit=limit, reasons=tuple(why))


def _consequence(asks: Asks, hpa: Hpa, number: int) -> str:
    """What the HPA makes of another request at the same load."""
    if not asks.request:
        return f"HPA {hpa.name} could not count without a request, and begins to: it aims at {_aim(hpa)} of it"
    replicas = max(1, ceil(asks.replicas * asks.request / number - 1e-9))
    return f"HPA {hpa.name} aims at {_aim(hpa)} of the request: {asks.replicas} replicas become about {replicas}"


def _aim(hpa: Hpa) -> str:
    return "a share" if hpa.target is None else f"{hpa.target} %"


def _rounded(resource: str, value: float) -> int:
    """Up, to whole millicores or mebibytes; what is a hair above a step is on it."""
    step = STEP[resource]
    return ceil((value * 1000 if resource == "cpu" else value) / step - 1e-6) * step


def _text(asks: Asks, number: int) -> str:
    return quantity.write(asks.resource, number)


__all__ = ["Asks", "Hpa", "P5", "P95", "Proposal", "Stays", "Terms", "propose"]
