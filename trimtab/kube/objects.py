"""Reads, applies (with field ownership) and deletes single objects; or reads a whole object, changes it and replaces
it.

Every write goes through a `Writer`: it is fenced, can be a dry run, and has Trimtab as its field manager. A whole
object is replaced only in the version that was read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Raw

from trimtab.cluster.api.meta import ApiObject, Metadata
from trimtab.kube import decode
from trimtab.kube.client import APPLY_PATCH, JSON, MERGE_PATCH, Client, Query
from trimtab.kube.errors import InvalidResponse, NotFound
from trimtab.kube.resources import LIST_SOURCES, object_path

Fence = Callable[[str], None]
"""A function that raises NotLeading if a write must not begin. Its argument describes the write."""


def allow_any_replica(doing: str) -> None:
    """The fence for writes that any replica may do: it allows everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """How a write is made: with which client and field manager, with which fence, and whether as a dry run."""

    client: Client
    manager: str = "trimtab"
    """The field manager, which becomes the owner of the written fields."""
    fence: Fence = allow_any_replica
    """Called before each write, because a Lease alone does not stop a leader that was suspended."""
    dry_run: bool = False
    """Whether writes are dry runs: the API server does everything, including admission, but stores nothing."""

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
        """Sends a write and returns the body of the response. Raises any KubeFault."""
        self.fence(doing)
        parameters: dict[str, str | int | None] = {"dryRun": "All" if self.dry_run else None, **(query or {})}
        if method != "DELETE":
            parameters["fieldManager"] = self.manager
        elif self.dry_run:
            # The API server reads the options of a deletion from its body, and then no more from the query.
            body = {**body, "dryRun": ["All"]}
        return self.client.write(method, path, body, content_type=content_type, query=parameters, doing=doing)


def read_object(client: Client, kind: str, name: str, namespace: str = "") -> ApiObject:
    """Returns an object of a kind that a Snapshot has. Raises NotFound, or InvalidResponse if it cannot be decoded."""
    doing = f"read {object_ref(kind, name, namespace)}"
    item = decode.decode_item(kind, Raw(client.get(object_path(LIST_SOURCES[kind], namespace, name), doing=doing)))
    if isinstance(item, decode.UndecodableObject):
        raise InvalidResponse(f"{doing}: {item.unreadable.problem}")
    return item


def apply(writer: Writer, document: Mapping[str, Any]) -> Metadata:
    """Applies a document (server-side apply): takes ownership of its fields, even if another client has written
    them, and of no other fields.

    The kind must be in `resources.LIST_SOURCES`. Returns the object's metadata with its new version.
    """
    kind, meta = document["kind"], document["metadata"]
    name, namespace = meta["name"], meta.get("namespace", "")
    path, doing = object_path(LIST_SOURCES[kind], namespace, name), f"apply {object_ref(kind, name, namespace)}"
    body = {"apiVersion": LIST_SOURCES[kind].group_version, **document}
    # Force: take the fields over from another manager instead of a conflict.
    stored = writer.write("PATCH", path, body, doing=doing, content_type=APPLY_PATCH, query={"force": "true"})
    return decode.decode_metadata(Raw(stored))


def merge_status(writer: Writer, kind: str, name: str, namespace: str, body: Mapping[str, Any]) -> None:
    """Merges fields into the status of an object. Raises Conflict if `metadata.resourceVersion` in the body is not that
    of the current version."""
    path = object_path(LIST_SOURCES[kind], namespace, name, "status")
    doing = f"write the status of {object_ref(kind, name, namespace)}"
    writer.write("PATCH", path, body, doing=doing, content_type=MERGE_PATCH)


def delete(writer: Writer, kind: str, name: str, namespace: str = "", *, uid: str = "") -> bool:
    """Deletes an object. Returns False if it does not exist. With a uid, only the object with this uid is deleted
    (otherwise Conflict is raised)."""
    body: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if uid:
        body["preconditions"] = {"uid": uid}
    try:
        writer.write(
            "DELETE",
            object_path(LIST_SOURCES[kind], namespace, name),
            body,
            doing=f"delete {object_ref(kind, name, namespace)}",
        )
    except NotFound:
        return False
    return True


def object_ref(kind: str, name: str, namespace: str = "") -> str:
    """Returns the name of an object for messages: "Pod team-a/web-1", "Node n1"."""
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def decode_as(body: bytes, shape: type[Any], doing: str) -> Any:
    """Returns a response decoded as a type that only this package uses. Raises InvalidResponse."""
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise InvalidResponse(f"{doing}: {error}") from error


Whole = dict[str, Any]
"""Everything that the API server sent about an object, so that unknown fields are sent back unchanged."""


def get_plain(client: Client, kind: str, name: str, namespace: str = "") -> Whole | None:
    """Returns the whole object, or None if it does not exist. The kind must be in `resources.LIST_SOURCES`."""
    doing = f"read {object_ref(kind, name, namespace)}"
    try:
        whole: Whole = decode_as(
            client.get(object_path(LIST_SOURCES[kind], namespace, name), doing=doing), dict[str, Any], doing
        )
    except NotFound:
        return None
    return {**whole, "kind": kind, "apiVersion": LIST_SOURCES[kind].group_version}


def replace_plain(writer: Writer, document: Mapping[str, Any]) -> None:
    """Replaces an object in the version that was read. Raises Conflict if that is not the current version any more."""
    kind, meta = document["kind"], document["metadata"]
    name, namespace = meta["name"], meta.get("namespace", "")
    writer.write(
        "PUT",
        object_path(LIST_SOURCES[kind], namespace, name),
        document,
        doing=f"update {object_ref(kind, name, namespace)}",
    )
