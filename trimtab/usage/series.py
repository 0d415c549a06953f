"""Usage series of single containers: how they are cleaned, assigned to workloads, and added to a history.

Sources repeat samples (two scrapers for one pod), go backwards (a clock was set), count from zero again (a restart) and
have gaps. In a `Series` times ascend, each moment has one value, and no value is interpolated. `Names` has the names of
metrics and labels on a Prometheus server: relabelling may change them, and a recording rule may hold the rate of cpu
usage.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import isfinite

import msgspec

from trimtab.cluster.owner import Owner
from trimtab.histogram.batch_history import BatchHistory, ContainerKey
from trimtab.usage.owners import OwnerIndex

MAX_GAP_SECONDS = 900
"""If two readings of a counter are more than this many seconds apart, their rate is not used."""
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


class PodRef(msgspec.Struct, frozen=True):
    """The namespace and name of a pod, as the kubelet and the metrics API write them."""

    name: str = ""
    namespace: str = ""


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


def counter_rate(times: Sequence[int], readings: Sequence[float]) -> tuple[list[int], list[float]]:
    """Returns the rate per second between readings of a counter, each at the time of the later reading. A counter that
    decreased is taken to have restarted at 0; across a gap there is no value."""
    rate_times, values = [], []
    # The first reading has no predecessor, so it gives no rate.
    for n in range(1, len(times)):
        seconds = times[n] - times[n - 1]
        if 0 < seconds <= MAX_GAP_SECONDS:
            # A restart resets the counter: what it shows is the increase since then (as PromQL's `rate` does).
            increase = readings[n] - readings[n - 1] if readings[n] >= readings[n - 1] else readings[n]
            rate_times.append(times[n])
            values.append(increase / seconds)
    return rate_times, values


LABELS = ("namespace", "pod", "container")
_METRIC = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*", re.ASCII)
_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The names of metrics and labels on a Prometheus server; the defaults are those of cAdvisor."""

    cpu: str = "container_cpu_usage_seconds_total"
    """The metric of cpu usage, a counter of seconds."""
    cpu_recorded: str = ""
    """A metric in cores, from a recording rule, that is used in place of the counter; empty if there is none."""
    memory: str = "container_memory_working_set_bytes"
    labels: dict[str, str] = field(default_factory=dict)
    """namespace, pod or container → the name of this label on the server."""

    def server_label(self, name: str) -> str:
        """Returns the name of this label on the server."""
        return self.labels.get(name, name)

    def usage_query(self, resource: str, match: str, window: str) -> str:
        """Returns the query for the usage of the matching containers, with the default label names in its result. If
        several scrapers report a container, the larger value counts. `window` is the range of the rate for cpu; for
        memory it is the step, so that no peak between two points is lost."""
        selector = f"{{{self.container_matchers()}{',' if match else ''}{match}}}"
        if resource == "memory":
            inner = f"max_over_time({self.memory}{selector}[{window}])"
        elif self.cpu_recorded:
            inner = f"avg_over_time({self.cpu_recorded}{selector}[{window}])"
        else:
            inner = f"rate({self.cpu}{selector}[{window}])"
        query = f"max by ({', '.join(map(self.server_label, LABELS))}) ({inner})"
        for name in LABELS:
            if self.server_label(name) != name:
                query = f'label_replace({query}, "{name}", "$1", "{self.server_label(name)}", "(.*)")'
        return query

    def container_matchers(self) -> str:
        """Returns the matchers that select containers, that is, neither whole pods nor their pause containers."""
        return f'{self.server_label("container")}!="",{self.server_label("container")}!="POD"'


def invalid_names(names: Names) -> list[tuple[str, str]]:
    """Returns (field, what was expected) for each name that no metric or label can have."""
    bad_metrics = [
        (name, "the name of a metric")
        for name in ("cpu", "cpu_recorded", "memory")
        if getattr(names, name) and not _METRIC.fullmatch(getattr(names, name))
    ]
    bad_labels = [
        f"{name}={server_name}" for name, server_name in names.labels.items() if not _LABEL.fullmatch(server_name)
    ]
    return bad_metrics + [(text, "the name of a label") for text in bad_labels]


def parse_label_names(texts: Iterable[str]) -> dict[str, str]:
    """Returns the renamed labels; each text has the form pod=k8s_pod_name. Raises ValueError with what was expected."""
    server_names = {}
    for text in texts:
        name, sign, server_name = (part.strip() for part in text.partition("="))
        if not sign or name not in LABELS or not _LABEL.fullmatch(server_name):
            raise ValueError(f"one of {', '.join(LABELS)} and its name on the server, such as pod=k8s_pod_name")
        server_names[name] = server_name
    return server_names


def container_key(series: Series, owners: OwnerIndex) -> ContainerKey:
    """Returns the container of a workload to which a series belongs."""
    kind, slash, name = series.workload.partition("/")
    owner = Owner(kind, name) if slash else owners.topmost_owner(series.namespace, series.pod)
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
