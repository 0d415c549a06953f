"""What do all API objects share?"""

from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace as change

from trimtab.cluster.quantity import Written

T = TypeVar("T")
D = TypeVar("D")

ResourceList = dict[str, Written]
"""Resource name → quantity as written."""

Labels = dict[str, str]


class ApiObject(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """Part of an API object: immutable, camelCase in JSON, unknown fields dropped, absent ones UNSET."""


def get(value: "T | UnsetType", default: D) -> "T | D":
    """The value, or `default` where the field is absent."""
    # There is only one UNSET; asking for it by name is what decisions do most.
    return default if value is UNSET else value


class OwnerReference(ApiObject, frozen=True, kw_only=True):
    kind: str
    name: str
    api_version: str = ""
    uid: str = ""
    controller: bool = False


class Metadata(ApiObject, frozen=True, kw_only=True):
    """`labels` and `annotations` may be changed by us; so they may be UNSET."""

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
    def controller(self) -> OwnerReference | None:
        """The owner that manages this object; None for a bare one."""
        for owner in self.owner_references:
            if owner.controller:
                return owner
        return None


class Revised(Metadata, frozen=True, kw_only=True):
    """Of an object whose controller tells which version of its spec it has seen."""

    generation: int = 0


class ManagedFields(ApiObject, frozen=True, kw_only=True):
    """Which fields were written together, and when last."""

    subresource: str = ""
    time: str | None = None
    fields: Any = msgspec.field(default=None, name="fieldsV1")


class Dated(Metadata, frozen=True, kw_only=True):
    """Of an object whose last change counts."""

    generation: int = 0
    managed_fields: tuple[ManagedFields, ...] = ()

    def written(self, *parts: str) -> str | None:
        """When one of these top-level fields was last written, in the object itself; its creation where nothing tells.

        Whoever reads with kubectl has no managed fields unless asked for: then it is the creation, too.
        """
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


__all__ = [
    "UNSET",
    "Dated",
    "LabelSelector",
    "Labels",
    "Metadata",
    "OwnerReference",
    "SelectorRequirement",
    "ResourceList",
    "Revised",
    "ApiObject",
    "UnsetType",
    "change",
    "get",
]
