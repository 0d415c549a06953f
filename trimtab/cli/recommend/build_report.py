"""Which containers a report is about: by namespace, kind of workload, and label.

From usage and what stands to the report.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil

from trimtab.cli.output import why
from trimtab.cli.recommend.current_requests import CurrentContainer, CurrentRequests
from trimtab.cli.recommend.report import (
    ContainerReport,
    DayReport,
    MissingReport,
    RecommendReport,
    ResourceReport,
    TotalsLine,
    total,
    totals,
)
from trimtab.cli.recommend.sources import KINDS as ENDING_KINDS
from trimtab.cli.recommend.sources import RunningTime
from trimtab.cluster import quantity, selectors
from trimtab.cluster.api.meta import SelectorRequirement
from trimtab.cluster.config_error import ConfigError, nearest
from trimtab.cluster.reason import NotYet, Reason
from trimtab.cluster.recommendation import VpaRecommendation, confidence_at
from trimtab.cluster.selectors import requirement_matches
from trimtab.cluster.timestamps import Seconds, written
from trimtab.histogram.batch_history import RESOURCES, BatchHistory, ContainerKey
from trimtab.histogram.daily_window import DailyHistograms
from trimtab.histogram.time_buckets import DAY
from trimtab.policy.reasons import OOM_KILLED
from trimtab.sizing import reasons
from trimtab.sizing.cost import HOURS
from trimtab.sizing.recommendation import percentiles as percentiles_of
from trimtab.sizing.request import CurrentResources, Proposal, SizingSettings, Unchanged, propose
from trimtab.sizing.statistics import SizingSeverity, UsageStatistics, most_severe, needed, seen, severity

KINDS = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job", "CronJob", "Pod")
"""Spelled in any case; other kinds (an Argo `Rollout`) as they are written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Empty: everything."""

    namespaces: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    """In lower case."""
    labels: tuple[SelectorRequirement, ...] = ()
    """Of the pods, or of their namespace where the pods do not have the label."""

    def includes(self, container: ContainerKey, standing: CurrentContainer | None) -> bool:
        """Whether the report has a row for the container."""
        if self.labels and standing is None:
            return False
        return self.names(container.namespace, container.kind) and (
            standing is None or all(requirement_matches(one, standing.labels) for one in self.labels)
        )

    def names(self, namespace: str, kind: str) -> bool:
        """Whether namespace and kind are among those selected."""
        return (not self.namespaces or namespace in self.namespaces) and (not self.kinds or kind.lower() in self.kinds)


def selection(
    namespaces: Iterable[str], kinds: Iterable[str], selector: str | None, *, has_cluster: bool
) -> tuple[Selection, list[ConfigError]]:
    """What the options select, and their mistakes."""
    mistakes, labels = list[ConfigError](), tuple[SelectorRequirement, ...]()
    every = [part.strip() for text in kinds for part in text.split(",") if part.strip()]
    known = {kind.lower() for kind in KINDS}
    for kind in every:
        if kind.lower() not in known and kind.lower().removesuffix("s") in known:
            todo = nearest(kind.removesuffix("s").capitalize(), KINDS)
            mistakes.append(ConfigError(file="--kind", expected="a kind such as Deployment", got=repr(kind), todo=todo))
    if selector is not None:
        try:
            labels = selectors.parse(selector)
        except ValueError as error:
            mistakes.append(ConfigError(file="--selector", expected=str(error), got=repr(selector)))
        if not has_cluster:
            todo = "labels are read from the pods of a snapshot"
            mistakes.append(ConfigError(file="--selector", expected="--cluster", got="none", todo=todo))
    lower = frozenset(kind.lower() for kind in every)
    return Selection(namespaces=frozenset(namespaces), kinds=lower, labels=labels), mistakes


SHARES = (0.05, 0.5, 0.95)
MOST_NAMES = 20
"""Namespaces or kinds that a note names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the report is about, beside usage and what stands."""

    terms: SizingSettings
    now: Seconds | None
    by: str = ""
    """The label whose values the books are of."""
    selection: Selection = field(default_factory=Selection)
    least_severity: SizingSeverity = SizingSeverity.UNKNOWN
    total_by: tuple[str, ...] = ()


def report(
    books: Mapping[str, BatchHistory],
    runs: Mapping[str, RunningTime],
    cluster: CurrentRequests,
    asked: Question,
    notes: Iterable[str],
) -> RecommendReport:
    """Every selected container that was seen or stands, what changes most money first."""
    told, lines = [*cluster.notes, *notes], list[TotalsLine]()
    for value, book in books.items():
        found, left = _lines(book, runs.get(value, RunningTime()), cluster, asked, value if asked.by else None)
        lines += found
        told += left
    if any(line.row.hours_per_month is not None and line.row.monthly_now is not None for line in lines):
        told.append("CronJobs and Jobs are charged for the hours that they run.")
    lines.sort(key=lambda line: _order(line.row))
    rows = [line.row for line in lines]
    at = asked.now or max((run.last for run in runs.values()), default=0)
    return RecommendReport(
        at=written(at) if at else None, rule=_rules(asked.terms), by=asked.by or None,
        containers=rows, saved=round(sum(row.monthly_saved or 0.0 for row in rows), 2),
        changes=sum(bool(row.cpu.proposed or row.memory.proposed) for row in rows),
        unknown=sum(bool(row.cpu.missing and row.memory.missing) for row in rows),
        total=total(lines), totals=[one for by in asked.total_by for one in totals(lines, by)],
        against=None, notes=told,
    )  # fmt: skip


def _order(row: ContainerReport) -> tuple[float, str, str, str, str]:
    return -abs(row.monthly_saved or 0.0), row.cluster or "", row.namespace, row.workload, row.container


def _rules(terms: SizingSettings) -> str:
    """As on the command line; of both resources where they differ."""
    cpu, memory = terms.rule_of("cpu"), terms.rule_of("memory")
    return str(cpu) if cpu == memory else f"cpu {cpu}, memory {memory}"


def _lines(
    book: BatchHistory, runs: RunningTime, cluster: CurrentRequests, asked: Question, value: str | None
) -> tuple[list[TotalsLine], list[str]]:
    """The containers of one book, and notes on those that are left out."""
    here = bool(cluster.standing)
    everybody = sorted(set(book.containers()) | cluster.standing.keys())
    chosen = [one for one in everybody if asked.selection.includes(one, cluster.standing.get(one))]
    listed = [c for c in chosen if not here or c in cluster.standing]
    lines = [_container(book, runs, cluster, one, asked, value) for one in listed]
    lines = [line for line in lines if SizingSeverity(line.row.severity).rank >= asked.least_severity.rank]
    notes = []
    if everybody and not chosen:
        namespaces, kinds = ({getattr(one, name) for one in everybody} for name in ("namespace", "kind"))
        there = f"the namespaces are {_named(namespaces)}, the kinds {_named(kinds)}"
        notes.append(f"Nothing is selected by --namespace, --kind and --selector; {there}.")
    gone = len(chosen) - len(listed)
    if gone:
        text = reasons.NO_SUCH_WORKLOAD.means
        notes.append(f"{gone} container{'s' if gone > 1 else ''} left out: {text[0].lower()}{text[1:]}")
    return lines, notes


def _named(names: Iterable[str]) -> str:
    every = sorted(names)
    return ", ".join(every[:MOST_NAMES]) + (f" and {len(every) - MOST_NAMES} more" if len(every) > MOST_NAMES else "")


def _container(
    book: BatchHistory,
    runs: RunningTime,
    cluster: CurrentRequests,
    container: ContainerKey,
    asked: Question,
    value: str | None,
) -> TotalsLine:
    standing, parts = cluster.standing.get(container), dict[str, ResourceReport]()
    replicas = standing.replicas if standing else None
    hours = runs.hours_per_month(container, book, replicas)
    pods = hours / HOURS if hours is not None else float(1 if replicas is None else replicas)
    now, proposed = [], []
    for resource in RESOURCES:
        asks = _asks(standing, resource, cluster, book.advice.get((container, resource)))
        window = book.window(container, resource)
        known = _known(book, container, resource, window, asked.now, asked.terms)
        found = propose(asks, known, asked.terms)
        severe = _severity(asks, found, max(pods, 1.0), here=standing is not None)
        parts[resource] = _resource(asks, known, found, window, severe)
        now.append(asks.request or 0)
        proposed.append(found.request if isinstance(found, Proposal) else now[-1])
    paid, cost = (cluster.price.monthly(*amounts) * pods for amounts in (now, proposed))
    is_priced = standing is not None and not (container.kind in ENDING_KINDS and hours is None)
    row = ContainerReport(
        cluster=value, namespace=container.namespace, kind=container.kind, workload=container.workload,
        container=container.name, role=str(standing.place.role) if standing else None, replicas=replicas,
        former_pods=runs.former_pods(container, cluster.pods) if standing else None, hours_per_month=hours,
        severity=most_severe(*(SizingSeverity(part.severity) for part in parts.values())),
        cpu=parts["cpu"], memory=parts["memory"],
        monthly_now=round(paid, 2) if is_priced else None, monthly_proposed=round(cost, 2),
        monthly_saved=round(paid - cost, 2) if is_priced else None,
    )  # fmt: skip
    labels = standing.labels if standing else {}
    return TotalsLine(row=row, labels=labels, pods=pods, now=(now[0], now[1]), proposed=(proposed[0], proposed[1]))


def _severity(
    asks: CurrentResources, found: Proposal | Unchanged | NotYet, pods: float, *, here: bool
) -> SizingSeverity:
    if isinstance(found, NotYet) or not here:
        return SizingSeverity.UNKNOWN
    if any(reason.code == reasons.LIMIT_TOO_SMALL for reason in _reasons(found)):
        return SizingSeverity.HIGH
    if isinstance(found, Unchanged):
        return SizingSeverity.NONE
    killed = any(reason.code == OOM_KILLED for reason in found.reasons)
    return severity(asks.resource, asks.request, found.request, pods, killed=killed)


def _known(
    book: BatchHistory,
    container: ContainerKey,
    resource: str,
    window: DailyHistograms,
    now: Seconds | None,
    terms: SizingSettings,
) -> UsageStatistics | NotYet:
    if not window.last:
        return _nothing(resource)
    return seen(
        resource, window, now, kind=container.kind, oom=book.oom_records.get(container),
        pods=book.pods.present((container, resource)), percentiles=terms.percentiles(resource),
    )  # fmt: skip


def _asks(
    standing: CurrentContainer | None, resource: str, cluster: CurrentRequests, advice: VpaRecommendation | None
) -> CurrentResources:
    if standing is None:
        return CurrentResources(resource=resource, request=None, limit=None, advice=advice)
    return standing.asks(resource, cluster.nodes, advice)


def _nothing(resource: str) -> NotYet:
    return NotYet(reason=reasons.NO_USAGE(f"nothing was seen of its {resource}"), have="nothing", need=needed(resource))


def _resource(
    asks: CurrentResources,
    known: UsageStatistics | NotYet,
    found: Proposal | Unchanged | NotYet,
    window: DailyHistograms,
    severe: SizingSeverity,
) -> ResourceReport:
    percentiles = known if isinstance(known, UsageStatistics) else None
    proposal = found if isinstance(found, Proposal) else None

    def shown(name: str) -> str | None:
        return None if percentiles is None else amount(asks.resource, getattr(percentiles, name))

    return ResourceReport(
        now=_written(asks, asks.request), limit=_written(asks, asks.limit),
        proposed=_written(asks, proposal.request if proposal else None),
        proposed_limit=_written(asks, proposal.limit if proposal else None), severity=severe,
        p5=shown("p5"), p50=shown("p50"),
        p95=shown("p95"), p99=shown("p99"),
        max=shown("max"), days=percentiles.days if percentiles else None,
        samples=window.whole().total, confidence=_confidence(known, proposal),
        reasons=[why(reason) for reason in _reasons(found)],
        missing=MissingReport(reason=why(found.reason), have=found.have, need=found.need)
        if isinstance(found, NotYet) else None,
        curve=list(_curve(window)),
    )  # fmt: skip


def _confidence(known: UsageStatistics | NotYet, proposal: Proposal | None) -> float | None:
    """Of what is proposed: a request that covers what was doubtful is not doubted for it."""
    if isinstance(known, NotYet):
        return None
    if proposal is None:
        return known.confidence
    return confidence_at(known.resource, percentiles_of(known), proposal.request, known.confidence)


def _reasons(found: Proposal | Unchanged | NotYet) -> tuple[Reason, ...]:
    return found.reasons if isinstance(found, Proposal) else (found.reason,)


def _curve(window: DailyHistograms) -> Iterable[DayReport]:
    for day, counts in sorted(window.by_day().items()):
        if counts.total:
            p5, p50, p95 = counts.percentiles(SHARES)
            yield DayReport(day=written(day * DAY)[:10], p5=p5, p50=p50, p95=p95, max=counts.top)


def _written(asks: CurrentResources, number: int | None) -> str | None:
    return None if number is None else quantity.format_quantity(asks.resource, number)


def amount(resource: str, value: float) -> str:
    """Rounded up to a millicore or mebibyte."""
    if resource == "cpu":
        return quantity.cpu(ceil(value * 1000 - 1e-6))
    return quantity.memory(ceil(value / (1 << 20) - 1e-6) << 20)
