"""Can the VPA's own webhook act?

P5 is only a beginning: the VPA's admission controller must be there to take over, or a pod keeps a twentieth of what
it needs. It is there when

- a MutatingWebhookConfiguration holds its webhook (`vpa.k8s.io`, whatever the configuration is called), and
- the API server can trust it: a caBundle is given, and
- somebody answers: its Service has a ready endpoint; or it is called by a URL, behind which nobody can look.

It is called for a pod when the configuration's selectors choose the pod's namespace and the pod itself, and there is no
`matchConditions`, which only the API server can evaluate.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from trimtab.cluster.api.admissionregistration import EndpointSlice, MutatingWebhook, MutatingWebhookConfiguration
from trimtab.cluster.api.meta import Labels, LabelSelector, get
from trimtab.cluster.selectors import labels_match

NAME = "vpa.k8s.io"
SERVICE_LABEL = "kubernetes.io/service-name"

Service = tuple[str, str]
"""(namespace, name)"""
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class WebhookReach:
    """Which pods a webhook is called for."""

    namespaces: LabelSelector | None = None
    """None: those of every namespace."""
    pods: LabelSelector | None = None
    """None: every pod."""
    conditional: bool = False
    """Expressions that nobody here evaluates narrow it further."""

    def includes_pod(self, namespace: Labels | None, pod: Mapping[str, str]) -> bool:
        """Is it called for a pod with these labels in a namespace with those? What is not known is not included."""
        if self.conditional:
            return False
        if self.namespaces is not None and (namespace is None or not labels_match(self.namespaces, namespace)):
            return False
        return self.pods is None or labels_match(self.pods, pod)


ANYWHERE = WebhookReach()
EVERYWHERE = (ANYWHERE,)
"""The reach of a webhook that is called for every pod: one object, so that equal facts are found to be the same."""


def anywhere(acts: bool) -> tuple[WebhookReach, ...]:
    """The reach of a webhook of which only is known whether it can act."""
    return EVERYWHERE if acts else ()


@dataclass(frozen=True, slots=True)
class WebhookTarget:
    """Where the API server finds the webhook, whether it has what it needs to trust it, and when it calls."""

    service: Service | None
    trusted: bool
    reach: WebhookReach = ANYWHERE


@dataclass(frozen=True, slots=True)
class Endpoints:
    """One slice of a Service's endpoints: is any of them ready?"""

    service: Service
    ready: bool


def called(found: MutatingWebhookConfiguration) -> tuple[WebhookTarget, ...]:
    """What is held of a configuration: the VPA's webhooks in it, nearly always none."""
    return tuple(_called(webhook) for webhook in found.webhooks if webhook.name == NAME)


def _called(webhook: MutatingWebhook) -> WebhookTarget:
    config = webhook.client_config
    reach = WebhookReach(
        _narrowing(webhook.namespace_selector), _narrowing(webhook.object_selector), bool(webhook.match_conditions)
    )
    if config.service is None:
        return WebhookTarget(None, bool(config.url), reach)
    return WebhookTarget((config.service.namespace, config.service.name), bool(config.ca_bundle), reach)


def _narrowing(selector: LabelSelector | None) -> LabelSelector | None:
    """None where it chooses everything."""
    return None if selector == LabelSelector() else selector


def endpoints(found: EndpointSlice) -> Endpoints:
    """What is held of a slice. An endpoint whose condition is unknown is ready (discovery/v1)."""
    service = get(found.metadata.labels, {}).get(SERVICE_LABEL, "")
    ready = any(endpoint.conditions.ready is not False for endpoint in found.endpoints or ())
    return Endpoints((found.metadata.namespace, service), ready)


def services(configurations: Mapping[Key, tuple[WebhookTarget, ...]]) -> frozenset[Service]:
    """Whose endpoints must be known for an answer."""
    return frozenset(c.service for found in configurations.values() for c in found if c.service and c.trusted)


def reach(
    configurations: Mapping[Key, tuple[WebhookTarget, ...]], slices: Mapping[Key, Endpoints]
) -> tuple[WebhookReach, ...]:
    """Which pods it can act on: one entry for each webhook of it that can; none where none can, or is known to."""
    ready = {found.service for found in slices.values() if found.ready}
    return tuple(
        c.reach
        for _, found in sorted(configurations.items())
        for c in found
        if c.trusted and (c.service is None or c.service in ready)
    )
