"""What happens in a live cluster, as the history that `judge_history` judges: a watch of nodes, pods and budgets."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from types import TracebackType

from tests.controlplane.api import Api, ApiError, Object, Unreachable
from tests.controlplane.cluster import Cluster
from trimtab.autoscaling.churn.churn_history import BudgetSeen, ChurnRecord, NodeGone, NodeSeen, PodGone, PodSeen
from trimtab.autoscaling.churn.churn_objects import APP_LABEL, NAMESPACE
from trimtab.autoscaling.churn.churn_script import MACHINES
from trimtab.cluster import quantity
from trimtab.cluster.cluster_state import Inventory, snapshot_inventory
from trimtab.cluster.node import INSTANCE_TYPE_LABEL
from trimtab.cluster.snapshot import build_snapshot
from trimtab.cluster.yaml_documents import Document

USER_CORDON, LOST = "churn/user-cordon", "churn/lost"
"""Annotations of a node that a user of the churn has cordoned, and of one that the churn takes away."""
PRICES = {machine.instance_type: machine.price for machine in MACHINES}
"""Instance type → micro-dollars an hour, for nodes that others make, without our label."""
KINDS = {"Node": "v1", "Pod": "v1", "PodDisruptionBudget": "policy/v1"}


@dataclass
class ChurnWatch:
    """Watches from `with` on; each record has the time of the cluster's clock."""

    cluster: Cluster
    speed: float
    objects: dict[str, dict[str, Object]] = field(default_factory=lambda: {kind: {} for kind in KINDS})
    """Kind → uid → the object as it is now."""
    _records: list[tuple[int, int, ChurnRecord]] = field(default_factory=list)
    """(resourceVersion, number, record)."""
    _began: float | None = None
    _stop: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> ChurnWatch:
        self._api = Api(self.cluster.kubeconfig)
        for kind in KINDS:
            listed = threading.Event()
            threading.Thread(target=self._watch, args=(kind, listed), daemon=True).start()
            assert listed.wait(60), kind
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()

    @property
    def now(self) -> float:
        """Seconds of the cluster's clock since `start_clock`; 0 before."""
        return 0.0 if self._began is None else (time.monotonic() - self._began) * self.speed

    def start_clock(self) -> None:
        self._began = time.monotonic()

    @property
    def history(self) -> list[ChurnRecord]:
        """The records in the order of the changes, which resourceVersions have."""
        with self._lock:
            return [record for _, _, record in sorted(self._records, key=lambda one: one[:2])]

    def items(self, kind: str) -> list[Object]:
        with self._lock:
            return list(self.objects[kind].values())

    def pods_on(self, node: str) -> list[Object]:
        return [pod for pod in self.items("Pod") if pod["spec"].get("nodeName") == node]

    def read_inventory(self) -> Inventory:
        """Returns the cluster as a planner reads it."""
        items = [
            {"apiVersion": version, "kind": kind, **one} for kind, version in KINDS.items() for one in self.items(kind)
        ]
        documents = [Document(file="live", index=number, value=item) for number, item in enumerate(items)]
        reading = build_snapshot(documents)
        assert not reading.mistakes, reading.mistakes
        return snapshot_inventory(reading.snapshot)

    def _watch(self, name: str, listed: threading.Event) -> None:
        kind = self._api.kind(name)
        while not self._stop.is_set():
            try:
                answer = self._api.request("GET", self._api.path(kind, None), timeout=60)
                present = {item["metadata"]["uid"]: item for item in answer["items"]}
                with self._lock:
                    missing = [one for uid, one in self.objects[name].items() if uid not in present]
                for item in missing:
                    self._record(name, {"type": "DELETED", "object": item})
                for item in present.values():
                    self._record(name, {"type": "ADDED", "object": item})
                listed.set()
                for event in self._api.watch(kind, answer["metadata"]["resourceVersion"]):
                    if self._stop.is_set() or event["type"] == "ERROR":
                        break
                    self._record(name, event)
            except (ApiError, Unreachable):
                self._stop.wait(0.2)

    def _record(self, kind: str, event: Object) -> None:
        item, is_gone = event["object"], event["type"] == "DELETED"
        uid, at = item["metadata"]["uid"], self.now
        with self._lock:
            if is_gone:
                self.objects[kind].pop(uid, None)
            else:
                self.objects[kind][uid] = item
            record = _READERS[kind](item, at, is_gone)
            if record is not None:
                self._records.append((int(item["metadata"]["resourceVersion"]), len(self._records), record))


def read_node(item: Object, at: float, is_gone: bool) -> ChurnRecord:
    meta = item["metadata"]
    if is_gone:
        return NodeGone(at, meta["name"])
    annotations = meta.get("annotations", {})
    return NodeSeen(
        at,
        meta["name"],
        quantity.scheduler_value("cpu", item["status"]["allocatable"]["cpu"]),
        int(meta["labels"].get("trimtab.dev/price", 0)) or PRICES.get(meta["labels"].get(INSTANCE_TYPE_LABEL, ""), 0),
        is_cordoned=bool(item["spec"].get("unschedulable")),
        is_cordoned_by_user=USER_CORDON in annotations,
        is_lost=LOST in annotations,
    )


def read_pod(item: Object, at: float, is_gone: bool) -> ChurnRecord | None:
    meta, conditions = item["metadata"], item["status"].get("conditions", ())
    if meta["namespace"] != NAMESPACE:
        return None
    if is_gone:
        return PodGone(at, meta["uid"])
    return PodSeen(
        at,
        meta["uid"],
        meta["labels"].get(APP_LABEL, ""),
        node=item["spec"].get("nodeName", ""),
        is_ready=any(one["type"] == "Ready" and one["status"] == "True" for one in conditions),
        is_evicted=any(one.get("reason") == "EvictionByEvictionAPI" for one in conditions),
        is_leaving="deletionTimestamp" in meta,
    )


def read_budget(item: Object, at: float, is_gone: bool) -> ChurnRecord:
    desired = 0 if is_gone else item.get("status", {}).get("desiredHealthy", 0)
    return BudgetSeen(at, item["metadata"]["name"], desired)


_READERS = {"Node": read_node, "Pod": read_pod, "PodDisruptionBudget": read_budget}
