"""Reads the usage that rules compare requests with: from files of samples, or else from the recommendations in the
cluster.

Amounts are in millicores and bytes. Samples of all pods of a workload are combined; in addition the mean of each pod,
the peak after its start and the number of pods at a time are computed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from statistics import fmean, median
from typing import TYPE_CHECKING

from trimtab.autoscaling.container_amounts import CPU, RESOURCES, read_amount
from trimtab.autoscaling.lint_snapshot import LintSnapshot, subject_of
from trimtab.autoscaling.usage_history import ContainerName, ReplicaUsage, ResourceUsage, UsageHistory
from trimtab.cluster.kinds import POD
from trimtab.cluster.owner import OwnerKey, parse_owner_key

if TYPE_CHECKING:
    from trimtab.cluster.recommendation import Percentiles
    from trimtab.usage.metric_names import StatedQuantities
    from trimtab.usage.owners import OwnerIndex
    from trimtab.usage.series import Series

START_SECONDS = 300
"""The number of seconds after a pod's first sample that count as the start of the pod."""
MIN_SAMPLES = 20
MIN_DAYS_OF_IDLE = 3
_HOUR, _DAY = 3600, 86400


@dataclass(slots=True)
class _Samples:
    """The samples of one resource for one container."""

    values: list[float] = field(default_factory=list)
    by_day: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    by_pod: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    start_peaks: list[float] = field(default_factory=list)
    first: int = 0
    last: int = 0


def read_usage_history(
    paths: Sequence[str], snapshot: LintSnapshot, stated: StatedQuantities
) -> tuple[UsageHistory | None, list[str]]:
    """Returns the known usage with notes, or None if none is known. `stated`: what the user says of series whose name
    does not tell their quantity. Raises UsageError if a file is invalid."""
    if paths:
        return _read_files(paths, snapshot, stated)
    return _published_history(snapshot), []


def _read_files(
    paths: Sequence[str], snapshot: LintSnapshot, stated: StatedQuantities
) -> tuple[UsageHistory, list[str]]:
    # Imported here because most runs have no usage, and the histograms are slow to import.
    from trimtab.histogram.batch_history import BatchHistory
    from trimtab.inputs.usage_sources import UsageHistories, add_files
    from trimtab.usage.owners import OwnerIndex

    collected: list[Series] = []

    class SeriesCollector(UsageHistories):
        """Collects the series themselves, instead of adding them to histograms."""

        def add_series(self, value: str, all_series: Iterable[Series], owners: OwnerIndex) -> None:
            self.get_history(value)
            collected.extend(all_series)

    pods = {
        (subject.namespace, subject.name): snapshot.topmost_owner(subject).key
        for subject in (subject_of("Pod", pod.metadata) for pod in snapshot.pods)
    }
    owners = OwnerIndex(
        pods=pods,
        owners={
            **{workload.subject.key: None for workload in snapshot.workloads if workload.subject.kind != POD},
            **{subject.key: above.key for subject, above in snapshot.owners.items() if subject.kind != POD},
        },
        live_pods=pods.items,
    )
    histories = SeriesCollector(BatchHistory)
    notes = add_files(histories, paths, owners, None, stated)
    if not collected:
        notes.append(
            "--usage contains no samples (checkpoints of a VPA contain none), so the rules about usage are not checked."
        )
    return summarize_series(collected, owners), notes


def summarize_series(all_series: Iterable[Series], owners: OwnerIndex) -> UsageHistory:
    """Returns the statistics of usage by container, and the number of pods by workload, from all series."""
    from trimtab.usage.series import container_key

    samples: dict[tuple[ContainerName, str], _Samples] = defaultdict(_Samples)
    lives: dict[OwnerKey, dict[str, tuple[int, int]]] = defaultdict(dict)
    for series in all_series:
        if not series.times or series.resource not in RESOURCES:
            continue
        key = container_key(series, owners)
        name = (key.owner, key.name)
        _add_series(samples[name, series.resource], series)
        if series.pod:
            first, last = lives[key.owner].get(series.pod, (series.times[0], series.times[-1]))
            lives[key.owner][series.pod] = min(first, series.times[0]), max(last, series.times[-1])
    containers: dict[ContainerName, dict[str, ResourceUsage]] = defaultdict(dict)
    for (name, resource), of_container in samples.items():
        if len(of_container.values) >= MIN_SAMPLES:
            containers[name][resource] = _summarize_samples(of_container)
    replicas = {name: usage for name, pods in lives.items() if (usage := count_replicas(pods)) is not None}
    return UsageHistory(containers=dict(containers), replicas=replicas)


def _add_series(samples: _Samples, series: Series) -> None:
    scale = 1000.0 if series.resource == CPU else 1.0
    scaled = [value * scale for value in series.values]
    samples.values += scaled
    samples.by_pod[series.pod] += scaled
    for at, value in zip(series.times, scaled, strict=True):
        samples.by_day[at // _DAY].append(value)
    is_later = samples.last and series.times[0] > samples.first
    # The first pods of a history may have run long before it.
    if is_later:
        samples.start_peaks.append(
            max(value for at, value in zip(series.times, scaled, strict=True) if at <= series.times[0] + START_SECONDS)
        )
    samples.first = min(samples.first or series.times[0], series.times[0])
    samples.last = max(samples.last, series.times[-1])


def _summarize_samples(samples: _Samples) -> ResourceUsage:
    ordered = sorted(samples.values)
    full_days = [values for values in samples.by_day.values() if len(values) >= MIN_SAMPLES]
    quietest = min(full_days, key=fmean) if len(full_days) >= MIN_DAYS_OF_IDLE else None
    return ResourceUsage(
        p5=_percentile(ordered, 0.05),
        p50=_percentile(ordered, 0.5),
        p90=_percentile(ordered, 0.9),
        p95=_percentile(ordered, 0.95),
        max=ordered[-1],
        mean=fmean(ordered),
        idle=None if quietest is None else _percentile(sorted(quietest), 0.9),
        pod_means=tuple(fmean(values) for values in samples.by_pod.values()) if len(samples.by_pod) > 1 else (),
        start_peak=median(samples.start_peaks) if samples.start_peaks else None,
        days=(samples.last - samples.first) / _DAY,
    )


def _percentile(ordered: Sequence[float], share: float) -> float:
    """Returns the smallest of the values for which at least this share of all values is not larger."""
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


def count_replicas(pods: Mapping[str, tuple[int, int]]) -> ReplicaUsage | None:
    """Returns how many pods ran at a time, for every hour.

    Returns None if the samples cover less than a day, or if there was never more than one pod. A pod counts from its
    first to its last sample.
    """
    first, last = min(begin for begin, _ in pods.values()), max(end for _, end in pods.values())
    if last - first < _DAY or len(pods) < 2:
        return None
    counts = sorted(
        sum(1 for begin, end in pods.values() if begin <= hour <= end) for hour in range(first, last + 1, _HOUR)
    )
    return ReplicaUsage(p5=_percentile(counts, 0.05), max=counts[-1]) if counts[-1] > 1 else None


def _published_history(snapshot: LintSnapshot) -> UsageHistory | None:
    """Returns the usage from the recommendations in the cluster, which the recommender has published; None if there are
    none."""
    from trimtab.cluster.reason import Unreadable
    from trimtab.cluster.recommendation import PAYLOAD_KEY, RECOMMENDATIONS_LABEL, decode

    containers: dict[ContainerName, dict[str, ResourceUsage]] = {}
    for config_map in snapshot.config_maps:
        labels = config_map.metadata.labels
        if not isinstance(labels, dict) or RECOMMENDATIONS_LABEL not in labels or PAYLOAD_KEY not in config_map.data:
            continue
        workloads = decode(config_map.metadata.name, config_map.data[PAYLOAD_KEY])
        if isinstance(workloads, Unreadable):
            continue
        for key, by_container in workloads.items():
            owner = parse_owner_key(key)
            for container, usage in by_container.items():
                amounts = {CPU: usage.cpu, "memory": usage.memory}
                containers[owner, container] = {
                    resource: container_usage
                    for resource, percentiles in amounts.items()
                    if percentiles is not None
                    and (container_usage := _published_usage(resource, percentiles, usage.days or 0.0)) is not None
                }
    return UsageHistory(containers=containers) if containers else None


def _published_usage(resource: str, percentiles: Percentiles, days: float) -> ResourceUsage | None:
    """Returns the published usage of one resource, or None if a percentile that rules need is missing or the history is
    shorter than a day."""
    written = (percentiles.p5, percentiles.p50, percentiles.p90, percentiles.p95, percentiles.max)
    amounts = [read_amount(resource, amount) for amount in written]
    if percentiles.young or None in amounts:
        return None
    p5, p50, p90, p95, largest = (float(amount or 0) for amount in amounts)
    return ResourceUsage(p5=p5, p50=p50, p90=p90, p95=p95, max=largest, days=days)
