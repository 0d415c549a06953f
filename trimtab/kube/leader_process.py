"""A process of which one replica leads and the others wait: its settings, its election, its pages, its end.

However it ends, by a signal or by an error, its Lease is released after its last write, so that another replica need
not wait for the Lease's end. The work of a leader is the process's own.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from prometheus_client import CollectorRegistry

from trimtab.kube.client import Client, Deadlines, connect_to_cluster
from trimtab.kube.leader_election import LeaderElector, LeaseTimings
from trimtab.kube.objects import Writer
from trimtab.runtime import clock, http_pages, metrics
from trimtab.runtime.graceful_shutdown import GracefulShutdown, stop_on_signals
from trimtab.runtime.http_pages import TEXT, HttpPages, Page
from trimtab.runtime.log import Logger
from trimtab.runtime.settings import ListenAddress

_LEASE = LeaseTimings()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderProcessSettings:
    """The settings of every process that waits for a Lease; a process overrides the defaults that do not fit it."""

    listen: ListenAddress = ListenAddress("0.0.0.0", 9090)  # noqa: S104, RUF009  a frozen value
    """The HOST:PORT for metrics and health. The default is all interfaces, because Prometheus and the kubelet connect
    from outside the pod."""

    namespace: str = "trimtab-system"
    """Trimtab's own namespace, in which the Lease is."""

    kubeconfig: Path | None = None
    """A kubeconfig file. None: the pod's own account, or else the kubeconfig of the person who starts the process."""

    lease_duration_seconds: int = _LEASE.lease_duration_seconds
    """Seconds for which a leader that died keeps the Lease."""

    renew_deadline_seconds: float = _LEASE.renew_deadline_seconds
    """Seconds after its last renewal from which a leader writes nothing any more. A leader renews twice as often."""

    retry_period_seconds: float = _LEASE.retry_period_seconds
    """Seconds before the process tries again to acquire or renew the Lease after a failed attempt."""

    write_timeout_seconds: float = 10.0
    """The longest time in seconds that a write may take. Together with the renew deadline it must be shorter than the
    lease duration."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The lowest level that is logged."""

    log_format: Literal["auto", "json", "console"] = "auto"
    """`auto`: colours on a terminal, JSON lines everywhere else."""

    ready_file: Path | None = None
    """A file that the process writes when it serves its pages: JSON with `url`, `pid` and `identity`. None: only the
    log line."""

    @property
    def lease_timings(self) -> LeaseTimings:
        return LeaseTimings(
            lease_duration_seconds=self.lease_duration_seconds,
            renew_deadline_seconds=self.renew_deadline_seconds,
            retry_period_seconds=self.retry_period_seconds,
        )

    @property
    def client_deadlines(self) -> Deadlines:
        return Deadlines(write=self.write_timeout_seconds, connect=min(5.0, self.write_timeout_seconds / 2))


LEADING_CHECK_SECONDS = 0.2
"""Seconds between two checks whether this replica leads."""

T = TypeVar("T")


class LeaderStatus(Protocol):
    """This replica's part in an election."""

    last_error: str

    @property
    def is_leading(self) -> bool: ...
    def check_leading(self, doing: str, /) -> None: ...
    def run(self, stop: threading.Event, /) -> None: ...


@dataclass(slots=True, kw_only=True)
class LeaderProcess:
    """One replica. `name` is that of the process: its Lease is `trimtab-NAME`, and its log events begin with it."""

    name: str
    settings: LeaderProcessSettings
    log: Logger
    client: Client
    election: LeaderStatus
    identity: str
    max_silence_seconds: float
    """Seconds without a check of `may_continue` after which `/healthz` fails."""
    shutdown: GracefulShutdown = field(default_factory=GracefulShutdown)
    elapsed: Callable[[], float] = clock.elapsed_seconds
    _last_check: float = field(init=False)

    def __post_init__(self) -> None:
        self._last_check = self.elapsed()

    @property
    def lease_name(self) -> str:
        """The name of the Lease."""
        return lease_name_of(self.name)

    @property
    def fenced_writer(self) -> Writer:
        """A writer that is fenced by the election, with the process's name as field manager."""
        return Writer(client=self.client, manager=self.lease_name, fence=self.election.check_leading)

    def is_leading(self) -> bool:
        """Returns whether this replica leads."""
        return self.election.is_leading

    def may_continue(self) -> bool:
        """Returns whether the work may go on: this replica leads, and was not asked to stop. Each call counts as a sign
        of life for `/healthz`."""
        self._last_check = self.elapsed()
        return self.election.is_leading and not self.shutdown.is_requested

    def wait_while_leading(self, seconds: float) -> None:
        """Wait, but no longer than the work may go on."""
        deadline = self.elapsed() + seconds
        while self.may_continue() and (seconds_left := deadline - self.elapsed()) > 0:
            self.shutdown.wait_for_stop(min(seconds_left, 1.0))

    @contextmanager
    def serve_and_elect(
        self, registry: CollectorRegistry, extra_pages: Mapping[str, Page] | None = None
    ) -> Iterator[None]:
        """While the block runs, serve the pages and take part in the election."""
        with HttpPages(self.settings.listen, {**self._pages(registry), **(extra_pages or {})}) as pages:
            self._announce(pages.url)
            try:
                with self._run_election():
                    yield
            finally:
                self.log.info(f"{self.name}.ended", identity=self.identity)

    def lead_until_stopped(self, lead: Callable[[], object]) -> None:
        """Call `lead` each time this replica leads, until asked to stop; `lead` returns once it may not go on."""
        while not self.shutdown.is_requested:
            if self.may_continue():
                self.lead_once(lead)
            self.shutdown.wait_for_stop(LEADING_CHECK_SECONDS)

    def lead_once(self, lead: Callable[[], T]) -> T:
        """Call `lead`, and log the start and the end of leading."""
        self.log.info(f"{self.name}.leads", identity=self.identity)
        try:
            return lead()
        finally:
            self.log.info(f"{self.name}.leads-no-more", identity=self.identity)

    def wait_for_leadership(self) -> bool:
        """Wait until this replica leads, at most as long as a previous leader may hold the Lease; returns whether it
        leads."""
        timings = self.settings.lease_timings
        deadline = (
            self.elapsed()
            + timings.lease_duration_seconds
            + 2 * timings.retry_period_seconds
            + 2 * self.settings.write_timeout_seconds
        )
        while not self.may_continue():
            if self.shutdown.wait_for_stop(LEADING_CHECK_SECONDS) or self.elapsed() > deadline:
                self.log.warning(
                    f"{self.name}.not-our-turn", lease=self.lease_name, trouble=self.election.last_error or None
                )
                return False
        return True

    @contextmanager
    def _run_election(self) -> Iterator[None]:
        done = threading.Event()
        thread = threading.Thread(target=self.election.run, args=(done,), name="election", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            # The election's thread releases the Lease when `done` is set: wait for that write.
            thread.join(self.settings.write_timeout_seconds)

    def _announce(self, url: str) -> None:
        facts = {"url": url, "pid": os.getpid(), "identity": self.identity}
        http_pages.write_ready_file(self.settings.ready_file, facts)
        self.log.info(f"{self.name}.ready", **facts)

    def _pages(self, registry: CollectorRegistry) -> dict[str, Page]:
        return {
            "/metrics": lambda: (200, metrics.CONTENT_TYPE, metrics.render_metrics(registry)),
            "/healthz": lambda: (200, TEXT, b"ok\n") if self._is_alive() else (500, TEXT, b"no round for too long\n"),
            "/readyz": lambda: (503, TEXT, b"stopping\n") if self.shutdown.is_requested else (200, TEXT, b"ok\n"),
        }

    def _is_alive(self) -> bool:
        """Returns whether the process made progress lately. A restart helps a process that hangs, but not one that
        cannot read the cluster."""
        return self.elapsed() - self._last_check < self.max_silence_seconds


def lease_name_of(name: str) -> str:
    """Returns the name of a process's Lease."""
    return f"trimtab-{name}"


def create_leader_process(
    name: str, settings: LeaderProcessSettings, log: Logger, client: Client, *, hung: float
) -> LeaderProcess:
    """Returns a replica that takes part in the election with this client. Raises ValueError where two replicas could
    write at once."""
    identity = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
    election = LeaderElector(
        client, settings.namespace, lease_name_of(name), identity, timings=settings.lease_timings,
        on_trouble=lambda trouble: log.warning("election.trouble", error=trouble),
    )  # fmt: skip
    return LeaderProcess(
        name=name,
        settings=settings,
        log=log,
        client=client,
        election=election,
        identity=identity,
        max_silence_seconds=hung,
    )


@contextmanager
def open_leader_process(
    name: str, settings: LeaderProcessSettings, log: Logger, *, hung: float
) -> Iterator[LeaderProcess]:
    """A replica with a client of its own, which a signal stops. Raises RuntimeFault where it cannot start."""
    client = connect_to_cluster(
        str(settings.kubeconfig) if settings.kubeconfig else None, deadlines=settings.client_deadlines
    )
    try:
        process = create_leader_process(name, settings, log, client, hung=hung)
        stop_on_signals(process.shutdown)
        yield process
    finally:
        client.close()
