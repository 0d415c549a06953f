"""Makes a churn happen in a live cluster, and runs the stand-in for the cluster autoscaler there.

Both take what they do from the same functions as the simulation: `draw_churn` and `scan_cluster`.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType

from tests.bench.churn_watch import LOST, USER_CORDON, ChurnWatch
from tests.controlplane import objects
from tests.controlplane.api import ApiError, Object, Unreachable
from tests.controlplane.autoscaler import status
from tests.controlplane.cluster import Cluster
from trimtab.autoscaling.churn.churn_cluster import EPOCH, ClusterTimes
from trimtab.autoscaling.churn.churn_objects import (
    APP_LABEL,
    CANDIDATE,
    DELETION_TAINT,
    NAMESPACE,
    SPOT_TAINT,
    create_node,
)
from trimtab.autoscaling.churn.churn_script import (
    SPOT_NOTICE_SECONDS,
    Churn,
    ChurnEvent,
    ChurnKind,
    ChurnMachine,
    ChurnWorkload,
)
from trimtab.autoscaling.churn.pod_shapes import ChurnPodShape
from trimtab.autoscaling.churn.stand_in import scan_cluster
from trimtab.autoscaling.churn.stand_in_rules import StandInFlags
from trimtab.autoscaling.churn.stand_in_view import (
    GROUP_LABEL,
    AddNodes,
    BeginRemoval,
    DeleteNode,
    EvictFrom,
    GiveBack,
    MarkCandidate,
    StandInAction,
    StandInState,
    read_stand_in_view,
)
from trimtab.cluster.pod import FINISHED_PHASES

RUNS_FOR = "testbed.trimtab.dev/runs-for"
OURS = {DELETION_TAINT.key, CANDIDATE.key}


def scale_flags(flags: StandInFlags, speed: float) -> StandInFlags:
    """Returns the flags on a clock that is so many times as fast; a scan takes a second at least."""
    return StandInFlags(
        threshold=flags.threshold,
        unneeded_seconds=flags.unneeded_seconds / speed,
        delay_after_add_seconds=flags.delay_after_add_seconds / speed,
        recheck_seconds=flags.recheck_seconds / speed,
        scan_seconds=max(1.0, flags.scan_seconds / speed),
        max_eviction_seconds=flags.max_eviction_seconds / speed,
        new_pod_seconds=flags.new_pod_seconds / speed,
    )


class LiveMachines:
    """Makes and deletes nodes. `prefix` begins the names of those that it makes."""

    def __init__(self, cluster: Cluster, churn: Churn, prefix: str = "") -> None:
        self.cluster, self.prefix = cluster, prefix
        self.machines = {machine.group: machine for machine in churn.machines}
        self._count = 0
        self._lock = threading.Lock()

    def add(self, group: str) -> None:
        with self._lock:
            self._count += 1
            name = f"{self.prefix}{group}-{self._count:04d}"
        self.cluster.create(node_item(self.machines[group], name))

    def delete(self, name: str) -> None:
        """Deletes the node, and what is on it: a machine that is gone takes its pods along."""
        self.cluster.delete("Node", name)
        api = self.cluster.api
        for pod in list(api.items(api.kind("Pod"), NAMESPACE, fieldSelector=f"spec.nodeName={name}")):
            self.cluster.delete("Pod", pod["metadata"]["name"], NAMESPACE, grace=0)


def node_item(machine: ChurnMachine, name: str) -> Object:
    described = create_node(machine, name, EPOCH)
    return objects.node(
        name,
        cpu=f"{machine.millicores}m",
        memory=f"{machine.mebibytes}Mi",
        pods=machine.pods,
        labels=described.labels,
        taints=(),
    )


def deployment_item(workload: ChurnWorkload) -> Object:
    item = objects.deployment(
        workload.name,
        replicas=workload.replicas,
        image="pause",
        cpu=f"{workload.shape.millicores}m",
        memory=f"{workload.shape.mebibytes}Mi",
        labels={},
        annotations={},
        spec={},
    )
    item["metadata"]["namespace"] = NAMESPACE
    return item


def job_item(name: str, shape: ChurnPodShape) -> Object:
    """Its pod runs until the Job is deleted."""
    container = objects.container("main", "pause", f"{shape.millicores}m", f"{shape.mebibytes}Mi")
    template = {
        "metadata": {"labels": {APP_LABEL: name}, "annotations": {RUNS_FOR: "48h"}},
        "spec": {"containers": [container], "restartPolicy": "Never"},
    }
    # An evicted pod counts as failed: a Job of the churn is not to fail because it was moved.
    rules = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"template": template, "podFailurePolicy": {"rules": rules}},
    }


def budget_item(name: str, unavailable: int) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"maxUnavailable": unavailable, "selector": {"matchLabels": {APP_LABEL: name}}},
    }


@dataclass
class LiveChurn:
    """Makes the events of a churn happen, each at its time of the cluster's clock."""

    cluster: Cluster
    watch: ChurnWatch
    machines: LiveMachines
    churn: Churn
    late: float = 0.0
    """The longest time, of the cluster's clock, by which an event was late."""
    faults: list[str] = field(default_factory=list)

    def begin(self) -> None:
        """Creates the nodes and the workloads of the beginning."""
        for group in self.churn.nodes:
            self.machines.add(group)
        for workload in self.churn.workloads:
            self.cluster.create(deployment_item(workload))
            if workload.max_unavailable is not None:
                self.cluster.create(budget_item(workload.name, workload.max_unavailable))

    def run(self, until: float) -> None:
        """Makes everything happen until this second of the cluster's clock."""
        due: list[tuple[float, Callable[[], None]]] = [
            (event.at, lambda event=event: self._happen(event, due)) for event in self.churn.events
        ]
        while self.watch.now < until:
            due.sort(key=lambda one: one[0])
            if not due or due[0][0] > self.watch.now:
                time.sleep(0.02)
                continue
            at, act = due.pop(0)
            self.late = max(self.late, self.watch.now - at)
            try:
                act()
            except (ApiError, Unreachable) as error:
                self.faults.append(str(error))

    def _happen(self, event: ChurnEvent, due: list[tuple[float, Callable[[], None]]]) -> None:
        name, cluster = event.workload, self.cluster
        match event.kind:
            case ChurnKind.SCALE:
                cluster.patch("Deployment", name, {"spec": {"replicas": event.amount}}, NAMESPACE)
            case ChurnKind.ROLLOUT:
                template = {"metadata": {"annotations": {"churn/at": str(event.at)}}}
                cluster.patch("Deployment", name, {"spec": {"template": template}}, NAMESPACE)
            case ChurnKind.JOB if event.shape is not None:
                cluster.create(job_item(name, event.shape))
            case ChurnKind.JOB_ENDS:
                path = cluster.api.path(cluster.api.kind("Job"), NAMESPACE, name)
                cluster.api.request("DELETE", path, propagationPolicy="Background")
            case ChurnKind.BUDGET if event.amount < 0:
                cluster.delete("PodDisruptionBudget", name, NAMESPACE)
            case ChurnKind.BUDGET:
                cluster.apply(budget_item(name, event.amount))
            case _:
                self._happen_to_node(event, due)

    def _happen_to_node(self, event: ChurnEvent, due: list[tuple[float, Callable[[], None]]]) -> None:
        nodes = sorted(self.watch.items("Node"), key=lambda node: str(node["metadata"]["name"]))
        names = [node["metadata"]["name"] for node in nodes if is_staying(node)]
        if len(names) < 2:
            return
        name, now = names[int(event.share * len(names))], self.watch.now
        if event.kind is ChurnKind.CORDON:
            self._cordon(name, is_cordoned=True)
            due.append((now + event.amount, lambda: self._cordon(name, is_cordoned=False)))
            return
        self.cluster.patch("Node", name, {"metadata": {"annotations": {LOST: "true"}}})
        if event.kind is ChurnKind.NODE_DIES:
            self.machines.delete(name)
            return
        taints = self.cluster.get("Node", name)["spec"].get("taints", [])
        taint = {"key": SPOT_TAINT.key, "effect": SPOT_TAINT.effect}
        self.cluster.patch("Node", name, {"spec": {"taints": [*taints, taint]}})
        due.append((now + SPOT_NOTICE_SECONDS, lambda: self.machines.delete(name)))

    def _cordon(self, name: str, *, is_cordoned: bool) -> None:
        mark = {"metadata": {"annotations": {USER_CORDON: "true" if is_cordoned else None}}}
        self.cluster.patch("Node", name, {**mark, "spec": {"unschedulable": is_cordoned}})


def is_staying(node: Object) -> bool:
    """As in the simulation: ready, neither cordoned nor being deleted, and not about to be lost."""
    keys = {taint["key"] for taint in node["spec"].get("taints", ())}
    is_ready = any(one["type"] == "Ready" and one["status"] == "True" for one in node["status"].get("conditions", ()))
    is_leaving = node["spec"].get("unschedulable") or DELETION_TAINT.key in keys
    return is_ready and not is_leaving and LOST not in node["metadata"].get("annotations", {})


@dataclass
class LiveStandIn:
    """Scans the live cluster as `ChurnStandIn` scans the one in memory, and carries out what the scan decides."""

    cluster: Cluster
    watch: ChurnWatch
    machines: LiveMachines
    flags: StandInFlags
    """On the clock of the wall."""
    provision: float = ClusterTimes().provision
    """Seconds on the clock of the wall from the order of a machine until its node is there."""
    scans: int = 0
    faults: list[str] = field(default_factory=list)
    _state: StandInState = field(default_factory=StandInState)
    _coming: list[tuple[float, str]] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> LiveStandIn:
        templates = {group: create_node(one, f"new-{group}", EPOCH) for group, one in self.machines.machines.items()}
        self._templates = templates
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(10)

    def _run(self) -> None:
        due = time.monotonic() + self.flags.scan_seconds
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            due = time.monotonic() + self.flags.scan_seconds
            try:
                self.scan()
                self.scans += 1
            except (ApiError, Unreachable) as error:
                self.faults.append(str(error))

    def scan(self) -> None:
        now = time.time()
        for at, group in [one for one in self._coming if one[0] <= now]:
            self.machines.add(group)
            self._coming.remove((at, group))
        coming = tuple(self._templates[group] for _, group in self._coming)
        view = read_stand_in_view(self.watch.read_inventory(), now, coming)
        found = scan_cluster(self._state, view, self.flags, self._templates)
        self._state = found.state
        for action in found.actions:
            self._try(partial(self._execute, action, now))
        for name in {one.node for one in found.actions if isinstance(one, EvictFrom)}:
            threading.Thread(target=self._try, args=(partial(self._delete_when_empty, name),), daemon=True).start()
        self._report()

    def _try(self, act: Callable[[], None]) -> None:
        try:
            act()
        except ApiError as error:
            # A budget that is spent, or an object that is gone: the next scan sees it.
            if error.status not in (404, 409, 429):
                raise

    def _delete_when_empty(self, name: str) -> None:
        """Deletes a node that is being drained as soon as its pods have left, if that is before the next scan: the
        real autoscaler does not wait for its next one."""
        until = time.monotonic() + self.flags.scan_seconds
        while time.monotonic() < until:
            if all(pod["status"].get("phase") in FINISHED_PHASES for pod in self.watch.pods_on(name)):
                self.machines.delete(name)
                return
            time.sleep(0.05)

    def _execute(self, action: StandInAction, now: float) -> None:
        match action:
            case AddNodes(group, count):
                self._coming += [(now + self.provision, group)] * count
            case MarkCandidate(name, is_candidate):
                # The real one writes since when it marks the node, which is what a replay knows of the time before.
                marked = {"key": CANDIDATE.key, "effect": CANDIDATE.effect, "value": str(round(now))}
                self._taint(name, marked if is_candidate else None)
            case BeginRemoval(name):
                self._taint(name, {"key": DELETION_TAINT.key, "effect": DELETION_TAINT.effect}, unschedulable=True)
            case GiveBack(name):
                self._taint(name, None, unschedulable=False)
            case EvictFrom(_, uid):
                pod = self.watch.objects["Pod"].get(uid)
                if pod is not None:
                    self.cluster.evict(pod["metadata"]["name"], pod["metadata"]["namespace"])
            case DeleteNode(name):
                self.machines.delete(name)

    def _taint(self, name: str, taint: Object | None, **changes: bool) -> None:
        others = [one for one in self.cluster.get("Node", name)["spec"].get("taints", ()) if one["key"] not in OURS]
        self.cluster.patch("Node", name, {"spec": {"taints": [*others, taint] if taint else others, **changes}})

    def _report(self) -> None:
        nodes = {node["metadata"]["name"]: node["metadata"]["labels"] for node in self.watch.items("Node")}
        groups = {name: labels[GROUP_LABEL] for name, labels in nodes.items() if GROUP_LABEL in labels}
        self.cluster.apply(
            status(
                Counter(groups.values()),
                scale_up="InProgress" if self._coming else "NoActivity",
                least=self.flags.min_size,
                candidates=Counter(groups[name] for name in self._state.unneeded if name in groups),
            )
        )
