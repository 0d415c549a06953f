"""Reads usage from Prometheus and compatible servers (Thanos, Mimir, VictoriaMetrics, managed services).

Two weeks of a cluster are too much for one response. So the names of namespaces and pods are read first, and then cpu
and memory for some pods and some days at a time. Each response is decoded series by series from its own bytes, and a
query is divided if the server says that it is too large. If two scrapers report the same pod, they give one series,
with the larger value of both.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, TypeVar

import msgspec

from trimtab.cluster.kinds import built_in, group_kind
from trimtab.cluster.owner import OwnerKey
from trimtab.usage.cluster_label import LABELS as CLUSTER_LABELS
from trimtab.usage.cluster_label import UNLABELLED, Matchers, Mixed, MixedClusters, find_mixed_labels
from trimtab.usage.errors import GarbledSource, IncompleteSource, RefusedSource
from trimtab.usage.http_client import HttpApi
from trimtab.usage.owners import topmost_owners
from trimtab.usage.prometheus_queries import Names
from trimtab.usage.prometheus_response import SeriesLabels, parse_labels, parse_series, read_notices
from trimtab.usage.series import Series

DAY = 86400
RESOURCES = ("cpu", "memory")


S = TypeVar("S")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPlan:
    """How large the queries are."""

    step_seconds: int = 300
    """The seconds between two points."""
    days_per_query: int = 7
    """The number of days in one query: 2 016 points at the default step, a fifth of what Prometheus allows."""
    pods_per_query: int = 100
    """The number of pods in one query."""
    rate_window: str = "5m"
    """The range over which cpu usage is averaged: at least four scrapes, so that a failed scrape leaves no gap."""
    extra_matcher: str = ""
    """A matcher that is added to every query, such as cluster="prod"."""
    max_concurrent_queries: int = 4
    """How many queries are sent at the same time: a small share of the twenty that Prometheus answers at once."""
    names: Names = field(default_factory=Names)


@dataclass(frozen=True, slots=True)
class QueryPart:
    """One of the queries into which a reading is divided."""

    resource: str
    namespace: str
    pods: tuple[str, ...]
    start: int
    end: int
    """The last second of the query; `start` and `end` are both included."""


class _Labels(msgspec.Struct, frozen=True):
    data: list[str] = []


@dataclass(slots=True)
class Prometheus:
    """One Prometheus server. `tell` is called with the number of finished queries and the number of all queries."""

    source: HttpApi
    query_plan: QueryPlan = field(default_factory=QueryPlan)
    on_warning: Callable[[str], None] = lambda warning: None
    """It is called with what the server warns of in each answer (see `DistinctWarnings`)."""

    def list_namespaces(self, start: int, end: int) -> list[str]:
        """Returns the namespaces that had containers between `start` and `end`."""
        return self._label_values(self.query_plan.names.server_label("namespace"), self.join_matchers(""), start, end)

    def list_pods(self, namespace: str, start: int, end: int) -> list[str]:
        """Returns all pods that a namespace had between `start` and `end`, including those that no longer exist."""
        return self._label_values(
            self.query_plan.names.server_label("pod"),
            self.join_matchers(self._namespace_matcher(namespace)),
            start,
            end,
        )

    def plan_queries(self, start: int, end: int, namespaces: Sequence[str] = ()) -> list[QueryPart]:
        """Returns all queries for the time from `start` to `end`. Days begin at midnight, so that no six-hour interval
        for memory peaks is divided."""
        parts = []
        for namespace in namespaces or self.list_namespaces(start, end):
            pods = self.list_pods(namespace, start, end)
            for first in range(0, len(pods), self.query_plan.pods_per_query):
                group = tuple(pods[first : first + self.query_plan.pods_per_query])
                for begin, until in split_span(
                    start, end, self.query_plan.days_per_query * DAY, self.query_plan.step_seconds
                ):
                    parts += [QueryPart(resource, namespace, group, begin, until) for resource in RESOURCES]
        return parts

    def read_series(
        self, pieces: Sequence[QueryPart], tell: Callable[[int, int], None] = lambda done, total: None
    ) -> Iterator[Series]:
        """Yields the series of all queries in their order. A container has one series for each query that covers it. A
        few queries are sent at the same time, and only their responses are in memory."""
        pool, remaining = (
            ThreadPoolExecutor(self.query_plan.max_concurrent_queries, thread_name_prefix="prometheus"),
            iter(pieces),
        )
        futures = deque(
            pool.submit(self._fetch, piece) for piece in islice(remaining, self.query_plan.max_concurrent_queries)
        )
        try:
            for done in range(1, len(pieces) + 1):
                bodies = futures.popleft().result()
                futures.extend(pool.submit(self._fetch, piece) for piece in islice(remaining, 1))
                for piece, body in bodies:
                    yield from parse_series(body, piece.resource, piece.end, piece.start)
                tell(done, len(pieces))
        finally:
            # The consumer may stop early: queries whose results are not read need not finish.
            pool.shutdown(wait=False, cancel_futures=True)

    def ask(
        self, path: str, query: dict[str, str], doing: str, final: Callable[[RefusedSource], bool] | None = None
    ) -> bytes:
        """Returns the body of the answer to any query, and reports its warnings. Raises UsageFault, also for a partial
        answer."""
        body = self.source.get(path, query, doing, final or _is_never_final)
        notices = read_notices(body)
        if notices.is_partial:
            raise IncompleteSource(
                f"{doing}: {self.source.public_address}: the answer is partial, because some stores did not respond"
            )
        for warning in notices.warnings:
            self.on_warning(warning)
        return body

    def _fetch(self, piece: QueryPart) -> list[tuple[QueryPart, bytes]]:
        """Returns the responses for a query. If the query is too large for the server, it is divided, and the responses
        for its halves are returned. A query that was too large is not sent again."""
        # A part that can be divided is not retried whole when it is too large: its halves are the retry.
        halves = _halves(piece, self.query_plan.step_seconds)
        final = _is_too_much if halves else _is_never_final
        doing = f"read {piece.resource} of {piece.namespace}"
        try:
            return [(piece, self.ask("/api/v1/query_range", self._range_query(piece), doing, final))]
        except RefusedSource as error:
            if not halves or not _is_too_much(error):
                raise
        return [answer for part in halves for answer in self._fetch(part)]

    def _range_query(self, piece: QueryPart) -> dict[str, str]:
        names = self.query_plan.names
        selector = self.join_matchers(
            self._namespace_matcher(piece.namespace),
            f'{names.server_label("pod")}=~"{"|".join(map(quote_pod, piece.pods))}"',
        )
        window = self.query_plan.rate_window if piece.resource == "cpu" else f"{self.query_plan.step_seconds}s"
        query = names.usage_query(piece.resource, selector, window)
        return {
            "query": query,
            "start": str(piece.start),
            "end": str(piece.end),
            "step": str(self.query_plan.step_seconds),
        }

    def _namespace_matcher(self, name: str) -> str:
        return f'{self.query_plan.names.server_label("namespace")}="{name}"'

    def join_matchers(self, *matchers: str) -> str:
        """Returns the text of a PromQL selector with these matchers and with the matchers that every query has."""
        return ",".join(m for m in (*matchers, self.query_plan.extra_matcher) if m)

    def _label_values(self, label: str, match: str, start: int, end: int) -> list[str]:
        query = {"match[]": self._selector(match), "start": str(start), "end": str(end)}
        body = self.ask(f"/api/v1/label/{label}/values", query, f"list the values of the label {label}")
        return sorted(self.decode(body, _Labels).data)

    def _selector(self, match: str) -> str:
        names = self.query_plan.names
        return f"{names.memory}{{{names.container_matchers()}{',' if match else ''}{match}}}"

    def list_label_values(self, label: str, start: int, end: int) -> list[str]:
        """Returns the values that a label of the containers' series has."""
        return self._label_values(label, self.join_matchers(""), start, end)

    def find_mixed_labels(
        self, start: int, end: int, namespaces: Sequence[str] = (), chosen: Collection[str] = ()
    ) -> tuple[Mixed, ...]:
        """Returns the labels that distinguish clusters and have more than one value, except those that the matcher
        names or that are in `chosen`."""
        # The names of the labels of the containers' series. If the server does not have this endpoint, returns every
        # label that distinguishes clusters.
        names = self._names_of_labels(self._selector(self.join_matchers("")), start, end)
        existing, allowed = (
            set(CLUSTER_LABELS) if names is None else names,
            {*Matchers.from_text(self.query_plan.extra_matcher).matched_labels, *chosen},
        )
        in_namespaces, values_by_label = self._namespaces_matcher(namespaces), dict[str, list[str]]()
        for label in (name for name in CLUSTER_LABELS if name in existing and name not in allowed):
            values = self._label_values(label, self.join_matchers(in_namespaces), start, end)
            if values:
                name = self.query_plan.names.server_label("namespace")
                without = self._label_values(name, self.join_matchers(in_namespaces, f'{label}=""'), start, end)
                values_by_label[label] = [*values, *([UNLABELLED] if without else [])]
        return find_mixed_labels(values_by_label)

    def check_one_cluster(
        self, start: int, end: int, namespaces: Sequence[str] = (), chosen: Collection[str] = ()
    ) -> None:
        """Checks that the usage is that of one cluster. Raises MixedClusters if it is not."""
        mixed_labels = self.find_mixed_labels(start, end, namespaces, chosen)
        if mixed_labels:
            raise MixedClusters(self.source.public_address, mixed_labels)

    def _namespaces_matcher(self, namespaces: Sequence[str]) -> str:
        label = self.query_plan.names.server_label("namespace")
        return f'{label}=~"{"|".join(map(quote_pod, namespaces))}"' if namespaces else ""

    def _names_of_labels(self, selector: str, start: int, end: int) -> set[str] | None:
        """Returns the names of the labels of some series, or None if the server does not have this endpoint."""
        query = {"match[]": selector, "start": str(start), "end": str(end)}
        try:
            body = self.ask("/api/v1/labels", query, "list the names of labels")
        except RefusedSource as error:
            # Servers without this endpoint, and proxies that allow only some of them, refuse in different ways.
            if error.status not in (400, 403, 404, 405):
                raise
            return None
        return set(self.decode(body, _Labels).data)

    def find_excluded_labels(self, start: int, end: int) -> tuple[str, ...]:
        """Returns the labels that series of containers have and for which the queries leave these series out, because
        their labels `namespace`, `pod` and `container` are those of the program that reports them."""
        names = self.query_plan.names
        matchers = self.join_matchers(names.all_container_matchers())
        existing = self._names_of_labels(f"{names.memory}{{{matchers}}}", start, end) if names.excluded_labels else None
        return tuple(label for label in names.excluded_labels if label in (existing or ()))

    def read_owners(self, start: int, end: int) -> dict[tuple[str, str], OwnerKey]:
        """Returns (namespace, pod) → topmost owner, as kube-state-metrics reports it; empty if the server has no data
        of kube-state-metrics."""
        time_range = f"[{max(end - start, 60)}s]"
        owners: dict[OwnerKey, OwnerKey] = {}
        for metric, kind, name in _OWNER_METRICS:
            series = f"max_over_time({metric}{{{self.join_matchers('')}}}{time_range})"
            query = f"max by (namespace, exported_namespace, {name}, exported_pod, owner_kind, owner_name) ({series})"
            body = self.ask("/api/v1/query", {"query": query, "time": str(end)}, "the owners of pods")
            for labels in self._decode_labels(body):
                if labels.owner_kind not in ("", "<none>", "Node"):
                    # kube-state-metrics reports no group, so the kind is the one that the name alone means.
                    namespace = labels.exported_namespace or labels.namespace
                    owned = (labels.exported_pod if name == "pod" else "") or getattr(labels, name)
                    owner = OwnerKey(namespace, group_kind("", labels.owner_kind), labels.owner_name)
                    owners[OwnerKey(namespace, built_in(kind), owned)] = owner
        return topmost_owners(owners)

    def query_range(self, query: str, start: int, end: int, step: int, what: str) -> Iterator[Series]:
        """Yields the series that any query returns. The resource of each series is set to memory."""
        parameters = {"query": query, "start": str(start), "end": str(end), "step": str(step)}
        yield from parse_series(self.ask("/api/v1/query_range", parameters, what), "memory", end, start)

    def _decode_labels(self, body: bytes) -> Iterator[SeriesLabels]:
        try:
            yield from parse_labels(body)
        except msgspec.DecodeError as error:
            raise GarbledSource(f"{self.source.public_address}: a response of {len(body)} bytes: {error}") from None

    def decode(self, body: bytes, shape: type[S], *, is_strict: bool = True) -> S:
        """Returns an answer as a value of this shape. `is_strict`: whether a number may not be written as a string.
        Raises GarbledSource."""
        try:
            return msgspec.json.decode(body, type=shape, strict=is_strict)
        except msgspec.DecodeError as error:
            raise GarbledSource(f"{self.source.public_address}: a response of {len(body)} bytes: {error}") from None


class _OwnerMetric(NamedTuple):
    metric: str
    kind: str
    label: str


_OWNER_METRICS = (
    _OwnerMetric("kube_pod_owner", "Pod", "pod"),
    _OwnerMetric("kube_replicaset_owner", "ReplicaSet", "replicaset"),
    _OwnerMetric("kube_job_owner", "Job", "job_name"),
)


def split_span(start: int, end: int, length: int, step: int) -> list[tuple[int, int]]:
    """Returns the time from `start` to `end` in spans that end at midnight. Points are multiples of the step, and no
    point is in two spans."""
    result, second = [], start - start % step
    while second <= end:
        span_end = min(end, (second // DAY) * DAY + length - step)
        result.append((second, span_end))
        second = span_end - span_end % step + step
    return result


def _halves(part: QueryPart, step: int) -> list[QueryPart]:
    """Returns the query divided in two, each with half of the pods or, if there is only one pod, with half of the days;
    an empty list if it cannot be divided."""
    if len(part.pods) > 1:
        middle = len(part.pods) // 2
        groups = (part.pods[:middle], part.pods[middle:])
        return [QueryPart(part.resource, part.namespace, group, part.start, part.end) for group in groups]
    days = (part.end - part.start) // DAY
    if days < 2:
        return []
    halves = split_span(part.start, part.end, days // 2 * DAY, step)
    return [QueryPart(part.resource, part.namespace, part.pods, start, end) for start, end in halves]


def _is_too_much(error: RefusedSource) -> bool:
    """Returns whether the server rejected the query because of its size. Only the message shows this, because the
    status code is the same for any mistake in a query."""
    words = ("too many samples", "exceeded maximum resolution", "limit", "too large", "timed out", "timeout")
    return error.status in (413, 414, 422, 503, 504) and any(word in error.message.lower() for word in words)


def _is_never_final(_error: RefusedSource) -> bool:
    return False


def quote_pod(pod: str) -> str:
    """Returns a pod's name as part of a regular expression in a string. Of the characters in names, only the dot has a
    special meaning."""
    return pod.replace(".", "[.]")
