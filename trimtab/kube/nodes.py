"""A cordon, and what it takes to undo it, in one patch.

What is written on the node itself survives us: a cordon is ours only where our annotation came with it. Every patch
names the version it was decided on, so that nobody's change in between is overwritten (409, `Conflict`).

How many replicas? Through the scale subresource, and only from the number that was meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from trimtab.cluster.api.core import Taint
from trimtab.cluster.api.meta import Metadata
from trimtab.kube import decode
from trimtab.kube.client import MERGE
from trimtab.kube.errors import NotFound
from trimtab.kube.objects import Writer, parsed
from trimtab.kube.resources import PLACES, one


def cordon(writer: Writer, name: str, version: str, annotations: Mapping[str, str]) -> Metadata:
    """No new pods, and our annotations beside it. Returns the node's metadata as stored (its new version)."""
    return patch(writer, name, version, unschedulable=True, annotations=annotations)


def uncordon(writer: Writer, name: str, version: str, annotations: tuple[str, ...]) -> Metadata:
    """Open again, and our annotations gone."""
    return patch(writer, name, version, unschedulable=None, annotations=dict.fromkeys(annotations))


def patch(
    writer: Writer, name: str, version: str, *, unschedulable: bool | None, annotations: Mapping[str, str | None]
) -> Metadata:
    """One merge patch; None takes a field away."""
    body: dict[str, Any] = {
        "metadata": {"resourceVersion": version, "annotations": dict(annotations)},
        "spec": {"unschedulable": unschedulable},
    }
    doing = f"{'cordon' if unschedulable else 'uncordon'} Node {name}"
    return decode.metadata(
        Raw(writer.write("PATCH", one(PLACES["Node"], "", name), body, doing=doing, content_type=MERGE))
    )


def annotate(writer: Writer, name: str, version: str, annotations: Mapping[str, str | None]) -> Metadata:
    """These annotations and nothing else; None takes one away."""
    body = {"metadata": {"resourceVersion": version, "annotations": dict(annotations)}}
    path, doing = one(PLACES["Node"], "", name), f"annotate Node {name}"
    return decode.metadata(Raw(writer.write("PATCH", path, body, doing=doing, content_type=MERGE)))


def taint(writer: Writer, name: str, version: str, taints: Iterable[Taint]) -> Metadata:
    """All the taints the node shall have. Raises Conflict where it changed since `version`: the list is a whole."""
    body = {"metadata": {"resourceVersion": version}, "spec": {"taints": [msgspec.to_builtins(t) for t in taints]}}
    path, doing = one(PLACES["Node"], "", name), f"taint Node {name}"
    return decode.metadata(Raw(writer.write("PATCH", path, body, doing=doing, content_type=MERGE)))


def reopen(
    writer: Writer,
    name: str,
    version: str,
    *,
    uncordon: bool,
    annotations: Iterable[str],
    taints: Iterable[Taint] | None,
) -> Metadata:
    """In one patch: open again where asked, these annotations gone, these taints left (None: as they are)."""
    body: dict[str, Any] = {"metadata": {"resourceVersion": version, "annotations": dict.fromkeys(annotations)}}
    spec: dict[str, Any] = {"unschedulable": None} if uncordon else {}
    if taints is not None:
        spec["taints"] = [msgspec.to_builtins(taint) for taint in taints]
    if spec:
        body["spec"] = spec
    path, doing = one(PLACES["Node"], "", name), f"reopen Node {name}"
    return decode.metadata(Raw(writer.write("PATCH", path, body, doing=doing, content_type=MERGE)))


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Spec(msgspec.Struct):
    replicas: int = 0


class _Scale(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)


def scale(writer: Writer, kind: str, namespace: str, name: str, *, before: int, replicas: int) -> bool:
    """True when it was done; False where the number was another one, or nothing of that name is there.

    Raises Conflict where it changed in between.
    """
    path, doing = one(PLACES[kind], namespace, name, "scale"), f"scale {kind} {namespace}/{name} to {replicas}"
    try:
        found: _Scale = parsed(writer.client.get(path, doing=doing), _Scale, doing)
    except NotFound:
        return False
    if found.spec.replicas != before:
        return False
    body = {"metadata": {"resourceVersion": found.metadata.resource_version}, "spec": {"replicas": replicas}}
    writer.write("PATCH", path, body, doing=doing, content_type=MERGE)
    return True


def stop(writer: Writer, kind: str, namespace: str, name: str) -> bool:
    """No replica any more, whatever it had; False where nothing of that name is there."""
    path, doing = one(PLACES[kind], namespace, name, "scale"), f"stop {kind} {namespace}/{name}"
    try:
        writer.write("PATCH", path, {"spec": {"replicas": 0}}, doing=doing, content_type=MERGE)
    except NotFound:
        return False
    return True
