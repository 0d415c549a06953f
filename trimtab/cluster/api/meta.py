"""The metadata and label selectors that all API objects share."""

from typing import Any, TypeVar

import msgspec
from msgspec import UNSET as UNSET
from msgspec import UnsetType as UnsetType
from msgspec.structs import replace

from trimtab.cluster.quantity import Written

change = replace
"""Returns a copy of an API object with some fields changed."""

T = TypeVar("T")
D = TypeVar("D")

ResourceList = dict[str, Written]
"""Resource name → quantity as written."""

Labels = dict[str, str]


# gc=False: these structs are trees, so reference counting alone frees them, and the garbage collector need not visit
# them.
class ApiObject(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """Part of an API object: immutable, camelCase in JSON, unknown fields dropped, absent ones UNSET."""


def value_or(value: "T | UnsetType", default: D) -> "T | D":
    """Returns the value, or `default` if the field is absent."""
    # There is only one UNSET, so identity is enough; this is the most frequent call of a decision.
    return default if value is UNSET else value


class OwnerReference(ApiObject, frozen=True, kw_only=True):
    kind: str
    name: str
    api_version: str = ""
    uid: str = ""
    controller: bool = False


class Metadata(ApiObject, frozen=True, kw_only=True):
    """`labels` and `annotations` may be changed by Trimtab; so they may be UNSET."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: Labels | UnsetType = UNSET
    annotations: Labels | UnsetType = UNSET
    owner_references: tuple[OwnerReference, ...] = ()
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] = ()

    @property
    def controller_owner(self) -> OwnerReference | None:
        """The owner reference of the controller, or None for a bare object."""
        # At most one owner reference is the controller (validated by the API server).
        for owner in self.owner_references:
            if owner.controller:
                return owner
        return None


class Revised(Metadata, frozen=True, kw_only=True):
    """Metadata of an object whose controller reports which generation of the spec it has observed."""

    generation: int = 0


class ManagedFields(ApiObject, frozen=True, kw_only=True):
    """The fields that one manager wrote, and the time of its last write."""

    subresource: str = ""
    time: str | None = None
    fields: Any = msgspec.field(default=None, name="fieldsV1")


class Dated(Metadata, frozen=True, kw_only=True):
    """Metadata of an object for which the time of its last change matters."""

    generation: int = 0
    managed_fields: tuple[ManagedFields, ...] = ()

    def last_written_at(self, *parts: str) -> str | None:
        """Returns the time of the last write to one of these top-level fields; the creation time if the object does not
        say.

        `kubectl get` leaves managed fields out unless asked for them: then it is the creation time, too.
        """
        # Subresources such as `status` are written by controllers and are no change by the author.
        times = (
            entry.time or ""
            for entry in self.managed_fields
            if not entry.subresource and isinstance(entry.fields, dict) and any(f"f:{p}" in entry.fields for p in parts)
        )
        return max((*times, self.creation_timestamp or "")) or None


class SelectorRequirement(ApiObject, frozen=True, kw_only=True):
    """One expression of a label selector or a node selector term."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelSelector(ApiObject, frozen=True, kw_only=True):
    match_labels: Labels = {}
    match_expressions: tuple[SelectorRequirement, ...] = ()
