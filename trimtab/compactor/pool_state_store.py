"""Stores the state of each pool, and sends every decision once to all receivers (history, Events, metrics, log).

`PoolStates` holds the states in memory. `ConfigMapPoolStateStore` saves them, in one ConfigMap per pool in Trimtab's
own namespace, which only the compactor writes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from trimtab.cluster.api.meta import value_or
from trimtab.cluster.reason import Reason, Unreadable
from trimtab.cluster.snapshot import ConfigMap
from trimtab.cluster.timestamps import Seconds, parse_timestamp
from trimtab.compaction.drain import pool_state as memories
from trimtab.compaction.drain.pool_state import (
    NAME_PREFIX,
    REOPENED_ANNOTATION,
    STATE_KEY,
    STATE_LABEL,
    HistoryEntry,
    PoolState,
    is_final,
)
from trimtab.compactor.actuator import ActuatorUnavailable
from trimtab.compactor.node_signatures import NodeSigner
from trimtab.compactor.reasons import UNREAD
from trimtab.kube import listing, objects
from trimtab.kube.errors import KubeFault
from trimtab.kube.objects import Writer
from trimtab.kube.resources import ListSource
from trimtab.runtime.log import Logger

DELETED = "the ConfigMap was deleted"
"""The problem that is reported if the state of a pool existed, but its ConfigMap is gone."""
MAX_REASON_LENGTH = 1000
"""The maximum length of a reported reason. A webhook's message or a list of pods may be much longer."""

Sink = Callable[[HistoryEntry], None]


class PoolStateStore(Protocol):
    """Stores the states of pools so that they survive the process."""

    def load_states(self) -> Mapping[str, PoolState | Unreadable]:
        """Returns pool → stored state. A state that cannot be read has been copied, and the error says so. Raises
        ActuatorError."""

    def save_state(self, pool: str, state: PoolState, *, final: bool) -> None:
        """Saves a state. With `final`, no older state of the pool is valid from now on. Raises ActuatorError."""


@dataclass(slots=True)
class PoolStates:
    """The states of all pools, and the receivers of decisions."""

    store: PoolStateStore
    sinks: tuple[Sink, ...] = ()
    states: dict[str, PoolState] = field(default_factory=dict)
    _saved: dict[str, PoolState] = field(default_factory=dict)
    _unreadable: dict[str, Unreadable] = field(default_factory=dict)

    def load_states(self, at: Seconds) -> None:
        """Reads the stored states. Raises ActuatorError.

        A pool whose state cannot be read is closed, because it is not known what has failed in it and how much was
        evicted recently.
        """
        stored = self.store.load_states()
        self._saved = {pool: memory for pool, memory in stored.items() if isinstance(memory, PoolState)}
        self._unreadable = {pool: memory for pool, memory in stored.items() if isinstance(memory, Unreadable)}
        self.states = {pool: memory.clamp_to_now(at) for pool, memory in self._saved.items()}
        self.states |= dict.fromkeys(self._unreadable, PoolState(closed=at))

    def report_unreadable(self, at: Seconds, pools: Collection[str]) -> None:
        """Reports states that could not be read, once each.

        For a pool that does not exist, no state is written. Otherwise a client that may write ConfigMaps could invent
        pool names, and the stored states would grow without limit.
        """
        unread, self._unreadable = self._unreadable, {}
        for pool, why in sorted(unread.items()):
            exists = pool in pools
            sentence = f"the state of pool {pool} cannot be read, so no drain starts in the pool for a while: {why}"
            if not exists:
                self.states.pop(pool, None)
                # A user who deletes a pool deletes its state too: there is nothing to report.
                if why.problem == DELETED:
                    continue
                sentence = (
                    f"the state of pool {pool} cannot be read, and the pool does not exist, so Trimtab leaves "
                    f"the state unchanged: {why}"
                )
            self.record_decision("unreadable", UNREAD(sentence), pool=pool if exists else "", at=at)

    def state_of(self, pool: str) -> PoolState:
        """Returns the state of the pool; an empty state if there is none."""
        return self.states.get(pool, PoolState())

    def set_state(self, pool: str, state: PoolState) -> None:
        """Replaces the state of the pool, in memory."""
        self.states[pool] = state

    def record_decision(
        self, what: str, reason: Reason, *, pool: str, at: Seconds, again: bool = False, **more: str | bool
    ) -> None:
        """Adds a decision to the pool's history and sends it to every receiver. With `again`, it is only sent, because
        the history already contains it."""
        why = (
            reason.sentence if len(reason.sentence) <= MAX_REASON_LENGTH else f"{reason.sentence[:MAX_REASON_LENGTH]}…"
        )
        record = HistoryEntry(at=at, pool=pool, what=what, code=reason.code.name, why=why, **more)  # type: ignore[arg-type]
        # A decision without a pool is in no history: it is only reported.
        if pool and not again:
            self.set_state(pool, self.state_of(pool).with_history(record))
        for sink in self.sinks:
            sink(record)

    def save_states(self, pools: Iterable[str] | None = None) -> None:
        """Saves the states that have changed. Raises ActuatorError at the first one that cannot be saved."""
        for pool in sorted(self.states if pools is None else pools):
            memory = self.state_of(pool)
            if self._saved.get(pool) != memory:
                self.store.save_state(pool, memory, final=is_final(self._saved.get(pool, PoolState()), memory))
                self._saved[pool] = memory

    def forget_saved(self, pool: str) -> None:
        """Makes the next save write the pool's state even if it is unchanged, because its ConfigMap was deleted."""
        self._saved.pop(pool, None)


SERIAL, SIGNATURE = "serial", "signature"
"""Keys in the ConfigMap's data for the state's serial number and its signature, next to the state itself."""
UNREADABLE_STATE_LABEL = "trimtab.dev/unreadable-state"
"""The label on the copy of an unreadable state; its value is the pool's name."""
RENAMED_UNREADABLE_STATE_LABEL = "trimtab.dev/unread-state"
"""The earlier name of that label. `trimtab install --remove` deletes ConfigMaps with this label too."""
SERIAL_LEAP = 1_000_000_000
"""Added to a pool's serial number after its state was lost, because the highest used serial number is then unknown.

It is larger than the number of states that are ever written between two final states."""


def config_map_name(pool: str) -> str:
    """Returns the name of the ConfigMap with a pool's state. It contains the pool's name; if that is not a valid object
    name, a valid name derived from it."""
    plain = pool.lower().replace("_", "-").strip(".-")
    if plain == pool:
        return NAME_PREFIX + pool
    return f"{NAME_PREFIX}{plain}-{hashlib.sha256(pool.encode()).hexdigest()[:6]}"


@dataclass(slots=True)
class ConfigMapPoolStateStore:
    """Stores states in ConfigMaps. Raises ActuatorUnavailable if the API server does not respond as expected."""

    writer: Writer
    namespace: str
    log: Logger
    signing: NodeSigner
    _serials: dict[str, int] = field(default_factory=dict)
    """Pool → serial number of the state that was written last."""
    _of_previous_key: set[str] = field(default_factory=set)
    """Pools whose state is signed with the previous key. Their states are written again, so that they stay valid when
    that key is removed."""

    def load_states(self) -> Mapping[str, PoolState | Unreadable]:
        """Returns the states. A state that cannot be read is first copied into a ConfigMap of its own, which is never
        overwritten."""
        source = ListSource(
            kind="ConfigMap",
            group_version="v1",
            plural="configmaps",
            label_selector=STATE_LABEL,
            namespace=self.namespace,
        )
        try:
            observed = listing.list_kinds(self.writer.client, (source,))
            if observed.unreadable:
                raise ActuatorUnavailable(f"read the stored states of pools: {observed.unreadable[0]}")
            states = dict(filter(None, map(self._read_state, observed.snapshot.objects_of(ConfigMap))))
            for pool in self._of_previous_key:
                if isinstance(memory := states[pool], PoolState):
                    self.save_state(pool, memory, final=False)
            return {
                **{pool: self._missing_state(pool) for pool in self.signing.serials.keys() - states.keys()},
                **states,
            }
        except KubeFault as error:
            raise ActuatorUnavailable(str(error)) from error

    def _read_state(self, shape: ConfigMap) -> tuple[str, PoolState | Unreadable] | None:
        """Returns (pool, state) from one ConfigMap; None if the ConfigMap does not have the name that the compactor
        gives to the state of this pool."""
        pool = value_or(shape.metadata.labels, {}).get(STATE_LABEL, "")
        if shape.metadata.name != config_map_name(pool):
            self.log.warning("state.unexpected-name", where=f"ConfigMap {shape.metadata.name}", pool=pool)
            return None
        state = read_verified(shape, self.signing)
        if isinstance(state, Unreadable):
            self._skip_serials(pool)
            copy = self._copy_unreadable(shape, pool)
            self.log.warning("state.unreadable", where=state.where, problem=state.problem, kept=copy)
            return pool, Unreadable(state.where, f"{state.problem}; a copy of the state is in ConfigMap {copy}")
        self._serials[pool] = _parse_serial(shape.data.get(SERIAL, ""))
        if shape.data and self.signing.is_of_previous_key(*_signed_fields(shape)):
            self._of_previous_key.add(pool)
        return pool, state

    def _missing_state(self, pool: str) -> Unreadable:
        """Returns the error for a pool whose state is missing. The pool is closed, so no client can reopen a pool by
        deleting its state."""
        self._skip_serials(pool)
        return Unreadable(f"ConfigMap {config_map_name(pool)}", DELETED)

    def _skip_serials(self, pool: str) -> None:
        """Raises the next serial number above every number that was ever used, so that no earlier state is valid
        afterwards."""
        self._serials[pool] = self.signing.serials.get(pool, 0) + SERIAL_LEAP

    def _copy_unreadable(self, shape: ConfigMap, pool: str) -> str:
        """Copies the ConfigMap, and returns the name of the copy. The name is derived from the content: equal content
        is stored once, and nothing is overwritten."""
        text = "\0".join(f"{key}\0{shape.data[key]}" for key in sorted(shape.data))
        name = f"{shape.metadata.name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
        meta = {"name": name, "namespace": self.namespace, "labels": {UNREADABLE_STATE_LABEL: pool}}
        objects.apply(self.writer, {"kind": "ConfigMap", "metadata": meta, "data": dict(shape.data)})
        return name

    def save_state(self, pool: str, state: PoolState, *, final: bool) -> None:
        """Writes the state, and then the smallest valid serial number. If the process crashes in between, both the old
        and the new state are valid."""
        meta = {"name": config_map_name(pool), "namespace": self.namespace, "labels": {STATE_LABEL: pool}}
        text, serial = (
            memories.encode_state(state),
            max(self._serials.get(pool, 0), self.signing.serials.get(pool, 0)) + 1,
        )
        data = {STATE_KEY: text, SERIAL: str(serial), SIGNATURE: self.signing.sign_state(pool, serial, text)}
        try:
            # State before number: in the other order a crash would make the only stored state invalid.
            objects.apply(self.writer, {"kind": "ConfigMap", "metadata": meta, "data": data})
            self._serials[pool] = serial
            if final:
                self.signing.raise_serial(pool, serial)
        except KubeFault as error:
            raise ActuatorUnavailable(str(error)) from error


def read_verified(shape: ConfigMap, signing: NodeSigner) -> PoolState | Unreadable:
    """Returns the state in the ConfigMap; Unreadable if it cannot be decoded, or if its signature or its serial number
    is not valid."""
    signed = _signed_fields(shape)
    problem = signing.signature_problem(*signed) if shape.data or signing.serials.get(signed[0]) else ""
    if problem:
        return Unreadable(f"ConfigMap {shape.metadata.name}", problem)
    return memories.decode_state(shape.metadata.name, shape.data)


def _signed_fields(shape: ConfigMap) -> tuple[str, int, str, str]:
    """Returns (pool, serial number, text, signature) from the ConfigMap. The signature covers the other three."""
    pool, data = value_or(shape.metadata.labels, {}).get(STATE_LABEL, ""), shape.data
    return pool, _parse_serial(data.get(SERIAL, "")), data.get(STATE_KEY, ""), data.get(SIGNATURE, "")


def _parse_serial(text: str) -> int:
    """Returns the serial number, or 0 if the text is not valid. No state has the serial number 0."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0


def reopened_at(shapes: tuple[ConfigMap, ...], pool: str) -> int | None:
    """Returns when a user last reopened the pool, or None if no user did."""
    for shape in shapes:
        if value_or(shape.metadata.labels, {}).get(STATE_LABEL) == pool:
            return parse_timestamp(value_or(shape.metadata.annotations, {}).get(REOPENED_ANNOTATION))
    return None
