"""Reads usage from files, Prometheus or the cluster, and the running time of CronJobs and Jobs.

In the cluster, the recommender's checkpoints are read. If there are none, one sample of the present usage and the
checkpoints of VPAs are read. Costs are computed from the running time: a nightly Job of twelve minutes costs twelve
minutes a day.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from trimtab.cluster.bounded_decode import BytesRefused
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.format_count import format_count
from trimtab.cluster.yaml_documents import unpack_gzip
from trimtab.histogram.batch_history import BatchHistory, ContainerKey
from trimtab.histogram.time_buckets import DAY, HOUR
from trimtab.inputs import live_cluster
from trimtab.inputs.command_faults import RuntimeFailure, UsageError
from trimtab.inputs.pod_sums import PodSums
from trimtab.inputs.progress import progress
from trimtab.inputs.replica_usage import LeaderUsage
from trimtab.sizing.cost import HOURS_PER_MONTH
from trimtab.usage import oom_kills
from trimtab.usage.cluster_label import Matchers, Mixed, MixedClusters, Origins, escape_value
from trimtab.usage.errors import UsageFault
from trimtab.usage.file_forms import UsageForm
from trimtab.usage.metric_names import NOTHING_STATED, StatedQuantities
from trimtab.usage.owners import OwnerIndex
from trimtab.usage.prometheus_queries import Names
from trimtab.usage.repeated_series import RepeatedSeries
from trimtab.usage.series import Series, add_all_series, container_key
from trimtab.usage.series_subject import CADVISOR_LABELS, EXPORTED_LABELS, NAMES
from trimtab.usage.server_warnings import DistinctWarnings
from trimtab.usage.usage_file import UsageFile
from trimtab.usage.vpa_checkpoints import CheckpointSource

if TYPE_CHECKING:
    from trimtab.kube.client import Client
    from trimtab.usage.prometheus import Prometheus


KINDS = ("CronJob", "Job")
"""The kinds of workloads whose pods finish."""
SINGLE_VALUE_SECONDS = 60
"""The number of seconds that a single value covers if the interval between values is not known."""


@dataclass(slots=True)
class RunningTime:
    """The pods of one history that have usage, and how long the pods of CronJobs and Jobs ran."""

    step: int = SINGLE_VALUE_SECONDS
    """The seconds that a single value covers."""
    pods: dict[ContainerKey, set[str]] = field(default_factory=dict)
    """Container → the names of its pods that have usage."""
    first: int = 0
    last: int = 0
    """The time of the last value with usage, in seconds since 1970. The field `first` is the time of the first
    value."""
    _seconds: dict[tuple[ContainerKey, str], float] = field(default_factory=dict)
    """(container, resource) → the running seconds of all its pods together."""

    def observe_series(self, all_series: Iterable[Series], owners: OwnerIndex) -> Iterator[Series]:
        """Yields the given series unchanged, and adds their pods, times and running seconds to the fields."""
        for series in all_series:
            if series.times:
                self._observe_series(container_key(series, owners), series)
            yield series

    def _observe_series(self, key: ContainerKey, series: Series) -> None:
        self.first = min(self.first or int(series.times[0]), int(series.times[0]))
        self.last = max(self.last, int(series.times[-1]))
        if series.pod:
            self.pods.setdefault(key, set()).add(series.pod)
        if key.kind in KINDS:
            resource_key = (key, series.resource)
            self._seconds[resource_key] = self._seconds.get(resource_key, 0.0) + covered_seconds(
                series.times, self.step
            )

    def former_pods(self, key: ContainerKey, present: Collection[tuple[str, str]]) -> int:
        """Returns the number of the container's pods with usage that no longer exist.

        present: (namespace, pod) of existing pods."""
        return sum((key.namespace, pod) not in present for pod in self.pods.get(key, ()))

    def hours_per_month(self, key: ContainerKey, history: BatchHistory, replicas: int | None) -> float | None:
        """Returns the hours that all pods of a CronJob or Job run in a month; None for other kinds, or without usage.

        If the history is hourly, every hour with usage counts in full.
        """
        if key.kind not in KINDS:
            return None
        seconds = max((self._seconds.get((key, resource), 0.0) for resource in ("cpu", "memory")), default=0.0)
        span = self.last - self.first
        if not seconds:
            window = history.compressed_window(key, "cpu")
            seconds = HOUR * window.hours.bit_count() * max(1, replicas or 1)
            span = max(span, window.last - window.first)
        if not seconds:
            return None
        # Whole days: a CronJob that ran once in a history of one hour does not run all the time.
        return round(seconds / (max(1, ceil(span / DAY)) * DAY) * HOURS_PER_MONTH, 2)


def covered_seconds(times: Sequence[int], step: int) -> float:
    """Returns the seconds that a series covers. Each value covers the time until the next value.

    If a gap between two values is longer than twice the shortest gap, only twice the shortest gap counts, because the
    pod did not run in the rest.
    """
    if len(times) < 2:
        return float(step)
    if isinstance(times, range):
        return float(len(times) * times.step)
    gaps = [following - time for time, following in pairwise(times)]
    shortest_gap = min(gaps)
    return float(sum(min(gap, 2 * shortest_gap) for gap in gaps) + shortest_gap)


_PLAIN = (".csv", ".parquet", ".json", ".jsonl", ".yaml", ".yml")
USAGE_FILE_ENDINGS = (*_PLAIN, *(f"{ending}.gz" for ending in _PLAIN))
"""The endings of the files that are read as usage from a folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusOptions:
    """The URL of `--prometheus` and all options of the queries."""

    url: str
    headers: Mapping[str, str]
    ca: str | None
    certificate: str | None
    key: str | None
    days: int
    step: int
    rate: str
    namespaces: tuple[str, ...]
    extra: str
    names: Names
    at_once: int


@dataclass(slots=True)
class UsageHistories:
    """The usage that was read: one history, or one for each value of the label that divides the report."""

    make: Callable[[], BatchHistory]
    matchers: Matchers = field(default_factory=Matchers)
    by: str = ""
    """The label that divides the report; empty if it is not divided."""
    origins: Origins = field(init=False)
    histories: dict[str, BatchHistory] = field(default_factory=dict)
    """Value of the label → its history."""
    runs: dict[str, RunningTime] = field(default_factory=dict)
    """Value of the label → the running times of its containers."""
    repeated: RepeatedSeries = field(default_factory=RepeatedSeries)
    pod_sums: PodSums | None = None
    """The usage of whole pods, or None if it is not wanted."""
    replica_usage: LeaderUsage | None = None
    """The usage of leaders apart from that of other replicas, or None if no workload has leaders."""

    def __post_init__(self) -> None:
        self.origins = Origins(self.matchers.matched_labels | ({self.by} if self.by else frozenset()))

    def get_history(self, value: str = "") -> BatchHistory:
        """Returns the history for one value of the label; the first call creates it."""
        if value not in self.histories:
            self.histories[value], self.runs[value] = self.make(), RunningTime()
        return self.histories[value]

    def add_series(self, value: str, all_series: Iterable[Series], owners: OwnerIndex) -> None:
        """Add series to the history for one value of the label."""
        history = self.get_history(value)
        observed = self.runs[value].observe_series(all_series, owners)
        if self.pod_sums is not None:
            observed = self.pod_sums.observe_series(observed, owners)
        if self.replica_usage is not None:
            observed = self.replica_usage.observe_series(observed, owners)
        add_all_series(history, observed, owners)

    def add_file_series(self, all_series: Iterable[Series], owners: OwnerIndex) -> None:
        """Add each series of a file to the history of its cluster, unless the matchers exclude it."""
        for series in self.repeated.without_repeats(all_series):
            origin = dict(series.origin)
            if self.matchers.matches_labels(
                {"namespace": series.namespace, "pod": series.pod, "container": series.container, **origin}
            ):
                self.origins.add_series(series.origin)
                self.add_series(origin.get(self.by, "") if self.by else "", (series,), owners)


def add_files(
    histories: UsageHistories,
    paths: Sequence[str],
    owners: OwnerIndex,
    now: int | None,
    stated: StatedQuantities = NOTHING_STATED,
) -> list[str]:
    """Add the usage in files to the histories, and return notes about what is ignored.

    stated: what the user says of series whose name does not tell their quantity. Raises UsageError with all mistakes of
    all files, also if they contain the usage of several clusters and the report is not divided.
    """
    mistakes, notes = list[ConfigError](), list[str]()
    for file, packed in live_cluster.read_paths(paths, USAGE_FILE_ENDINGS):
        content = unpack_usage(file, packed, mistakes)
        if content is None:
            continue
        usage_file = UsageFile(file.removesuffix(".gz"), content, stated.of_file(file), now)
        if usage_file.form is UsageForm.KUBERNETES:
            checkpoints = CheckpointSource.from_file(usage_file.file, content)
            checkpoints.add_to_batch(histories.get_history())
            mistakes += checkpoints.mistakes
            continue
        histories.add_file_series(usage_file.iter_series(), owners)
        mistakes += usage_file.mistakes
        notes += usage_file.notes
    mistakes += [several_clusters_mistake("--usage", mixed) for mixed in histories.origins.mixed_labels()]
    mistakes += histories.repeated.mistakes()
    if mistakes:
        raise UsageError(mistakes)
    return notes + histories.repeated.notes()


def unpack_usage(file: str, packed: bytes, mistakes: list[ConfigError]) -> bytes | None:
    """Returns the uncompressed bytes of the file; if it is damaged, a mistake is added, and nothing is returned."""
    try:
        return unpack_gzip(packed)
    except BytesRefused as error:
        mistakes.append(ConfigError(file=file, expected="a complete gzip file", got=str(error)))
        return None


def several_clusters_mistake(option: str, mixed: Mixed) -> ConfigError:
    """Returns the mistake that the source of this option contains the usage of several clusters."""
    todo = f"choose one with --matcher '{mixed.example_matcher}', or report each of them with --by {mixed.label}"
    return ConfigError(file=option, expected="the usage of one cluster only", got=str(mixed), todo=todo)


def add_prometheus(histories: UsageHistories, server: PrometheusOptions, owners: OwnerIndex, now: int) -> list[str]:
    """Add the usage of the last days from Prometheus, and return what the server warned of.

    Raises RuntimeFailure if the server cannot be read, and UsageError if it has the usage of several clusters and the
    report is not divided.
    """
    # Files of usage need no HTTP client.
    from trimtab.usage.http_client import HttpApi
    from trimtab.usage.prometheus import Prometheus, QueryPlan

    source = HttpApi(server.url, server.headers, server.ca, server.certificate, server.key)
    start, warnings = now - server.days * DAY, list[str]()
    queries = QueryPlan(
        step_seconds=server.step,
        rate_window=server.rate,
        extra_matcher=server.extra,
        names=server.names,
        max_concurrent_queries=server.at_once,
    )
    prometheus = Prometheus(source, queries, DistinctWarnings(warnings.append))
    try:
        excluded = prometheus.find_excluded_labels(start, now)
        for value, extra in _list_parts(prometheus, server.namespaces, histories.by, start, now):
            part = replace(prometheus, query_plan=replace(queries, extra_matcher=extra))
            _read_part(histories, value, part, server.namespaces, owners, start, now)
    except MixedClusters as error:
        raise UsageError([several_clusters_mistake("--prometheus", mixed) for mixed in error.mixed_labels]) from None
    except UsageFault as error:
        raise RuntimeFailure(str(error)) from None
    return [*map(note_warning, warnings), *_note_excluded(excluded)]


def _note_excluded(labels: Sequence[str]) -> list[str]:
    """Returns a note if series are left out because they have one of these labels."""
    if not labels:
        return []
    names = CADVISOR_LABELS if CADVISOR_LABELS[1] in labels else EXPORTED_LABELS
    options = [
        f"--label-name {name}={label}"
        for name, label in zip(NAMES, names, strict=True)
        if label in labels or names is CADVISOR_LABELS
    ]
    return [
        f"Series with the label {' or '.join(labels)} are left out: their labels namespace, pod and container name the "
        "program that reports them. To read them, scrape with honor_labels: true, or name the labels with "
        f"these options: {' '.join(options)}."
    ]


def note_warning(warning: str) -> str:
    """Returns the note about a warning in an answer of Prometheus."""
    return f"The server of --prometheus returned a warning: {warning}"


def _list_parts(
    prometheus: Prometheus, namespaces: tuple[str, ...], by: str, start: int, now: int
) -> list[tuple[str, str]]:
    """Returns (value of the label that divides the report, the matcher of its series). Raises MixedClusters if several
    clusters would be mixed."""
    extra = prometheus.query_plan.extra_matcher
    prometheus.check_one_cluster(start, now, namespaces, (by,) if by else ())
    if not by:
        return [("", extra)]
    values = prometheus.list_label_values(by, start, now)
    return [(value, ",".join(part for part in (extra, f'{by}="{escape_value(value)}"') if part)) for value in values]


def _read_part(
    histories: UsageHistories,
    value: str,
    prometheus: Prometheus,
    namespaces: tuple[str, ...],
    owners: OwnerIndex,
    start: int,
    now: int,
) -> None:
    history = histories.get_history(value)
    histories.runs[value].step = prometheus.query_plan.step_seconds
    with progress().show_work("Reading the list of series from Prometheus"):
        known_owners = replace(owners, reported=prometheus.read_owners(start, now))
        pieces = prometheus.plan_queries(start, now, namespaces)
    with progress().show_parts(len(pieces), "Reading from Prometheus") as report_progress:
        histories.add_series(
            value, prometheus.read_series(pieces, lambda done, _all: report_progress(done)), known_owners
        )
    for series, kill in oom_kills.kills_of_prometheus(prometheus, start, now):
        history.add_oom_kill(container_key(series, known_owners), kill)


def note_ignored_samples(history: BatchHistory) -> list[str]:
    """Returns a note if some samples of the history are ignored."""
    count = history.dropped_values
    if not count:
        return []
    samples = format_count(count, "sample was", "samples were")
    return [f"{samples} ignored, because the value is not a number, is below zero, or is more than any machine has."]


def note_missing_cpu(history: BatchHistory, rate: str) -> list[str]:
    """Returns a note if most containers have usage of memory but not of cpu.

    Prometheus returns no rate for a window with fewer than two scrapes.
    """
    with_memory = {container for container, resource in history.dense_windows if resource == "memory"}
    without_cpu = sum((container, "cpu") not in history.dense_windows for container in with_memory)
    if not with_memory or 2 * without_cpu < len(with_memory):
        return []
    return [
        f"{format_count(without_cpu, 'container has', 'containers have')} memory usage but no cpu usage. The "
        f"window --rate {rate} must span four "
        "scrapes; for a scrape interval of five minutes, use --rate 20m."
    ]


def parse_headers(
    texts: Iterable[str], files_: Iterable[str], token_file: str | None, token: str | None
) -> dict[str, str]:
    """Returns the HTTP headers of the options, the files (each line NAME: VALUE), and the bearer token.

    Raises UsageError, whose messages contain no value, because headers may be secret.
    """
    headers, mistakes = dict[str, str](), list[ConfigError]()
    lines = [("--header", text) for text in texts]
    for path in files_:
        lines += [(path, line) for line in _read_text(path, mistakes).splitlines() if line.strip() and line[:1] != "#"]
    for where, text in lines:
        name, colon, value = text.partition(":")
        if colon and name.strip():
            headers[name.strip()] = value.strip()
        else:
            mistakes.append(ConfigError(file=where, expected="NAME: VALUE", got="a text without a colon"))
    if token_file is not None:
        token = _read_text(token_file, mistakes).strip()
    if token and not mistakes:
        headers["Authorization"] = f"Bearer {token}"
    if mistakes:
        raise UsageError(mistakes)
    return headers


def _read_text(path: str, mistakes: list[ConfigError]) -> str:
    try:
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeError) as error:
        got = error.strerror if isinstance(error, OSError) and error.strerror else "no text"
        mistakes.append(ConfigError(file=path, expected="a file that can be read", got=got.lower()))
        return ""


def add_cluster_usage(
    history: BatchHistory, cluster: live_cluster.ClusterOptions, owners: OwnerIndex, *, kubelets: bool = False
) -> list[str]:
    """Add the recommender's checkpoints to the history. If there are none, add one sample of the present usage and the
    checkpoints of VPAs.

    Returns notes about the quality of the added usage. Raises RuntimeFailure.
    """
    from trimtab.kube.client import connect_to_cluster
    from trimtab.kube.errors import KubeFault

    try:
        client = connect_to_cluster(cluster.kubeconfig, cluster.context)
        try:
            # --kubelets asks for the present usage, so the recommender's history is not read.
            notes = [] if kubelets else _add_recommender_checkpoints(history, client)
            return (
                notes
                if history.dense_windows
                else [
                    *notes,
                    *_add_present_sample(history, client, owners, kubelets),
                    *_add_vpa_checkpoints(history, client),
                ]
            )
        finally:
            client.close()
    except KubeFault as error:
        raise RuntimeFailure(str(error)) from None


def _add_present_sample(history: BatchHistory, client: Client, owners: OwnerIndex, kubelets: bool) -> list[str]:
    """Add one sample of the present usage of each container, from the kubelets or the metrics API; return notes about
    it."""
    from trimtab.kube.errors import NotAllowed, NotFound
    from trimtab.usage.kubelet import Kubelets
    from trimtab.usage.metrics_api import read_metrics

    problems: list[str] = []
    source = "The kubelets have" if kubelets else "The metrics API has"
    try:
        count = add_all_series(
            history, Kubelets(client, problems.append).read_usage() if kubelets else read_metrics(client), owners
        )
    except NotFound:
        return ["This cluster serves no metrics API (metrics-server is not installed)."]
    except NotAllowed as error:
        hint = " (--kubelets needs the permission `get` on nodes/proxy)" if kubelets else ""
        raise RuntimeFailure(f"{error}{hint}") from None
    return [
        f"{source} one present sample ({count} series) and no history: use --prometheus, or let the recommender "
        "collect usage for a day.",
        *problems,
    ]


def _add_vpa_checkpoints(history: BatchHistory, client: Client) -> list[str]:
    from trimtab.kube.errors import NotAllowed
    from trimtab.usage import vpa_checkpoints as checkpoints

    try:
        source = checkpoints.list_checkpoints(client)
    except NotAllowed as error:
        return [f"This user may not read the checkpoints of VPAs: {error}"]
    source.add_to_batch(history)
    if not source.checkpoints:
        return []
    return [
        f"{len(source.checkpoints)} VPA checkpoints contain cpu usage, in which newer days have more weight. "
        "They contain only daily peaks of memory, from which P5 and P95 cannot be computed."
    ]


def _add_recommender_checkpoints(book: BatchHistory, client: Client) -> list[str]:
    """Add the checkpoints that `trimtab recommender` stores in its namespace. If the recommender does not run, nothing
    is added."""
    history, problems = live_cluster.read_recommender_history(client)
    history.copy_to_batch(book)
    count = len(history.list_containers())
    note = f"The recommender has the history of {count} container{'' if count == 1 else 's'}."
    return [note, *problems] if count else problems
