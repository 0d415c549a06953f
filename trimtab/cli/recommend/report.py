"""The report of `trimtab recommend`.

What requests come to, all together and by namespace, kind, cluster or label.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trimtab.cli.output import API_VERSION, ReasonReport, ReportPart


class DayReport(ReportPart, frozen=True, kw_only=True):
    """One day of use, in cores or bytes (memory: peaks of six hours)."""

    day: str
    p5: float
    p50: float
    p95: float
    max: float


class MissingReport(ReportPart, frozen=True, kw_only=True):
    """What would have to be known."""

    reason: ReasonReport
    have: str
    need: str


class ResourceReport(ReportPart, frozen=True, kw_only=True):
    now: str | None
    """The request as it stands; null where there is none, or it is not known."""
    limit: str | None
    proposed: str | None
    """Null where it should stay as it is, or too little is known."""
    proposed_limit: str | None
    """Only where it changes with the request."""
    severity: str
    """How far the request is from what it should be: none, low, medium or high; unknown where either is not known."""
    p5: str | None
    p50: str | None
    p95: str | None
    p99: str | None
    max: str | None
    days: float | None
    samples: int
    """Of memory: peaks."""
    confidence: float | None
    """0 to 1; null where too little is known."""
    reasons: list[ReasonReport]
    """Where the number comes from and what changed it; or why it stays."""
    missing: MissingReport | None
    curve: list[DayReport]


class ContainerReport(ReportPart, frozen=True, kw_only=True):
    cluster: str | None
    """The value of the label that the report is divided by; null where it is not divided."""
    namespace: str
    kind: str
    workload: str
    container: str
    role: str | None
    """main, init or sidecar; null where no snapshot tells."""
    replicas: int | None
    """Null where no snapshot tells."""
    former_pods: int | None
    """Pods that were seen and are gone; null where no snapshot tells which are there."""
    hours_per_month: float | None
    """Hours that all its pods run in a month, where they run at times (CronJob, Job): what money and totals count; null
    for what runs all the time, and where it is not known."""
    severity: str
    """Of the more severe resource."""
    cpu: ResourceReport
    memory: ResourceReport
    monthly_now: float | None
    """Dollars for all replicas; null where the requests are not known, or for how long they hold."""
    monthly_proposed: float
    monthly_saved: float | None
    """Negative where it costs more: so in every form of the report."""


class TotalReport(ReportPart, frozen=True, kw_only=True):
    """Sums of requests, of all pods that run at the same time; numbers are null where no snapshot tells requests."""

    by: str | None
    """namespace, kind, or a label; null: of everything."""
    value: str | None
    """Empty where the label is missing."""
    containers: int
    changes: int
    """Containers of which a request changes."""
    cpu_now: float | None
    """Cores."""
    cpu_proposed: float | None
    memory_now: float | None
    """GiB."""
    memory_proposed: float | None
    monthly_now: float | None
    """Dollars."""
    monthly_proposed: float | None
    monthly_saved: float | None


class PlaceReport(ReportPart, frozen=True, kw_only=True):
    """One container of a workload."""

    cluster: str | None
    namespace: str
    kind: str
    workload: str
    container: str


class DifferenceReport(ReportPart, frozen=True, kw_only=True):
    """What is otherwise than in the earlier report."""

    place: PlaceReport
    resource: str
    what: str
    """applied (the request is what was proposed), request-changed, or recommendation-changed."""
    before: str | None
    after: str | None


class ComparisonReport(ReportPart, frozen=True, kw_only=True):
    """What changed since an earlier report."""

    at: str | None
    """The earlier report's `at`."""
    saved: float
    """Dollars a month that it would have saved."""
    differences: list[DifferenceReport]
    new: list[PlaceReport]
    gone: list[PlaceReport]


class RecommendReport(ReportPart, frozen=True, kw_only=True):
    """Published as deploy/schemas/recommend-report.schema.json."""

    api_version: str = API_VERSION
    kind: str = "RecommendReport"
    at: str | None
    """The end of the history: --now, the moment of asking Prometheus, or the last value of a file; null where only
    checkpoints were read."""
    rule: str
    by: str | None
    """The label that the report is divided by."""
    containers: list[ContainerReport]
    """What changes most money first."""
    saved: float
    """Dollars a month, of all that is proposed."""
    changes: int
    """Containers of which a request changes."""
    unknown: int
    """Containers of which neither resource is known well enough."""
    total: TotalReport
    """Of all containers of the report."""
    totals: list[TotalReport]
    """By namespace (and by cluster, where the report is divided), or by what --total-by asks for."""
    against: ComparisonReport | None
    """Where --against names an earlier report."""
    notes: list[str]


NAMESPACE, KIND = "namespace", "kind"
WITHOUT = ""
"""The value of a label that a workload's pods and their namespace do not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalsLine:
    """One container's row, with the numbers that are added up."""

    row: ContainerReport
    labels: Mapping[str, str]
    pods: float
    """That run at the same time, on average: less than one of what runs at times."""
    now: tuple[int, int] = (0, 0)
    """Millicores and bytes that one pod asks for."""
    proposed: tuple[int, int] = (0, 0)
    """The same with what is proposed."""

    def value(self, by: str) -> str:
        """What the container belongs to."""
        own = {NAMESPACE: self.row.namespace, KIND: self.row.kind}
        if by in own:
            return own[by]
        if self.row.cluster is not None and by not in self.labels:
            return self.row.cluster
        return self.labels.get(by, WITHOUT)


def totals(lines: Iterable[TotalsLine], by: str) -> list[TotalReport]:
    """One for each value, what changes most money first."""
    groups = dict[str, list[TotalsLine]]()
    for line in lines:
        groups.setdefault(line.value(by), []).append(line)
    found = [total(group, by, value) for value, group in groups.items()]
    return sorted(found, key=lambda one: (-abs(one.monthly_saved or 0.0), one.value or ""))


def total(lines: Iterable[TotalsLine], by: str | None = None, value: str | None = None) -> TotalReport:
    """Of what asks for something as far as a snapshot tells: the rest is counted and not added up."""
    every = list(lines)
    known = [line for line in every if line.row.monthly_now is not None]

    def added(which: str, resource: int, unit: float) -> float | None:
        amounts = (getattr(line, which)[resource] * line.pods for line in known)
        return round(sum(amounts) / unit, 3) if known else None

    def dollars(name: str) -> float | None:
        return round(sum(getattr(line.row, name) for line in known), 2) if known else None

    return TotalReport(
        by=by, value=value, containers=len(every),
        changes=sum(bool(line.row.cpu.proposed or line.row.memory.proposed) for line in every),
        cpu_now=added("now", 0, 1000), cpu_proposed=added("proposed", 0, 1000),
        memory_now=added("now", 1, 1 << 30), memory_proposed=added("proposed", 1, 1 << 30),
        monthly_now=dollars("monthly_now"), monthly_proposed=dollars("monthly_proposed"),
        monthly_saved=dollars("monthly_saved"),
    )  # fmt: skip
