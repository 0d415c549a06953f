"""A cluster as a file: what `kubectl get … -o json` would print, no more than is read here.

Reading a cluster live and reading its capture give the same answers, because live is a capture that was not written
down. Secrets, environments and command lines cannot be in it: nothing decodes them (`keep`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from trimtab.cluster.anonymous import hashed
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.snapshot import UNREADABLE, Snapshot
from trimtab.kube.decode import ODD
from trimtab.kube.kinds import PLACES


def items(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Every object, with its kind, as plain values."""
    return [
        {"apiVersion": PLACES[kind].group_version, "kind": kind, **_bare(found)}
        for kind, objects in snapshot.objects.items()
        for found in objects
    ]


def written(snapshot: Snapshot, unreadable: Iterable[Unreadable] = (), *, salt: bytes | None = None) -> bytes:
    """The file's content; with a salt, names are hashed with it.

    What could not be read is in it by name alone, so that nobody plans as if it were not there: who loads the file is
    told of a mistake, as who reads the cluster is.
    """
    found = [*items(snapshot), *map(_mark, unreadable)]
    if salt is not None:
        found = hashed(found, salt)
    # An item a line: a large capture can still be looked at and compared.
    body = b",\n".join(msgspec.json.encode(item) for item in found)
    return b'{"apiVersion":"v1","kind":"List","items":[\n' + body + b"\n]}\n"


def _mark(wrong: Unreadable) -> dict[str, Any]:
    """`where` is "Pod shop/web" or "Node n1" (`decode.item`)."""
    kind, _, where = wrong.where.partition(" ")
    namespace, _, name = where.rpartition("/")
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": PLACES[kind].group_version, "kind": kind, "metadata": meta, UNREADABLE: wrong.problem}


def _bare(found: Any) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(found)
    if getattr(found, "kind", "") in ODD and "selector" in plain.get("spec", {}):
        plain["spec"]["selector"] = plain["spec"]["selector"].get("matchLabels", {})
    return {name: value for name, value in plain.items() if name not in ("kind", "apiVersion")}
