"""`trimtab runtimeclass cost`: what running pods cost in a month, and the share of their sandboxes."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import fsum
from operator import attrgetter
from typing import Annotated, ClassVar

import click

from trimtab.cli.options import takes
from trimtab.cli.output import API_VERSION, ReportPart
from trimtab.cli.reporting.columns import Column, ReportView, Section, number_column
from trimtab.cli.reporting.emit import ReportOutput, write_report
from trimtab.cli.selection import ObjectSelection, SelectionOptions
from trimtab.cluster.api.core import Namespace
from trimtab.cluster.api.meta import value_or
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.format_count import format_count
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.resources import Amounts, requests_without_overhead, scheduler_amounts
from trimtab.cluster.snapshot import Snapshot
from trimtab.inputs import live_cluster
from trimtab.inputs.flags import BY
from trimtab.inputs.live_cluster import ClusterOptions
from trimtab.policy.cluster_facts import from_snapshot
from trimtab.sizing.cost import LIST_PRICE, ResourcePrice
from trimtab.watchdog.metrics import price_of

NAMESPACE = "namespace"
WITHOUT_LABEL = "(none)"


class PricedAmount(ReportPart, frozen=True, kw_only=True):
    """An amount of requests, and their cost in a month."""

    cores: float
    """The cores."""
    gib: float
    """The GiB of memory."""
    dollars_per_month: float
    """The cost in dollars per month."""


class TeamCost(ReportPart, frozen=True, kw_only=True):
    """The cost of one namespace, or of the pods with one value of a label."""

    name: str
    """The namespace, or the value of the label."""
    pods: int
    """The number of pods."""
    unreadable_pods: int
    """The number of pods whose requests cannot be read. They are not part of the sums."""
    workload: PricedAmount
    """The requests of containers, and their cost."""
    sandbox: PricedAmount
    """The overhead of pods, and its cost."""
    workload_per_pod: PricedAmount
    """The mean requests of one pod. Only pods whose requests can be read are counted."""
    sandbox_per_pod: PricedAmount
    """The mean overhead of one pod. Only pods whose requests can be read are counted."""


class RuntimeClassCostReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab runtimeclass cost`. Published as deploy/schemas/runtime-class-cost-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab runtimeclass cost"
    api_version: str = API_VERSION
    kind: str = "RuntimeClassCostReport"
    by: str
    """What the rows are grouped by: namespace, or a label."""
    teams: list[TeamCost]
    """The cost of each namespace, or of each value of the label."""
    classes: list[TeamCost]
    """The cost of each RuntimeClass; `(none)` stands for pods without a RuntimeClass."""
    notes: list[str]
    """What the cost rests on, one sentence each."""


@dataclass(slots=True)
class _Sum:
    """The sums over the pods of one team or RuntimeClass."""

    pods: int = 0
    unreadable: int = 0
    millicores: int = 0
    memory_bytes: int = 0
    sandbox_millicores: int = 0
    sandbox_memory_bytes: int = 0

    @property
    def readable(self) -> int:
        """The number of pods in the sums, at least 1."""
        return max(1, self.pods - self.unreadable)

    def add(self, requests: Amounts, overhead: Amounts) -> None:
        self.millicores += requests.get("cpu", 0)
        self.memory_bytes += requests.get("memory", 0)
        self.sandbox_millicores += overhead.get("cpu", 0)
        self.sandbox_memory_bytes += overhead.get("memory", 0)


def _build_cost_report(snapshot: Snapshot, by: str, selection: ObjectSelection) -> RuntimeClassCostReport:
    price = price_of(from_snapshot(snapshot))
    notes = []
    if price is None:
        core, gib = LIST_PRICE.monthly_cost(1000, 0), LIST_PRICE.monthly_cost(0, 1 << 30)
        prices = f"${core:.2f} a core and ${gib:.2f} a GiB in a month"
        notes.append(
            f"No node has a price, so costs are computed with the prices of a general-purpose machine, {prices}."
        )
    labels = {
        namespace_shape.metadata.name: value_or(namespace_shape.metadata.labels, {})
        for namespace_shape in snapshot.objects_of(Namespace)
    }
    pods = [
        pod
        for pod in snapshot.objects_of(Pod)
        if pod.status.phase not in ("Succeeded", "Failed")
        and selection.includes(pod.metadata.namespace or "default", value_or(pod.metadata.labels, {}))
    ]

    def team(pod: Pod) -> str:
        namespace = pod.metadata.namespace or "default"
        if by == NAMESPACE:
            return namespace
        own = value_or(pod.metadata.labels, {})
        return own.get(by) or labels.get(namespace, {}).get(by) or WITHOUT_LABEL

    def of_class(pod: Pod) -> str:
        return value_or(pod.spec.runtime_class_name, "") or WITHOUT_LABEL

    return RuntimeClassCostReport(
        by=by,
        notes=notes,
        teams=list(_sum_by_name(((team(pod), pod) for pod in pods), price or LIST_PRICE)),
        classes=list(_sum_by_name(((of_class(pod), pod) for pod in pods), price or LIST_PRICE)),
    )


def _sum_by_name(pods: Iterable[tuple[str, Pod]], price: ResourcePrice) -> Iterator[TeamCost]:
    """Yields the cost of each group of pods, the highest cost first. `pods` contains the name of each pod's group."""
    sums: dict[str, _Sum] = {}
    for name, pod in pods:
        team_sum = sums.setdefault(name, _Sum())
        team_sum.pods += 1
        try:
            team_sum.add(requests_without_overhead(pod.spec), scheduler_amounts(value_or(pod.spec.overhead, {})))
        except NotAQuantity:
            team_sum.unreadable += 1
    rows = [
        TeamCost(
            name=name,
            pods=team_sum.pods,
            unreadable_pods=team_sum.unreadable,
            workload=_price_amount(price, team_sum.millicores, team_sum.memory_bytes),
            sandbox=_price_amount(price, team_sum.sandbox_millicores, team_sum.sandbox_memory_bytes),
            workload_per_pod=_price_amount(price, team_sum.millicores, team_sum.memory_bytes, team_sum.readable),
            sandbox_per_pod=_price_amount(
                price, team_sum.sandbox_millicores, team_sum.sandbox_memory_bytes, team_sum.readable
            ),
        )
        for name, team_sum in sums.items()
    ]
    yield from sorted(rows, key=lambda row: (-row.workload.dollars_per_month - row.sandbox.dollars_per_month, row.name))


def _price_amount(price: ResourcePrice, millicores: int, memory_bytes: int, pods: int = 1) -> PricedAmount:
    """Returns the amounts with their cost; with a number of pods, the mean of one pod."""
    dollars = price.monthly_cost(millicores, memory_bytes) / pods
    return PricedAmount(
        cores=round(millicores / 1000 / pods, 4),
        gib=round(memory_bytes / (1 << 30) / pods, 3),
        dollars_per_month=round(dollars, 2),
    )


def _describe_sandboxes(report: RuntimeClassCostReport) -> Iterator[str]:
    whole, sandboxes = (
        fsum(read(row).dollars_per_month for row in report.classes)
        for read in (attrgetter("workload"), attrgetter("sandbox"))
    )
    yield (
        f"Sandboxes cost ${sandboxes:,.2f} a month, and containers ${whole:,.2f}."
        if any(row.name != WITHOUT_LABEL for row in report.classes)
        else "No pod has a RuntimeClass, so there is no sandbox to pay for."
    )


def _describe_cost(report: RuntimeClassCostReport) -> Iterator[str]:
    for row in report.classes:
        if row.name != WITHOUT_LABEL:
            yield (
                f"A pod with RuntimeClass {row.name} costs on average {_cost_text(row.workload_per_pod)} for its "
                f"containers and {_cost_text(row.sandbox_per_pod)} for its sandbox."
            )
    unreadable = sum(row.unreadable_pods for row in report.teams)
    if unreadable:
        yield (
            f"{format_count(unreadable, 'pod has', 'pods have')} amounts that cannot be read, so the "
            "costs leave out such pods."
        )


def _cost_text(amount: PricedAmount) -> str:
    return f"${amount.dollars_per_month:,.2f} ({amount.cores:g} cores, {amount.gib:g} GiB)"


def _sandbox_share(row: TeamCost) -> float | None:
    whole = row.workload.dollars_per_month + row.sandbox.dollars_per_month
    return round(row.sandbox.dollars_per_month / whole, 4) if whole else None


def _money_column(title: str, read: Callable[[TeamCost], PricedAmount], rank: int = 0) -> Column[TeamCost]:
    return Column(
        title,
        lambda row: f"${read(row).dollars_per_month:,.2f}",
        value=lambda row: read(row).dollars_per_month,
        align="right",
        rank=rank,
    )


def _cost_columns(first: str) -> tuple[Column[TeamCost], ...]:
    return (
        Column(first, lambda row: row.name, csv_title="name"),
        number_column("Pods", lambda row: row.pods, "{}", rank=3),
        number_column("Cores", lambda row: row.workload.cores + row.sandbox.cores, "{:g}", rank=5),
        number_column("GiB", lambda row: row.workload.gib + row.sandbox.gib, "{:g}", rank=4),
        _money_column("Containers", lambda row: row.workload, rank=1),
        _money_column("Sandboxes", lambda row: row.sandbox),
        number_column("Sandboxes' share", _sandbox_share, "{:.1%}", rank=2),
    )


_COST_VIEW: ReportView[RuntimeClassCostReport] = ReportView(
    title="trimtab runtimeclass cost",
    sections=(
        Section(
            key="teams",
            title=lambda report: f"Cost in a month by {report.by}",
            rows=lambda report: report.teams,
            columns=lambda report: _cost_columns(report.by.capitalize()),
            empty=None,
        ),
        Section(
            key="classes",
            title="Cost in a month by RuntimeClass",
            rows=lambda report: report.classes,
            columns=_cost_columns("RuntimeClass"),
            name=lambda row: f"RuntimeClass/{row.name}",
            named=lambda report: [row for row in report.classes if row.name != WITHOUT_LABEL],
            empty=None,
        ),
    ),
    before=_describe_sandboxes,
    after=_describe_cost,
    notes=lambda report: report.notes,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeClassCostOptions:
    """The options of `trimtab runtimeclass cost`."""

    cluster: ClusterOptions
    selection: SelectionOptions
    by: Annotated[
        str, BY.with_help("Sum the costs by namespace, or by a label of the pod or of its namespace, such as team.")
    ] = NAMESPACE
    output: ReportOutput


@click.command("cost")
@takes(RuntimeClassCostOptions)
def report_cost(options: RuntimeClassCostOptions) -> None:
    """Show what running pods cost in a month by their requests, with the share of the sandboxes listed separately.

    The prices of a core and a GiB are derived from the nodes: from the label trimtab.dev/price, or from the list price
    of the machine type.
    """
    selection = options.selection.parse()
    snapshot = live_cluster.read_snapshot(options.cluster, ("Pod", "Namespace", "Node"))
    selection.check_namespaces(pod.metadata.namespace for pod in snapshot.objects_of(Pod))
    write_report(options.output, _build_cost_report(snapshot, options.by, selection), _COST_VIEW)
