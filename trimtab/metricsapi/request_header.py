"""Determines which user sends a request, from headers of the aggregation layer, if a client certificate proves that it
has sent them.

API servers authenticate their clients, and forward each request with the user's name and groups in headers. The headers
count only on a connection with a client certificate that was signed by the authority in the ConfigMap
kube-system/extension-apiserver-authentication and has one of the allowed names. Any other request counts as having no
user.

Source: https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/ and the request header
authenticator of k8s.io/apiserver 1.36.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import msgspec

from trimtab.cluster.reason import Unreadable

CONFIG_NAMESPACE, CONFIG_NAME = "kube-system", "extension-apiserver-authentication"
MAX_GROUPS = 1000
SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:"
AUTHENTICATED, UNAUTHENTICATED, ANONYMOUS = "system:authenticated", "system:unauthenticated", "system:anonymous"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHeaderConfig:
    """How the API servers of this cluster name the user of a request."""

    client_ca: str
    """The certificate authorities of the aggregation layer's client certificates, as PEM."""
    allowed_names: tuple[str, ...] = ()
    """The common names that these certificates may have; empty allows every name."""
    username_headers: tuple[str, ...] = ("x-remote-user",)
    group_headers: tuple[str, ...] = ("x-remote-group",)
    extra_prefixes: tuple[str, ...] = ("x-remote-extra-",)
    """The prefixes of headers with extra fields of the user. They are in lower case, like all header names in this
    module."""
    uid_headers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RemoteUser:
    """The user of a request, as API servers identify users."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = field(default=())

    @property
    def sharer(self) -> str:
        """Returns the one that shares with others: for a ServiceAccount its namespace, because a tenant can create any
        number of accounts there; one for all users without a name of their own; else the user."""
        if self.name.startswith(SERVICE_ACCOUNT_PREFIX):
            return f"namespace {self.name.removeprefix(SERVICE_ACCOUNT_PREFIX).partition(':')[0]}"
        if self.name in ("", ANONYMOUS) or UNAUTHENTICATED in self.groups:
            return "unauthenticated"
        return f"user {self.name}"


def read_config(data: Mapping[str, Any]) -> RequestHeaderConfig | Unreadable:
    """Returns the configuration in the ConfigMap's data; Unreadable if no user could be authenticated with it."""
    ca = data.get("requestheader-client-ca-file")
    where = f"ConfigMap {CONFIG_NAMESPACE}/{CONFIG_NAME}"
    if not isinstance(ca, str) or "BEGIN CERTIFICATE" not in ca:
        return Unreadable(
            where, "the ConfigMap has no requestheader-client-ca-file: the API server has no aggregation layer"
        )
    try:
        return RequestHeaderConfig(
            client_ca=ca,
            allowed_names=_read_names(data, "requestheader-allowed-names", ()),
            username_headers=_lowered(_read_names(data, "requestheader-username-headers", ("x-remote-user",))),
            group_headers=_lowered(_read_names(data, "requestheader-group-headers", ("x-remote-group",))),
            extra_prefixes=_lowered(_read_names(data, "requestheader-extra-headers-prefix", ("x-remote-extra-",))),
            uid_headers=_lowered(_read_names(data, "requestheader-uid-headers", ())),
        )
    except msgspec.DecodeError as error:
        return Unreadable(where, str(error))


def _read_names(data: Mapping[str, Any], key: str, default: tuple[str, ...]) -> tuple[str, ...]:
    """Returns a list of names, which is JSON in the ConfigMap; `default` if it is absent."""
    text = data.get(key)
    return msgspec.json.decode(text, type=tuple[str, ...]) if isinstance(text, str) and text.strip() else default


def _lowered(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name.lower() for name in names)


def authenticate_user(
    config: RequestHeaderConfig, certificate_names: Sequence[str] | None, headers: Iterable[tuple[bytes, bytes]]
) -> RemoteUser | None:
    """Returns the user that the headers name, or None if no valid certificate proves their origin or they name no user.

    `certificate_names` are the common names of the client certificate that the TLS handshake has verified, or None if
    there was no certificate.
    """
    if certificate_names is None:
        return None
    if config.allowed_names and not set(certificate_names) & set(config.allowed_names):
        return None
    by_name: dict[str, list[str]] = {}
    for name, value in headers:
        by_name.setdefault(name.decode("latin-1").lower(), []).append(value.decode("utf-8", "replace"))
    user = next((value for name in config.username_headers for value in by_name.get(name, ()) if value), "")
    if not user:
        return None
    groups = tuple(value for name in config.group_headers for value in by_name.get(name, ()))
    # Part of a user's groups would be another user: a rule may deny by a group. API servers send a few.
    if len(groups) > MAX_GROUPS:
        return None
    uid = next((value for name in config.uid_headers for value in by_name.get(name, ()) if value), "")
    # The groups with `system:authenticated` added, unless the user is anonymous. An API server's own requests name
    # the user system:kube-aggregator and no group. Kubernetes' own servers add `system:authenticated`, because the
    # roles of this group permit discovery (AuthenticatedGroupAdder in k8s.io/apiserver 1.36).
    return RemoteUser(
        user,
        groups
        if user == ANONYMOUS or AUTHENTICATED in groups or UNAUTHENTICATED in groups
        else (*groups, AUTHENTICATED),
        uid,
        _read_extra(config, by_name),
    )


def _read_extra(
    config: RequestHeaderConfig, by_name: Mapping[str, Sequence[str]]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    extra = {}
    for name, values in by_name.items():
        prefix = next((prefix for prefix in config.extra_prefixes if name.startswith(prefix)), None)
        if prefix is not None:
            # Keys are escaped, because a header's name cannot have every character.
            extra[unquote(name.removeprefix(prefix))] = tuple(values)
    return tuple(sorted(extra.items()))
