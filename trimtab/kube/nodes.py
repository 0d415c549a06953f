"""Cordons a node and reverses that, each in one patch; and changes the replicas of a workload.

Annotations on the node survive a restart of the process: a cordon belongs to Trimtab only if its annotation was set
with it. Every patch names the version for which it was decided, so that a change in between is not overwritten (409,
`Conflict`).

Replicas are changed through the scale subresource, and only if the present number is the expected one.
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
    """Cordons a node and sets annotations on it. Returns the node's metadata with its new version."""
    return patch_node(writer, name, version, unschedulable=True, annotations=annotations)


def uncordon(writer: Writer, name: str, version: str, annotations: tuple[str, ...]) -> Metadata:
    """Uncordons a node and removes these annotations. Returns the node's metadata with its new version."""
    return patch_node(writer, name, version, unschedulable=None, annotations=dict.fromkeys(annotations))


def patch_node(
    writer: Writer, name: str, version: str, *, unschedulable: bool | None, annotations: Mapping[str, str | None]
) -> Metadata:
    """Changes `unschedulable` and annotations in one merge patch; None removes a field. Returns the node's metadata
    with its new version."""
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
    """Changes these annotations and nothing else; None removes one. Returns the node's metadata with its new
    version."""
    body = {"metadata": {"resourceVersion": version, "annotations": dict(annotations)}}
    path, doing = object_path(LIST_SOURCES["Node"], "", name), f"annotate Node {name}"
    return decode.decode_metadata(Raw(writer.write("PATCH", path, body, doing=doing, content_type=MERGE_PATCH)))


def set_taints(writer: Writer, name: str, version: str, taints: Iterable[Taint]) -> Metadata:
    """Replaces all taints of a node. Raises Conflict if the node has changed since `version`, because the patch
    replaces the whole list."""
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
    """Uncordons a node if requested, removes these annotations and replaces the taints (None: unchanged), all in one
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
    """Changes the number of replicas from `before` to `replicas`. Returns True if it is set. Returns False if the
    present number is not `before`, or if the object does not exist.

    Raises Conflict if the object was changed at the same time.
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
    """Scales a workload to 0 replicas, whatever its present number is. Returns False if the object does not exist."""
    path, doing = object_path(LIST_SOURCES[kind], namespace, name, "scale"), f"scale {kind} {namespace}/{name} to 0"
    try:
        writer.write("PATCH", path, {"spec": {"replicas": 0}}, doing=doing, content_type=MERGE_PATCH)
    except NotFound:
        return False
    return True
