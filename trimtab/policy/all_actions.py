"""All actions of the policy language, in the order in which a policy applies them.

A RuntimeClass comes first: what it brings to the pod decides what placement contradicts. The sizes of volumes come
before the limits that such sizes make superfluous.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from trimtab.policy.actions import (
    disruption_terms,
    empty_dirs,
    labels,
    limits,
    overhead,
    placement_action,
    pod_level_requests,
    priority_class,
    requests_action,
    runtime_class,
    safe_to_evict_volumes,
    scheduler_name,
    termination_grace_period,
    topology_spread,
)
from trimtab.policy.actions.action import Action, PolicyTerms
from trimtab.policy.match import names_daemons
from trimtab.policy.podpolicy import Actions, PodPolicy

ACTIONS: tuple[Action[Any], ...] = (
    runtime_class.ACTION,
    overhead.ACTION,
    priority_class.ACTION,
    requests_action.ACTION,
    empty_dirs.ACTION,
    limits.ACTION,
    pod_level_requests.ACTION,
    placement_action.ACTION,
    topology_spread.ACTION,
    scheduler_name.ACTION,
    termination_grace_period.ACTION,
    safe_to_evict_volumes.ACTION,
    disruption_terms.ACTION,
    labels.LABELS_ACTION,
    labels.ANNOTATIONS_ACTION,
)

ACTIONS_THAT_NODES_DECIDE = tuple(action.name for action in ACTIONS if "nodes" in action.affects)
"""The actions because of which no node may have room for a pod."""
ACTIONS_THAT_QUOTAS_COUNT = tuple(action.name for action in ACTIONS if "quotas" in action.affects)
"""The actions because of which a quota may refuse a pod."""
ACTIONS_OF_WHOLE_PODS = (pod_level_requests.ACTION.name,)
"""The actions that request for all containers of a pod together, which not all kubelets know."""


def iterate_actions(actions: Actions) -> Iterator[tuple[Action[Any], Any]]:
    """Yields (action, its settings) for each action that is set, in the order in which the actions are applied."""
    for action in ACTIONS:
        settings = getattr(actions, action.name)
        if settings is not None:
            yield action, settings


def read_terms(policy: PodPolicy) -> PolicyTerms:
    """Returns what the actions of the policy may read of it."""
    settings: Mapping[str, Any] = {action.name: one for action, one in iterate_actions(policy.spec.actions)}
    return PolicyTerms(
        match=policy.spec.match,
        is_enabled=policy.spec.enabled,
        changes_guaranteed=policy.spec.guaranteed == "change",
        names_daemons=names_daemons(policy),
        settings_by_action=settings,
    )
