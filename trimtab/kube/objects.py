"""One object: read, applied where we own it, taken away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from trimtab.cluster.api.meta import Metadata, Shape
from trimtab.kube import decode
from trimtab.kube.client import APPLY, Client
from trimtab.kube.errors import Garbled, NotFound
from trimtab.kube.kinds import PLACES, one
from trimtab.kube.writer import Writer


def read(client: Client, kind: str, name: str, namespace: str = "") -> Shape:
    """An object of a kind that a Snapshot holds, as it stands now. Raises NotFound, or Garbled for nonsense."""
    doing = f"read {told(kind, name, namespace)}"
    found = decode.item(kind, Raw(client.get(one(PLACES[kind], namespace, name), doing=doing)))
    if isinstance(found, decode.Broken):
        raise Garbled(f"{doing}: {found.why.problem}")
    return found


def apply(writer: Writer, document: Mapping[str, Any]) -> Metadata:
    """Server-side apply: the fields of this document are ours, whatever others have written there; the rest is not.

    The kind must be one of `kinds.PLACES`. Returns the metadata as stored.
    """
    kind, meta = document["kind"], document["metadata"]
    name, namespace = meta["name"], meta.get("namespace", "")
    path, doing = one(PLACES[kind], namespace, name), f"apply {told(kind, name, namespace)}"
    body = {"apiVersion": PLACES[kind].group_version, **document}
    stored = writer.write("PATCH", path, body, doing=doing, content_type=APPLY, query={"force": "true"})
    return decode.metadata(Raw(stored))


def delete(writer: Writer, kind: str, name: str, namespace: str = "", *, uid: str = "") -> bool:
    """Take it away; False where it was gone already. With a uid, only that very object (else Conflict)."""
    body: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if uid:
        body["preconditions"] = {"uid": uid}
    try:
        writer.write("DELETE", one(PLACES[kind], namespace, name), body, doing=f"delete {told(kind, name, namespace)}")
    except NotFound:
        return False
    return True


def told(kind: str, name: str, namespace: str = "") -> str:
    """ "Pod team-a/web-1", "Node n1"."""
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def parsed(body: bytes, shape: type[Any], doing: str) -> Any:
    """An answer as a shape that this room alone knows. Raises Garbled."""
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise Garbled(f"{doing}: {error}") from error
