"""`trimtab runtimeclass`: what a runtime really costs per pod, and the RuntimeClass that says so.

`trimtab runtimeclass cost`: what teams pay for their pods, the sandboxes' share apart.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import click
import msgspec
import yaml
from rich.console import Console
from rich.table import Table

from trimtab.admission.audit.stale_overhead import class_overheads
from trimtab.cli import live_cluster, output
from trimtab.cli.main import UsageError
from trimtab.cli.output import ReportPart
from trimtab.cluster.api.core import Namespace, Node, RuntimeClass
from trimtab.cluster.api.meta import ResourceList, get
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.reason import NotYet
from trimtab.cluster.resources import Amounts, amounts, pod_requests, requests_without_overhead, same
from trimtab.cluster.snapshot import Snapshot
from trimtab.kube.errors import InvalidResponse
from trimtab.policy.cluster_facts import from_snapshot
from trimtab.sizing.cost import LIST, ResourcePrice, SandboxCost, SandboxUse, larger, sandbox_cost
from trimtab.usage.kubelet import Sandbox, sandboxes
from trimtab.watchdog.metrics import price_of

NAMESPACE = "namespace"
UNLABELLED = "(none)"


class PricedAmount(ReportPart, frozen=True, kw_only=True):
    """What is reserved, and what that costs."""

    cores: float
    gib: float
    dollars_per_month: float


class TeamCost(ReportPart, frozen=True, kw_only=True):
    """One namespace, or one value of the label."""

    name: str
    pods: int
    unreadable_pods: int
    """Whose amounts cannot be read: they are not in the sums."""
    workload: PricedAmount
    """What containers ask for."""
    sandbox: PricedAmount
    """Pod overhead."""


class RuntimeClassCostReport(ReportPart, frozen=True, kw_only=True):
    """Published as deploy/schemas/runtime-class-cost-report.schema.json."""

    api_version: str = output.API_VERSION
    kind: str = "RuntimeClassCostReport"
    by: str
    teams: list[TeamCost]
    classes: list[TeamCost]
    """The same by RuntimeClass; pods without one are `(none)`."""
    notes: list[str]


@dataclass(slots=True)
class _Sum:
    pods: int = 0
    unreadable: int = 0
    millicores: int = 0
    held: int = 0
    sandbox_millicores: int = 0
    sandbox_held: int = 0

    def add(self, asked: Amounts, overhead: Amounts) -> None:
        self.millicores += asked.get("cpu", 0)
        self.held += asked.get("memory", 0)
        self.sandbox_millicores += overhead.get("cpu", 0)
        self.sandbox_held += overhead.get("memory", 0)


@click.command("cost")
@live_cluster.options
@click.option(
    "--by", default=NAMESPACE, show_default=True, metavar="LABEL",
    help="Sums by namespace, or by a label such as team: the pod's, else its namespace's.",
)  # fmt: skip
@output.options
def cost(cluster: live_cluster.ClusterOptions, by: str, output: str, output_file: str | None) -> None:
    """What running pods cost in a month by their requests, with the sandboxes' share apart.

    Nodes tell what a core and a GiB cost: by the label trimtab.dev/price, or by their type and the list prices.
    """
    from trimtab.cli import output as printed

    report = _report(live_cluster.snapshot(cluster, ("Pod", "Namespace", "Node")), by)
    printed.emit(
        output,
        output_file,
        report,
        lambda console: _draw_cost(console, report),
        "trimtab runtimeclass cost",
    )


def _report(snapshot: Snapshot, by: str) -> RuntimeClassCostReport:
    price = price_of(from_snapshot(snapshot))
    notes = []
    if price is None:
        prices = f"${LIST.monthly(1000, 0):.2f} a core and ${LIST.monthly(0, 1 << 30):.2f} a GiB in a month"
        notes.append(f"No node tells its price: money is counted as on a general-purpose machine, {prices}.")
    labels = {found.metadata.name: get(found.metadata.labels, {}) for found in snapshot.all(Namespace)}
    pods = [pod for pod in snapshot.all(Pod) if pod.status.phase not in ("Succeeded", "Failed")]

    def team(pod: Pod) -> str:
        namespace = pod.metadata.namespace or "default"
        if by == NAMESPACE:
            return namespace
        own = get(pod.metadata.labels, {})
        return own.get(by) or labels.get(namespace, {}).get(by) or UNLABELLED

    def of_class(pod: Pod) -> str:
        return get(pod.spec.runtime_class_name, "") or UNLABELLED

    return RuntimeClassCostReport(
        by=by, notes=notes, teams=list(_sums(((team(pod), pod) for pod in pods), price or LIST)),
        classes=list(_sums(((of_class(pod), pod) for pod in pods), price or LIST)),
    )  # fmt: skip


def _sums(pods: Iterable[tuple[str, Pod]], price: ResourcePrice) -> Iterator[TeamCost]:
    """Who pays most comes first."""
    sums: dict[str, _Sum] = {}
    for name, pod in pods:
        found = sums.setdefault(name, _Sum())
        found.pods += 1
        try:
            found.add(requests_without_overhead(pod.spec), amounts(get(pod.spec.overhead, {})))
        except NotAQuantity:
            found.unreadable += 1
    rows = [
        TeamCost(
            name=name, pods=found.pods, unreadable_pods=found.unreadable,
            workload=_amount(price, found.millicores, found.held),
            sandbox=_amount(price, found.sandbox_millicores, found.sandbox_held),
        )
        for name, found in sums.items()
    ]  # fmt: skip
    yield from sorted(rows, key=lambda row: (-row.workload.dollars_per_month - row.sandbox.dollars_per_month, row.name))


def _amount(price: ResourcePrice, millicores: int, held: int) -> PricedAmount:
    dollars = price.monthly(millicores, held)
    return PricedAmount(cores=millicores / 1000, gib=round(held / (1 << 30), 3), dollars_per_month=round(dollars, 2))


def _draw_cost(console: Console, report: RuntimeClassCostReport) -> None:
    for title, first, rows in (
        (f"Cost in a month by {report.by}", report.by.capitalize(), report.teams),
        ("Cost in a month by RuntimeClass", "RuntimeClass", report.classes),
    ):
        table = Table(title=title, title_justify="left", header_style="bold")
        table.add_column(first, overflow="fold")
        for column in ("Pods", "Containers", "Sandboxes", "Sandboxes' share"):
            table.add_column(column, justify="right")
        for row in rows:
            table.add_row(
                row.name,
                str(row.pods),
                _cost_text(row.workload),
                _cost_text(row.sandbox),
                _share(row),
            )
        console.print(table)
    unreadable = sum(row.unreadable_pods for row in report.teams)
    if unreadable:
        console.print(f"Amounts of {unreadable} pods cannot be read: they are not in the sums.")
    for note in report.notes:
        console.print(note)


def _cost_text(amount: PricedAmount) -> str:
    return f"${amount.dollars_per_month:,.2f} ({amount.cores:g} cores, {amount.gib:g} GiB)"


def _share(row: TeamCost) -> str:
    whole = row.workload.dollars_per_month + row.sandbox.dollars_per_month
    return f"{row.sandbox.dollars_per_month / whole:.1%}" if whole else "–"


class MeasuredClass(ReportPart, frozen=True, kw_only=True):
    """One RuntimeClass."""

    name: str
    pods: int
    """Measured."""
    overhead: dict[str, str]
    """As the class defines it now."""
    measured: dict[str, str] | None
    """What a pod needs beside its containers, with headroom; null where too few pods were measured."""
    missing: str
    """What is missing; empty where nothing is."""
    over: list[str]
    """NAMESPACE/POD of pods that used more memory than they ask for and their overhead, in any of the summaries: a
    kubelet short of memory evicts them first."""
    no_nodes: str | None
    """Why no node takes the class's pods; null where one does, or no node is in the snapshot."""


class RuntimeClassReport(ReportPart, frozen=True, kw_only=True):
    """Published as deploy/schemas/runtime-class-report.schema.json."""

    api_version: str = output.API_VERSION
    kind: str = "RuntimeClassReport"
    classes: list[MeasuredClass]


_SUMMARIES = click.option(
    "--summary", "summaries", multiple=True, required=True, metavar="FILE",
    help="What kubectl get --raw /api/v1/nodes/NODE/proxy/stats/summary printed; several files, several moments.",
)  # fmt: skip


@click.group("runtimeclass")
def verb() -> None:
    """What a runtime really costs per pod, as a RuntimeClass.

    Measured is what pods use beside their containers: the monitor of a virtual machine, a kernel in user space. Nothing
    is written; apply what `render` prints.
    """


@verb.command("measure")
@live_cluster.options
@_SUMMARIES
@output.options
def measure(
    cluster: live_cluster.ClusterOptions, summaries: tuple[str, ...], output: str, output_file: str | None
) -> None:
    """What pods of each RuntimeClass use beside their containers, and what the class says."""
    from trimtab.cli import output as printed

    snapshot = live_cluster.snapshot(cluster, ("Pod", "RuntimeClass", "Node"))
    why = _no_nodes(snapshot)
    classes = [_row(found, snapshot, summaries, why.get(found.metadata.name)) for found in snapshot.all(RuntimeClass)]
    report = RuntimeClassReport(classes=classes)
    printed.emit(output, output_file, report, lambda console: _draw(console, report), "trimtab runtimeclass measure")


@verb.command("render")
@click.argument("name", metavar="RUNTIMECLASS")
@live_cluster.options
@_SUMMARIES
@click.option("--lower", is_flag=True, help="Print what was measured also where the class says more.")
def render(name: str, cluster: live_cluster.ClusterOptions, summaries: tuple[str, ...], lower: bool) -> None:
    """The RuntimeClass with the overhead that was measured.

    Where the class says more, the larger of the two stays until pods are made again; --lower then prints what was
    measured.
    """
    snapshot = live_cluster.snapshot(cluster, ("Pod", "RuntimeClass"))
    found = next((each for each in snapshot.all(RuntimeClass) if each.metadata.name == name), None)
    if found is None:
        raise UsageError([ConfigError(file="command line", expected="a RuntimeClass of the snapshot", got=name)])
    cost = sandbox_cost(_uses(name, snapshot, summaries))
    if isinstance(cost, NotYet):
        raise UsageError([ConfigError(file=name, expected=cost.need, got=cost.have, todo=cost.reason.code.todo)])
    overhead: ResourceList = dict(cost.pod_fixed) if lower else larger(cost.pod_fixed, found.overhead.pod_fixed)
    click.echo(yaml.safe_dump(_manifest(found, overhead), sort_keys=False), nl=False)
    for line in _pods_to_make_again(snapshot, name, overhead):
        click.echo(line, err=True)


verb.add_command(cost)


def _manifest(found: RuntimeClass, overhead: ResourceList) -> dict[str, object]:
    plain = msgspec.to_builtins(found)
    scheduling = {key: value for key, value in plain.get("scheduling", {}).items() if value}
    return {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": found.metadata.name},
        "handler": found.handler,
        "overhead": {"podFixed": overhead},
        **({"scheduling": scheduling} if scheduling else {}),
    }


def _pods_to_make_again(snapshot: Snapshot, name: str, overhead: ResourceList) -> Iterator[str]:
    others = sum(not same(get(pod.spec.overhead, {}), overhead) for pod in _pods(snapshot, name))
    if others:
        yield f"{others} running pods of {name} keep another overhead until they are made again."


def _pods(snapshot: Snapshot, name: str) -> Iterator[Pod]:
    for pod in snapshot.all(Pod):
        if get(pod.spec.runtime_class_name, "") == name and pod.status.phase not in ("Succeeded", "Failed"):
            yield pod


def _uses(name: str, snapshot: Snapshot, summaries: tuple[str, ...]) -> Iterator[SandboxUse]:
    pods = Counter((pod.metadata.namespace or "default", pod.metadata.name) for pod in _pods(snapshot, name))
    for found in _sandboxes(summaries):
        if (found.namespace, found.pod) in pods:
            yield SandboxUse(found.cores, found.memory_bytes)


def _sandboxes(summaries: tuple[str, ...]) -> Iterator[Sandbox]:
    for file, content in live_cluster.read(summaries, (".json",)):
        try:
            yield from sandboxes(content)
        except InvalidResponse as error:
            raise UsageError([ConfigError(file=file, expected="a kubelet's summary", got=str(error))]) from None


def _over(name: str, snapshot: Snapshot, summaries: tuple[str, ...]) -> list[str]:
    """NAMESPACE/POD of those that use more than they ask for, overhead included: by that the kubelet ranks pods for
    eviction (pkg/kubelet/eviction, `exceedMemoryRequests`)."""
    asked = {(pod.metadata.namespace or "default", pod.metadata.name): _memory(pod) for pod in _pods(snapshot, name)}
    over = {
        f"{used.namespace}/{used.pod}"
        for used in _sandboxes(summaries)
        if (most := asked.get((used.namespace, used.pod))) is not None and used.pod_memory_bytes > most
    }
    return sorted(over)


def _memory(pod: Pod) -> int | None:
    """Bytes that the pod asks for, its overhead included; None where that cannot be read."""
    try:
        return pod_requests(pod.spec).get("memory", 0)
    except NotAQuantity:
        return None


def _no_nodes(snapshot: Snapshot) -> dict[str, str | None]:
    """RuntimeClass → why no node takes its pods; without nodes nothing is known."""
    found = class_overheads((), from_snapshot(snapshot)) if any(True for _ in snapshot.all(Node)) else {}
    return {name: one.no_nodes for name, one in found.items()}


def _row(found: RuntimeClass, snapshot: Snapshot, summaries: tuple[str, ...], no_nodes: str | None) -> MeasuredClass:
    uses = list(_uses(found.metadata.name, snapshot, summaries))
    cost = sandbox_cost(uses)
    return MeasuredClass(
        name=found.metadata.name,
        pods=len(uses),
        overhead={key: str(value) for key, value in found.overhead.pod_fixed.items()},
        measured=cost.pod_fixed if isinstance(cost, SandboxCost) else None,
        missing=f"{cost.have} of {cost.need}" if isinstance(cost, NotYet) else "",
        over=_over(found.metadata.name, snapshot, summaries),
        no_nodes=no_nodes,
    )


def _draw(console: Console, report: RuntimeClassReport) -> None:
    table = Table(title="What runtimes cost per pod", title_justify="left", header_style="bold")
    for column in ("RuntimeClass", "Pods measured", "Its overhead", "Measured, with headroom"):
        table.add_column(column, overflow="fold")
    for row in report.classes:
        table.add_row(
            row.name, str(row.pods), _said(row.overhead), _said(row.measured or {}) if row.measured else row.missing
        )
    console.print(table)
    for row in report.classes:
        if row.over:
            named = ", ".join(row.over[:_MOST_NAMED]) + (", …" if len(row.over) > _MOST_NAMED else "")
            console.print(f"{row.name}: pods that use more memory than they ask for and their overhead: {named}")
        if row.no_nodes is not None:
            console.print(f"{row.name}: {_WHY_NO_NODES[row.no_nodes]}")


_MOST_NAMED = 10
_WHY_NO_NODES = {
    "no-label": "no node has the labels that the class selects.",
    "cordoned": "all nodes that the class selects are cordoned.",
    "tainted": "the nodes that the class selects have taints that it does not tolerate; each pod must by itself.",
    "may-come": "no node has the labels that the class selects now; an autoscaler may make one.",
}


def _said(overhead: dict[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(overhead.items())) or "none"
