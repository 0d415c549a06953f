"""The rules of `trimtab lint`: one small pure function per rule, one module per theme.

hpa_with_vpa        HPA and VPA on one workload
hpa_settings        metrics, bounds and behavior of an HPA
hpa_targets         what an HPA targets
vpa_bounds          minAllowed, maxAllowed and limits under a VPA
vpa_refused_requests  requests of a VPA that the API server refuses
vpa_targets         what a VPA targets, and whether it can act
disruption_budgets  PodDisruptionBudgets and replicas
quality_of_service  requests, limits and what they do to a pod
request_sizes       requests compared with usage
scheduling          schedulers, zones, gangs, traffic
pod_terms           what pods state about their own evictions
nodes               spot nodes, reservations, pods per node
cluster_autoscaler  the autoscaler's flags together with pools and buffers
trimtab_itself      Trimtab's own webhook, policies and recommender together with the rest
"""

from trimtab.autoscaling.rule import LintRule
from trimtab.autoscaling.rules import (
    cluster_autoscaler,
    disruption_budgets,
    hpa_settings,
    hpa_targets,
    hpa_with_vpa,
    nodes,
    pod_terms,
    quality_of_service,
    request_sizes,
    scheduling,
    trimtab_itself,
    vpa_bounds,
    vpa_refused_requests,
    vpa_targets,
    whole_pod_requests,
)

_THEMES = (
    hpa_with_vpa,
    hpa_settings,
    hpa_targets,
    vpa_bounds,
    vpa_refused_requests,
    vpa_targets,
    whole_pod_requests,
    disruption_budgets,
    quality_of_service,
    request_sizes,
    scheduling,
    pod_terms,
    nodes,
    cluster_autoscaler,
    trimtab_itself,
)

ALL_RULES: tuple[LintRule, ...] = tuple(
    sorted(
        (value for module in _THEMES for value in vars(module).values() if isinstance(value, LintRule)),
        key=lambda rule: rule.code,
    )
)
"""Every rule, sorted by code. There is no L02: an HPA on an average value together with a VPA works well."""

RULES_BY_CODE = {rule.code: rule for rule in ALL_RULES}
assert len(RULES_BY_CODE) == len(ALL_RULES), "two rules have one code"
