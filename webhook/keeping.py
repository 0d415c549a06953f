"""The keeper in a process: its door to the cluster, a pair before anything listens, its thread.

The cluster's client is imported only by who has a Secret to keep: it is forty megabytes.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trimtab.kube.errors import KubeFault
from trimtab.runtime import clock
from trimtab.runtime.errors import NoPair
from trimtab.runtime.log import Logger
from trimtab.runtime.settings import Settings
from trimtab.runtime.stop import Stop
from webhook.keeper import LOOKS_TO_SETTLE, Keeper

if TYPE_CHECKING:
    from trimtab.kube.client import Client
    from trimtab.kube.whole import Whole

_PATIENCE = 60.0
"""Seconds for the first pair; then the kubelet may start us again, and tells that it had to."""

_SHORTEST = 0.1
"""Seconds between looks, whatever was set: zero would ask without a pause."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A `keeper.Door` to a real cluster."""

    client: Client
    secret: str
    namespace: str
    configuration: str

    def get(self, kind: str) -> Whole | None:
        """The Secret, or the configuration of this kind."""
        from trimtab.kube import whole

        name, namespace = (self.secret, self.namespace) if kind == "Secret" else (self.configuration, "")
        return whole.get(self.client, kind, name, namespace)

    def put(self, document: Whole) -> None:
        """Stored under our name; Conflict where it changed since it was read."""
        from trimtab.kube import whole
        from trimtab.kube.writer import Writer

        whole.put(Writer(client=self.client), document)


def called(service: str, namespace: str) -> tuple[str, ...]:
    """The names a pair has to carry. API servers check the first, NAME.NAMESPACE.svc."""
    full = f"{service}.{namespace}.svc"
    return (full, f"{full}.cluster.local", f"{service}.{namespace}")


def keeper(settings: Settings, client: Client, log: Logger) -> Keeper:
    """For the Secret that the settings name."""
    assert settings.certs_secret is not None
    door = Cluster(client, settings.certs_secret, settings.namespace, settings.configuration)
    return Keeper(
        door, settings.certs, called(settings.service, settings.namespace), log, clock.utc, looks=LOOKS_TO_SETTLE
    )


def first_pair(settings: Settings, log: Logger) -> None:
    """Have a pair in the folder, before anything listens; at once where no Secret is named.

    Raises NoPair where none could be had, NotConfigured where no cluster is known.
    """
    if settings.certs_secret is None:
        return
    from trimtab.kube.client import connect

    client = connect()
    try:
        wait_for_a_pair(keeper(settings, client, log), log)
    finally:
        client.close()


def wait_for_a_pair(keeping: Keeper, log: Logger, patience: float = _PATIENCE) -> None:
    """Steps until something can be served. Raises NoPair where that takes more than `patience` seconds."""
    until, trouble, pause = clock.elapsed() + patience, "", threading.Event()
    while keeping.serving() is None:
        try:
            again, now = keeping.step(), ""
        except KubeFault as error:
            again, now = False, str(error)
        if now and now != trouble:
            log.warning("no certificate yet", why=now)
        trouble = now or trouble
        if clock.elapsed() > until:
            raise NoPair(f"no certificate within {patience:g} s: {trouble or 'API servers do not trust it yet'}")
        pause.wait(0.0 if again else 1.0)


def keep(settings: Settings, stop: Stop, log: Logger) -> threading.Thread | None:
    """Go on keeping it in a thread until the process stops; None where no Secret is named."""
    if settings.certs_secret is None:
        return None
    from trimtab.kube.client import connect

    keeping = keeper(settings, connect(), log)
    thread = threading.Thread(
        target=keeping.run, args=(stop.wait, max(settings.certs_every, _SHORTEST)), name="certificates", daemon=True
    )
    thread.start()
    return thread
