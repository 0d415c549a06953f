"""Watches the compactor's state, for a screen that is updated every few seconds without listing all objects again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from trimtab.inputs.command_faults import RuntimeFailure
from trimtab.inputs.compactor_state import (
    ClusterLogin,
    CompactorState,
    build_compactor_state,
    open_client,
    state_sources,
)
from trimtab.inputs.leadership import read_leadership
from trimtab.kube.client import Client
from trimtab.kube.informers import ClusterInformers
from trimtab.runtime import clock

SYNC_SECONDS = 60.0
STALE_SECONDS = 150.0
"""The age in seconds from which the screen shows how old its content is. A watch without changes still gets a bookmark
event about once a minute."""


@dataclass(frozen=True, slots=True)
class WatchedState:
    """The objects of the compactor's state, kept up to date by watches."""

    client: Client
    informers: ClusterInformers
    namespace: str

    def wait_until_synced(self) -> None:
        """Wait until all objects are listed once. Raises RuntimeFailure with the first error, or after a minute."""
        waited = 0.0
        while not self.informers.wait_until_synced(1.0):
            waited += 1.0
            errors = self.informers.errors_by_list()
            if errors or waited >= SYNC_SECONDS:
                name, error = next(iter(errors.items()), ("the API server", f"no answer within {SYNC_SECONDS:g} s"))
                raise RuntimeFailure(f"{name}: {error}")

    def read(self) -> CompactorState:
        """Returns the present state of the compactor. Raises KubeFault if the Lease cannot be read."""
        snapshot, unreadable = self.informers.take_snapshot(), self.informers.unreadable_objects()
        leadership = read_leadership(self.client, self.namespace, int(clock.utc_now().timestamp()))
        return build_compactor_state(snapshot, unreadable, leadership, self.namespace)

    def errors(self) -> list[str]:
        """Returns the errors of the watches, one sentence each."""
        errors = [f"{name}: {error}" for name, error in self.informers.errors_by_list().items()]
        age = self.informers.oldest_age()
        return (
            [*errors, f"the list of objects is {age:.0f} s old"] if age is not None and age > STALE_SECONDS else errors
        )


@contextmanager
def watch_compactor_state(login: ClusterLogin) -> Iterator[WatchedState]:
    """Yields the compactor's state, including its pods, and keeps it up to date by watches until the context ends."""
    sources = state_sources(login.namespace, pods=True)
    with open_client(login) as client, ClusterInformers(client, sources) as informers:
        yield WatchedState(client, informers, login.namespace)
