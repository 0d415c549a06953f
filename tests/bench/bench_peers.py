"""What do real peers save and disturb, with the same machines and workloads? `make bench-peers`, about 55 minutes.

Each peer gets a control plane of its own with the same half-full nodes, in real time: it consolidates until it rests;
then every second workload gets twice as many replicas, and machines are bought. Karpenter is itself, with its kwok
provider; the cluster autoscaler cannot be had as a module, and its stand-in is called so. What is equal for all of
them is in `peer_scenario`. The VPA's own recommender starts with two weeks of real machines, and its targets are scored
on the week after, as in `make bench-sizing`. `BRIEF=1` measures fewer nodes, for three minutes each.

It ends with `RESULT PEER/FIGURE=… …`, which docs/explanation/peers.md shows as a row for each peer.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

from tests.bench import real_karpenter, real_vpa_sizing
from tests.bench.bench_churn import TRACE, shapes
from tests.bench.bench_data import BITBRAINS, locate
from tests.bench.bench_live import SETTINGS
from tests.bench.churn_live import LiveMachines, LiveStandIn, budget_item
from tests.bench.churn_watch import ChurnWatch
from tests.bench.peer_figures import PeerPhase, count_nodes, find_last_change, judge_phase
from tests.bench.peer_scenario import (
    AT_ONCE,
    COOLDOWN_SECONDS,
    FLAGS,
    PROVISION_SECONDS,
    QUIET_SECONDS,
    START_UP_SECONDS,
    PeerScenario,
    create_deployment,
    draw_scenario,
)
from tests.bench.results import choose_parts, choose_size, is_brief, read_knob, report_result
from tests.controlplane import binaries, modules
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import Object
from tests.e2e.compactors import EAGER, Compactor
from trimtab.autoscaling.churn.churn_objects import NAMESPACE
from trimtab.cluster.pool import Precedence

CORES = float(read_knob("BENCH_PEERS_CORES", choose_size("250", "80")))
NAMES = choose_parts("BENCH_PEERS_NAMES", "karpenter,trimtab-leads,trimtab,stand-in,vpa")
"""The rows that are measured; the others stay as they are."""
MACHINES = choose_size(100, 10)
"""Those whose requests are compared, in two weeks each, at most: half of the trace is not used."""
REST_SECONDS = choose_size(COOLDOWN_SECONDS + 60, 45)
"""Without a change of a node or pod: then a peer rests. It is longer than the longest wait of any peer, together with
the time in which it looks again."""
LONGEST = choose_size((660, 300), (120, 60))
"""Seconds for the consolidation, and for the load that returns."""
HOME = "trimtab-system"


class Peer(Protocol):
    """Who makes and removes nodes."""

    @property
    def key(self) -> str:
        """Name and version, as the figures have them."""
        ...

    @property
    def settings(self) -> str: ...

    def prepare(self, cluster: Cluster, scenario: PeerScenario, folder: Path) -> AbstractContextManager[None]:
        """A context in which the nodes of the beginning come to be."""
        ...

    def act(
        self, cluster: Cluster, watch: ChurnWatch, scenario: PeerScenario, folder: Path
    ) -> AbstractContextManager[None]:
        """A context in which it consolidates, and buys machines."""
        ...


class KarpenterPeer:
    """Karpenter with its kwok provider."""

    @property
    def key(self) -> str:
        return f"karpenter-{modules.karpenter().version}"

    @property
    def settings(self) -> str:
        return f"consolidateAfter:{QUIET_SECONDS}s,budget:{AT_ONCE}"

    @contextmanager
    def prepare(self, cluster: Cluster, scenario: PeerScenario, folder: Path) -> Iterator[None]:
        with real_karpenter.karpenter(cluster, folder) as running:
            real_karpenter.create_first_nodes(cluster, scenario)
            try:
                yield
            except BaseException:
                print(running.text()[-4000:])
                raise

    @contextmanager
    def act(self, cluster: Cluster, watch: ChurnWatch, scenario: PeerScenario, folder: Path) -> Iterator[None]:
        real_karpenter.let_it_consolidate(cluster)
        yield


@dataclass(frozen=True, slots=True)
class StandInPeer:
    """The stand-in for the cluster autoscaler, alone or with Trimtab, which follows it."""

    precedence: Precedence | None = None
    """Whether Trimtab follows the stand-in or leads; None: it does not run."""

    @property
    def key(self) -> str:
        if self.precedence is None:
            return "stand-in-1.36"
        return f"trimtab{'-leads' if self.precedence is Precedence.LEAD else ''}-{version('trimtab')}"

    @property
    def settings(self) -> str:
        own = f"threshold:{FLAGS.threshold:g},unneeded:{FLAGS.unneeded_seconds:g}s"
        waits = f"underUsed.for:{QUIET_SECONDS}s,cooldown:{COOLDOWN_SECONDS}s"
        return f"{waits},drains:{AT_ONCE},{own}" if self.precedence else own

    @contextmanager
    def prepare(self, cluster: Cluster, scenario: PeerScenario, folder: Path) -> Iterator[None]:
        machines = LiveMachines(cluster, scenario.churn)
        for group in scenario.churn.nodes:
            machines.add(group)
        yield

    @contextmanager
    def act(self, cluster: Cluster, watch: ChurnWatch, scenario: PeerScenario, folder: Path) -> Iterator[None]:
        machines = LiveMachines(cluster, scenario.churn, prefix="more-")
        with LiveStandIn(cluster, watch, machines, FLAGS, PROVISION_SECONDS) as stand_in:
            if self.precedence is not None:
                with _compactor(cluster, scenario, folder, self.precedence):
                    yield
            else:
                yield
        print(f"  {stand_in.scans} scans of the stand-in; {stand_in.faults[:3]}")


@contextmanager
def _compactor(cluster: Cluster, scenario: PeerScenario, folder: Path, precedence: Precedence) -> Iterator[None]:
    home = Cluster(cluster.kubeconfig, HOME, cluster.plane)
    home.apply(_pool(scenario.at_once, precedence))
    home.eventually(lambda: home.get("ConfigMap", "cluster-autoscaler-status", "kube-system"), within=60)
    settings = {
        **SETTINGS,
        "MAX_CONCURRENT_DRAINS": str(scenario.at_once),
        "MOVE_COOLDOWN_SECONDS": str(COOLDOWN_SECONDS),
        "REQUIRE_AUTOSCALER_STATUS": "true",
        "AUTOSCALER_FLAGS": " ".join(FLAGS.format_arguments()),
        "SCALE_NAMESPACES": NAMESPACE,
    }
    one = Compactor(home, folder, **settings)
    try:
        yield
        assert one.process.poll() is None, one.log.read_text()[-3000:]
        if log := os.environ.get("BENCH_PEERS_LOG"):
            Path(log).write_text(one.log.read_text())
    finally:
        one.stop()


def _pool(at_once: int, precedence: Precedence) -> Object:
    settings = {
        **EAGER,
        "nodes": "all",
        "autoscaler": precedence.value,
        "underUsed": {"for": f"{QUIET_SECONDS}s"},
        "protect": {"singleReplicas": False},
        "pace": {"drains": at_once, "evictionsPerHour": 100_000},
    }
    meta = {"name": "pool-all", "namespace": HOME, "labels": {"trimtab.dev/pool": "all"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"pool.yaml": json.dumps(settings)}}


PEERS: Mapping[str, Peer] = {
    "karpenter": KarpenterPeer(),
    "trimtab-leads": StandInPeer(Precedence.LEAD),
    "trimtab": StandInPeer(Precedence.FOLLOW),
    "stand-in": StandInPeer(),
}


def main() -> None:
    scenario = draw_scenario(CORES, shapes())
    pods = sum(one.replicas for one in scenario.churn.workloads)
    print(
        f"{len(scenario.churn.nodes)} nodes, {pods} pods of {len(scenario.churn.workloads)} workloads, of which "
        f"{len(scenario.protected)} may not be disrupted; real time: a pod is ready after {START_UP_SECONDS} s, a "
        f"machine is there after {PROVISION_SECONDS} s",
        flush=True,
    )
    figures: dict[str, str] = {"nodes": str(len(scenario.churn.nodes)), "pods": str(pods)}
    broken: dict[str, object] = {}
    for name in NAMES:
        if name == "vpa":
            figures |= _measure_sizing()
            continue
        peer = PEERS[name]
        if name == "karpenter" and is_brief() and binaries.is_missing(modules.karpenter()):
            print("Karpenter is not built yet, and a brief run does not build it")
            continue
        measured = measure_peer(peer, scenario)
        print(f"{peer.key}: {' '.join(f'{key}={value}' for key, value in measured.items())}", flush=True)
        figures |= {f"{peer.key}/{key}": value for key, value in measured.items()}
        if name.startswith("trimtab"):
            broken[f"{name} broken"] = int(measured["broken"]) + int(measured["broken_load"])
    line = " ".join(f"{key}={value}" for key, value in figures.items())
    report_result("peers", line, broken=broken, is_generated=any(locate(name) is None for name in (TRACE, BITBRAINS)))


def _measure_sizing() -> dict[str, str]:
    plane = ControlPlane.start(binaries.find())
    with plane, tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(plane.kubeconfig, NAMESPACE, plane)
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        both = real_vpa_sizing.measure_vpa(cluster, Path(folder), MACHINES)
    keyed = dict(zip((real_vpa_sizing.vpa_key(), f"trimtab-{version('trimtab')}"), both, strict=True))
    figures = {f"{key}/{name}": value for key, one in keyed.items() for name, value in one.items()}
    print(" ".join(f"{key}={value}" for key, value in figures.items()), flush=True)
    return figures


def measure_peer(peer: Peer, scenario: PeerScenario) -> dict[str, str]:
    """Runs one peer on a control plane of its own, and returns its figures as the RESULT line has them."""
    plane = ControlPlane.start(binaries.find(), start_up=START_UP_SECONDS)
    with plane, tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(plane.kubeconfig, NAMESPACE, plane)
        for name in (NAMESPACE, HOME):
            cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        with ChurnWatch(cluster, 1.0) as watch, peer.prepare(cluster, scenario, Path(folder)):
            count = len(scenario.churn.nodes)
            cluster.eventually(lambda: sum(map(_is_open, watch.items("Node"))) == count, within=120, what="all nodes")
            _create_workloads(cluster, scenario)
            cluster.eventually(lambda: _is_settled(watch, scenario), within=120, what="all pods ready")
            watch.start_clock()
            begin = watch.now
            with peer.act(cluster, watch, scenario, Path(folder)):
                middle, is_at_rest = _wait_for_rest(cluster, watch, begin, LONGEST[0])
                for name, replicas in scenario.grown:
                    cluster.patch("Deployment", name, {"spec": {"replicas": replicas}}, NAMESPACE)
                end, is_at_rest_again = _wait_for_rest(cluster, watch, middle, LONGEST[1])
            history = watch.history
    first = count_nodes(history, begin)
    rest, load = judge_phase(history, begin, middle), judge_phase(history, middle, end)
    figures = {"settings": peer.settings, "nodes_first": str(first[0]), "dollars_first": f"{first[1] / 1e6:.2f}"}
    figures |= _format_phase(rest, "", is_at_rest=is_at_rest)
    return figures | _format_phase(load, "_load", is_at_rest=is_at_rest_again)


def _format_phase(phase: PeerPhase, suffix: str, *, is_at_rest: bool) -> dict[str, str]:
    figures = {
        "nodes": str(phase.nodes),
        "dollars": f"{phase.dollars:.2f}",
        "seconds": f"{phase.seconds:.0f}",
        "rests": str(int(is_at_rest)),
        "evictions": str(phase.evictions),
        "bought": str(phase.bought),
        "pending_s": f"{phase.pending_seconds:.0f}",
        "not_ready_s": f"{phase.not_ready_seconds:.0f}",
        "wait_s": f"{phase.longest_wait:.1f}",
        "broken": str(phase.broken),
    }
    return {f"{key}{suffix}": value for key, value in figures.items()}


def _create_workloads(cluster: Cluster, scenario: PeerScenario) -> None:
    for workload in scenario.churn.workloads:
        cluster.create(create_deployment(scenario, workload))
        if workload.max_unavailable is not None:
            cluster.create(budget_item(workload.name, workload.max_unavailable))


def _is_open(node: Object) -> bool:
    return _is_ready(node) and not [
        one for one in node["spec"].get("taints", ()) if one["effect"] != "PreferNoSchedule"
    ]


def _is_ready(item: Object) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in item["status"].get("conditions", ()))


def _is_settled(watch: ChurnWatch, scenario: PeerScenario) -> bool:
    pods = [pod for pod in watch.items("Pod") if pod["metadata"]["namespace"] == NAMESPACE]
    return len(pods) == sum(one.replicas for one in scenario.churn.workloads) and all(map(_is_ready, pods))


def _wait_for_rest(cluster: Cluster, watch: ChurnWatch, begin: float, longest: float) -> tuple[float, bool]:
    """Returns the time when nothing had changed for `REST_SECONDS` and every pod was ready, and True; or False, after
    the longest time."""
    reported = 0.0
    while (now := watch.now) - begin < longest:
        time.sleep(1)
        cluster.plane.processes.check()
        is_waiting = not all(_is_ready(pod) for pod in watch.items("Pod"))
        if not is_waiting and now - max(begin, find_last_change(watch.history, now)) >= REST_SECONDS:
            return now, True
        if now - reported >= 30:
            reported = now
            nodes, price = count_nodes(watch.history, now)
            print(
                f"  {now:4.0f} s: {nodes} nodes, {price / 1e6:.2f} dollars an hour, waiting: {is_waiting}", flush=True
            )
    return watch.now, False


if __name__ == "__main__":
    sys.exit(main())
