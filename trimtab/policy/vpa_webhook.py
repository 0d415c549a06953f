"""Can the VPA's own webhook act?

P5 is only a beginning: the VPA's admission controller must be there to take over, or a pod keeps a twentieth of what
it needs. It is there when

- a MutatingWebhookConfiguration holds its webhook (`vpa.k8s.io`, whatever the configuration is called), and
- the API server can trust it: a caBundle is given, and
- somebody answers: its Service has a ready endpoint; or it is called by a URL, behind which nobody can look.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from trimtab.cluster.api.meta import get
from trimtab.cluster.api.webhooks import EndpointSlice, MutatingWebhook, MutatingWebhookConfiguration

NAME = "vpa.k8s.io"
SERVICE_LABEL = "kubernetes.io/service-name"

Service = tuple[str, str]
"""(namespace, name)"""
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Called:
    """Where the API server finds the webhook, and whether it has what it needs to trust it."""

    service: Service | None
    trusted: bool


@dataclass(frozen=True, slots=True)
class Endpoints:
    """One slice of a Service's endpoints: is any of them ready?"""

    service: Service
    ready: bool


def called(found: MutatingWebhookConfiguration) -> tuple[Called, ...]:
    """What is held of a configuration: the VPA's webhooks in it, nearly always none."""
    return tuple(_called(webhook) for webhook in found.webhooks if webhook.name == NAME)


def _called(webhook: MutatingWebhook) -> Called:
    config = webhook.client_config
    if config.service is None:
        return Called(None, bool(config.url))
    return Called((config.service.namespace, config.service.name), bool(config.ca_bundle))


def endpoints(found: EndpointSlice) -> Endpoints:
    """What is held of a slice. An endpoint whose condition is unknown is ready (discovery/v1)."""
    service = get(found.metadata.labels, {}).get(SERVICE_LABEL, "")
    ready = any(endpoint.conditions.ready is not False for endpoint in found.endpoints or ())
    return Endpoints((found.metadata.namespace, service), ready)


def services(configurations: Mapping[Key, tuple[Called, ...]]) -> frozenset[Service]:
    """Whose endpoints must be known for an answer."""
    return frozenset(c.service for found in configurations.values() for c in found if c.service and c.trusted)


def acts(configurations: Mapping[Key, tuple[Called, ...]], slices: Mapping[Key, Endpoints]) -> bool:
    """Can it act? What is not known yet cannot."""
    ready = {found.service for found in slices.values() if found.ready}
    return any(
        c.trusted and (c.service is None or c.service in ready) for found in configurations.values() for c in found
    )
