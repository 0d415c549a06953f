"""Usage from Prometheus and what speaks like it (Thanos, Mimir, VictoriaMetrics, the managed ones).

A cluster's two weeks are too much for one answer. First the names of namespaces and pods, then cpu and memory of some
pods and some days at a time, each answer decoded series by series from its own bytes, and smaller pieces where the
server says that a piece is too large. Two scrapers of one pod are one series: the greatest of both counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from trimtab.cluster.owner import Owner
from trimtab.usage.answer import Metric, metrics, parsed
from trimtab.usage.errors import GarbledSource, RefusedSource
from trimtab.usage.http import Source
from trimtab.usage.owners import chained
from trimtab.usage.series import Series

DAY = 86400
_WHICH = 'container!="",container!="POD"'
_BY = "max by (namespace, pod, container)"
QUERIES = {
    "cpu": f"{_BY} (rate(container_cpu_usage_seconds_total{{{_WHICH},%s}}[%s]))",
    "memory": f"{_BY} (max_over_time(container_memory_working_set_bytes{{{_WHICH},%s}}[%s]))",
}
"""Which pods; then the window of the rate, or the step, so that no peak between two points is lost."""
_METRIC = "container_memory_working_set_bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
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


@dataclass(frozen=True, slots=True)
class Piece:
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

    source: Source
    pieces: Pieces = field(default_factory=Pieces)

    def namespaces(self, start: int, end: int) -> list[str]:
        """Those that containers were seen in."""
        return self._values("namespace", self._match(""), start, end)

    def pods(self, namespace: str, start: int, end: int) -> list[str]:
        """All pods of the time, also those that are gone."""
        return self._values("pod", self._match(f'namespace="{namespace}"'), start, end)

    def plan(self, start: int, end: int, namespaces: Sequence[str] = ()) -> list[Piece]:
        """Everything to ask for. Days begin at midnight, so that intervals of peaks are whole."""
        found = []
        for namespace in namespaces or self.namespaces(start, end):
            pods = self.pods(namespace, start, end)
            for n in range(0, len(pods), self.pieces.pods):
                group = tuple(pods[n : n + self.pieces.pods])
                for begin, until in spans(start, end, self.pieces.days * DAY, self.pieces.step):
                    found += [Piece(resource, namespace, group, begin, until) for resource in QUERIES]
        return found

    def read(
        self, pieces: Sequence[Piece], tell: Callable[[int, int], None] = lambda done, all_: None
    ) -> Iterator[Series]:
        """The series of all pieces; a container comes once for each piece it is in."""
        for n, piece in enumerate(pieces):
            yield from self._read(piece)
            tell(n + 1, len(pieces))

    def _read(self, piece: Piece) -> Iterator[Series]:
        try:
            body = self.source.get("/api/v1/query_range", self._query(piece), f"{piece.resource} of {piece.namespace}")
        except RefusedSource as error:
            smaller = _halves(piece, self.pieces.step)
            if not _too_much(error) or not smaller:
                raise
            for part in smaller:
                yield from self._read(part)
            return
        yield from parsed(body, piece.resource, piece.end, piece.start)

    def _query(self, piece: Piece) -> dict[str, str]:
        which = self._match(f'namespace="{piece.namespace}"', f'pod=~"{"|".join(map(_quoted, piece.pods))}"')
        window = self.pieces.rate if piece.resource == "cpu" else f"{self.pieces.step}s"
        query = QUERIES[piece.resource] % (which, window)
        return {"query": query, "start": str(piece.start), "end": str(piece.end), "step": str(self.pieces.step)}

    def _match(self, *matchers: str) -> str:
        return ",".join(m for m in (*matchers, self.pieces.extra) if m)

    def _values(self, label: str, match: str, start: int, end: int) -> list[str]:
        selector = f"{_METRIC}{{{_WHICH}{',' if match else ''}{match}}}"
        query = {"match[]": selector, "start": str(start), "end": str(end)}
        body = self.source.get(f"/api/v1/label/{label}/values", query, f"the names of every {label}")
        return sorted(self._decoded(body, _Labels).data)

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

    def _metrics(self, body: bytes) -> Iterator[Metric]:
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


def _halves(piece: Piece, step: int) -> list[Piece]:
    """Fewer pods, or one pod for fewer days; empty where it gets no smaller."""
    if len(piece.pods) > 1:
        middle = len(piece.pods) // 2
        groups = (piece.pods[:middle], piece.pods[middle:])
        return [Piece(piece.resource, piece.namespace, group, piece.start, piece.end) for group in groups]
    days = (piece.end - piece.start) // DAY
    if days < 2:
        return []
    found = spans(piece.start, piece.end, days // 2 * DAY, step)
    return [Piece(piece.resource, piece.namespace, piece.pods, start, end) for start, end in found]


def _too_much(error: RefusedSource) -> bool:
    """Its words, since the status is that of any mistake in a query."""
    words = ("too many samples", "exceeded maximum resolution", "limit", "too large", "timed out", "timeout")
    return error.status in (413, 414, 422, 503, 504) and any(word in error.said.lower() for word in words)


def _quoted(pod: str) -> str:
    """A pod's name within a regular expression within a string: a dot is the only letter that means something."""
    return pod.replace(".", "[.]")
