"""Recommendations: the usage of each container, its validity and its confidence; how they are stored and judged.

Recommendations are stored in ConfigMaps `trimtab-recommendations-NNN`, label `trimtab.dev/recommendations: v1`: compact
JSON under `recommendations.json`, with a schema version and a checksum. Memory percentiles are percentiles of the peaks
of intervals, not of instants. Unknown values are left out.

    {"schema": 2, "checksum": "<sha256 of workloads, keys sorted>", "workloads":
      {"NAMESPACE/KIND/NAME": {"CONTAINER": {
        "cpu": {"p5": "12m", "p50": "80m", "p90": "190m", "p95": "230m", "p99": "410m", "max": "800m", "confidence": 1,
                "request": "250m", "share": 0.98, "passed": 3, "record": 9, "signs": ["grows"]},
        "memory": {…}, "days": 14, "samples": 20160, "confidence": 1,
        "at": 1768780800, "last": 1768780740, "until": 1769990340}}}}

Schema 1, which has no dates and one confidence for both resources, is read as well: after an upgrade pods get the same
requests as before until the recommender writes again.

Each ConfigMap is a shard. The hash of its namespace assigns a workload to a shard, so that a namespace is in one shard.
If a shard becomes too large, the number of shards doubles; if one namespace alone is too large, or is a large part of
such a shard, its workloads are spread over neighbouring shards. The same workloads and the same sizes always give the
same assignment.

A sign (`Percentiles.signs`) is a reason code that lowers the confidence of a recommendation, such as one for rare
peaks. If a request covers the usage that the sign warns of, the sign does not hold for this request.

The target of a VerticalPodAutoscaler is a P90 of samples with decaying weights, plus a margin. It is none of Trimtab's
percentiles, and serves as a first number where no usage is known. A VPA in mode `Off` only informs people.
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
from trimtab.cluster.bounded_decode import BytesRefused, decode_json
from trimtab.cluster.owner import OwnerKey, former_stored
from trimtab.cluster.quantity import NotAQuantity, Written, is_quantity, parse
from trimtab.cluster.reason import Code, NotYet, Unreadable, format_shortage
from trimtab.cluster.timestamps import Seconds

RECOMMENDATIONS_LABEL = "trimtab.dev/recommendations"
PAYLOAD_KEY = "recommendations.json"
SCHEMA_VERSION = 2
READABLE_SCHEMAS = (1, 2)
VALIDITY_SECONDS = 14 * 86400
"""How long a recommendation is valid after its last sample, in seconds, unless the recommendation or a policy gives
another time."""

LOWERING_CONFIDENCE = 0.5
"""The confidence, from 0 to 1, from which a recommendation may lower a request, where the policy sets no other one."""

# The year 3000 in seconds since 1970.
_LATEST_SECONDS = 32_503_680_000

NO_RECOMMENDATION = Code(
    "no-recommendation",
    "Trimtab does not know the usage of this container yet.",
    "Nothing to do: the policy's `otherwise` is used until a day of usage is known. See `trimtab recommend`.",
)


class Percentiles(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The usage of one resource by one container, and the request that follows from it; amounts are quantities.

    Python's garbage collector tracks neither this class nor `ContainerUsage`: tens of thousands of them are in memory,
    and none has a reference cycle.
    """

    p5: Written
    p50: Written | None = None
    p90: Written | None = None
    p95: Written
    p99: Written | None = None
    max: Written | None = None
    request: Written | None = None
    """The request that the recommender's own rule (`adaptive`) gives, with all bounds applied, or None if the rule
    gives none."""
    share: float | None = None
    """The percentile of the usage of recent days that `request` equals, as a share from 0 to 1."""
    passed: int = 0
    """The number of days, out of `record`, on which the usage was above the P95 of the days before."""
    record: int = 0
    """The number of days for which the recommendation was compared with the usage."""
    bound: str = ""
    """What determined `request` instead of the percentile: last-day, largest-pod, oom-kill or three-times. Empty if the
    percentile did."""
    floor: Written | None = None
    """For memory: the smallest request that is allowed after an OOM kill of the container, whatever the rule gives."""
    kills: int = 0
    """The number of OOM kills that led to `floor`."""
    killed: Seconds | None = None
    """The time of the last of the OOM kills that led to `floor`."""
    confidence: float | None = None
    """The confidence in this resource's numbers, from 0 to 1, or None if the document has none."""
    signs: tuple[str, ...] = ()
    """Reason codes of what lowers the confidence. Codes that only a newer version knows are kept."""
    pod: str = ""
    """The pod that uses far more than the other pods of the workload; empty if there is none."""
    pod_use: Written | None = None
    """What the pod named in `pod` uses over a long time."""
    young: bool = False
    """Whether there is less than a day of history. The numbers may then add a missing request or raise one, but may not
    lower any."""

    def amount_at(self, percentile: Decimal) -> Written | None:
        """Returns the amount at one of the published percentiles (see `usage_rule`), or None if it is not published."""
        # The names of the fields are those of the JSON document: p5, p50, …; `max` is the 100th percentile.
        amount: Written | None = getattr(self, "max" if percentile == 100 else f"p{percentile.normalize():f}", None)
        return amount


class ContainerUsage(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    gc=False,
    rename={"computed_at": "at", "last_sample_at": "last", "ends_at": "until"},
):
    """The usage of one container of one workload. A resource without enough samples is None."""

    cpu: Percentiles | None = None
    memory: Percentiles | None = None
    days: float | None = None
    samples: int | None = None
    confidence: float | None = None
    """The confidence, from 0 to 1, of the resource whose confidence is lower, or None if the document has none."""
    computed_at: Seconds | None = None
    last_sample_at: Seconds | None = None
    """The time of the newest sample."""
    ends_at: Seconds | None = None
    """When the recommendation stops being valid: pods that are created later do not get it. None: never, as in schema
    1."""

    def percentiles_of(self, resource: str) -> Percentiles | None:
        """Returns the percentiles of cpu or memory, or None for any other resource."""
        return self.cpu if resource == "cpu" else self.memory if resource == "memory" else None

    def confidence_of(self, resource: str) -> float | None:
        """Returns the confidence of a resource, from 0 to 1: its own, otherwise the container's, or None if neither has
        one."""
        percentiles = self.percentiles_of(resource)
        # Schema 2 has a confidence for each resource; schema 1 has only the container's.
        own = percentiles.confidence if percentiles is not None else None
        return self.confidence if own is None else own

    def validity_end(self, max_age_seconds: int | None = None) -> Seconds | None:
        """Returns when the usage stops being valid: `max_age_seconds` after the last sample if that is given, otherwise
        at `ends_at`. None: it stays valid."""
        if max_age_seconds is not None and self.last_sample_at is not None:
            # A policy that limits the age counts from the data, not from the computation: a recommender that runs on
            # without new samples must not renew its recommendations.
            return self.last_sample_at + max_age_seconds
        return self.ends_at


Workloads = dict[str, dict[str, ContainerUsage]]


class _Payload(msgspec.Struct, frozen=True, kw_only=True):
    schema: int
    checksum: str = ""
    workloads: Workloads = {}


@dataclass(frozen=True, slots=True)
class Recommendations:
    """The known usage of all workloads, by workload."""

    workloads: Mapping[str, Mapping[str, ContainerUsage]] = field(default_factory=dict)
    missing: Mapping[tuple[str, str], NotYet] = field(default_factory=dict)
    """(workload, container) → how much data exists and how much is needed, for containers without a recommendation.
    Only a collector in the same process provides this; it is not published."""

    def find_usage(self, owner: OwnerKey, container: str) -> ContainerUsage | NotYet:
        """Returns the usage of the container, or a `NotYet` that says why it is not known."""
        workload = owner.stored
        usage = self.workloads.get(workload, {}).get(container)
        if usage is None and (former := former_stored(owner)) is not None:
            usage = self.workloads.get(former, {}).get(container)
        if usage is not None:
            return usage
        # The collector knows more than "nothing": say how much history there is.
        not_yet = self.missing.get((workload, container))
        if not_yet is not None:
            sentence = f"{not_yet.reason} (container {container}; {format_shortage(not_yet.have, not_yet.need)})"
            return NotYet(reason=not_yet.reason.code(sentence), have=not_yet.have, need=not_yet.need)
        unknown = f"no usage is known of container {container} of {owner.described}"
        return NotYet(reason=NO_RECOMMENDATION(unknown), have="no history", need="a day of usage")


def workloads_checksum(workloads: Mapping[str, Any]) -> str:
    """Returns the SHA-256 of the workloads as compact JSON with sorted keys."""
    # Sorted keys: two recommenders that compute the same numbers must write the same checksum.
    return hashlib.sha256(msgspec.json.encode(msgspec.to_builtins(workloads), order="sorted")).hexdigest()


def encode(workloads: Mapping[str, Mapping[str, ContainerUsage]]) -> str:
    """Returns the JSON text that is stored in one shard."""
    payload = _Payload(
        schema=SCHEMA_VERSION,
        checksum=workloads_checksum(workloads),
        workloads={k: dict(v) for k, v in workloads.items()},
    )
    return msgspec.json.encode(payload, order="sorted").decode()


def decode(where: str, payload: str) -> Workloads | Unreadable:
    """Returns one shard's workloads; Unreadable if it is damaged, has another schema, or contains impossible
    quantities."""
    try:
        decoded = decode_json(payload, _Payload)
        # The checksum is over the JSON as written: 14 days decoded into a float would be encoded as 14.0.
        plain_workloads = msgspec.json.decode(payload).get("workloads", {})
    except (msgspec.DecodeError, BytesRefused, RecursionError) as error:
        return Unreadable(where, str(error))
    if decoded.schema not in READABLE_SCHEMAS:
        return Unreadable(
            where,
            f"the recommendation has the schema version {decoded.schema}, but this version of Trimtab reads "
            f"the versions 1 and {SCHEMA_VERSION}",
        )
    # A document that a person wrote by hand may leave the checksum out.
    if decoded.checksum and decoded.checksum != workloads_checksum(plain_workloads):
        return Unreadable(
            where, "the checksum of the recommendation does not match, so its text was changed or cut short"
        )
    # One impossible number makes the whole shard suspect: a partial one would mix good and damaged recommendations.
    problem = next(_problems(decoded.workloads), None)
    return Unreadable(where, problem) if problem else decoded.workloads


def _problems(workloads: Workloads) -> Iterator[str]:
    for workload, containers in workloads.items():
        for name, usage in containers.items():
            for problem in (
                *_usage_problems(usage),
                *(text for r in ("cpu", "memory") for text in _percentile_problems(r, usage.percentiles_of(r))),
            ):
                yield f"{workload}, container {name}: {problem}"


def _percentile_problems(resource: str, percentiles: Percentiles | None) -> Iterator[str]:
    """Yields a sentence about each problem of one resource: the percentiles that are present must ascend from zero."""
    if percentiles is None:
        return
    ascending = [
        v
        for v in (percentiles.p5, percentiles.p50, percentiles.p90, percentiles.p95, percentiles.p99, percentiles.max)
        if v is not None
    ]
    other_amounts = [v for v in (percentiles.request, percentiles.floor, percentiles.pod_use) if v is not None]
    # Checked before any comparison: `parse` raises for what is not a quantity.
    if not all(map(is_quantity, (*ascending, *other_amounts))):
        yield f"the {resource} amount is not a quantity"
    elif (amounts := [0, *map(parse, ascending)]) != sorted(amounts) or any(parse(v) < 0 for v in other_amounts):
        yield f"the {resource} amount is negative, or its percentiles do not ascend"
    if any(share is not None and not 0 <= share <= 1 for share in (percentiles.confidence, percentiles.share)):
        yield f"the confidence or the share of {resource} is not between 0 and 1"
    if min(percentiles.passed, percentiles.record, percentiles.kills, percentiles.killed or 0) < 0:
        yield f"a count of {resource} samples or days is negative"


def _usage_problems(usage: ContainerUsage) -> Iterator[str]:
    if any(number is not None and number < 0 for number in (usage.days, usage.samples)):
        yield "the number of days or of samples is negative"
    if usage.confidence is not None and not 0 <= usage.confidence <= 1:
        yield "the confidence is not between 0 and 1"
    moments = (usage.computed_at, usage.last_sample_at, usage.ends_at)
    if any(moment is not None and not 0 <= moment <= _LATEST_SECONDS for moment in moments):
        yield "a date is before 1970 or after 3000"


MAX_SHARD_BYTES = 900_000
"""Maximum size of one shard in bytes. A ConfigMap holds 1 MiB (1 048 576 bytes) of data, keys and values together."""
MAX_SHARDS = 1024
"""Maximum number of shards. Together they hold about a gigabyte, half of etcd's default quota."""


MIN_SHARDS_TO_SPREAD, SPREAD_PART = 16, 4
"""When a shard is too large and there are at least this many shards (16), a namespace with more than this part (a
fourth) of the shard's workloads is spread over several shards.

Among many shards, some always hold two or three large namespaces; to add more shards would not separate them.
"""


class ShardOverflow(ValueError):
    """Raised when there is more data than all shards together can hold."""


@dataclass(frozen=True, slots=True)
class ShardLayout:
    """Assigns each workload, named NAMESPACE/KIND/NAME, to a shard."""

    count: int = 1
    """The number of shards, a power of two."""
    widths: Mapping[str, int] = field(default_factory=dict)
    """Namespace → number of shards over which its workloads are spread. A namespace that is not in the mapping has one
    shard."""
    by_workload: bool = False
    """Whether the workload's own name decides its shard, instead of its namespace's. All shards then have about the
    same size."""

    def shard_of(self, workload: str) -> int:
        """Returns the shard of a workload."""
        if self.by_workload:
            return _stable_hash(workload) % self.count
        namespace = workload.partition("/")[0]
        width = self.widths.get(namespace, 1)
        # Neighbouring shards: an observer can list the shards of a namespace without knowing its workloads.
        offset = _stable_hash(workload) % width if width > 1 else 0
        return (_stable_hash(namespace) + offset) % self.count

    def shards_of_namespace(self, namespace: str) -> set[int]:
        """Returns every shard that can hold a workload of the namespace."""
        first, width = _stable_hash(namespace), self.widths.get(namespace, 1)
        return {(first + offset) % self.count for offset in range(width)}

    def with_more_shards(self, names: Iterable[str]) -> ShardLayout:
        """Returns the next larger layout. It is needed because a shard, which holds these workloads, became too large.
        Raises ShardOverflow if there is no larger layout."""
        namespaces = Counter(workload.partition("/")[0] for workload in names)
        # Doubling helps only if several namespaces share the shard. A namespace that is alone in it, or dominates it,
        # would follow its hash into one shard of any layout, so it is spread instead.
        (largest, workloads), *others = namespaces.most_common()
        if self.by_workload or (
            others and (self.count < MIN_SHARDS_TO_SPREAD or SPREAD_PART * workloads < namespaces.total())
        ):
            return replace(self, count=_doubled(self.count))
        width = _doubled(self.widths.get(largest, 1))
        return replace(self, count=max(self.count, width), widths={**self.widths, largest: width})


def _doubled(count: int) -> int:
    if count >= MAX_SHARDS:
        raise ShardOverflow(f"the recommendations need more than {MAX_SHARDS} ConfigMaps of {MAX_SHARD_BYTES} bytes")
    return 2 * count


def _stable_hash(text: str) -> int:
    """Returns a hash that is the same on every machine and after a restart, unlike Python's `hash`."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


@dataclass(slots=True)
class ShardAssignment:
    """The shard in which each workload was last written.

    A workload is removed from its old shard only after it was written to its new shard. If the process is killed
    between the two writes, the workload is in both shards, and is not lost."""

    shard_by_workload: dict[str, int] = field(default_factory=dict)
    """Workload → shard."""

    def plan_shards(self, layout: ShardLayout, workloads: Collection[str]) -> dict[int, list[str]]:
        """Returns shard → the workloads that the layout assigns to it. A shard from which every workload moves away has
        an empty list."""
        # Shards that become empty are listed, too: they must be written once more, without the workloads that left.
        workloads_by_shard: dict[int, list[str]] = {shard: [] for shard in self.shard_by_workload.values()}
        for workload in sorted(workloads):
            workloads_by_shard.setdefault(layout.shard_of(workload), []).append(workload)
        return workloads_by_shard

    def workloads_to_move(self, shard: int, layout: ShardLayout, workloads: Collection[str]) -> list[str]:
        """Returns the workloads that are still kept in this shard, until they are written to the shard that the layout
        assigns."""
        return [w for w in workloads if self.shard_by_workload.get(w) == shard and layout.shard_of(w) != shard]

    def record_move(self, shard: int, workloads: Iterable[str]) -> None:
        """Records that these workloads were written to the shard."""
        self.shard_by_workload.update(dict.fromkeys(workloads, shard))

    def retain_only(self, workloads: Collection[str]) -> None:
        """Forgets all workloads that are not among these."""
        self.shard_by_workload = {
            workload: shard for workload, shard in self.shard_by_workload.items() if workload in workloads
        }


CHANGED, GROWS, PODS_DIFFER, RARE_PEAKS = "changed-recently", "grows", "pods-differ", "rare-peaks"
CONFIDENCE_FACTORS = {CHANGED: 0.45, GROWS: 0.7, PODS_DIFFER: 0.45, RARE_PEAKS: 0.45}
"""Reason code in `Percentiles.signs` → the factor by which it multiplies the confidence. Each of the three codes that
warn of an OOM kill or an eviction leaves less than half of the confidence."""
MAX_PEAK_FACTOR = 1.25
"""A peak counts as covered by the request if it is at most this multiple of the request."""


def remaining_signs(resource: str, usage: Percentiles, amount: int) -> tuple[str, ...]:
    """Returns those reason codes in `usage.signs` that still lower the confidence in a request of this amount
    (millicores or bytes).

    The amount may differ from the recommended one. A code is left out if the request covers the usage that the code
    warns of: the average of the pod that differs, or the largest peak."""

    about = {PODS_DIFFER: (usage.pod_use, 1.0), RARE_PEAKS: (usage.max, MAX_PEAK_FACTOR)}

    def is_covered(sign: str) -> bool:
        use, times = about.get(sign, (None, 1.0))
        return use is not None and quantity.scheduler_value(resource, use) <= times * amount

    return tuple(sign for sign in usage.signs if not is_covered(sign))


def confidence_at(resource: str, usage: Percentiles, amount: int, confidence: float | None) -> float | None:
    """Returns the confidence, from 0 to 1, in a request of this amount; None if no confidence is known.

    The given confidence is divided by the factors of those reason codes in `usage.signs` that do not hold for this
    amount."""
    if confidence is None:
        return None
    covered_signs = set(usage.signs) - set(remaining_signs(resource, usage, amount))
    if not covered_signs:
        return confidence
    # The recommender multiplied the confidence by these factors, so that division takes them out again. A sign of a
    # newer version has no factor here and changes nothing.
    factor = math.prod(CONFIDENCE_FACTORS.get(sign, 1.0) for sign in covered_signs)
    return min(1.0, max(confidence, round(confidence / factor, 2)))


RESOURCES = ("cpu", "memory")


VPA_RECOMMENDER_NAME = "trimtab"
"""The name of Trimtab's recommender in `spec.recommenders` of a VPA."""


@dataclass(frozen=True, slots=True)
class VpaRecommendation:
    """The target that a VerticalPodAutoscaler recommends for one resource of one container."""

    vpa: str
    target: int
    """The target in the scheduler's units: millicores or bytes; at least 1."""


def vpa_recommendations(vpa: VerticalPodAutoscaler) -> Iterator[tuple[str, str, VpaRecommendation]]:
    """Yields (container, resource, recommendation) for each target in the VPA's status. Values that are not quantities
    are left out."""
    for container in vpa.status.recommendation.container_recommendations:
        for resource in RESOURCES:
            try:
                target = quantity.scheduler_value(resource, container.target.get(resource, 0))
            except NotAQuantity:
                continue
            # A target of 0 recommends nothing.
            if target > 0:
                yield container.container_name, resource, VpaRecommendation(vpa.metadata.name, target)
