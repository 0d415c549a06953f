"""What was a container seen to use, until when, and how sure are we?

Recommendations travel in ConfigMaps `trimtab-recommendations-NNN`, label `trimtab.dev/recommendations: v1`: compact
JSON under `recommendations.json`, with a schema version and a checksum. Memory percentiles are percentiles of the
peaks of intervals, not of instants. What is not known is left out.

    {"schema": 2, "checksum": "<sha256 of workloads, keys sorted>", "workloads":
      {"NAMESPACE/KIND/NAME": {"CONTAINER": {
        "cpu": {"p5": "12m", "p50": "80m", "p90": "190m", "p95": "230m", "p99": "410m", "max": "800m", "confidence": 1,
                "request": "250m", "share": 0.98, "passed": 3, "record": 9, "signs": ["grows"]},
        "memory": {…}, "days": 14, "samples": 20160, "confidence": 1,
        "at": 1768780800, "last": 1768780740, "until": 1769990340}}}}

Schema 1, which had no dates and one confidence for both resources, is read as well: after an upgrade pods get what they
got before until the recommender has written anew.

Which of several ConfigMaps holds what is known of this workload?

The one its namespace's hash says, so that a namespace is in one place. Where a ConfigMap grows too large there are
twice as many; where one namespace alone is too large, or a good part of a shard that is, its workloads are spread over
neighbours. The same workloads and the same sizes always lead to the same places.

What makes a recommendation doubtful, and which doubts a request takes away because it covers what they are about.

What does a VPA say that a container should ask for?

Its target is a P90 with a margin, of days that fade: a number to start from where no usage was seen, and no percentile
of ours. A VPA in mode `Off` says it to people only.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import msgspec

from trimtab.cluster import quantity
from trimtab.cluster.api.autoscaling import VerticalPodAutoscaler
from trimtab.cluster.quantity import NotAQuantity, Written, is_quantity, parse
from trimtab.cluster.reason import Code, NotYet, Unreadable
from trimtab.cluster.timestamps import Seconds

LABEL = "trimtab.dev/recommendations"
KEY = "recommendations.json"
SCHEMA = 2
READABLE = (1, 2)
LASTS_SECONDS = 14 * 86400
"""How long a recommendation lasts after its last sample where neither it nor a policy says otherwise."""

_LATEST = 32_503_680_000
"""The year 3000 in seconds since 1970."""

NO_RECOMMENDATION = Code(
    "no-recommendation",
    "Nothing is known yet of what this container uses.",
    "The policy's `otherwise` is used. Usage is known after a day of history; see `trimtab recommend`.",
)


class Percentiles(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What one container used of one resource, and the request that follows; amounts are quantities.

    A struct that the collector does not follow, as `ContainerUsage`: tens of thousands are held, and refer to nothing.
    """

    p5: Written
    p50: Written | None = None
    p90: Written | None = None
    p95: Written
    p99: Written | None = None
    max: Written | None = None
    request: Written | None = None
    """What the recommender's own rule (`adaptive`) asks for, all bounds in it; None where it has no answer."""
    share: float | None = None
    """The percentile of recent days that `request` is, 0 to 1."""
    passed: int = 0
    """On how many of `record` days the use was above the P95 of the days before."""
    record: int = 0
    """How many days of its own record were looked at."""
    bound: str = ""
    """What set `request` instead of the percentile: last-day, largest-pod, oom-kill or three-times; empty: nothing."""
    floor: Written | None = None
    """Of memory: what a container that was killed for want of it needs at least, whatever the rule says."""
    kills: int = 0
    """How many kills for want of memory `floor` comes from."""
    killed: Seconds | None = None
    """When the last of these kills was."""
    confidence: float | None = None
    """0 to 1; None where the document gives none."""
    signs: tuple[str, ...] = ()
    """Reason codes of what lowers the confidence. A code of a newer version is kept."""
    pod: str = ""
    """The pod that uses far more than the others."""
    pod_use: Written | None = None
    """What that pod uses steadily."""
    young: bool = False
    """The history is younger than a day: the numbers may fill a missing request or raise one, and lower none."""

    def of(self, percentile: Decimal) -> Written | None:
        """The amount at one of the published percentiles (see `usage_rule`); None where it is not published."""
        found: Written | None = getattr(self, "max" if percentile == 100 else f"p{percentile.normalize():f}", None)
        return found


class ContainerUsage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False,
                     rename={"computed_at": "at", "last_sample_at": "last", "ends_at": "until"}):  # fmt: skip
    """One container of one workload. A resource that is None was not seen enough."""

    cpu: Percentiles | None = None
    memory: Percentiles | None = None
    days: float | None = None
    samples: int | None = None
    confidence: float | None = None
    """0 to 1, of the resource that is known less well; None where nobody told."""
    computed_at: Seconds | None = None
    last_sample_at: Seconds | None = None
    """The newest usage that it rests on."""
    ends_at: Seconds | None = None
    """When it ends: workloads made after that do not get it. None: no end, as in schema 1."""

    def of(self, resource: str) -> Percentiles | None:
        return self.cpu if resource == "cpu" else self.memory if resource == "memory" else None

    def confidence_of(self, resource: str) -> float | None:
        """0 to 1; None where neither the resource nor the container has one."""
        percentiles = self.of(resource)
        own = percentiles.confidence if percentiles is not None else None
        return self.confidence if own is None else own

    def end(self, max_age_seconds: int | None = None) -> Seconds | None:
        """When it ends: `max_age_seconds` after its last sample, or else when it says itself; None: never."""
        if max_age_seconds is not None and self.last_sample_at is not None:
            return self.last_sample_at + max_age_seconds
        return self.ends_at


Workloads = dict[str, dict[str, ContainerUsage]]


class _Payload(msgspec.Struct, frozen=True, kw_only=True):
    schema: int
    checksum: str = ""
    workloads: Workloads = {}


@dataclass(frozen=True, slots=True)
class Recommendations:
    """Everything known about usage, by workload."""

    workloads: Mapping[str, Mapping[str, ContainerUsage]] = field(default_factory=dict)
    missing: Mapping[tuple[str, str], NotYet] = field(default_factory=dict)
    """(workload, container) → what there is of what it takes, where somebody who gathers told it; nothing of it is
    published."""

    def find(self, namespace: str, kind: str, name: str, container: str) -> ContainerUsage | NotYet:
        """What the container was seen to use, or why that is not known."""
        workload = f"{namespace}/{kind}/{name}"
        known = self.workloads.get(workload, {}).get(container)
        if known is not None:
            return known
        lacking = self.missing.get((workload, container))
        if lacking is not None:
            seen = f"{lacking.reason} (container {container}): {lacking.have} of {lacking.need}"
            return NotYet(reason=lacking.reason.code(seen), have=lacking.have, need=lacking.need)
        sentence = f"no usage is known of container {container} of {kind} {namespace}/{name}"
        return NotYet(reason=NO_RECOMMENDATION(sentence), have="no history", need="a day of usage")


def checksum(workloads: Mapping[str, Any]) -> str:
    """SHA-256 over the workloads as compact JSON with sorted keys."""
    return hashlib.sha256(msgspec.json.encode(msgspec.to_builtins(workloads), order="sorted")).hexdigest()


def encode(workloads: Mapping[str, Mapping[str, ContainerUsage]]) -> str:
    """The payload of one shard."""
    payload = _Payload(
        schema=SCHEMA, checksum=checksum(workloads), workloads={k: dict(v) for k, v in workloads.items()}
    )
    return msgspec.json.encode(payload, order="sorted").decode()


def decode(where: str, payload: str) -> Workloads | Unreadable:
    """One shard's workloads; Unreadable when damaged, of another schema, or with impossible quantities."""
    try:
        found = msgspec.json.decode(payload, type=_Payload)
        # What was written is what was summed: a count of days as 14 must not be read back as 14.0 and differ.
        written = msgspec.json.decode(payload).get("workloads", {})
    except (msgspec.DecodeError, RecursionError) as error:
        return Unreadable(where, str(error))
    if found.schema not in READABLE:
        return Unreadable(where, f"schema {found.schema}; this version reads schema 1 and {SCHEMA}")
    if found.checksum and found.checksum != checksum(written):
        return Unreadable(where, "the checksum does not match: it was changed or cut short")
    bad = next(_impossible(found.workloads), None)
    return Unreadable(where, bad) if bad else found.workloads


def _impossible(workloads: Workloads) -> Iterator[str]:
    for workload, containers in workloads.items():
        for name, usage in containers.items():
            for wrong in (*_odd(usage), *(text for r in ("cpu", "memory") for text in _wrong(r, usage.of(r)))):
                yield f"{workload}, container {name}: {wrong}"


def _wrong(resource: str, seen: Percentiles | None) -> Iterator[str]:
    """Percentiles ascend from nothing on; those that are told at all."""
    if seen is None:
        return
    told = [v for v in (seen.p5, seen.p50, seen.p90, seen.p95, seen.p99, seen.max) if v is not None]
    beside = [v for v in (seen.request, seen.floor, seen.pod_use) if v is not None]
    if not all(map(is_quantity, (*told, *beside))):
        yield f"{resource} is no quantity"
    elif (amounts := [0, *map(parse, told)]) != sorted(amounts) or any(parse(v) < 0 for v in beside):
        yield f"{resource} is below zero, or its percentiles do not ascend"
    if any(share is not None and not 0 <= share <= 1 for share in (seen.confidence, seen.share)):
        yield f"the confidence or the share of {resource} is not between 0 and 1"
    if min(seen.passed, seen.record, seen.kills, seen.killed or 0) < 0:
        yield f"a count of {resource} is below zero"


def _odd(usage: ContainerUsage) -> Iterator[str]:
    if any(told is not None and told < 0 for told in (usage.days, usage.samples)):
        yield "it was seen for less than nothing"
    if usage.confidence is not None and not 0 <= usage.confidence <= 1:
        yield "its confidence is not between 0 and 1"
    moments = (usage.computed_at, usage.last_sample_at, usage.ends_at)
    if any(moment is not None and not 0 <= moment <= _LATEST for moment in moments):
        yield "one of its dates is before 1970 or after 3000"


LIMIT = 900_000
"""Bytes of one shard. A ConfigMap holds 1 MiB (1 048 576) of data, keys and values together."""
MOST = 1024
"""Shards at the most: a gigabyte, half of what an etcd holds unless told otherwise."""


SEVERAL, PART = 16, 4
"""From so many shards on a namespace that is a fourth of one that became too large is spread. Among many shards some
have two or three large namespaces, however many shards there are."""


class ShardOverflow(ValueError):
    """More than all shards together hold."""


@dataclass(frozen=True, slots=True)
class ShardLayout:
    """Workloads are told as NAMESPACE/KIND/NAME."""

    count: int = 1
    """A power of two."""
    widths: Mapping[str, int] = field(default_factory=dict)
    """Namespace → over how many shards it is spread; 1 where it is not here."""
    by_workload: bool = False
    """Does each workload have its own place, whatever its namespace? Then all shards are of about one size."""

    def place(self, workload: str) -> int:
        if self.by_workload:
            return _hash(workload) % self.count
        namespace = workload.partition("/")[0]
        width = self.widths.get(namespace, 1)
        beside = _hash(workload) % width if width > 1 else 0
        return (_hash(namespace) + beside) % self.count

    def places(self, namespace: str) -> set[int]:
        """Every shard that may hold a workload of it."""
        first, width = _hash(namespace), self.widths.get(namespace, 1)
        return {(first + beside) % self.count for beside in range(width)}

    def grown(self, held: Iterable[str]) -> ShardLayout:
        """For a shard that became too large with these workloads in it. Raises TooMuch."""
        namespaces = Counter(workload.partition("/")[0] for workload in held)
        (largest, workloads), *others = namespaces.most_common()
        if self.by_workload or (others and (self.count < SEVERAL or PART * workloads < namespaces.total())):
            return replace(self, count=_doubled(self.count))
        width = _doubled(self.widths.get(largest, 1))
        return replace(self, count=max(self.count, width), widths={**self.widths, largest: width})


def _doubled(count: int) -> int:
    if count >= MOST:
        raise ShardOverflow(f"more than {MOST} shards of {LIMIT} bytes")
    return 2 * count


def _hash(text: str) -> int:
    """The same on every machine and in every life."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


@dataclass(slots=True)
class ShardAssignment:
    """Where each workload was written last. It leaves a shard only after it was written to its new one: whoever is
    killed between two writes leaves something twice, and never nothing."""

    of: dict[str, int] = field(default_factory=dict)

    def plan(self, layout: ShardLayout, workloads: Collection[str]) -> dict[int, list[str]]:
        """Shard → what has its place there; shards that only hold what has to leave come with an empty list."""
        found: dict[int, list[str]] = {shard: [] for shard in self.of.values()}
        for workload in sorted(workloads):
            found.setdefault(layout.place(workload), []).append(workload)
        return found

    def waiting(self, shard: int, layout: ShardLayout, workloads: Collection[str]) -> list[str]:
        """What stands in a shard until its new place is written."""
        return [w for w in workloads if self.of.get(w) == shard and layout.place(w) != shard]

    def moved(self, shard: int, workloads: Iterable[str]) -> None:
        """These were written there."""
        self.of.update(dict.fromkeys(workloads, shard))

    def forget(self, workloads: Collection[str]) -> None:
        """All but these are gone."""
        self.of = {workload: shard for workload, shard in self.of.items() if workload in workloads}


CHANGED, GROWS, PODS_DIFFER, RARE_PEAKS = "changed-recently", "grows", "pods-differ", "rare-peaks"
LEFT_OF_CONFIDENCE = {CHANGED: 0.45, GROWS: 0.7, PODS_DIFFER: 0.45, RARE_PEAKS: 0.45}
"""What each leaves of the confidence: one of the three that may mean a kill or an eviction leaves less than half."""
RARE_TIMES = 1.25
"""A peak is not covered that is more than so many times the request."""


def remaining(resource: str, usage: Percentiles, amount: int) -> tuple[str, ...]:
    """The signs of a recommendation that still hold of a request of this amount (millicores or bytes), which need not
    be the one that they were found for: the average of the pod that differs is covered, or the largest peak is."""

    about = {PODS_DIFFER: (usage.pod_use, 1.0), RARE_PEAKS: (usage.max, RARE_TIMES)}

    def is_covered(sign: str) -> bool:
        use, times = about.get(sign, (None, 1.0))
        return use is not None and quantity.scheduler_value(resource, use) <= times * amount

    return tuple(sign for sign in usage.signs if not is_covered(sign))


def confidence_at(resource: str, usage: Percentiles, amount: int, confidence: float | None) -> float | None:
    """The confidence, 0 to 1, of a request of this amount: what the doubts that it takes away had left of it is given
    back. None where no confidence is known."""
    if confidence is None:
        return None
    gone = set(usage.signs) - set(remaining(resource, usage, amount))
    if not gone:
        return confidence
    left = math.prod(LEFT_OF_CONFIDENCE.get(sign, 1.0) for sign in gone)
    return min(1.0, max(confidence, round(confidence / left, 2)))


RESOURCES = ("cpu", "memory")


@dataclass(frozen=True, slots=True)
class VpaRecommendation:
    """Of one resource of one container."""

    vpa: str
    target: int
    """The scheduler's number: millicores, or bytes; at least 1."""


def given(vpa: VerticalPodAutoscaler) -> Iterator[tuple[str, str, VpaRecommendation]]:
    """(container, resource, advice) of all that its status recommends; what is no quantity is left out."""
    for one in vpa.status.recommendation.container_recommendations:
        for resource in RESOURCES:
            try:
                target = quantity.scheduler_value(resource, one.target.get(resource, 0))
            except NotAQuantity:
                continue
            if target > 0:
                yield one.container_name, resource, VpaRecommendation(vpa.metadata.name, target)
