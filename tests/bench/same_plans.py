"""Does this commit plan as that one does? Every answer compared by its hash.

    make plans-against COMMIT=da76598 [WORLDS=100]

For a change that is to make plans cheaper and leave them as they are. Drawn clusters with every kind of constraint,
generated ones, the published one and one that is 88 % full are planned with every setting that steers a search, by this
tree's code and by the other commit's: plans, first waves, simulations, and whether single nodes can go. Answers that
differ are named; the last line is `RESULT questions=… differ=…`.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.bench.bench_against import ROOT, checked_out
from tests.bench.full_cluster import full_cluster
from tests.cluster_of import HOST, NOW, SAFE, ZONE, apart, budget, node, pod, spread

SHARED = Path(os.environ.get("TRIMTAB_SHARED", "../shared"))
GENERATED = ((100, 2), (120, 3), (400, 4), (1000, 1), (1000, 11))
"""(nodes, seed)."""
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

ASKED = """
import hashlib, re, sys
from dataclasses import replace
from pathlib import Path
import msgspec
from trimtab.cluster.pool import Goal, Headroom, Pool, Spare, pool_name, preset
from trimtab.cluster.snapshot import load
from trimtab.compaction.plan import plan
from trimtab.compaction.simulate import Scheduler, simulate
try:
    from trimtab.cluster.cluster_autoscaler import Autoscaler, NodeGroupStatus
    from trimtab.cluster.cluster_state import snapshot_inventory
    from trimtab.compaction.candidates import PlanningContext
    from trimtab.compaction.plan import first_wave
    from trimtab.compaction.plan_types import Observations
    from trimtab.compaction.search.problem import prepare
    from trimtab.scheduling.cluster_model import build
    from trimtab.scheduling.drain_simulation import DrainSimulation
except ImportError:  # as all this was called up to a0a2e91
    from trimtab.cluster.autoscaler import Autoscaler, Group as NodeGroupStatus
    from trimtab.cluster.inventory import take as snapshot_inventory
    from trimtab.compaction.candidates import Now as PlanningContext
    from trimtab.compaction.observations import Observations
    from trimtab.compaction.search.first import first_wave
    from trimtab.compaction.search.prepare import prepare
    from trimtab.packing.drain import Drains as DrainSimulation
    from trimtab.packing.world import build

NOW = int(sys.argv[2])
ALL = Pool(name="all", everything=True, min_nodes=0, single_replicas=True)

def told(name, value):
    print(name, hashlib.sha256(msgspec.json.encode(value, enc_hook=str, order="deterministic")).hexdigest()[:16])

def settings(inventory):
    names = sorted({pool_name(node) for node in inventory.nodes} - {""})
    yield "all", [ALL]
    yield "nodes", [replace(ALL, goal=Goal.NODES)]
    yield "keen", [replace(preset("keen", "all"), everything=True)]
    yield "room", [replace(ALL, headroom=Headroom(percent=12, largest_pod=True), spare=Spare.NODE, least_gain=40)]
    yield "zone", [replace(ALL, spare=Spare.ZONE, min_per_zone=1, under={"cpu": 75}, jobs=True)]
    if names:
        yield "careful", [preset("careful", name) for name in names]
        yield "balanced", [preset("balanced", name) for name in names]
        goals = (Goal.NODES, Goal.COST)
        yield "mixed", [replace(preset("balanced", n), goal=goals[i % 2], min_nodes=2) for i, n in enumerate(names)]

for path in sorted(Path(sys.argv[1]).iterdir()):
    reading = load([(path.name, path.read_bytes())])
    assert not reading.mistakes, (path.name, reading.mistakes[:3])
    inventory = snapshot_inventory(reading.snapshot)
    is_small = len(inventory.nodes) < 50
    world = build(inventory)
    again = {k: v * 3 // 2 for k, v in {"cpu": 300, "memory": 1 << 28}.items()}
    some = inventory.nodes[0].name
    moved = frozenset(pod.key for pod in inventory.pods[::7])
    group = NodeGroupStatus(name="pool-a", healthy=True, scale_up="", min_size=1)
    scaler = Autoscaler(updated=NOW, groups=(group,), threshold=45)
    moments = {"now": PlanningContext(), "at": PlanningContext(at=NOW)}
    if is_small:
        moments |= {
            "scaled": PlanningContext(at=NOW, autoscaler=scaler),
            "draining": PlanningContext(at=NOW, observations=Observations(draining={some: "all"}), moved=moved),
        }
    for said, pools in settings(inventory):
        for when, now in moments.items():
            name = f"{path.name} {said} {when}"
            told(f"{name} plan", plan(world, pools, now))
            told(f"{name} first", first_wave(world, pools, now, close=3 if is_small else 60))
        if is_small:
            told(f"{path.name} {said} again", plan(build(inventory, lambda pod: again), pools))
            told(f"{path.name} {said} lazy", plan(world, pools, effort=0))
            for scheduler in Scheduler:
                told(f"{path.name} {said} {scheduler}", simulate(inventory, pools, scheduler).rounds)
    made, drains = prepare(world, [ALL], PlanningContext()), DrainSimulation(world)
    can = [drains.can(node, made.loads[node]) for node in made.candidates[:200]]
    places = [drains.where(node, made.loads[node]) for node in made.candidates[:20]]
    places = [re.sub("[A-Za-z]+[(]", "(", str(place)) for place in places]  # whatever the classes are called
    told(f"{path.name} single nodes", [can, places])
"""


def main() -> None:
    commit, worlds = sys.argv[1], int(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder, checked_out(commit) as other:
        for name, content in clusters(worlds).items():
            (Path(folder) / name).write_bytes(content)
        ours, theirs = _answers(folder, ROOT), _answers(folder, other)
    assert ours.keys() == theirs.keys()
    differ = sorted(name for name in ours if ours[name] != theirs[name])
    for name in differ[:40]:
        print(f"differs: {name}")
    print(f"RESULT questions={len(ours)} differ={len(differ)}")
    sys.exit(1 if differ else 0)


def clusters(worlds: int) -> dict[str, bytes]:
    """Name → a List in JSON."""
    found = {f"drawn-{seed:04}.json": _list(drawn(seed)) for seed in range(worlds)}
    for nodes, seed in GENERATED:
        command = [sys.executable, SHARED / "bench/synthetic_cluster.py", "--nodes", str(nodes), "--seed", str(seed)]
        found[f"generated-{nodes}-{seed}.json"] = subprocess.run(command, check=True, capture_output=True).stdout
    found["full.json"] = full_cluster(SHARED)
    found["openb.json"] = gzip.decompress((SHARED / "data/clusters/openb-310-spread.json.gz").read_bytes())
    return found


def _list(items: list[Any]) -> bytes:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode()


def drawn(seed: int) -> list[Any]:
    """2 to 20 nodes of two pools in three zones, up to 30 workloads that use every rule of the scheduler."""
    by = random.Random(seed)
    names = [f"n{at:02}" for at in range(by.randint(2, 20))]
    taint = {"key": "team", "value": "x", "effect": "NoSchedule"}
    items: list[Any] = []
    for at, name in enumerate(names):
        labels = {ZONE: f"z{at % by.randint(1, 3)}", "cloud.google.com/gke-nodepool": by.choice(("a", "a", "b")),
                  "disk": by.choice(("fast", "slow"))}  # fmt: skip
        items.append(
            node(
                name, by.choice(("2", "4", "8", "16")), by.choice(("8Gi", "16Gi", "32Gi")), by.choice((12, 30, 110)),
                labels=labels, taints=[taint] if by.random() < 0.1 else [], cordoned=by.random() < 0.04,
                ready=by.random() > 0.03, extra={"nvidia.com/gpu": "2"} if by.random() < 0.15 else {},
            )
        )  # fmt: skip
    for number in range(by.randint(0, 30)):
        items += _workload(by, f"w{number}", names)
    return items


def _workload(by: random.Random, app: str, names: list[str]) -> list[Any]:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": by.choice((HOST, ZONE))}
    fast = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["fast"]}]}
    spec = by.choice(
        (
            {}, {}, {}, {}, apart(app), apart(f"w{by.randint(0, 9)}", by.choice((HOST, ZONE))), spread(app),
            spread(app, ZONE), spread(app, ZONE, nodeTaintsPolicy="Honor"), spread(app, HOST, maxSkew=2, minDomains=3),
            spread(app, ZONE, whenUnsatisfiable="ScheduleAnyway"),
            {"tolerations": [{"key": "team", "operator": "Exists"}]}, {"nodeSelector": {"disk": "fast"}},
            {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 7, "preference": fast}]}}},
            {"affinity": {"podAffinity": {REQUIRED: [term]}}},
            {"affinity": {"podAntiAffinity": {PREFERRED: [{"weight": 50, "podAffinityTerm": term}]}}},
            {"volumes": [{"name": "scratch", "emptyDir": {}}]}, {"schedulerName": by.choice(("other", "volcano"))},
            {"priority": by.choice((-20, 2_000_000_000))},
        )
    )  # fmt: skip
    more: dict[str, Any] = {"spec": spec, "owner": by.choice(("ReplicaSet",) * 12 + ("", "Job", "DaemonSet", "Odd"))}
    if by.random() < 0.08:
        more["annotations"] = {SAFE: by.choice(("false", "true"))}
    if by.random() < 0.06:
        more["ports"] = [{"containerPort": 80, "hostPort": 8080, "protocol": "TCP"}]
    if by.random() < 0.06:
        more["extra"] = {"nvidia.com/gpu": "1"}
    cpu = by.choice(("", "50m", "100m", "250m", "500m", "1", "1900m", "3"))
    memory = by.choice(("", "64Mi", "256Mi", "512Mi", "2Gi", "5Gi"))
    items = []
    for at in range(by.randint(1, 12)):
        odd: dict[str, Any] = {"ready": by.random() > 0.02}
        if by.random() < 0.01:
            odd["deleted"] = "2026-01-02T23:59:50Z"
        place = by.choice(names) if by.random() > 0.01 else ""
        items.append(pod(f"{app}-{at}", place, cpu, memory, **more, **odd))
    if by.random() < 0.4:
        items.append(budget(app, by.randint(0, 3)))
    return items


def _answers(folder: str, tree: Path) -> dict[str, str]:
    """Question → hash of what this tree's code answers."""
    environ = {**os.environ, "PYTHONPATH": str(tree)}
    done = subprocess.run(
        [sys.executable, "-c", ASKED, folder, str(NOW)], cwd=tree, env=environ, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{tree}: {done.stderr}")
    return dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())


if __name__ == "__main__":
    main()
