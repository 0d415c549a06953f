"""What does the cluster show of a policy's effect? The `status` of a PodPolicy, written by the watchdog alone.

All numbers are of pods that run now.
"""

from typing import Any

import msgspec

MATCHED = "Pods the policy means, its rollout counted."
CHANGED = "Pods that carry its change."
UNPATCHED = "Pods it would change and has not: older than it, or missed by the webhook."
WOULD = "Pods it would change, were it not in mode warn or audit."
SKIPPED = "Pods its match means that are left out: opted out, not in the rollout, paused."
OVERRULED = "Pods of which a policy of higher priority decided something it wanted otherwise."
LAST_ERROR = "What is wrong with the document, or how one of its actions failed. Empty while all is well."
OBSERVED = "The generation of the spec that all this is about."
HARM = "How pods fared that it means and did not change: what those it changes are compared with."

LOADED, HARM_BRAKE = "Loaded", "HarmBrake"
"""Types of conditions."""


class StatusPart(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Every field is always there."""


class StatusCondition(StatusPart, frozen=True, kw_only=True):
    """As everywhere in Kubernetes."""

    type: str
    status: str
    reason: str
    message: str
    last_transition_time: str
    observed_generation: int = 0


class HarmStatus(StatusPart, frozen=True, kw_only=True):
    """The time before the policy, so that it outlives a restart."""

    since: str
    """The version of the policy it is about: when its spec was written."""
    pods: int = 0
    oom_killed: int = 0
    evicted: int = 0
    unschedulable: int = 0


class PolicyStatus(StatusPart, frozen=True, kw_only=True):
    observed_generation: int = 0
    matched: int = 0
    changed: int = 0
    unpatched: int = 0
    would: int = 0
    skipped: int = 0
    overruled: int = 0
    last_error: str = ""
    conditions: tuple[StatusCondition, ...] = ()
    harm: HarmStatus | None = None

    def condition(self, kind: str) -> StatusCondition | None:
        return next((found for found in self.conditions if found.type == kind), None)


def read(value: Any) -> PolicyStatus:
    """What stands there; an empty one where nothing does, or nothing that we wrote."""
    try:
        return msgspec.convert(value, PolicyStatus) if value else PolicyStatus()
    except msgspec.ValidationError:
        return PolicyStatus()


def plain(status: PolicyStatus) -> dict[str, Any]:
    """As it is sent."""
    found: dict[str, Any] = msgspec.to_builtins(status)
    return {name: value for name, value in found.items() if value is not None}


def status_schema() -> dict[str, Any]:
    """For the CustomResourceDefinition."""
    numbers = {
        "observedGeneration": OBSERVED, "matched": MATCHED, "changed": CHANGED, "unpatched": UNPATCHED,
        "would": WOULD, "skipped": SKIPPED, "overruled": OVERRULED,
    }  # fmt: skip
    return {
        "type": "object",
        "description": "What the watchdog sees of the policy's effect, in pods that run now.",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {
            **{name: {"type": "integer", "format": "int64", "description": says} for name, says in numbers.items()},
            "lastError": {"type": "string", "description": LAST_ERROR},
            "conditions": _conditions(),
            "harm": _harm(),
        },
    }


def _conditions() -> dict[str, Any]:
    texts = ("type", "status", "reason", "message", "lastTransitionTime")
    properties: dict[str, Any] = {name: {"type": "string"} for name in texts}
    properties["observedGeneration"] = {"type": "integer", "format": "int64"}
    return {
        "type": "array",
        "description": "Loaded: the document makes sense. HarmBrake: the policy was put to warn, and why.",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {"type": "object", "required": ["type", "status"], "properties": properties},
    }


def _harm() -> dict[str, Any]:
    numbers = {name: {"type": "integer"} for name in ("pods", "oomKilled", "evicted", "unschedulable")}
    return {"type": "object", "description": HARM, "properties": {"since": {"type": "string"}, **numbers}}
