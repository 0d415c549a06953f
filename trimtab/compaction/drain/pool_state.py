"""The state of a pool that survives a restart: one value per pool, stored in its own ConfigMap.

under       since when each node has been under the threshold
failures    failed drains, by node
evictions   the times of the compactor's evictions in the last hour
moved       successors of evicted pods, so that none is moved twice in a short time
strikes     failed drains in a row; closed: since when the pool is closed because of them
backoff     setbacks in a row; judged: their causes; emptied: the capacity of the drained nodes
ring        the last decisions, as history entries
resizes     running pods that are resized, with what each of them had before
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import msgspec
from msgspec.structs import replace as change

from trimtab.cluster.reason import Unreadable
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.drain.backoff import EmptiedNode, PoolBackoff
from trimtab.compaction.drain.savings import DaySavings, add_saving
from trimtab.compaction.drain.timeouts import DrainTimeouts
from trimtab.compaction.plan_types import HOUR_SECONDS, Failure, Observations
from trimtab.compaction.resize.records import ResizeRecords

STATE_LABEL = "trimtab.dev/state"
"""The label of the ConfigMaps; its value is the pool's name."""
NAME_PREFIX = "trimtab-state-"
"""The prefix of their names."""
STATE_KEY = "state.json"
REOPENED_ANNOTATION = "trimtab.dev/resumed-at"
"""The annotation of the ConfigMap that `trimtab compactor resume --pool` writes: when the pool was reopened."""
VERSION = 1
MAX_HISTORY_ENTRIES = 200
"""The maximum number of history entries."""
MAX_STATE_LENGTH = 900_000
"""The maximum number of characters of a stored state: a ConfigMap holds one mebibyte in all (apimachinery,
MaxSecretSize)."""
DELETION_SECONDS = 1800
"""The seconds for which it is remembered that the autoscaler began to delete a node."""
FORGET_FACTOR = 12
"""A failure is forgotten after this many times the longest back-off."""


class HistoryEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One decision with its reason. Events, metrics, log lines and the history are made from it."""

    at: Seconds
    pool: str
    what: str
    """planned, started, evicted, refused, emptied, removed, released, abandoned, closed, scaled, left-surged,
    corrected, unreadable, not-authentic, resized, resize-verified, resize-reverted, resize-stopped, resize-replaced,
    resize-rejected, resize-ended."""
    code: str
    """The reason's code."""
    why: str
    node: str = ""
    pod: str = ""
    owner: str = ""
    """Kind/name of the owner that creates the pod's successor."""
    drain: str = ""
    rehearsed: bool = False
    """The decision was made in a dry run: nothing was written to the cluster."""


class PoolState(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of one pool. Every method returns a new state."""

    under: dict[str, Seconds] = {}
    failures: dict[str, tuple[Annotated[int, msgspec.Meta(ge=1)], Seconds]] = {}
    """Node → (failed drains in a row, time of the last one)."""
    evictions: tuple[Seconds, ...] = ()
    moved: dict[str, Seconds] = {}
    """namespace/name of a successor → when it was created."""
    ended: dict[str, Seconds] = {}
    """Drains that have ended: their annotations only have to be removed."""
    drains: dict[str, str] = {}
    """Node → drain in progress. Written before the cordon: a drain that is not here is never acted on, whatever
    annotation a node has, and the disappearance of a node is noticed."""
    empty: tuple[str, ...] = ()
    """The nodes of these drains that all their pods have left."""
    promised: dict[str, tuple[str, int]] = {}
    """What each of these saves when the node is removed: (unit, amount)."""
    promised_pods: dict[str, dict[str, int]] = {}
    """Node of a drain → namespace → pods that move: the namespaces among which the saving is divided."""
    surged: dict[str, str] = {}
    """namespace/Deployment → the drain that gives it a second replica. Written before the annotation and before the
    scaling; undone only where both the state and the annotation have it."""
    strikes: Annotated[int, msgspec.Meta(ge=0)] = 0
    closed: Seconds | None = None
    backoff: PoolBackoff | None = None
    """None: for a day no drain left a pod pending or made the autoscaler add a node."""
    judged: dict[str, Seconds] = {}
    """Drain or added node → when it counted as a setback: each counts once."""
    emptied: dict[str, EmptiedNode] = {}
    """Recently drained nodes and their capacity."""
    opened: tuple[Seconds, ...] = ()
    """When drained nodes were uncordoned for pending pods, in the last hour."""
    quiet_until: Seconds | None = None
    """No drain begins before: an uncordoned node counts like an added one."""
    deleting: dict[str, Seconds] = {}
    """Nodes of the pool that the autoscaler has begun to delete → when that was first observed."""
    left: dict[str, Seconds] = {}
    """Nodes that are left to the autoscaler → since when."""
    saved: int = 0
    """The number of drained nodes that were removed, ever."""
    worth: dict[str, int] = {}
    """Unit → what all of them together save."""
    saved_days: dict[str, DaySavings] = {}
    """UTC date → what was removed on that day, for a quarter."""
    ring: tuple[HistoryEntry, ...] = ()
    plan: tuple[str, ...] = ()
    """Nodes that the last plan would drain, in order."""
    plan_wave: int = 0
    """How many of these are in the first wave."""
    plan_why: str = ""
    """Why nothing was planned in the whole pool, as a code and a sentence; empty if a node may be drained."""
    plan_at: Seconds | None = None
    """When the plan was made."""
    resizes: ResizeRecords = ResizeRecords()
    """Written before each resize: what a pod had before is known, whatever happens to the process."""
    v: int = VERSION

    def with_failure(self, node: str, now: Seconds, *, strike: bool) -> "PoolState":
        """Returns the state after a failed drain of the node; `strike`: it counts against the pool too."""
        times = self.failures.get(node, (0, 0))[0] + 1
        strikes = self.strikes + 1 if strike else self.strikes
        return change(self, failures={**self.failures, node: (times, now)}, strikes=strikes)

    def with_success(self, node: str, now: Seconds) -> "PoolState":
        """Returns the state after the removal of a drained node: earlier failures no longer count against the pool."""
        failures = {name: failure for name, failure in self.failures.items() if name != node}
        unit, amount = self.promised.get(node, ("", 0))
        worth = {**self.worth, unit: self.worth.get(unit, 0) + amount} if unit else self.worth
        days = add_saving(self.saved_days, now, (unit, amount), self.promised_pods.get(node, {}))
        return change(self, failures=failures, strikes=0, saved=self.saved + 1, worth=worth, saved_days=days)

    def with_drain(
        self, node: str, drain: str, promised: tuple[str, int], pods: Mapping[str, int] | None = None
    ) -> "PoolState":
        """Returns the state before a drain of this node begins.

        promised: (unit, amount) that its removal saves. pods: namespace → pods that move.
        """
        return change(
            self, drains={**self.drains, node: drain}, promised={**self.promised, node: promised},
            promised_pods={**self.promised_pods, node: dict(pods or {})},
        )  # fmt: skip

    def without_drain(self, node: str) -> "PoolState":
        """Returns the state without the drain: its cordon failed."""
        return change(
            self, drains={name: drain for name, drain in self.drains.items() if name != node},
            promised={name: saving for name, saving in self.promised.items() if name != node},
            promised_pods={name: pods for name, pods in self.promised_pods.items() if name != node},
        )  # fmt: skip

    def knows_drain(self, node: str, drain: str) -> bool:
        """Returns whether this drain is in progress on this node, or has ended, according to the entry written before
        its cordon."""
        return self.drains.get(node) == drain or drain in self.ended

    def with_surge(self, deployment: str, drain: str) -> "PoolState":
        """Returns the state before the drain gives this Deployment a second replica."""
        return change(self, surged={**self.surged, deployment: drain})

    def without_surges(self, *deployments: str) -> "PoolState":
        """Returns the state after the surges of these Deployments are undone."""
        remaining = {name: drain for name, drain in self.surged.items() if name not in deployments}
        return self if remaining == self.surged else change(self, surged=remaining)

    def with_ended_drain(self, node: str, drain: str, now: Seconds) -> "PoolState":
        """Returns the state after the drain of this node ended, for any reason."""
        return change(
            self, ended={**self.ended, drain: now}, empty=tuple(name for name in self.empty if name != node),
            drains={name: running for name, running in self.drains.items() if name != node},
            promised={name: saving for name, saving in self.promised.items() if name != node},
            promised_pods={name: pods for name, pods in self.promised_pods.items() if name != node},
        )  # fmt: skip

    def with_setback(self, cause: str, now: Seconds) -> "PoolState":
        """Returns the state after a setback by this drain or added node, which counts once.

        A setback that is discovered during a back-off was caused before it began, and does not extend it.
        """
        if cause in self.judged:
            return self
        last, judged = self.backoff, {**self.judged, cause: now}
        # A setback that is discovered during a back-off was caused before it began, so it must not extend it.
        if last is not None and now < last.retry_after:
            return change(self, judged=judged)
        times = 0 if last is None or last.is_forgotten(now) else last.times
        return change(self, backoff=PoolBackoff(times + 1, now), judged=judged)

    def with_opening(self, now: Seconds, quiet: Seconds) -> "PoolState":
        """Returns the state after a drained node was uncordoned for pending pods; no drain begins for `quiet`
        seconds."""
        return change(self, opened=(*self.opened, now), quiet_until=now + quiet)

    def recent_openings(self, now: Seconds) -> int:
        """Returns how many drained nodes were uncordoned in the last hour."""
        return sum(when > now - HOUR_SECONDS for when in self.opened)

    def with_deletions(self, evictions: Mapping[str, int], now: Seconds) -> "PoolState":
        """Returns the state with these nodes being deleted by the autoscaler. The evictions of each new one count in
        the hour."""
        new = {node: count for node, count in evictions.items() if node not in self.deleting}
        if not new:
            return self
        deleting = {**self.deleting, **dict.fromkeys(new, now)}
        return change(self, deleting=deleting, evictions=(*self.evictions, *[now] * sum(new.values())))

    def with_left_nodes(self, nodes: Iterable[str], now: Seconds) -> "PoolState":
        """Returns the state with exactly these nodes of the pool left to the autoscaler, each since it first was."""
        return change(self, left={node: self.left.get(node, now) for node in nodes})

    def overdue_nodes(self, now: Seconds, removal: Seconds) -> frozenset[str]:
        """Returns the nodes that have been left to the autoscaler for longer than `removal` seconds."""
        return frozenset(node for node, since in self.left.items() if now - since > removal)

    def with_empty_node(self, node: str, shape: EmptiedNode | None) -> "PoolState":
        """Returns the state after all pods have left this node of a drain."""
        if node in self.empty:
            return self
        emptied = self.emptied if shape is None else {**self.emptied, node: shape}
        return change(self, empty=(*self.empty, node), emptied=emptied)

    def with_eviction(self, now: Seconds) -> "PoolState":
        """Returns the state after an eviction."""
        return change(self, evictions=(*self.evictions, now))

    def with_successors(self, pods: Mapping[str, Seconds], now: Seconds, rest: Seconds) -> "PoolState":
        """Returns the state with these successors and their creation times, except those older than `rest` seconds."""
        new = {pod: created for pod, created in pods.items() if created > now - rest and pod not in self.moved}
        return change(self, moved={**self.moved, **new}) if new else self

    def with_history(self, *records: HistoryEntry) -> "PoolState":
        """Returns the state with these entries added to the history."""
        return change(self, ring=(*self.ring, *records)[-MAX_HISTORY_ENTRIES:])

    def without_old_entries(
        self, now: Seconds, terms: DrainTimeouts, nodes: Iterable[str], annotated: Iterable[str] = ()
    ) -> "PoolState":
        """Returns the state without entries that are too old, and without nodes that no longer exist.

        `annotated`: drains whose annotation is on a node. It is never forgotten that such a drain has ended: otherwise
        a drain whose annotation could not be removed for an hour would continue.
        """
        existing, with_annotation = set(nodes), set(annotated)
        failure_seconds, state = max(FORGET_FACTOR * 7200, terms.closed), self.clamp_to_now(now)
        return change(
            state,
            under={node: since for node, since in state.under.items() if node in existing},
            failures={n: f for n, f in state.failures.items() if n in existing and f[1] > now - failure_seconds},
            evictions=tuple(when for when in state.evictions if when > now - HOUR_SECONDS),
            opened=tuple(when for when in state.opened if when > now - HOUR_SECONDS),
            deleting={node: when for node, when in state.deleting.items() if when > now - DELETION_SECONDS},
            left={node: since for node, since in state.left.items() if node in existing},
            moved={pod: when for pod, when in state.moved.items() if when > now - terms.rest},
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
        )

    def clamp_to_now(self, now: Seconds) -> "PoolState":
        """Returns the state with no time later than now: a clock that was ahead must not prolong any wait."""
        return change(
            self,
            under={node: min(since, now) for node, since in self.under.items()},
            failures={node: (times, min(last, now)) for node, (times, last) in self.failures.items()},
            evictions=tuple(min(when, now) for when in self.evictions),
            opened=tuple(min(when, now) for when in self.opened),
            quiet_until=None if self.quiet_until is None else min(self.quiet_until, now + HOUR_SECONDS),
            deleting={node: min(when, now) for node, when in self.deleting.items()},
            left={node: min(since, now) for node, since in self.left.items()},
            moved={pod: min(when, now) for pod, when in self.moved.items()},
            ended={drain: min(when, now) for drain, when in self.ended.items()},
            closed=None if self.closed is None else min(self.closed, now),
            backoff=None if self.backoff is None else change(self.backoff, last=min(self.backoff.last, now)),
            judged={cause: min(when, now) for cause, when in self.judged.items()},
            emptied={node: change(shape, at=min(shape.at, now)) for node, shape in self.emptied.items()},
            resizes=self.resizes.without_old_entries(now),
        )

    def to_observations(self, emptying: Mapping[str, str]) -> Observations:
        """Returns the observations for a plan; `emptying`: node → pool of the drains in progress."""
        failures = {node: Failure(times=times, last=last) for node, (times, last) in self.failures.items()}
        return Observations(under_since=self.under, failures=failures, evictions=self.evictions, draining=emptying)


def is_final(before: PoolState, after: PoolState) -> bool:
    """Returns whether something ended between the two states, so that the former one must never be used again.

    That is a drain, a surge or a resize that has ended, or a pool that was closed or backs off.
    """
    closed = after.closed is not None and after.closed != before.closed
    closed = closed or (after.backoff is not None and after.backoff != before.backoff)
    if before.resizes.open.keys() - after.resizes.open.keys():
        return True
    return closed or bool(after.ended.keys() - before.ended.keys() or before.surged.keys() - after.surged.keys())


def merge_observations(states: Mapping[str, PoolState], emptying: Mapping[str, str]) -> Observations:
    """Returns the observations of all pools. A node is in one pool, so nothing is counted twice."""
    by_pool = [state.to_observations({}) for _, state in sorted(states.items())]
    return Observations(
        under_since={node: since for each in by_pool for node, since in each.under_since.items()},
        failures={node: failure for each in by_pool for node, failure in each.failures.items()},
        evictions=tuple(sorted(when for each in by_pool for when in each.evictions)),
        draining=emptying,
    )


def moved_pods(states: Iterable[PoolState]) -> frozenset[str]:
    """Returns the pods that are not moved again for now."""
    return frozenset(pod for state in states for pod in state.moved)


def encode_state(state: PoolState) -> str:
    """Returns the text for a ConfigMap. While it is too long, the older half of the history is removed."""
    text = msgspec.json.encode(state).decode()
    # The history is the only part that grows without a bound of its own.
    while len(text) > MAX_STATE_LENGTH and state.ring:
        state = change(state, ring=state.ring[len(state.ring) // 2 + 1 :])
        text = msgspec.json.encode(state).decode()
    return text


def decode_state(name: str, data: Mapping[str, Any]) -> PoolState | Unreadable:
    """Returns the state in the data of the ConfigMap of this name. Empty data is an empty state."""
    text = data.get(STATE_KEY, "")
    if not text:
        return PoolState()
    try:
        state = msgspec.json.decode(text, type=PoolState)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return Unreadable(f"ConfigMap {name}", str(error))
    if state.v != VERSION:
        return Unreadable(
            f"ConfigMap {name}", f"the state is of version {state.v}, but this Trimtab reads version {VERSION}"
        )
    return state
