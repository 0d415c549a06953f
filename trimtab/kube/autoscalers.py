"""Raises `minReplicas` of a HorizontalPodAutoscaler for a while, and sets it back.

What was stands beside it in an annotation of the same patch. The admission policy of Trimtab's accounts permits a lower
`minReplicas` only if it is what that annotation says, so that no account can take a workload below what its owners
wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.cluster.count_autoscalers import MIN_REPLICAS_BEFORE
from trimtab.kube.client import MERGE_PATCH
from trimtab.kube.errors import NotFound
from trimtab.kube.objects import Writer, decode_as
from trimtab.kube.resources import LIST_SOURCES, object_path


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    annotations: Mapping[str, str] = {}


class _Spec(msgspec.Struct, rename="camel"):
    min_replicas: int = 1
    max_replicas: int = 0


class _Autoscaler(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)


def set_min_replicas(writer: Writer, namespace: str, name: str, *, before: int, minimum: int) -> bool:
    """Changes `minReplicas` from `before` to `minimum`. Returns True if it is set. Returns False if the present value
    is not `before`, if `minimum` is more than `maxReplicas`, or if the object does not exist.

    Raises Conflict if the object was changed at the same time.
    """
    path = object_path(LIST_SOURCES["HorizontalPodAutoscaler"], namespace, name)
    doing = f"set minReplicas of HorizontalPodAutoscaler {namespace}/{name} to {minimum}"
    try:
        present: _Autoscaler = decode_as(writer.client.get(path, doing=doing), _Autoscaler, doing)
    except NotFound:
        return False
    spec, mark = present.spec, present.metadata.annotations.get(MIN_REPLICAS_BEFORE)
    is_possible = spec.min_replicas == before and minimum <= spec.max_replicas
    if not is_possible and (mark is None or mark.partition("-")[2] == str(spec.min_replicas)):
        return False
    # Another client has written another value since: the mark of ours is no longer true, and goes.
    is_raised = is_possible and minimum > before
    body: dict[str, Any] = {
        "metadata": {
            "resourceVersion": present.metadata.resource_version,
            "annotations": {MIN_REPLICAS_BEFORE: f"{before}-{minimum}" if is_raised else None},
        }
    }
    if is_possible:
        body["spec"] = {"minReplicas": minimum}
    writer.write("PATCH", path, body, doing=doing, content_type=MERGE_PATCH)
    return is_possible
