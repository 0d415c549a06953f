"""How good and how fast is a plan? `make bench-plan`.

Quality on the cluster on which the peers were measured, every intermediate state checked by `verify`; speed on
synthetic clusters with every kind of constraint. CPU time of this process, the best of a few runs. Environment:
TRIMTAB_SHARED names the folder with data and generators (default ../shared).
"""

import gc
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from itertools import product
from pathlib import Path

import msgspec
import verify

from trimtab.cluster.inventory import take
from trimtab.cluster.pool import Goal, Headroom, preset
from trimtab.cluster.snapshot import load
from trimtab.compaction.candidates import Now
from trimtab.compaction.plan import plan
from trimtab.compaction.search.first import first_wave
from trimtab.compaction.search.prepare import prepare
from trimtab.compaction.simulate import Scheduler, simulate
from trimtab.packing.drain import Drains
from trimtab.packing.world import build

SHARED = Path(os.environ.get("TRIMTAB_SHARED", "../shared"))
OPENB = SHARED / "data/clusters/openb-310-spread.json.gz"
ALL = replace(preset("keen", "all"), everything=True)


def read(name, content):
    reading = load([(name, content)])
    assert not reading.mistakes, reading.mistakes[:3]
    return take(reading.snapshot)


def waves_of(waves):
    return [
        [(step.node, [(m.pod, m.source, m.target, m.turn) for m in step.moves]) for step in wave.steps]
        for wave in waves
    ]


def milestone(found, evictions):
    """Saved by the whole nodes that are empty when so many pods were evicted."""
    spent = saved = 0
    for step in found.steps:
        spent += len(step.moves)
        if spent > evictions:
            break
        saved += step.saves
    return saved


def quality():
    raw = json.loads(gzip.decompress(OPENB.read_bytes()))["items"]
    inventory = read(OPENB.name, OPENB.read_bytes())
    started = time.process_time()
    found = plan(build(inventory), [ALL])
    spent = time.process_time() - started
    verify.verify(raw, waves_of(found.waves))
    evictions, cores = len(found.moves), found.saves / 1000
    print(
        f"goal cost, as planned: {len(inventory.nodes) - len(found.steps)} nodes left, {cores:.0f} cores freed, "
        f"{evictions} evictions, {len(found.waves)} waves, {spent:.2f} s; every state verified"
    )
    print(
        f"  bound by volume: {found.bound.saves / 1000:.0f} cores, {found.bound.nodes} nodes; "
        f"{found.bound.pinned} nodes hold a pod that may not move, without them "
        f"{found.bound.unpinned_nodes - found.bound.nodes} more could go"
    )
    print(
        f"  on the way: {milestone(found, 132) / 1000:.0f} cores by eviction 132, "
        f"{milestone(found, 1633) / 1000:.0f} by eviction 1633"
    )
    result = {}
    for scheduler, marked in product(Scheduler, (True, False)):
        if marked and scheduler is Scheduler.PLAN:
            continue
        made = simulate(inventory, [ALL], scheduler, marked=marked)
        result[scheduler] = made
        print(
            f"  simulate --scheduler {scheduler}{' --marked' * marked}: {made.nodes_after} nodes left, "
            f"{made.saved / 1000:.0f} cores, "
            f"{made.evictions} evictions, moved twice {made.moved_twice}, {len(made.rounds)} rounds, "
            f"{made.waiting} pods left waiting"
        )
    nodes = plan(build(inventory), [replace(ALL, goal=Goal.NODES)])
    verify.verify(raw, waves_of(nodes.waves))
    print(
        f"goal nodes: {len(inventory.nodes) - len(nodes.steps)} nodes left, {len(nodes.moves)} evictions, "
        f"{len(nodes.waves)} waves; every state verified"
    )
    headroom(inventory, raw)
    return result[Scheduler.PLAN], len(inventory.nodes) - len(nodes.steps)


def headroom(inventory, raw):
    found = plan(build(inventory), [replace(ALL, headroom=Headroom(percent=10))])
    verify.verify(raw, waves_of(found.waves))
    after = build(simulate(inventory, [replace(ALL, headroom=Headroom(percent=10))]).after)
    free = sum(after.major) * 100 / sum(after.amount(n, "cpu") for n in range(len(after.nodes)))
    print(
        f"10 % headroom: {found.saves / 1000:.0f} cores freed, {len(found.moves)} evictions, "
        f"{free:.1f} % of cpu free on what stays"
    )
    assert free >= 10


def synthetic(nodes):
    """The generated cluster, kept in the temporary folder between runs."""
    kept = Path(tempfile.gettempdir()) / f"trimtab-synthetic-{nodes}x30.json"
    if not kept.exists():
        made = subprocess.run(
            [sys.executable, SHARED / "bench/synthetic_cluster.py", "--nodes", str(nodes)],
            check=True,
            capture_output=True,
        )
        kept.write_bytes(made.stdout)
    return kept.read_bytes()


def speed(nodes, runs):
    content = synthetic(nodes)
    inventory = read("synthetic", content)
    gc.collect()
    gc.freeze()
    times = []
    for _ in range(runs):
        started = time.process_time()
        world = build(inventory)
        built = time.process_time()
        found = plan(world, [ALL])
        ended = time.process_time()
        times.append((ended - started, built - started))
        gc.collect()
    total, building = min(times)
    verify.verify(msgspec.json.decode(content)["items"], waves_of(found.waves))
    print(
        f"{nodes} x 30: plan with all waves {total:.2f} s CPU (of which building the world {building:.2f}), "
        f"{len(found.steps)} nodes, {found.saves / 1000:.0f} cores, {len(found.moves)} evictions, "
        f"{len(found.waves)} waves; every state verified"
    )
    first(inventory, content, runs)
    one_node(world)
    return total, found, world


def first(inventory, content, runs):
    """Only the first wave, from the nouns of a snapshot."""
    times = []
    for _ in range(runs):
        started = time.process_time()
        world = build(inventory)
        built = time.process_time()
        wave = first_wave(world, [ALL])
        ended = time.process_time()
        times.append((ended - started, ended - built))
        gc.collect()
    total, searching = min(times)
    verify.verify(msgspec.json.decode(content)["items"], waves_of([wave]))
    print(
        f"  first wave alone: {total:.2f} s CPU (of which {searching:.2f} from a world that is built), "
        f"{len(wave.steps)} nodes, {sum(s.saves for s in wave.steps) / 1000:.0f} cores, {wave.evictions} evictions; "
        "every state verified"
    )


def one_node(world):
    """Can this one node go? From warm state; CPU time, so that other processes do not count."""
    made = prepare(world, [ALL], Now())
    drains = Drains(world)
    times, yes = [], 0
    for node in made.candidates[:: max(1, len(made.candidates) // 500)]:
        started = time.thread_time()
        yes += drains.can(node, made.loads[node])
        times.append(time.thread_time() - started)
    times.sort()
    median, most, rare = (times[len(times) * share // 100] * 1000 for share in (50, 95, 99))
    print(
        f"  can this one node go: median {median:.3f} ms, 95 % under {most:.3f} ms, 99 % under {rare:.3f} ms "
        f"({yes} of {len(times)} can)"
    )


def lp(found, world):
    try:
        import lp as relaxation
    except ImportError:
        print("  no solver here (pip install scipy): the LP bound is left out")
        return "unknown"
    most = relaxation.bound(prepare(world, [ALL], Now()), world)
    print(f"  LP bound {most / 1000:.0f} cores: {found.saves * 100 / most:.1f} % of it")
    return f"{found.saves / most:.3f}"


def main():
    if not OPENB.exists():
        sys.exit(f"no data in {SHARED}: set TRIMTAB_SHARED")
    best, fewest = quality()
    small, found, world = speed(1000, 9)
    share = lp(found, world)
    large, found, world = speed(5000, 5)
    lp(found, world)
    print(
        f"RESULT nodes_after={fewest} cores_freed={best.saved / 1000:.0f} evictions={best.evictions} "
        f"moved_twice={best.moved_twice} plan_cpu_s_1000={small:.2f} plan_cpu_s_5000={large:.2f} of_lp_bound={share}"
    )


if __name__ == "__main__":
    main()
