"""Usage series of single containers: how they are cleaned, assigned to workloads, and added to a history.

Sources repeat samples (two scrapers for one pod), go backwards (a clock was set), count from zero again (a restart) and
have gaps. In a `Series` times ascend, each moment has one value, and no value is interpolated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite

import msgspec

from trimtab.cluster.kinds import GroupKind
from trimtab.cluster.owner import OwnerKey
from trimtab.histogram.batch_history import BatchHistory, ContainerKey
from trimtab.usage.owners import OwnerIndex
from trimtab.usage.series_subject import Identity

MAX_GAP_SECONDS = 900
"""If two readings of a counter are more than this many seconds apart, their rate is not used."""
PAUSE_CONTAINER = "POD"
"""The name of the container that holds a pod's network, in cAdvisor's series."""
MAX_SKEW_SECONDS = 300
"""The number of seconds by which a sample's time may be in the future."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The usage of one resource by one container of one pod: values in cores or bytes at ascending times in seconds
    since 1970."""

    namespace: str
    pod: str
    container: str
    resource: str
    times: Sequence[int]
    values: Sequence[float]
    queried_from: int | None = None
    """The first second for which the source was queried, or None if it is unknown."""
    dropped_values: int = 0
    """The number of values that were dropped because they are not numbers."""
    workload: str = ""
    """Kind/name of the workload, if the source itself names it; otherwise empty."""
    origin: tuple[tuple[str, str], ...] = ()
    """Labels that distinguish clusters, with their values, as far as the series has them (see `cluster_label`)."""
    identity: Identity = ()
    """Labels that differ between containers, with their values, as far as the series has them (see
    `series_subject`)."""


class PodRef(msgspec.Struct, frozen=True):
    """The namespace and name of a pod, as the kubelet and the metrics API write them."""

    name: str = ""
    namespace: str = ""


def is_container_name(name: str) -> bool:
    """Returns whether a series with this label is the usage of a container: neither of a whole pod, which has no such
    label, nor of a pause container."""
    return name not in ("", PAUSE_CONTAINER)


def single_sample(pod: PodRef, container: str, resource: str, at: int, value: float) -> Series:
    """Returns a series with one value, in cores or bytes, at a time in seconds since 1970."""
    return Series(
        namespace=pod.namespace, pod=pod.name, container=container, resource=resource, times=(at,), values=(value,)
    )


def clean_samples(samples: Iterable[tuple[int, float]], now: int | None = None) -> tuple[list[int], list[float]]:
    """Returns the times and values of samples, sorted by time. Of several values at one moment (two scrapers for one
    pod) the largest is kept. Samples from the future and invalid amounts are dropped."""
    by_second: dict[int, float] = {}
    for second, value in samples:
        if isfinite(value) and value >= 0 and (now is None or second <= now + MAX_SKEW_SECONDS):
            by_second[second] = max(value, by_second.get(second, 0.0))
    times = sorted(by_second)
    return times, [by_second[second] for second in times]


def counter_rate(
    times: Sequence[int], readings: Sequence[float], max_gap_seconds: int = MAX_GAP_SECONDS
) -> tuple[list[int], list[float]]:
    """Returns the rate per second between readings of a counter, each at the time of the later reading. A counter that
    decreased is taken to have restarted at 0; across a gap of more than `max_gap_seconds` there is no value."""
    rate_times, values = [], []
    # The first reading has no predecessor, so it gives no rate.
    for n in range(1, len(times)):
        seconds = times[n] - times[n - 1]
        if 0 < seconds <= max_gap_seconds:
            # A restart resets the counter: what it shows is the increase since then (as PromQL's `rate` does).
            increase = readings[n] - readings[n - 1] if readings[n] >= readings[n - 1] else readings[n]
            rate_times.append(times[n])
            values.append(increase / seconds)
    return rate_times, values


def container_key(series: Series, owners: OwnerIndex) -> ContainerKey:
    """Returns the container of a workload to which a series belongs. A workload that the series names may have a
    controller itself, such as the StatefulSet of an operator; the series then belongs to the controller."""
    kind, slash, name = series.workload.partition("/")
    owner = (
        owners.top_of(OwnerKey(series.namespace, GroupKind(kind), name))
        if slash
        else owners.topmost_owner(series.namespace, series.pod)
    )
    return ContainerKey(series.namespace, owner.kind, owner.name, series.container)


def add_all_series(history: BatchHistory, series_list: Iterable[Series], owners: OwnerIndex) -> int:
    """Adds all series to a history, and returns how many there were."""
    count = 0
    for series in series_list:
        history.dropped_values += series.dropped_values
        key = container_key(series, owners)
        history.add_series(key, series.resource, series.times, series.values, series.queried_from, series.pod)
        count += 1
    return count
