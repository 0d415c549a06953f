"""What should this container ask for, within everything that bounds it?

In order: who else decides (a VPA that recommends, an HPA that counts by the request), is there enough history, the
rule's number rounded up (or else what a VPA advises), floors, ceilings, the limit. Every step that changes the number
says so.

The amount of usage that a rule takes, and how that is said.

`ADAPTIVE` is what the webhook gives a static workload (see `adaptive`), `P5` what it gives one that a VPA takes over,
and `P95` a number that everybody can compute again.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from math import ceil

from trimtab.cluster import quantity
from trimtab.cluster.reason import NotYet, Reason
from trimtab.cluster.recommendation import VpaRecommendation
from trimtab.cluster.resources import QoS, Role
from trimtab.cluster.usage_rule import ADAPTIVE, UsageRule
from trimtab.policy.autoscalers import VpaConstraints
from trimtab.policy.reasons import (
    FROM_USAGE,
    GUARANTEED_LEFT_ALONE,
    OOM_KILLED,
    REQUEST_CAPPED,
    REQUEST_RAISED,
    VPA_DECIDES,
    VPA_RATIO,
    YOUNG_HISTORY,
)
from trimtab.policy.recorded_usage import doubts, killed, origin
from trimtab.sizing import reasons
from trimtab.sizing.adaptive_bounds import OOM_KILL
from trimtab.sizing.recommendation import percentiles
from trimtab.sizing.statistics import UsageStatistics

__all__ = [
    "ADAPTIVE",
    "CurrentResources",
    "Hpa",
    "P5",
    "P95",
    "Proposal",
    "Unchanged",
    "SizingSettings",
    "amount",
    "propose",
    "words",
]


P5 = UsageRule(Decimal(5))
P95 = UsageRule(Decimal(95))


def amount(rule: UsageRule, seen: UsageStatistics) -> float:
    """Cores, or bytes, not rounded. A percentile that is not published must have been asked of `seen`."""
    headroom = 1 + rule.headroom_percent / 100
    if rule.percentile is None:
        return (seen.p95 if seen.adaptive is None else seen.adaptive.amount) * headroom
    return seen.at(rule.percentile) * headroom


def words(rule: UsageRule, seen: UsageStatistics) -> str:
    """What a percentile is of, for people: "P95 over 14 days", "P99 of peaks and 15% over 14 days"."""
    share = "P95" if rule.percentile is None else rule.share.capitalize() if rule.percentile < 100 else "the largest"
    what = {"cpu": "", "memory": " of peaks"} if share != "the largest" else {"cpu": " use", "memory": " peak"}
    headroom = f" and {rule.headroom_percent}%" if rule.headroom_percent else ""
    return f"{share}{what[seen.resource]}{headroom} over {seen.span}"


CLOSE = 0.1
STEP = {"cpu": 1, "memory": 1 << 20}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hpa:
    """One that aims at a share of this resource's request."""

    name: str
    target: int | None
    """Percent; None where it does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentResources:
    """What a container asks for of one resource, and what surrounds it. Numbers are the scheduler's."""

    resource: str
    request: int | None
    limit: int | None
    role: Role = Role.MAIN
    qos: QoS = QoS.BURSTABLE
    replicas: int = 1
    vpa: VpaConstraints | None = None
    """The VPA that sizes it."""
    vpa_down: str = ""
    """The name of a VPA that would, if its webhook could act."""
    hpa: Hpa | None = None
    advice: VpaRecommendation | None = None
    """What a VPA says of it, which counts where too little was seen."""
    most: int | None = None
    """What a node that the pod may use holds for it, beside DaemonSets and the rest of the pod; None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizingSettings:
    """What the installation, or whoever asks, wants."""

    rule: UsageRule = ADAPTIVE
    """For what no VPA takes over."""
    memory_rule: UsageRule | None = None
    """For its memory, where that has another."""
    least_cpu: int = 10
    """Millicores; below, the scheduler's own rounding matters more."""
    least_memory: int = 16 << 20
    """Bytes; below, a container's runtime alone needs more."""
    allow_hpa: bool = False
    guaranteed: bool = False
    """Change Guaranteed pods too: request and limit together."""
    cover_largest_pod: bool = False
    """Never below what the pod uses on average that uses far more than the others (`pods: largest` in policies)."""

    def rule_of(self, resource: str) -> UsageRule:
        """The rule of one resource."""
        return self.memory_rule if resource == "memory" and self.memory_rule is not None else self.rule

    def percentiles(self, resource: str) -> tuple[Decimal, ...]:
        """What must be asked of the usage beside the percentiles that are always told."""
        percentile = self.rule_of(resource).percentile
        return () if percentile is None else (percentile,)

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
class Unchanged:
    """Nothing is proposed, for this reason."""

    reason: Reason


def propose(
    asks: CurrentResources, seen: UsageStatistics | NotYet, terms: SizingSettings | None = None
) -> Proposal | Unchanged | NotYet:
    """The request that usage leads to; Stays where it should be left as it is; NotYet where too little is known."""
    terms = terms or SizingSettings()
    reason, short = _left(asks, terms), _short_limit(asks, seen)
    if reason is not None:
        return Unchanged(short if short is not None and reason.code == GUARANTEED_LEFT_ALONE else reason)
    if isinstance(seen, NotYet) and asks.advice is None:
        return seen
    if isinstance(seen, NotYet) or (seen.young and asks.advice is not None):
        number, why = _advised(asks, asks.advice, seen)
    else:
        number, why = _seen(asks, seen, terms)
    if isinstance(seen, UsageStatistics) and _would_kill(asks, seen, number):
        number = _rounded("memory", seen.max)
        why.append(REQUEST_RAISED(f"it held up to {_text(asks, number)}, and its limit changes too"))
    for bounded, reason in _bounds(asks, terms, number):
        number = bounded
        why.append(reason)
    if short is not None and asks.qos is not QoS.GUARANTEED:
        if number == asks.request:
            return Unchanged(short)
        why.append(short)
    return _weighed(asks, terms, seen, number, why)


def _seen(asks: CurrentResources, seen: UsageStatistics, terms: SizingSettings) -> tuple[int, list[Reason]]:
    """The rule's number and where it is from; then what raised it, and what makes it doubtful."""
    first = asks.vpa is not None and asks.vpa.corrects
    resource = asks.resource
    rule = P5 if first else terms.rule_of(resource)
    number = _rounded(resource, amount(rule, seen))
    found, published, vpa = seen.adaptive, percentiles(seen), ""
    if asks.vpa is not None:
        vpa = f", VPA {asks.vpa.name} takes over" if first else f"; of VPA {asks.vpa.name}: {asks.vpa.uncorrected}"
    if found is None or rule.percentile is not None:
        why = [FROM_USAGE(f"{_sentence(words(rule, seen))} is {_text(asks, number)}{vpa}")]
    else:
        code = OOM_KILLED if found.bound == OOM_KILL else FROM_USAGE
        more = f", and {rule.headroom_percent}%" if rule.headroom_percent else ""
        text = f"{_sentence(origin(resource, published))}{more}, {seen.span} known"
        why = [code(f"{text}, is {_text(asks, number)}{vpa}")]
    if found is not None and not first and found.floor and _rounded(resource, found.floor) > number:
        number = _rounded(resource, found.floor)
        why.append(OOM_KILLED(f"{killed(published)} is {_text(asks, number)}"))
    if terms.cover_largest_pod and found is not None and not first and _rounded(resource, found.pod_use) > number:
        number = _rounded(resource, found.pod_use)
        why.append(FROM_USAGE(f"what pod {found.pod} uses on average is {_text(asks, number)}"))
    if not first:
        why += doubts(resource, published, number)
    if seen.young:
        why.append(YOUNG_HISTORY(f"only {seen.span} are known of its {resource}"))
    return number, why


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def _would_kill(asks: CurrentResources, seen: UsageStatistics, number: int) -> bool:
    """The request of a Guaranteed container is its limit: memory above it is not lent, but kills."""
    return asks.qos is QoS.GUARANTEED and asks.resource == "memory" and _rounded("memory", seen.max) > number


def _advised(
    asks: CurrentResources, advice: VpaRecommendation | None, seen: UsageStatistics | NotYet
) -> tuple[int, list[Reason]]:
    assert advice is not None
    known = f"{seen.have} of {seen.need}" if isinstance(seen, NotYet) else f"{seen.span} of a day"
    number = _rounded(asks.resource, advice.target / 1000 if asks.resource == "cpu" else advice.target)
    told = f"VPA {advice.vpa} recommends {_text(asks, number)}, its P90 and a margin; seen: {known}"
    return number, [reasons.FROM_VPA(told)]


def _left(asks: CurrentResources, terms: SizingSettings) -> Reason | None:
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


def _short_limit(asks: CurrentResources, seen: UsageStatistics | NotYet) -> Reason | None:
    """Why no request helps: it was killed for want of memory, and its limit is below what it needs."""
    if asks.limit is None or isinstance(seen, NotYet) or seen.adaptive is None:
        return None
    needed = _rounded(asks.resource, seen.adaptive.floor)
    if needed <= asks.limit:
        return None
    text = (
        f"{_sentence(killed(percentiles(seen)))} is {_text(asks, needed)}, and its limit is {_text(asks, asks.limit)}"
    )
    return reasons.LIMIT_TOO_SMALL(text)


def _bounds(asks: CurrentResources, terms: SizingSettings, number: int) -> Iterator[tuple[int, Reason]]:
    """Each bound that changes the number, in order: floors, then ceilings, the limit last."""
    least, vpa = terms.least(asks.resource), asks.vpa
    if number < least:
        number = least
        yield number, REQUEST_RAISED(f"the least that is asked for is {_text(asks, least)}")
    if vpa is not None and number < vpa.floor:
        number = vpa.floor
        yield number, REQUEST_RAISED(f"VPA {vpa.name} evicts what is below {_text(asks, number)}")
    if vpa is not None and vpa.ceiling is not None and number > vpa.ceiling:
        number = vpa.ceiling
        yield number, REQUEST_CAPPED(f"VPA {vpa.name} gives at most {_text(asks, number)}")
    if asks.most is not None and number > asks.most:
        number = asks.most
        yield number, reasons.OVER_NODE(f"no node that the pod may use holds more than {_text(asks, number)} for it")
    if asks.limit is not None and number > asks.limit and asks.qos is not QoS.GUARANTEED:
        number = asks.limit
        yield number, REQUEST_CAPPED(f"the limit is {_text(asks, number)}")


def _weighed(
    asks: CurrentResources, terms: SizingSettings, seen: UsageStatistics | NotYet, number: int, why: list[Reason]
) -> Proposal | Unchanged:
    """A small difference never withholds a raise; a history younger than a day lowers nothing, and raises only what is
    below what was used already."""
    if asks.request is not None and number <= asks.request and asks.request - number <= CLOSE * asks.request:
        return Unchanged(reasons.AS_IT_IS(f"{why[0]}; it asks for {_text(asks, asks.request)}"))
    if _is_too_young_to_change(asks, seen):
        return Unchanged(YOUNG_HISTORY(f"it asks for {_text(asks, asks.request or 0)}, and less than a day is known"))
    rule = terms.rule_of(asks.resource)
    if asks.vpa_down and why[0].code in (FROM_USAGE, OOM_KILLED) and rule != P5:
        instead = rule.share.upper() if rule.percentile is not None else "the static request"
        why.append(reasons.VPA_DOWN(f"the webhook of VPA {asks.vpa_down} cannot act, so {instead} instead of P5"))
    if asks.hpa is not None:
        why.append(reasons.HPA_COUNTS(_consequence(asks, asks.hpa, number)))
    limit = number if asks.qos is QoS.GUARANTEED else None
    return Proposal(request=number, limit=limit, reasons=tuple(why))


def _is_too_young_to_change(asks: CurrentResources, seen: UsageStatistics | NotYet) -> bool:
    """Less than a day is known, and the request that stands covers what was used."""
    if not isinstance(seen, UsageStatistics) or not seen.young or asks.advice is not None or asks.request is None:
        return False
    return _rounded(asks.resource, seen.p95) <= asks.request


def _consequence(asks: CurrentResources, hpa: Hpa, number: int) -> str:
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


def _text(asks: CurrentResources, number: int) -> str:
    return quantity.format_quantity(asks.resource, number)
