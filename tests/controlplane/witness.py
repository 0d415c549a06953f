"""What happened to the pods? A watch of its own, event by event; it knows nothing of who moves them, nor why."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from types import TracebackType

from tests.controlplane.api import Api, ApiError, Object, Unreachable
from tests.controlplane.cluster import Cluster

App = tuple[str, str]
"""(namespace, value of the label `app`)."""


@dataclass(slots=True)
class Seen:
    """One pod, since it was seen first."""

    name: str
    app: App
    since: float
    born_here: bool
    """It came to be while we watched."""
    placed: float | None = None
    ready: bool = False
    node: str = ""
    ending: bool = False


@dataclass
class Witness:
    """Looks from `with` on, and until its end.

    Budgets are those with `maxUnavailable` and a selector of `app`; how many pods an app wants, its Deployment says.
    """

    cluster: Cluster
    least: dict[App, int] = field(default_factory=dict)
    """App → ready pods its budget wants."""
    broken: list[str] = field(default_factory=list)
    """Each time an app fell under its budget."""
    fewest: dict[App, int] = field(default_factory=dict)
    """App → the least number of ready pods seen after it was whole once."""
    longest_wait: float = 0.0
    """Seconds a pod waited for its node."""
    longest_start: float = 0.0
    """Seconds from a pod's first sight to its readiness."""
    born: set[str] = field(default_factory=set)
    """namespace/name of the pods that came to be while we watched."""
    ages: dict[str, float] = field(default_factory=dict)
    """namespace/name → the seconds from a pod's first sight to when it was told to go, for pods in `born`."""
    left: list[tuple[str, str]] = field(default_factory=list)
    """(node, namespace/name) of pods on a node, in the order in which they were told to go."""
    pods: dict[str, Seen] = field(default_factory=dict)
    events: int = 0
    _ending: frozenset[str] = frozenset()
    """Namespaces somebody deletes: what happens to their pods is nobody's doing here."""
    _wanted: dict[App, int] = field(default_factory=dict)
    _ready: Counter[App] = field(default_factory=Counter)
    _stop: threading.Event = field(default_factory=threading.Event)
    _listed: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Witness:
        namespaces = self.cluster.list("Namespace", everywhere=True)
        self._ending = frozenset(n["metadata"]["name"] for n in namespaces if "deletionTimestamp" in n["metadata"])
        for result in self.cluster.list("Deployment", everywhere=True):
            self._wanted[_app(result["metadata"]["namespace"], result["spec"]["template"])] = result["spec"]["replicas"]
        for budget in self.cluster.list("PodDisruptionBudget", everywhere=True):
            app = (budget["metadata"]["namespace"], budget["spec"]["selector"]["matchLabels"].get("app", ""))
            if app in self._wanted and app[0] not in self._ending and "maxUnavailable" in budget["spec"]:
                self.least[app] = self._wanted[app] - int(budget["spec"]["maxUnavailable"])
        self._api = Api(self.cluster.kubeconfig)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._listed.wait(60)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()

    def waiting(self) -> list[str]:
        """Pods without a node."""
        return [pod.name for pod in list(self.pods.values()) if pod.placed is None]

    def _run(self) -> None:
        kind = self._api.kind("Pod")
        while not self._stop.is_set():
            try:
                answer = self._api.request("GET", self._api.path(kind, None), timeout=60)
                self._relisted(answer["items"])
                self._listed.set()
                for event in self._api.watch(kind, answer["metadata"]["resourceVersion"]):
                    if self._stop.is_set() or event["type"] == "ERROR":
                        break
                    self.event(event)
            except (ApiError, Unreachable):
                self._stop.wait(0.2)

    def _relisted(self, items: list[Object]) -> None:
        """After a gap: what is gone meanwhile is gone, the others are as they are."""
        there = {item["metadata"]["uid"] for item in items}
        for uid in set(self.pods) - there:
            self._drop(uid)
        for item in items:
            self.look(item, first=not self._listed.is_set())

    def event(self, event: Object) -> None:
        self.events += 1
        if event["type"] == "DELETED":
            self._drop(event["object"]["metadata"]["uid"])
        else:
            self.look(event["object"])

    def look(self, pod: Object, *, first: bool = False) -> None:
        meta, now = pod["metadata"], time.monotonic()
        if meta["namespace"] in self._ending:
            return
        observation = self.pods.get(meta["uid"])
        if observation is None:
            name = f"{meta['namespace']}/{meta['name']}"
            observation = self.pods[meta["uid"]] = Seen(name, _app(meta["namespace"], pod), now, born_here=not first)
            if not first:
                self.born.add(name)
        if observation.placed is None and pod["spec"].get("nodeName"):
            observation.placed = now
            if observation.born_here:
                self.longest_wait = max(self.longest_wait, now - observation.since)
        observation.node = pod["spec"].get("nodeName", "")
        if "deletionTimestamp" in meta:
            self._leaves(observation)
        self._set(observation, ready=_is_ready(pod) and "deletionTimestamp" not in meta, now=now)

    def _drop(self, uid: str) -> None:
        observation = self.pods.pop(uid, None)
        if observation is not None:
            self._leaves(observation)
            self._set(observation, ready=False, now=time.monotonic())

    def _leaves(self, observation: Seen) -> None:
        if not observation.ending:
            observation.ending = True
            if observation.node:
                self.left.append((observation.node, observation.name))
                if observation.born_here:
                    self.ages[observation.name] = time.monotonic() - observation.since

    def _set(self, observation: Seen, *, ready: bool, now: float) -> None:
        if ready == observation.ready:
            return
        observation.ready = ready
        self._ready[observation.app] += 1 if ready else -1
        if ready and observation.born_here:
            self.longest_start = max(self.longest_start, now - observation.since)
        count, app = self._ready[observation.app], observation.app
        if ready and count >= self._wanted.get(app, 1):
            self.fewest.setdefault(app, count)
        elif not ready and app in self.fewest:
            self.fewest[app] = min(self.fewest[app], count)
            if count == self.least.get(app, 0) - 1:
                self.broken.append(f"{'/'.join(app)}: {count} ready, {self.least[app]} wanted")


def _app(namespace: str, pod: Object) -> App:
    return namespace, pod["metadata"].get("labels", {}).get("app", "")


def _is_ready(pod: Object) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", ()))
