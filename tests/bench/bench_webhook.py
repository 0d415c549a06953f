"""What does a review cost, beside the reference in Go in the same run?

    make bench-webhook                   (a Go toolchain; about six minutes)
    make bench-webhook ONLY=memory       the resident memory alone

One core for the server, one for the client. Ours with every shipped policy, recommendations for 10 000 workloads,
the self-check on and a log line per changed pod. Rounds in shuffled order, medians. Ratios are ours to theirs.

Kinds of load, told apart because they cost differently (`tests.bench.arrivals`):

    the same     the load client's one body over and over, as for every server this was ever measured beside
    siblings     another uid and another token volume in each: what a ReplicaSet's pods differ in
    quota        siblings in a namespace with a ResourceQuota whose `used` is another one at each review
    distinct     another owner and `pod-template-hash` besides, as the next rollout's pods have: never seen before, and
                 every request changed to what the workload uses
    anew         another annotation besides: no decision on an earlier pod holds for it, so each is decided anew
    unknown      another workload in each, of which no usage is known: decided anew, and its requests stay
    daemonset    a DaemonSet's pods, each pinned to one of 500 nodes of three sizes
    cronjob      another Job of a CronJob in each
    job          another Job in each, that no CronJob made
    workflow     another step of a workflow in each, with a name of its own
    mix          a day's arrivals

The last line has the ratio of each: `webhook_cpu_ratio` is for "the same" typical pod.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from tests.bench import servers
from tests.bench.arrivals import PLANS, write_plans
from tests.bench.results import choose_size, report_result
from tests.bench.servers import Load, Server

ROUNDS = choose_size(5, 1)
SECONDS = "2s"
PACED = "10s"
"""Two thousand reviews: the load client opens its connections anew each time, and of fewer they would be the p99."""
COUNT = choose_size(3000, 1000)
FILLING, MEMORY = choose_size((10_000, 100_000), (2_000, 5_000))
"""Reviews after which all that is remembered has filled its room, and those after which memory is compared."""

Loads = dict[tuple[str, str], list[Load]]
"""(what was measured, whose) → one per round."""


def main() -> None:
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    with (
        tempfile.TemporaryDirectory() as folder,
        servers.both(Path(folder)) as (theirs, ours),
        servers.under_quota(Path(folder), ours) as under_quota,
    ):
        bodies = servers.bodies(Path(folder))
        plans = write_plans(Path(folder), bodies)
        _warm(bodies, theirs, ours, under_quota)
        if only == "memory":
            _print_memory(*_memory(plans, ours))
            return
        loads = _rounds(bodies, plans, theirs, ours, under_quota)
        burst = [server.load(bodies["typical"], "-burst", "300", "-dur", "1s") for server in (theirs, ours)]
        print(
            f"\ncold burst of 300 connections, p99: reference {burst[0].p99_us / 1000:.0f} ms,"
            f" ours {burst[1].p99_us / 1000:.0f} ms, errors {burst[0].errors} and {burst[1].errors}"
        )
        memory = _memory(plans, ours)
    _tell(loads, memory, burst[1])


def _warm(bodies: dict[str, Path], *all_three: Server) -> None:
    for server in all_three:
        for body in bodies.values():
            server.load(body, "-conns", "8", "-dur", "500ms")


def _rounds(
    bodies: dict[str, Path], plans: dict[str, Path], theirs: Server, ours: Server, under_quota: Server
) -> Loads:
    loads: Loads = defaultdict(list)
    steps = [(name, server) for name in (*bodies, "rate", *plans) for server in (theirs, ours)]
    steps[steps.index(("quota", ours))] = ("quota", under_quota)
    for number in range(ROUNDS):
        random.shuffle(steps)
        for name, server in steps:
            loads[name, server.name].append(_one(name, server, bodies, plans))
        print(f"round {number + 1}: " + ", ".join(_round(loads, name) for name in (*bodies, *plans)), flush=True)
    return loads


def _one(name: str, server: Server, bodies: dict[str, Path], plans: dict[str, Path]) -> Load:
    if name in plans:
        return server.call(plans[name], COUNT)
    if name == "rate":
        return server.load(bodies["typical"], "-rate", "200", "-dur", PACED)
    return server.load(bodies[name], "-conns", "8", "-dur", SECONDS)


def _round(loads: Loads, name: str) -> str:
    ours, theirs = loads[name, "trimtab"][-1].cpu_us, loads[name, "reference"][-1].cpu_us
    return f"{name} {ours:.0f}/{theirs:.0f} µs"


def _memory(plans: dict[str, Path], ours: Server) -> tuple[int, int, int]:
    """Resident after 10 000 and after 100 000 reviews, nearly all with pods never seen before; and how many failed."""
    kinds = ("mix", "anew", "distinct", "unknown")
    answered, errors, resident = 0, 0, list[int]()
    for goal in (FILLING, MEMORY):
        while answered < goal:
            load = ours.call(plans[random.choice(kinds)], COUNT)
            answered, errors = answered + load.reviews, errors + load.errors
        resident.append(ours.memory)
    return resident[0], resident[1], errors


def _print_memory(before: int, after: int, failed: int) -> None:
    print(
        f"resident after {FILLING:,} and after {MEMORY:,} reviews:"
        f" {before / 2**20:.1f} and {after / 2**20:.1f} MiB, {failed} failed"
    )


def _tell(measurements: Loads, rest: tuple[int, int, int], burst: Load) -> None:
    print(f"\n{'':10} {'ours':>9} {'reference':>10} {'ratio':>6}   CPU per review, median of {ROUNDS} rounds")
    for name in ("small", "typical", "big", *PLANS):
        ours, theirs = (_median(measurements[name, who], "cpu_us") for who in ("trimtab", "reference"))
        print(f"{name:10} {ours:6.1f} µs {theirs:7.1f} µs {ours / theirs:6.2f}")
    p99 = {who: _median(measurements["rate", who], "p99_us") for who in ("trimtab", "reference")}
    print(f"at 200 reviews a second, p99: ours {p99['trimtab']:.0f} µs, reference {p99['reference']:.0f} µs")
    before, after, failed = rest
    _print_memory(before, after, failed)
    errors = sum(load.errors for (_, who), loads in measurements.items() if who == "trimtab" for load in loads)
    print(
        f"webhook_cpu_ratio_small={_ratio(measurements, 'small'):.2f} memory_growth_mib={(after - before) / 2**20:.1f}"
    )
    slower, errors = p99["trimtab"] / p99["reference"], errors + failed + burst.errors
    report_result(
        "webhook",
        f"webhook_cpu_ratio={_ratio(measurements, 'typical'):.2f}"
        f" webhook_cpu_ratio_big={_ratio(measurements, 'big'):.2f}"
        f" siblings={_ratio(measurements, 'siblings'):.2f} siblings_under_quota={_ratio(measurements, 'quota'):.2f}"
        f" distinct={_ratio(measurements, 'distinct'):.2f} decided_anew={_ratio(measurements, 'anew'):.2f}"
        f" decided_anew_without_usage={_ratio(measurements, 'unknown'):.2f}"
        + "".join(f" {name}={_ratio(measurements, name):.2f}" for name in ("daemonset", "cronjob", "job", "workflow"))
        + f" mix={_ratio(measurements, 'mix'):.2f}"
        f" webhook_p99_ratio={slower:.2f} errors={errors}",
        broken={},
    )


def _ratio(loads: Loads, name: str) -> float:
    return _median(loads[name, "trimtab"], "cpu_us") / _median(loads[name, "reference"], "cpu_us")


def _median(loads: list[Load], what: str) -> float:
    return statistics.median(getattr(load, what) for load in loads)


if __name__ == "__main__":
    main()
