"""Says who decides what a field of `match` reads: the cluster's administrator or the author of a pod.

A required action must hold for every author, so no field that the author decides may exempt a pod. A field that is
missing here counts as the author's, and fails a test.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ConditionField:
    """Who decides what a condition reads."""

    decider: Literal["administrator", "author"]
    is_always_refused: bool = False
    """Whether no policy with a required action may have the condition, also if the policy is stored."""


_ADMINISTRATOR = ConditionField("administrator")
_AUTHOR = ConditionField("author")
_ALWAYS_REFUSED = ConditionField("author", is_always_refused=True)

CONDITION_FIELDS: Mapping[str, ConditionField] = {
    # The author of a pod can create it only in a namespace in which the administrator permits it.
    "namespaces": _ADMINISTRATOR,
    "pod_labels": _AUTHOR,
    "pod_selector": _AUTHOR,
    # An owner reference needs no existing owner.
    "owners": _ALWAYS_REFUSED,
    # One more container, with a name, an image and requests of the author's choice, makes a pod match.
    "containers": _AUTHOR,
    "runtime_classes": _AUTHOR,
    "priority_classes": _ALWAYS_REFUSED,
    "requests": _ALWAYS_REFUSED,
    "annotations": _ALWAYS_REFUSED,
    # The role `edit` may create ServiceAccounts, and a pod may name each one of its namespace.
    "service_accounts": _AUTHOR,
    # Autoscalers are objects of the pod's namespace, which the role `edit` may create.
    "vpa": _AUTHOR,
    "hpa": _AUTHOR,
}
"""The fields of `conditions.Conditions`."""

CONTAINER_FIELDS: Mapping[str, ConditionField] = {
    "names": _AUTHOR,
    "roles": _AUTHOR,
    "images": _AUTHOR,
    # A registry of the patterns says who can write the image, if the pattern fixes it (`image_names.fixes_registry`).
    "not_images": _ADMINISTRATOR,
    "requests": _AUTHOR,
}
"""The fields of `conditions.Containers` under `match`. In an exclusion all of them are the author's."""


def is_decided_by_author(field: str, fields: Mapping[str, ConditionField] = CONDITION_FIELDS) -> bool:
    """Returns whether the author of a pod decides what the field reads. A field without an entry is the author's."""
    return field not in fields or fields[field].decider == "author"


def is_storable_choice(field: str) -> bool:
    """Returns whether the author of a pod decides what the field reads, and a stored policy with a required action may
    have it."""
    return is_decided_by_author(field) and not CONDITION_FIELDS.get(field, _AUTHOR).is_always_refused
