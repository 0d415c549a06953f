"""The VPA's installation and the VPAs that name Trimtab, and how they are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from trimtab.policy import vpa_webhook

if TYPE_CHECKING:
    from trimtab.cluster.api.autoscaling import VerticalPodAutoscaler
    from trimtab.kube.client import Client


@dataclass(frozen=True, slots=True, kw_only=True)
class Vpa:
    """The state of the VerticalPodAutoscaler's installation."""

    installed: bool
    acts: bool
    """Whether the VPA's own webhook can change pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VpaStatusState:
    """A VPA that names Trimtab among its recommenders."""

    name: str
    """NAMESPACE/NAME of the VPA."""
    is_only_recommender: bool = True
    has_recommendation: bool = True
    has_pods: bool = True
    used_until: datetime | None = None
    """The time until which the usage goes from which Trimtab computed the recommendation; None if it did not."""


def decode_vpa_statuses(vpas: Iterable[VerticalPodAutoscaler]) -> Iterator[VpaStatusState]:
    """Yields the state of each VPA that names Trimtab, alone or with others."""
    from trimtab.cluster.recommendation import VPA_RECOMMENDER_NAME
    from trimtab.sizing.vpa.status import NO_PODS, names_trimtab, read_used_until

    for vpa in vpas:
        if VPA_RECOMMENDER_NAME not in [selector.name for selector in vpa.spec.recommenders]:
            continue
        seconds = read_used_until(vpa)
        yield VpaStatusState(
            name=f"{vpa.metadata.namespace}/{vpa.metadata.name}",
            is_only_recommender=names_trimtab(vpa),
            has_recommendation=bool(vpa.status.recommendation.container_recommendations),
            has_pods=not any(one.type == NO_PODS and one.status == "True" for one in vpa.status.conditions),
            used_until=None if seconds is None else datetime.fromtimestamp(seconds, UTC),
        )


def read_vpa(client: Client, hooks: dict[vpa_webhook.Key, tuple[vpa_webhook.WebhookTarget, ...]]) -> Vpa:
    """Returns the state of the VPA's installation. `hooks` has the VPA's webhooks in the cluster's webhook
    configurations. Raises any KubeFault."""
    from trimtab.kube.errors import NotFound
    from trimtab.kube.listing import iter_objects
    from trimtab.kube.resources import LIST_SOURCES, endpoint_slices

    try:
        client.get(LIST_SOURCES["VerticalPodAutoscaler"].list_path, {"limit": 1}, doing="list verticalpodautoscalers")
    except NotFound:
        return Vpa(installed=False, acts=False)
    slices: dict[vpa_webhook.Key, vpa_webhook.Endpoints] = {}
    for service in vpa_webhook.target_services(hooks):
        source = endpoint_slices(service)
        slices |= {key: vpa_webhook.retain_endpoints(shape) for key, shape in iter_objects(client, source)}
    return Vpa(installed=True, acts=bool(vpa_webhook.find_webhook_reach(hooks, slices)))


def read_vpa_statuses(client: Client) -> tuple[VpaStatusState, ...]:
    """Returns the VPAs that name Trimtab, in the order of the API server; an empty tuple if there are no VPAs. Raises
    any KubeFault."""
    from trimtab.kube.errors import NotFound
    from trimtab.kube.listing import iter_objects
    from trimtab.kube.resources import LIST_SOURCES

    try:
        vpas = [vpa for _, vpa in iter_objects(client, LIST_SOURCES["VerticalPodAutoscaler"])]
    except NotFound:
        return ()
    return tuple(decode_vpa_statuses(vpas))
