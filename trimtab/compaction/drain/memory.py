"""What must a pool remember over a restart? One value per pool, kept in its own ConfigMap.

under       since when each node has been under the line
failures    drains that did not end well, by node
evictions   when we evicted, the last hour
moved       pods that came to be by our evictions, so that none is moved twice in a short time
strikes     failed drains in a row; closed: since when the pool is closed for them
ring        the last decisions, as records
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import msgspec
from msgspec.structs import replace as change

from trimtab.cluster.moment import Seconds
from trimtab.cluster.reason import Unreadable
from trimtab.compaction.drain.terms import Terms
from trimtab.compaction.observations import HOUR, Failure, Observations

LABEL = "trimtab.dev/state"
"""Label of the ConfigMaps; its value is the pool's name."""
PREFIX = "trimtab-state-"
"""Of their names."""
KEY = "state.json"
REOPENED = "trimtab.dev/reopened"
"""Annotation of the ConfigMap, written by a person's `trimtab compactor resume --pool`: when the pool was reopened."""
VERSION = 1
RING = 200
"""Records that are kept."""
MOST = 900_000
"""Characters of a memory that is kept: a ConfigMap takes a mebibyte in all (apimachinery, MaxSecretSize)."""
FORGET = 12
"""Times the longest back-off after which a failure is forgotten."""


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """One decision, with its reason; Events, metrics, log lines and the history are made of it."""

    at: Seconds
    pool: str
    what: str
    """planned, begun, evicted, refused, emptied, taken, released, dropped, closed, scaled, corrected, unread."""
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


class Memory(msgspec.Struct, frozen=True, omit_defaults=True):
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
    """Node → drain, of those that are under way: so that a node's disappearance is noticed."""
    empty: tuple[str, ...] = ()
    """Of these the nodes that all their pods have left."""
    promised: dict[str, tuple[str, int]] = {}
    """Of these what each saves when it is taken: (unit, amount)."""
    surged: dict[str, int] = {}
    """namespace/Deployment → replicas it had before a drain gave it one more; while that drain is under way."""
    strikes: Annotated[int, msgspec.Meta(ge=0)] = 0
    closed: Seconds | None = None
    saved: int = 0
    """Nodes that were taken after we emptied them, ever."""
    worth: dict[str, int] = {}
    """Unit → what all of them together save."""
    ring: tuple[Record, ...] = ()
    plan: tuple[str, ...] = ()
    """Nodes the last plan would empty, in order."""
    plan_why: str = ""
    """Why nothing was planned in the whole pool, as a code and a sentence; empty where something may be."""
    plan_at: Seconds | None = None
    """When it was made."""
    v: int = VERSION

    def failed(self, node: str, now: Seconds, *, strike: bool) -> "Memory":
        times = self.failures.get(node, (0, 0))[0] + 1
        strikes = self.strikes + 1 if strike else self.strikes
        return change(self, failures={**self.failures, node: (times, now)}, strikes=strikes)

    def succeeded(self, node: str) -> "Memory":
        """A node went as it should: what failed before no longer counts against the pool."""
        failures = {name: failure for name, failure in self.failures.items() if name != node}
        unit, amount = self.promised.get(node, ("", 0))
        worth = {**self.worth, unit: self.worth.get(unit, 0) + amount} if unit else self.worth
        return change(self, failures=failures, strikes=0, saved=self.saved + 1, worth=worth)

    def over(self, node: str, drain: str, now: Seconds) -> "Memory":
        """The drain of this node has ended, however it did."""
        return change(
            self, ended={**self.ended, drain: now}, empty=tuple(name for name in self.empty if name != node),
            drains={name: found for name, found in self.drains.items() if name != node},
            promised={name: found for name, found in self.promised.items() if name != node},
        )  # fmt: skip

    def evicted(self, now: Seconds) -> "Memory":
        return change(self, evictions=(*self.evictions, now))

    def arrived(self, pods: Mapping[str, Seconds], now: Seconds, rest: Seconds) -> "Memory":
        """Successors, with when they came to be; one that has had its rest is like any other pod."""
        new = {pod: came for pod, came in pods.items() if came > now - rest and pod not in self.moved}
        return change(self, moved={**self.moved, **new}) if new else self

    def told(self, *records: Record) -> "Memory":
        return change(self, ring=(*self.ring, *records)[-RING:])

    def tidied(self, now: Seconds, terms: Terms, nodes: Iterable[str], standing: Iterable[str] = ()) -> "Memory":
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
            moved={pod: when for pod, when in past.moved.items() if when > now - terms.rest},
            ended={drain: when for drain, when in past.ended.items() if when > now - HOUR or drain in noted},
        )

    def caught_up(self, now: Seconds) -> "Memory":
        """Nothing in it later than now: a clock that was ahead of ours must not make anybody wait the longer."""
        return change(
            self,
            under={node: min(since, now) for node, since in self.under.items()},
            failures={node: (times, min(last, now)) for node, (times, last) in self.failures.items()},
            evictions=tuple(min(when, now) for when in self.evictions),
            moved={pod: min(when, now) for pod, when in self.moved.items()},
            ended={drain: min(when, now) for drain, when in self.ended.items()},
            closed=None if self.closed is None else min(self.closed, now),
        )

    def observations(self, emptying: Mapping[str, str]) -> Observations:
        """As a plan takes them; `emptying`: node → pool of the drains that are under way."""
        failures = {node: Failure(times=times, last=last) for node, (times, last) in self.failures.items()}
        return Observations(under_since=self.under, failures=failures, evictions=self.evictions, draining=emptying)


def together(memories: Mapping[str, Memory], emptying: Mapping[str, str]) -> Observations:
    """The observations of all pools: nodes are in one pool each, so nothing is told twice."""
    found = [memory.observations({}) for _, memory in sorted(memories.items())]
    return Observations(
        under_since={node: since for each in found for node, since in each.under_since.items()},
        failures={node: failure for each in found for node, failure in each.failures.items()},
        evictions=tuple(sorted(when for each in found for when in each.evictions)),
        draining=emptying,
    )


def moved(memories: Iterable[Memory]) -> frozenset[str]:
    """Pods that are left in peace."""
    return frozenset(pod for memory in memories for pod in memory.moved)


def write(memory: Memory) -> str:
    """What a ConfigMap takes: of too long a memory the older half of the last decisions goes, as often as needed."""
    text = msgspec.json.encode(memory).decode()
    while len(text) > MOST and memory.ring:
        memory = change(memory, ring=memory.ring[len(memory.ring) // 2 + 1 :])
        text = msgspec.json.encode(memory).decode()
    return text


def read(name: str, data: Mapping[str, Any]) -> Memory | Unreadable:
    """From the data of a ConfigMap of this name. An empty one is a memory without anything in it."""
    text = data.get(KEY, "")
    if not text:
        return Memory()
    try:
        found = msgspec.json.decode(text, type=Memory)
    except (msgspec.DecodeError, UnicodeError) as error:
        return Unreadable(f"ConfigMap {name}", str(error))
    return found if found.v == VERSION else Unreadable(f"ConfigMap {name}", f"version {found.v}, we know {VERSION}")
