"""From usage and what stands to the report."""

from collections.abc import Iterable
from math import ceil

from trimtab.cluster import quantity
from trimtab.cluster.advice import Advice
from trimtab.cluster.moment import Seconds, written
from trimtab.cluster.reason import NotYet, Reason
from trimtab.command.recommend.report import (
    ContainerReport,
    DayReport,
    MissingReport,
    RecommendReport,
    ResourceReport,
)
from trimtab.command.recommend.standing import Cluster, Standing
from trimtab.command.why import why
from trimtab.sizing import reasons
from trimtab.sizing.enough import LEAST_SAMPLES, Seen, seen
from trimtab.sizing.money import Price
from trimtab.sizing.request import Asks, Proposal, Stays, Terms, propose
from trimtab.sketch.book import Book, Container
from trimtab.sketch.hours import DAY
from trimtab.sketch.window import Window

SHARES = (0.05, 0.5, 0.95)


def report(book: Book, cluster: Cluster, terms: Terms, now: Seconds | None, notes: Iterable[str]) -> RecommendReport:
    """Every container that was seen or stands, what changes most money first."""
    here = bool(cluster.standing)
    everybody = sorted(set(book.containers()) | cluster.standing.keys())
    listed = [c for c in everybody if not here or c in cluster.standing]
    rows = [_container(book, cluster.standing.get(c), c, cluster.price, terms, now) for c in listed]
    rows.sort(key=lambda row: (-abs(row.monthly_saved or 0.0), row.namespace, row.workload, row.container))
    told = [*cluster.notes, *notes]
    gone = len(everybody) - len(listed)
    if gone:
        text = reasons.NO_SUCH_WORKLOAD.means
        told.append(f"{gone} container{'s' if gone > 1 else ''} left out: {text[0].lower()}{text[1:]}")
    return RecommendReport(
        rule=terms.rule.name, containers=rows, saved=round(sum(row.monthly_saved or 0.0 for row in rows), 2),
        changes=sum(bool(row.cpu.proposed or row.memory.proposed) for row in rows),
        unknown=sum(bool(row.cpu.missing and row.memory.missing) for row in rows), notes=told,
    )  # fmt: skip


def _container(
    book: Book, standing: Standing | None, container: Container, price: Price, terms: Terms, now: Seconds | None
) -> ContainerReport:
    parts, numbers = {}, {}
    for resource in ("cpu", "memory"):
        asks = _asks(standing, resource, book.advice.get((container, resource)))
        window = book.window(container, resource)
        known = seen(resource, window, now, kind=container.kind) if window.last else _nothing(resource)
        found = propose(asks, known, terms)
        parts[resource] = _resource(asks, known, found, window)
        before = asks.request or 0
        numbers[resource] = (before, found.request if isinstance(found, Proposal) else before)
    replicas = standing.replicas if standing else None
    count = 1 if replicas is None else replicas
    paid, cost = (price.monthly(numbers["cpu"][n], numbers["memory"][n]) * count for n in (0, 1))
    return ContainerReport(
        namespace=container.namespace, kind=container.kind, workload=container.workload, container=container.name,
        role=str(standing.place.role) if standing else None, replicas=replicas,
        cpu=parts["cpu"], memory=parts["memory"],
        monthly_now=round(paid, 2) if standing else None, monthly_proposed=round(cost, 2),
        monthly_saved=round(paid - cost, 2) if standing else None,
    )  # fmt: skip


def _asks(standing: Standing | None, resource: str, advice: Advice | None) -> Asks:
    if standing is None:
        return Asks(resource=resource, request=None, limit=None, advice=advice)
    return standing.asks(resource, advice)


def _nothing(resource: str) -> NotYet:
    need = f"24 hours, {LEAST_SAMPLES[resource]} {'peaks' if resource == 'memory' else 'samples'}"
    return NotYet(reason=reasons.NO_USAGE(f"nothing was seen of its {resource}"), have="nothing", need=need)


def _resource(asks: Asks, known: Seen | NotYet, found: Proposal | Stays | NotYet, window: Window) -> ResourceReport:
    percentiles = known if isinstance(known, Seen) else None
    proposal = found if isinstance(found, Proposal) else None

    def shown(name: str) -> str | None:
        return None if percentiles is None else amount(asks.resource, getattr(percentiles, name))

    return ResourceReport(
        now=_written(asks, asks.request), limit=_written(asks, asks.limit),
        proposed=_written(asks, proposal.request if proposal else None),
        proposed_limit=_written(asks, proposal.limit if proposal else None),
        p5=shown("p5"), p50=shown("p50"),
        p95=shown("p95"), p99=shown("p99"),
        max=shown("max"), days=percentiles.days if percentiles else None,
        samples=window.whole().total, confidence=percentiles.confidence if percentiles else None,
        reasons=[why(reason) for reason in _reasons(found)],
        missing=MissingReport(reason=why(found.reason), have=found.have, need=found.need)
        if isinstance(found, NotYet) else None,
        curve=list(_curve(window)),
    )  # fmt: skip


def _reasons(found: Proposal | Stays | NotYet) -> tuple[Reason, ...]:
    return found.reasons if isinstance(found, Proposal) else (found.reason,)


def _curve(window: Window) -> Iterable[DayReport]:
    for day, counts in sorted(window.by_day().items()):
        if counts.total:
            p5, p50, p95 = counts.percentiles(SHARES)
            yield DayReport(day=written(day * DAY)[:10], p5=p5, p50=p50, p95=p95, max=counts.top)


def _written(asks: Asks, number: int | None) -> str | None:
    return None if number is None else quantity.write(asks.resource, number)


def amount(resource: str, value: float) -> str:
    """Rounded up to a millicore or mebibyte."""
    if resource == "cpu":
        return quantity.cpu(ceil(value * 1000 - 1e-6))
    return quantity.memory(ceil(value / (1 << 20) - 1e-6) << 20)
