"""Finds the states of single processes, for checks that are about one process."""

from collections.abc import Mapping
from typing import TypeVar

from trimtab.cluster.processes import COMPACTOR, METRICS_API, RECOMMENDER, WATCHDOG, WEBHOOK
from trimtab.cluster.reason import Unreadable
from trimtab.diagnosis.observed import DeploymentState, ObservedCluster

T = TypeVar("T")


def find_webhook(states: Mapping[str, T]) -> T:
    """Returns what `states`, a mapping by process, has for the webhook."""
    return states[WEBHOOK.name]


def find_watchdog(states: Mapping[str, T]) -> T:
    """Returns what `states`, a mapping by process, has for the watchdog."""
    return states[WATCHDOG.name]


def find_compactor(states: Mapping[str, T]) -> T:
    """Returns what `states`, a mapping by process, has for the compactor."""
    return states[COMPACTOR.name]


def find_recommender(states: Mapping[str, T]) -> T:
    """Returns what `states`, a mapping by process, has for the recommender."""
    return states[RECOMMENDER.name]


def find_metrics_api(states: Mapping[str, T]) -> T:
    """Returns what `states`, a mapping by process, has for the metrics API."""
    return states[METRICS_API.name]


def is_recommender_only(cluster: ObservedCluster) -> bool:
    """Returns whether the installation consists of the recommender alone, for VPAs (`install --mode vpa`)."""
    installed = {name for name, state in cluster.processes.items() if state is not None}
    state = cluster.processes.get(RECOMMENDER.name)
    return installed == {RECOMMENDER.name} and isinstance(state, DeploymentState) and state.writes_vpa_status


def is_absent(cluster: ObservedCluster) -> bool:
    """Returns whether nothing of an installation is in the cluster: no definition, no process and no webhook
    configuration. What cannot be read may be there."""
    has_process = any(state is not None for state in cluster.processes.values())
    if has_process or cluster.crd is not None or cluster.validating is not None:
        return False
    mutating = cluster.mutating
    return not isinstance(mutating, Unreadable) and not any(one.name.startswith("trimtab") for one in mutating)


def is_webhook(process: str) -> bool:
    """Returns whether the process is the webhook."""
    return process == WEBHOOK.name


def is_metrics_api(process: str) -> bool:
    """Returns whether the process is the metrics API."""
    return process == METRICS_API.name
