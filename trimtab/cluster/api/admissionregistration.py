"""Webhook configurations, the EndpointSlices of their Services, and objects of Trimtab's own custom resources."""

from typing import Any

from trimtab.cluster.api.meta import ApiObject, Dated, LabelSelector, Metadata, value_or


class ServiceReference(ApiObject, frozen=True, kw_only=True):
    namespace: str = ""
    name: str = ""


class ClientConfig(ApiObject, frozen=True, kw_only=True):
    """Where the API server reaches a webhook. Either `service` or `url` is set; `ca_bundle` is base64, and empty where
    the system's certificate authorities are to be used."""

    service: ServiceReference | None = None
    url: str = ""
    ca_bundle: str = ""


class MutatingWebhook(ApiObject, frozen=True, kw_only=True):
    name: str = ""
    client_config: ClientConfig = ClientConfig()
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    failure_policy: str = ""
    """Fail or Ignore; empty means the API server's default, Fail."""
    match_conditions: tuple[Any, ...] | None = None
    """The CEL expressions that limit which requests are sent to the webhook; Trimtab does not evaluate them."""


class MutatingWebhookConfiguration(ApiObject, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    webhooks: tuple[MutatingWebhook, ...] = ()


LABEL = ("app.kubernetes.io/name", "trimtab")
"""The label on everything that Trimtab installs."""


def is_trimtab_configuration(meta: Metadata, name: str) -> bool:
    """Returns whether this is Trimtab's webhook configuration: it has the given name or Trimtab's label. (A kustomize
    prefix changes the name, and not the label.)"""
    return meta.name == name or value_or(meta.labels, {}).get(LABEL[0]) == LABEL[1]


class EndpointConditions(ApiObject, frozen=True, kw_only=True):
    ready: bool | None = None
    """Whether the endpoint is ready. None means unknown, which clients must treat as ready (discovery.k8s.io/v1)."""


SERVICE_LABEL = "kubernetes.io/service-name"
"""The label of an EndpointSlice with the name of its Service."""


class Endpoint(ApiObject, frozen=True, kw_only=True):
    conditions: EndpointConditions = EndpointConditions()


class EndpointSlice(ApiObject, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    endpoints: tuple[Endpoint, ...] | None = None


class Custom(ApiObject, frozen=True, kw_only=True):
    """An object of one of Trimtab's CustomResourceDefinitions, with its spec and status as plain JSON values."""

    api_version: str = ""
    kind: str = ""
    metadata: Dated = Dated()
    spec: Any = None
    status: Any = None
