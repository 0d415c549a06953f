"""Writes Events: a repeated occurrence becomes one series, not one Event per loop.

The first occurrence creates an Event. After that, occurrences are counted, and the Event's series is updated at the
second occurrence and then at most once in `quiet_seconds`. The Event's name is derived from its content, so a restarted
process continues the series. (Events are events.k8s.io/v1; by default, an API server deletes them after an hour.)
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from trimtab.cluster.fair_share import FairCache
from trimtab.kube.client import MERGE_PATCH
from trimtab.kube.errors import Conflict, KubeFault, NotFound
from trimtab.kube.objects import Writer, decode_as
from trimtab.kube.resources import LIST_SOURCES, collection_path, object_path
from trimtab.runtime import clock

_MAX_SERIES = 4096
"""The maximum number of series in memory. If there are more, those of the namespace with the most that have not
occurred for the longest time are dropped."""
_MAX_NOTE = 1024
"""The longest note that the API server accepts (pkg/apis/core/validation/events.go)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """The object to which an Event refers."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    api_version: str = "v1"


@dataclass(slots=True)
class _Series:
    count: int = 1
    written: float = 0.0


class _StoredSeries(msgspec.Struct):
    count: int = 1


class _Stored(msgspec.Struct):
    series: _StoredSeries | None = None


@dataclass(slots=True)
class Recorder:
    """Writes Events on behalf of one controller. Any thread may call it; Events are written one at a time.

    It raises no errors: a lost Event must not stop the work.
    """

    writer: Writer
    controller: str
    """The reporting controller, such as trimtab.dev/compactor."""
    instance: str
    """The reporting instance, which is the replica."""
    quiet_seconds: float = 300.0
    now: clock.Clock = clock.utc_now
    elapsed: Callable[[], float] = clock.elapsed_seconds
    lost_events: int = 0
    """The number of Events that could not be written."""
    _series_by_name: FairCache[str, _Series] = field(default_factory=lambda: FairCache(_MAX_SERIES))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def record_event(self, about: About, reason: str, note: str, *, action: str, warning: bool = False) -> bool:
        """Records an occurrence. Returns True if a request was sent to the API server. The Event keeps the note of its
        first occurrence."""
        # The Event's name, which has at most 253 characters however long the object's name is.
        content = "\0".join((about.kind, about.namespace, about.name, about.uid, reason, action, self.controller))
        name = f"{about.name[:200].rstrip('.-')}.{hashlib.sha256(content.encode()).hexdigest()[:16]}"
        with self._lock:  # held while it writes: of two threads with the same first occurrence, one creates the Event
            try:
                return self._record(name, about, reason, note[:_MAX_NOTE], action, "Warning" if warning else "Normal")
            except KubeFault:
                self.lost_events += 1
                return False

    def _record(self, name: str, about: About, reason: str, note: str, action: str, kind: str) -> bool:
        series = self._series_by_name.drop_entry(about.namespace, name)
        if series is None:
            series = self._create(name, about, reason, note, action, kind)
        else:
            series.count += 1
        self._series_by_name.store_entry(about.namespace, name, series)
        if series.count == 1:
            return True
        # The second occurrence is written at once: it turns the Event into a series.
        if series.count > 2 and self.elapsed() - series.written < self.quiet_seconds:
            return False
        return self._count_occurrence(name, series, about, reason, note, action, kind)

    def _create(self, name: str, about: About, reason: str, note: str, action: str, kind: str) -> _Series:
        """Creates an Event. If an earlier process has created it, continues that Event's count."""
        namespace = about.namespace or "default"
        body = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": self._micro_time(),
            "reportingController": self.controller,
            "reportingInstance": self.instance,
            "action": action,
            "reason": reason,
            "note": note,
            "type": kind,
            "regarding": _reference(about),
        }
        doing = f"create an Event {reason} about {about.kind} {about.name}"
        try:
            self.writer.write("POST", collection_path(LIST_SOURCES["Event"], namespace), body, doing=doing)
        except Conflict:
            stored = decode_as(
                self.writer.client.get(object_path(LIST_SOURCES["Event"], namespace, name), doing=doing), _Stored, doing
            )
            return _Series(count=(stored.series.count if stored.series else 1) + 1)
        return _Series(written=self.elapsed())

    def _count_occurrence(self, name: str, series: _Series, about: About, *rest: str) -> bool:
        body = {"series": {"count": series.count, "lastObservedTime": self._micro_time()}}
        path = object_path(LIST_SOURCES["Event"], about.namespace or "default", name)
        try:
            self.writer.write(
                "PATCH", path, body, doing=f"increase the count of Event {name}", content_type=MERGE_PATCH
            )
        except NotFound:  # the server has deleted it: create it again
            self._series_by_name.store_entry(about.namespace, name, self._create(name, about, *rest))
            return True
        series.written = self.elapsed()
        return True

    def _micro_time(self) -> str:
        return self.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _reference(about: About) -> dict[str, str]:
    fields = {"kind": about.kind, "name": about.name, "namespace": about.namespace, "uid": about.uid}
    return {"apiVersion": about.api_version, **{name: value for name, value in fields.items() if value}}
