"""Writes a cluster to a file: what `kubectl get … -o json` would print, reduced to the fields that Trimtab reads.

Reading a live cluster and reading its capture give the same results, because both have the same fields. Secrets,
environment variables and command lines cannot be in a capture: of a container's text, only what it shows of the
runtime is retained (`api.pod.Container`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from trimtab.cluster.anonymize import hash_names
from trimtab.cluster.api.workload import Templated
from trimtab.cluster.next_pod import keep_template
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.snapshot import CAPTURE_KIND, FORBIDDEN_KIND, UNREADABLE_FIELD, Snapshot
from trimtab.kube import decode
from trimtab.kube.autoscaler_statuses import status_sources
from trimtab.kube.client import Client
from trimtab.kube.decode import PLAIN_SELECTOR_KINDS, Key
from trimtab.kube.listing import ClusterListing, list_kinds
from trimtab.kube.resources import LIST_SOURCES, OWNER_TEMPLATES, list_sources

TEMPLATE = "Template"
"""The suffix of the kinds under which owners are listed in order to read their pod templates."""


def read_cluster(
    client: Client,
    kinds: Iterable[str],
    on_list: Callable[[str], None] = lambda list_: None,
    *,
    templates: bool = False,
    config_maps_in: str = "",
) -> ClusterListing:
    """Returns all objects of these kinds; of ConfigMaps, only Trimtab's own and the statuses of cluster autoscalers.
    The pod templates of owners are included if they are requested, or if a policy or a VPA exists. `config_maps_in`:
    the only namespace of which ConfigMaps are read, without the statuses; empty: all namespaces."""
    kinds = tuple(kinds)
    statuses = status_sources(client) if "ConfigMap" in kinds and not config_maps_in else ()
    cluster_listing = list_kinds(client, (*list_sources(kinds, config_maps_in), *statuses), on_list)
    if not templates and not any(
        cluster_listing.snapshot.objects.get(kind) for kind in ("PodPolicy", "VerticalPodAutoscaler")
    ):
        return cluster_listing
    owners = list_kinds(client, list_sources(OWNER_TEMPLATES), on_list)
    return ClusterListing(
        Snapshot(
            {**cluster_listing.snapshot.objects, **owners.snapshot.objects},
            forbidden=cluster_listing.snapshot.forbidden,
        ),
        (*cluster_listing.unreadable, *owners.unreadable),
        cluster_listing.absent,
    )


def plain_objects(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Returns every object, with its kind, as plain values. An owner includes its pod template, if that was read."""
    objects = {
        kind: objects_of_kind for kind, objects_of_kind in snapshot.objects.items() if kind not in OWNER_TEMPLATES
    }
    return [
        {
            "apiVersion": LIST_SOURCES[kind].group_version,
            "kind": kind,
            **_with_template(_to_plain(objects_of_kind), templates),
        }
        for kind, all_ in objects.items()
        for templates in (_templates(snapshot, kind),)
        for objects_of_kind in all_
    ]


def _templates(snapshot: Snapshot, kind: str) -> dict[Key, dict[str, Any]]:
    """Returns owner → its pod template. Owners that create no more pods, such as old ReplicaSets, are left out."""
    owners = snapshot.objects.get(kind + TEMPLATE, ())
    templates = {
        decode.object_key(owner.metadata): keep_template(owner) for owner in owners if isinstance(owner, Templated)
    }
    return {key: _to_plain(template) for key, template in templates.items() if template is not None}


def _with_template(item: dict[str, Any], templates: Mapping[Key, dict[str, Any]]) -> dict[str, Any]:
    meta = item.get("metadata", {})
    template = templates.get((meta.get("namespace", ""), meta.get("name", "")))
    return item if template is None else {**item, "spec": {**item.get("spec", {}), "template": template}}


def encode_capture(
    snapshot: Snapshot,
    unreadable: Iterable[Unreadable] = (),
    metrics: Iterable[dict[str, Any]] = (),
    *,
    salt: bytes | None = None,
) -> bytes:
    """Returns the content of the capture file, including the PodMetrics objects in `metrics`. With a `salt`, all names
    are hashed with it.

    Of an object that cannot be decoded, the file has only the name, so that no plan ignores the object: loading the
    file reports it as an error, just as reading the cluster does. Kinds that could not be listed are named.
    """
    documents = [*plain_objects(snapshot), *metrics, *map(_unreadable_item, unreadable)]
    if salt is not None:
        documents = hash_names(documents, salt)
    documents += (
        {"apiVersion": "trimtab.dev/v1alpha1", "kind": FORBIDDEN_KIND, "metadata": {"name": kind}}
        for kind in sorted(snapshot.forbidden)
    )
    documents.append({"apiVersion": "trimtab.dev/v1alpha1", "kind": CAPTURE_KIND, "metadata": {"name": "cluster"}})
    # One item per line: a large capture can still be read and compared.
    body = b",\n".join(msgspec.json.encode(item) for item in documents)
    return b'{"apiVersion":"v1","kind":"List","items":[\n' + body + b"\n]}\n"


def _unreadable_item(unreadable: Unreadable) -> dict[str, Any]:
    """Returns an item that only names an object which could not be decoded. `where` is "Pod shop/web" or "Node n1" (see
    `decode.decode_item`)."""
    kind, _, where = unreadable.where.partition(" ")
    kind = kind.removesuffix(TEMPLATE) if kind in OWNER_TEMPLATES else kind
    namespace, _, name = where.rpartition("/")
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {
        "apiVersion": LIST_SOURCES[kind].group_version,
        "kind": kind,
        "metadata": meta,
        UNREADABLE_FIELD: unreadable.problem,
    }


def _to_plain(shape: Any) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(shape)
    if getattr(shape, "kind", "") in PLAIN_SELECTOR_KINDS and "selector" in plain.get("spec", {}):
        plain["spec"]["selector"] = plain["spec"]["selector"].get("matchLabels", {})
    return {name: value for name, value in plain.items() if name not in ("kind", "apiVersion")}
