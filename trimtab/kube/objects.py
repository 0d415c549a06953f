"""One object: read, applied where we own it, taken away.

Every write goes through here: fenced, rehearsed on request, under our name.

One whole object as plain values: read, changed, and put back only if nobody else was quicker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Raw

from trimtab.cluster.api.meta import ApiObject, Metadata
from trimtab.kube import decode
from trimtab.kube.client import APPLY, JSON, Client, Query
from trimtab.kube.errors import InvalidResponse, NotFound
from trimtab.kube.resources import PLACES, one

Fence = Callable[[str], None]
"""Raises NotLeading where the write (told in words) must not begin."""


def unfenced(doing: str) -> None:
    """For what any replica may write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Who writes, and whether it counts."""

    client: Client
    manager: str = "trimtab"
    """Field manager: whose fields these are."""
    fence: Fence = unfenced
    """Asked before each write: a Lease alone does not stop a leader that was asleep."""
    dry_run: bool = False
    """The API server does everything, admission included, and stores nothing."""

    def write(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any],
        *,
        doing: str,
        content_type: str = JSON,
        query: Query | None = None,
    ) -> bytes:
        """The answer's bytes. Raises any KubeFault."""
        self.fence(doing)
        given: dict[str, str | int | None] = {"dryRun": "All" if self.dry_run else None, **(query or {})}
        if method != "DELETE":
            given["fieldManager"] = self.manager
        return self.client.write(method, path, body, content_type=content_type, query=given, doing=doing)


def read(client: Client, kind: str, name: str, namespace: str = "") -> ApiObject:
    """An object of a kind that a Snapshot holds, as it stands now. Raises NotFound, or Garbled for nonsense."""
    doing = f"read {object_ref(kind, name, namespace)}"
    found = decode.item(kind, Raw(client.get(one(PLACES[kind], namespace, name), doing=doing)))
    if isinstance(found, decode.UndecodableObject):
        raise InvalidResponse(f"{doing}: {found.why.problem}")
    return found


def apply(writer: Writer, document: Mapping[str, Any]) -> Metadata:
    """Server-side apply: the fields of this document are ours, whatever others have written there; the rest is not.

    The kind must be one of `kinds.PLACES`. Returns the metadata as stored.
    """
    kind, meta = document["kind"], document["metadata"]
    name, namespace = meta["name"], meta.get("namespace", "")
    path, doing = one(PLACES[kind], namespace, name), f"apply {object_ref(kind, name, namespace)}"
    body = {"apiVersion": PLACES[kind].group_version, **document}
    stored = writer.write("PATCH", path, body, doing=doing, content_type=APPLY, query={"force": "true"})
    return decode.metadata(Raw(stored))


def delete(writer: Writer, kind: str, name: str, namespace: str = "", *, uid: str = "") -> bool:
    """Take it away; False where it was gone already. With a uid, only that very object (else Conflict)."""
    body: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if uid:
        body["preconditions"] = {"uid": uid}
    try:
        writer.write(
            "DELETE", one(PLACES[kind], namespace, name), body, doing=f"delete {object_ref(kind, name, namespace)}"
        )
    except NotFound:
        return False
    return True


def object_ref(kind: str, name: str, namespace: str = "") -> str:
    """ "Pod team-a/web-1", "Node n1"."""
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def parsed(body: bytes, shape: type[Any], doing: str) -> Any:
    """An answer as a shape that this room alone knows. Raises Garbled."""
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise InvalidResponse(f"{doing}: {error}") from error


Whole = dict[str, Any]
"""Everything the API server sent of it: what we know nothing of goes back as it came."""


def get(client: Client, kind: str, name: str, namespace: str = "") -> Whole | None:
    """The object as it stands now; None where there is none. The kind is one of `kinds.PLACES`."""
    doing = f"read {object_ref(kind, name, namespace)}"
    try:
        found: Whole = parsed(client.get(one(PLACES[kind], namespace, name), doing=doing), dict[str, Any], doing)
    except NotFound:
        return None
    return {**found, "kind": kind, "apiVersion": PLACES[kind].group_version}


def put(writer: Writer, document: Mapping[str, Any]) -> None:
    """Store it in place of the version that was read. Raises Conflict where that is no longer the one that stands."""
    kind, meta = document["kind"], document["metadata"]
    name, namespace = meta["name"], meta.get("namespace", "")
    writer.write(
        "PUT", one(PLACES[kind], namespace, name), document, doing=f"store {object_ref(kind, name, namespace)}"
    )
