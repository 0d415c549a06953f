"""Reads what resizes need: running pods, what policies want for them, what they use, and whether the cluster can resize
pods.

Nothing of this is read unless a policy says `running: resize` or a resize is still in progress.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from trimtab.cluster.api.meta import ApiObject
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.reason import NotYet, Reason
from trimtab.cluster.resizable_pod import ResizablePod, ResizablePodReader
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.resize.reasons import NOT_SUPPORTED, REJECTED
from trimtab.compaction.resize.types import NOT_MEASURED, MeasuredUse
from trimtab.compactor.readmission_state import RunningRequests
from trimtab.compactor.reasons import STALE, UNSEEN
from trimtab.compactor.successor_requests import ReadmissionWatcher
from trimtab.kube import resize
from trimtab.kube.client import Client
from trimtab.kube.errors import KubeFault
from trimtab.kube.informers import ClusterInformers
from trimtab.usage.metrics_api import READ_INTERVAL_SECONDS, read_metrics, scheduler_number
from trimtab.usage.pod_pressure import PodPressures

SUPPORT_SECONDS = 600.0
"""For how many seconds the compactor remembers whether the cluster can resize pods. An upgrade of the cluster takes
longer."""
PERMISSION_SECONDS = 300.0
"""After the API server has denied the permission to resize pods, no resize is tried for this many seconds."""
MAX_PRESSURE_NODES = 50
"""The maximum number of kubelets that are asked in one reading; each response has some hundred kilobytes."""


@dataclass(slots=True)
class ResizeReader:
    """Reads what resizes need. Only the leader uses it; `stop` ends its watch."""

    client: Client
    admitting: ReadmissionWatcher
    max_age_seconds: float
    elapsed: Callable[[], float]
    now: Callable[[], Seconds]
    pressures: PodPressures | None = None
    """Reads the pressure of pods from kubelets; None: kubelets are not asked."""
    _informers: ClusterInformers | None = None
    _obstacle: Reason | None = None
    _checked_at: float | None = None
    _use: MeasuredUse = NOT_MEASURED
    _used_at: float | None = None
    _pods: ResizablePodReader = field(default_factory=ResizablePodReader)

    def stop(self) -> None:
        """Ends the watch."""
        if self._informers is not None:
            self._informers.stop()
            self._informers = None

    def wanted_lookup(self) -> RunningRequests | NotYet | None:
        """Returns a function that returns what policies want for a running pod; None if no policy wants anything;
        NotYet while not everything has been read."""
        return self.admitting.running_requests_lookup()

    def top_owner_of(self, pod: ResizablePod) -> str:
        """Returns namespace/Kind/name of the pod's topmost owner."""
        return self.admitting.state.top_owner_of(pod)

    def read_pods(self) -> Mapping[str, ResizablePod] | NotYet:
        """Returns uid → running pod; NotYet while pods have not been read, or the data is too old."""
        if self._informers is None:
            self._informers = ClusterInformers(self.client, ("Pod",), holds={"Pod": self._read_pod}).start()
        age = self._informers.oldest_age()
        if not self._informers.is_synced or age is None:
            return NotYet(reason=UNSEEN("the running pods have not been read yet"), have="no list", need="all pods")
        if age > self.max_age_seconds:
            return NotYet(
                reason=STALE("the API server has not answered for too long"),
                have=f"pods as of {age:.0f} s ago",
                need=f"pods that are at most {self.max_age_seconds:g} s old",
            )
        return {pod.uid: pod for pod in self._informers.values_of("Pod")}

    def _read_pod(self, shape: ApiObject) -> ResizablePod:
        assert isinstance(shape, Pod)
        return self._pods.read_pod(shape)

    def find_obstacle(self) -> Reason | None:
        """Returns why the cluster cannot resize pods, or why this process may not; None if neither is known."""
        now = self.elapsed()
        age = None if self._checked_at is None else now - self._checked_at
        if age is None or age > (
            PERMISSION_SECONDS if self._obstacle is not None and self._obstacle.code is REJECTED else SUPPORT_SECONDS
        ):
            self._checked_at = now
            try:
                problem = resize.find_resize_obstacle(self.client)
            except KubeFault as error:
                # Without knowledge nothing is resized; it is tried again in the next round.
                self._checked_at = None
                return NOT_SUPPORTED(f"Trimtab does not know whether the cluster can resize pods: {error}")
            self._obstacle = NOT_SUPPORTED(f"this cluster cannot resize running pods: {problem}") if problem else None
        return self._obstacle

    def note_missing_permission(self, message: str) -> Reason:
        """Remembers for a while that this process may not resize pods, and returns the reason."""
        self._checked_at = self.elapsed()
        self._obstacle = REJECTED(f"the compactor has no permission to resize pods: {message}")
        return self._obstacle

    def measure_use(self, pods: Mapping[str, ResizablePod], nodes: Collection[str]) -> MeasuredUse:
        """Returns what containers use now; nothing without a metrics server. `nodes` are those whose kubelets are asked
        for the pressure of their pods, if that is switched on."""
        now = self.elapsed()
        if self._used_at is not None and now - self._used_at < READ_INTERVAL_SECONDS:
            return self._use
        self._used_at = now
        uids = {pod.key: uid for uid, pod in pods.items()}
        amounts: dict[tuple[str, str, str], int] = {}
        stalled, throttled = self._read_pressures(uids, nodes)
        try:
            for series in read_metrics(self.client):
                uid = uids.get(f"{series.namespace}/{series.pod}")
                if uid is not None and series.values:
                    amounts[uid, series.container, series.resource] = scheduler_number(
                        series.resource, series.values[-1]
                    )
        except KubeFault:
            # No metrics server, or no permission: the recorded use of the recommendation counts alone.
            amounts = {}
        self._use = MeasuredUse(amounts=amounts, pressures=stalled, throttled=throttled, at=self.now())
        return self._use

    def _read_pressures(
        self, uids: Mapping[str, str], nodes: Collection[str]
    ) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """Returns (uid → pressure, uid → throttling), in percent. Both mappings are empty if kubelets are not asked."""
        if self.pressures is None or not nodes:
            return {}, {}
        stalled, throttled = self.pressures.read(sorted(nodes)[:MAX_PRESSURE_NODES])
        return tuple(  # type: ignore[return-value]
            {uid: share for (space, name), share in shares.items() if (uid := uids.get(f"{space}/{name}")) is not None}
            for shares in (stalled, throttled)
        )
