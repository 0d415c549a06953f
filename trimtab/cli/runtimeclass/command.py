"""`trimtab runtimeclass`: the measured overhead of each RuntimeClass, a RuntimeClass with this overhead, and what teams
pay.

The overhead is the usage of a pod's sandbox without its containers, from the summaries of kubelets.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

import click
import msgspec

from trimtab.admission.audit.stale_overhead import class_overheads
from trimtab.cli.main import SuggestingGroup
from trimtab.cli.options import takes
from trimtab.cli.output import API_VERSION, ReportPart, format_manifests
from trimtab.cli.print_text import print_document, print_text
from trimtab.cli.reporting.columns import Column, ReportView, Section, number_column
from trimtab.cli.reporting.emit import ReportOutput, write_report
from trimtab.cli.runtimeclass.cost import report_cost
from trimtab.cluster.api.core import Node, RuntimeClass
from trimtab.cluster.api.meta import ResourceList, value_or
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.format_count import format_count, join_first
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.reason import NotYet, format_shortage
from trimtab.cluster.resources import is_same_list, pod_requests
from trimtab.cluster.snapshot import Snapshot
from trimtab.inputs import live_cluster
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.flags import SUMMARY
from trimtab.inputs.live_cluster import ClusterOptions
from trimtab.inputs.option import Argument, option
from trimtab.kube.errors import InvalidResponse
from trimtab.policy.cluster_facts import from_snapshot
from trimtab.sizing.cost import SandboxCost, SandboxUse, larger_overhead, sandbox_cost
from trimtab.usage.kubelet import Sandbox, sandboxes_of_summary


class MeasuredClass(ReportPart, frozen=True, kw_only=True):
    """The measurements of one RuntimeClass."""

    name: str
    """The name of the RuntimeClass."""
    pods: int
    """The number of pods that were measured."""
    overhead: dict[str, str]
    """The overhead that the class defines now."""
    measured: dict[str, str] | None
    """The overhead that a pod's sandbox needs, with headroom; null if too few pods were measured."""
    missing: str
    """The measurements that are missing; empty if none is missing."""
    over: list[str]
    """NAMESPACE/POD of pods that used more memory than they request, overhead included, according to at least one of
    the summaries.

    A kubelet with memory pressure evicts these pods first."""
    no_nodes: str | None
    """The reason why no node admits pods of the class; null if a node does, or if the snapshot has no node."""


class RuntimeClassReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab runtimeclass measure`. Published as deploy/schemas/runtime-class-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab runtimeclass measure"
    api_version: str = API_VERSION
    kind: str = "RuntimeClassReport"
    classes: list[MeasuredClass]
    """The RuntimeClasses."""


_MAX_NAMES = 10
_WHY_NO_NODES = {
    "no-label": "no node has the labels that the RuntimeClass selects.",
    "cordoned": "all nodes that the RuntimeClass selects are cordoned.",
    "tainted": "the nodes that the RuntimeClass selects have taints that it does not tolerate; each pod must tolerate "
    "these taints itself.",
    "may-come": "at present no node has the labels that the RuntimeClass selects; an autoscaler may create such a "
    "node.",
}


def _format_amounts(overhead: dict[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(overhead.items())) or "none"


def _describe_classes(report: RuntimeClassReport) -> Iterator[str]:
    for row in report.classes:
        if row.over:
            names = join_first(row.over, _MAX_NAMES)
            yield f"RuntimeClass {row.name}: pods that use more memory than their requests and overhead: {names}"
        if row.no_nodes is not None:
            yield f"{row.name}: {_WHY_NO_NODES[row.no_nodes]}"


_MEASURE_VIEW: ReportView[RuntimeClassReport] = ReportView(
    title="trimtab runtimeclass measure",
    sections=(
        Section(
            key="classes",
            title="The cost of runtimes for each pod",
            rows=lambda report: report.classes,
            columns=(
                Column("RuntimeClass", lambda row: row.name),
                number_column("Pods measured", lambda row: row.pods, "{}", align="left", rank=1),
                Column("Present overhead", lambda row: _format_amounts(row.overhead)),
                Column(
                    "Measured, with headroom",
                    lambda row: _format_amounts(row.measured) if row.measured else row.missing,
                ),
            ),
            name=lambda row: f"RuntimeClass/{row.name}",
            empty=None,
        ),
    ),
    after=_describe_classes,
)


SUMMARIES = SUMMARY.with_help(
    "The output of kubectl get --raw /api/v1/nodes/NODE/proxy/stats/summary. Pass several files for several times."
)


@click.group("runtimeclass", cls=SuggestingGroup)
def verb() -> None:
    """Measure what a sandbox runtime costs per pod, and print it as a RuntimeClass.

    The measured overhead is what pods use in addition to their containers: for the monitor of a virtual machine, or a
    kernel in user space. The command changes nothing; apply the output of `render`.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeClassMeasureOptions:
    """The options of `trimtab runtimeclass measure`."""

    cluster: ClusterOptions
    summaries: Annotated[tuple[str, ...], SUMMARIES]
    output: ReportOutput


@verb.command("measure")
@takes(RuntimeClassMeasureOptions)
def measure_overhead(options: RuntimeClassMeasureOptions) -> None:
    """Show what the pods of each RuntimeClass use in addition to their containers, and the overhead that the class
    defines."""
    snapshot = live_cluster.read_snapshot(options.cluster, ("Pod", "RuntimeClass", "Node"))
    # RuntimeClass → the reason why no node admits its pods, or None if a node does; empty if the snapshot has no
    # nodes.
    overheads = class_overheads((), from_snapshot(snapshot)) if any(True for _ in snapshot.objects_of(Node)) else {}
    reasons = {name: overhead.no_nodes for name, overhead in overheads.items()}
    classes = [
        _measure_class(runtime_class, snapshot, options.summaries, reasons.get(runtime_class.metadata.name))
        for runtime_class in snapshot.objects_of(RuntimeClass)
    ]
    write_report(options.output, RuntimeClassReport(classes=classes), _MEASURE_VIEW)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeClassRenderOptions:
    """The options of `trimtab runtimeclass render`."""

    name: Annotated[str, Argument("RUNTIMECLASS")]
    cluster: ClusterOptions
    summaries: Annotated[tuple[str, ...], SUMMARIES]
    lower: Annotated[
        bool, option("--lower", help="Print the measured overhead even if the RuntimeClass has a higher overhead.")
    ] = False


@verb.command("render")
@takes(RuntimeClassRenderOptions)
def render_runtime_class(options: RuntimeClassRenderOptions) -> None:
    """Print the RuntimeClass with the measured overhead.

    If the class defines a larger overhead, the larger one is printed, until pods are created again; --lower prints the
    measured one.
    """
    name = options.name
    snapshot = live_cluster.read_snapshot(options.cluster, ("Pod", "RuntimeClass"))
    runtime_class = next((shape for shape in snapshot.objects_of(RuntimeClass) if shape.metadata.name == name), None)
    if runtime_class is None:
        raise UsageError([ConfigError(file="command line", expected="a RuntimeClass of the snapshot", got=name)])
    cost = sandbox_cost(_sandbox_uses(name, snapshot, options.summaries))
    if isinstance(cost, NotYet):
        raise UsageError([ConfigError(file=name, expected=cost.need, got=cost.have, todo=cost.reason.code.todo)])
    overhead: ResourceList = (
        dict(cost.pod_fixed) if options.lower else larger_overhead(cost.pod_fixed, runtime_class.overhead.pod_fixed)
    )
    fields = msgspec.to_builtins(runtime_class)
    scheduling = {key: value for key, value in fields.get("scheduling", {}).items() if value}
    print_document(
        format_manifests(
            [
                {
                    "apiVersion": "node.k8s.io/v1",
                    "kind": "RuntimeClass",
                    "metadata": {"name": runtime_class.metadata.name},
                    "handler": runtime_class.handler,
                    "overhead": {"podFixed": overhead},
                    **({"scheduling": scheduling} if scheduling else {}),
                }
            ]
        )
    )
    for line in _note_outdated_pods(snapshot, name, overhead):
        print_text(line, err=True)


verb.add_command(report_cost)


def _note_outdated_pods(snapshot: Snapshot, name: str, overhead: ResourceList) -> Iterator[str]:
    others = sum(not is_same_list(value_or(pod.spec.overhead, {}), overhead) for pod in _active_pods(snapshot, name))
    if others:
        pods = format_count(others, "running pod keeps", "running pods keep")
        yield f"{pods} a different overhead of RuntimeClass {name} until the pods are recreated."


def _active_pods(snapshot: Snapshot, name: str) -> Iterator[Pod]:
    for pod in snapshot.objects_of(Pod):
        if value_or(pod.spec.runtime_class_name, "") == name and pod.status.phase not in ("Succeeded", "Failed"):
            yield pod


def _sandbox_uses(name: str, snapshot: Snapshot, summaries: tuple[str, ...]) -> Iterator[SandboxUse]:
    pods = Counter((pod.metadata.namespace or "default", pod.metadata.name) for pod in _active_pods(snapshot, name))
    for sandbox in _read_sandboxes(summaries):
        if (sandbox.namespace, sandbox.pod) in pods:
            yield SandboxUse(sandbox.cores, sandbox.memory_bytes)


def _read_sandboxes(summaries: tuple[str, ...]) -> Iterator[Sandbox]:
    for file, content in live_cluster.read_paths(summaries, (".json",)):
        try:
            yield from sandboxes_of_summary(content)
        except InvalidResponse as error:
            raise UsageError([ConfigError(file=file, expected="a kubelet's summary", got=str(error))]) from None


def _memory_request(pod: Pod) -> int | None:
    """Returns the pod's memory request including overhead, in bytes, or None if it cannot be read."""
    try:
        return pod_requests(pod.spec).get("memory", 0)
    except NotAQuantity:
        return None


def _measure_class(
    runtime_class: RuntimeClass, snapshot: Snapshot, summaries: tuple[str, ...], no_nodes: str | None
) -> MeasuredClass:
    uses = list(_sandbox_uses(runtime_class.metadata.name, snapshot, summaries))
    cost = sandbox_cost(uses)
    # NAMESPACE/POD of the pods that use more memory than they request, overhead included. Under memory pressure, the
    # kubelet evicts these pods first (pkg/kubelet/eviction, `exceedMemoryRequests`).
    requests = {
        (pod.metadata.namespace or "default", pod.metadata.name): _memory_request(pod)
        for pod in _active_pods(snapshot, runtime_class.metadata.name)
    }
    pods = {
        f"{sandbox.namespace}/{sandbox.pod}"
        for sandbox in _read_sandboxes(summaries)
        if (request := requests.get((sandbox.namespace, sandbox.pod))) is not None
        and sandbox.pod_memory_bytes > request
    }
    return MeasuredClass(
        name=runtime_class.metadata.name,
        pods=len(uses),
        overhead={key: str(value) for key, value in runtime_class.overhead.pod_fixed.items()},
        measured=cost.pod_fixed if isinstance(cost, SandboxCost) else None,
        missing=format_shortage(cost.have, cost.need) if isinstance(cost, NotYet) else "",
        over=sorted(pods),
        no_nodes=no_nodes,
    )
