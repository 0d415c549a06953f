"""How much more is freed where pods shrink before they move? `make bench-resize`.

The cluster is the published one, on which the peers were measured. What its workloads use is assigned with a fixed
seed:

1. Each Deployment gets one of the 100 virtual machines of the Bitbrains trace (seed 1). The first 14 days are its
   recorded usage, the day after them is what happens while its pods are resized.
2. The team once requested the largest use of those 14 days: cpu as it was, memory with the product's headroom of 15 %.
   The recommendation is smaller by as much as the P95 of cpu, and of the hourly peaks of memory, stays below that,
   times a scale for all. The scale is chosen so that, after all reverts, 20 % of all requested cores are given up.
3. Memory shrinks by the product's own rule (`propose_resizes`): never below the recorded use with headroom. A pod
   whose memory on the day after is above its new request counts as killed, as soon as it is resized (without a limit
   it would live as long as its node has memory).

The resizes run through the product's state machine (canary, waves, verification, reverts, back-off), with a kubelet
that answers at once. Then the plan is made with and without what was verified; a program that shares no code with the
planner walks through all states of the plan.
"""

import gzip
import json
import random
import sys
import time
from collections import defaultdict
from dataclasses import replace

import msgspec
import verify

from tests.bench.bench_data import BITBRAINS, OPENB_SNAPSHOT, say_generated
from tests.bench.results import report_result
from tests.bench.usage_series import machine_series
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.cluster_state import snapshot_inventory
from trimtab.cluster.pool import pool_from_preset
from trimtab.cluster.resizable_pod import ResizeAnswer, read_resizable_pods
from trimtab.cluster.snapshot import load_snapshot
from trimtab.cluster.wanted_requests import WantedRequest, WantedRequests
from trimtab.compaction.resize import reasons as r
from trimtab.compaction.resize.plan_resizes import plan_with_resizes
from trimtab.compaction.resize.propose import ResizeContext, free_amounts, propose_resizes
from trimtab.compaction.resize.records import ResizeRecords
from trimtab.compaction.resize.state_machine import ResizePlanner, ResizeView
from trimtab.compaction.resize.steps import Resize, Revert, record_step
from trimtab.compaction.resize.types import ResizeSettings

SEED = 1
MEAN_SHRINK = 0.20
HEADROOM = 1.15
TRAINING_DAYS, ROLLOUT_DAYS, HOUR = 14, 1, 3600
SETTINGS = ResizeSettings(changes_per_hour=500, max_open=2000)
EVERY = replace(pool_from_preset("keen", "all"), everything=True)
ORIGINAL = {}
"""Uid of a pod → (container, resource) → what it requested at first, in the scheduler's numbers."""


def machines():
    """Machine → how far P95 of cpu and of memory's peaks stay below the largest use, and whether memory then grew."""
    series, results = machine_series(), []
    for name in sorted({name for name, _ in series}):
        cpu, memory = series[name, "cpu"], series[name, "memory"]
        start = cpu[0][0]
        end, last = start + TRAINING_DAYS * 86400, start + (TRAINING_DAYS + ROLLOUT_DAYS) * 86400
        used = sorted(value for at, value in cpu if at < end)
        peaks = defaultdict(float)
        for at, value in memory:
            peaks[at // HOUR] = max(peaks[at // HOUR], value)
        training = sorted(value for hour, value in peaks.items() if hour * HOUR < end)
        later = max((value for hour, value in peaks.items() if end <= hour * HOUR < last), default=0.0)
        if not used[-1] or not training[-1]:
            continue
        results.append((1 - p95(used) / used[-1], 1 - p95(training) / training[-1], later / training[-1]))
    return results


def p95(ordered):
    return ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]


def assign(pods):
    """Owner → the machine whose use it has."""
    actual_machines, dice = machines(), random.Random(SEED)
    owners = sorted({f"{pod.namespace}/{pod.owner}" for pod in pods if pod.owner and pod.owner.kind == "ReplicaSet"})
    return {owner: dice.choice(actual_machines) for owner in owners}


def wanted_for(usage, scale):
    def wanted(pod):
        machine = usage.get(f"{pod.namespace}/{pod.owner}")
        if machine is None:
            return None
        requests = {}
        for container in pod.containers:
            for resource, less in (("cpu", machine[0]), ("memory", machine[1])):
                now = ORIGINAL[pod.uid].get((container.name, resource))
                if now:
                    use = int(now * (1 - min(0.95, less * scale)) / (HEADROOM if resource == "memory" else 1))
                    requests[container.name, resource] = WantedRequest(
                        amount=max(1, use), policy="bench", reason=r.SHRINKS("recorded usage"), used=use
                    )
        return WantedRequests(requests=requests)

    return wanted


def mean_shrink(pods, proposals):
    """Of all requested cores of pods that a Deployment owns."""
    total = sum(
        ORIGINAL[pod.uid].get((c.name, "cpu"), 0) for pod in pods if is_of_deployment(pod) for c in pod.containers
    )
    return sum(proposal.given_up("cpu") for proposal in proposals) / total


def is_of_deployment(pod):
    return pod.owner is not None and pod.owner.kind == "ReplicaSet"


def proposals_of(pods, inventory, usage, scale, open_uids=frozenset()):
    context = ResizeContext(assumes_kubelets=True, open_uids=open_uids)
    return propose_resizes(pods, wanted_for(usage, scale), inventory, [EVERY], SETTINGS, context).proposals


def choose_scale(pods, inventory, usage):
    """Returns the first scale at which the verified resizes give up the wanted share of all requested cores. A larger
    scale kills more pods, so the share does not grow with it for ever."""
    for step in range(20, 80):
        verified, _, _ = roll_out(pods, inventory, usage, step / 100)
        if mean_shrink(pods, verified.values()) >= MEAN_SHRINK:
            return step / 100
    sys.exit(f"no scale gives up {MEAN_SHRINK:.0%} of the cores")


def roll_out(pods, inventory, usage, scale):
    """Runs all resizes through the state machine. Returns the uids that were verified, and how many were reverted."""
    by_uid, records, now, verified = {pod.uid: pod for pod in pods}, ResizeRecords(), 1_800_000_000, {}
    counts = defaultdict(int)
    for pod in pods:
        counts[f"{pod.namespace}/{pod.owner}"] += 1
    all_proposals = {one.uid: one for one in proposals_of(pods, inventory, usage, scale)}
    # Nobody else takes room in this bench, so what all pods gave up stays free for reverts.
    free = {node: dict.fromkeys(amounts, 1 << 60) for node, amounts in free_amounts(inventory).items()}
    while True:
        waiting = [one for uid, one in all_proposals.items() if uid not in verified and uid not in records.open]
        records = records.without_old_entries(now)
        view = ResizeView(now=now, pods=by_uid, free=free, pods_of_owner=counts, eviction_refusal=lambda _: None)
        steps = ResizePlanner(records, view, SETTINGS).next_steps(waiting)
        started = False
        for step in steps:
            records = record_step(records, step, now)
            if isinstance(step, Resize):
                started = True
                by_uid[step.proposal.uid] = resized(by_uid[step.proposal.uid], step.proposal.changes, usage)
            elif isinstance(step, Revert):
                by_uid[step.uid] = resized(by_uid[step.uid], step.changes, {})
            elif step.reason.code is r.VERIFIED:
                verified[step.uid] = all_proposals[step.uid]
        # Only workloads that back off are left.
        if not records.open and not started and records.recent_count(now) == 0:
            break
        now += SETTINGS.verify_seconds
    return verified, records.reverted, now - 1_800_000_000


def resized(pod, changes, usage):
    """The pod after its kubelet resized it; a container whose later memory does not fit is killed at once."""
    containers = []
    killed = False
    machine = usage.get(f"{pod.namespace}/{pod.owner}")
    for container in pod.containers:
        requests = dict(container.requests)
        for change in changes:
            if change.container == container.name:
                requests[change.resource] = change.after
                if change.resource == "memory" and machine is not None and change.given_up > 0:
                    later = ORIGINAL[pod.uid][container.name, "memory"] / HEADROOM * machine[2]
                    killed = killed or later > change.amount_after
        containers.append(msgspec.structs.replace(container, requests=requests))
    runs = tuple(msgspec.structs.replace(run, restarts=run.restarts + killed) for run in pod.runs)
    return msgspec.structs.replace(pod, containers=tuple(containers), runs=runs, answer=ResizeAnswer.DONE)


def with_requests(item, proposal):
    after = {(change.container, change.resource): change.after for change in proposal.changes}
    containers = []
    for container in item["spec"]["containers"]:
        requests = dict(container.get("resources", {}).get("requests", {}))
        requests |= {resource: text for (name, resource), text in after.items() if name == container["name"]}
        containers.append({**container, "resources": {**container.get("resources", {}), "requests": requests}})
    return {**item, "spec": {**item["spec"], "containers": containers}}


def main():
    say_generated("bench-resize", BITBRAINS)
    raw = json.loads(gzip.decompress(OPENB_SNAPSHOT.read_bytes()))["items"]
    reading = load_snapshot([(OPENB_SNAPSHOT.name, OPENB_SNAPSHOT.read_bytes())])
    assert not reading.mistakes, reading.mistakes[:3]
    inventory = snapshot_inventory(reading.snapshot)
    pods = read_resizable_pods(reading.snapshot.objects_of(Pod))
    for pod in pods:
        ORIGINAL[pod.uid] = {
            (c.name, resource): c.request(resource) for c in pod.containers for resource in ("cpu", "memory")
        }
    usage = assign(pods)
    scale = choose_scale(pods, inventory, usage)
    verified, reverted, seconds = roll_out(pods, inventory, usage, scale)
    shrunk = mean_shrink(pods, verified.values())
    print(
        f"{len(usage)} workloads with the use of real machines, scale {scale:.3f}: of "
        f"{sum(map(is_of_deployment, pods))} pods {len(verified)} were resized and verified, {reverted} were reverted, "
        f"in {seconds / 3600:.0f} h"
    )
    started = time.process_time()
    resize_plan = plan_with_resizes(inventory, [EVERY], tuple(verified.values()))
    spent = time.process_time() - started
    after = {proposal.pod: proposal for proposal in resize_plan.resizes}
    resized_raw = [
        with_requests(item, after[key])
        if item["kind"] == "Pod" and (key := f"{item['metadata']['namespace']}/{item['metadata']['name']}") in after
        else item
        for item in raw
    ]
    verify.verify(
        resized_raw,
        [
            [(step.node, [(m.pod, m.source, m.target, m.turn) for m in step.moves]) for step in wave.steps]
            for wave in resize_plan.plan.waves
        ],
    )
    freed, without = resize_plan.plan.total_savings / 1000, resize_plan.without.total_savings / 1000
    evictions, before = len(resize_plan.plan.all_moves), len(resize_plan.without.all_moves)
    per, per_without = freed / evictions, without / before
    print(
        f"without resizes {len(resize_plan.without.all_steps)} nodes, with them "
        f"{len(resize_plan.plan.all_steps)}; planned in "
        f"{spent:.1f} s of cpu; every state of the plan verified"
    )
    broken = {
        "mean_shrink": not 0.18 <= shrunk <= 0.22,
        "cores_freed": freed < 1.4 * without,
        "cores_per_eviction": per < 0.95 * per_without,
    }
    report_result(
        "resize",
        f"cores_freed={freed:.0f} cores_without={without:.0f} mean_shrink={shrunk:.3f} evictions={evictions} "
        f"resizes={len(resize_plan.resizes)} cores_per_eviction={per:.2f} per_eviction_without={per_without:.2f} "
        f"reverted={reverted}",
        broken=broken,
    )


if __name__ == "__main__":
    main()
