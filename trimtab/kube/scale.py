"""How many replicas? Through the scale subresource, and only from the number that was meant."""

from __future__ import annotations

import msgspec

from trimtab.kube.client import MERGE
from trimtab.kube.errors import NotFound
from trimtab.kube.kinds import PLACES, one
from trimtab.kube.objects import parsed
from trimtab.kube.writer import Writer


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
