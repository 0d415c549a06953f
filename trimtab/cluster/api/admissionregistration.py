"""Who else changes pods as they are created, and is there anybody to do it?"""

from typing import Any

from trimtab.cluster.api.meta import ApiObject, Dated, LabelSelector, Metadata, get


class ServiceReference(ApiObject, frozen=True, kw_only=True):
    namespace: str = ""
    name: str = ""


class ClientConfig(ApiObject, frozen=True, kw_only=True):
    """One of `service` and `url` is given; `ca_bundle` is base64, empty for the system's own authorities."""

    service: ServiceReference | None = None
    url: str = ""
    ca_bundle: str = ""


class MutatingWebhook(ApiObject, frozen=True, kw_only=True):
    name: str = ""
    client_config: ClientConfig = ClientConfig()
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    match_conditions: tuple[Any, ...] | None = None
    """Expressions in CEL, which nobody here evaluates."""


class MutatingWebhookConfiguration(ApiObject, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    webhooks: tuple[MutatingWebhook, ...] = ()


LABEL = ("app.kubernetes.io/name", "trimtab")
"""On everything we install."""


def is_ours(meta: Metadata, name: str) -> bool:
    """A configuration of this name, or one that carries our label under another (a kustomize prefix)."""
    return meta.name == name or get(meta.labels, {}).get(LABEL[0]) == LABEL[1]


class EndpointConditions(ApiObject, frozen=True, kw_only=True):
    ready: bool | None = None
    """None means unknown, which the API asks to be read as ready."""


class Endpoint(ApiObject, frozen=True, kw_only=True):
    conditions: EndpointConditions = EndpointConditions()


class EndpointSlice(ApiObject, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    endpoints: tuple[Endpoint, ...] | None = None


class Custom(ApiObject, frozen=True, kw_only=True):
    """An object of a CustomResourceDefinition of ours: its spec and status as they were written."""

    api_version: str = ""
    kind: str = ""
    metadata: Dated = Dated()
    spec: Any = None
    status: Any = None
