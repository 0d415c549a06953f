"""Reads whole lists page by page. A page is decoded and released before the next one is requested."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from msgspec import Raw

from trimtab.cluster.api.meta import ApiObject
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.snapshot import DISPENSABLE_KINDS, Snapshot
from trimtab.kube import decode
from trimtab.kube.client import Client
from trimtab.kube.errors import NotAllowed, NotFound, ResourceVersionGone
from trimtab.kube.resources import ListSource, list_sources
from trimtab.kube.transform import FieldPruner
from trimtab.kube.watch_state import WatchSettings

PAGE_SIZE = WatchSettings().page_size

FORBIDDEN_STATUS = 403
_MAX_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class ListResult:
    """One page of a list, decoded."""

    items: list[Raw]
    version: str
    """The resourceVersion of the whole list, which is the same on every page."""


def iter_pages(client: Client, source: ListSource, size: int = PAGE_SIZE) -> Iterator[ListResult]:
    """Yields every page of a list. Raises ResourceVersionGone if reading the pages took so long that the list's
    resourceVersion expired; the caller must then start again."""
    token: str | None = None
    while True:
        doing = f"list {source}"
        # The token pins the version of the first page, so all pages belong to one list.
        query = {**source.selector_query, "limit": size, "continue": token}
        accept = source.accept_header("PartialObjectMetadataList")
        page = decode.decode_page(client.get(source.list_path, query, doing=doing, accept=accept), doing)
        yield ListResult(page.items or [], page.metadata.resource_version)
        token = page.metadata.continue_ or None
        if token is None:
            return


def iter_objects(client: Client, source: ListSource) -> Iterator[tuple[decode.Key, Any]]:
    """Yields every decodable object of a list, with its (namespace, name)."""
    for page in iter_pages(client, source):
        for raw in page.items:
            item: Any = decode.decode_item(source.kind, raw)
            if not isinstance(item, decode.UndecodableObject):
                yield decode.object_key(item.metadata), item


@dataclass(frozen=True, slots=True)
class ClusterListing:
    """The objects of a cluster, read once."""

    snapshot: Snapshot
    unreadable: tuple[Unreadable, ...] = ()
    absent: tuple[str, ...] = ()
    """The kinds that this server does not serve, so that it has no objects of them."""


def list_kinds(
    client: Client, wanted: Iterable[ListSource] | None = None, on_list: Callable[[str], None] = lambda list_: None
) -> ClusterListing:
    """Returns all objects of these kinds. They have the fields that `transform` retains; `on_list` is called with the
    name of each list."""
    pruner = FieldPruner()
    objects: dict[str, dict[decode.Key, ApiObject]] = {}
    unreadable: list[Unreadable] = []
    absent: list[str] = []
    forbidden: set[str] = set()
    for source in list_sources() if wanted is None else wanted:
        on_list(str(source))
        try:
            source_objects, source_unreadable = _list_with_retries(client, source, pruner)
        except NotFound:
            if not source.optional:
                raise
            absent.append(source.kind)
            continue
        except NotAllowed as error:
            # 401 concerns every request of this identity; only 403 is about this kind alone.
            if error.status != FORBIDDEN_STATUS or source.kind not in DISPENSABLE_KINDS:
                raise
            forbidden.add(source.kind)
            continue
        objects.setdefault(source.kind, {}).update(source_objects)
        unreadable += source_unreadable
    sorted_objects = {
        kind: tuple(source_objects[key] for key in sorted(source_objects))
        for kind, source_objects in objects.items()
        if source_objects
    }
    return ClusterListing(Snapshot(sorted_objects, forbidden=frozenset(forbidden)), tuple(unreadable), tuple(absent))


def _list_with_retries(
    client: Client, source: ListSource, pruner: FieldPruner
) -> tuple[dict[decode.Key, ApiObject], list[Unreadable]]:
    """Returns all objects of a list, and those that could not be decoded. If the list's version expires while it is
    read, it is read again, a few times at most."""
    for last in (False,) * (_MAX_ATTEMPTS - 1) + (True,):
        try:
            return _list_once(client, source, pruner)
        except ResourceVersionGone:
            if last:
                raise
    raise AssertionError("unreachable")


def _list_once(
    client: Client, source: ListSource, pruner: FieldPruner
) -> tuple[dict[decode.Key, ApiObject], list[Unreadable]]:
    objects: dict[decode.Key, ApiObject] = {}
    unreadable: list[Unreadable] = []
    for page in iter_pages(client, source):
        for raw in page.items:
            item = decode.decode_item(source.kind, raw)
            if isinstance(item, decode.UndecodableObject):
                unreadable.append(item.unreadable)
            else:
                pruned = pruner(item)
                objects[decode.object_key(pruned.metadata)] = pruned  # type: ignore[attr-defined]
    return objects, unreadable
