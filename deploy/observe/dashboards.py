"""What is shown: three dashboards. `make generate` draws them into deploy/dashboards."""

from deploy.observe.grafana import Dashboard, Panel, Query, Row

_MINE = 'pool=~"$pool"'


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
        " `used` is empty where no cAdvisor metrics with the label `node` are scraped.",
        (
            Query(f"pool_resource:trimtab_used:ratio{only}", "{{pool}} used"),
            Query(f"pool_resource:trimtab_requested:ratio{only}", "{{pool}} requested"),
            Query(f"pool_resource:trimtab_reserved:ratio{only}", "{{pool}} reserved"),
        ),
        "percentunit",
    )


def _used_reserved(resource: str, title: str, node: str, of: str) -> Panel:
    joined = "* on (node) group_left (pool) max by (node, pool) (trimtab_compactor_pool_node_info"
    asks = (
        f"(sum by (pool) (sum by (node) ({node}) {joined}{{{_MINE}}}))"
        f' - sum by (pool) (pool_resource:trimtab_used:amount{{{_MINE}, resource="{resource}"}}))'
        f" / (max by (pool) (trimtab_compactor_pool_capacity{{{of}}})"
        f" - max by (pool) (trimtab_compactor_pool_allocatable{{{of}}}))"
    )
    return _one(
        f"{title}: used of reserved",
        "What runs outside of pods (kubelet, container runtime, system) of what is kept for it; above 100 % it takes"
        " from pods. Empty where the kubelet's /metrics/resource is not scraped.",
        asks, "{{pool}}", "percentunit",
    )  # fmt: skip


POOLS = Dashboard(
    "trimtab-pools", "Trimtab / Pools and the compactor",
    "How full pools are, what they cost, and why nodes stay.",
    (
        Row("Money and nodes", (
            _stat("Cost now, a month", "Of the nodes whose price is known; a month has 730 hours.",
                  f"sum(max by (pool) (trimtab_compactor_pool_cost_dollars_per_hour{{{_MINE}}})) * 730", "",
                  "currencyUSD"),
            _stat("Idle for sure, a month", "The cost that neither cpu nor memory is requested of.",
                  f"sum(pool:trimtab_unrequested:dollars_per_hour{{{_MINE}}}) * 730", "", "currencyUSD"),
            _stat("The plan would save", "In the plan's unit: micro-dollars an hour, millicores or nodes.",
                  f"max by (unit) {_led('trimtab_compactor_plan_savings')}", "{{unit}}"),
            _stat("Saved so far", "What the nodes that were taken save together, in the plan's unit.",
                  f"sum by (unit) (max by (pool, unit) {_led(f'trimtab_compactor_savings{{{_MINE}}}')})", "{{unit}}"),
            _stat("Nodes saved", "Nodes that were taken after we emptied them, ever.",
                  f"sum(max by (pool) {_led(f'trimtab_compactor_removed_nodes{{{_MINE}}}')})"),
            _stat("Nodes without a price", "They are missing in the cost. Name their types in the pool's prices.",
                  f"sum(max by (pool) (trimtab_compactor_pool_unpriced_nodes{{{_MINE}}}))"),
        )),
        Row("How full", (
            _share("cpu", "CPU"),
            _share("memory", "Memory"),
        )),
        Row("What is asked for and not used", (
            _one("Used of requested", "Below 100 %: requests are larger than use. Empty without cAdvisor metrics.",
                 f"pool_resource:trimtab_used_requested:ratio{{{_MINE}}}", "{{pool}} {{resource}}", "percentunit"),
            _used_reserved("cpu", "CPU", "rate(node_cpu_usage_seconds_total[5m])", f'{_MINE}, resource="cpu"'),
            _used_reserved("memory", "Memory", "node_memory_working_set_bytes", f'{_MINE}, resource="memory"'),
        )),
        Row("Shape", (
            _one("Nodes over 99 % full", "By what fills them first: of that a larger machine should have more.",
                 f"max by (pool, resource) (trimtab_compactor_pool_full_nodes{{{_MINE}}})", "{{pool}} {{resource}}"),
            _one("Under-used nodes", "Ready, and at or below the pool's lines now, however short.",
                 f"max by (pool) (trimtab_compactor_pool_under_used_nodes{{{_MINE}}})", "{{pool}}"),
            _one("Memory for a core",
                 "GiB requested for each core requested: choose machines alike.",
                 f'max by (pool) (trimtab_compactor_pool_requested{{{_MINE}, resource="memory"}}) / 1073741824'
                 f' / max by (pool) (trimtab_compactor_pool_requested{{{_MINE}, resource="cpu"}})',
                 "{{pool}} requested"),
            _one("Capacity", "Of ready nodes: cores, bytes, pods.",
                 f"max by (pool, resource) (trimtab_compactor_pool_capacity{{{_MINE}}})", "{{pool}} {{resource}}"),
        )),
        Row("From nodes to moves", (
            _one("Nodes by what becomes of them", "Staying, planned, emptying, emptied.",
                 f"sum by (state) {_led(f'trimtab_compactor_nodes{{{_MINE}}}')}", "{{state}}", stacked=True),
            _one("Why nodes stay", "By the code of the last plan's reason; its page says what to do.",
                 f"sort_desc(sum by (reason) {_led('trimtab_compactor_refused_nodes')})", "{{reason}}",
                 kind="bargauge"),
            _one("Drains that ended", "Taken: the autoscaler took the empty node. Released: given back.",
                 "sum by (how, reason) "
                 f"(increase(trimtab_compactor_drains_total{{{_MINE}}}[$__rate_interval]))", "{{how}} {{reason}}",
                 stacked=True),
            _one("Evictions", "Evicted, or refused by the API server (budgets).",
                 f"sum by (result) (rate(trimtab_compactor_evictions_total{{{_MINE}}}[$__rate_interval])) * 3600",
                 "{{result}} an hour"),
        )),
        Row("Is it well", (
            _one("Successors that wait", "Pods waiting for a node at a time, averaged.",
                 "sum(rate(trimtab_compactor_pending_seconds_total[$__rate_interval]))", "waiting"),
            _one("Closed pools", "1 while failures keep it closed.",
                 f"max by (pool) {_led(f'trimtab_compactor_pool_closed{{{_MINE}}}')}", "{{pool}} closed"),
            Panel("Age of data, time of a plan", "Seconds; and 1 while the autoscaler is healthy.", (
                Query("max(trimtab_compactor_data_age_seconds)", "data"),
                Query(f"max{_led('trimtab_compactor_plan_duration_seconds')}", "plan"),
                Query("min(trimtab_compactor_autoscaler_healthy)", "autoscaler healthy"),
            ), "s"),
            _one("Amounts that make no sense", "Nodes and pods missing in the sums above.",
                 f"max by (pool, what) (trimtab_compactor_pool_unreadable_objects{{{_MINE}}})", "{{pool}} {{what}}"),
        )),
    ),
    pools=True,
)  # fmt: skip

PODS = Dashboard(
    "trimtab-pods", "Trimtab / Webhook, policies and pods", "Whether pods get what policy says, and how fast.",
    (
        Row("The webhook", (
            _one("Reviews a second", "By path and HTTP status.", "path_code:trimtab_reviews:rate5m",
                 "{{path}} {{code}}", "reqps", stacked=True),
            Panel("Time to answer", "From a whole request to the answer.", tuple(
                Query(f"histogram_quantile({share}, sum by (le) "
                      '(rate(trimtab_review_duration_seconds_bucket{path="/mutate"}[$__rate_interval])))',
                      f"p{share[2:]}")
                for share in ("0.50", "0.95", "0.99")), "s"),
            _one("What became of pods", "Dry runs left out.",
                 'sum by (outcome) (rate(trimtab_review_outcomes_total{dry_run="false"}[$__rate_interval]))',
                 "{{outcome}}",
                 "reqps", stacked=True),
            _one("Mistakes of ours", "Caught by a net: those pods went through unchanged.",
                 "sum by (kind) (increase(trimtab_errors_total[$__rate_interval]))", "{{kind}}"),
        )),
        Row("What it rests on", (
            _one("Age of facts", "Of each replica.", "trimtab_facts_age_seconds", "{{instance}}", "s"),
            Panel("Policies and problems", "In force, and objects that make no sense.", (
                Query("min(trimtab_policies)", "policies"), Query("max(trimtab_invalid_objects)", "problems"),
                Query("max(trimtab_paused)", "paused"))),
            _stat("Certificate ends in", "Of the replica whose certificate ends first.",
                  "min(trimtab_certificate_expiry_timestamp_seconds) - time()", "", "s"),
            _one("Size of a patch", "Bytes, half of the patches are smaller.",
                 "histogram_quantile(0.5, sum by (le) (rate(trimtab_patch_bytes_bucket[$__rate_interval])))", "p50",
                 "bytes"),
        )),
        Row("Policies", (
            _one("What policies did", "By policy, action and reason.",
                 "sum by (policy, action, reason) (rate(trimtab_decisions_total[$__rate_interval]))",
                 "{{policy}} {{action}} {{reason}}", "ops"),
            _one("Pods by policy", "Running pods: matched, changed, overruled by another.",
                 f"max by (policy, state) {_led('trimtab_policy_running_pods', 'watchdog')}", "{{policy}} {{state}}"),
            _one("Would be changed", "By policies in mode warn or audit.",
                 f"max by (policy) {_led('trimtab_would_change_pods', 'watchdog')}", "{{policy}}"),
            _one("Left out", "Matched by a policy, and left out for a reason.",
                 f"sum by (policy, reason) {_led('trimtab_skipped_pods', 'watchdog')}", "{{policy}} {{reason}}"),
        )),
        Row("Running pods", (
            _one("By quality of service", "Guaranteed, Burstable, BestEffort.",
                 f"max by (qos) {_led('trimtab_qos_pods', 'watchdog')}", "{{qos}}", stacked=True),
            _one("Lack what policy says", "By why; missed-by-webhook: we were not reached.",
                 f"sum by (policy, reason) {_led('trimtab_unpatched_pods', 'watchdog')}", "{{policy}} {{reason}}"),
            Panel("Wrong overhead, would be denied", "Not the class's; could not be created again.", (
                Query(f"sum by (reason) {_led('trimtab_wrong_overhead_pods', 'watchdog')}", "{{reason}}"),
                Query(f"max{_led('trimtab_would_deny_pods', 'watchdog')}", "would be denied"))),
            _one("Harm", "Share of pods hit, of those that carry a policy's change (after) and those that lack it.",
                 "max by (policy, trouble, side) (trimtab_harm_pods{count=\"hit\"})"
                 " / on (policy, trouble, side) max by (policy, trouble, side) (trimtab_harm_pods{count=\"pods\"})",
                 "{{policy}} {{trouble}} {{side}}", "percentunit"),
        )),
        Row("Pod overhead by RuntimeClass", (
            _one("Pods", "Running pods of each RuntimeClass.",
                 f"max by (runtime_class) {_led('trimtab_runtime_class_pods', 'watchdog')}", "{{runtime_class}}"),
            _one("Cores", "Reserved beside what containers ask for.",
                 f"max by (runtime_class) {_led('trimtab_overhead_cpu_cores', 'watchdog')}", "{{runtime_class}}",
                 stacked=True),
            _one("Memory", "Reserved beside what containers ask for.",
                 f"max by (runtime_class) {_led('trimtab_overhead_memory_bytes', 'watchdog')}", "{{runtime_class}}",
                 "bytes", stacked=True),
            _one("Kinds of nodes", "That the class's node selector allows; 0: its pods wait for a node.",
                 f"max by (runtime_class) {_led('trimtab_runtime_class_node_types', 'watchdog')}", "{{runtime_class}}"),
            _one("No node takes its pods", "no-label, cordoned, tainted: each pod must tolerate, may-come: scales up.",
                 f"max by (runtime_class, reason) {_led('trimtab_runtime_class_without_nodes', 'watchdog')}",
                 "{{runtime_class}} {{reason}}"),
            _one("Money", "Dollars an hour for overhead, by requests and what nodes cost.",
                 f"max by (runtime_class) {_led('trimtab_overhead_dollars_per_hour', 'watchdog')}",
                 "{{runtime_class}}", "currencyUSD", stacked=True),
            _one("Money by namespace", "Dollars an hour by requests: of containers, and of their sandboxes.",
                 f"max by (namespace, part) {_led('trimtab_namespace_dollars_per_hour', 'watchdog')}",
                 "{{namespace}} {{part}}", "currencyUSD"),
            _one("Evicted by kubelets", "Pods in an hour, by RuntimeClass; none: of pods without one.",
                 "max by (runtime_class) (increase(trimtab_runtime_class_evictions_total[1h]))", "{{runtime_class}}"),
            _one("Use more memory than request and overhead", "Pods that a kubelet short of memory evicts first."
                 " Of pods with overhead, by cAdvisor and kube-state-metrics.",
                 'count(max by (namespace, pod) (container_memory_working_set_bytes{container="", pod!=""})'
                 ' > on (namespace, pod) (sum by (namespace, pod) (kube_pod_overhead_memory_bytes)'
                 ' + on (namespace, pod)'
                 ' sum by (namespace, pod) (kube_pod_container_resource_requests{resource="memory"})))', "pods"),
        )),
        Row("The watchdog", (
            Panel("A look takes, age of data", "Seconds.", (
                Query(f"max{_led('trimtab_watchdog_check_duration_seconds', 'watchdog')}", "look"),
                Query(f"max{_led('trimtab_watchdog_data_age_seconds', 'watchdog')}", "data")), "s"),
            Panel("Behind and lost", "Groups of pods not come to; Events that could not be written.", (
                Query(f"max{_led('trimtab_watchdog_undecided_pod_groups', 'watchdog')}", "undecided"),
                Query(f"max{_led('trimtab_watchdog_lost_events', 'watchdog')}", "events lost"))),
            _one("Pods seen", "Running pods.", f"max{_led('trimtab_running_pods', 'watchdog')}", "pods"),
        )),
    ),
)  # fmt: skip

SIZES = Dashboard(
    "trimtab-sizes", "Trimtab / Recommender", "How much is known of what pods use.",
    (
        Row("What is known", (
            Panel("Containers", "Whose usage is remembered, and those with a recommendation.", (
                Query(f"max{_led('trimtab_recommender_containers', 'recommender')}", "remembered"),
                Query(f"max{_led('trimtab_recommender_recommended_containers', 'recommender')}", "recommended"))),
            _one("Without a recommendation", "By resource and reason.",
                 "max by (resource, reason) "
                 f"{_led('trimtab_recommender_containers_without_recommendation', 'recommender')}",
                 "{{resource}} {{reason}}"),
            _stat("Usage was read", "So long ago.",
                  "time() - max(trimtab_recommender_collected_timestamp_seconds)", "", "s"),
        )),
        Row("What it does", (
            _one("Series read a second", "That brought something new.",
                 "sum(rate(trimtab_recommender_series_total[$__rate_interval]))", "series"),
            Panel("Left out", "Samples that are no amount: a counter that broke. Looks that nobody took up in time.", (
                Query("sum(increase(trimtab_recommender_ignored_samples_total[$__rate_interval]))", "samples"),
                Query("sum(increase(trimtab_recommender_missed_collections_total[$__rate_interval]))", "looks"))),
            _one("Shards written an hour", "Each write of recommendations wakes every webhook.",
                 "sum by (what) (rate(trimtab_recommender_writes_total[$__rate_interval])) * 3600", "{{what}}"),
            Panel("Shards", "That stand, and that were found damaged.", (
                Query(f"max by (what) {_led('trimtab_recommender_shards', 'recommender')}", "{{what}}"),
                Query(f"max by (what) {_led('trimtab_recommender_unreadable_shards', 'recommender')}",
                      "{{what}} damaged"))),
            _one("Faults", "Steps that failed.",
                 "sum by (what) (increase(trimtab_recommender_errors_total[$__rate_interval]))", "{{what}}"),
        )),
    ),
)  # fmt: skip

ALL = (POOLS, PODS, SIZES)
