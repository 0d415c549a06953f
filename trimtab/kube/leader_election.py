"""Elects one leader among the replicas, so that its writes end before those of another leader begin.

A Lease alone does not ensure this, because a leader that was suspended may still believe that it leads. Three rules
prevent two leaders from writing at the same time:

- a leader stops leading `renew_deadline_seconds` after it *began* its last successful renewal, by its own clock;
- each write first checks that this replica leads (`LeaderElector.check_leading`), and ends within the client's write
  deadline; the two times together are shorter than the lease;
- a new leader takes over only after it has observed the Lease unchanged for its whole duration, and then waits one more
  write deadline before its first write. In two cases it waits a whole lease duration. If someone has emptied the Lease
  by hand, its holder does not notice before its next renewal. If there is no Lease, a replica that has just started
  cannot know whether the Lease was deleted.

The clocks of different machines are never compared: only time that has passed on this machine counts, including time
for which the machine was suspended. A Lease is created by PUT and not by POST, so that the permission to create a Lease
can be limited to this name.
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
from trimtab.kube.objects import decode_as
from trimtab.kube.resources import LIST_SOURCES, object_path
from trimtab.runtime import clock


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTimings:
    """The durations of an election, in seconds."""

    lease_duration_seconds: int = 30
    """The number of seconds for which a Lease is valid without a renewal. When a leader has died, there is no leader
    for that long."""
    renew_deadline_seconds: float = 15.0
    """A leader may write for this many seconds after its last renewal began."""
    retry_period_seconds: float = 3.0
    """How long to wait after a failed attempt."""

    @property
    def renew_interval_seconds(self) -> float:
        """The time between renewals, and between the reads of a replica that waits. Half of the deadline leaves time
        for another attempt."""
        return self.renew_deadline_seconds / 2


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: str | None = None
    acquire_time: str | None = None
    lease_transitions: int | None = None


class _Lease(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)
    whole: dict[str, Any] = {}
    """The Lease as it was read, including its `resourceVersion` and the fields of other programs."""


RELEASED_LEASE_SECONDS = 1
"""The duration, in seconds, of a Lease that its holder has released (the same as in client-go)."""
_UNPROCESSABLE = 422
_MAX_ATTEMPTS = 3
"""The maximum number of attempts of a write, if others change the Lease between reading and writing."""


class LeaderElector:
    """One replica's part in the election. `run` needs a thread of its own; `is_leading` and `check_leading` can be
    called from any thread."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity: str,
        *,
        timings: LeaseTimings | None = None,
        now: clock.Clock = clock.utc_now,
        elapsed: Callable[[], float] = clock.elapsed_seconds,
        on_trouble: Callable[[str], None] = lambda _trouble: None,
    ) -> None:
        """`on_trouble` is called with each new error. Raises ValueError if these timings would allow two replicas to
        write at the same time."""
        self.timings = timings or LeaseTimings()
        self.identity = identity
        self._client = client
        self._namespace, self._name = namespace, name
        self._now, self._elapsed, self._on_trouble = now, elapsed, on_trouble
        self._write_deadline = client.deadlines.write
        self._renewed: float | None = None
        self._may_write = 0.0
        self._observed_record: tuple[str | None, str | None] | None = None
        self._observed_since = 0.0
        self._last_written: _Lease | None = None
        self.last_error = ""
        """The last error; empty while there is none."""
        if self.timings.renew_deadline_seconds + self._write_deadline >= self.timings.lease_duration_seconds:
            raise ValueError(
                f"a renew deadline of {self.timings.renew_deadline_seconds:g} s and a write deadline of "
                f"{self._write_deadline:g} s must together be shorter than the Lease's duration of "
                f"{self.timings.lease_duration_seconds} s"
            )

    @property
    def is_leading(self) -> bool:
        """Whether a write may begin now."""
        now = self._elapsed()
        return (
            self._renewed is not None
            and now - self._renewed < self.timings.renew_deadline_seconds
            and now >= self._may_write
        )

    def check_leading(self, doing: str) -> None:
        """Raises NotLeading if no write may begin now. It is the `fence` of a `Writer`."""
        if not self.is_leading:
            raise NotLeading(f"{doing}: {self.identity} does not hold the Lease {self._namespace}/{self._name}")

    def run(self, stop: threading.Event) -> None:
        """Renews the Lease, or tries to acquire it, until `stop` is set; then releases it."""
        while not stop.is_set():
            self.try_once()
            stop.wait(
                min(self.timings.retry_period_seconds, self.timings.renew_interval_seconds)
                if self.last_error
                else self.timings.renew_interval_seconds
            )
        self.release()

    def try_once(self) -> bool:
        """Attempts once to acquire or renew the Lease. Returns whether this replica holds the Lease now. Raises
        nothing: an error is stored in `last_error`."""
        started = self._elapsed()
        try:
            holds_lease = self._try_acquire_or_renew(started)
            self._set_trouble("")
        except KubeFault as error:  # no other holder was observed: this replica leads for as long as the clock allows
            self._set_trouble(str(error))
            return self.is_leading
        except Exception as error:  # noqa: BLE001  a bug must not end the election silently; this replica steps down
            self._set_trouble(f"{type(error).__name__}: {error}")
            holds_lease = False
        if not holds_lease:
            self._renewed = None
        return holds_lease

    def release(self) -> None:
        """Releases the Lease, so that another replica need not wait until it expires. Call it when no write is in
        progress any more."""
        if self._renewed is None:
            return
        self._renewed = None
        try:
            lease = self._read()
            if lease is not None and lease.spec.holder_identity == self.identity:
                self._replace(lease, self._spec(lease, holder="", seconds=RELEASED_LEASE_SECONDS))
        except Exception as error:  # noqa: BLE001  the lease ends by itself
            self._set_trouble(f"{type(error).__name__}: {error}")

    def _set_trouble(self, trouble: str) -> None:
        before, self.last_error = self.last_error, trouble
        if trouble not in ("", before):
            self._on_trouble(trouble)

    def _try_acquire_or_renew(self, started: float) -> bool:
        """Attempts to acquire or renew the Lease. After a conflict, it reads the Lease again and repeats the attempt,
        because the conflict does not show whether the holder has changed."""
        for _ in range(_MAX_ATTEMPTS - 1):
            try:
                return self._acquire_or_renew_once(started)
            except Conflict:
                continue
        return self._acquire_or_renew_once(started)

    def _acquire_or_renew_once(self, started: float) -> bool:
        """Makes one attempt, and returns whether this replica holds the Lease. Raises Conflict if the Lease changed
        between reading and writing."""
        # A renewal does not read: were the Lease changed since the last write, the server would refuse the old version.
        lease, self._last_written = self._last_written if self._renewed is not None else None, None
        lease = lease or self._read()
        if lease is None:
            self._create()
            return self._start_leading(started, without_notice=True)
        spec = lease.spec
        if spec.holder_identity == self.identity and self._renewed is not None:
            self._replace(lease, self._spec(lease))
            self._renewed = started
            return True
        if not self._is_expired(spec, started):
            return False
        # A released Lease has the duration that `release` writes; an emptied one still has its holder's.
        without_notice = not spec.holder_identity and (spec.lease_duration_seconds or 0) > RELEASED_LEASE_SECONDS
        self._replace(lease, self._spec(lease, acquired=True))
        return self._start_leading(started, without_notice=without_notice)

    def _start_leading(self, started: float, *, without_notice: bool) -> bool:
        """Records from when on this replica may write, and returns True. The replica must wait, because the previous
        leader may have begun a write just before it stopped leading.

        `without_notice`: the Lease was emptied by hand or may have been deleted, so its holder may not know yet that it
        no longer leads.
        """
        self._renewed = started
        self._may_write = self._elapsed() + (
            self.timings.lease_duration_seconds if without_notice else self._write_deadline
        )
        return True

    def _is_expired(self, spec: _Spec, now: float) -> bool:
        """Returns whether the Lease has no holder, or was observed unchanged for its whole duration. A Lease that this
        identity held before a restart is treated like another replica's."""
        if not spec.holder_identity:
            return True
        if (spec.holder_identity, spec.renew_time) != self._observed_record:
            self._observed_record, self._observed_since = (spec.holder_identity, spec.renew_time), now
        return now - self._observed_since > (spec.lease_duration_seconds or self.timings.lease_duration_seconds)

    def _spec(
        self, lease: _Lease | None, *, holder: str | None = None, seconds: int | None = None, acquired: bool = False
    ) -> dict[str, Any]:
        """Returns the spec of the Lease to write. `acquired` says that this replica was not the holder before."""
        before = lease.spec if lease else _Spec()
        now = _micro_time(self._now())
        return {
            "holderIdentity": self.identity if holder is None else holder,
            "leaseDurationSeconds": seconds or self.timings.lease_duration_seconds,
            "renewTime": now,
            "acquireTime": now if acquired or lease is None else before.acquire_time,
            "leaseTransitions": (before.lease_transitions or 0) + acquired,
        }

    def _read(self) -> _Lease | None:
        doing = f"read Lease {self._namespace}/{self._name}"
        path = object_path(LIST_SOURCES["Lease"], self._namespace, self._name)
        try:
            body = self._client.request("GET", path, deadline=self._write_deadline, doing=doing)
        except NotFound:
            return None
        return self._decode(body, doing)

    def _create(self) -> None:
        meta = {"name": self._name, "namespace": self._namespace}
        body = {**_KIND, "metadata": meta, "spec": self._spec(None)}
        doing = f"create Lease {self._namespace}/{self._name}"
        path = object_path(LIST_SOURCES["Lease"], self._namespace, self._name)
        try:
            self._remember(self._client.write("PUT", path, body, doing=doing), doing)
        except RequestRefused as error:
            if error.status == _UNPROCESSABLE:  # another replica created it first: an update must name a version
                raise Conflict(doing, error.status, ApiStatus(message=error.message)) from error
            raise

    def _replace(self, lease: _Lease, spec: dict[str, Any]) -> None:
        """Writes the Lease with the resourceVersion that was read. If two replicas try at the same time, one of them
        gets Conflict. Fields of other programs are kept."""
        body = {**lease.whole, **_KIND, "spec": {**lease.whole.get("spec", {}), **spec}}
        path = object_path(LIST_SOURCES["Lease"], self._namespace, self._name)
        doing = f"renew Lease {self._namespace}/{self._name}"
        self._remember(self._client.write("PUT", path, body, doing=doing), doing)

    def _remember(self, body: bytes, doing: str) -> None:
        """Keeps the written Lease for the next renewal. A replica that no longer leads by then reads the Lease
        again."""
        self._last_written = self._decode(body, doing)

    def _decode(self, body: bytes, doing: str) -> _Lease:
        lease: _Lease = decode_as(body, _Lease, doing)
        lease.whole = decode_as(body, dict, doing)
        return lease


_KIND = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}


def _micro_time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
