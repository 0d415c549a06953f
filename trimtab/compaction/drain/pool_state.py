"""What must a pool remember over a restart? One value per pool, kept in its own ConfigMap.

under       since when each node has been under the line
failures    drains that did not end well, by node
evictions   when we evicted, the last hour
moved       pods that came to be by our evictions, so that none is moved twice in a short time
strikes     failed drains in a row; closed: since when the pool is closed for them
backoff     how often it harmed itself in a row; judged: by what; emptied: what the nodes could hold
ring        the last decisions, as records
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import msgspec
from msgspec.structs import replace as change

from trimtab.cluster.reason import Unreadable
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.drain.backoff import EmptiedNode, PoolBackoff
from trimtab.compaction.drain.timeouts import DrainTimeouts
from trimtab.compaction.plan_types import HOUR, Failure, Observations

LABEL = "trimtab.dev/state"
"""Label of the ConfigMaps; its value is the pool's name."""
PREFIX = "trimtab-state-"
"""Of their names."""
KEY = "state.json"
REOPENED = "trimtab.dev/resumed-at"
"""Annotation of the ConfigMap, written by a person's `trimtab compactor resume --pool`: when the pool was reopened."""
VERSION = 1
RING = 200
"""Records that are kept."""
MOST = 900_000
"""Characters of a memory that is kept: a ConfigMap takes a mebibyte in all (apimachinery, MaxSecretSize)."""
DELETION = 1800
"""Seconds for which it is known that the autoscaler had begun to delete a node."""
FORGET = 12
"""Times the longest back-off after which a failure is forgotten."""


class HistoryEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One decision, with its reason; Events, metrics, log lines and the history are made of it."""

    at: Seconds
    pool: str
    what: str
    """planned, begun, evicted, refused, emptied, taken, released, dropped, closed, scaled, left, corrected, unread,
    doubted."""
    code: str
    """The reason's code."""
    why: str
    node: str = ""
    pod: str = ""
    owner: str = ""
    """Kind/name of who makes the pod's successor."""
    drain: str = ""
    rehearsed: bool = False
    """It was only written down."""


class PoolState(msgspec.Struct, frozen=True, omit_defaults=True):
    """One pool's."""

    under: dict[str, Seconds] = {}
    failures: dict[str, tuple[Annotated[int, msgspec.Meta(ge=1)], Seconds]] = {}
    """Node → (times in a row, when last)."""
    evictions: tuple[Seconds, ...] = ()
    moved: dict[str, Seconds] = {}
    """namespace/name of a successor → when it came to be."""
    ended: dict[str, Seconds] = {}
    """Drains that are over: what stands on a node of them is only still to be taken off."""
    drains: dict[str, str] = {}
    """Node → drain, of those that are under way. Written before the cordon: a drain that is not here is never acted
    upon, whatever stands on a node; and a node's disappearance is noticed."""
    empty: tuple[str, ...] = ()
    """Of these the nodes that all their pods have left."""
    promised: dict[str, tuple[str, int]] = {}
    """Of these what each saves when it is taken: (unit, amount)."""
    surged: dict[str, str] = {}
    """namespace/Deployment → drain that gives it a second replica. Written before the note says so, and before it is
    done; undone only where both say so."""
    strikes: Annotated[int, msgspec.Meta(ge=0)] = 0
    closed: Seconds | None = None
    backoff: PoolBackoff | None = None
    """None: what was emptied made no pod wait and no node be added, for a day."""
    judged: dict[str, Seconds] = {}
    """Drain, or node that was added, → when it counted: it does so once."""
    emptied: dict[str, EmptiedNode] = {}
    """Nodes that all their pods left not long ago, and what they could hold."""
    opened: tuple[Seconds, ...] = ()
    """When emptied nodes were opened for pods that waited, the last hour."""
    quiet_until: Seconds | None = None
    """Nothing begins before: what was opened is taken for a node that was added."""
    deleting: dict[str, Seconds] = {}
    """Nodes of the pool that the autoscaler has begun to delete → when that was seen first."""
    left: dict[str, Seconds] = {}
    """Nodes that are left to the autoscaler → since when."""
    saved: int = 0
    """Nodes that were taken after we emptied them, ever."""
    worth: dict[str, int] = {}
    """Unit → what all of them together save."""
    ring: tuple[HistoryEntry, ...] = ()
    plan: tuple[str, ...] = ()
    """Nodes the last plan would empty, in order."""
    plan_why: str = ""
    """Why nothing was planned in the whole pool, as a code and a sentence; empty where something may be."""
    plan_at: Seconds | None = None
    """When it was made."""
    v: int = VERSION

    def failed(self, node: str, now: Seconds, *, strike: bool) -> "PoolState":
        times = self.failures.get(node, (0, 0))[0] + 1
        strikes = self.strikes + 1 if strike else self.strikes
        return change(self, failures={**self.failures, node: (times, now)}, strikes=strikes)

    def succeeded(self, node: str) -> "PoolState":
        """A node went as it should: what failed before no longer counts against the pool."""
        failures = {name: failure for name, failure in self.failures.items() if name != node}
        unit, amount = self.promised.get(node, ("", 0))
        worth = {**self.worth, unit: self.worth.get(unit, 0) + amount} if unit else self.worth
        return change(self, failures=failures, strikes=0, saved=self.saved + 1, worth=worth)

    def begun(self, node: str, drain: str, promised: tuple[str, int]) -> "PoolState":
        """A drain of this node is about to begin; `promised`: what it saves when the node is taken, (unit, amount)."""
        return change(self, drains={**self.drains, node: drain}, promised={**self.promised, node: promised})

    def not_begun(self, node: str) -> "PoolState":
        """The cordon did not happen: there is no such drain."""
        return change(
            self, drains={name: drain for name, drain in self.drains.items() if name != node},
            promised={name: found for name, found in self.promised.items() if name != node},
        )  # fmt: skip

    def knows(self, node: str, drain: str) -> bool:
        """Whether this drain is under way on this node, or over, by what was written before its cordon."""
        return self.drains.get(node) == drain or drain in self.ended

    def surging(self, deployment: str, drain: str) -> "PoolState":
        """A drain is about to give this Deployment a second replica."""
        return change(self, surged={**self.surged, deployment: drain})

    def surged_no_more(self, *deployments: str) -> "PoolState":
        """Nothing is left to be undone in these Deployments."""
        left = {name: drain for name, drain in self.surged.items() if name not in deployments}
        return self if left == self.surged else change(self, surged=left)

    def over(self, node: str, drain: str, now: Seconds) -> "PoolState":
        """The drain of this node has ended, however it did."""
        return change(
            self, ended={**self.ended, drain: now}, empty=tuple(name for name in self.empty if name != node),
            drains={name: found for name, found in self.drains.items() if name != node},
            promised={name: found for name, found in self.promised.items() if name != node},
        )  # fmt: skip

    def set_back(self, cause: str, now: Seconds) -> "PoolState":
        """The pool backs off, for this drain or added node; once for each.

        What comes to light while it backs off was done before that began, and makes it no longer.
        """
        if cause in self.judged:
            return self
        last, judged = self.backoff, {**self.judged, cause: now}
        if last is not None and now < last.until:
            return change(self, judged=judged)
        times = 0 if last is None or last.is_forgotten(now) else last.times
        return change(self, backoff=PoolBackoff(times + 1, now), judged=judged)

    def reopened(self, now: Seconds, quiet: Seconds) -> "PoolState":
        """An emptied node was opened; nothing begins for `quiet` seconds."""
        return change(self, opened=(*self.opened, now), quiet_until=now + quiet)

    def opened_lately(self, now: Seconds) -> int:
        """How many in the last hour."""
        return sum(when > now - HOUR for when in self.opened)

    def deletions(self, evictions: Mapping[str, int], now: Seconds) -> "PoolState":
        """The autoscaler deletes these nodes; each new one's evictions count in the hour, as ours do."""
        new = {node: count for node, count in evictions.items() if node not in self.deleting}
        if not new:
            return self
        deleting = {**self.deleting, **dict.fromkeys(new, now)}
        return change(self, deleting=deleting, evictions=(*self.evictions, *[now] * sum(new.values())))

    def left_to_autoscaler(self, nodes: Iterable[str], now: Seconds) -> "PoolState":
        """These nodes of the pool are left to the autoscaler now, each since it first was; the others no longer."""
        return change(self, left={node: self.left.get(node, now) for node in nodes})

    def overdue(self, now: Seconds, removal: Seconds) -> frozenset[str]:
        """Nodes that have been left to the autoscaler for longer than `removal` seconds."""
        return frozenset(node for node, since in self.left.items() if now - since > removal)

    def cleared(self, node: str, shape: EmptiedNode | None) -> "PoolState":
        """All pods have left this node of a drain."""
        if node in self.empty:
            return self
        emptied = self.emptied if shape is None else {**self.emptied, node: shape}
        return change(self, empty=(*self.empty, node), emptied=emptied)

    def evicted(self, now: Seconds) -> "PoolState":
        return change(self, evictions=(*self.evictions, now))

    def arrived(self, pods: Mapping[str, Seconds], now: Seconds, rest: Seconds) -> "PoolState":
        """Successors, with when they came to be; one that has had its rest is like any other pod."""
        new = {pod: came for pod, came in pods.items() if came > now - rest and pod not in self.moved}
        return change(self, moved={**self.moved, **new}) if new else self

    def told(self, *records: HistoryEntry) -> "PoolState":
        return change(self, ring=(*self.ring, *records)[-RING:])

    def tidied(
        self, now: Seconds, terms: DrainTimeouts, nodes: Iterable[str], standing: Iterable[str] = ()
    ) -> "PoolState":
        """Without what is too old to matter, and without nodes that are not there any more.

        `standing`: drains whose note stands on a node. Of them it is never forgotten that they are over: else one
        whose note could not be taken off for an hour would go on.
        """
        there, noted = set(nodes), set(standing)
        far, past = max(FORGET * 7200, terms.closed), self.caught_up(now)
        return change(
            past,
            under={node: since for node, since in past.under.items() if node in there},
            failures={n: f for n, f in past.failures.items() if n in there and f[1] > now - far},
            evictions=tuple(when for when in past.evictions if when > now - HOUR),
            opened=tuple(when for when in past.opened if when > now - HOUR),
            deleting={node: when for node, when in past.deleting.items() if when > now - DELETION},
            left={node: since for node, since in past.left.items() if node in there},
            moved={pod: when for pod, when in past.moved.items() if when > now - terms.rest},
            ended={drain: when for drain, when in past.ended.items() if when > now - HOUR or drain in noted},
            backoff=None if past.backoff is None or past.backoff.is_forgotten(now) else past.backoff,
            judged={cause: when for cause, when in past.judged.items() if when > now - HOUR or cause in noted},
            emptied={node: kept for node, kept in past.emptied.items() if kept.at > now - HOUR},
        )

    def caught_up(self, now: Seconds) -> "PoolState":
        """Nothing in it later than now: a clock that was ahead of ours must not make anybody wait the longer."""
        return change(
            self,
            under={node: min(since, now) for node, since in self.under.items()},
            failures={node: (times, min(last, now)) for node, (times, last) in self.failures.items()},
            evictions=tuple(min(when, now) for when in self.evictions),
            opened=tuple(min(when, now) for when in self.opened),
            quiet_until=None if self.quiet_until is None else min(self.quiet_until, now + HOUR),
            deleting={node: min(when, now) for node, when in self.deleting.items()},
            left={node: min(since, now) for node, since in self.left.items()},
            moved={pod: min(when, now) for pod, when in self.moved.items()},
            ended={drain: min(when, now) for drain, when in self.ended.items()},
            closed=None if self.closed is None else min(self.closed, now),
            backoff=None if self.backoff is None else change(self.backoff, last=min(self.backoff.last, now)),
            judged={cause: min(when, now) for cause, when in self.judged.items()},
            emptied={node: change(kept, at=min(kept.at, now)) for node, kept in self.emptied.items()},
        )

    def observations(self, emptying: Mapping[str, str]) -> Observations:
        """As a plan takes them; `emptying`: node → pool of the drains that are under way."""
        failures = {node: Failure(times=times, last=last) for node, (times, last) in self.failures.items()}
        return Observations(under_since=self.under, failures=failures, evictions=self.evictions, draining=emptying)


def is_final(before: PoolState, after: PoolState) -> bool:
    """Whether something ended between the two, so that the former must never count again: a drain or a surge that is
    over, or a pool that was closed or backs off.
    """
    closed = after.closed is not None and after.closed != before.closed
    closed = closed or (after.backoff is not None and after.backoff != before.backoff)
    return closed or bool(after.ended.keys() - before.ended.keys() or before.surged.keys() - after.surged.keys())


def together(memories: Mapping[str, PoolState], emptying: Mapping[str, str]) -> Observations:
    """The observations of all pools: nodes are in one pool each, so nothing is told twice."""
    found = [memory.observations({}) for _, memory in sorted(memories.items())]
    return Observations(
        under_since={node: since for each in found for node, since in each.under_since.items()},
        failures={node: failure for each in found for node, failure in each.failures.items()},
        evictions=tuple(sorted(when for each in found for when in each.evictions)),
        draining=emptying,
    )


def moved(memories: Iterable[PoolState]) -> frozenset[str]:
    """Pods that are left in peace."""
    return frozenset(pod for memory in memories for pod in memory.moved)


def write(memory: PoolState) -> str:
    """What a ConfigMap takes: of too long a memory the older half of the last decisions goes, as often as needed."""
    text = msgspec.json.encode(memory).decode()
    while len(text) > MOST and memory.ring:
        memory = change(memory, ring=memory.ring[len(memory.ring) // 2 + 1 :])
        text = msgspec.json.encode(memory).decode()
    return text


def read(name: str, data: Mapping[str, Any]) -> PoolState | Unreadable:
    """From the data of a ConfigMap of this name. An empty one is a memory without anything in it."""
    text = data.get(KEY, "")
    if not text:
        return PoolState()
    try:
        found = msgspec.json.decode(text, type=PoolState)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return Unreadable(f"ConfigMap {name}", str(error))
    return found if found.v == VERSION else Unreadable(f"ConfigMap {name}", f"version {found.v}, we know {VERSION}")
