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

from tests.bench.bench_against import FIRST_OF, ROOT, checked_out
from tests.bench.bench_data import OPENB_SNAPSHOT
from tests.bench.full_cluster import full_cluster
from tests.bench.synthetic_cluster import encode_list, generate_cluster
from tests.cluster_of import HOST, NOW, SAFE, ZONE, apart, budget, node, pod, spread

GENERATED = ((100, 2), (120, 3), (400, 4), (1000, 1), (1000, 11))
"""(nodes, seed)."""
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

ASKED = (
    FIRST_OF
    + """
import hashlib, inspect, re, sys
from dataclasses import replace
from pathlib import Path
import msgspec
from trimtab.cluster.pool import Goal, Headroom, Pool, Spare, pool_name
from trimtab.compaction.simulate import Scheduler

pool_from_preset = first_of("trimtab.cluster.pool:pool_from_preset", "trimtab.cluster.pool:preset")
load_snapshot = first_of("trimtab.cluster.snapshot:load_snapshot", "trimtab.cluster.snapshot:load")
make_plan = first_of("trimtab.compaction.plan:make_plan", "trimtab.compaction.plan:plan")
simulate_rounds = first_of("trimtab.compaction.simulate:simulate_rounds", "trimtab.compaction.simulate:simulate")
Autoscaler = first_of("trimtab.cluster.cluster_autoscaler:Autoscaler", "trimtab.cluster.autoscaler:Autoscaler")
NodeGroupStatus = first_of(
    "trimtab.cluster.cluster_autoscaler:NodeGroupStatus", "trimtab.cluster.autoscaler:Group"
)
snapshot_inventory = first_of("trimtab.cluster.cluster_state:snapshot_inventory", "trimtab.cluster.inventory:take")
PlanningContext = first_of("trimtab.compaction.candidates:PlanningContext", "trimtab.compaction.candidates:Now")
first_wave = first_of("trimtab.compaction.plan:first_wave", "trimtab.compaction.search.first:first_wave")
Observations = first_of(
    "trimtab.compaction.plan_types:Observations", "trimtab.compaction.observations:Observations"
)
prepare_problem = first_of(
    "trimtab.compaction.search.problem:prepare_problem", "trimtab.compaction.search.problem:prepare",
    "trimtab.compaction.search.prepare:prepare",
)
build_cluster_model = first_of(
    "trimtab.scheduling.cluster_model:build_cluster_model", "trimtab.scheduling.cluster_model:build",
    "trimtab.packing.world:build",
)
DrainSimulation = first_of(
    "tests.bench.node_drains:DrainSimulation", "trimtab.scheduling.drain_simulation:DrainSimulation",
    "trimtab.packing.drain:Drains",
)

def member_of(it, *names):
    '''The first of these that it has.'''
    return getattr(it, next(name for name in names if hasattr(it, name)))

def context(**given):
    known = inspect.signature(PlanningContext).parameters
    older = {"now": "at", "moved_pods": "moved"}
    return PlanningContext(**{name if name in known else older[name]: value for name, value in given.items()})

NOW = int(sys.argv[2])
ALL = Pool(name="all", everything=True, min_nodes=0, single_replicas=True)

def told(name, value):
    print(name, hashlib.sha256(msgspec.json.encode(value, enc_hook=str, order="deterministic")).hexdigest()[:16])

def settings(inventory):
    names = sorted({pool_name(node) for node in inventory.nodes} - {""})
    yield "all", [ALL]
    yield "nodes", [replace(ALL, goal=Goal.NODES)]
    yield "keen", [replace(pool_from_preset("keen", "all"), everything=True)]
    yield "room", [replace(ALL, headroom=Headroom(percent=12, largest_pod=True), spare=Spare.NODE, least_gain=40)]
    yield "zone", [replace(ALL, spare=Spare.ZONE, min_per_zone=1, under={"cpu": 75}, jobs=True)]
    if names:
        yield "careful", [pool_from_preset("careful", name) for name in names]
        yield "balanced", [pool_from_preset("balanced", name) for name in names]
        goals = (Goal.NODES, Goal.COST)
        mixed = [pool_from_preset("balanced", name) for name in names]
        yield "mixed", [replace(pool, goal=goals[i % 2], min_nodes=2) for i, pool in enumerate(mixed)]

for path in sorted(Path(sys.argv[1]).iterdir()):
    reading = load_snapshot([(path.name, path.read_bytes())])
    assert not reading.mistakes, (path.name, reading.mistakes[:3])
    inventory = snapshot_inventory(reading.snapshot)
    is_small = len(inventory.nodes) < 50
    world = build_cluster_model(inventory)
    again = {k: v * 3 // 2 for k, v in {"cpu": 300, "memory": 1 << 28}.items()}
    some = inventory.nodes[0].name
    moved = frozenset(pod.key for pod in inventory.pods[::7])
    group = NodeGroupStatus(name="pool-a", healthy=True, scale_up="", min_size=1)
    scaler = Autoscaler(updated=NOW, groups=(group,), threshold=45)
    moments = {"now": context(), "at": context(now=NOW)}
    if is_small:
        moments |= {
            "scaled": context(now=NOW, autoscaler=scaler),
            "draining": context(now=NOW, observations=Observations(draining={some: "all"}), moved_pods=moved),
        }
    for said, pools in settings(inventory):
        for when, now in moments.items():
            name = f"{path.name} {said} {when}"
            told(f"{name} plan", make_plan(world, pools, now))
            told(f"{name} first", first_wave(world, pools, now, close=3 if is_small else 60))
        if is_small:
            told(f"{path.name} {said} again", make_plan(build_cluster_model(inventory, lambda pod: again), pools))
            told(f"{path.name} {said} lazy", make_plan(world, pools, effort=0))
            for scheduler in Scheduler:
                told(f"{path.name} {said} {scheduler}", simulate_rounds(inventory, pools, scheduler).rounds)
    made, drains = prepare_problem(world, [ALL], context()), DrainSimulation(world)
    pods_to_move = member_of(made, "pods_to_move", "loads")
    can_drain, place_pods = member_of(drains, "can_drain", "can"), member_of(drains, "place_pods", "where")
    can = [can_drain(node, pods_to_move[node]) for node in made.candidates[:200]]
    places = [place_pods(node, pods_to_move[node]) for node in made.candidates[:20]]
    places = [re.sub("[A-Za-z]+[(]", "(", str(place)) for place in places]  # whatever the classes are called
    told(f"{path.name} single nodes", [can, places])
"""
)


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
    results = {f"drawn-{seed:04}.json": _list(drawn(seed)) for seed in range(worlds)}
    for nodes, seed in GENERATED:
        results[f"generated-{nodes}-{seed}.json"] = encode_list(generate_cluster(nodes, seed=seed))
    results["full.json"] = full_cluster()
    results["openb.json"] = gzip.decompress(OPENB_SNAPSHOT.read_bytes())
    return results


def _list(items: list[Any]) -> bytes:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode()


def drawn(seed: int) -> list[Any]:
    """2 to 20 nodes of two pools in three zones, up to 30 workloads that use every rule of the scheduler."""
    by = random.Random(seed)
    names = [f"n{at:02}" for at in range(by.randint(2, 20))]
    taint = {"key": "team", "value": "x", "effect": "NoSchedule"}
    items: list[Any] = []
    for at, name in enumerate(names):
        labels = {
            ZONE: f"z{at % by.randint(1, 3)}",
            "cloud.google.com/gke-nodepool": by.choice(("a", "a", "b")),
            "disk": by.choice(("fast", "slow")),
        }
        items.append(
            node(
                name,
                by.choice(("2", "4", "8", "16")),
                by.choice(("8Gi", "16Gi", "32Gi")),
                by.choice((12, 30, 110)),
                labels=labels,
                taints=[taint] if by.random() < 0.1 else [],
                cordoned=by.random() < 0.04,
                ready=by.random() > 0.03,
                extra={"nvidia.com/gpu": "2"} if by.random() < 0.15 else {},
            )
        )
    for number in range(by.randint(0, 30)):
        items += _workload(by, f"w{number}", names)
    return items


def _workload(by: random.Random, app: str, names: list[str]) -> list[Any]:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": by.choice((HOST, ZONE))}
    fast = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["fast"]}]}
    spec = by.choice(
        (
            {},
            {},
            {},
            {},
            apart(app),
            apart(f"w{by.randint(0, 9)}", by.choice((HOST, ZONE))),
            spread(app),
            spread(app, ZONE),
            spread(app, ZONE, nodeTaintsPolicy="Honor"),
            spread(app, HOST, maxSkew=2, minDomains=3),
            spread(app, ZONE, whenUnsatisfiable="ScheduleAnyway"),
            {"tolerations": [{"key": "team", "operator": "Exists"}]},
            {"nodeSelector": {"disk": "fast"}},
            {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 7, "preference": fast}]}}},
            {"affinity": {"podAffinity": {REQUIRED: [term]}}},
            {"affinity": {"podAntiAffinity": {PREFERRED: [{"weight": 50, "podAffinityTerm": term}]}}},
            {"volumes": [{"name": "scratch", "emptyDir": {}}]},
            {"schedulerName": by.choice(("other", "volcano"))},
            {"priority": by.choice((-20, 2_000_000_000))},
        )
    )
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
        [sys.executable, "-c", ASKED, folder, str(NOW)],
        cwd=tree,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{tree}: {done.stderr}")
    return dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())


if __name__ == "__main__":
    main()
