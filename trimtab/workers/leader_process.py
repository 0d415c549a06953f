"""A process of which one replica leads and the others wait: its settings, its leader election, its HTTP pages, and how
it ends.

However the process ends, by a signal or by an error, its Lease is released after its last write, so that another
replica need not wait until the Lease expires. What the leader does is defined by each process.
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
from typing import ClassVar, Literal, Protocol, TypeVar

from prometheus_client import CollectorRegistry

from trimtab.cluster.processes import account_name
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
    """The settings that all processes with a leader have. A process overrides those defaults that do not fit it."""

    process: ClassVar[str]
    """The name of the process."""

    listen: ListenAddress = ListenAddress("0.0.0.0", 9090)  # noqa: S104, RUF009  a frozen value
    """The HOST:PORT for metrics and health. The default is all interfaces, because Prometheus and the kubelet connect
    from outside the pod."""

    namespace: str = "trimtab-system"
    """Trimtab's own namespace, in which the Lease is."""

    kubeconfig: Path | None = None
    """The path of a kubeconfig file. None: the pod's service account or, outside a cluster, your own kubeconfig."""

    lease_duration_seconds: int = _LEASE.lease_duration_seconds
    """How many seconds the Lease of a leader that died remains valid."""

    renew_deadline_seconds: float = _LEASE.renew_deadline_seconds
    """How many seconds after its last renewal a leader stops writing. A leader renews twice as often."""

    retry_period_seconds: float = _LEASE.retry_period_seconds
    """How many seconds the process waits after a failed attempt to acquire or renew the Lease."""

    write_timeout_seconds: float = 10.0
    """The longest time in seconds that a write may take. Together with the renew deadline it must be shorter than the
    lease duration."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The lowest level of messages that are logged."""

    log_format: Literal["auto", "json", "console"] = "auto"
    """`auto`: colours on a terminal, JSON lines everywhere else."""

    ready_file: Path | None = None
    """The path of a file that the process writes as soon as it serves its pages: JSON with `url`, `pid` and `identity`.
    None: there is only the log line."""

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
"""The number of seconds between two checks whether this replica leads."""

T = TypeVar("T")


class LeaderStatus(Protocol):
    """What a process needs to know of its part in an election."""

    last_error: str

    @property
    def is_leading(self) -> bool: ...
    def check_leading(self, doing: str, /) -> None: ...
    def run(self, stop: threading.Event, /) -> None: ...


@dataclass(slots=True, kw_only=True)
class LeaderProcess:
    """One replica of a process. `name` is the name of the process: its Lease is called `trimtab-NAME`, and its log
    events begin with the name."""

    name: str
    settings: LeaderProcessSettings
    log: Logger
    client: Client
    election: LeaderStatus
    identity: str
    max_silence_seconds: float
    """If `may_continue` is not called for this many seconds, `/healthz` fails."""
    shutdown: GracefulShutdown = field(default_factory=GracefulShutdown)
    elapsed: Callable[[], float] = clock.elapsed_seconds
    _last_check: float = field(init=False)

    def __post_init__(self) -> None:
        self._last_check = self.elapsed()

    @property
    def lease_name(self) -> str:
        """The name of the Lease."""
        return account_name(self.name)

    @property
    def fenced_writer(self) -> Writer:
        """A writer that writes only while this replica leads, with the process's name as field manager."""
        return Writer(client=self.client, manager=self.lease_name, fence=self.election.check_leading)

    def is_leading(self) -> bool:
        """Returns whether this replica leads."""
        return self.election.is_leading

    def may_continue(self) -> bool:
        """Returns whether the work may continue: this replica leads, and has not been asked to stop. Each call also
        shows `/healthz` that the process is working."""
        self._last_check = self.elapsed()
        return self.election.is_leading and not self.shutdown.is_requested

    def wait_while_leading(self, seconds: float) -> None:
        """Waits this many seconds, but stops waiting when the work may not continue."""
        deadline = self.elapsed() + seconds
        while self.may_continue() and (seconds_left := deadline - self.elapsed()) > 0:
            self.shutdown.wait_for_stop(min(seconds_left, 1.0))

    def retry_while_leading(self, attempt: Callable[[], bool], pause_seconds: float = LEADING_CHECK_SECONDS) -> bool:
        """Calls `attempt` until it returns True. Returns whether it did; False if the work may not continue."""
        while self.may_continue():
            if attempt():
                return True
            self.wait_while_leading(pause_seconds)
        return False

    def run_rounds(self, run_round: Callable[[], float], is_over: Callable[[], bool] = lambda: False) -> None:
        """Calls `run_round`, which returns the seconds until the next round, until the work may not continue or
        `is_over` says that it has ended."""
        while self.may_continue() and not is_over():
            self.wait_while_leading(run_round())

    @contextmanager
    def serve_and_elect(
        self, registry: CollectorRegistry, extra_pages: Mapping[str, Page] | None = None
    ) -> Iterator[None]:
        """A context manager: while its block runs, the process serves its pages and takes part in the election."""
        with HttpPages(self.settings.listen, {**self._pages(registry), **(extra_pages or {})}) as pages:
            self._announce(pages.url)
            try:
                with self._run_election():
                    yield
            finally:
                self.log.info(f"{self.name}.ended", identity=self.identity)

    def lead_until_stopped(self, lead: Callable[[], object]) -> None:
        """Calls `lead` each time this replica leads, until the process is asked to stop. `lead` must return as soon as
        the work may not continue."""
        while not self.shutdown.is_requested:
            if self.may_continue():
                self.lead_once(lead)
            self.shutdown.wait_for_stop(LEADING_CHECK_SECONDS)

    def lead_once(self, lead: Callable[[], T]) -> T:
        """Calls `lead`, and logs when leading begins and ends. Returns the result of `lead`."""
        self.log.info(f"{self.name}.leads", identity=self.identity)
        try:
            return lead()
        finally:
            self.log.info(f"{self.name}.leads-no-more", identity=self.identity)

    def wait_for_leadership(self) -> bool:
        """Waits until this replica leads, at most as long as a previous leader may hold the Lease. Returns whether it
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
        # Whether the process has made progress recently. The check ignores whether the cluster can be read, because a
        # restart would not help with that.
        return {
            "/metrics": lambda: (200, metrics.CONTENT_TYPE, metrics.render_metrics(registry)),
            "/healthz": lambda: (
                (200, TEXT, b"ok\n")
                if self.elapsed() - self._last_check < self.max_silence_seconds
                else (500, TEXT, b"no round for too long\n")
            ),
            "/readyz": lambda: (503, TEXT, b"stopping\n") if self.shutdown.is_requested else (200, TEXT, b"ok\n"),
        }


def create_leader_process(
    settings: LeaderProcessSettings, log: Logger, client: Client, *, max_silence_seconds: float
) -> LeaderProcess:
    """Returns a replica that takes part in the election with this client. Raises ValueError if its settings would allow
    two replicas to write at the same time."""
    identity = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
    election = LeaderElector(
        client,
        settings.namespace,
        account_name(settings.process),
        identity,
        timings=settings.lease_timings,
        on_trouble=lambda trouble: log.warning("election.trouble", error=trouble),
    )
    return LeaderProcess(
        name=settings.process,
        settings=settings,
        log=log,
        client=client,
        election=election,
        identity=identity,
        max_silence_seconds=max_silence_seconds,
    )


@contextmanager
def open_leader_process(
    settings: LeaderProcessSettings, log: Logger, *, max_silence_seconds: float
) -> Iterator[LeaderProcess]:
    """A context manager with a replica that has a client of its own and that a signal stops. Raises RuntimeFault if the
    process cannot start."""
    client = connect_to_cluster(
        str(settings.kubeconfig) if settings.kubeconfig else None, deadlines=settings.client_deadlines
    )
    try:
        process = create_leader_process(settings, log, client, max_silence_seconds=max_silence_seconds)
        stop_on_signals(process.shutdown)
        yield process
    finally:
        client.close()
