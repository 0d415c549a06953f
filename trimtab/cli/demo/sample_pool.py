"""A sample pool of nine nodes whose pods fit on four nodes, with its plan and its simulation."""

import json
from collections.abc import Iterator
from typing import Any

from rich.console import Console, RenderableType
from rich.text import Text

from trimtab.cli.reporting.draw import build_grid
from trimtab.cli.reports import plan as report_module
from trimtab.cli.reports.node_costs import Fill, NodeReport, format_saving
from trimtab.cli.reports.plan import PlanReport
from trimtab.cli.reports.plan_table import GREY
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.cluster_state import snapshot_inventory
from trimtab.cluster.format_count import format_count
from trimtab.cluster.resizable_pod import ResizablePod, read_resizable_pods
from trimtab.cluster.snapshot import build_snapshot
from trimtab.cluster.wanted_requests import WantedRequest, WantedRequests
from trimtab.cluster.yaml_documents import read_documents
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import make_plan
from trimtab.compaction.resize.plan_resizes import plan_with_resizes
from trimtab.compaction.resize.propose import ResizeContext, propose_resizes
from trimtab.compaction.simulate import Scheduler, simulate_rounds
from trimtab.inputs import pools
from trimtab.inputs.plan_inputs import PlanInputs
from trimtab.policy.reasons import FROM_USAGE
from trimtab.scheduling.cluster_model import build_cluster_model as world_of

WIDTH = 24
_NODES, _CREATED = 9, "2026-01-02T00:00:00Z"
_WORKLOADS = {"web": (12, 250, 512), "api": (9, 400, 768), "worker": (10, 300, 1024), "search": (4, 700, 2048)}
"""Name → the number of pods, and the millicores and Mi that each requests."""


def draw_sample_pool(console: Console) -> int:
    """Draw the pool before and after the plan, then the result if the scheduler spreads pods. Returns the number of
    nodes after the plan."""
    inputs = build_inputs()
    model = world_of(inputs.inventory)
    plan_report = report_module.build_report(inputs, model, make_plan(model, inputs.pools, inputs.context), [])
    console.print(Text("\n2. A plan frees nodes: the pool before and after (cpu requested)", style="bold"))
    console.print(_nodes_table(plan_report))
    waves, evictions = format_count(len(plan_report.waves), "wave"), format_count(plan_report.evictions, "eviction")
    console.print(
        Text.assemble(
            (f"{format_count(plan_report.nodes_before, 'node')} → {plan_report.nodes_after}", "bold green"),
            f" in {waves}, {evictions}, saving {format_saving(plan_report.saves)}.",
        )
    )
    simulation = simulate_rounds(inputs.inventory, inputs.pools, Scheduler.SPREAD, inputs.context, marked=True)
    for blocker in plan_report.blockers:
        console.print(f"{blocker.node} stays because of {blocker.pod} ({blocker.reason.code}).", highlight=False)
    console.print(
        "With a simulated scheduler that spreads pods (`simulate --marked`): "
        f"{format_count(simulation.nodes_before, 'node')} → {simulation.nodes_after} in "
        f"{format_count(len(simulation.rounds), 'round')}, {format_count(simulation.moved_twice, 'pod')} moved twice, "
        f"{format_count(simulation.pending_successors, 'pod')} left pending.",
        highlight=False,
    )
    _draw_resizes(console, inputs)
    return plan_report.nodes_after


USED_PERCENT = 65
"""The usage of the pool's containers in percent of their requests, in the part of the demo that resizes pods."""


def _draw_resizes(console: Console, inputs: PlanInputs) -> None:
    """Draw how much more is freed if a policy with `running: resize` adapts the requests of pods to their usage."""
    pods = build_snapshot(read_documents("pool.json", build_pool_list()).documents).snapshot.objects_of(Pod)
    advice = propose_resizes(
        read_resizable_pods(pods),
        _wanted_requests,
        inputs.inventory,
        inputs.pools,
        context=ResizeContext(assumes_kubelets=True),
    )
    resize_plan = plan_with_resizes(inputs.inventory, inputs.pools, advice.proposals, inputs.context)
    after = len(inputs.inventory.nodes) - len(resize_plan.plan.all_steps)
    console.print(
        f"With requests reduced to the {USED_PERCENT} % that the pods use (`running: resize`): "
        f"{format_count(len(inputs.inventory.nodes), 'node')} → {after}, "
        f"{format_count(len(resize_plan.resizes), 'resize')}, "
        f"{format_count(len(resize_plan.plan.all_moves), 'eviction')}.",
        highlight=False,
    )


def _wanted_requests(pod: ResizablePod) -> WantedRequests | None:
    cpu = pod.containers[0].request("cpu")
    if pod.owner is None or cpu is None:
        return None
    reason = FROM_USAGE(f"the 95th percentile is {cpu * USED_PERCENT // 100}m")
    wanted = WantedRequest(amount=cpu * USED_PERCENT // 100, policy="demo", reason=reason)
    return WantedRequests(requests={(pod.containers[0].name, "cpu"): wanted})


def build_inputs() -> PlanInputs:
    """Returns the sample pool in the form of a plan's inputs."""
    reading = read_documents("pool.json", build_pool_list())
    inventory = snapshot_inventory(build_snapshot(reading.documents).snapshot)
    pool_reading = pools.find_pools(None, reading.documents, inventory, ())
    return PlanInputs(
        inventory=inventory, pools=pool_reading.pools, context=PlanningContext(), notes=pool_reading.notes
    )


def _nodes_table(report: PlanReport) -> RenderableType:
    waves_by_node = {step.node: wave.number for wave in report.waves for step in wave.nodes}

    def draw_after(node: NodeReport) -> Text:
        if node.after:
            return _requests_bar(node, node.after)
        return Text(f"removed in wave {waves_by_node[node.name]}", style="yellow")

    return build_grid(
        [
            (
                node.name,
                _requests_bar(node, node.before),
                "→",
                draw_after(node),
            )
            for node in report.nodes
        ]
    )


def _requests_bar(node: NodeReport, fill: Fill) -> Text:
    full = fill.cpu * WIDTH // node.cpu
    share = f" {fill.cpu * 100 // node.cpu:>3} %"
    return Text.assemble(("█" * full, "green"), ("░" * (WIDTH - full), GREY), share)


def build_pool_list() -> bytes:
    """Returns the pool's objects as `kubectl get nodes,pods,pdb -A -o json` prints them."""
    # A PodDisruptionBudget that lets two of the nine api pods be unavailable.
    healthy = {"currentHealthy": 9, "desiredHealthy": 7, "expectedPods": 9, "disruptionsAllowed": 2}
    items = [
        *map(_build_node, range(_NODES)),
        *_build_pods(),
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "api", "namespace": "shop", "generation": 1},
            "spec": {"maxUnavailable": 2, "selector": {"matchLabels": {"app": "api"}}},
            "status": {**healthy, "observedGeneration": 1},
        },
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=1).encode()


_FIRST_HOUR, _HOURS = 1_767_312_000, 14 * 24
"""The start of the usage in seconds since 1970, which is `_CREATED`, and its length."""
_CALM_PERCENT, _BUSY_HOURS = 40, range(9, 18)
"""The cpu usage outside the busy hours of a day, in percent of the requests."""


def build_usage() -> bytes:
    """Returns two weeks of usage of the workloads' pods as CSV, a line for each pod and hour: cores and bytes."""
    lines = ["timestamp,namespace,pod,container,cpu,memory"]
    for hour in range(_HOURS):
        cpu_percent = USED_PERCENT if hour % 24 in _BUSY_HOURS else _CALM_PERCENT
        lines += [
            f"{_FIRST_HOUR + hour * 3600},shop,{app}-{number},app,{cpu * cpu_percent / 100_000},"
            f"{(memory << 20) * USED_PERCENT // 100}"
            for app, (pods, cpu, memory) in _WORKLOADS.items()
            for number in range(pods)
        ]
    return "\n".join([*lines, ""]).encode()


def _build_node(number: int) -> dict[str, Any]:
    name = f"shop-{number + 1}"
    labels = {
        "kubernetes.io/hostname": name,
        "trimtab.dev/pool": "shop",
        "node.kubernetes.io/instance-type": "m5.xlarge",
        "topology.kubernetes.io/zone": f"zone-{'abc'[number % 3]}",
        "topology.kubernetes.io/region": "us-east-1",
    }
    allocatable = {"cpu": "3920m", "memory": "15Gi", "pods": "58"}
    status = {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]}
    metadata = {"name": name, "labels": labels, "creationTimestamp": _CREATED}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {}, "status": status}


def _build_pods() -> Iterator[dict[str, Any]]:
    """Yields the workloads' pods, spread over the nodes, and one pod without an owner, which may not move."""
    count = 0
    for app, (pods, cpu, memory) in _WORKLOADS.items():
        for number in range(pods):
            yield _build_pod(f"{app}-{number}", app, count % _NODES, cpu, memory)
            count += 1
    yield _build_pod("debug-shell", "", 4, 100, 128)


def _build_pod(name: str, app: str, node: int, cpu: int, memory: int) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": "shop",
        "uid": name,
        "labels": {"app": app},
        "creationTimestamp": _CREATED,
    }
    if app:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": app, "controller": True}
        metadata["ownerReferences"] = [owner]
    requests = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
    spec = {"nodeName": f"shop-{node + 1}", "containers": [{"name": "app", "resources": {"requests": requests}}]}
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}
