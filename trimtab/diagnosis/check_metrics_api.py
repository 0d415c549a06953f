"""Checks the provider of custom metrics: there is only one, and it answers."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trimtab.cluster.reason import Unreadable
from trimtab.diagnosis.finding import Check, DoctorFinding, report_error, report_ok, report_unknown, report_warning
from trimtab.diagnosis.observed import ApiServiceState, DeploymentState, MetricsApiState, ObservedCluster
from trimtab.diagnosis.reasons import API_UNAVAILABLE, API_UNREGISTERED, OTHER_PROVIDER
from trimtab.installation.processes.metrics_api import NAME
from trimtab.metricsapi.api_request import GROUP


def read_metrics_api_state(
    api_services: Iterable[Mapping[str, Any]], deployment: DeploymentState | None
) -> MetricsApiState:
    """Returns the APIServices of the custom metrics API, and the Deployment of `trimtab metrics-api`."""
    own_group = [one for one in api_services if (one.get("spec") or {}).get("group") == GROUP]
    return MetricsApiState(api_services=tuple(map(_decode_api_service, own_group)), deployment=deployment)


def _decode_api_service(document: Mapping[str, Any]) -> ApiServiceState:
    service = document["spec"].get("service") or {}
    conditions = (document.get("status") or {}).get("conditions") or ()
    available: Mapping[str, Any] = next((one for one in conditions if one.get("type") == "Available"), {})
    return ApiServiceState(
        name=document["metadata"]["name"],
        service=f"{service.get('namespace')}/{service.get('name')}" if service else "",
        is_available=available.get("status") == "True",
        message=available.get("message", ""),
    )


def check_metrics_api(cluster: ObservedCluster) -> Iterator[DoctorFinding]:
    """Yields whether custom metrics have at most one provider, and whether Trimtab's provider answers if it is
    installed."""
    state = cluster.metrics_api
    if isinstance(state, Unreadable):
        yield report_unknown(state)
        return
    own_service = f"{cluster.namespace}/{NAME}"
    others = [one for one in state.api_services if one.service != own_service]
    is_registered = len(others) < len(state.api_services)
    if (is_registered or state.deployment is not None) and others:
        names = ", ".join(f"{one.name} ({one.service or 'no Service'})" for one in others)
        yield report_error(OTHER_PROVIDER, f"other providers of custom metrics are registered: {names}")
    if not is_registered and state.deployment is None:
        provider = ", ".join(one.service or one.name for one in others)
        yield report_ok(
            f"the metrics API of Trimtab is not installed; the provider of custom metrics is {provider or 'none'}"
        )
        return
    yield from _check_registration(state, own_service)


def _check_registration(state: MetricsApiState, own_service: str) -> Iterator[DoctorFinding]:
    own = [one for one in state.api_services if one.service == own_service]
    if not own:
        yield report_warning(API_UNREGISTERED, "there is a Deployment of the metrics API, but no APIService")
    for one in own:
        if one.is_available:
            yield report_ok(f"the API server reaches the metrics API through APIService {one.name}")
        else:
            missing = "" if state.deployment is not None else "; the Deployment does not exist"
            yield report_error(API_UNAVAILABLE, f"{one.name}: {one.message or 'not available'}{missing}")


CHECKS = (
    Check(
        name="metrics-api",
        asks="Does the custom metrics API have one provider, and does it answer?",
        judge=check_metrics_api,
        may=(API_UNAVAILABLE, API_UNREGISTERED, OTHER_PROVIDER),
    ),
)
