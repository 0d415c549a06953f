"""The dashboard in front of the others: whether anything is wrong, and what the nodes cost.

Each figure opens the dashboard that explains it.
"""

from __future__ import annotations

from deploy.observe.grafana import Dashboard, Panel, Query, Row, Threshold

_DAY = 86_400.0
_GOOD, _CAREFUL, _BAD = "green", "orange", "red"


def _led(metric: str, process: str) -> str:
    """Of the replica that leads now: an old leader's page keeps its last numbers."""
    return f"({metric} and on (instance, job) trimtab_{process}_leading == 1)"


def _more_is_worse(careful: float | None, bad: float | None) -> tuple[Threshold, ...]:
    steps = [Threshold(None, _GOOD)]
    steps += [Threshold(careful, _CAREFUL)] if careful is not None else []
    steps += [Threshold(bad, _BAD)] if bad is not None else []
    return tuple(steps)


def _judge(
    title: str, says: str, asks: str, opens: str, thresholds: tuple[Threshold, ...], unit: str = "short"
) -> Panel:
    return Panel(title, says, (Query(asks),), unit, "stat", thresholds=thresholds, opens=opens)


def _show(title: str, says: str, asks: str, opens: str, unit: str = "currencyUSD") -> Panel:
    return Panel(title, says, (Query(asks),), unit, "stat", opens=opens)


_POOLS, _PODS, _SIZES = "trimtab-pools", "trimtab-pods", "trimtab-sizes"

OVERVIEW = Dashboard(
    "trimtab-overview",
    "Trimtab / Overview",
    "Whether anything is wrong, and what the nodes cost. A click on a figure opens the dashboard that explains it.",
    (
        Row(
            "The webhook",
            (
                _judge(
                    "Firing alerts",
                    "Alerts of Trimtab that fire now; the runbooks explain each. Empty without the recording rules.",
                    'count(ALERTS{alertname=~"Trimtab.+", alertstate="firing"})'
                    " or 0 * count(path_code:trimtab_reviews:rate5m)",
                    _PODS,
                    _more_is_worse(None, 1),
                ),
                _judge(
                    "Pods admitted unchanged",
                    "Errors of the webhook in the last hour. Each admitted a pod without the changes of policies.",
                    "sum(increase(trimtab_errors_total[1h]))",
                    _PODS,
                    _more_is_worse(1, 10),
                ),
                _judge(
                    "Response time",
                    "The 99th percentile of five minutes. The alert TrimtabWebhookSlow fires above 100 ms.",
                    'max(path:trimtab_review_duration_seconds:p99_5m{path="/mutate"})',
                    _PODS,
                    _more_is_worse(0.05, 0.1),
                    "s",
                ),
                _judge(
                    "Certificate expires in",
                    "For the replica whose certificate expires first. Replicas renew it by themselves.",
                    "min(trimtab_certificate_expiry_timestamp_seconds) - time()",
                    _PODS,
                    (Threshold(None, _BAD), Threshold(2 * _DAY, _CAREFUL), Threshold(14 * _DAY, _GOOD)),
                    "s",
                ),
                _judge(
                    "Age of facts",
                    "The age of what the webhook knows of the cluster, in the replica that knows least.",
                    "max(trimtab_facts_age_seconds)",
                    _PODS,
                    _more_is_worse(60, 300),
                    "s",
                ),
            ),
        ),
        Row(
            "Policies and sizes",
            (
                _judge(
                    "Pods that lack a change",
                    "Running pods that policies would change, and that were not changed.",
                    f"sum{_led('trimtab_unpatched_pods', 'watchdog')}",
                    _PODS,
                    _more_is_worse(1, None),
                ),
                _judge(
                    "Invalid objects",
                    "Policies, pools and recommendations that cannot be read.",
                    "max(trimtab_invalid_objects)",
                    _PODS,
                    _more_is_worse(1, None),
                ),
                _judge(
                    "Age of usage",
                    "The time since usage was last read completely.",
                    "time() - max(trimtab_recommender_collected_timestamp_seconds)",
                    _SIZES,
                    _more_is_worse(900, 3600),
                    "s",
                ),
                Panel(
                    "Containers",
                    "Containers with recorded usage, and those with a recommendation.",
                    (
                        Query(f"max{_led('trimtab_recommender_containers', 'recommender')}", "recorded"),
                        Query(f"max{_led('trimtab_recommender_recommended_containers', 'recommender')}", "recommended"),
                    ),
                    opens=_SIZES,
                ),
            ),
        ),
        Row(
            "Nodes",
            (
                _judge(
                    "Closed pools",
                    "Pools in which no drain begins after failures.",
                    f"sum{_led('trimtab_compactor_pool_closed', 'compactor')}",
                    _POOLS,
                    _more_is_worse(None, 1),
                ),
                _judge(
                    "Pending successors",
                    "The average number of evicted pods' successors that wait for a node.",
                    "sum(rate(trimtab_compactor_pending_seconds_total[$__rate_interval]))",
                    _POOLS,
                    _more_is_worse(1, 5),
                ),
                Panel(
                    "Nodes by state",
                    "Staying, planned, emptying, emptied (drained).",
                    (Query(f"sum by (state) {_led('trimtab_compactor_nodes', 'compactor')}", "{{state}}"),),
                    stacked=True,
                    opens=_POOLS,
                ),
                Panel(
                    "Why nodes are not drained",
                    "By reason code of the last plan. `trimtab explain CODE` explains a code.",
                    (
                        Query(
                            f"sort_desc(sum by (reason) {_led('trimtab_compactor_refused_nodes', 'compactor')})",
                            "{{reason}}",
                        ),
                    ),
                    kind="bargauge",
                    opens=_POOLS,
                ),
            ),
        ),
        Row(
            "Money",
            (
                _show(
                    "Present cost per month",
                    "The cost of the nodes with a known price; a month has 730 hours.",
                    "sum(max by (pool) (trimtab_compactor_pool_cost_dollars_per_hour)) * 730",
                    _POOLS,
                ),
                _show(
                    "Unrequested cost per month",
                    "The cost of capacity of which neither cpu nor memory is requested.",
                    "sum(pool:trimtab_unrequested:dollars_per_hour) * 730",
                    _POOLS,
                ),
                _show(
                    "Removed nodes",
                    "Nodes that were removed after a drain, since the pools exist.",
                    f"sum(max by (pool) {_led('trimtab_compactor_removed_nodes', 'compactor')})",
                    _POOLS,
                    "short",
                ),
                _judge(
                    "Nodes without a price",
                    "The cost does not contain them. Add their types to the pool's prices.",
                    "sum(max by (pool) (trimtab_compactor_pool_unpriced_nodes))",
                    _POOLS,
                    _more_is_worse(1, None),
                ),
            ),
        ),
    ),
)
