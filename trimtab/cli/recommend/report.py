"""The report of `trimtab recommend`: the types of the published report, and the totals by namespace, kind, cluster or
label."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import fsum
from typing import ClassVar

from trimtab.cli.output import API_VERSION, ReasonReport, ReportPart
from trimtab.cli.recommend.pod_level import WholePodReport


class DayReport(ReportPart, frozen=True, kw_only=True):
    """The usage of one day, in cores or bytes. For memory, the values are the peaks of each six hours."""

    day: str
    """The day in UTC."""
    p5: float
    """The usage that 5 % of the day's samples are below."""
    p50: float
    """The usage that half of the day's samples are below."""
    p95: float
    """The usage that 95 % of the day's samples are below."""
    max: float
    """The largest usage of the day."""


class MissingReport(ReportPart, frozen=True, kw_only=True):
    """The reason why there is no proposal: how much usage there is, and how much a proposal needs."""

    reason: ReasonReport
    """Why there is no proposal."""
    have: str
    """How much usage there is, in words."""
    need: str
    """How much usage a proposal needs, in words."""


class ResourceReport(ReportPart, frozen=True, kw_only=True):
    """The usage and the requests of one resource of one container."""

    now: str | None
    """The present request; null if there is none, or if it is not known."""
    limit: str | None
    """The present limit; null if there is none, or if it is not known."""
    proposed: str | None
    """The proposed request; null if the request should stay unchanged, or there is too little usage."""
    proposed_limit: str | None
    """The proposed limit; null unless the limit changes with the request."""
    severity: str
    """How much the request differs from the proposal: none, low, medium or high; unknown if the request or the proposal
    is not known."""
    p5: str | None
    """The usage that 5 % of all samples are below, as a quantity; null with too little usage."""
    p50: str | None
    """The usage that half of all samples are below, as a quantity; null with too little usage."""
    p95: str | None
    """The usage that 95 % of all samples are below, as a quantity; null with too little usage."""
    p99: str | None
    """The usage that 99 % of all samples are below, as a quantity; null with too little usage."""
    max: str | None
    """The largest usage, as a quantity; null with too little usage."""
    days: float | None
    """The days of usage; null if there is none."""
    samples: int
    """The number of samples; for memory, the number of peaks."""
    confidence: float | None
    """The confidence from 0 to 1; null with too little usage."""
    reasons: list[ReasonReport]
    """Where the proposal comes from and what changed it, or the reason why the request stays unchanged."""
    missing: MissingReport | None
    """Why there is no proposal; null if there is one."""
    curve: list[DayReport]
    """The usage day by day, the oldest first."""


class ContainerReport(ReportPart, frozen=True, kw_only=True):
    """One container of one workload, with its recommendations."""

    cluster: str | None
    """The value of the label that the report is divided by; null if it is not divided."""
    namespace: str
    """The namespace of the workload."""
    kind: str
    """The kind of the workload."""
    workload: str
    """The name of the workload."""
    container: str
    """The name of the container."""
    role: str | None
    """The role: main, init or sidecar; null without a snapshot."""
    replicas: int | None
    """The number of replicas; null without a snapshot."""
    former_pods: int | None
    """The number of pods that have usage and no longer exist; null without a snapshot."""
    hours_per_month: float | None
    """The hours that all pods of a CronJob or Job run in a month. Costs and totals are computed from it.

    Null for other workloads, and if the hours are not known."""
    severity: str
    """The higher severity of the two resources."""
    cpu: ResourceReport
    """The usage, the request and the proposal of cpu."""
    memory: ResourceReport
    """The usage, the request and the proposal of memory."""
    monthly_now: float | None
    """The cost of all replicas in dollars per month; null if the requests or the running time are not known."""
    monthly_proposed: float
    """The cost of all replicas with the proposals, in dollars per month."""
    monthly_saved: float | None
    """The dollars per month that the proposal saves; negative if it costs more."""


class TotalReport(ReportPart, frozen=True, kw_only=True):
    """Sums of the requests of all pods that run at the same time. The requests and costs are null without a
    snapshot."""

    by: str | None
    """What the sum is grouped by: namespace, kind, or a label; null for the sum of everything."""
    value: str | None
    """The namespace, kind or value of the label; empty for containers without the label."""
    containers: int
    """The number of containers."""
    changes: int
    """The number of containers with a changed request."""
    cpu_now: float | None
    """The requested cores of today."""
    cpu_proposed: float | None
    """The cores that would be requested with the proposals."""
    memory_now: float | None
    """The requested GiB of today."""
    memory_proposed: float | None
    """The GiB that would be requested with the proposals."""
    monthly_now: float | None
    """The cost of today's requests in dollars per month."""
    monthly_proposed: float | None
    """The cost of the proposed requests in dollars per month."""
    monthly_saved: float | None
    """The dollars per month that the proposals save; negative if they cost more."""


class PlaceReport(ReportPart, frozen=True, kw_only=True):
    """A container, by its cluster, namespace, kind, workload and name."""

    cluster: str | None
    """The value of the label that the report is divided by; null if it is not divided."""
    namespace: str
    """The namespace of the workload."""
    kind: str
    """The kind of the workload."""
    workload: str
    """The name of the workload."""
    container: str
    """The name of the container."""


class ContainerNames:
    """The names by which a report shows containers: namespace/workload/container, or namespace/workload for a container
    named after its workload, and the kind of the workload where two containers would have the same name."""

    def __init__(self, places: Iterable[ContainerReport | PlaceReport]) -> None:
        self._shared = {name for name, count in Counter(map(self._short_name, places)).items() if count > 1}

    @staticmethod
    def _short_name(place: ContainerReport | PlaceReport) -> tuple[str | None, str]:
        own_name = f"/{place.container}" if place.container != place.workload else ""
        return place.cluster, f"{place.namespace}/{place.workload}{own_name}"

    def name_of(self, place: ContainerReport | PlaceReport) -> str:
        """Returns the name of a container, without its cluster."""
        name = self._short_name(place)
        return f"{name[1]} ({place.kind})" if name in self._shared else name[1]


class DifferenceReport(ReportPart, frozen=True, kw_only=True):
    """One difference between this report and the earlier one."""

    place: PlaceReport
    """The container."""
    resource: str
    """The resource: cpu or memory."""
    what: str
    """The kind of difference: applied (the request is now the earlier proposal), request-changed, or
    recommendation-changed."""
    before: str | None
    """The value in the earlier report; null if there was none."""
    after: str | None
    """The value in this report; null if there is none."""


class ComparisonReport(ReportPart, frozen=True, kw_only=True):
    """The differences from an earlier report."""

    at: str | None
    """The end of the history of the earlier report; null if it is not known."""
    saved: float
    """The dollars per month that the proposals of the earlier report would have saved."""
    differences: list[DifferenceReport]
    """The requests and recommendations that changed since the earlier report."""
    new: list[PlaceReport]
    """The containers that the earlier report does not have."""
    gone: list[PlaceReport]
    """The containers of the earlier report that this one does not have."""


class RoleResourceReport(ReportPart, frozen=True, kw_only=True):
    """One resource of which one side needs much more."""

    resource: str
    """The resource: cpu or memory."""
    leader: str
    """What the usage of the leaders leads to."""
    other: str
    """What the usage of the other replicas leads to."""


class ReplicaRoleReport(ReportPart, frozen=True, kw_only=True):
    """A container whose leaders use much more, or much less, than its other replicas."""

    namespace: str
    """The namespace of the workload."""
    kind: str
    """The kind of the workload."""
    workload: str
    """The name of the workload."""
    container: str
    """The name of the container."""
    label: str
    """The label of pods that tells the two sides apart."""
    leader_value: str
    """The value of the label of a leader."""
    leaders: int
    """The number of pods that lead."""
    others: int
    """The number of the other pods."""
    resources: list[RoleResourceReport]
    """The resources of which one side needs much more."""
    monthly_saved: float
    """What sizes of their own save in dollars per month, compared with the larger size for all replicas."""
    text: str
    """The difference and what to do, as a sentence."""


class RecommendReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab recommend`. Published as deploy/schemas/recommend-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab recommend"
    api_version: str = API_VERSION
    kind: str = "RecommendReport"
    at: str | None
    """The end of the history: the time of --now, of the Prometheus query, or of the last value in a file.

    Null if only checkpoints were read."""
    rule: str
    """The rule of the recommendations, such as adaptive or p95."""
    by: str | None
    """The label that the report is divided by; null if it is not divided."""
    containers: list[ContainerReport]
    """The rows of all containers, sorted by the absolute value of the saving, the largest first."""
    saved: float
    """The dollars per month that all proposals save."""
    changes: int
    """The number of containers with a changed request."""
    unknown: int
    """The number of containers with too little usage of both cpu and memory."""
    total: TotalReport
    """The total of all containers of the report."""
    totals: list[TotalReport]
    """The totals by namespace (and by cluster if the report is divided), or by the labels of --total-by."""
    pods: list[WholePodReport]
    """The workloads with several containers, with requests of whole pods, the largest saving first; empty without
    --pod-level."""
    roles: list[ReplicaRoleReport]
    """The containers whose leaders need other requests than the other replicas of their workload."""
    against: ComparisonReport | None
    """The comparison with the report of --against; null without that option."""
    notes: list[str]
    """What the recommendations rest on, one sentence each."""


NAMESPACE, KIND = "namespace", "kind"
LABEL_MISSING = ""
"""The value that is shown for workloads if neither their pods nor their namespace have the label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalsLine:
    """The row of one container, with the numbers from which totals are computed."""

    row: ContainerReport
    labels: Mapping[str, str]
    pods: float
    """The number of pods that run at the same time, on average: less than one for a CronJob that rarely runs."""
    now: tuple[int, int] = (0, 0)
    """The present request of one pod, in millicores and bytes."""
    proposed: tuple[int, int] = (0, 0)
    """The proposed request of one pod, in millicores and bytes."""

    def group_value(self, by: str) -> str:
        """Returns the group that the container belongs to: its namespace, kind, cluster or label value."""
        own = {NAMESPACE: self.row.namespace, KIND: self.row.kind}
        if by in own:
            return own[by]
        if self.row.cluster is not None and by not in self.labels:
            return self.row.cluster
        return self.labels.get(by, LABEL_MISSING)


def group_totals(lines: Iterable[TotalsLine], by: str) -> list[TotalReport]:
    """Returns a total for each value of the label, the largest saving first."""
    groups = dict[str, list[TotalsLine]]()
    for line in lines:
        groups.setdefault(line.group_value(by), []).append(line)
    reports = [sum_lines(group, by, value) for value, group in groups.items()]
    return sorted(reports, key=lambda report: (-abs(report.monthly_saved or 0.0), report.value or ""))


def sum_lines(lines: Iterable[TotalsLine], by: str | None = None, value: str | None = None) -> TotalReport:
    """Returns the total of the lines. A container whose cost is not known counts, but adds nothing to the amounts."""
    all_lines = list(lines)
    priced_lines = [line for line in all_lines if line.row.monthly_now is not None]

    def sum_requests(which: str, resource: int, unit: float) -> float | None:
        amounts = (getattr(line, which)[resource] * line.pods for line in priced_lines)
        return round(fsum(amounts) / unit, 3) if priced_lines else None

    def sum_dollars(name: str) -> float | None:
        return round(fsum(getattr(line.row, name) for line in priced_lines), 2) if priced_lines else None

    return TotalReport(
        by=by,
        value=value,
        containers=len(all_lines),
        changes=sum(bool(line.row.cpu.proposed or line.row.memory.proposed) for line in all_lines),
        cpu_now=sum_requests("now", 0, 1000),
        cpu_proposed=sum_requests("proposed", 0, 1000),
        memory_now=sum_requests("now", 1, 1 << 30),
        memory_proposed=sum_requests("proposed", 1, 1 << 30),
        monthly_now=sum_dollars("monthly_now"),
        monthly_proposed=sum_dollars("monthly_proposed"),
        monthly_saved=sum_dollars("monthly_saved"),
    )
