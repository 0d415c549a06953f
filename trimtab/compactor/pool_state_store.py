"""What each pool remembers, and every decision told once to everybody who listens.

Where the books are kept: one ConfigMap per pool in our namespace, ours alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from trimtab.cluster.api.meta import get
from trimtab.cluster.reason import Code, Reason, Unreadable
from trimtab.cluster.snapshot import ConfigMap
from trimtab.cluster.timestamps import Seconds, seconds
from trimtab.compaction.drain import pool_state as memories
from trimtab.compaction.drain.pool_state import KEY, LABEL, PREFIX, REOPENED, HistoryEntry, PoolState, is_final
from trimtab.compactor.actuator import ActuatorUnavailable
from trimtab.compactor.node_signatures import NodeSigner
from trimtab.kube import listing, objects
from trimtab.kube.errors import KubeFault
from trimtab.kube.objects import Writer
from trimtab.kube.resources import ListSource
from trimtab.runtime.log import Logger

UNREAD = Code(
    "state-unreadable",
    "What was remembered of a pool cannot be read, or is not authentic; it was put aside, and is begun anew.",
    "See the sentence for where it lies; `trimtab compactor resume --pool NAME` opens the pool at once.",
)  # fmt: skip

DELETED = "it was deleted"
"""What is wrong with a state that was there and is not any more."""
LONGEST = 1000
"""Characters of a reason that are told: a webhook's no, or a list of pods, may be much longer."""

Sink = Callable[[HistoryEntry], None]


class PoolStateStore(Protocol):
    """Where memories outlive us."""

    def load(self) -> Mapping[str, PoolState | Unreadable]:
        """Pool → what was kept. What cannot be read has been put aside, as told. Raises a DoorFault."""

    def save(self, pool: str, memory: PoolState, *, final: bool) -> None:
        """`final`: no older memory of the pool may be taken for its own from now on. Raises a DoorFault."""


@dataclass(slots=True)
class PoolStates:
    store: PoolStateStore
    sinks: tuple[Sink, ...] = ()
    memories: dict[str, PoolState] = field(default_factory=dict)
    _saved: dict[str, PoolState] = field(default_factory=dict)
    _unread: dict[str, Unreadable] = field(default_factory=dict)

    def open(self, at: Seconds) -> None:
        """Read what was kept. Raises a DoorFault.

        A pool whose state cannot be read is closed: nobody knows what failed in it, or how much was evicted just now.
        """
        found = self.store.load()
        self._saved = {pool: memory for pool, memory in found.items() if isinstance(memory, PoolState)}
        self._unread = {pool: memory for pool, memory in found.items() if isinstance(memory, Unreadable)}
        self.memories = {pool: memory.clamp_to_now(at) for pool, memory in self._saved.items()}
        self.memories |= dict.fromkeys(self._unread, PoolState(closed=at))

    def tell_unread(self, at: Seconds, pools: Collection[str]) -> None:
        """Once, when there is somebody to tell it to. Of a pool that does not exist nothing is written: anybody who may
        write a ConfigMap can make up names.
        """
        unread, self._unread = self._unread, {}
        for pool, why in sorted(unread.items()):
            exists = pool in pools
            told = f"the state of pool {pool} cannot be read, so the pool is closed for a while: {why}"
            if not exists:
                self.memories.pop(pool, None)
                if why.problem == DELETED:
                    continue  # somebody tidied up after a pool
                told = f"a state of pool {pool}, which does not exist, cannot be read and is left alone: {why}"
            self.tell("unread", UNREAD(told), pool=pool if exists else "", at=at)

    def of(self, pool: str) -> PoolState:
        return self.memories.get(pool, PoolState())

    def put(self, pool: str, memory: PoolState) -> None:
        self.memories[pool] = memory

    def tell(
        self, what: str, reason: Reason, *, pool: str, at: Seconds, again: bool = False, **more: str | bool
    ) -> None:
        """Into the pool's ring, and to every sink; `again`: only to the sinks, for the ring has it already."""
        why = reason.sentence if len(reason.sentence) <= LONGEST else f"{reason.sentence[:LONGEST]}…"
        record = HistoryEntry(at=at, pool=pool, what=what, code=reason.code.name, why=why, **more)  # type: ignore[arg-type]
        if pool and not again:  # what belongs to no pool is only told
            self.put(pool, self.of(pool).with_history(record))
        for sink in self.sinks:
            sink(record)

    def save(self, pools: Iterable[str] | None = None) -> None:
        """What changed since it was saved last. Raises a DoorFault at the first that cannot be saved."""
        for pool in sorted(self.memories if pools is None else pools):
            memory = self.of(pool)
            if self._saved.get(pool) != memory:
                self.store.save(pool, memory, final=is_final(self._saved.get(pool, PoolState()), memory))
                self._saved[pool] = memory

    def forget_saved(self, pool: str) -> None:
        """Somebody took it away: write it again."""
        self._saved.pop(pool, None)


SERIAL, SIGNATURE = "serial", "signature"
"""Keys of the ConfigMap's data beside the state itself."""
UNREADABLE_STATE_LABEL = "trimtab.dev/unread-state"
"""Label of what was put aside; its value is the pool's name."""
LEAP = 1_000_000_000
"""More states than are ever written between two that are final: after a loss nobody knows the highest number."""


def name_of(pool: str) -> str:
    """The ConfigMap's name: the pool's, or something like it where that is no name for an object."""
    plain = pool.lower().replace("_", "-").strip(".-")
    if plain == pool:
        return PREFIX + pool
    return f"{PREFIX}{plain}-{hashlib.sha256(pool.encode()).hexdigest()[:6]}"


@dataclass(slots=True)
class ConfigMapPoolStateStore:
    """Raises NotNow where the server does not answer as it should."""

    writer: Writer
    namespace: str
    log: Logger
    signing: NodeSigner
    _serials: dict[str, int] = field(default_factory=dict)
    """Pool → number of the state that was written last."""
    _of_previous_key: set[str] = field(default_factory=set)
    """Pools whose state the previous key signed: written anew, so that it counts when that key is forgotten."""

    def load(self) -> Mapping[str, PoolState | Unreadable]:
        """What cannot be read lies in a ConfigMap of its own afterwards, where nobody writes over it."""
        source = ListSource(
            kind="ConfigMap", group_version="v1", plural="configmaps", labels=LABEL, namespace=self.namespace
        )  # fmt: skip
        try:
            found = listing.observe(self.writer.client, (source,))
            if found.unreadable:
                raise ActuatorUnavailable(f"read the state of pools: {found.unreadable[0]}")
            states = dict(filter(None, map(self._read, found.snapshot.all(ConfigMap))))
            for pool in self._of_previous_key:
                if isinstance(memory := states[pool], PoolState):
                    self.save(pool, memory, final=False)
            return {**{pool: self._deleted(pool) for pool in self.signing.serials.keys() - states.keys()}, **states}
        except KubeFault as error:
            raise ActuatorUnavailable(str(error)) from error

    def _read(self, shape: ConfigMap) -> tuple[str, PoolState | Unreadable] | None:
        """None for a ConfigMap that is none of the compactor's own: it has another name."""
        pool = get(shape.metadata.labels, {}).get(LABEL, "")
        if shape.metadata.name != name_of(pool):
            self.log.warning("state.not-ours", where=f"ConfigMap {shape.metadata.name}", pool=pool)
            return None
        made = authentic(shape, self.signing)
        if isinstance(made, Unreadable):
            self._leap(pool)
            kept = self._put_aside(shape, pool)
            self.log.warning("state.unreadable", where=made.where, problem=made.problem, kept=kept)
            return pool, Unreadable(made.where, f"{made.problem}; it is kept in ConfigMap {kept}")
        self._serials[pool] = _number(shape.data.get(SERIAL, ""))
        if shape.data and self.signing.is_of_previous_key(*_signed(shape)):
            self._of_previous_key.add(pool)
        return pool, made

    def _deleted(self, pool: str) -> Unreadable:
        """Why nothing is remembered of a pool of which something was: who deletes a state must not open its pool."""
        self._leap(pool)
        return Unreadable(f"ConfigMap {name_of(pool)}", DELETED)

    def _leap(self, pool: str) -> None:
        """The next state's number is above that of each one that was ever signed: none of them counts afterwards."""
        self._serials[pool] = self.signing.serials.get(pool, 0) + LEAP

    def _put_aside(self, shape: ConfigMap, pool: str) -> str:
        """Under a name that its content gives: twice the same is kept once, and nothing is written over."""
        text = "\0".join(f"{key}\0{shape.data[key]}" for key in sorted(shape.data))
        name = f"{shape.metadata.name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
        meta = {"name": name, "namespace": self.namespace, "labels": {UNREADABLE_STATE_LABEL: pool}}
        objects.apply(self.writer, {"kind": "ConfigMap", "metadata": meta, "data": dict(shape.data)})
        return name

    def save(self, pool: str, memory: PoolState, *, final: bool) -> None:
        """The state first, the number below which none counts afterwards: dying in between, both states count."""
        meta = {"name": name_of(pool), "namespace": self.namespace, "labels": {LABEL: pool}}
        text, serial = memories.write(memory), max(self._serials.get(pool, 0), self.signing.serials.get(pool, 0)) + 1
        data = {KEY: text, SERIAL: str(serial), SIGNATURE: self.signing.sign(pool, serial, text)}
        try:
            objects.apply(self.writer, {"kind": "ConfigMap", "metadata": meta, "data": data})
            self._serials[pool] = serial
            if final:
                self.signing.raise_serial(pool, serial)
        except KubeFault as error:
            raise ActuatorUnavailable(str(error)) from error


def authentic(shape: ConfigMap, signing: NodeSigner) -> PoolState | Unreadable:
    """What a pool's state says; Unreadable, too, where its signature or its number is not right."""
    signed = _signed(shape)
    problem = signing.problem(*signed) if shape.data or signing.serials.get(signed[0]) else ""
    if problem:
        return Unreadable(f"ConfigMap {shape.metadata.name}", problem)
    return memories.read(shape.metadata.name, shape.data)


def _signed(shape: ConfigMap) -> tuple[str, int, str, str]:
    """What a state's signature is about, and the signature: pool, serial number, text, signature."""
    pool, data = get(shape.metadata.labels, {}).get(LABEL, ""), shape.data
    return pool, _number(data.get(SERIAL, "")), data.get(KEY, ""), data.get(SIGNATURE, "")


def _number(text: str) -> int:
    """0 where it is none: no state has that number."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0


def reopened(shapes: tuple[ConfigMap, ...], pool: str) -> int | None:
    """When a person reopened the pool; None where nobody did."""
    for shape in shapes:
        if get(shape.metadata.labels, {}).get(LABEL) == pool:
            return seconds(get(shape.metadata.annotations, {}).get(REOPENED))
    return None
