"""Usage series of single containers: read from any source, cleaned, named, and taken into a history.

Sources repeat themselves (two scrapers, one pod), go backwards (a clock was set), count from zero again (a restart)
and have gaps. A `Series` ascends in time, has one value per moment, and no invented values. `Names` are what a
Prometheus server calls the metrics and labels: relabelling renames them, and a recording rule may hold the rate of cpu.
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

MOST_GAP = 900
"""Seconds between two readings of a counter beyond which its rate says nothing of any moment."""
SKEW = 300
"""Seconds a sample may be ahead of us."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Cores or bytes at seconds since 1970, ascending."""

    namespace: str
    pod: str
    container: str
    resource: str
    times: Sequence[int]
    values: Sequence[float]
    asked: int | None = None
    """From when on the source was asked; None where that is not known."""
    left_out: int = 0
    """Values that are no number, which the source told as well."""
    workload: str = ""
    """Kind/name where the source tells it itself."""
    origin: tuple[tuple[str, str], ...] = ()
    """Labels that tell clusters apart, with their values, where the source tells them (see `clusters`)."""


class PodRef(msgspec.Struct, frozen=True):
    """A pod by its names, as the kubelet and the metrics API write them."""

    name: str = ""
    namespace: str = ""


def sample(pod: PodRef, container: str, resource: str, at: int, value: float) -> Series:
    """A series of one value: cores or bytes at a second since 1970."""
    return Series(
        namespace=pod.namespace, pod=pod.name, container=container, resource=resource, times=(at,), values=(value,)
    )


def clean(samples: Iterable[tuple[int, float]], now: int | None = None) -> tuple[list[int], list[float]]:
    """In order of time; of several at one moment the greatest (two scrapers see one pod); none from the future, none
    that is no amount."""
    found: dict[int, float] = {}
    for at, value in samples:
        if isfinite(value) and value >= 0 and (now is None or at <= now + SKEW):
            found[at] = max(value, found.get(at, 0.0))
    times = sorted(found)
    return times, [found[at] for at in times]


def rate(times: Sequence[int], counted: Sequence[float]) -> tuple[list[int], list[float]]:
    """Per second between readings of a counter, at the later one. A counter that went down began at 0 again; over a
    gap nothing is said."""
    at, values = [], []
    for n in range(1, len(times)):
        apart = times[n] - times[n - 1]
        if 0 < apart <= MOST_GAP:
            more = counted[n] - counted[n - 1] if counted[n] >= counted[n - 1] else counted[n]
            at.append(times[n])
            values.append(more / apart)
    return at, values


LABELS = ("namespace", "pod", "container")
_METRIC = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*", re.ASCII)
_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """cAdvisor's names, unless somebody says otherwise."""

    cpu: str = "container_cpu_usage_seconds_total"
    """A counter of seconds."""
    cpu_recorded: str = ""
    """A recording rule that gives cores, instead of the counter."""
    memory: str = "container_memory_working_set_bytes"
    labels: dict[str, str] = field(default_factory=dict)
    """namespace, pod or container → the label's name at the server."""

    def label(self, name: str) -> str:
        """What the server calls this label."""
        return self.labels.get(name, name)

    def query(self, resource: str, match: str, window: str) -> str:
        """Usage of the containers that match, the greatest where several scrapers tell it, under our own label names.
        `window`: of the rate, or the step, so that no peak between two points is lost."""
        selector = f"{{{self.containers()}{',' if match else ''}{match}}}"
        if resource == "memory":
            inner = f"max_over_time({self.memory}{selector}[{window}])"
        elif self.cpu_recorded:
            inner = f"avg_over_time({self.cpu_recorded}{selector}[{window}])"
        else:
            inner = f"rate({self.cpu}{selector}[{window}])"
        found = f"max by ({', '.join(map(self.label, LABELS))}) ({inner})"
        for name in LABELS:
            if self.label(name) != name:
                found = f'label_replace({found}, "{name}", "$1", "{self.label(name)}", "(.*)")'
        return found

    def containers(self) -> str:
        """The matchers of containers: not the pod as a whole, nor its pause container."""
        return f'{self.label("container")}!="",{self.label("container")}!="POD"'


def mistakes(names: Names) -> list[tuple[str, str]]:
    """(field, expected) of every name that no metric or label can have."""
    found = [
        (name, "the name of a metric")
        for name in ("cpu", "cpu_recorded", "memory")
        if getattr(names, name) and not _METRIC.fullmatch(getattr(names, name))
    ]
    wrong = [f"{ours}={theirs}" for ours, theirs in names.labels.items() if not _LABEL.fullmatch(theirs)]
    return found + [(text, "the name of a label") for text in wrong]


def labels(texts: Iterable[str]) -> dict[str, str]:
    """Renamed labels, each text as pod=k8s_pod_name. Raises ValueError with what was expected."""
    found = {}
    for text in texts:
        ours, sign, theirs = (part.strip() for part in text.partition("="))
        if not sign or ours not in LABELS or not _LABEL.fullmatch(theirs):
            raise ValueError(f"one of {', '.join(LABELS)}, and its name at the server, such as pod=k8s_pod_name")
        found[ours] = theirs
    return found


def container(series: Series, owners: OwnerIndex) -> ContainerKey:
    """Whose use it was."""
    kind, slash, name = series.workload.partition("/")
    owner = Owner(kind, name) if slash else owners.of(series.namespace, series.pod)
    return ContainerKey(series.namespace, owner.kind, owner.name, series.container)


def take(book: BatchHistory, found: Iterable[Series], owners: OwnerIndex) -> int:
    """All of them; how many there were."""
    count = 0
    for series in found:
        book.left_out += series.left_out
        whose = container(series, owners)
        book.take(whose, series.resource, series.times, series.values, series.asked, series.pod)
        count += 1
    return count
