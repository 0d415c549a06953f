"""The `status` of a PodPolicy, which shows what the policy does in the cluster. Only the watchdog writes it.

All numbers count running pods.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

MATCHED = "Pods that the policy matches and its rollout includes."
CHANGED = "Pods that have the change of the policy."
UNPATCHED = (
    "Pods that lack the change of the policy, because they are older than the policy, or because the webhook did "
    "not receive them."
)
WOULD = "Pods that the policy would change if its mode were `apply`."
SKIPPED = (
    "Pods that the policy matches but does not change, because they are opted out, not in the rollout, or "
    "because Trimtab is paused."
)
OVERRULED = "Pods for which a policy of higher priority decided a field differently."
LAST_ERROR = "The error in the policy document, or the failure of one of its actions. Empty if there is no error."
OBSERVED = "The generation of the spec that this status describes."
BRAKED = (
    "The generation of the spec that the harm brake has set to `warn`: as long as the policy has this generation, it "
    "acts as if its mode were `warn`. 0 if there is none."
)
HARM = (
    "Failures of pods that the policy matches but did not change. They are compared with the failures of the "
    "pods that it changed."
)

LOADED, HARM_BRAKE = "Loaded", "HarmBrake"
"""The types of the status's conditions."""
WARN = "warn"
"""The mode to which the harm brake sets a policy."""


class StatusPart(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The base class of all parts of the status. Every field is always written."""


class StatusCondition(StatusPart, frozen=True, kw_only=True):
    """A condition, with the same fields as in other Kubernetes objects."""

    type: str
    status: str
    reason: str
    message: str
    last_transition_time: str
    observed_generation: int = 0


class HarmStatus(StatusPart, frozen=True, kw_only=True):
    """How often pods failed before the policy applied to them, stored so that the numbers survive a restart of the
    watchdog."""

    since: str
    """The time when the policy's spec was written, which identifies the version of the policy to which these numbers
    belong."""
    pods: int = 0
    oom_killed: int = 0
    evicted: int = 0
    unschedulable: int = 0


class PolicyStatus(StatusPart, frozen=True, kw_only=True):
    """The whole `status` of a PodPolicy."""

    observed_generation: int = 0
    braked_generation: int = 0
    matched: int = 0
    changed: int = 0
    unpatched: int = 0
    would: int = 0
    skipped: int = 0
    overruled: int = 0
    last_error: str = ""
    conditions: tuple[StatusCondition, ...] = ()
    harm: HarmStatus | None = None

    def find_condition(self, kind: str) -> StatusCondition | None:
        """Returns the condition of this type, or None if there is none."""
        return next((condition for condition in self.conditions if condition.type == kind), None)


def decode_status(value: Any) -> PolicyStatus:
    """Returns the status of an object; an empty status if there is none or if Trimtab did not write it."""
    try:
        return msgspec.convert(value, PolicyStatus) if value else PolicyStatus()
    # A status of another version of Trimtab, or one that was edited by hand: it is written anew.
    except msgspec.ValidationError:
        return PolicyStatus()


def is_braked(document: Mapping[str, Any]) -> bool:
    """Returns whether the harm brake has set this version of a PodPolicy object to `warn`.

    The brake is in the status, which only the watchdog may write. It ends with the next change of the spec, which has
    another generation. A document from a file has neither.
    """
    metadata, status = document.get("metadata"), document.get("status")
    if not isinstance(metadata, Mapping) or not isinstance(status, Mapping):
        return False
    generation = metadata.get("generation")
    return isinstance(generation, int) and generation > 0 and status.get(_BRAKED_GENERATION) == generation


_BRAKED_GENERATION = "brakedGeneration"


def encode_brake(generation: int) -> dict[str, Any]:
    """Returns the part of the status that sets this generation of the spec to `warn`."""
    return {_BRAKED_GENERATION: generation}


def encode_status(status: PolicyStatus) -> dict[str, Any]:
    """Returns the status as it is sent to the API server."""
    fields: dict[str, Any] = msgspec.to_builtins(status)
    # A merge patch would delete a field that is null.
    return {name: value for name, value in fields.items() if value is not None}


def status_schema() -> dict[str, Any]:
    """Returns the JSON Schema of the status, for the CustomResourceDefinition."""
    numbers = {
        "observedGeneration": OBSERVED,
        "brakedGeneration": BRAKED,
        "matched": MATCHED,
        "changed": CHANGED,
        "unpatched": UNPATCHED,
        "would": WOULD,
        "skipped": SKIPPED,
        "overruled": OVERRULED,
    }
    return {
        "type": "object",
        "description": "The effect of the policy on running pods, as the watchdog observes it.",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {
            **{name: {"type": "integer", "format": "int64", "description": says} for name, says in numbers.items()},
            "lastError": {"type": "string", "description": LAST_ERROR},
            "conditions": _conditions_schema(),
            "harm": _harm_schema(),
        },
    }


def _conditions_schema() -> dict[str, Any]:
    texts = {
        "type": "The name of the condition.",
        "status": "True, False or Unknown.",
        "reason": "The code of the reason; `trimtab explain CODE` explains it.",
        "message": "The reason in a sentence.",
        "lastTransitionTime": "The time at which the status last changed, RFC 3339.",
    }
    properties: dict[str, Any] = {name: {"type": "string", "description": says} for name, says in texts.items()}
    properties["observedGeneration"] = {"type": "integer", "format": "int64", "description": OBSERVED}
    return {
        "type": "array",
        "description": "Loaded: whether the document is valid. HarmBrake: whether the watchdog set the policy to "
        "warn, and why.",
        "x-kubernetes-list-type": "map",
        # Server-side apply merges conditions by their type, as in core Kubernetes objects.
        "x-kubernetes-list-map-keys": ["type"],
        "items": {"type": "object", "required": ["type", "status"], "properties": properties},
    }


def _harm_schema() -> dict[str, Any]:
    numbers = {
        "pods": "The number of pods that the policy matches and did not change.",
        "oomKilled": "The number of these pods in which a container was killed because it ran out of memory.",
        "evicted": "The number of these pods that were evicted.",
        "unschedulable": "The number of these pods that could not be scheduled.",
    }
    counts = {name: {"type": "integer", "description": says} for name, says in numbers.items()}
    since = {
        "type": "string",
        "description": "The time at which the present spec of the policy was written, RFC 3339. The numbers belong "
        "to this spec.",
    }
    return {"type": "object", "description": HARM, "properties": {"since": since, **counts}}
