"""The Secret that all replicas share, and the webhook configurations that tell API servers whom to trust, as values."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import certs

Whole = dict[str, Any]

CONFIGURATIONS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")

INJECTED = ("cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret")
"""cert-manager's annotations: it keeps the caBundle of a configuration that carries one, and two must not."""

_CA, _CA_KEY, _CERTIFICATE, _KEY = "ca.crt", "ca.key", "tls.crt", "tls.key"


def folder_of(secret: Mapping[str, Any]) -> certs.Folder | None:
    """What the Secret holds; None while it holds no pair at all. What is no base64 counts as absent."""
    data = {name: _decoded(text) for name, text in (secret.get("data") or {}).items()}
    if not data.get(_CERTIFICATE) or not data.get(_KEY):
        return None
    return certs.Folder(
        bundle=data.get(_CA, b""),
        pair=certs.Pair(certificate=data[_CERTIFICATE], key=data[_KEY]),
        authority_key=data.get(_CA_KEY) or None,
    )


def filled(secret: Mapping[str, Any], folder: certs.Folder) -> Whole:
    """The same Secret with this in it."""
    held = {
        _CA: folder.bundle,
        _CA_KEY: folder.authority_key or b"",
        _CERTIFICATE: folder.pair.certificate,
        _KEY: folder.pair.key,
    }
    data = {name: base64.b64encode(content).decode() for name, content in held.items()}
    return {**secret, "data": {**(secret.get("data") or {}), **data}}


def left_alone(configuration: Mapping[str, Any]) -> bool:
    """Does somebody else keep this configuration's caBundle?"""
    annotations = configuration["metadata"].get("annotations") or {}
    return any(annotations.get(name) for name in INJECTED)


def bundles(configuration: Mapping[str, Any]) -> tuple[bytes, ...]:
    """The caBundle of each of its webhooks; empty bytes where there is none."""
    return tuple(_decoded(_client(found).get("caBundle") or "") for found in configuration.get("webhooks") or ())


def namespaces(configuration: Mapping[str, Any]) -> frozenset[str]:
    """Of the Services that its webhooks call; none where they are called by a URL."""
    services = [_client(found).get("service") for found in configuration.get("webhooks") or ()]
    return frozenset(service["namespace"] for service in services if service)


def trusting(configuration: Mapping[str, Any], bundle: bytes) -> Whole:
    """The same configuration with this caBundle in all its webhooks."""
    text = base64.b64encode(bundle).decode()
    webhooks = [
        {**found, "clientConfig": {**_client(found), "caBundle": text}} for found in configuration.get("webhooks") or ()
    ]
    return {**configuration, "webhooks": webhooks}


def _client(webhook: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = webhook.get("clientConfig") or {}
    return found


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
