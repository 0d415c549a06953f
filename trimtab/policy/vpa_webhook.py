"""Determines for which pods the VPA's own webhook can act.

P5 is only a first request for a pod that a VPA manages. If the VPA's admission controller cannot replace it, the pod
keeps a request that is far too small. The webhook can act if

- a MutatingWebhookConfiguration contains its webhook (`vpa.k8s.io`, whatever the name of the configuration),
- the API server can verify it (a caBundle is set), and
- its Service has a ready endpoint. A webhook that is called by a URL counts as ready, because nothing in the cluster
  shows whether it is.

The webhook is called for a pod if the configuration's selectors match the pod's namespace and the pod itself, and if
there are no `matchConditions`, which only the API server can evaluate.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from trimtab.cluster.api.admissionregistration import (
    SERVICE_LABEL,
    EndpointSlice,
    MutatingWebhook,
    MutatingWebhookConfiguration,
)
from trimtab.cluster.api.meta import Labels, LabelSelector, value_or
from trimtab.cluster.selectors import labels_match

VPA_WEBHOOK_NAME = "vpa.k8s.io"

Service = tuple[str, str]
"""(namespace, name) of a Service."""
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class WebhookReach:
    """The pods for which a webhook is called."""

    namespaces: LabelSelector | None = None
    """The label selector for namespaces; None: all namespaces."""
    pods: LabelSelector | None = None
    """The label selector for pods; None: all pods."""
    conditional: bool = False
    """Whether `matchConditions`, which Trimtab does not evaluate, may exclude further pods."""

    def includes_pod(self, namespace_labels: Labels | None, pod_labels: Mapping[str, str]) -> bool:
        """Returns whether the webhook is called for a pod with these labels in a namespace with these labels. If it is
        not known, returns False."""
        # The cautious answer: a pod that is left to the VPA must really be seen by it.
        if self.conditional:
            return False
        if self.namespaces is not None and (
            namespace_labels is None or not labels_match(self.namespaces, namespace_labels)
        ):
            return False
        return self.pods is None or labels_match(self.pods, pod_labels)


ANYWHERE = WebhookReach()
# The reach of a webhook that is called for every pod. One object, so that a comparison by identity finds equal facts.
EVERYWHERE = (ANYWHERE,)


def reach_everywhere_if(can_act: bool) -> tuple[WebhookReach, ...]:
    """Returns the reach of a webhook of which only `can_act` is known: all pods, or none."""
    return EVERYWHERE if can_act else ()


@dataclass(frozen=True, slots=True)
class WebhookTarget:
    """Where the API server calls the webhook, whether it can verify the webhook, and for which pods it calls it."""

    service: Service | None
    trusted: bool
    reach: WebhookReach = ANYWHERE


@dataclass(frozen=True, slots=True)
class Endpoints:
    """One EndpointSlice of a Service, reduced to whether any endpoint is ready."""

    service: Service
    ready: bool


def find_vpa_targets(configuration: MutatingWebhookConfiguration) -> tuple[WebhookTarget, ...]:
    """Returns the VPA's webhooks in a configuration. Nearly every configuration has none."""
    return tuple(_to_target(webhook) for webhook in configuration.webhooks if webhook.name == VPA_WEBHOOK_NAME)


def _to_target(webhook: MutatingWebhook) -> WebhookTarget:
    config = webhook.client_config
    reach = WebhookReach(
        _narrowing_selector(webhook.namespace_selector),
        _narrowing_selector(webhook.object_selector),
        bool(webhook.match_conditions),
    )
    if config.service is None:
        # A URL needs no caBundle: the API server then uses the system's trust roots.
        return WebhookTarget(None, bool(config.url), reach)
    return WebhookTarget((config.service.namespace, config.service.name), bool(config.ca_bundle), reach)


def _narrowing_selector(selector: LabelSelector | None) -> LabelSelector | None:
    """Returns the selector, or None if it selects everything."""
    return None if selector == LabelSelector() else selector


def retain_endpoints(endpoint_slice: EndpointSlice) -> Endpoints:
    """Returns what is kept of an EndpointSlice. An endpoint without a condition counts as ready (discovery/v1)."""
    service = value_or(endpoint_slice.metadata.labels, {}).get(SERVICE_LABEL, "")
    # None means unknown, and consumers must treat it as ready.
    ready = any(endpoint.conditions.ready is not False for endpoint in endpoint_slice.endpoints or ())
    return Endpoints((endpoint_slice.metadata.namespace, service), ready)


def target_services(configurations: Mapping[Key, tuple[WebhookTarget, ...]]) -> frozenset[Service]:
    """Returns the Services whose endpoints must be known in order to determine the reach of the webhooks."""
    return frozenset(
        target.service for targets in configurations.values() for target in targets if target.service and target.trusted
    )


def find_webhook_reach(
    configurations: Mapping[Key, tuple[WebhookTarget, ...]], slices: Mapping[Key, Endpoints]
) -> tuple[WebhookReach, ...]:
    """Returns for which pods the VPA's webhooks can act, as one entry for each webhook that can act. Empty if none can,
    or if that is not known."""
    ready = {endpoint_slice.service for endpoint_slice in slices.values() if endpoint_slice.ready}
    return tuple(
        target.reach
        for _, targets in sorted(configurations.items())
        for target in targets
        if target.trusted and (target.service is None or target.service in ready)
    )
