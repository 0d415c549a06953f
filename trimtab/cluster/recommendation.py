"""What was a container seen to use, and how sure are we?

Recommendations travel in ConfigMaps `trimtab-recommendations-NN`, label `trimtab.dev/recommendations: v1`: compact
JSON under `recommendations.json`, with a schema version and a checksum. Memory percentiles are percentiles of the
peaks of intervals, not of instants.

    {"schema": 1, "checksum": "<sha256 of workloads, keys sorted>", "workloads":
      {"NAMESPACE/KIND/NAME": {"CONTAINER": {"cpu": {"p5": "12m", "p50": "80m", "p95": "230m", "max": "800m"},
                                             "memory": {…}, "days": 14, "samples": 20160, "confidence": 1}}}}
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from trimtab.cluster.quantity import Written, is_quantity, parse
from trimtab.cluster.reason import Code, NotYet, Unreadable

LABEL = "trimtab.dev/recommendations"
KEY = "recommendations.json"
SCHEMA = 1

NO_RECOMMENDATION = Code(
    "no-recommendation",
    "Nothing is known yet of what this container uses.",
    "The policy's `otherwise` is used. Usage is known after a day of history; see `trimtab recommend`.",
)


class Percentiles(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen of one resource of one container, as quantities."""

    p5: Written
    p50: Written | None = None
    p95: Written
    max: Written | None = None


class ContainerUsage(msgspec.Struct, frozen=True, kw_only=True):
    """One container of one workload. A resource that is None was not seen enough."""

    cpu: Percentiles | None = None
    memory: Percentiles | None = None
    days: float | None = None
    samples: int | None = None
    confidence: float | None = None
    """0 to 1, of the resource that is known less well; None where nobody told."""

    def of(self, resource: str) -> Percentiles | None:
        return self.cpu if resource == "cpu" else self.memory if resource == "memory" else None


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
    if found.schema != SCHEMA:
        return Unreadable(where, f"schema {found.schema}; this version reads schema {SCHEMA}")
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
    told = [v for v in (seen.p5, seen.p50, seen.p95, seen.max) if v is not None] if seen else []
    if not all(map(is_quantity, told)):
        yield f"{resource} is no quantity"
    elif (amounts := [0, *map(parse, told)]) != sorted(amounts):
        yield f"{resource} is below zero, or its percentiles do not ascend"


def _odd(usage: ContainerUsage) -> Iterator[str]:
    if any(told is not None and told < 0 for told in (usage.days, usage.samples)):
        yield "it was seen for less than nothing"
    if usage.confidence is not None and not 0 <= usage.confidence <= 1:
        yield "its confidence is not between 0 and 1"
