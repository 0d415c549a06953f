"""Usage from wherever the command line says.

How long did what runs at times run, and which pods were seen?

A nightly job of twelve minutes costs twelve minutes a day, not the month that its request would cost.

What the cluster itself knows of usage: what our recommender keeps, this moment, and what VPAs wrote down.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from trimtab.cli import live_cluster
from trimtab.cli.main import RuntimeFailure, UsageError
from trimtab.cli.output import counted, working
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.yaml_documents import unpacked
from trimtab.histogram.batch_history import BatchHistory, ContainerKey
from trimtab.histogram.time_buckets import DAY, HOUR
from trimtab.runtime.files import Content
from trimtab.sizing.cost import HOURS
from trimtab.usage.cluster_label import Matchers, Mixed, MixedClusters, Origins, escaped
from trimtab.usage.errors import UsageFault
from trimtab.usage.files import Rows, csv_rows, parquet_rows
from trimtab.usage.http_client import HttpApi
from trimtab.usage.oom_kills import of_prometheus
from trimtab.usage.owners import OwnerIndex
from trimtab.usage.prometheus import Prometheus, QueryPlan
from trimtab.usage.prometheus_response import parsed
from trimtab.usage.series import Names, Series, container, take
from trimtab.usage.vpa_checkpoints import CheckpointSource

if TYPE_CHECKING:
    from trimtab.kube.client import Client


KINDS = ("CronJob", "Job")
"""Workloads whose pods end."""
ALONE_SECONDS = 60
"""What a single value stands for where the source does not say how far apart values are."""


@dataclass(slots=True)
class RunningTime:
    """Fed with the series that a book takes."""

    step: int = ALONE_SECONDS
    """Seconds that a single value stands for."""
    pods: dict[ContainerKey, set[str]] = field(default_factory=dict)
    """Pods that were seen."""
    first: int = 0
    last: int = 0
    """When anything was seen at all."""
    _seconds: dict[tuple[ContainerKey, str], float] = field(default_factory=dict)
    """Of all pods together, by resource."""

    def watch(self, found: Iterable[Series], owners: OwnerIndex) -> Iterator[Series]:
        """The same series, each noted as it goes by."""
        for series in found:
            if series.times:
                self._see(container(series, owners), series)
            yield series

    def _see(self, whose: ContainerKey, series: Series) -> None:
        self.first = min(self.first or int(series.times[0]), int(series.times[0]))
        self.last = max(self.last, int(series.times[-1]))
        if series.pod:
            self.pods.setdefault(whose, set()).add(series.pod)
        if whose.kind in KINDS:
            key = (whose, series.resource)
            self._seconds[key] = self._seconds.get(key, 0.0) + covered_seconds(series.times, self.step)

    def former_pods(self, whose: ContainerKey, present: Collection[tuple[str, str]]) -> int:
        """How many of its pods were seen and are gone; `present`: (namespace, pod) of those that are there."""
        return sum((whose.namespace, pod) not in present for pod in self.pods.get(whose, ()))

    def hours_per_month(self, whose: ContainerKey, book: BatchHistory, replicas: int | None) -> float | None:
        """Of all its pods together; None for what runs all the time, or where nothing is known. Where only hours were
        kept, every hour in which it was seen counts whole."""
        if whose.kind not in KINDS:
            return None
        seconds = max((self._seconds.get((whose, resource), 0.0) for resource in ("cpu", "memory")), default=0.0)
        span = self.last - self.first
        if not seconds:
            window = book.window(whose, "cpu")
            seconds = HOUR * window.hours.bit_count() * max(1, replicas or 1)
            span = max(span, window.last - window.first)
        if not seconds:
            return None
        return round(seconds / (max(1, ceil(span / DAY)) * DAY) * HOURS, 2)


def covered_seconds(times: Sequence[int], step: int) -> float:
    """For how long a series goes on: each value stands for the time to the next one, for no more than twice the
    shortest such time."""
    if len(times) < 2:
        return float(step)
    if isinstance(times, range):
        return float(len(times) * times.step)
    gaps = [after - before for before, after in pairwise(times)]
    usual = min(gaps)
    return float(sum(min(gap, 2 * usual) for gap in gaps) + usual)


_PLAIN = (".csv", ".parquet", ".json", ".yaml", ".yml")
ENDINGS = (*_PLAIN, *(f"{ending}.gz" for ending in _PLAIN))
"""What is read of a folder of usage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusOptions:
    """`--prometheus` and what goes with it."""

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
    """The usage that was read: one book, or one for each value of the label that the report is divided by."""

    make: Callable[[], BatchHistory]
    matchers: Matchers = field(default_factory=Matchers)
    by: str = ""
    """The label; empty: the report is not divided."""
    origins: Origins = field(init=False)
    all: dict[str, BatchHistory] = field(default_factory=dict)
    """Value of the label → its book."""
    runs: dict[str, RunningTime] = field(default_factory=dict)
    """Value of the label → for how long what runs at times ran."""

    def __post_init__(self) -> None:
        self.origins = Origins(self.matchers.labels | ({self.by} if self.by else frozenset()))

    def book(self, value: str = "") -> BatchHistory:
        """The book of one value; a new one where none is there yet."""
        if value not in self.all:
            self.all[value], self.runs[value] = self.make(), RunningTime()
        return self.all[value]

    def add(self, value: str, found: Iterable[Series], owners: OwnerIndex) -> None:
        """Series of one value."""
        book = self.book(value)
        take(book, self.runs[value].watch(found, owners), owners)

    def take(self, found: Iterable[Series], owners: OwnerIndex) -> None:
        """Series of a file, each into the book of its cluster; those that the matchers leave out are left out."""
        for series in found:
            origin = dict(series.origin)
            if self.matchers.allow(
                {"namespace": series.namespace, "pod": series.pod, "container": series.container, **origin}
            ):
                self.origins.see(series.origin)
                self.add(origin.get(self.by, "") if self.by else "", (series,), owners)


def from_files(books: UsageHistories, paths: Sequence[str], owners: OwnerIndex, now: int | None) -> list[str]:
    """Notes say what was left out. Raises Wrong with all mistakes of all files, and where they tell of several
    clusters."""
    mistakes, notes = list[ConfigError](), list[str]()
    for file, packed in live_cluster.read(paths, ENDINGS):
        name, content = file.removesuffix(".gz"), _unpacked(file, packed, mistakes)
        if checkpoints := _checkpoints(name, content):
            checkpoints.pour(books.book())
            mistakes += checkpoints.mistakes
        elif name.endswith(".json") or content[:1] == b"{":
            books.take(_answer(name, content, now), owners)
        else:
            rows = _rows(name, content)
            mistakes += rows.mistakes
            notes += rows.notes()
            books.take(rows.series(now), owners)
    mistakes += [_one_cluster("--usage", found) for found in books.origins.mixed()]
    if mistakes:
        raise UsageError(mistakes)
    return notes


def _unpacked(file: str, packed: bytes, mistakes: list[ConfigError]) -> bytes:
    """The file's bytes before gzip; none where it is damaged, which is a mistake."""
    try:
        return unpacked(packed)
    except (OSError, EOFError, zlib.error) as error:
        mistakes.append(ConfigError(file=file, expected="a whole gzip file", got=str(error)))
        return b""


def _one_cluster(option: str, found: Mixed) -> ConfigError:
    todo = f"choose one with --matcher '{found.example}', or report each of them with --by {found.label}"
    return ConfigError(file=option, expected="the usage of one cluster", got=str(found), todo=todo)


def _rows(name: str, content: Content | bytes) -> Rows:
    assert isinstance(content, bytes)
    return parquet_rows(name, content) if content[:4] == b"PAR1" else csv_rows(name, content)


_KUBERNETES = (b"apiVersion:", b"\nkind:", b'"apiVersion"')


def _checkpoints(name: str, content: bytes) -> CheckpointSource | None:
    """As `kubectl get -o yaml` or `-o json` prints them; None where it is something else."""
    head = content[:400]
    return CheckpointSource.of(name, content) if any(word in head for word in _KUBERNETES) else None


def _answer(name: str, content: bytes, now: int | None) -> Iterator[Series]:
    """A saved answer of Prometheus; which resource it tells is seen by its size."""
    try:
        for series in parsed(content, "", now):
            resource = "cpu" if max(series.values, default=0.0) < 100_000 else "memory"
            yield replace(series, resource=resource, times=list(map(int, series.times)))
    except UsageFault as error:
        raise UsageError([ConfigError(file=name, expected="an answer of Prometheus", got=str(error))]) from None


def from_prometheus(books: UsageHistories, server: PrometheusOptions, owners: OwnerIndex, now: int) -> None:
    """The last days. Raises Failed where the server cannot be read, and Wrong where it tells of several clusters."""
    source = HttpApi(server.url, server.headers, server.ca, server.certificate, server.key)
    start = now - server.days * DAY
    try:
        for value, extra in _parts(source, server, books.by, start, now):
            pieces = QueryPlan(
                step=server.step, rate=server.rate, extra=extra, names=server.names, at_once=server.at_once
            )
            _read(books, value, Prometheus(source, pieces), server.namespaces, owners, start, now)
    except MixedClusters as error:
        raise UsageError([_one_cluster("--prometheus", found) for found in error.found]) from None
    except UsageFault as error:
        raise RuntimeFailure(str(error)) from None


def _parts(source: HttpApi, server: PrometheusOptions, by: str, start: int, now: int) -> list[tuple[str, str]]:
    """(value of the label that the report is divided by, the matcher of its part). Raises MixedClusters."""
    prometheus = Prometheus(source, QueryPlan(step=server.step, extra=server.extra, names=server.names))
    prometheus.one_cluster(start, now, server.namespaces, (by,) if by else ())
    if not by:
        return [("", server.extra)]
    values = prometheus.clusters(by, start, now)
    return [(value, ",".join(part for part in (server.extra, f'{by}="{escaped(value)}"') if part)) for value in values]


def _read(
    books: UsageHistories,
    value: str,
    prometheus: Prometheus,
    namespaces: tuple[str, ...],
    owners: OwnerIndex,
    start: int,
    now: int,
) -> None:
    book = books.book(value)
    books.runs[value].step = prometheus.pieces.step
    with working("Asking Prometheus what there is"):
        known = OwnerIndex({**prometheus.owners(start, now), **owners.pods}, owners.workloads)
        pieces = prometheus.plan(start, now, namespaces)
    with counted(len(pieces), "Asking Prometheus") as tell:
        books.add(value, prometheus.read(pieces, lambda done, _all: tell(done)), known)
    for series, kill in of_prometheus(prometheus, start, now):
        book.kill(container(series, known), kill)


def left_out(book: BatchHistory) -> list[str]:
    """A note where some of what was read counts for nothing."""
    count = book.left_out
    if not count:
        return []
    some = "1 sample was" if count == 1 else f"{count} samples were"
    return [f"{some} left out: no number, below zero, or more than any machine has."]


def unseen(book: BatchHistory, rate: str) -> list[str]:
    """A note where most containers' memory was seen, and their cpu was not: no rate is told where a window holds fewer
    than two scrapes."""
    held = {container for container, resource in book.pages if resource == "memory"}
    without = sum((container, "cpu") not in book.pages for container in held)
    if not held or 2 * without < len(held):
        return []
    return [f"Of {without} containers memory was seen and cpu was not: are scrapes further apart than a minute? "
            f"--rate {rate} must hold four of them, so --rate 20m for one every five minutes."]  # fmt: skip


def headers(texts: Iterable[str], files_: Iterable[str], token_file: str | None, token: str | None) -> dict[str, str]:
    """What logs in or names a tenant: each text as NAME: VALUE, the lines of files alike, a bearer token. Raises Wrong,
    whose messages show no value."""
    found, mistakes = dict[str, str](), list[ConfigError]()
    lines = [("--header", text) for text in texts]
    for path in files_:
        lines += [(path, line) for line in _text(path, mistakes).splitlines() if line.strip() and line[:1] != "#"]
    for where, text in lines:
        name, colon, value = text.partition(":")
        if colon and name.strip():
            found[name.strip()] = value.strip()
        else:
            mistakes.append(ConfigError(file=where, expected="NAME: VALUE", got="a text without a colon"))
    if token_file is not None:
        token = _text(token_file, mistakes).strip()
    if token and not mistakes:
        found["Authorization"] = f"Bearer {token}"
    if mistakes:
        raise UsageError(mistakes)
    return found


def _text(path: str, mistakes: list[ConfigError]) -> str:
    try:
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeError) as error:
        got = error.strerror if isinstance(error, OSError) and error.strerror else "no text"
        mistakes.append(ConfigError(file=path, expected="a file that can be read", got=got.lower()))
        return ""


def add(
    book: BatchHistory, cluster: live_cluster.ClusterOptions, owners: OwnerIndex, *, kubelets: bool = False
) -> list[str]:
    """The recommender's checkpoints, or else this moment's sample and the VPAs' checkpoints. Notes say what that is
    worth. Raises Failed."""
    from trimtab.kube.client import connect
    from trimtab.kube.errors import KubeFault

    try:
        client = connect(cluster.kubeconfig, cluster.context)
        try:
            notes = [] if kubelets else _kept(book, client)
            return notes if book.pages else [*notes, *_now(book, client, owners, kubelets), *_vpas(book, client)]
        finally:
            client.close()
    except KubeFault as error:
        raise RuntimeFailure(str(error)) from None


def _now(book: BatchHistory, client: Client, owners: OwnerIndex, kubelets: bool) -> list[str]:
    """One sample of each container."""
    from trimtab.kube.errors import NotAllowed, NotFound
    from trimtab.usage.kubelet import Kubelets
    from trimtab.usage.metrics_api import now

    silent: list[str] = []
    who = "The kubelets tell" if kubelets else "The metrics API tells"
    try:
        seen = take(book, Kubelets(client, silent.append).look() if kubelets else now(client), owners)
    except NotFound:
        return ["This cluster serves no metrics API (metrics-server)."]
    except NotAllowed as error:
        hint = " (--kubelets takes `get` on nodes/proxy)" if kubelets else ""
        raise RuntimeFailure(f"{error}{hint}") from None
    return [f"{who} one moment ({seen} series) and no history: give --prometheus, "
            "or let the recommender collect for a day.", *silent]  # fmt: skip


def _vpas(book: BatchHistory, client: Client) -> list[str]:
    from trimtab.kube.errors import NotAllowed
    from trimtab.usage import vpa_checkpoints as checkpoints

    try:
        known = checkpoints.listed(client)
    except NotAllowed as error:
        return [f"What VPAs wrote down may not be looked at with these rights: {error}"]
    known.pour(book)
    if not known.found:
        return []
    return [f"{len(known.found)} VPA checkpoints give cpu, newer days weighing more; of memory they "
            "hold daily peaks only, which are no P5 or P95."]  # fmt: skip


def _kept(book: BatchHistory, client: Client) -> list[str]:
    """What `trimtab recommender` keeps in our namespace; nothing where it does not run."""
    found, wrong = live_cluster.diary(client)
    found.pour(book)
    count = len(found.containers())
    told = f"The recommender keeps the history of {count} container{'' if count == 1 else 's'}."
    return [told, *wrong] if count else wrong
