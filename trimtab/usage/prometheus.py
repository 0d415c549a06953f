"""Usage from Prometheus and what speaks like it (Thanos, Mimir, VictoriaMetrics, the managed ones).

A cluster's two weeks are too much for one answer. First the names of namespaces and pods, then cpu and memory of some
pods and some days at a time, each answer decoded series by series from its own bytes, and smaller pieces where the
server says that a piece is too large. Two scrapers of one pod are one series: the greatest of both counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from trimtab.cluster.owner import Owner
from trimtab.usage.cluster_label import LABELS as CLUSTER_LABELS
from trimtab.usage.cluster_label import UNLABELLED, Matchers, Mixed, MixedClusters, mixed
from trimtab.usage.errors import GarbledSource, RefusedSource
from trimtab.usage.http_client import HttpApi
from trimtab.usage.owners import chained
from trimtab.usage.prometheus_response import SeriesLabels, metrics, parsed
from trimtab.usage.series import Names, Series

DAY = 86400
RESOURCES = ("cpu", "memory")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPlan:
    """How much is asked for at once."""

    step: int = 300
    """Seconds between points."""
    days: int = 7
    """Of one query: 2 016 points at the default step, a fifth of what Prometheus allows."""
    pods: int = 100
    """Of one query."""
    rate: str = "5m"
    """What cpu is averaged over: at least four scrapes, so that one that failed leaves no hole."""
    extra: str = ""
    """A matcher that every query carries, such as cluster="prod"."""
    at_once: int = 4
    """Queries asked at the same time: a small share of the twenty that Prometheus answers at once."""
    names: Names = field(default_factory=Names)


@dataclass(frozen=True, slots=True)
class QueryPart:
    """One query."""

    resource: str
    namespace: str
    pods: tuple[str, ...]
    start: int
    end: int
    """Both included."""


class _Labels(msgspec.Struct, frozen=True):
    data: list[str] = []


@dataclass(slots=True)
class Prometheus:
    """One server. `tell` is called with (done, all) pieces."""

    source: HttpApi
    pieces: QueryPlan = field(default_factory=QueryPlan)

    def namespaces(self, start: int, end: int) -> list[str]:
        """Those that containers were seen in."""
        return self._values(self.pieces.names.label("namespace"), self._match(""), start, end)

    def pods(self, namespace: str, start: int, end: int) -> list[str]:
        """All pods of the time, also those that are gone."""
        return self._values(self.pieces.names.label("pod"), self._match(self._namespace(namespace)), start, end)

    def plan(self, start: int, end: int, namespaces: Sequence[str] = ()) -> list[QueryPart]:
        """Everything to ask for. Days begin at midnight, so that intervals of peaks are whole."""
        found = []
        for namespace in namespaces or self.namespaces(start, end):
            pods = self.pods(namespace, start, end)
            for n in range(0, len(pods), self.pieces.pods):
                group = tuple(pods[n : n + self.pieces.pods])
                for begin, until in spans(start, end, self.pieces.days * DAY, self.pieces.step):
                    found += [QueryPart(resource, namespace, group, begin, until) for resource in RESOURCES]
        return found

    def read(
        self, pieces: Sequence[QueryPart], tell: Callable[[int, int], None] = lambda done, all_: None
    ) -> Iterator[Series]:
        """The series of all pieces in their order; a container comes once for each piece it is in. A few pieces are
        asked for at the same time, and no more answers are held."""
        pool, waiting = ThreadPoolExecutor(self.pieces.at_once, thread_name_prefix="prometheus"), iter(pieces)
        asked = deque(pool.submit(self._bodies, piece) for piece in islice(waiting, self.pieces.at_once))
        try:
            for done in range(1, len(pieces) + 1):
                answers = asked.popleft().result()
                asked.extend(pool.submit(self._bodies, piece) for piece in islice(waiting, 1))
                for piece, body in answers:
                    yield from parsed(body, piece.resource, piece.end, piece.start)
                tell(done, len(pieces))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _bodies(self, piece: QueryPart) -> list[tuple[QueryPart, bytes]]:
        """The answers to a piece, or to its halves where it is too much for the server: nobody asks for it twice."""
        smaller = _halves(piece, self.pieces.step)
        final = _too_much if smaller else _never
        doing = f"{piece.resource} of {piece.namespace}"
        try:
            return [(piece, self.source.get("/api/v1/query_range", self._query(piece), doing, final))]
        except RefusedSource as error:
            if not smaller or not _too_much(error):
                raise
        return [answer for part in smaller for answer in self._bodies(part)]

    def _query(self, piece: QueryPart) -> dict[str, str]:
        names = self.pieces.names
        which = self._match(
            self._namespace(piece.namespace), f'{names.label("pod")}=~"{"|".join(map(quoted, piece.pods))}"'
        )
        window = self.pieces.rate if piece.resource == "cpu" else f"{self.pieces.step}s"
        query = names.query(piece.resource, which, window)
        return {"query": query, "start": str(piece.start), "end": str(piece.end), "step": str(self.pieces.step)}

    def _namespace(self, name: str) -> str:
        return f'{self.pieces.names.label("namespace")}="{name}"'

    def _match(self, *matchers: str) -> str:
        return ",".join(m for m in (*matchers, self.pieces.extra) if m)

    def _values(self, label: str, match: str, start: int, end: int) -> list[str]:
        query = {"match[]": self._selector(match), "start": str(start), "end": str(end)}
        body = self.source.get(f"/api/v1/label/{label}/values", query, f"the names of every {label}")
        return sorted(self._decoded(body, _Labels).data)

    def _selector(self, match: str) -> str:
        names = self.pieces.names
        return f"{names.memory}{{{names.containers()}{',' if match else ''}{match}}}"

    def clusters(self, label: str, start: int, end: int) -> list[str]:
        """The values that the containers' series have of a label."""
        return self._values(label, self._match(""), start, end)

    def mixed(
        self, start: int, end: int, namespaces: Sequence[str] = (), chosen: Collection[str] = ()
    ) -> tuple[Mixed, ...]:
        """The labels of which more than one value was seen, though they tell clusters apart and neither the matcher
        names them nor `chosen` has them."""
        there, settled = self._labels(start, end), {*Matchers.of(self.pieces.extra).labels, *chosen}
        among, found = self._among(namespaces), dict[str, list[str]]()
        for label in (one for one in CLUSTER_LABELS if one in there and one not in settled):
            values = self._values(label, self._match(among), start, end)
            if values:
                name = self.pieces.names.label("namespace")
                without = self._values(name, self._match(among, f'{label}=""'), start, end)
                found[label] = [*values, *([UNLABELLED] if without else [])]
        return mixed(found)

    def one_cluster(self, start: int, end: int, namespaces: Sequence[str] = (), chosen: Collection[str] = ()) -> None:
        """Make sure that nothing of another cluster is mixed in. Raises MixedClusters."""
        found = self.mixed(start, end, namespaces, chosen)
        if found:
            raise MixedClusters(self.source.shown, found)

    def _among(self, namespaces: Sequence[str]) -> str:
        label = self.pieces.names.label("namespace")
        return f'{label}=~"{"|".join(map(quoted, namespaces))}"' if namespaces else ""

    def _labels(self, start: int, end: int) -> set[str]:
        """The names of the containers' labels; every label that tells clusters apart where the server has no such
        question."""
        query = {"match[]": self._selector(self._match("")), "start": str(start), "end": str(end)}
        try:
            body = self.source.get("/api/v1/labels", query, "the names of labels")
        except RefusedSource as error:
            if error.status not in (400, 403, 404, 405):
                raise
            return set(CLUSTER_LABELS)
        return set(self._decoded(body, _Labels).data)

    def owners(self, start: int, end: int) -> dict[tuple[str, str], Owner]:
        """Pods' topmost owners, as kube-state-metrics tells them; empty where there is none."""
        reach = f"[{max(end - start, 60)}s]"
        rows: list[tuple[str, str, str, str, str]] = []
        for metric, kind, name in _OWNED:
            series = f"max_over_time({metric}{{{self._match('')}}}{reach})"
            query = f"max by (namespace, {name}, owner_kind, owner_name) ({series})"
            body = self.source.get("/api/v1/query", {"query": query, "time": str(end)}, "the owners of pods")
            rows += [(found.namespace, kind, getattr(found, name), found.owner_kind, found.owner_name)
                     for found in self._metrics(body) if found.owner_kind not in ("", "<none>", "Node")]  # fmt: skip
        return chained(rows)

    def matching(self, *matchers: str) -> str:
        """The matchers of a selector, those that every query carries among them."""
        return self._match(*matchers)

    def over_time(self, query: str, start: int, end: int, step: int, what: str) -> Iterator[Series]:
        """The series of any query, as of memory."""
        asked = {"query": query, "start": str(start), "end": str(end), "step": str(step)}
        yield from parsed(self.source.get("/api/v1/query_range", asked, what), "memory", end, start)

    def _metrics(self, body: bytes) -> Iterator[SeriesLabels]:
        try:
            yield from metrics(body)
        except msgspec.DecodeError as error:
            raise GarbledSource(f"{self.source.shown}: an answer of {len(body)} bytes: {error}") from None

    def _decoded(self, body: bytes, shape: type[Any]) -> Any:
        try:
            return msgspec.json.decode(body, type=shape)
        except msgspec.DecodeError as error:
            raise GarbledSource(f"{self.source.shown}: an answer of {len(body)} bytes: {error}") from None


class _Owned(NamedTuple):
    metric: str
    kind: str
    label: str


_OWNED = (
    _Owned("kube_pod_owner", "Pod", "pod"),
    _Owned("kube_replicaset_owner", "ReplicaSet", "replicaset"),
    _Owned("kube_job_owner", "Job", "job_name"),
)


def spans(start: int, end: int, length: int, step: int) -> list[tuple[int, int]]:
    """From start to end in spans that end at midnight, on a grid of steps, no point twice."""
    found, at = [], start - start % step
    while at <= end:
        until = min(end, (at // DAY) * DAY + length - step)
        found.append((at, until))
        at = until - until % step + step
    return found


def _halves(piece: QueryPart, step: int) -> list[QueryPart]:
    """Fewer pods, or one pod for fewer days; empty where it gets no smaller."""
    if len(piece.pods) > 1:
        middle = len(piece.pods) // 2
        groups = (piece.pods[:middle], piece.pods[middle:])
        return [QueryPart(piece.resource, piece.namespace, group, piece.start, piece.end) for group in groups]
    days = (piece.end - piece.start) // DAY
    if days < 2:
        return []
    found = spans(piece.start, piece.end, days // 2 * DAY, step)
    return [QueryPart(piece.resource, piece.namespace, piece.pods, start, end) for start, end in found]


def _too_much(error: RefusedSource) -> bool:
    """Its words, since the status is that of any mistake in a query."""
    words = ("too many samples", "exceeded maximum resolution", "limit", "too large", "timed out", "timeout")
    return error.status in (413, 414, 422, 503, 504) and any(word in error.said.lower() for word in words)


def _never(_error: RefusedSource) -> bool:
    return False


def quoted(pod: str) -> str:
    """A pod's name within a regular expression within a string: a dot is the only letter that means something."""
    return pod.replace(".", "[.]")
