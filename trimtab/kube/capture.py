"""A cluster as a file: what `kubectl get … -o json` would print, no more than is read here.

Reading a cluster live and reading its capture give the same answers, because live is a capture that was not written
down. Secrets, environments and command lines cannot be in it: nothing decodes them (`keep`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from trimtab.cluster.anonymize import hashed
from trimtab.cluster.api.meta import get
from trimtab.cluster.api.workload import Templated
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.snapshot import FORBIDDEN_KIND, UNREADABLE, Snapshot
from trimtab.kube import decode
from trimtab.kube.client import Client
from trimtab.kube.decode import ODD, Key
from trimtab.kube.listing import ClusterListing, observe
from trimtab.kube.resources import OWNER_TEMPLATES, PLACES, sources

TEMPLATE = "Template"
"""Ends the name of a kind that is a list of owners, read for what they make pods of."""


def observed(
    client: Client, kinds: Iterable[str], told: Callable[[str], None] = lambda list_: None, *, templates: bool = False
) -> ClusterListing:
    """Everything of these kinds; and templates, where they are asked for, or where a policy or a VPA was found."""
    found = observe(client, sources(kinds), told)
    if not templates and not any(found.snapshot.objects.get(kind) for kind in ("PodPolicy", "VerticalPodAutoscaler")):
        return found
    more = observe(client, sources(OWNER_TEMPLATES), told)
    return ClusterListing(
        Snapshot({**found.snapshot.objects, **more.snapshot.objects}, forbidden=found.snapshot.forbidden),
        (*found.unreadable, *more.unreadable),
        found.absent,
    )


def items(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Every object, with its kind, as plain values; an owner with its template, where that was read, too."""
    objects = {kind: found for kind, found in snapshot.objects.items() if kind not in OWNER_TEMPLATES}
    return [
        {"apiVersion": PLACES[kind].group_version, "kind": kind, **_with_template(_bare(found), templates)}
        for kind, all_ in objects.items()
        for templates in (_templates(snapshot, kind),)
        for found in all_
    ]


def _templates(snapshot: Snapshot, kind: str) -> dict[Key, dict[str, Any]]:
    """Owner → its template. Those that want no pods, as old ReplicaSets do, make none."""
    found = snapshot.objects.get(kind + TEMPLATE, ())
    return {
        decode.key(one.metadata): _bare(one.spec.template)
        for one in found
        if isinstance(one, Templated) and get(one.spec.replicas, 1)
    }


def _with_template(item: dict[str, Any], templates: Mapping[Key, dict[str, Any]]) -> dict[str, Any]:
    meta = item.get("metadata", {})
    found = templates.get((meta.get("namespace", ""), meta.get("name", "")))
    return item if found is None else {**item, "spec": {**item.get("spec", {}), "template": found}}


def written(snapshot: Snapshot, unreadable: Iterable[Unreadable] = (), *, salt: bytes | None = None) -> bytes:
    """The file's content; with a salt, names are hashed with it.

    What could not be read is in it by name alone, so that nobody plans as if it were not there: who loads the file is
    told of a mistake, as who reads the cluster is. Kinds that could not be listed are named.
    """
    found = [*items(snapshot), *map(_mark, unreadable)]
    if salt is not None:
        found = hashed(found, salt)
    found += map(_forbidden, sorted(snapshot.forbidden))
    # An item a line: a large capture can still be looked at and compared.
    body = b",\n".join(msgspec.json.encode(item) for item in found)
    return b'{"apiVersion":"v1","kind":"List","items":[\n' + body + b"\n]}\n"


def _forbidden(kind: str) -> dict[str, Any]:
    return {"apiVersion": "trimtab.dev/v1alpha1", "kind": FORBIDDEN_KIND, "metadata": {"name": kind}}


def _mark(wrong: Unreadable) -> dict[str, Any]:
    """`where` is "Pod shop/web" or "Node n1" (`decode.item`)."""
    kind, _, where = wrong.where.partition(" ")
    kind = kind.removesuffix(TEMPLATE) if kind in OWNER_TEMPLATES else kind
    namespace, _, name = where.rpartition("/")
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": PLACES[kind].group_version, "kind": kind, "metadata": meta, UNREADABLE: wrong.problem}


def _bare(found: Any) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(found)
    if getattr(found, "kind", "") in ODD and "selector" in plain.get("spec", {}):
        plain["spec"]["selector"] = plain["spec"]["selector"].get("matchLabels", {})
    return {name: value for name, value in plain.items() if name not in ("kind", "apiVersion")}
