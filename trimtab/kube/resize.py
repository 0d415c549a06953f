"""Resizes a running pod, and distinguishes the possible outcomes.

The requests of containers are changed through the pod's `resize` subresource, with a strategic merge patch: containers
are found by their names, and everything that is not named stays the same. The patch names the pod's uid and
resourceVersion, so if the pod was replaced or changed since the decision, the result is a conflict.

Measured on Kubernetes 1.36: the answer is 422 if the first running container of the pod does not report `resources` in
its status (its kubelet cannot resize), and if the resize would change the quality of service class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

from trimtab.kube.client import STRATEGIC_PATCH, Client
from trimtab.kube.errors import Conflict, NotFound, RequestRefused
from trimtab.kube.objects import Writer, decode_as
from trimtab.kube.resources import LIST_SOURCES, object_path

MIN_MINOR = 33
"""The first minor version of Kubernetes 1 in which resizing pods is enabled by default."""
_RIGHT = "pods/resize"

Requests = Mapping[str, Mapping[str, str]]
"""Container → resource → quantity."""


class ResizeStatus(StrEnum):
    RESIZED = "resized"
    """The API server has stored the resize; the kubelet answers later."""
    CHANGED = "changed"
    """The pod was replaced, or has changed since it was read."""
    GONE = "gone"
    REJECTED = "rejected"
    """A webhook, a quota, a LimitRange or the validation rejects the resize."""
    NOT_PERMITTED = "not-permitted"
    """This identity may not resize pods at all."""


@dataclass(frozen=True, slots=True)
class ResizeOutcome:
    """The outcome of a resize, with the server's message if the resize was refused."""

    status: ResizeStatus
    message: str = ""


def resize_pod(
    writer: Writer,
    namespace: str,
    name: str,
    uid: str,
    version: str,
    requests: Requests,
    sidecars: frozenset[str] = frozenset(),
) -> ResizeOutcome:
    """Changes requests of a running pod, and returns the outcome. `sidecars` are the containers that are among the init
    containers. Raises KubeFault for errors that are not an outcome of a resize."""
    parts: dict[str, list[dict[str, Any]]] = {}
    for container, amounts in requests.items():
        part = "initContainers" if container in sidecars else "containers"
        parts.setdefault(part, []).append({"name": container, "resources": {"requests": dict(amounts)}})
    body = {"metadata": {"uid": uid, "resourceVersion": version}, "spec": parts}
    path = object_path(LIST_SOURCES["Pod"], namespace, name, "resize")
    doing = f"resize Pod {namespace}/{name}"
    try:
        writer.write("PATCH", path, body, doing=doing, content_type=STRATEGIC_PATCH)
    except NotFound as error:
        return ResizeOutcome(ResizeStatus.GONE, error.message)
    except Conflict as error:
        return ResizeOutcome(ResizeStatus.CHANGED, error.message)
    except RequestRefused as error:
        if error.status == 403 and _RIGHT in error.message:
            return ResizeOutcome(ResizeStatus.NOT_PERMITTED, error.message)
        if error.status in (400, 403, 405, 422):
            return ResizeOutcome(ResizeStatus.REJECTED, error.message)
        raise
    return ResizeOutcome(ResizeStatus.RESIZED)


class _Version(msgspec.Struct):
    major: str = ""
    minor: str = ""


class _Resource(msgspec.Struct):
    name: str = ""


class _ResourceList(msgspec.Struct):
    resources: tuple[_Resource, ...] = ()


def find_resize_obstacle(client: Client) -> str:
    """Returns why running pods cannot be resized in this cluster, as text, or an empty string if they can. Raises
    KubeFault."""
    doing = "read the server's version"
    version: _Version = decode_as(client.get("/version", doing=doing), _Version, doing)
    # Some platforms write 33+.
    digits = "".join(character for character in version.minor if character.isdecimal())
    if version.major == "1" and digits and int(digits) < MIN_MINOR:
        return f"the API server runs Kubernetes 1.{digits}"
    doing = "list the resources of the core API"
    listed: _ResourceList = decode_as(client.get("/api/v1", doing=doing), _ResourceList, doing)
    if all(resource.name != _RIGHT for resource in listed.resources):
        return "the API server does not serve pods/resize (feature InPlacePodVerticalScaling)"
    return ""
