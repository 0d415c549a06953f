"""Reads every object of a cluster as plain values with all fields, in order to find which objects refer to a given one.

A `Snapshot` leaves out environment variables and command lines on purpose. Here they are read, but only used on this
machine: they are not written to any file. Secrets are listed only on request, and then only as metadata, so that their
data never leaves the API server.
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

_LEFT_OUT = frozenset(
    (
        "events",
        "secrets",
        "leases",
        "componentstatuses",
        "controllerrevisions",
        "bindings",
        "csinodes",
        "csidrivers",
        "csistoragecapacities",
        "volumeattachments",
        "flowschemas",
        "prioritylevelconfigurations",
        "podmetrics",
        "ipaddresses",
        "servicecidrs",
        "certificatesigningrequests",
        "customresourcedefinitions",
    )
)
"""Resources that refer to nothing that is searched for, or that change all the time."""
_LEFT_OUT_GROUPS = ("metrics.k8s.io", "authorization.k8s.io", "authentication.k8s.io", "events.k8s.io")
"""API groups whose objects are computed for each HTTP request. The first entry also excludes groups whose names end in
it, such as those for custom and external metrics."""


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
    """All objects of a cluster, and the lists that could not be read, each with the reason."""

    objects: tuple[dict[str, Any], ...]
    unreadable: tuple[str, ...]


def read_whole_objects(
    client: Client, *, secrets: bool = False, on_list: Callable[[str], None] = lambda list_: None
) -> WholeCluster:
    """Returns every object of every kind that the server lists, including custom resources; of Secrets, at most the
    metadata.

    Raises KubeFault if the server does not say which kinds it has. A list that fails is named in the result.
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
    """Returns every list of the preferred version of every API group, and the groups that did not respond."""
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
    """Returns the object with its kind, which the items of a list lack. Of a Secret, only its kind and metadata are
    returned."""
    item = {**item, "apiVersion": source.group_version, "kind": source.kind}
    return metadata_of_secret(item) if source.kind == "Secret" else item


def metadata_of_secret(item: dict[str, Any]) -> dict[str, Any]:
    """Returns a Secret with nothing but its kind and metadata, and without the annotation in which kubectl repeats its
    data."""
    metadata = dict(item.get("metadata") or {})
    annotations = dict(metadata.get("annotations") or {})
    annotations.pop("kubectl.kubernetes.io/last-applied-configuration", None)
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {**metadata, "annotations": annotations}}
