"""The state of a pool that survives a restart: one value per pool, stored in its own ConfigMap.

under       since when each node has been under the threshold
failures    failed drains, by node
evictions   the times of the compactor's evictions in the last hour
moved       successors of evicted pods, so that none is moved twice in a short time
strikes     failed drains in a row, those of one namespace counted once; closed: since when the pool is closed
            because of them
failing     failed drains in a row, by the namespace whose pods made them fail
backoff     setbacks in a row; judged: their causes; emptied: the capacity of the drained nodes
ring        the last decisions, as history entries
resizes     running pods that are resized, with what each of them had before
demand      what the pods requested, slot by slot, for the forecast of the room that they need
delays      since when the terms that pods state have kept each node
disruptions evictions in the last 24 hours, by workload, where pods limit them
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

import msgspec
from msgspec.structs import replace as change

from trimtab.cluster.reason import Unreadable
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.drain import promises
from trimtab.compaction.drain.backoff import EmptiedNode, PoolBackoff
from trimtab.compaction.drain.order_entry import OrderEntry, PolicySighting
from trimtab.compaction.drain.savings import DaySavings, add_saving
from trimtab.compaction.drain.timeouts import DrainTimeouts
from trimtab.compaction.plan_types import HOUR_SECONDS, Failure, Observations
from trimtab.compaction.resize.records import ResizeRecords
from trimtab.compaction.room_forecast import DemandHistory
from trimtab.compaction.terms.term_ledger import (
    NodeDelay,
    add_disruption,
    without_old_disruptions,
)

STATE_LABEL = "trimtab.dev/state"
"""The label of a state's ConfigMap; its value is the pool's name."""
NAME_PREFIX = "trimtab-state-"
"""The prefix of the names of the ConfigMaps with pool states."""
STATE_KEY = "state.json"
REOPENED_ANNOTATION = "trimtab.dev/resumed-at"
"""The annotation that `trimtab compactor resume --pool` writes on the ConfigMap: when the pool was reopened."""
VERSION = 1
MAX_HISTORY_ENTRIES = 200
"""The maximum number of history entries in a pool's state."""
MAX_STATE_LENGTH = 900_000
"""The maximum length of a stored state in characters. A ConfigMap holds one mebibyte in all (apimachinery,
MaxSecretSize)."""
REVERTED_SECONDS = 86_400
"""For how many seconds a Deployment whose additional pods another client took back gets none."""
DELETION_SECONDS = 1800
"""For how many seconds the compactor remembers that the autoscaler began to delete a node."""
MIN_NAMESPACE_FAILURES = 2
"""After this many failures in a row that pods of one namespace caused, nodes with pods of it are left alone."""
FORGET_FACTOR = 12
"""A failure is forgotten after the longest back-off, multiplied by this number."""


class HistoryEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One decision with its reason, from which Events, metrics, log lines and the history are made."""

    at: Seconds
    pool: str
    what: str
    """What was decided: planned, started, evicted, refused, emptied, removed, released, abandoned, closed, scaled,
    left-surged, corrected, unreadable, not-authentic, resized, resize-verified, resize-reverted, resize-stopped,
    resize-replaced, resize-rejected or resize-ended."""
    code: str
    """The reason's code."""
    why: str
    node: str = ""
    pod: str = ""
    owner: str = ""
    """Kind/name of the owner that creates the successor of the pod; empty if there is none."""
    drain: str = ""
    rehearsed: bool = False
    """Whether the decision was made in a dry run, so that nothing was written to the cluster."""


class PoolState(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of one pool. It is immutable: every method returns a new state."""

    under: dict[str, Seconds] = {}
    failures: dict[str, tuple[Annotated[int, msgspec.Meta(ge=1)], Seconds]] = {}
    """Node → (failed drains in a row, time of the last one)."""
    evictions: tuple[Seconds, ...] = ()
    moved: dict[str, Seconds] = {}
    """Successor (namespace/name) → when it was created."""
    ended: dict[str, Seconds] = {}
    """Drain that has ended, but whose annotation may still be on the node → when it ended."""
    drains: dict[str, str] = {}
    """Node → name of the drain in progress. The entry is written before the node is cordoned. An annotation of a drain
    without an entry has no effect, and because of the entry it is noticed if the node disappears."""
    empty: tuple[str, ...] = ()
    """The nodes with drains in progress that all pods have left."""
    promised: dict[str, tuple[str, int]] = {}
    """Node with a drain in progress → (unit, amount) that its removal saves."""
    promised_pods: dict[str, dict[str, int]] = {}
    """Node with a drain in progress → namespace → number of its pods that move. The saving is divided among these
    namespaces."""
    surged: dict[str, str] = {}
    """Deployment (namespace/name) → the drain that gives it a second replica while its only pod moves (a surge). The
    entry is written first, then the node's annotation, and then the Deployment is scaled. A surge is undone only if
    both the entry and the annotation exist."""
    reverted: dict[str, Seconds] = {}
    """Deployment (namespace/name) → when another client last took back the additional pods of a surge. It gets none for
    `REVERTED_SECONDS`."""
    strikes: Annotated[int, msgspec.Meta(ge=0)] = 0
    """The number of failed drains in a row. Those that pods of one namespace caused count as one."""
    strike_namespaces: tuple[str, ...] = ()
    """The namespaces that are counted in `strikes`. The other strikes have no known namespace."""
    failing: dict[str, tuple[Annotated[int, msgspec.Meta(ge=1)], Seconds]] = {}
    """Namespace → (drains in a row that its pods made fail, time of the last one)."""
    closed: Seconds | None = None
    backoff: PoolBackoff | None = None
    """The back-off of the pool. None: in the last day, no drain has left a pod pending or made the autoscaler add a
    node."""
    judged: dict[str, Seconds] = {}
    """Drain or added node → when it was counted as a setback, so that each counts once."""
    emptied: dict[str, EmptiedNode] = {}
    """Recently drained node → its capacity."""
    opened: tuple[Seconds, ...] = ()
    """The times in the last hour at which drained nodes were uncordoned for pending pods."""
    quiet_until: Seconds | None = None
    """No drain begins before this time, because a drained node was uncordoned for pending pods. None: no such limit."""
    deleting: dict[str, Seconds] = {}
    """Node of the pool that the autoscaler has begun to delete → when that was first observed."""
    left: dict[str, Seconds] = {}
    """Node that is left to the autoscaler → since when."""
    saved: int = 0
    """The number of drained nodes that have been removed since the state exists."""
    worth: dict[str, int] = {}
    """Unit → the total savings of all removed nodes."""
    saved_days: dict[str, DaySavings] = {}
    """UTC date → what was removed on that day, for the last quarter of a year."""
    promise_days: dict[str, promises.DayPromises] = {}
    """UTC date → what the drains of that day promised, and what came of them, for the last quarter of a year."""
    ring: tuple[HistoryEntry, ...] = ()
    plan: tuple[str, ...] = ()
    """The nodes that the last plan would drain, in order."""
    plan_wave: int = 0
    """The number of nodes of `plan` that are in the first wave."""
    plan_why: str = ""
    """Why nothing was planned in the whole pool, as a code and a sentence; empty if a node may be drained."""
    plan_stays: dict[str, int] = {}
    """Reason code → the number of the pool's nodes that the last plan keeps for this reason, the largest number
    first."""
    plan_at: Seconds | None = None
    """When the last plan was made, or None if there is none."""
    resizes: ResizeRecords = ResizeRecords()
    """The resizes in progress. An entry is written before each resize, so that the pod's earlier requests are known
    even if the process is killed."""
    orders: dict[str, OrderEntry] = {}
    """Uid of a DrainOrder → what is known of it. Only the state of the pool `ORDERS` has entries."""
    author_policy: PolicySighting | None = None
    """What has been observed of the admission policy for authors of DrainOrders; only in the state of the pool
    `ORDERS`. None: nothing, or the policy differs from that of an installation."""
    demand: DemandHistory = DemandHistory()
    """What the pods of the pool requested, for the forecast of the room that they need."""
    delays: dict[str, NodeDelay] = {}
    """Node → since when the terms that its pods state have kept it."""
    disruptions: dict[str, tuple[Seconds, ...]] = {}
    """Workload (Kind/namespace/name) → when its pods were evicted in the last 24 hours, for workloads whose pods limit
    this."""
    v: int = VERSION

    def with_failure(self, node: str, now: Seconds, *, strike: bool, namespace: str = "") -> "PoolState":
        """Returns the state after a failed drain of the node; with `strike`, the failure counts against the pool too.

        `namespace`: the namespace whose pods made the drain fail. Its failures count against the pool once, so that
        one namespace cannot close a pool for all others."""
        times = self.failures.get(node, (0, 0))[0] + 1
        state = change(self, failures={**self.failures, node: (times, now)})
        if not strike:
            return state
        if not namespace:
            return change(state, strikes=self.strikes + 1)
        failing = {**self.failing, namespace: (self.failing.get(namespace, (0, 0))[0] + 1, now)}
        if namespace in self.strike_namespaces:
            return change(state, failing=failing)
        counted = (*self.strike_namespaces, namespace)
        return change(state, failing=failing, strikes=self.strikes + 1, strike_namespaces=counted)

    def without_strikes(self) -> "PoolState":
        """Returns the state in which no earlier failure counts against the pool."""
        return change(self, strikes=0, strike_namespaces=())

    def without_failing_namespaces(self, until: Seconds) -> "PoolState":
        """Returns the state in which the failures up to this time no longer count against namespaces."""
        failing = {name: failure for name, failure in self.failing.items() if failure[1] > until}
        return self if failing == self.failing else change(self, failing=failing)

    def with_success(self, node: str, now: Seconds) -> "PoolState":
        """Returns the state after a drained node was removed. Earlier failures then no longer count against the pool,
        nor against the namespaces whose pods moved."""
        failures = {name: failure for name, failure in self.failures.items() if name != node}
        unit, amount = self.promised.get(node, ("", 0))
        worth = {**self.worth, unit: self.worth.get(unit, 0) + amount} if unit else self.worth
        moved = self.promised_pods.get(node, {})
        days = add_saving(self.saved_days, now, (unit, amount), moved)
        failing = {name: failure for name, failure in self.failing.items() if name not in moved}
        return change(
            self.without_strikes(),
            failures=failures,
            failing=failing,
            saved=self.saved + 1,
            worth=worth,
            saved_days=days,
            promise_days=promises.add_kept_promise(self.promise_days, now, (unit, amount)),
        )

    def with_promise(self, saving: tuple[str, int], now: Seconds) -> "PoolState":
        """Returns the state with the promise of a drain that is about to begin. `saving`: (unit, amount)."""
        return change(self, promise_days=promises.add_promise(self.promise_days, now, saving))

    def without_promise(self, saving: tuple[str, int], now: Seconds) -> "PoolState":
        """Returns the state without the promise of a drain whose cordon failed."""
        return change(self, promise_days=promises.withdraw_promise(self.promise_days, now, saving))

    def with_unkept_promise(self, node: str, now: Seconds) -> "PoolState":
        """Returns the state after the drain of this node ended without a removal. A drain that the state does not know
        promised nothing."""
        if node not in self.drains:
            return self
        return change(self, promise_days=promises.add_unkept_promise(self.promise_days, now))

    def with_drain(
        self, node: str, drain: str, promised: tuple[str, int], pods: Mapping[str, int] | None = None
    ) -> "PoolState":
        """Returns the state with a drain of this node that is about to begin.

        `promised` is (unit, amount) that the node's removal saves; `pods` is namespace → number of pods that move.
        """
        return change(
            self,
            drains={**self.drains, node: drain},
            promised={**self.promised, node: promised},
            promised_pods={**self.promised_pods, node: dict(pods or {})},
        )

    def without_drain(self, node: str) -> "PoolState":
        """Returns the state without the drain of this node, whose cordon failed."""
        return change(
            self,
            drains={name: drain for name, drain in self.drains.items() if name != node},
            promised={name: saving for name, saving in self.promised.items() if name != node},
            promised_pods={name: pods for name, pods in self.promised_pods.items() if name != node},
        )

    def knows_drain(self, node: str, drain: str) -> bool:
        """Returns whether the state has recorded this drain on this node, either as in progress or as ended. Every
        drain is recorded before its node is cordoned."""
        return self.drains.get(node) == drain or drain in self.ended

    def with_surge(self, deployment: str, drain: str) -> "PoolState":
        """Returns the state with a surge of this Deployment for the drain, which is about to begin."""
        return change(self, surged={**self.surged, deployment: drain})

    def with_reverted_surge(self, deployment: str, now: Seconds) -> "PoolState":
        """Returns the state after another client took back the additional pods of this Deployment."""
        recent = {name: at for name, at in self.reverted.items() if now - at < REVERTED_SECONDS}
        return change(self, reverted={**recent, deployment: now})

    def reverted_surges(self, now: Seconds) -> Iterator[str]:
        """Yields the Deployments whose additional pods another client took back a short time ago."""
        return (name for name, at in self.reverted.items() if now - at < REVERTED_SECONDS)

    def without_surges(self, *deployments: str) -> "PoolState":
        """Returns the state after the surges of these Deployments were undone."""
        remaining = {name: drain for name, drain in self.surged.items() if name not in deployments}
        return self if remaining == self.surged else change(self, surged=remaining)

    def with_ended_drain(self, node: str, drain: str, now: Seconds) -> "PoolState":
        """Returns the state after the drain of this node ended, for any reason."""
        return change(
            self,
            ended={**self.ended, drain: now},
            empty=tuple(name for name in self.empty if name != node),
            drains={name: running for name, running in self.drains.items() if name != node},
            promised={name: saving for name, saving in self.promised.items() if name != node},
            promised_pods={name: pods for name, pods in self.promised_pods.items() if name != node},
        )

    def with_setback(self, cause: str, now: Seconds) -> "PoolState":
        """Returns the state after a setback that this drain or added node caused. Each cause counts once.

        A setback that is discovered during a back-off was caused before the back-off began, and does not extend it.
        """
        if cause in self.judged:
            return self
        last, judged = self.backoff, {**self.judged, cause: now}
        days = promises.add_setback(self.promise_days, now)
        # A setback that is discovered during a back-off was caused before it began, so it must not extend it.
        if last is not None and now < last.retry_after:
            return change(self, judged=judged, promise_days=days)
        times = 0 if last is None or last.is_forgotten(now) else last.times
        return change(self, backoff=PoolBackoff(times + 1, now), judged=judged, promise_days=days)

    def with_opening(self, now: Seconds, quiet: Seconds) -> "PoolState":
        """Returns the state after a drained node was uncordoned for pending pods; no drain begins for `quiet`
        seconds."""
        return change(self, opened=(*self.opened, now), quiet_until=now + quiet)

    def recent_openings(self, now: Seconds) -> int:
        """Returns how many drained nodes were uncordoned in the last hour."""
        return sum(when > now - HOUR_SECONDS for when in self.opened)

    def with_deletions(self, evictions: Mapping[str, int], now: Seconds) -> "PoolState":
        """Returns the state in which the autoscaler is deleting these nodes.

        `evictions`: node → number of pods that its deletion evicts. For a node that is not recorded yet, they count
        towards the evictions of the hour."""
        new = {node: count for node, count in evictions.items() if node not in self.deleting}
        if not new:
            return self
        deleting = {**self.deleting, **dict.fromkeys(new, now)}
        return change(self, deleting=deleting, evictions=(*self.evictions, *[now] * sum(new.values())))

    def with_left_nodes(self, nodes: Iterable[str], now: Seconds) -> "PoolState":
        """Returns the state in which exactly these nodes of the pool are left to the autoscaler. For a node that was
        left to the autoscaler before, the earlier time is kept."""
        return change(self, left={node: self.left.get(node, now) for node in nodes})

    def overdue_nodes(self, now: Seconds, removal: Seconds) -> frozenset[str]:
        """Returns the nodes that have been left to the autoscaler for longer than `removal` seconds."""
        return frozenset(node for node, since in self.left.items() if now - since > removal)

    def with_empty_node(self, node: str, shape: EmptiedNode | None) -> "PoolState":
        """Returns the state after all pods have left this node. `shape`: the node's capacity, or None if it is not
        recorded."""
        if node in self.empty:
            return self
        emptied = self.emptied if shape is None else {**self.emptied, node: shape}
        return change(self, empty=(*self.empty, node), emptied=emptied)

    def with_eviction(self, now: Seconds) -> "PoolState":
        """Returns the state after an eviction."""
        return change(self, evictions=(*self.evictions, now))

    def with_disruption(self, workload: str, now: Seconds) -> "PoolState":
        """Returns the state with one more eviction of a workload whose pods limit them."""
        return change(self, disruptions=add_disruption(self.disruptions, workload, now))

    def with_term_stop(self, node: str, now: Seconds) -> "PoolState":
        """Returns the state after the terms of a pod ended the drain of this node."""
        delay = self.delays.get(node, NodeDelay(since=now, seen=now)).observe_stop(now)
        return change(self, delays={**self.delays, node: delay})

    def with_successors(self, pods: Mapping[str, Seconds], now: Seconds, rest: Seconds) -> "PoolState":
        """Returns the state with these successors and their creation times added. Successors older than `rest` seconds
        are removed."""
        new = {pod: created for pod, created in pods.items() if created > now - rest and pod not in self.moved}
        return change(self, moved={**self.moved, **new}) if new else self

    def with_history(self, *records: HistoryEntry) -> "PoolState":
        """Returns the state with these entries added to the history."""
        return change(self, ring=(*self.ring, *records)[-MAX_HISTORY_ENTRIES:])

    def without_old_entries(
        self, now: Seconds, timeouts: DrainTimeouts, nodes: Iterable[str], annotated: Iterable[str] = ()
    ) -> "PoolState":
        """Returns the state without entries that are too old, and without nodes that no longer exist.

        `annotated` has the drains whose annotation is still on a node. The state keeps the record that such a drain has
        ended, however old it is. Otherwise the drain would be continued if its annotation could not be removed for an
        hour.
        """
        existing, with_annotation = set(nodes), set(annotated)
        failure_seconds, state = max(FORGET_FACTOR * 7200, timeouts.closed), self.clamp_to_now(now)
        return change(
            state,
            under={node: since for node, since in state.under.items() if node in existing},
            failures={n: f for n, f in state.failures.items() if n in existing and f[1] > now - failure_seconds},
            failing={name: f for name, f in state.failing.items() if f[1] > now - failure_seconds},
            evictions=tuple(when for when in state.evictions if when > now - HOUR_SECONDS),
            opened=tuple(when for when in state.opened if when > now - HOUR_SECONDS),
            deleting={node: when for node, when in state.deleting.items() if when > now - DELETION_SECONDS},
            left={node: since for node, since in state.left.items() if node in existing},
            moved={pod: when for pod, when in state.moved.items() if when > now - timeouts.rest},
            ended={
                drain: when
                for drain, when in state.ended.items()
                if when > now - HOUR_SECONDS or drain in with_annotation
            },
            backoff=None if state.backoff is None or state.backoff.is_forgotten(now) else state.backoff,
            judged={
                cause: when
                for cause, when in state.judged.items()
                if when > now - HOUR_SECONDS or cause in with_annotation
            },
            emptied={node: shape for node, shape in state.emptied.items() if shape.at > now - HOUR_SECONDS},
            resizes=state.resizes.without_old_entries(now),
            delays={node: delay for node, delay in state.delays.items() if node in existing},
            disruptions=without_old_disruptions(state.disruptions, now),
        )

    def clamp_to_now(self, now: Seconds) -> "PoolState":
        """Returns the state with times in the future replaced by now, so that a clock that was ahead does not prolong
        any wait."""
        return change(
            self,
            under={node: min(since, now) for node, since in self.under.items()},
            failures={node: (times, min(last, now)) for node, (times, last) in self.failures.items()},
            failing={name: (times, min(last, now)) for name, (times, last) in self.failing.items()},
            evictions=tuple(min(when, now) for when in self.evictions),
            opened=tuple(min(when, now) for when in self.opened),
            quiet_until=None if self.quiet_until is None else min(self.quiet_until, now + HOUR_SECONDS),
            deleting={node: min(when, now) for node, when in self.deleting.items()},
            left={node: min(since, now) for node, since in self.left.items()},
            moved={pod: min(when, now) for pod, when in self.moved.items()},
            ended={drain: min(when, now) for drain, when in self.ended.items()},
            closed=None if self.closed is None else min(self.closed, now),
            backoff=None if self.backoff is None else change(self.backoff, last=min(self.backoff.last, now)),
            reverted={name: min(when, now) for name, when in self.reverted.items()},
            judged={cause: min(when, now) for cause, when in self.judged.items()},
            emptied={node: change(shape, at=min(shape.at, now)) for node, shape in self.emptied.items()},
            resizes=self.resizes.without_old_entries(now),
            orders={uid: change(entry, since=min(entry.since, now)) for uid, entry in self.orders.items()},
            delays={node: delay.clamp_to_now(now) for node, delay in self.delays.items()},
            disruptions={name: tuple(min(when, now) for when in times) for name, times in self.disruptions.items()},
        )

    def to_observations(self, emptying: Mapping[str, str]) -> Observations:
        """Returns the observations for a plan. `emptying` is node → pool, for the drains in progress."""
        failures = {node: Failure(times=times, last=last) for node, (times, last) in self.failures.items()}
        return Observations(under_since=self.under, failures=failures, evictions=self.evictions, draining=emptying)


def is_final(before: PoolState, after: PoolState) -> bool:
    """Returns whether something ended between the two states, so that the state `before` must never be used again: a
    drain, a surge, a resize or an order has ended, or the pool was closed or has begun to back off.
    """
    closed = after.closed is not None and after.closed != before.closed
    closed = closed or (after.backoff is not None and after.backoff != before.backoff)
    if before.resizes.open.keys() - after.resizes.open.keys() or ended_orders(before) - ended_orders(after):
        return True
    return closed or bool(after.ended.keys() - before.ended.keys() or before.surged.keys() - after.surged.keys())


def ended_orders(state: PoolState) -> set[tuple[str, str]]:
    """Returns the orders of the state, each with the reason for which it has ended."""
    return {(uid, entry.ended) for uid, entry in state.orders.items()}


def encode_state(state: PoolState) -> str:
    """Returns the state as text for a ConfigMap. If it is too long, the older half of the history is removed until it
    fits."""
    text = msgspec.json.encode(state).decode()
    # The history is the only part that grows without a bound of its own.
    while len(text) > MAX_STATE_LENGTH and state.ring:
        state = change(state, ring=state.ring[len(state.ring) // 2 + 1 :])
        text = msgspec.json.encode(state).decode()
    return text


def decode_state(name: str, data: Mapping[str, Any]) -> PoolState | Unreadable:
    """Returns the state in the data of the ConfigMap with this name; an empty state if the data is empty, and
    Unreadable if it cannot be decoded."""
    text = data.get(STATE_KEY, "")
    if not text:
        return PoolState()
    try:
        state = msgspec.json.decode(text, type=PoolState)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return Unreadable(f"ConfigMap {name}", str(error))
    if state.v != VERSION:
        return Unreadable(
            f"ConfigMap {name}", f"the state has the version {state.v}, but this Trimtab reads version {VERSION}"
        )
    return state
