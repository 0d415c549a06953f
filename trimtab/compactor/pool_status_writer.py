"""Writes what each pool does into a PoolStatus, for `kubectl get pools`.

No decision reads a PoolStatus. Changes that another client makes to a PoolStatus are overwritten at the next update,
and a PoolStatus without a pool is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from trimtab.cluster.timestamps import Seconds, parse_timestamp
from trimtab.compaction.drain.pool_state import NAME_PREFIX
from trimtab.compaction.pool_status import KIND, PoolStatusFields, build_document, pool_statuses
from trimtab.compactor.loop import Loop
from trimtab.compactor.pool_state_store import config_map_name
from trimtab.kube import objects
from trimtab.kube.errors import KubeFault, NotFound
from trimtab.kube.objects import Writer, decode_as
from trimtab.kube.resources import LIST_SOURCES, collection_path
from trimtab.runtime.log import Logger

INTERVAL_SECONDS = 15.0
"""The minimum number of seconds between two updates."""
HEARTBEAT_SECONDS = 300
"""After this many seconds, an unchanged status is written again, so that its age shows whether a compactor is
working."""
MAX_STORED = 500
"""The maximum number of objects that are read, because every client with the permission may create any number of
them."""


class _Metadata(msgspec.Struct):
    name: str = ""


class _Stored(msgspec.Struct):
    metadata: _Metadata
    pool: Any = None
    status: Any = None


class _StoredList(msgspec.Struct):
    items: list[_Stored] | None = None


@dataclass(slots=True)
class PoolStatusWriter:
    """Writes the PoolStatus of every pool. Only the leader uses it."""

    writer: Writer
    namespace: str
    log: Logger
    elapsed: Callable[[], float]
    interval: float = INTERVAL_SECONDS
    _updated_at: float | None = field(default=None)
    _problem: str = ""

    def update(self, loop: Loop) -> None:
        """Writes the statuses that differ from the last round, if an update is due. An error is logged once and delays
        nothing."""
        view, now = loop.view, self.elapsed()
        if view is None or (self._updated_at is not None and now - self._updated_at < self.interval):
            return
        self._updated_at = now
        statuses = pool_statuses(view, loop.pool_states.states, loop.drainer.timeouts)
        try:
            self._write(statuses, view.now)
        except NotFound:
            self._report("the definition of PoolStatus is not installed, so `kubectl get pools` shows nothing")
        except KubeFault as error:
            self._report(str(error))
        else:
            self._problem = ""

    def _write(self, statuses: Mapping[str, PoolStatusFields], now: Seconds) -> None:
        wanted = {object_name(pool): (pool, status) for pool, status in statuses.items()}
        stored = self._list()
        for name in stored.keys() - wanted.keys():
            objects.delete(self.writer, KIND, name, self.namespace)
        for name, (pool, status) in sorted(wanted.items()):
            if name not in stored or is_outdated(stored[name], pool, status, now):
                objects.apply(self.writer, build_document(name, self.namespace, pool, status, now))

    def _list(self) -> dict[str, tuple[Any, Any]]:
        """Returns name → (pool, status) for the stored objects, which any client may have written."""
        doing, path = f"list {LIST_SOURCES[KIND].plural}", collection_path(LIST_SOURCES[KIND], self.namespace)
        listed: _StoredList = decode_as(
            self.writer.client.get(path, {"limit": MAX_STORED}, doing=doing), _StoredList, doing
        )
        return {item.metadata.name: (item.pool, item.status) for item in listed.items or ()}

    def _report(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            self.log.warning(
                "pool-status.not-written", problem=problem, effect="only the output of `kubectl get pools` is affected"
            )


def object_name(pool: str) -> str:
    """Returns the name of the pool's PoolStatus: the pool's own name or, if that is not a valid object name, a valid
    name derived from it."""
    return config_map_name(pool).removeprefix(NAME_PREFIX)


def is_outdated(stored: tuple[Any, Any], pool: str, status: PoolStatusFields, now: Seconds) -> bool:
    """Returns whether the stored (pool, status) must be written again: it differs, is older than the heartbeat, or has
    a time in the future."""
    stored_pool, fields = stored
    if stored_pool != pool or not isinstance(fields, dict):
        return True
    updated = fields.get("updated")
    at = parse_timestamp(updated) if isinstance(updated, str) else None
    wanted = {**msgspec.to_builtins(status), "plan": list(status.plan), "updated": updated}
    return fields != wanted or at is None or not 0 <= now - at < HEARTBEAT_SECONDS
