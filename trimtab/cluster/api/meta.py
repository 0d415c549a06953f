"""The metadata and label selectors that all API objects share, and how nulls in an object are read."""

from typing import Any, TypeVar

import msgspec
from msgspec import UNSET as UNSET
from msgspec import UnsetType as UnsetType
from msgspec.structs import replace

from trimtab.cluster.quantity import Written

change = replace
"""Returns a copy of an API object with some fields changed: `change(pod, spec=…)`."""

T = TypeVar("T")
D = TypeVar("D")

ResourceList = dict[str, Written]
"""Quantities by resource name, as the object's author wrote them."""

Labels = dict[str, str]


# gc=False: these structs are trees, so reference counting alone frees them, and the garbage collector need not visit
# them.
class ApiObject(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """Part of an API object. Instances are immutable and camelCase in JSON. Fields that are not declared are dropped
    when an object is decoded; declared fields that the object lacks are UNSET."""


def value_or(value: "T | UnsetType", default: D) -> "T | D":
    """Returns the value, or `default` if the field is absent."""
    # There is only one UNSET, so identity is enough; this is the most frequent call of a decision.
    return default if value is UNSET else value


class OwnerReference(ApiObject, frozen=True, kw_only=True):
    """A reference to an owner. Its kind has a group (`owner.referenced_owner`); the name alone identifies nothing."""

    kind_name: str = msgspec.field(name="kind")
    name: str
    api_version: str = ""
    uid: str = ""
    controller: bool = False


class Metadata(ApiObject, frozen=True, kw_only=True):
    """The metadata of an object. `labels` and `annotations` may be UNSET, because a patch must add the mapping where
    the object has none."""

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
        """The owner reference of the object's controller, or None if the object has no controller."""
        # At most one owner reference is the controller (validated by the API server).
        for owner in self.owner_references:
            if owner.controller:
                return owner
        return None


class Revised(Metadata, frozen=True, kw_only=True):
    """Metadata of an object whose status says which generation of the spec its controller has observed."""

    generation: int = 0


class ManagedFields(ApiObject, frozen=True, kw_only=True):
    """The fields that one manager wrote, and the time of its last write."""

    subresource: str = ""
    time: str | None = None
    fields: Any = msgspec.field(default=None, name="fieldsV1")


class Dated(Metadata, frozen=True, kw_only=True):
    """Metadata of an object for which Trimtab needs the time of the last change."""

    generation: int = 0
    managed_fields: tuple[ManagedFields, ...] = ()

    def last_written_at(self, *parts: str) -> str | None:
        """Returns the time of the last write to one of these top-level fields, or the creation time if the object has
        no managed fields.

        `kubectl get` prints managed fields only with `--show-managed-fields`; without them the creation time is
        returned for every object.
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


def without_nulls(value: Any) -> Any:
    """Returns the value without mapping entries that are null, because the API server treats them as absent."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


P = TypeVar("P")


def decode_part(decoder: msgspec.json.Decoder[P], shape: type[P], body: bytes) -> P:
    """Returns what the decoder reads of an object in JSON, in which null counts as absent."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError:
        # The fast decoder refuses nulls.
        return msgspec.convert(without_nulls(msgspec.json.decode(body)), shape)
