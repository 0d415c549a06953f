"""A small pool, compacted before one's eyes: nine nodes where four will do."""

import json
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from trimtab.cli.plan import pools
from trimtab.cli.plan import report as report_module
from trimtab.cli.plan.cost import format_count, format_saving
from trimtab.cli.plan.inputs import PlanInputs
from trimtab.cli.plan.report import Fill, NodeReport, PlanReport
from trimtab.cli.plan.table import GREY
from trimtab.cluster.cluster_state import snapshot_inventory
from trimtab.cluster.snapshot import build
from trimtab.cluster.yaml_documents import read
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import plan
from trimtab.compaction.simulate import Scheduler, simulate
from trimtab.scheduling.cluster_model import build as world_of

WIDTH = 24
_NODES, _MADE = 9, "2026-01-02T00:00:00Z"
_APPS = {"web": (12, 250, 512), "api": (9, 400, 768), "worker": (10, 300, 1024), "search": (4, 700, 2048)}
"""Name → pods, millicores and Mi that each asks for."""


def show(console: Console) -> None:
    """The pool before and after, then what a scheduler that spreads would make of it."""
    shop = asked()
    world = world_of(shop.inventory)
    report = report_module.build_report(shop, world, plan(world, shop.pools, shop.now), [])
    console.print(Text("\nAnd a pool of nodes, compacted (cpu requested, before and after)", style="bold"))
    console.print(_bars(report))
    console.print(
        Text.assemble((f"{report.nodes_before} nodes → {report.nodes_after}", "bold green"), _comes_to(report))
    )
    made = simulate(shop.inventory, shop.pools, Scheduler.SPREAD, shop.now, marked=True)
    console.print(
        f"Simulated with a scheduler that spreads: {made.nodes_before} nodes → {made.nodes_after} in "
        f"{format_count(len(made.rounds), 'round')}, {made.moved_twice} pods moved twice, {made.waiting} left waiting.",
        highlight=False,
    )


def asked() -> PlanInputs:
    """The pool as `trimtab plan` reads it."""
    reading = read("pool.json", snapshot())
    inventory = snapshot_inventory(build(reading.documents).snapshot)
    chosen = pools.find_pools(None, reading.documents, inventory, ())
    return PlanInputs(inventory=inventory, pools=chosen.pools, now=PlanningContext(), notes=chosen.notes)


def _comes_to(report: PlanReport) -> str:
    waves, evictions = format_count(len(report.waves), "wave"), format_count(report.evictions, "eviction")
    return f" in {waves}, {evictions}, saving {format_saving(report.saves)}. No budget is broken on the way."


def _bars(report: PlanReport) -> Table:
    going = {step.node: wave.number for wave in report.waves for step in wave.nodes}
    kept = {blocker.node: blocker for blocker in report.blockers}
    table = Table.grid(padding=(0, 2))
    for node in report.nodes:
        after = _bar(node, node.after) if node.after else Text(f"goes in wave {going[node.name]}", style="yellow")
        why = f"stays: {kept[node.name].pod}, {kept[node.name].reason.code}" if node.name in kept else ""
        table.add_row(node.name, _bar(node, node.before), "→", after, Text(why, style=GREY))
    return table


def _bar(node: NodeReport, fill: Fill) -> Text:
    full = fill.cpu * WIDTH // node.cpu
    share = f" {fill.cpu * 100 // node.cpu:>3} %"
    return Text.assemble(("█" * full, "green"), ("░" * (WIDTH - full), GREY), share)


def snapshot() -> bytes:
    """What kubectl get nodes,pods,pdb -A -o json would print of it."""
    items = [*map(_node, range(_NODES)), *_pods(), _budget()]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=1).encode()


def _node(number: int) -> dict[str, Any]:
    name = f"shop-{number + 1}"
    labels = {
        "kubernetes.io/hostname": name, "trimtab.dev/pool": "shop", "node.kubernetes.io/instance-type": "m5.xlarge",
        "topology.kubernetes.io/zone": f"zone-{'abc'[number % 3]}",
        "topology.kubernetes.io/region": "us-east-1",
    }  # fmt: skip
    allocatable = {"cpu": "3920m", "memory": "15Gi", "pods": "58"}
    status = {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]}
    metadata = {"name": name, "labels": labels, "creationTimestamp": _MADE}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {}, "status": status}


def _pods() -> Iterator[dict[str, Any]]:
    """Spread over the nodes, as a scheduler leaves them; and one pod that nobody would make again."""
    count = 0
    for app, (pods, cpu, memory) in _APPS.items():
        for number in range(pods):
            yield _pod(f"{app}-{number}", app, count % _NODES, cpu, memory)
            count += 1
    yield _pod("debug-shell", "", 4, 100, 128)


def _pod(name: str, app: str, node: int, cpu: int, memory: int) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "name": name, "namespace": "shop", "uid": name, "labels": {"app": app}, "creationTimestamp": _MADE,
    }  # fmt: skip
    if app:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": app, "controller": True}
        metadata["ownerReferences"] = [owner]
    requests = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
    spec = {"nodeName": f"shop-{node + 1}", "containers": [{"name": "app", "resources": {"requests": requests}}]}
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def _budget() -> dict[str, Any]:
    """Two of nine api pods may be missing at a time."""
    healthy = {"currentHealthy": 9, "desiredHealthy": 7, "expectedPods": 9, "disruptionsAllowed": 2}
    return {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "api", "namespace": "shop", "generation": 1},
        "spec": {"maxUnavailable": 2, "selector": {"matchLabels": {"app": "api"}}},
        "status": {**healthy, "observedGeneration": 1},
    }  # fmt: skip
