"""Reads from kubelets how much the processes of pods wait: Pressure Stall Information (PSI), and throttling by cpu
limits.

PSI is in a kubelet's /stats/summary (feature KubeletPSI: beta in Kubernetes 1.34, stable in 1.36). Throttling is in
/metrics/cadvisor, as two counters of scheduling periods for each container. Both are read through the API server's node
proxy, which needs `get` on `nodes/proxy`; the option that enables this says so
(docs/how-to/size-requests.md#resize-running-pods).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from trimtab.kube.client import Client
from trimtab.kube.errors import InvalidResponse, KubeFault
from trimtab.kube.resources import path_segment
from trimtab.usage.series import PodRef

PodKey = tuple[str, str]
"""(namespace, pod)."""


class _Average(msgspec.Struct, frozen=True):
    avg60: float = 0.0


class _Psi(msgspec.Struct, frozen=True):
    some: _Average = _Average()


class _Stall(msgspec.Struct, frozen=True):
    psi: _Psi | None = None


class _PodStalls(msgspec.Struct, frozen=True, rename="camel"):
    pod_ref: PodRef = PodRef()
    cpu: _Stall = _Stall()
    memory: _Stall = _Stall()


class _Stalls(msgspec.Struct, frozen=True):
    pods: tuple[_PodStalls, ...] | None = None


def pressures_of_summary(body: bytes) -> Iterator[tuple[PodKey, int]]:
    """Yields (pod, percent of the last minute in which some of its processes waited for cpu or memory) from a kubelet's
    /stats/summary, for pods with PSI. Raises InvalidResponse."""
    try:
        pods = msgspec.json.decode(body, type=_Stalls).pods or ()
    except msgspec.DecodeError as error:
        raise InvalidResponse(f"the summary of a kubelet: {error}") from None
    for pod in pods:
        shares = [part.psi.some.avg60 for part in (pod.cpu, pod.memory) if part.psi is not None]
        if shares:
            yield (pod.pod_ref.namespace, pod.pod_ref.name), math.ceil(max(shares))


_COUNTER = re.compile(rb"^container_cpu_cfs_(throttled_)?periods_total\{([^}]*)\} (\S+)", re.MULTILINE)
_LABEL = re.compile(rb'(namespace|pod)="([^"]*)"')

Periods = tuple[float, float]
"""(throttled periods, all periods), summed over the containers of a pod."""


def periods_of_metrics(body: bytes) -> dict[PodKey, Periods]:
    """Returns pod → counted periods, from a kubelet's /metrics/cadvisor. A container without a cpu limit has no
    periods."""
    periods: dict[PodKey, Periods] = {}
    for throttled, labels, value in _COUNTER.findall(body):
        names = dict(_LABEL.findall(labels))
        key = (names.get(b"namespace", b"").decode(), names.get(b"pod", b"").decode())
        try:
            amount = float(value)
        except ValueError:
            continue
        before = periods.get(key, (0.0, 0.0))
        periods[key] = (before[0] + amount, before[1]) if throttled else (before[0], before[1] + amount)
    return periods


@dataclass(slots=True)
class PodPressures:
    """Reads the pressure of pods on some nodes. Pods are left out if their kubelet does not respond or does not report
    it."""

    client: Client
    _periods: dict[PodKey, Periods] = field(default_factory=dict)

    def read(self, nodes: Iterable[str]) -> tuple[Mapping[PodKey, int], Mapping[PodKey, int]]:
        """Returns (pod → percent of the last minute in which its processes waited, pod → percent of the periods since
        the last reading in which it was throttled)."""
        pressures: dict[PodKey, int] = {}
        throttled: dict[PodKey, int] = {}
        periods: dict[PodKey, Periods] = {}
        for node in nodes:
            path = f"/api/v1/nodes/{path_segment(node)}/proxy"
            try:
                pressures |= pressures_of_summary(
                    self.client.get(f"{path}/stats/summary", doing=f"read the summary of node {node}")
                )
                periods |= periods_of_metrics(
                    self.client.get(f"{path}/metrics/cadvisor", doing=f"read the summary of node {node}")
                )
            except KubeFault:
                continue
        for key, (stalls, count) in periods.items():
            before = self._periods.get(key)
            # Counters begin anew with a container: then the difference says nothing.
            if before is not None and count > before[1] and stalls >= before[0]:
                throttled[key] = math.ceil(100 * (stalls - before[0]) / (count - before[1]))
        self._periods = periods
        return pressures, throttled
