"""Runs one replica of a process that works only while it leads.

A process says what it does as a `Worker`; here is what is the same for all: the client, the election, the signals, the
pages for metrics and health, and that the Lease is released at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from prometheus_client import CollectorRegistry

from trimtab.runtime.http_pages import Page
from trimtab.runtime.log import Logger
from trimtab.workers.leader_process import LeaderProcess, LeaderProcessSettings, open_leader_process


class Worker(Protocol):
    """What a replica does while it leads."""

    @property
    def registry(self) -> CollectorRegistry:
        """The metrics of the process."""

    @property
    def pages(self) -> Mapping[str, Page]:
        """The HTTP pages of the process, besides metrics and health."""

    def lead(self) -> object:
        """Works until the work may not continue. It reads everything again at the start, because another replica may
        have led in the meantime. If it is called for a single round, it returns whether that succeeded."""


BuildWorker = Callable[[LeaderProcess], Worker]


def run_worker(
    settings: LeaderProcessSettings,
    log: Logger,
    build_worker: BuildWorker,
    *,
    max_silence_seconds: float,
    once: bool = False,
) -> bool:
    """Runs one replica until a signal arrives; with `once`, only until the worker has led once. Returns whether it
    succeeded. Raises RuntimeFault if the replica cannot start."""
    with open_leader_process(settings, log, max_silence_seconds=max_silence_seconds) as replica:
        return run_replica(replica, build_worker(replica), once=once)


def run_replica(replica: LeaderProcess, worker: Worker, *, once: bool = False) -> bool:
    """Serves the pages of the worker, and lets it lead whenever the election allows it. Returns whether it succeeded;
    without `once`, that is always the case."""
    with replica.serve_and_elect(worker.registry, worker.pages):
        if once:
            return replica.wait_for_leadership() and bool(replica.lead_once(worker.lead))
        replica.lead_until_stopped(worker.lead)
    return True
