"""Every object of a cluster as plain values, with all its fields: what "who names this object" needs.

A `Snapshot` leaves out environments and command lines on purpose; here they are read, and used on this machine only:
nothing writes them to a file. Secrets are listed only when asked for, and then as metadata alone, so that their data
never leaves the API server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from trimtab.kube.client import Client
from trimtab.kube.errors import KubeFault
from trimtab.kube.listing import iter_pages
from trimtab.kube.resources import LIST_SOURCES, ListSource

_LEFT_OUT = frozenset((
    "events", "secrets", "leases", "componentstatuses", "controllerrevisions", "bindings", "csinodes", "csidrivers",
    "csistoragecapacities", "volumeattachments", "flowschemas", "prioritylevelconfigurations", "podmetrics",
    "ipaddresses", "servicecidrs", "certificatesigningrequests", "customresourcedefinitions",
))  # fmt: skip
"""Resources that name nothing that is looked for, or change all the time."""
_LEFT_OUT_GROUPS = ("metrics.k8s.io", "authorization.k8s.io", "authentication.k8s.io", "events.k8s.io")
"""Groups that compute their objects when they are asked; custom and external metrics end with the first one."""


class _Resource(msgspec.Struct, frozen=True):
    name: str = ""
    kind: str = ""
    namespaced: bool = False
    verbs: tuple[str, ...] = ()


class _ResourceList(msgspec.Struct, frozen=True):
    resources: tuple[_Resource, ...] = ()


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    group_version: str = ""


class _Group(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    preferred_version: _Version = _Version()


class _GroupList(msgspec.Struct, frozen=True):
    groups: tuple[_Group, ...] = ()


@dataclass(frozen=True, slots=True)
class WholeCluster:
    """All objects, and the lists that could not be read, each with the reason."""

    objects: tuple[dict[str, Any], ...]
    unreadable: tuple[str, ...]


def read_whole_objects(
    client: Client, *, secrets: bool = False, on_list: Callable[[str], None] = lambda list_: None
) -> WholeCluster:
    """Returns every object of every kind that the server lists, custom resources included; of Secrets at most the
    metadata.

    Raises KubeFault if the server does not tell which kinds it has. A list that fails is named in the result.
    """
    sources, unreadable = _discover_sources(client)
    if secrets:
        sources.append(replace(LIST_SOURCES["Secret"], metadata_only=True))
    objects: list[dict[str, Any]] = []
    for source in sources:
        on_list(source.plural)
        try:
            for page in iter_pages(client, source):
                objects += (_with_kind(msgspec.json.decode(raw), source) for raw in page.items)
        except KubeFault as error:
            unreadable.append(f"{source.plural}: {error}")
    return WholeCluster(tuple(objects), tuple(unreadable))


def _discover_sources(client: Client) -> tuple[list[ListSource], list[str]]:
    """Returns every list of the preferred version of every group, and the groups that do not answer."""
    unreadable: list[str] = []
    sources = list(_sources_of_version(client, "v1", "/api/v1"))
    groups = msgspec.json.decode(client.get("/apis", doing="list API groups"), type=_GroupList).groups
    for group in groups:
        if group.name.endswith(_LEFT_OUT_GROUPS):
            continue
        version = group.preferred_version.group_version
        try:
            sources += _sources_of_version(client, version, f"/apis/{version}")
        except KubeFault as error:
            unreadable.append(f"API group {group.name}: {error}")
    return sources, unreadable


def _sources_of_version(client: Client, version: str, path: str) -> Iterator[ListSource]:
    body = client.get(path, doing=f"list the kinds of {version}")
    for resource in msgspec.json.decode(body, type=_ResourceList).resources:
        if "list" in resource.verbs and "/" not in resource.name and resource.name not in _LEFT_OUT:
            yield ListSource(
                kind=resource.kind, group_version=version, plural=resource.name, namespaced=resource.namespaced
            )


def _with_kind(item: dict[str, Any], source: ListSource) -> dict[str, Any]:
    """Returns the object with its kind, which items of a list lack; of a Secret no more than that and its metadata."""
    item = {**item, "apiVersion": source.group_version, "kind": source.kind}
    return metadata_of_secret(item) if source.kind == "Secret" else item


def metadata_of_secret(item: dict[str, Any]) -> dict[str, Any]:
    """Returns a Secret without anything but its kind and metadata; also without the annotation in which kubectl repeats
    its data."""
    metadata = dict(item.get("metadata") or {})
    annotations = dict(metadata.get("annotations") or {})
    annotations.pop("kubectl.kubernetes.io/last-applied-configuration", None)
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {**metadata, "annotations": annotations}}
