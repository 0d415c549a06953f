"""What does the recommender write, with 10 000 containers and no Prometheus? `make bench-recommender`, about an hour.

A day from noon to noon, played minute by minute against a real API server: every container's cpu and memory each
minute, noisy, with a rhythm of days and a trend; recommendations and checkpoints as by default. Bytes are those that
etcd says it was given, whoever gave them, keys and values; of all windows of ten minutes, one beginning each minute,
the largest counts. Then a second replica takes up what stands. At last the thread that looks runs by the real clock,
every ten seconds, while each round publishes and keeps all that it may: how many values were missed? BENCH_HOUR,
BENCH_MINUTES and BENCH_CONTAINERS play another time of the day, less of it, or another cluster.

    RESULT containers=… max_kb_per_10min=… mean_kb_per_10min=… stored_mb=… unsaved_minutes=… missed=0 lost_minutes=…
           looks=… missed_while_publishing=0 longest_round_s=…
"""

from __future__ import annotations

import math
import random
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry

from tests.bench.results import choose_size, read_knob, report_result
from tests.controlplane import binaries
from tests.controlplane.control_plane import ControlPlane
from trimtab.histogram.live_history import LiveHistory
from trimtab.kube.client import connect_to_cluster
from trimtab.kube.objects import Writer
from trimtab.recommender import sharded_configmaps
from trimtab.recommender.checkpointer import Checkpointer
from trimtab.recommender.collector import InstantCollector, Sampler
from trimtab.recommender.loop import Loop
from trimtab.recommender.metrics import Metrics
from trimtab.recommender.pod_watcher import PodWatchState
from trimtab.recommender.publisher import Publisher
from trimtab.recommender.settings import Settings
from trimtab.recommender.write_budget import WriteBudget
from trimtab.runtime import log
from trimtab.usage.series import Series

CONTAINERS = int(read_knob("BENCH_CONTAINERS", choose_size("10000", "1000")))
MINUTES = int(read_knob("BENCH_MINUTES", choose_size("1440", "30")))
A_NAMESPACE = 50
"""Containers of one namespace."""
HOUR = int(read_knob("BENCH_HOUR", "12"))
BEGIN = 20_457 * 86400 + HOUR * 3600
PUT = "etcd_debugging_mvcc_total_put_size_in_bytes"
MAX_BYTES = 2_000_000
"""In ten minutes at the most."""
LOOK_SECONDS, ROUNDS = 10.0, 10
"""By the real clock: six times as often as by default."""
MI = 1 << 20


@dataclass
class Cluster:
    """What containers use at a moment, by the simulated clock."""

    now: float = float(BEGIN)
    looks: int = 0
    _noise: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        drawn = random.Random(7)
        self._noise = [drawn.lognormvariate(0, 0.35) for _ in range(1 << 16)]

    def look(self) -> Iterator[Series]:
        self.looks += 1
        at, day = int(self.now), 1 + 0.5 * math.sin(self.now / 86400 * 2 * math.pi)
        for number in range(CONTAINERS):
            noise = self._noise[(number * 7919 + self.looks * 104729) & 0xFFFF]
            cores = (0.02 + number % 97 / 50) * noise * (day if number % 3 else 1.0)
            holding = (100 + number % 400) * MI * (1 + 0.05 * noise) * (1 + self.looks / 20_000 * (number % 5 == 0))
            named = {
                "namespace": f"team-{number // A_NAMESPACE:03}",
                "workload": f"Deployment/web-{number % A_NAMESPACE}",
                "pod": f"web-{number % A_NAMESPACE}-7d4b9c6f5d-x{number % 1000:03}z",
                "container": "app",
            }
            yield Series(resource="cpu", times=(at,), values=(cores,), **named)
            yield Series(resource="memory", times=(at,), values=(holding,), **named)


def _loop(cluster: Cluster, writer: Writer, namespace: str) -> Loop:
    settings, diary = Settings(), LiveHistory()
    elapsed, half = (lambda: cluster.now), settings.max_written_kilobytes * 500
    checkpoints = Checkpointer(
        sharded_configmaps.checkpoint_backend(writer, namespace),
        sharded_configmaps.day_backend(writer, namespace),
        diary,
        settings.checkpoint_interval_seconds,
        WriteBudget(half, elapsed),
        elapsed,
        max_stored_bytes=settings.max_stored_megabytes * 1_000_000,
    )
    publishing = Publisher(
        sharded_configmaps.recommendation_backend(writer, namespace),
        diary,
        settings.publish_tolerance_percent / 100,
        WriteBudget(half, elapsed),
    )
    return Loop(
        history=diary,
        source=InstantCollector(lambda: [cluster.look()]),
        pod_state=PodWatchState(),
        checkpointer=checkpoints,
        publisher=publishing,
        metrics=Metrics(CollectorRegistry(), lambda: True),
        log=log.build_logger("warning", "json"),
        publish_interval_seconds=settings.publish_interval_seconds,
        now=lambda: int(cluster.now),
        elapsed=elapsed,
    )


def _put_bytes(plane: ControlPlane) -> int:
    with urllib.request.urlopen(f"{plane.layout.url('etcd')}/metrics", timeout=30) as page:
        lines = page.read().decode().splitlines()
    return int(float(next(line.rpartition(" ")[2] for line in lines if line.startswith(PUT))))


def _values(diary: LiveHistory) -> int:
    return sum(window.merge_days().total_count for (_, resource), window in diary.windows.items() if resource == "cpu")


def _tell(loop: Loop, hour: int, put: float, cpu: float) -> None:
    usage, content = loop.checkpointer.stored_bytes, loop.publisher.shard_store.stored_bytes
    print(
        f"{hour:3} h: {put / 1000:5.0f} KB in ten minutes on average, "
        f"{len(loop.recommendations.workloads):6} workloads known, "
        f"{usage / 1e6:5.1f} MB of usage, {content / 1e6:5.1f} MB of recommendations, "
        f"{loop.checkpointer.unsaved_seconds / 60:3.0f} minutes unsaved, {cpu:6.0f} CPU s, faults {loop.fault_count}",
        flush=True,
    )


def _in_real_time(loop: Loop, cluster: Cluster) -> tuple[int, int, float]:
    """How many looks there were, how many values of them are not in the diary, and how many seconds the longest round
    took. Each look is a minute later by the simulated clock, and each round publishes and keeps."""

    def look() -> list[Series]:
        cluster.now += 60
        return list(cluster.look())

    late, looks, values, longest = list[int](), cluster.looks, _values(loop.history), 0.0
    with Sampler(look, LOOK_SECONDS, time.monotonic, lambda: late.append(1)) as line:
        loop.source = InstantCollector(line.take_readings)
        loop.publish_interval_seconds = loop.checkpointer.write_interval_seconds = 0.0
        for _ in range(ROUNDS):
            line.wait_for_reading(lambda: True)
            began = time.monotonic()
            loop.run_round()
            longest = max(longest, time.monotonic() - began)
    line.join_thread()
    loop.run_round()
    looks = cluster.looks - looks
    return looks, (looks + len(late)) * CONTAINERS - (_values(loop.history) - values), longest


def main() -> None:
    with ControlPlane.start(binaries.find()) as plane:
        for component in ("kube-controller-manager", "kube-scheduler", "kwok"):
            plane.take_down(component)  # they write as well
        client = connect_to_cluster(str(plane.kubeconfig))
        writer, cluster = Writer(client=client), Cluster()
        loop = _loop(cluster, writer, "default")
        loop.restore_state()
        put, unsaved, began = [_put_bytes(plane)], 0.0, time.process_time()
        for minute in range(MINUTES):
            loop.run_round()
            put.append(_put_bytes(plane))
            unsaved = max(unsaved, loop.checkpointer.unsaved_seconds)
            cluster.now += 60
            if minute % 60 == 59:
                _tell(loop, minute // 60 + 1, (put[-1] - put[-61]) / 6, time.process_time() - began)
        within = [put[n] - put[max(0, n - 10)] for n in range(1, len(put))]
        missed = cluster.looks * CONTAINERS - _values(loop.history)
        heir = _loop(cluster, writer, "default")
        heir.restore_state()
        lost = (_values(loop.history) - _values(heir.history)) / CONTAINERS
        stored = loop.checkpointer.stored_bytes + loop.publisher.shard_store.stored_bytes
        looks, absent, longest = _in_real_time(loop, cluster)
        client.close()
        report_result(
            "recommender",
            f"containers={CONTAINERS} minutes={MINUTES} max_kb_per_10min={max(within) / 1000:.0f}"
            f" mean_kb_per_10min={(put[-1] - put[0]) / (MINUTES / 10) / 1000:.0f} stored_mb={stored / 1e6:.1f}"
            f" unsaved_minutes={unsaved / 60:.0f} missed={missed} lost_minutes={lost:.1f} faults={loop.fault_count}"
            f" looks={looks} missed_while_publishing={absent} longest_round_s={longest:.0f}",
            broken={
                "max_kb_per_10min": max(within) > MAX_BYTES,
                "missed": missed,
                "missed_while_publishing": absent,
                "faults": loop.fault_count,
            },
        )


if __name__ == "__main__":
    main()
