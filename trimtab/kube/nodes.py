"""A cordon and its reversal, in one patch; and the replicas of a workload.

Notes on the node itself survive a restart: a cordon belongs to Trimtab only where its annotation came with it. Every
patch names the version that it was decided on, so that a change in between is not overwritten (409, `Conflict`).

Replicas are changed through the scale subresource, and only from the number that was intended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from trimtab.cluster.api.core import Taint
from trimtab.cluster.api.meta import Metadata
from trimtab.kube import decode
from trimtab.kube.client import MERGE_PATCH
from trimtab.kube.errors import NotFound
from trimtab.kube.objects import Writer, decode_as
from trimtab.kube.resources import LIST_SOURCES, object_path


def cordon(writer: Writer, name: str, version: str, annotations: Mapping[str, str]) -> Metadata:
    """Cordon a node and set annotations on it. Returns the node's metadata as stored (its new version)."""
    return patch_node(writer, name, version, unschedulable=True, annotations=annotations)


def uncordon(writer: Writer, name: str, version: str, annotations: tuple[str, ...]) -> Metadata:
    """Uncordon a node and remove these annotations. Returns the metadata as stored."""
    return patch_node(writer, name, version, unschedulable=None, annotations=dict.fromkeys(annotations))


def patch_node(
    writer: Writer, name: str, version: str, *, unschedulable: bool | None, annotations: Mapping[str, str | None]
) -> Metadata:
    """Change `unschedulable` and annotations in one merge patch; None removes a field. Returns the metadata as
    stored."""
    body: dict[str, Any] = {
        "metadata": {"resourceVersion": version, "annotations": dict(annotations)},
        "spec": {"unschedulable": unschedulable},
    }
    doing = f"{'cordon' if unschedulable else 'uncordon'} Node {name}"
    return decode.decode_metadata(
        Raw(
            writer.write(
                "PATCH", object_path(LIST_SOURCES["Node"], "", name), body, doing=doing, content_type=MERGE_PATCH
            )
        )
    )


def annotate(writer: Writer, name: str, version: str, annotations: Mapping[str, str | None]) -> Metadata:
    """Change these annotations and nothing else; None removes one. Returns the metadata as stored."""
    body = {"metadata": {"resourceVersion": version, "annotations": dict(annotations)}}
    path, doing = object_path(LIST_SOURCES["Node"], "", name), f"annotate Node {name}"
    return decode.decode_metadata(Raw(writer.write("PATCH", path, body, doing=doing, content_type=MERGE_PATCH)))


def set_taints(writer: Writer, name: str, version: str, taints: Iterable[Taint]) -> Metadata:
    """Replace all taints of a node. Raises Conflict where it changed since `version`, since a patch replaces the whole
    list."""
    body = {"metadata": {"resourceVersion": version}, "spec": {"taints": [msgspec.to_builtins(t) for t in taints]}}
    path, doing = object_path(LIST_SOURCES["Node"], "", name), f"taint Node {name}"
    return decode.decode_metadata(Raw(writer.write("PATCH", path, body, doing=doing, content_type=MERGE_PATCH)))


def reopen_node(
    writer: Writer,
    name: str,
    version: str,
    *,
    uncordon: bool,
    annotations: Iterable[str],
    taints: Iterable[Taint] | None,
) -> Metadata:
    """Uncordon a node where requested, remove these annotations and replace the taints (None: unchanged), in one
    patch."""
    body: dict[str, Any] = {"metadata": {"resourceVersion": version, "annotations": dict.fromkeys(annotations)}}
    spec: dict[str, Any] = {"unschedulable": None} if uncordon else {}
    if taints is not None:
        spec["taints"] = [msgspec.to_builtins(taint) for taint in taints]
    if spec:
        body["spec"] = spec
    path, doing = object_path(LIST_SOURCES["Node"], "", name), f"uncordon Node {name}"
    return decode.decode_metadata(Raw(writer.write("PATCH", path, body, doing=doing, content_type=MERGE_PATCH)))


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Spec(msgspec.Struct):
    replicas: int = 0


class _Scale(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)


def scale_workload(writer: Writer, kind: str, namespace: str, name: str, *, before: int, replicas: int) -> bool:
    """Set the replicas from `before`; True when they are set; False if the number differs, or the object does not
    exist.

    Raises Conflict where it changed in between.
    """
    path, doing = (
        object_path(LIST_SOURCES[kind], namespace, name, "scale"),
        f"scale {kind} {namespace}/{name} to {replicas}",
    )
    try:
        current: _Scale = decode_as(writer.client.get(path, doing=doing), _Scale, doing)
    except NotFound:
        return False
    # Another controller, such as an HPA, has set a different number since: leave it.
    if current.spec.replicas != before:
        return False
    body = {"metadata": {"resourceVersion": current.metadata.resource_version}, "spec": {"replicas": replicas}}
    writer.write("PATCH", path, body, doing=doing, content_type=MERGE_PATCH)
    return True


def scale_to_zero(writer: Writer, kind: str, namespace: str, name: str) -> bool:
    """Scale to 0 replicas from any number; False if the object does not exist."""
    path, doing = object_path(LIST_SOURCES[kind], namespace, name, "scale"), f"scale {kind} {namespace}/{name} to 0"
    try:
        writer.write("PATCH", path, {"spec": {"replicas": 0}}, doing=doing, content_type=MERGE_PATCH)
    except NotFound:
        return False
    return True
