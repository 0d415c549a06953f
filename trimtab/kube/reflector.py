"""One list, kept equal to the server's.

    list, page by page ──► watch from its version ──► bookmarks and events move the version on
      ▲                        │ stream ended, broke, stayed silent: again from the last version
      └── 410: it is no longer kept ◄┘

While a new list is read the old one stays readable. Trouble is normal here: it is told in `WatchHealth`, waited out,
and never raised. (What a watch promises: kubernetes.io/docs/reference/using-api/api-concepts, "Efficient detection of
changes".)

Is the server back? One list of many asks; the others wait for its word, so that an outage costs next to nothing.

How long until the next try?

Half of it is chance, so that many replicas that lost the same server don't come back as one.
"""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass, field
from io import BytesIO
from typing import Generic, TypeVar

from msgspec import Raw
from msgspec.structs import replace as change

from trimtab.kube import decode, listing
from trimtab.kube.client import Client, Stream
from trimtab.kube.errors import (
    InvalidResponse,
    KubeFault,
    NotAllowed,
    NotFound,
    RequestRefused,
    ResourceVersionGone,
    TooManyRequests,
    Unreachable,
    of_status,
)
from trimtab.kube.resources import ListSource
from trimtab.kube.store import Hold, ObjectStore, StoreSnapshot, Told
from trimtab.kube.watch_state import WatchHealth, WatchSettings
from trimtab.runtime.clock import elapsed

RECONNECT_PATIENCE = 20.0
"""Seconds the others wait: what troubles the one that asks may be its own."""


class ReconnectGate:
    """The way to one API server, shared by the lists of a `ClusterInformers`."""

    def __init__(self, patience: float = RECONNECT_PATIENCE) -> None:
        self._patience = patience
        self._changed = threading.Condition()
        self._scout: object = None

    def lost(self, who: object) -> None:
        """Nobody answered. The first one who says so is the one that goes on asking."""
        with self._changed:
            self._scout = self._scout or who

    def found(self) -> None:
        """Somebody got an answer: everybody may go."""
        if self._scout is not None:
            self.left(self._scout)

    def left(self, who: object) -> None:
        """This one asks no more."""
        with self._changed:
            if self._scout is who:
                self._scout = None
            self._changed.notify_all()

    def wait(self, who: object, stop: threading.Event) -> None:
        """Until it makes sense for this one to ask; `left` ends it where `stop` is set."""
        until = elapsed() + self._patience
        with self._changed:
            while self._scout not in (None, who) and not stop.is_set() and (left := until - elapsed()) > 0:
                self._changed.wait(left)


LEAST = 0.5
MOST = 30.0
PATIENCE = 120.0
"""The longest a server's own Retry-After is honoured: beyond it somebody's proxy is mistaken."""


@dataclass(slots=True)
class RetryBackoff:
    """0.5 s, doubling to 30 s, each between half and whole of it; anew after `reset`."""

    chance: random.Random = field(default_factory=random.Random)
    tries: int = 0

    def next(self, at_least: float | None = None) -> float:
        """Seconds to wait now; no less than the server asked for, and up to half as much more: it asks everybody."""
        whole = min(MOST, LEAST * 2.0 ** min(self.tries, 16))
        self.tries += 1
        chance = self.chance.random() / 2
        return max(whole * (0.5 + chance), min(at_least or 0.0, PATIENCE) * (1 + chance))

    def reset(self) -> None:
        """It worked."""
        self.tries = 0


V = TypeVar("V")

INITIAL_END = b'"k8s.io/initial-events-end"'
_PATIENT = 6
"""Errors within the server (500) in a row, about half a minute; then a new list: it may be the version after all."""
_LONG_ENOUGH = 5.0
"""Seconds a stream must have lived, when it brought nothing, to count as one that worked."""


class Reflector(Generic[V]):
    """Runs in a thread that is given to it (`run`); `store` and `state` are for readers in any other."""

    def __init__(
        self,
        client: Client,
        source: ListSource,
        hold: Hold[V],
        *,
        terms: WatchSettings | None = None,
        lock: threading.RLock | None = None,
        told: Told[V] | None = None,
        backoff: RetryBackoff | None = None,
        road: ReconnectGate | None = None,
    ) -> None:
        self.source = source
        self.terms = terms or WatchSettings()
        self.state = WatchHealth()
        """Replaced as a whole, so that a reader never sees half of it."""
        self.store: ObjectStore[V] = ObjectStore(source.kind, hold, lock or threading.RLock(), told)
        self._client = client
        self._backoff = backoff or RetryBackoff()
        self._road = road or ReconnectGate()
        self._version: str | None = None
        self._forced: str | None = None
        self._stop = threading.Event()
        self._thread: int | None = None
        self._stream: Stream | None = None
        self._streaming = self.terms.streaming

    def run(self) -> None:
        """Until `stop`."""
        self._thread = threading.get_ident()
        while not self._ended():
            if self._forced is not None:
                self._version, self._forced = self._forced or None, None
            try:
                if self._version is None and not self._streaming:
                    self._list()
                else:
                    self._watch()
            except KubeFault as error:
                self._trouble(error)
            except Exception as error:  # noqa: BLE001  a bug in what is held must not end the watch in silence
                self._trouble(InvalidResponse(f"watch {self.source}: {type(error).__name__}: {error}"))
        self._thread = None  # the number may soon be another thread's
        self._now(connected=False)

    def _ended(self) -> bool:
        """Told when it makes sense to ask the server again, or when there is nothing more to ask."""
        self._road.wait(self, self._stop)
        return self._stop.is_set()

    def stop(self) -> None:
        """Ends `run` within milliseconds, or within the deadline of a connection that is being made."""
        self._stop.set()
        self._road.left(self)
        self._end_stream()
        if self._thread is not None:
            self._client.interrupt(self._thread)

    def again(self, version: str = "") -> None:
        """Watch from this version, or list anew where none is named; what is held stays until then."""
        self._forced = version
        self._end_stream()

    def _end_stream(self) -> None:
        stream = self._stream
        if stream is not None:
            stream.close()

    def _now(self, **told: object) -> None:
        self.state = change(self.state, **told)

    def _trouble(self, error: KubeFault) -> None:
        """What the next step is after an error, and how long until then."""
        if isinstance(error, Unreachable):
            self._road.lost(self)
        else:
            self._road.found()
        if isinstance(error, NotFound) and self.source.optional:
            self._take(self.store.fresh(), absent=True)
            self._version = None  # what comes back one day is another list
            self._stop.wait(self.terms.absent)
            return
        self._now(connected=False, error=str(error))
        if _useless(error, self._backoff.tries):
            self._version = None
            self._streaming = self.terms.streaming and not _unsupported(error)
        asked = error.retry_after if isinstance(error, RequestRefused) else None
        wait = self._backoff.next(asked)
        if not (isinstance(error, ResourceVersionGone) and self._backoff.tries == 1):
            self._stop.wait(wait)

    # ── listing ──────────────────────────────────────────────────────────────────────────────────────

    def _list(self) -> None:
        fresh = self.store.fresh()
        version = ""
        for page in listing.pages(self._client, self.source, self.terms.page):
            self._road.found()
            for raw in page.items:
                self.store.read(raw, fresh)
            version = page.version
            if self._stop.is_set():
                return
        self._take(fresh)
        self._version = version

    def _take(self, fresh: StoreSnapshot[V], *, absent: bool = False) -> None:
        self.store.replace(fresh)
        self._now(synced=True, absent=absent, heard=elapsed(), error="", lists=self.state.lists + 1, connected=False)

    # ── watching ─────────────────────────────────────────────────────────────────────────────────────

    def _watch(self) -> None:
        """One stream to its end."""
        initial = self.store.fresh() if self._version is None else None
        stream = self._client.stream(
            self.source.path, self._query(initial is not None), idle=self.terms.idle, doing=f"watch {self.source}",
            accept=self.source.accept("PartialObjectMetadata"),
        )  # fmt: skip
        self._road.found()
        self._stream = stream
        begun, seen = elapsed(), self.state.events
        self._now(connected=True, error="", streams=self.state.streams + 1)
        try:
            if self._stop.is_set() or self._forced is not None:
                stream.close()
            for lines in stream.chunks():
                initial = self._chunk(lines, initial)
        finally:
            self._stream = None
            self._now(connected=False)
            if self.state.events > seen or elapsed() - begun > _LONG_ENOUGH:
                self._backoff.reset()
        if elapsed() - begun < _LONG_ENOUGH and not self._stop.is_set() and self._forced is None:
            raise Unreachable(f"watch {self.source}: the stream ended after {elapsed() - begun:.1f} s")

    def _query(self, initial: bool) -> dict[str, str | int | None]:
        turn = self.terms.turn + random.randrange(max(1, self.terms.turn // 2))  # noqa: S311
        query = {**self.source.query, "watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": turn}
        if initial:
            return {**query, "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        return {**query, "resourceVersion": self._version}

    def _chunk(self, lines: bytes, initial: StoreSnapshot[V] | None) -> StoreSnapshot[V] | None:
        """What came at one time. Returns the streamed first list while it goes on."""
        events = 0
        try:
            for line in BytesIO(lines):  # a third of the time `split` takes
                if line != b"\n":
                    initial = self._event(line, initial)
                    events += 1
        finally:
            if events:  # an error says nothing of how things stand
                self._heard(events, whole=initial is None)
        return initial

    def _heard(self, events: int, *, whole: bool) -> None:
        seen = self.state.events + events
        if whole:
            self._now(events=seen, heard=elapsed(), error="")
        else:
            self._now(events=seen)

    def _event(self, line: bytes, initial: StoreSnapshot[V] | None) -> StoreSnapshot[V] | None:
        quick = decode.changed(self.source.kind, line) if initial is None else None
        if quick is not None:
            gone, item = quick
            self._version = self.store.apply(item, gone=gone) or self._version
            return None
        return self._odd(line, initial)

    def _odd(self, line: bytes, initial: StoreSnapshot[V] | None) -> StoreSnapshot[V] | None:
        """Anything but a plain change: a bookmark, an error, an object that is hard to read, a first list's item."""
        doing = f"watch {self.source}"
        found = decode.event(line, doing)
        if found.type == "ERROR":
            status = decode.status(found.object)
            raise of_status(doing, status.code or 500, status)
        if found.type == "BOOKMARK":
            return self._bookmark(found.object, initial)
        if initial is not None:
            self.store.read(found.object, initial)
        else:
            item = decode.item(self.source.kind, found.object)
            self._version = self.store.apply(item, gone=found.type == "DELETED") or self._version
        return initial

    def _bookmark(self, raw: Raw, initial: StoreSnapshot[V] | None) -> StoreSnapshot[V] | None:
        if initial is not None:
            if INITIAL_END not in bytes(raw):
                return initial
            self._take(initial)
            self._now(connected=True)
        self._version = decode.metadata(raw).resource_version or self._version
        return None


def _useless(error: KubeFault, tries: int) -> bool:
    """Is the version no good any more? 410; one from the future (504, after a restored backup); what nobody foresaw.

    Not where a server is in trouble (5xx), has no time (429), or asks who we are (401, 403): it may well go on from
    there when that is over, and a new list is what it can bear least.
    """
    if not isinstance(error, RequestRefused):
        return isinstance(error, InvalidResponse)
    if any(cause.reason == "ResourceVersionTooLarge" for cause in error.causes):
        return True
    if error.status == 500:
        return tries >= _PATIENT
    return not (error.status > 500 or isinstance(error, TooManyRequests | NotAllowed))


def _unsupported(error: KubeFault) -> bool:
    """An API server that does not know streaming lists says 400 or 422 to them."""
    return isinstance(error, RequestRefused) and error.status in (400, 422)
