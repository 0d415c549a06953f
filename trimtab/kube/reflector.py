"""Keeps one list equal to the server's list.

    list, page by page ──► watch from its version ──► bookmarks and events move the version on
      ▲                        │ stream ended, broke, stayed silent: again from the last version
      └── 410: no longer available ◄┘

While a new list is read, the old one stays readable. Errors are normal here: they are recorded in `WatchHealth`,
followed by a wait, and never raised. (What a watch guarantees: kubernetes.io/docs/reference/using-api/api-concepts,
"Efficient detection of changes".)

During an outage, one of many lists retries and the others wait until it succeeds, so that an outage costs next to
nothing. Half of each wait is random, so that many replicas that lost the same server do not reconnect at the same time.
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
    refusal_of_status,
)
from trimtab.kube.resources import ListSource
from trimtab.kube.store import ObjectStore, OnChange, StoreSnapshot, Transform
from trimtab.kube.watch_state import WatchHealth, WatchSettings
from trimtab.runtime.clock import elapsed_seconds

RECONNECT_PATIENCE_SECONDS = 20.0
"""The number of seconds for which the other lists wait for the list that retries, because its error may concern only
itself."""


class ReconnectGate:
    """Lets one of several lists reconnect while the others wait. It is shared by the lists of a `ClusterInformers`."""

    def __init__(self, patience: float = RECONNECT_PATIENCE_SECONDS) -> None:
        self._patience = patience
        self._changed = threading.Condition()
        self._retrying: object = None

    def report_failure(self, waiter: object) -> None:
        """Records that the server did not respond. The list that reports this first is the one that retries."""
        with self._changed:
            self._retrying = self._retrying or waiter

    def report_success(self) -> None:
        """Records that the server has responded, so that all waiting lists go on."""
        if self._retrying is not None:
            self.leave_gate(self._retrying)

    def leave_gate(self, waiter: object) -> None:
        """Records that a list no longer retries."""
        with self._changed:
            if self._retrying is waiter:
                self._retrying = None
            self._changed.notify_all()

    def wait_for_turn(self, waiter: object, stop: threading.Event) -> None:
        """Waits until this list should retry. If `stop` is set, `leave_gate` ends the wait."""
        deadline = elapsed_seconds() + self._patience
        with self._changed:
            while (
                self._retrying not in (None, waiter)
                and not stop.is_set()
                and (seconds_left := deadline - elapsed_seconds()) > 0
            ):
                self._changed.wait(seconds_left)


MIN_WAIT_SECONDS = 0.5
"""The first wait in seconds; each further wait is twice as long, up to `MAX_WAIT_SECONDS`."""
MAX_WAIT_SECONDS = 30.0
MAX_RETRY_AFTER_SECONDS = 120.0
"""The longest Retry-After, in seconds, that is obeyed: a longer one is most likely a mistake of a proxy."""


@dataclass(slots=True)
class RetryBackoff:
    """Waits of 0.5 s, doubling up to 30 s, each shortened by a random part of up to a half. They begin anew after
    `reset`."""

    chance: random.Random = field(default_factory=random.Random)
    tries: int = 0

    def next_wait_seconds(self, at_least: float | None = None) -> float:
        """Returns how many seconds to wait now: at least as long as the server requested, plus a random part of up to
        half of that, because the server requests the same of every client."""
        full_wait = min(MAX_WAIT_SECONDS, MIN_WAIT_SECONDS * 2.0 ** min(self.tries, 16))
        self.tries += 1
        chance = self.chance.random() / 2
        return max(full_wait * (0.5 + chance), min(at_least or 0.0, MAX_RETRY_AFTER_SECONDS) * (1 + chance))

    def reset(self) -> None:
        """Begins with the shortest wait again, after a success."""
        self.tries = 0


V = TypeVar("V")

INITIAL_END = b'"k8s.io/initial-events-end"'
_MAX_SERVER_ERRORS = 6
"""After this many server errors (500) in a row, which take about half a minute, the list is read anew, because its
version may be the cause."""
_MIN_STREAM_SECONDS = 5.0
"""How many seconds a stream without events must last to count as successful."""


class Reflector(Generic[V]):
    """Runs in the thread that calls `run`; `store` and `health` can be read from any thread."""

    def __init__(
        self,
        client: Client,
        source: ListSource,
        hold: Transform[V],
        *,
        settings: WatchSettings | None = None,
        lock: threading.RLock | None = None,
        on_change: OnChange[V] | None = None,
        backoff: RetryBackoff | None = None,
        reconnect_gate: ReconnectGate | None = None,
    ) -> None:
        self.source = source
        self.settings = settings or WatchSettings()
        self.health = WatchHealth()
        """Replaced as a whole, so that a reader never sees a partial update."""
        self.store: ObjectStore[V] = ObjectStore(source.kind, hold, lock or threading.RLock(), on_change)
        self._client = client
        self._backoff = backoff or RetryBackoff()
        self._reconnect_gate = reconnect_gate or ReconnectGate()
        self._version: str | None = None
        self._forced_version: str | None = None
        self._stop = threading.Event()
        self._thread_id: int | None = None
        self._stream: Stream | None = None
        self._streaming = self.settings.stream_initial_list

    def run(self) -> None:
        """Lists and watches until `stop` is called."""
        self._thread_id = threading.get_ident()
        while not self._wait_or_stop():
            if self._forced_version is not None:
                # An empty version forces a new list.
                self._version, self._forced_version = self._forced_version or None, None
            try:
                if self._version is None and not self._streaming:
                    self._list()
                else:
                    self._watch()
            except KubeFault as error:
                self._handle_error(error)
            except Exception as error:  # noqa: BLE001  a bug in a transform must not end the watch silently
                self._handle_error(InvalidResponse(f"watch {self.source}: {type(error).__name__}: {error}"))
        self._thread_id = None  # the operating system may reuse the number for another thread
        self._set_state(connected=False)

    def _wait_or_stop(self) -> bool:
        """Waits until a request makes sense. Returns whether the reflector was stopped."""
        self._reconnect_gate.wait_for_turn(self, self._stop)
        return self._stop.is_set()

    def stop(self) -> None:
        """Ends `run` within milliseconds, or, if it is just connecting, within the deadline for a connection."""
        self._stop.set()
        self._reconnect_gate.leave_gate(self)
        self._end_stream()
        if self._thread_id is not None:
            self._client.interrupt_request(self._thread_id)

    def restart_from(self, version: str = "") -> None:
        """Watches from this version, or, without a version, lists again. The stored objects stay until then."""
        self._forced_version = version
        self._end_stream()

    def _end_stream(self) -> None:
        stream = self._stream
        if stream is not None:
            stream.close()

    def _set_state(self, **changes: object) -> None:
        self.health = change(self.health, **changes)

    def _handle_error(self, error: KubeFault) -> None:
        """Chooses the next step after an error, and waits before it."""
        if isinstance(error, Unreachable):
            self._reconnect_gate.report_failure(self)
        else:
            self._reconnect_gate.report_success()
        # The CustomResourceDefinition is not installed: an empty list, and no error.
        if isinstance(error, NotFound) and self.source.optional:
            self._replace_store(self.store.begin_list(), absent=True)
            self._version = None  # a list that returns one day is a new one
            self._stop.wait(self.settings.absent_retry_seconds)
            return
        self._set_state(connected=False, error=str(error))
        if _is_version_useless(error, self._backoff.tries):
            self._version = None
            # Whether the API server does not support streaming lists: it responds with 400 or 422.
            self._streaming = self.settings.stream_initial_list and not (
                isinstance(error, RequestRefused) and error.status in (400, 422)
            )
        retry_after = error.retry_after if isinstance(error, RequestRefused) else None
        wait = self._backoff.next_wait_seconds(retry_after)
        # The first 410 is normal after a long pause: list again at once.
        if not (isinstance(error, ResourceVersionGone) and self._backoff.tries == 1):
            self._stop.wait(wait)

    # ── listing ──────────────────────────────────────────────────────────────────────────────────────

    def _list(self) -> None:
        fresh = self.store.begin_list()
        version = ""
        for page in listing.iter_pages(self._client, self.source, self.settings.page_size):
            self._reconnect_gate.report_success()
            for raw in page.items:
                self.store.read_item(raw, fresh)
            version = page.version
            if self._stop.is_set():
                return
        self._replace_store(fresh)
        self._version = version

    def _replace_store(self, fresh: StoreSnapshot[V], *, absent: bool = False) -> None:
        self.store.replace_list(fresh)
        self._set_state(
            synced=True, absent=absent, heard=elapsed_seconds(), error="", lists=self.health.lists + 1, connected=False
        )

    # ── watching ─────────────────────────────────────────────────────────────────────────────────────

    def _watch(self) -> None:
        """Reads one stream to its end."""
        initial = self.store.begin_list() if self._version is None else None
        stream = self._client.stream(
            self.source.list_path,
            self._query(initial is not None),
            idle=self.settings.idle_seconds,
            doing=f"watch {self.source}",
            accept=self.source.accept_header("PartialObjectMetadata"),
        )
        self._reconnect_gate.report_success()
        self._stream = stream
        started, events_before = elapsed_seconds(), self.health.events
        self._set_state(connected=True, error="", streams=self.health.streams + 1)
        try:
            if self._stop.is_set() or self._forced_version is not None:
                stream.close()
            for lines in stream.iter_lines():
                initial = self._apply_lines(lines, initial)
        finally:
            self._stream = None
            self._set_state(connected=False)
            # A stream that ends at once without events must not reset the backoff, or it would be reopened in a tight
            # loop.
            if self.health.events > events_before or elapsed_seconds() - started > _MIN_STREAM_SECONDS:
                self._backoff.reset()
        if (
            elapsed_seconds() - started < _MIN_STREAM_SECONDS
            and not self._stop.is_set()
            and self._forced_version is None
        ):
            raise Unreachable(f"watch {self.source}: the stream ended after {elapsed_seconds() - started:.1f} s")

    def _query(self, initial: bool) -> dict[str, str | int | None]:
        timeout = self.settings.stream_seconds + random.randrange(max(1, self.settings.stream_seconds // 2))  # noqa: S311
        query = {**self.source.selector_query, "watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": timeout}
        if initial:
            # KEP-3157: a streamed list must set resourceVersionMatch.
            return {**query, "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        return {**query, "resourceVersion": self._version}

    def _apply_lines(self, lines: bytes, initial: StoreSnapshot[V] | None) -> StoreSnapshot[V] | None:
        """Applies lines that arrived together. Returns the initial list while it is being streamed, otherwise None."""
        events = 0
        try:
            for line in BytesIO(lines):  # takes a third of the time of `split`
                if line != b"\n":
                    initial = self._apply_line(line, initial)
                    events += 1
        finally:
            if events:  # an error alone says nothing about the list
                event_count = self.health.events + events
                if initial is None:
                    self._set_state(events=event_count, heard=elapsed_seconds(), error="")
                else:
                    self._set_state(events=event_count)
        return initial

    def _apply_line(self, line: bytes, initial: StoreSnapshot[V] | None) -> StoreSnapshot[V] | None:
        if initial is not None:
            return self._apply_other(line, initial)
        quick = decode.decode_change(self.source.kind, line, skip_env=self.store.skip_env)
        if quick is not None:
            gone, item = quick
            self._version = self.store.apply_event(item, gone=gone) or self._version
            return None
        return self._apply_other(line, initial)

    def _apply_other(self, line: bytes, initial: StoreSnapshot[V] | None) -> StoreSnapshot[V] | None:
        """Applies any line that is not a plain change: a bookmark, an error, an object that is hard to decode, or an
        item of an initial list."""
        doing = f"watch {self.source}"
        watch_event = decode.decode_event(line, doing)
        if watch_event.type == "ERROR":
            status = decode.decode_status(watch_event.object)
            raise refusal_of_status(doing, status.code or 500, status)
        if watch_event.type == "BOOKMARK":
            return self._apply_bookmark(watch_event.object, initial)
        if initial is not None:
            self.store.read_item(watch_event.object, initial)
        else:
            item = decode.decode_item(self.source.kind, watch_event.object, skip_env=self.store.skip_env)
            self._version = self.store.apply_event(item, gone=watch_event.type == "DELETED") or self._version
        return initial

    def _apply_bookmark(self, raw: Raw, initial: StoreSnapshot[V] | None) -> StoreSnapshot[V] | None:
        if initial is not None:
            # A bookmark with this annotation ends the initial events of a streamed list (KEP-3157); others before it do
            # not.
            if INITIAL_END not in bytes(raw):
                return initial
            self._replace_store(initial)
            self._set_state(connected=True)
        self._version = decode.decode_metadata(raw).resource_version or self._version
        return None


def _is_version_useless(error: KubeFault, tries: int) -> bool:
    """Returns whether watching from the present version is no longer possible: after 410, if the version is in the
    future (504, after a backup was restored), or after an unexpected error.

    After a server error (5xx), 429, 401 or 403 it is still possible: the watch can continue from the same version when
    the problem is over, and a new list would be an additional load for a server in trouble.
    """
    if not isinstance(error, RequestRefused):
        return isinstance(error, InvalidResponse)
    if any(cause.reason == "ResourceVersionTooLarge" for cause in error.causes):
        return True
    if error.status == 500:
        return tries >= _MAX_SERVER_ERRORS
    return not (error.status > 500 or isinstance(error, TooManyRequests | NotAllowed))
