"""Whether a login may do all that an order needs, and who it is.

A right that is missing in the middle of an order would leave it half done, and a list that may not be read is not an
empty list. So an order begins only with all rights.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from trimtab.compactor.cluster_reader import WATCHED_KINDS
from trimtab.kube.client import Client
from trimtab.kube.errors import KubeFault
from trimtab.kube.objects import decode_as
from trimtab.kube.resources import list_sources

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


class _ReviewStatus(msgspec.Struct):
    allowed: bool = False


class _Review(msgspec.Struct):
    status: _ReviewStatus = msgspec.field(default_factory=_ReviewStatus)


class _User(msgspec.Struct):
    username: str = ""


class _SelfStatus(msgspec.Struct, rename="camel"):
    user_info: _User = msgspec.field(default_factory=_User)


class _SelfReview(msgspec.Struct):
    status: _SelfStatus = msgspec.field(default_factory=_SelfStatus)


def list_missing_rights(client: Client, namespaces: Iterable[str]) -> list[str]:
    """Returns the rights that an order needs and the login lacks, such as "patch nodes"; an empty list if it has all.

    namespaces: those of the pods to evict. Raises KubeFault."""
    single = (("patch", "nodes"), ("get", "nodes"), ("get", "pods"))
    missing = [f"{verb} {resource}" for verb, resource in single if not _is_allowed(client, verb, resource)]
    for source in list_sources(WATCHED_KINDS):
        group = source.group_version.rpartition("/")[0]
        missing += [
            f"{verb} {source.plural}{'.' if group else ''}{group}"
            for verb in ("list", "watch")
            if not _is_allowed(client, verb, source.plural, group=group)
        ]
    # Most logins may evict everywhere, which one review says.
    if not _is_allowed(client, "create", "pods", subresource="eviction"):
        missing += [
            f"create pods/eviction in namespace {namespace}"
            for namespace in sorted(set(namespaces))
            if not _is_allowed(client, "create", "pods", subresource="eviction", namespace=namespace)
        ]
    return missing


def may_evict(client: Client, namespace: str, name: str) -> bool:
    """Returns whether the login may evict this pod. Raises KubeFault."""
    return _is_allowed(client, "create", "pods", subresource="eviction", namespace=namespace, name=name)


def _is_allowed(
    client: Client,
    verb: str,
    resource: str,
    *,
    group: str = "",
    subresource: str = "",
    namespace: str = "",
    name: str = "",
) -> bool:
    attributes: dict[str, Any] = {
        "verb": verb,
        "group": group,
        "resource": resource,
        "subresource": subresource,
        "namespace": namespace,
        "name": name,
    }
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    doing = f"ask whether the login may {verb} {resource}"
    review: _Review = decode_as(client.write("POST", _REVIEWS, body, doing=doing), _Review, doing)
    return review.status.allowed


def read_own_name(client: Client) -> str:
    """Returns the name of the login's user as the API server knows it, or an empty string if it does not say."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    doing = "read the name of the login"
    try:
        review: _SelfReview = decode_as(client.write("POST", _SELF, body, doing=doing), _SelfReview, doing)
    except KubeFault:
        return ""
    return review.status.user_info.username
