"""One whole object as plain values: read, changed, and put back only if nobody else was quicker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.kube.client import Client
from trimtab.kube.errors import NotFound
from trimtab.kube.kinds import PLACES, one
from trimtab.kube.objects import parsed, told
from trimtab.kube.writer import Writer

Whole = dict[str, Any]
"""Everything the API server sent of it: what we know nothing of goes back as it came."""


def get(client: Client, kind: str, name: str, namespace: str = "") -> Whole | None:
    """The object as it stands now; None where there is none. The kind is one of `kinds.PLACES`."""
    doing = f"read {told(kind, name, namespace)}"
    try:
        found: Whole = parsed(client.get(one(PLACES[kind], namespace, name), doing=doing), dict[str, Any], doing)
    except NotFound:
        return None
    return {**found, "kind": kind, "apiVersion": PLACES[kind].group_version}


def put(writer: Writer, document: Mapping[str, Any]) -> None:
    """Store it in place of the version that was read. Raises Conflict where that is no longer the one that stands."""
    kind, meta = document["kind"], document["metadata"]
    name, namespace = meta["name"], meta.get("namespace", "")
    writer.write("PUT", one(PLACES[kind], namespace, name), document, doing=f"store {told(kind, name, namespace)}")
