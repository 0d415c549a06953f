"""What is shown: an overview and its details, four dashboards. `make generate` draws them into deploy/dashboards."""

from deploy.observe.grafana import Dashboard, Panel, Query, Row
from deploy.observe.overview import OVERVIEW

_MINE = 'pool=~"$pool"'
_FORECAST_CORES = f'trimtab_compactor_forecast_room{{{_MINE},resource="cpu"}}'
_FREED_CORES = f'trimtab_compactor_resize_freed{{{_MINE},resource="cpu"}}'


_NODES = f"max by (node, pool, zone, instance_type) (trimtab_compactor_pool_node_info{{{_MINE}}})"
_WORK_UNITS = (
    "count by (pool) (count by (pool, unit) (label_replace(((kube_pod_labels * on (namespace, pod) group_left (node)"
    " max by (namespace, pod, node) (kube_pod_info)) or kube_pod_info)"
    ' and on (namespace, pod) (kube_pod_status_phase{phase="Running"} == 1),'
    ' "unit", "$1", "$unit", "(.+)") * on (node) group_left (pool)'
    f" max by (node, pool) (trimtab_compactor_pool_node_info{{{_MINE}}})) unless on (unit) vector(1))"
)
"""Pods without the label are no unit of work: `vector(1)` has an empty one."""


def _led(metric: str, process: str = "compactor") -> str:
    """Of the replica that leads now: an old leader's page keeps its last numbers."""
    return f"({metric} and on (instance, job) trimtab_{process}_leading == 1)"


def _one(title: str, says: str, asks: str, legend: str = "", unit: str = "short", **more: object) -> Panel:
    return Panel(title, says, (Query(asks, legend),), unit, **more)  # type: ignore[arg-type]


def _stat(title: str, says: str, asks: str, legend: str = "", unit: str = "short") -> Panel:
    return Panel(title, says, (Query(asks, legend),), unit, "stat")


def _share(resource: str, title: str) -> Panel:
    only = f'{{{_MINE}, resource="{resource}"}}'
    return Panel(
        f"{title}: used, requested, reserved",
        "Used of capacity, requested of allocatable (DaemonSets included), reserved by kubelet and system of capacity."
        " `used` is empty if no cAdvisor metrics with the label `node` are scraped.",
        (
            Query(f"pool_resource:trimtab_used:ratio{only}", "{{pool}} used"),
            Query(f"pool_resource:trimtab_requested:ratio{only}", "{{pool}} requested"),
            Query(f"pool_resource:trimtab_reserved:ratio{only}", "{{pool}} reserved"),
        ),
        "percentunit",
    )


def _fitted(part: str, resource: str) -> str:
    metric = f'trimtab_recommender_node_overhead_{part}{{{_MINE}, resource="{resource}"}}'
    return f"max by (pool, runtime) {_led(metric, 'recommender')}"


def _node_overhead(resource: str, title: str, unit: str) -> Panel:
    def measured(name: str, by: str = "") -> str:
        metric = f'trimtab_recommender_{name}{{{_MINE}, resource="{resource}"}}'
        return f"max by (pool, runtime{by}) {_led(metric, 'recommender')}"

    return Panel(
        f"{title}: used, reserved, recommended",
        "Kubelet and container runtime, as the recommender measured them, and what nodes reserve for them. Empty"
        " unless TRIMTAB_RECOMMENDER_MEASURE_RESERVATIONS is true.",
        (
            Query(measured("node_overhead", ", statistic"), "{{pool}} {{runtime}} {{statistic}}"),
            Query(measured("node_reserved"), "{{pool}} {{runtime}} reserved"),
            Query(measured("node_reserved_recommended"), "{{pool}} {{runtime}} recommended"),
        ),
        unit,
    )


POOLS = Dashboard(
    "trimtab-pools", "Trimtab / Pools and the compactor",
    "How full pools are, what they cost, and why nodes are not drained.",
    (
        Row("Money and nodes", (
            _stat("Present cost per month", "The cost of the nodes with a known price; a month has 730 hours.",
                  f"sum(max by (pool) (trimtab_compactor_pool_cost_dollars_per_hour{{{_MINE}}})) * 730", "",
                  "currencyUSD"),
            _stat("Unrequested cost per month", "The cost of capacity of which neither cpu nor memory is requested.",
                  f"sum(pool:trimtab_unrequested:dollars_per_hour{{{_MINE}}}) * 730", "", "currencyUSD"),
            _stat("Savings of the plan", "In the plan's unit: micro-dollars an hour, millicores or nodes.",
                  f"max by (unit) {_led('trimtab_compactor_plan_savings')}", "{{unit}}"),
            _stat("Savings so far", "The savings of all removed nodes, in the plan's unit.",
                  f"sum by (unit) (max by (pool, unit) {_led(f'trimtab_compactor_savings{{{_MINE}}}')})", "{{unit}}"),
            _stat("Removed nodes", "Nodes that were removed after a drain, since the pools exist.",
                  f"sum(max by (pool) {_led(f'trimtab_compactor_removed_nodes{{{_MINE}}}')})"),
            _stat("Nodes without a price", "The cost does not contain them. Add their types to the pool's prices.",
                  f"sum(max by (pool) (trimtab_compactor_pool_unpriced_nodes{{{_MINE}}}))"),
        )),
        Row("Where the money goes", (
            _one("The bill in parts", "Used: of requests. Idle: requested and not used, pod by pod. Unmeasured:"
                 " requested by pods whose use is not known. Reserved: capacity that is not allocatable. Unrequested:"
                 " the rest. The parts add up to the cost of the pools.",
                 f"sum by (part) (pool_part:trimtab_cost:dollars_per_hour{{{_MINE}}})", "{{part}}", "currencyUSD",
                 stacked=True),
            Panel("Unused", "Of the capacity, of the requests, and of what is reserved for kubelet and runtime, each"
                  " hour. Empty without cAdvisor's metrics, and for requests without kube-state-metrics.", (
                Query(f"sum(pool:trimtab_unused_capacity:dollars_per_hour{{{_MINE}}})", "of capacity"),
                Query(f'sum(pool_part:trimtab_cost:dollars_per_hour{{{_MINE}, part="idle"}})', "of requests"),
                Query(f"sum(pool:trimtab_unused_reserved:dollars_per_hour{{{_MINE}}})", "of reserved"),
            ), "currencyUSD"),
            Panel("Cost and its weekday", "The cost of the last hour, and the range of this time of the same weekday in"
                  " the last four weeks.", (
                Query(f"pool:trimtab_cost:dollars_per_hour_1h{{{_MINE}}}", "{{pool}}"),
                Query(f"max by (pool) (pool_week:trimtab_cost:dollars_per_hour_max{{{_MINE}}})", "{{pool}} highest"),
                Query(f"min by (pool) (pool_week:trimtab_cost:dollars_per_hour_min{{{_MINE}}})", "{{pool}} lowest"),
            ), "currencyUSD"),
        )),
        Row("Zones, types and work", (
            _one("Nodes by zone and type", "All nodes of the pools, ready or not.",
                 f"count by (zone, instance_type) ({_NODES})", "{{zone}} {{instance_type}}", stacked=True),
            _one("Cost by zone and type", "Each hour; nodes without a price are not in it.",
                 "sum by (zone, instance_type) (max by (node, pool) "
                 f"(trimtab_compactor_pool_node_cost_dollars_per_hour{{{_MINE}}})"
                 f" * on (node, pool) group_left (zone, instance_type) {_NODES})", "{{zone}} {{instance_type}}",
                 "currencyUSD", stacked=True),
            _one("Work units", "The values of the label that is chosen above, on running pods: `namespace`, or"
                 " `label_…` of a pod label that kube-state-metrics exports (its allow-list of labels).",
                 _WORK_UNITS, "{{pool}}"),
            _one("Cost of a work unit", "The cost of the pool divided by its work units, each hour.",
                 f"pool:trimtab_cost:dollars_per_hour{{{_MINE}}} / {_WORK_UNITS}", "{{pool}}", "currencyUSD"),
            Panel("Memory per core, by use", "Used bytes per used core: a ratio for machine types. Normalized: per core"
                  " of m5.large, on nodes whose type was measured.", (
                Query(f"pool:trimtab_used_memory_per_core:bytes{{{_MINE}}}", "{{pool}}"),
                Query(f"pool:trimtab_used_memory_per_normalized_core:bytes{{{_MINE}}}", "{{pool}} normalized"),
            ), "bytes"),
        )),
        Row("Utilization", (
            _share("cpu", "CPU"),
            _share("memory", "Memory"),
        )),
        Row("Requests and usage", (
            _one("Usage divided by requests", "Below 100 %: requests exceed usage. Empty without cAdvisor metrics.",
                 f"pool_resource:trimtab_used_requested:ratio{{{_MINE}}}", "{{pool}} {{resource}}", "percentunit"),
        )),
        Row("Reserved for kubelet and runtime", (
            _one("Used of reserved", "Kubelet and container runtime divided by what is reserved for them; above 100 %"
                 " they take from pods. Without their cgroups in cAdvisor's metrics: nodes less pods.",
                 f"pool_resource:trimtab_overhead_reserved:ratio{{{_MINE}}}", "{{pool}} {{resource}}", "percentunit"),
            Panel("Money", "Reserved and unused, and used beyond the reservation, each hour. `measured`: per node, by"
                  " the recommender.", (
                Query(f"pool:trimtab_unused_reserved:dollars_per_hour{{{_MINE}}}", "{{pool}} unused"),
                Query(f"pool:trimtab_reserved_overdraft:dollars_per_hour{{{_MINE}}}", "{{pool}} overdraft"),
                Query("max by (pool, kind) "
                      f"{_led(f'trimtab_recommender_reserved_dollars_per_hour{{{_MINE}}}', 'recommender')}",
                      "{{pool}} {{kind}} measured"),
            ), "currencyUSD"),
            _node_overhead("cpu", "CPU of a node", "short"),
            _node_overhead("memory", "Memory of a node", "bytes"),
            Panel("Base and each pod: cpu", "Fitted to all nodes: a node without pods, and what each pod adds.", (
                Query(_fitted("base", "cpu"), "{{pool}} {{runtime}} base"),
                Query(_fitted("per_pod", "cpu"), "{{pool}} {{runtime}} each pod"))),
            Panel("Base and each pod: memory", "Fitted to all nodes: a node without pods, and what each pod adds.", (
                Query(_fitted("base", "memory"), "{{pool}} {{runtime}} base"),
                Query(_fitted("per_pod", "memory"), "{{pool}} {{runtime}} each pod")), "bytes"),
            _one("Decision", "keep, raise (for new nodes), lower, wait for a week of data, or unknown.",
                 "max by (pool, runtime, change) "
                 f"{_led(f'trimtab_recommender_reservation_change{{{_MINE}}}', 'recommender')}",
                 "{{pool}} {{runtime}} {{change}}"),
            _one("Measured nodes", "The share of the pool's nodes whose use is known.",
                 "max by (pool, runtime) "
                 f"{_led(f'trimtab_recommender_overhead_coverage_ratio{{{_MINE}}}', 'recommender')}",
                 "{{pool}} {{runtime}}", "percentunit"),
        )),
        Row("Shape", (
            _one("Nodes that are over 99 % full", "By the resource that is full first.",
                 f"max by (pool, resource) (trimtab_compactor_pool_full_nodes{{{_MINE}}})", "{{pool}} {{resource}}"),
            _one("Underused nodes", "Ready nodes that are at or below the pool's thresholds now.",
                 f"max by (pool) (trimtab_compactor_pool_under_used_nodes{{{_MINE}}})", "{{pool}}"),
            _one("Memory per core",
                 "Requested GiB per requested core: a ratio for machine types.",
                 f'max by (pool) (trimtab_compactor_pool_requested{{{_MINE}, resource="memory"}}) / 1073741824'
                 f' / max by (pool) (trimtab_compactor_pool_requested{{{_MINE}, resource="cpu"}})',
                 "{{pool}} requested"),
            _one("Capacity", "The capacity of ready nodes: cores, bytes, pods.",
                 f"max by (pool, resource) (trimtab_compactor_pool_capacity{{{_MINE}}})", "{{pool}} {{resource}}"),
            _one("Room that is needed again", "Cores that pods will request again soon, by the pool's history.",
                 f'max by (pool) {_led(_FORECAST_CORES)}', "{{pool}}"),
            _one("Forecasts that were large enough", "The share of all forecasts so far.",
                 f"max by (pool) {_led(f'trimtab_compactor_forecast_sufficient_ratio{{{_MINE}}}')}", "{{pool}}",
                 "percentunit"),
        )),
        Row("Drains and evictions", (
            _one("Nodes by state", "Staying, planned, emptying, emptied (drained).",
                 f"sum by (state) {_led(f'trimtab_compactor_nodes{{{_MINE}}}')}", "{{state}}", stacked=True),
            _one("Why nodes are not drained", "By reason code of the last plan.",
                 f"sort_desc(sum by (reason) {_led('trimtab_compactor_refused_nodes')})", "{{reason}}",
                 kind="bargauge"),
            _one("Drains that ended", "Removed: the autoscaler removed the node. Released: the node was uncordoned.",
                 "sum by (how, reason) "
                 f"(increase(trimtab_compactor_drains_total{{{_MINE}}}[$__rate_interval]))", "{{how}} {{reason}}",
                 stacked=True),
            _one("Evictions", "Evicted, or refused by the API server because of a PodDisruptionBudget.",
                 f"sum by (result) (rate(trimtab_compactor_evictions_total{{{_MINE}}}[$__rate_interval])) * 3600",
                 "{{result}} an hour"),
        )),
        Row("Resizes", (
            _one("Resizes of running pods", "By result: resized, verified, reverted, stopped by a revert without room.",
                 "sum by (result, reason) "
                 f"(increase(trimtab_compactor_resizes_total{{{_MINE}}}[$__rate_interval]))", "{{result}} {{reason}}",
                 stacked=True),
            _one("Resizes in progress", "Pods by phase: what they gave up is free only after their verification.",
                 f"sum by (phase) {_led(f'trimtab_compactor_open_resizes{{{_MINE}}}')}", "{{phase}}", stacked=True),
            _one("Why pods are not resized", "Pods that policies want to resize, by reason code.",
                 f"sort_desc(sum by (reason) {_led('trimtab_compactor_unresized_pods')})", "{{reason}}",
                 kind="bargauge"),
            Panel("Left alone", "Workloads that back off after a failed resize; pods on nodes of no pool.", (
                Query(f"sum by (pool) {_led(f'trimtab_compactor_resize_backoffs{{{_MINE}}}')}", "{{pool}} backs off"),
                Query(f"max{_led('trimtab_compactor_uncovered_resizes')}", "pods of no pool"),
            ), "short"),
            _one("What resizes freed", "Cores of verified resizes since the pools exist.",
                 f"sum by (pool) {_led(_FREED_CORES)}", "{{pool}}"),
        )),
        Row("Drains that users ordered", (
            _one("DrainOrders", "Orders that wait or were accepted, by phase: until an order is deleted, its nodes "
                 "stay cordoned.",
                 f"sum by (phase) {_led('trimtab_compactor_drain_orders')}", "{{phase}}", stacked=True),
            _one("Oldest order in progress", "Since the oldest order was created that has not ended.",
                 f"max{_led('trimtab_compactor_oldest_drain_order_seconds')}", "age", unit="s"),
        )),
        Row("Health", (
            _one("Pending successors", "The average number of successors that wait for a node.",
                 "sum(rate(trimtab_compactor_pending_seconds_total[$__rate_interval]))", "waiting"),
            _one("Closed pools", "1 while a pool is closed after failures.",
                 f"max by (pool) {_led(f'trimtab_compactor_pool_closed{{{_MINE}}}')}", "{{pool}} closed"),
            Panel("Age of data, duration of a plan", "Seconds; the third line is 1 if the autoscaler is healthy.", (
                Query("max(trimtab_compactor_data_age_seconds)", "data"),
                Query(f"max{_led('trimtab_compactor_plan_duration_seconds')}", "plan"),
                Query("min(trimtab_compactor_autoscaler_healthy)", "autoscaler healthy"),
            ), "s"),
            _one("Invalid amounts", "Nodes and pods that the sums above do not contain.",
                 f"max by (pool, what) (trimtab_compactor_pool_unreadable_objects{{{_MINE}}})", "{{pool}} {{what}}"),
        )),
    ),
    pools=True,
)  # fmt: skip

PODS = Dashboard(
    "trimtab-pods", "Trimtab / Webhook, policies and pods", "Whether pods get the changes of policies, and how fast.",
    (
        Row("The webhook", (
            _one("Reviews per second", "By path and HTTP status.", "path_code:trimtab_reviews:rate5m",
                 "{{path}} {{code}}", "reqps", stacked=True),
            Panel("Response time", "From the complete request to the response.", tuple(
                Query(f"histogram_quantile({share}, sum by (le) "
                      '(rate(trimtab_review_duration_seconds_bucket{path="/mutate"}[$__rate_interval])))',
                      f"p{share[2:]}")
                for share in ("0.50", "0.95", "0.99")), "s"),
            _one("Reviews by outcome", "Without dry runs.",
                 'sum by (outcome) (rate(trimtab_review_outcomes_total{dry_run="false"}[$__rate_interval]))',
                 "{{outcome}}",
                 "reqps", stacked=True),
            _one("Errors of the webhook", "These pods were admitted unchanged.",
                 "sum by (kind) (increase(trimtab_errors_total[$__rate_interval]))", "{{kind}}"),
        )),
        Row("State of the webhook", (
            _one("Age of facts", "The age in each replica.", "trimtab_facts_age_seconds", "{{instance}}", "s"),
            _one("Versions", "Replicas of all processes by the version that they run. More than one while an upgrade is"
                 " under way.", "count by (version) (trimtab_build_info)", "{{version}}"),
            Panel("Policies and invalid objects", "Policies in force, and objects that are invalid.", (
                Query("min(trimtab_policies)", "policies"), Query("max(trimtab_avoidable_policies)", "avoidable"),
                Query("max(trimtab_invalid_objects)", "problems"), Query("max(trimtab_paused)", "paused"))),
            _stat("Certificate expires in", "For the replica whose certificate expires first.",
                  "min(trimtab_certificate_expiry_timestamp_seconds) - time()", "", "s"),
            _one("Patch size", "The median in bytes.",
                 "histogram_quantile(0.5, sum by (le) (rate(trimtab_patch_bytes_bucket[$__rate_interval])))", "p50",
                 "bytes"),
            _one("Decisions found", "The decision on the same pod, on a similar pod, or why none was found.",
                 "sum by (result) (rate(trimtab_decision_lookups_total[$__rate_interval]))", "{{result}}", "ops",
                 stacked=True),
        )),
        Row("Policies", (
            _one("Actions of policies", "By policy, action and reason.",
                 "sum by (policy, action, reason) (rate(trimtab_decisions_total[$__rate_interval]))",
                 "{{policy}} {{action}} {{reason}}", "ops"),
            _one("Pods by policy", "Running pods: matched, changed, overruled by another policy.",
                 f"max by (policy, state) {_led('trimtab_policy_running_pods', 'watchdog')}", "{{policy}} {{state}}"),
            _one("Pods that would be changed", "By policies in the mode warn or audit.",
                 f"max by (policy) {_led('trimtab_would_change_pods', 'watchdog')}", "{{policy}}"),
            _one("Pods left out", "Pods that a policy matches and leaves out, by reason.",
                 f"sum by (policy, reason) {_led('trimtab_skipped_pods', 'watchdog')}", "{{policy}} {{reason}}"),
        )),
        Row("Running pods", (
            _one("By quality of service", "Guaranteed, Burstable, BestEffort.",
                 f"max by (qos) {_led('trimtab_qos_pods', 'watchdog')}", "{{qos}}", stacked=True),
            _one("Pods that lack a change", "By reason; missed-by-webhook: the webhook was not reached.",
                 f"sum by (policy, reason) {_led('trimtab_unpatched_pods', 'watchdog')}", "{{policy}} {{reason}}"),
            Panel("Wrong overhead, denied pods", "Overhead that is not the class's; pods that would be denied.", (
                Query(f"sum by (reason) {_led('trimtab_wrong_overhead_pods', 'watchdog')}", "{{reason}}"),
                Query(f"max{_led('trimtab_would_deny_pods', 'watchdog')}", "would be denied"))),
            _one("Harm", "The share of failed pods, with a change (after) and without (before).",
                 "max by (policy, trouble, side) (trimtab_harm_pods{count=\"hit\"})"
                 " / on (policy, trouble, side) max by (policy, trouble, side) (trimtab_harm_pods{count=\"pods\"})",
                 "{{policy}} {{trouble}} {{side}}", "percentunit"),
        )),
        Row("Pod overhead by RuntimeClass", (
            _one("Pods", "The number of running pods of each RuntimeClass.",
                 f"max by (runtime_class) {_led('trimtab_runtime_class_pods', 'watchdog')}", "{{runtime_class}}"),
            _one("Cores", "Reserved in addition to the requests of containers.",
                 f"max by (runtime_class) {_led('trimtab_overhead_cpu_cores', 'watchdog')}", "{{runtime_class}}",
                 stacked=True),
            _one("Memory", "Reserved in addition to the requests of containers.",
                 f"max by (runtime_class) {_led('trimtab_overhead_memory_bytes', 'watchdog')}", "{{runtime_class}}",
                 "bytes", stacked=True),
            _one("Types of nodes", "Types of nodes that the class allows; 0: its pods wait for a node.",
                 f"max by (runtime_class) {_led('trimtab_runtime_class_node_types', 'watchdog')}", "{{runtime_class}}"),
            _one("Classes without nodes", "no-label, cordoned, tainted: each pod must tolerate, may-come: scales up.",
                 f"max by (runtime_class, reason) {_led('trimtab_runtime_class_without_nodes', 'watchdog')}",
                 "{{runtime_class}} {{reason}}"),
            _one("Cost", "Dollars per hour for overhead, from requests and prices of nodes.",
                 f"max by (runtime_class) {_led('trimtab_overhead_dollars_per_hour', 'watchdog')}",
                 "{{runtime_class}}", "currencyUSD", stacked=True),
            _one("Cost by namespace", "Dollars per hour by requests: for containers, and for their sandboxes.",
                 f"max by (namespace, part) {_led('trimtab_namespace_dollars_per_hour', 'watchdog')}",
                 "{{namespace}} {{part}}", "currencyUSD"),
            _one("Evictions by kubelets", "Pods per hour by RuntimeClass; none: pods without one.",
                 "max by (runtime_class) (increase(trimtab_runtime_class_evictions_total[1h]))", "{{runtime_class}}"),
            _one("Pods above their memory request and overhead", "A kubelet that is short of memory evicts these first."
                 " Pods with overhead, from cAdvisor and kube-state-metrics.",
                 'count(max by (namespace, pod) (container_memory_working_set_bytes{container="", pod!=""})'
                 ' > on (namespace, pod) (sum by (namespace, pod) (kube_pod_overhead_memory_bytes)'
                 ' + on (namespace, pod)'
                 ' sum by (namespace, pod) (kube_pod_container_resource_requests{resource="memory"})))', "pods"),
        )),
        Row("Custom metrics", (
            _one("Pods with a value", "By metric; withheld: the newest sample is too old, or a rate has only one.",
                 "max by (metric, state) (trimtab_metrics_api_pods)", "{{metric}} {{state}}"),
            _one("Answers", "By answer; empty: no pod has a value; unknown: no rule has this name.",
                 "sum by (answer) (rate(trimtab_metrics_api_answers_total[$__rate_interval]))", "{{answer}}", "reqps"),
            _one("Requests by status", "To the API, discovery included.",
                 "sum by (status) (rate(trimtab_metrics_api_requests_total[$__rate_interval]))", "{{status}}", "reqps"),
            _one("Response time", "p99, authorization included.",
                 "histogram_quantile(0.99, sum by (le)"
                 " (rate(trimtab_metrics_api_request_duration_seconds_bucket[$__rate_interval])))", "p99", "s"),
            Panel("Scrapes and queries", "Per second: successes by source, failures by reason.", (
                Query("sum by (source) (rate(trimtab_metrics_api_samples_total[$__rate_interval]))", "{{source}}"),
                Query("sum by (reason) (rate(trimtab_metrics_api_failures_total[$__rate_interval]))", "{{reason}}"))),
            Panel("Rules and targets", "Rules in force; pages of pods that are scraped by each replica.", (
                Query("max(trimtab_metrics_api_rules)", "rules"), Query("max(trimtab_metrics_api_targets)", "pages"))),
            _one("Slots in use", "Scrapes and queries that are under way; namespaces share 16 slots.",
                 "max(trimtab_metrics_api_scrape_slots_in_use)", "slots"),
            _one("Overdue pages", "How long the most overdue page has waited beyond its interval; slow: its last scrape"
                 " took long and gave no value.",
                 "max by (targets) (trimtab_metrics_api_overdue_seconds)", "{{targets}}", "s"),
        )),
        Row("The watchdog", (
            Panel("Duration of a check, age of data", "In seconds.", (
                Query(f"max{_led('trimtab_watchdog_check_duration_seconds', 'watchdog')}", "check"),
                Query(f"max{_led('trimtab_watchdog_data_age_seconds', 'watchdog')}", "data")), "s"),
            Panel("Undecided groups and lost Events", "Of the last check; since the start.", (
                Query(f"max{_led('trimtab_watchdog_undecided_pod_groups', 'watchdog')}", "undecided"),
                Query(f"max{_led('trimtab_watchdog_lost_events', 'watchdog')}", "events lost"))),
            _one("Running pods in the watch", "Pods that the watchdog compares with policies.",
                 f"max{_led('trimtab_running_pods', 'watchdog')}", "pods"),
        )),
    ),
)  # fmt: skip

SIZES = Dashboard(
    "trimtab-sizes", "Trimtab / Recommender", "How much usage is recorded.",
    (
        Row("Recorded usage", (
            Panel("Containers", "Containers with recorded usage, and those with a recommendation.", (
                Query(f"max{_led('trimtab_recommender_containers', 'recommender')}", "recorded"),
                Query(f"max{_led('trimtab_recommender_recommended_containers', 'recommender')}", "recommended"))),
            _one("Without a recommendation", "By resource and reason.",
                 "max by (resource, reason) "
                 f"{_led('trimtab_recommender_containers_without_recommendation', 'recommender')}",
                 "{{resource}} {{reason}}"),
            _stat("Age of usage", "The time since usage was last read completely.",
                  "time() - max(trimtab_recommender_collected_timestamp_seconds)", "", "s"),
        )),
        Row("Work", (
            _one("Series read per second", "Series with new values.",
                 "sum(rate(trimtab_recommender_series_total[$__rate_interval]))", "series"),
            Panel("Pods left out", "Samples with invalid values, and collections that were missed.", (
                Query("sum(increase(trimtab_recommender_ignored_samples_total[$__rate_interval]))", "samples"),
                Query("sum(increase(trimtab_recommender_missed_collections_total[$__rate_interval]))", "collections"))),
            _one("Shards written per hour", "Each write of recommendations is an event for every webhook replica.",
                 "sum by (what) (rate(trimtab_recommender_writes_total[$__rate_interval])) * 3600", "{{what}}"),
            Panel("Shards", "Existing shards, and damaged ones.", (
                Query(f"max by (what) {_led('trimtab_recommender_shards', 'recommender')}", "{{what}}"),
                Query(f"max by (what) {_led('trimtab_recommender_unreadable_shards', 'recommender')}",
                      "{{what}} damaged"))),
            _one("Errors", "Steps of rounds that failed.",
                 "sum by (what) (increase(trimtab_recommender_errors_total[$__rate_interval]))", "{{what}}"),
            Panel("VPAs that name Trimtab", "By the reason of their recommendation.", (
                Query(f"max by (reason) {_led('trimtab_recommender_vpas', 'recommender')}", "{{reason}}"),)),
            _one("Age of VPAs' recommendations", "Of the usage behind the oldest one, of VPAs with pods.",
                 f"max{_led('trimtab_recommender_vpa_status_age_seconds', 'recommender')}", "oldest", "s"),
            _one("Node groups demoted", "Groups that come last in the priority map: the cloud has no nodes for them.",
                 "max(trimtab_recommender_demoted_node_groups)", "groups"),
        )),
    ),
)  # fmt: skip

ALL = (OVERVIEW, POOLS, PODS, SIZES)
