"""Events: one series per thing that happens again and again, not one per loop.

The first time an Event is made; from then on its series counts, written at the 2nd time, and again no more often than
once in `quiet` seconds. Its name is made of what it is about, so that a restarted process goes on with the same one.
(events.k8s.io/v1; an API server forgets Events after an hour by default.)
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from trimtab.kube.client import MERGE
from trimtab.kube.errors import Conflict, KubeFault, NotFound
from trimtab.kube.objects import Writer, parsed
from trimtab.kube.resources import PLACES, collection, one
from trimtab.runtime import clock

_MOST = 4096
"""Things remembered; the ones not heard of for longest are forgotten."""
_NOTE = 1024
"""The longest note the API server takes (pkg/apis/core/validation/events.go)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """The object an Event is about."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    api_version: str = "v1"


@dataclass(slots=True)
class _Series:
    count: int = 1
    written: float = 0.0


class _Counted(msgspec.Struct):
    count: int = 1


class _Stored(msgspec.Struct):
    series: _Counted | None = None


@dataclass(slots=True)
class Recorder:
    """Writes Events as one controller, from any thread, one at a time.

    Nothing is raised: an Event that is lost must not stop the work.
    """

    writer: Writer
    controller: str
    """Such as trimtab.dev/compactor."""
    instance: str
    """Which replica."""
    quiet: float = 300.0
    now: clock.Clock = clock.utc
    elapsed: Callable[[], float] = clock.elapsed
    lost: int = 0
    """Events that could not be written."""
    _known: OrderedDict[str, _Series] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def tell(self, about: About, reason: str, note: str, *, action: str, warning: bool = False) -> bool:
        """It happened (again). True where the API server was told; the note is that of the first time."""
        name = self._name(about, reason, action)
        with self._lock:  # also while it is written: of two that tell the same first, one makes the Event
            try:
                return self._tell(name, about, reason, note[:_NOTE], action, "Warning" if warning else "Normal")
            except KubeFault:
                self.lost += 1
                return False

    def _tell(self, name: str, about: About, reason: str, note: str, action: str, kind: str) -> bool:
        series = self._known.pop(name, None)
        if series is None:
            series = self._first(name, about, reason, note, action, kind)
        else:
            series.count += 1
        self._known[name] = series
        while len(self._known) > _MOST:
            self._known.popitem(last=False)
        if series.count == 1:
            return True
        if series.count > 2 and self.elapsed() - series.written < self.quiet:
            return False
        return self._again(name, series, about, reason, note, action, kind)

    def _first(self, name: str, about: About, reason: str, note: str, action: str, kind: str) -> _Series:
        """A new Event; or, where an earlier life of ours has made it, its count so far and this one."""
        namespace = about.namespace or "default"
        body = {
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": name, "namespace": namespace},
            "eventTime": self._micro(), "reportingController": self.controller, "reportingInstance": self.instance,
            "action": action, "reason": reason, "note": note, "type": kind, "regarding": _reference(about),
        }  # fmt: skip
        doing = f"tell {reason} of {about.kind} {about.name}"
        try:
            self.writer.write("POST", collection(PLACES["Event"], namespace), body, doing=doing)
        except Conflict:
            stored = parsed(self.writer.client.get(one(PLACES["Event"], namespace, name), doing=doing), _Stored, doing)
            return _Series(count=(stored.series.count if stored.series else 1) + 1)
        return _Series(written=self.elapsed())

    def _again(self, name: str, series: _Series, about: About, *said: str) -> bool:
        body = {"series": {"count": series.count, "lastObservedTime": self._micro()}}
        path = one(PLACES["Event"], about.namespace or "default", name)
        try:
            self.writer.write("PATCH", path, body, doing=f"count Event {name}", content_type=MERGE)
        except NotFound:  # forgotten by the server: this one is a first again
            self._known[name] = self._first(name, about, *said)
            return True
        series.written = self.elapsed()
        return True

    def _name(self, about: About, reason: str, action: str) -> str:
        """At most 253 characters, whatever the object's name."""
        said = "\0".join((about.kind, about.namespace, about.name, about.uid, reason, action, self.controller))
        return f"{about.name[:200].rstrip('.-')}.{hashlib.sha256(said.encode()).hexdigest()[:16]}"

    def _micro(self) -> str:
        return self.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _reference(about: About) -> dict[str, str]:
    found = {"kind": about.kind, "name": about.name, "namespace": about.namespace, "uid": about.uid}
    return {"apiVersion": about.api_version, **{name: value for name, value in found.items() if value}}
