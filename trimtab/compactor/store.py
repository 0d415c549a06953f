"""Where the books are kept: one ConfigMap per pool in our namespace, ours alone."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from trimtab.cluster.api.meta import get
from trimtab.cluster.moment import seconds
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.snapshot import ConfigMap
from trimtab.compaction.drain import memory as memories
from trimtab.compaction.drain.memory import KEY, LABEL, PREFIX, REOPENED, Memory
from trimtab.compactor.doors import NotNow
from trimtab.kube import listing, objects
from trimtab.kube.errors import KubeFault
from trimtab.kube.kinds import Source
from trimtab.kube.writer import Writer
from trimtab.runtime.log import Logger

UNREAD = "trimtab.dev/unread-state"
"""Label of what was put aside; its value is the pool's name."""


def name_of(pool: str) -> str:
    """The ConfigMap's name: the pool's, or something like it where that is no name for an object."""
    plain = pool.lower().replace("_", "-").strip(".-")
    if plain == pool:
        return PREFIX + pool
    return f"{PREFIX}{plain}-{hashlib.sha256(pool.encode()).hexdigest()[:6]}"


@dataclass(slots=True)
class ConfigMaps:
    """Raises NotNow where the server does not answer as it should."""

    writer: Writer
    namespace: str
    log: Logger

    def load(self) -> Mapping[str, Memory | Unreadable]:
        """What cannot be read lies in a ConfigMap of its own afterwards, where nobody writes over it."""
        source = Source(
            kind="ConfigMap", group_version="v1", plural="configmaps", labels=LABEL, namespace=self.namespace
        )  # fmt: skip
        try:
            found = listing.observe(self.writer.client, (source,))
            if found.unreadable:
                raise NotNow(f"read the state of pools: {found.unreadable[0]}")
            return dict(map(self._read, found.snapshot.all(ConfigMap)))
        except KubeFault as error:
            raise NotNow(str(error)) from error

    def _read(self, shape: ConfigMap) -> tuple[str, Memory | Unreadable]:
        pool = get(shape.metadata.labels, {}).get(LABEL, "")
        made = memories.read(shape.metadata.name, shape.data)
        if isinstance(made, Unreadable):
            kept = self._put_aside(shape, pool)
            self.log.warning("state.unreadable", where=made.where, problem=made.problem, kept=kept)
            made = Unreadable(made.where, f"{made.problem}; it is kept in ConfigMap {kept}")
        return pool, made

    def _put_aside(self, shape: ConfigMap, pool: str) -> str:
        """Under a name that its content gives: twice the same is kept once, and nothing is written over."""
        text = "\0".join(f"{key}\0{shape.data[key]}" for key in sorted(shape.data))
        name = f"{shape.metadata.name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
        meta = {"name": name, "namespace": self.namespace, "labels": {UNREAD: pool}}
        objects.apply(self.writer, {"kind": "ConfigMap", "metadata": meta, "data": dict(shape.data)})
        return name

    def save(self, pool: str, memory: Memory) -> None:
        meta = {"name": name_of(pool), "namespace": self.namespace, "labels": {LABEL: pool}}
        try:
            objects.apply(self.writer, {"kind": "ConfigMap", "metadata": meta, "data": {KEY: memories.write(memory)}})
        except KubeFault as error:
            raise NotNow(str(error)) from error


def reopened(shapes: tuple[ConfigMap, ...], pool: str) -> int | None:
    """When a person reopened the pool; None where nobody did."""
    for shape in shapes:
        if get(shape.metadata.labels, {}).get(LABEL) == pool:
            return seconds(get(shape.metadata.annotations, {}).get(REOPENED))
    return None
