"""One leader among the replicas, whose writes end before another's begin.

A Lease does not fence: a leader that slept may still believe in itself. Three rules make it hold:

- a leader stops believing `renew_deadline` after it *began* its last renewal that worked, by its own clock;
- each write asks first (`LeaderElector.fence`), and ends within the client's write deadline; the two together are
  shorter than the lease;
- a new leader takes over only when it has watched the lease unchanged for as long as it lasts, and then waits one
  write deadline more before its first write; as long as a lease lasts where somebody took it from its holder by hand
  (emptied it), who does not know of it before its next renewal, and where there is none: a replica that has just
  started cannot know whether there never was one, or somebody deleted it.

Clocks of different machines are never compared: only time that passed here counts, that of a suspended machine too.
A Lease is created by PUT, not by POST: then the right to create it can name it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from trimtab.kube.client import Client
from trimtab.kube.errors import ApiStatus, Conflict, KubeFault, NotFound, NotLeading, RequestRefused
from trimtab.kube.objects import parsed
from trimtab.kube.resources import PLACES, one
from trimtab.runtime import clock


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTimings:
    """Seconds."""

    lease: int = 30
    """How long a lease lasts unrenewed: how long nobody leads after a leader died."""
    renew_deadline: float = 15.0
    """A leader whose last renewal began longer ago than this writes nothing any more."""
    retry: float = 3.0
    """Until the next try after one that failed."""

    @property
    def rhythm(self) -> float:
        """Between renewals, and between looks of those who wait: half of the deadline leaves time to try again."""
        return self.renew_deadline / 2


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: str | None = None
    acquire_time: str | None = None
    lease_transitions: int | None = None


class _Lease(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)
    whole: dict[str, Any] = {}
    """All of it as it was read, its version and what others wrote into it among it."""


GIVEN_BACK = 1
"""Seconds that a Lease lasts by its own words when its holder has let go of it (as client-go writes it)."""
_INVALID = 422
_TRIES = 3
"""To write when somebody else changed the Lease between our reading and our writing."""


class LeaderElector:
    """One replica's part in it. `run` in a thread; `leading` and `fence` from any."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity: str,
        *,
        terms: LeaseTimings | None = None,
        now: clock.Clock = clock.utc,
        elapsed: Callable[[], float] = clock.elapsed,
        told: Callable[[str], None] = lambda _trouble: None,
    ) -> None:
        """`told` hears of each new trouble. Raises ValueError where the terms would let two replicas write at once."""
        self.terms = terms or LeaseTimings()
        self.identity = identity
        self._client = client
        self._namespace, self._name = namespace, name
        self._now, self._elapsed, self._told = now, elapsed, told
        self._write_deadline = client.deadlines.write
        self._renewed: float | None = None
        self._may_write = 0.0
        self._seen: tuple[str | None, str | None] | None = None
        self._seen_since = 0.0
        self._written: _Lease | None = None
        self.trouble = ""
        """What went wrong last; empty while it goes well."""
        if self.terms.renew_deadline + self._write_deadline >= self.terms.lease:
            raise ValueError(
                f"a renew deadline of {self.terms.renew_deadline:g} s and a write deadline of "
                f"{self._write_deadline:g} s must together be shorter than the lease of {self.terms.lease} s"
            )

    @property
    def leading(self) -> bool:
        """May a write begin now?"""
        now = self._elapsed()
        return self._renewed is not None and now - self._renewed < self.terms.renew_deadline and now >= self._may_write

    def fence(self, doing: str) -> None:
        """For a `Writer`. Raises NotLeading."""
        if not self.leading:
            raise NotLeading(f"{doing}: {self.identity} does not lead {self._namespace}/{self._name}")

    def run(self, stop: threading.Event) -> None:
        """Renew or try to take over until `stop`; then give the lease back."""
        while not stop.is_set():
            self.step()
            stop.wait(min(self.terms.retry, self.terms.rhythm) if self.trouble else self.terms.rhythm)
        self.release()

    def step(self) -> bool:
        """One try to get or keep it; whether we hold it now. Never raises: trouble is told in `trouble`."""
        begun = self._elapsed()
        try:
            held = self._try(begun)
            self._now_troubled("")
        except KubeFault as error:  # nobody else was seen to hold it: we believe as long as the clock lets us
            self._now_troubled(str(error))
            return self.leading
        except Exception as error:  # noqa: BLE001  a bug must not end the election in silence; and we step back
            self._now_troubled(f"{type(error).__name__}: {error}")
            held = False
        if not held:
            self._renewed = None
        return held

    def release(self) -> None:
        """Give it back, so that another need not wait for its end. Call it when no write is under way any more."""
        if self._renewed is None:
            return
        self._renewed = None
        try:
            found = self._read()
            if found is not None and found.spec.holder_identity == self.identity:
                self._put(found, self._spec(found, holder="", seconds=GIVEN_BACK))
        except Exception as error:  # noqa: BLE001  the lease ends by itself
            self._now_troubled(f"{type(error).__name__}: {error}")

    def _now_troubled(self, trouble: str) -> None:
        before, self.trouble = self.trouble, trouble
        if trouble not in ("", before):
            self._told(trouble)

    def _try(self, begun: float) -> bool:
        """Somebody's edit between reading and writing says nothing of who holds it: reading again does."""
        for _ in range(_TRIES - 1):
            try:
                return self._once(begun)
            except Conflict:
                continue
        return self._once(begun)

    def _once(self, begun: float) -> bool:
        """What we wrote last is not read again: were it changed since, the server would not take our next."""
        found, self._written = self._written if self._renewed is not None else None, None
        found = found or self._read()
        if found is None:
            self._create()
            return self._taken(begun, snatched=True)
        spec = found.spec
        if spec.holder_identity == self.identity and self._renewed is not None:
            self._put(found, self._spec(found))
            self._renewed = begun
            return True
        if not self._is_over(spec, begun):
            return False
        snatched = not spec.holder_identity and (spec.lease_duration_seconds or 0) > GIVEN_BACK
        self._put(found, self._spec(found, taken=True))
        return self._taken(begun, snatched=snatched)

    def _taken(self, begun: float, *, snatched: bool) -> bool:
        """The one before us may have begun a write in its last moment.

        `snatched`: somebody emptied the Lease by hand, or may have deleted it. Its holder may not know of it yet.
        """
        self._renewed = begun
        self._may_write = self._elapsed() + (self.terms.lease if snatched else self._write_deadline)
        return True

    def _is_over(self, spec: _Spec, now: float) -> bool:
        """Free, or unchanged before our eyes for as long as it lasts. Our own of an earlier life is another's."""
        if not spec.holder_identity:
            return True
        if (spec.holder_identity, spec.renew_time) != self._seen:
            self._seen, self._seen_since = (spec.holder_identity, spec.renew_time), now
        return now - self._seen_since > (spec.lease_duration_seconds or self.terms.lease)

    def _spec(
        self, found: _Lease | None, *, holder: str | None = None, seconds: int | None = None, taken: bool = False
    ) -> dict[str, Any]:
        before = found.spec if found else _Spec()
        now = _micro(self._now())
        return {
            "holderIdentity": self.identity if holder is None else holder,
            "leaseDurationSeconds": seconds or self.terms.lease,
            "renewTime": now,
            "acquireTime": now if taken or found is None else before.acquire_time,
            "leaseTransitions": (before.lease_transitions or 0) + taken,
        }

    def _read(self) -> _Lease | None:
        doing = f"read Lease {self._namespace}/{self._name}"
        path = one(PLACES["Lease"], self._namespace, self._name)
        try:
            body = self._client.request("GET", path, deadline=self._write_deadline, doing=doing)
        except NotFound:
            return None
        return self._decoded(body, doing)

    def _create(self) -> None:
        meta = {"name": self._name, "namespace": self._namespace}
        body = {**_KIND, "metadata": meta, "spec": self._spec(None)}
        doing = f"create Lease {self._namespace}/{self._name}"
        path = one(PLACES["Lease"], self._namespace, self._name)
        try:
            self._keep(self._client.write("PUT", path, body, doing=doing), doing)
        except RequestRefused as error:
            if error.status == _INVALID:  # another replica was quicker: it is there now, and an update names a version
                raise Conflict(doing, error.status, ApiStatus(message=error.message)) from error
            raise

    def _put(self, found: _Lease, spec: dict[str, Any]) -> None:
        """The version goes along: of two that try at once one gets Conflict. What others wrote there stays."""
        body = {**found.whole, **_KIND, "spec": {**found.whole.get("spec", {}), **spec}}
        path = one(PLACES["Lease"], self._namespace, self._name)
        doing = f"renew Lease {self._namespace}/{self._name}"
        self._keep(self._client.write("PUT", path, body, doing=doing), doing)

    def _keep(self, answer: bytes, doing: str) -> None:
        """Only for the next renewal; whoever does not lead then, reads."""
        self._written = self._decoded(answer, doing)

    def _decoded(self, body: bytes, doing: str) -> _Lease:
        found: _Lease = parsed(body, _Lease, doing)
        found.whole = parsed(body, dict, doing)
        return found


_KIND = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}


def _micro(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
