"""Whole lists, page by page: a page is decoded and let go before the next one is asked for."""

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
from trimtab.kube.resources import ListSource, sources
from trimtab.kube.transform import FieldPruner
from trimtab.kube.watch_state import WatchSettings

PAGE = WatchSettings().page

FORBIDDEN = 403
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class ListResult:
    """One page."""

    items: list[Raw]
    version: str
    """The version the whole list has; the same on every page."""


def pages(client: Client, source: ListSource, size: int = PAGE) -> Iterator[ListResult]:
    """Every page of a list. Raises Gone where it took so long that its version is no longer kept: begin anew."""
    token: str | None = None
    while True:
        doing = f"list {source}"
        query = {**source.query, "limit": size, "continue": token}
        accept = source.accept("PartialObjectMetadataList")
        found = decode.page(client.get(source.path, query, doing=doing, accept=accept), doing)
        yield ListResult(found.items or [], found.metadata.resource_version)
        token = found.metadata.continue_ or None
        if token is None:
            return


def listed(client: Client, source: ListSource) -> Iterator[tuple[decode.Key, Any]]:
    """Every object of a list that can be read, under its (namespace, name)."""
    for part in pages(client, source):
        for raw in part.items:
            found: Any = decode.item(source.kind, raw)
            if not isinstance(found, decode.UndecodableObject):
                yield decode.key(found.metadata), found


@dataclass(frozen=True, slots=True)
class ClusterListing:
    """What stands in the cluster now, read once."""

    snapshot: Snapshot
    unreadable: tuple[Unreadable, ...] = ()
    absent: tuple[str, ...] = ()
    """Kinds this server does not serve: nothing of them can be there."""


def observe(
    client: Client, wanted: Iterable[ListSource] | None = None, told: Callable[[str], None] = lambda list_: None
) -> ClusterListing:
    """Every kind of a Snapshot, by reading lists. Objects are as `keep` leaves them; `told` hears each list's name."""
    keeper = FieldPruner()
    objects: dict[str, dict[decode.Key, ApiObject]] = {}
    broken: list[Unreadable] = []
    absent: list[str] = []
    forbidden: set[str] = set()
    for source in sources() if wanted is None else wanted:
        told(str(source))
        try:
            found, wrong = _whole(client, source, keeper)
        except NotFound:
            if not source.optional:
                raise
            absent.append(source.kind)
            continue
        except NotAllowed as error:
            if error.status != FORBIDDEN or source.kind not in DISPENSABLE_KINDS:
                raise
            forbidden.add(source.kind)
            continue
        objects.setdefault(source.kind, {}).update(found)
        broken += wrong
    kept = {kind: tuple(found[key] for key in sorted(found)) for kind, found in objects.items() if found}
    return ClusterListing(Snapshot(kept, forbidden=frozenset(forbidden)), tuple(broken), tuple(absent))


def _whole(
    client: Client, source: ListSource, keeper: FieldPruner
) -> tuple[dict[decode.Key, ApiObject], list[Unreadable]]:
    """A list that outlives its version is begun again, a few times."""
    for last in (False,) * (_ATTEMPTS - 1) + (True,):
        try:
            return _once(client, source, keeper)
        except ResourceVersionGone:
            if last:
                raise
    raise AssertionError("unreachable")


def _once(
    client: Client, source: ListSource, keeper: FieldPruner
) -> tuple[dict[decode.Key, ApiObject], list[Unreadable]]:
    found: dict[decode.Key, ApiObject] = {}
    broken: list[Unreadable] = []
    for page in pages(client, source):
        for raw in page.items:
            item = decode.item(source.kind, raw)
            if isinstance(item, decode.UndecodableObject):
                broken.append(item.why)
            else:
                kept = keeper(item)
                found[decode.key(kept.metadata)] = kept  # type: ignore[attr-defined]
    return found, broken
