"""What the namespaces of a cluster share in Trimtab: the places in the source, with the tests of what limits one
namespace, or the reason why nothing has to."""

from typing import NamedTuple


class Law(NamedTuple):
    """What holds for one shared thing: where it is, the tests that measure a namespace beside a neighbour that takes
    all it can, and the reason if there is no such test."""

    tests: tuple[str, ...]
    reason: str = ""
    places: tuple[str, ...] = ()
    """Each as `FILE SIGN`; the signs are those of `tests.architecture.shared_places`."""


_NAMESPACES = "tests/compactor/test_failing_namespaces.py"
_SLOTS = "tests/metricsapi/test_scrape_queue.py"
_NEIGHBOURS = "tests/metricsapi/test_neighbour_targets.py"
_LOOP = "tests/watchdog/test_loop.py"
_COMPUTED_AGAIN = "a result that is missing is computed again, and is the same"

SHARED: dict[str, Law] = {
    "the time of the webhook": Law(
        (
            "tests/property/test_costs.py::test_a_review_costs_no_more_than_in_proportion_to_the_pod",
            "tests/e2e/adversary/test_tenant.py::test_no_pod_of_a_tenant_takes_the_webhook_away_from_others",
        ),
        places=(
            "webhook/asgi.py BodyBudget",
            "webhook/policy_state.py ChangeQueue",
            "trimtab/runtime/gunicorn_patches.py BodyBudget",
            "trimtab/runtime/http_framing.py BodyBudget",
            "trimtab/runtime/connection_limits.py _crowd_by_connection >= _max_total",
        ),
    ),
    "reviews that wait for a new owner": Law(
        (
            "tests/webhook/test_asgi.py::test_reviews_of_other_namespaces_that_wait_take_no_wait_from_this_one",
            "tests/cluster/test_fair_share.py::test_no_slot_of_a_user_with_no_more_than_an_equal_share_is_lost",
            "tests/webhook/test_asgi.py::test_no_pod_waits_longer_than_a_moment_nor_with_too_many_others",
        ),
        places=("webhook/asgi.py FairSlots",),
    ),
    "decisions about quotas that siblings share": Law(
        (
            "tests/admission/test_quota_headroom.py::test_the_owners_of_another_namespace_change_no_decision_of_siblings",
            "tests/cluster/test_fair_share.py::test_no_entry_of_a_user_with_no_more_than_an_equal_share_is_dropped",
        ),
        places=("trimtab/admission/apiserver/resourcequota.py FairCache",),
    ),
    "cached responses and templates": Law(
        (
            "tests/admission/test_response_cache.py::test_memory_is_bounded_and_keeps_what_is_asked_for",
            "tests/admission/test_response_cache.py::test_another_namespace_is_another_pod",
            "tests/admission/test_template_cache.py::test_the_number_of_templates_is_bounded",
            "tests/admission/test_template_cache.py::test_another_namespace_is_another_template",
        ),
        f"{_COMPUTED_AGAIN}: a review then takes as long as the first of its pod",
        (
            "trimtab/admission/response_cache.py _estimated_bytes >= _room",
            "trimtab/admission/recent_hashes.py _hashes >= MAX_HASHES",
            "trimtab/admission/template_cache.py _templates >= _max_templates",
            "trimtab/policy/applicable_policies.py _entries >= _MAX_CACHED_KEYS",
            "trimtab/policy/actions/request_origin.py _cache >= _MAX_RULES",
            "trimtab/policy/cluster_facts.py _cache >= _room",
            "trimtab/cluster/pod.py _latest >= _MAX_OWNERS",
            "trimtab/cluster/resizable_pod.py _shared >= _MAX_SHARED_PARTS",
            "trimtab/kube/transform.py _parts >= _MAX_SHARED_PARTS",
        ),
    ),
    "failed drains that close a pool": Law(
        (
            f"{_NAMESPACES}::test_pods_of_one_namespace_that_never_end_close_no_pool",
            f"{_NAMESPACES}::test_no_node_with_pods_of_the_namespace_is_drained_for_a_while",
            f"{_NAMESPACES}::test_the_strikes_of_a_pool_are_its_failing_namespaces_and_its_failures_without_one",
        )
    ),
    "the back-off of a pool": Law(
        ("tests/compactor/test_backoff.py::test_pods_that_wait_because_their_workload_has_grown_are_no_setback",),
        "pods without a node are harm to the pool, whichever namespace they are in; a back-off evicts no pod",
    ),
    "the evictions per hour of a pool": Law(
        (),
        "the plan chooses nodes by what their removal saves; a pod that is not evicted loses nothing",
        (
            "trimtab/compaction/search/drain_search.py [:most]",
            "trimtab/compaction/search/problem.py [:most]",
            "trimtab/compaction/plan_variants.py [:most]",
            "trimtab/compactor/soft_taint.py [:MAX_WRITES]",
            "trimtab/compaction/search/strategy.py [:MAX_TARGETS_PREFERRING]",
            "trimtab/compaction/search/strategy.py [:MAX_SWAP_IN]",
            "trimtab/compaction/search/drain_order.py [:MAX_FIRST_NODES]",
            "trimtab/compaction/search/strategy.py [-MAX_SWAP_OUT:]",
            "trimtab/compaction/search/dear_nodes.py [:MAX_EXCHANGED]",
        ),
    ),
    "the resizes per hour of a pool": Law(
        (
            "tests/compactor/test_resizer.py::test_the_resizes_of_a_namespace_take_those_of_an_hour_from_no_other",
            "tests/compaction/resize/test_state_machine.py"
            "::test_workloads_of_a_namespace_without_end_make_no_other_begin_with_a_canary_again",
        ),
        places=(
            "trimtab/compaction/resize/records.py [:MAX_REMEMBERED]",
            "trimtab/compactor/resize_reader.py [:MAX_PRESSURE_NODES]",
        ),
    ),
    "what evicted pods would request now": Law(
        (),
        "a change costs the same whichever namespace it is in, and none is dropped",
        ("trimtab/compactor/successor_requests.py SimpleQueue", "trimtab/kube/informers.py SimpleQueue"),
    ),
    "the pods that the watchdog examines in one check": Law(
        (
            f"{_LOOP}::test_new_templates_of_a_namespace_without_end_delay_no_status",
            f"{_LOOP}::test_while_pods_wait_for_their_turn_nothing_is_written",
        ),
        places=("trimtab/admission/audit/drift.py [:most]", "trimtab/watchdog/pod_watcher.py ChangeQueue"),
    ),
    "the failures that brake a policy": Law(
        (
            f"{_LOOP}::test_a_tenants_failing_pods_take_the_policy_from_no_other_namespace",
            f"{_LOOP}::test_a_tenants_failing_pods_switch_off_no_required_action",
            "tests/admission/audit/test_harm.py"
            "::test_no_number_of_failing_pods_in_one_namespace_brakes_a_policy_of_several",
        )
    ),
    "Events": Law(
        (
            f"{_LOOP}::test_findings_of_a_namespace_that_come_without_end_leave_others_their_event",
            f"{_LOOP}::test_no_more_events_in_one_look_than_there_may_be",
            "tests/cluster/test_fair_share.py::test_the_first_items_of_all_users_come_before_the_second_of_any",
            "tests/kube/test_evict_and_events.py::test_what_many_threads_tell_is_one_event_that_counts_them_all",
        ),
        places=("trimtab/watchdog/policy_events.py [:max_events]", "trimtab/kube/events.py FairCache"),
    ),
    "what the recommender reads": Law(
        (
            "tests/recommender/test_collector.py::test_a_namespace_that_can_never_be_read_holds_back_no_other",
            "tests/recommender/test_collector.py"
            "::test_a_namespace_that_cannot_be_read_is_read_next_time_and_the_others_not_twice",
            "tests/recommender/test_memory_of_documents.py::test_a_hostile_text_costs_at_most_64_mb",
        ),
        places=(
            "trimtab/recommender/collector.py deque",
            "trimtab/recommender/collector.py _queue >= MAX_QUEUED_READINGS",
            "trimtab/recommender/pod_watcher.py ChangeQueue",
            "trimtab/recommender/vpa_watcher.py ChangeQueue",
            "trimtab/usage/prometheus.py deque",
            "trimtab/usage/prometheus.py ThreadPoolExecutor",
            "trimtab/usage/kubelet.py ThreadPoolExecutor",
            "trimtab/usage/kubelet_overhead.py ThreadPoolExecutor",
            "trimtab/usage/http_client.py PoolManager",
            "trimtab/usage/prometheus.py islice(1)",
            "trimtab/usage/prometheus.py islice(max_concurrent_queries)",
        ),
    ),
    "what the recommender writes": Law(
        (
            "tests/recommender/test_write_budget.py::test_large_changes_of_a_namespace_without_end_hold_back_no_other",
            "tests/recommender/test_write_budget.py::test_with_little_room_every_shard_is_written_in_its_turn",
        ),
        places=("trimtab/recommender/process.py WriteBudget", "trimtab/recommender/write_budget.py deque"),
    ),
    "the usage that the recommender stores": Law(
        ("tests/recommender/test_sharded_configmaps.py::test_below_a_ceiling_the_oldest_days_go",),
        "the oldest days of all go first, and recommendations rest on what is left; a metric and the log say so",
    ),
    "the slots for scrapes of the metrics API": Law(
        (
            f"{_SLOTS}::test_pods_that_never_respond_take_nothing_from_other_namespaces",
            f"{_SLOTS}::test_pods_of_any_speed_leave_another_namespace_its_interval",
            f"{_SLOTS}::test_a_namespace_cannot_shed_its_load_by_removing_its_pods",
            f"{_NEIGHBOURS}::test_a_neighbour_whose_targets_change_takes_no_value_from_another_namespace",
            f"{_NEIGHBOURS}::test_neighbours_of_any_kind_take_no_value_from_another_namespace",
            "tests/metricsapi/test_pacing.py::test_new_targets_take_nothing_of_what_known_ones_are_owed",
        ),
        places=(
            "trimtab/metricsapi/collector.py ScrapeQueue",
            "trimtab/metricsapi/scrape_queue.py heappush",
            "trimtab/metricsapi/collector.py slots_in_use >= max_concurrent_scrapes",
            "trimtab/metricsapi/process.py ThreadPoolExecutor",
        ),
    ),
    "the threads that answer the metrics API": Law(
        (
            "tests/metricsapi/test_asgi.py"
            "::test_a_user_waits_for_one_request_of_each_other_user_and_not_for_all_of_them",
            "tests/metricsapi/test_asgi.py"
            "::test_a_request_of_another_user_takes_the_place_of_one_of_the_user_with_the_most",
            "tests/metricsapi/test_asgi.py"
            "::test_the_service_accounts_of_a_namespace_together_take_the_place_of_no_other_user",
            "tests/metricsapi/test_requests.py::test_accounts_of_a_namespace_drop_no_answer_that_another_user_needs",
            "tests/cluster/test_fair_share.py::test_a_user_waits_for_one_item_of_each_other_user_at_most",
        ),
        places=(
            "trimtab/metricsapi/asgi.py FairQueue",
            "trimtab/metricsapi/asgi.py ThreadPoolExecutor",
            "trimtab/metricsapi/authorization.py FairCache",
        ),
    ),
    "the threads for the pages of metrics": Law(
        (
            "tests/metricsapi/test_asgi.py::test_clients_that_ask_for_the_metrics_page_do_not_delay_the_api",
            "tests/webhook/test_asgi.py::test_a_probe_is_answered_while_every_check_that_may_wait_does",
            "tests/webhook/test_asgi.py::test_too_many_requests_for_pages_are_refused_and_delay_no_review",
        ),
        "no pod of a tenant asks for pages or checks through the API server; the pods of the network share a page",
        (
            "trimtab/metricsapi/asgi.py _waiting_pages >= MAX_WAITING_PAGES",
            "webhook/asgi.py ThreadPoolExecutor",
            "webhook/asgi.py _checks_under_way >= MAX_CHECKS",
            "webhook/asgi.py WSGIMiddleware",
            "webhook/asgi.py _pages_under_way >= MAX_PAGES",
            "trimtab/runtime/http_pages.py _connections >= MAX_CONNECTIONS",
        ),
    ),
}
"""A shared thing, as its line in the threat model begins → what holds for it."""

_ONE_TEXT = "the beginning of one text, or of the names in one sentence"
_ONE_INPUT = "the limit of one document or one connection, which others do not fill"
_NOTIFIED = "decisions about nodes and pools, which people read; drains do not wait for them"

NOT_SHARED: dict[str, str] = {
    "trimtab/admission/missing_node.py [:_MAX_LABEL_TEXT]": _ONE_TEXT,
    "trimtab/admission/missing_node.py [:_MAX_NAMED_GROUPS]": _ONE_TEXT,
    "trimtab/admission/missing_node.py [:_MAX_NAMED_LABELS]": _ONE_TEXT,
    "trimtab/cluster/config_error.py [:MAX_MISTAKES]": _ONE_TEXT,
    "trimtab/cluster/config_error.py islice(4)": _ONE_TEXT,
    "trimtab/cluster/fair_share.py OrderedDict": "what shares fairly itself",
    "trimtab/cluster/fair_share.py deque": "what shares fairly itself",
    "trimtab/cluster/format_count.py [:max_count]": _ONE_TEXT,
    "trimtab/cluster/documents/read_document.py mistakes >= MAX_MISTAKES": _ONE_INPUT,
    "trimtab/cluster/pool_labels.py [:MAX_CANDIDATES]": "labels of nodes, which no namespace writes",
    "trimtab/cluster/quantity.py [:MAX_CHARACTERS]": _ONE_TEXT,
    "trimtab/cluster/runtime_signs.py [:MAX_CHARACTERS]": _ONE_TEXT,
    "trimtab/cluster/runtime_signs.py rank >= _LIMIT_OPTION": "a comparison of ranks",
    "trimtab/compaction/room_forecast.py [-MAX_SLOTS:]": "the last four weeks of one pool, in sums",
    "trimtab/compaction/drain/pool_state.py [-MAX_HISTORY_ENTRIES:]": "the last records of one pool, in a report",
    "trimtab/compaction/drain/promises.py [-MAX_DAYS:]": "the promises of the last days, one entry for each day",
    "trimtab/compaction/drain/savings.py [-MAX_DAYS:]": "the savings of the last days, one entry for each day",
    "trimtab/compaction/drain/savings.py [:MAX_NAMESPACES]": "the namespaces that save most, in a report",
    "trimtab/compaction/drain/waiting.py [:MAX_REASONS]": _ONE_TEXT,
    "trimtab/compaction/replace/migration.py new_nodes >= max_new_nodes": "a comparison of two numbers, in a command",
    "trimtab/compaction/replace/node_sets.py nlargest(MAX_PARTIAL_SETS)": "sets of nodes that save most, in a command",
    "trimtab/compaction/replace/node_sets.py nlargest(MAX_SETS)": "sets of nodes that save most, in a command",
    "trimtab/compaction/replace/plan_replacements.py [:MAX_ATTEMPTS]": "sets of nodes that save most, in a command",
    "trimtab/compaction/order/order_status.py [:MAX_MESSAGE]": _ONE_TEXT,
    "trimtab/compaction/order/order_status.py [:MAX_NODE_TEXT]": _ONE_TEXT,
    "trimtab/compaction/order/order_status.py [:MAX_OVERRIDES]": _ONE_TEXT,
    "trimtab/compaction/order/order_status.py [:MAX_PLAN]": _ONE_TEXT,
    "trimtab/compaction/order/order_status.py [:MAX_REMARKS]": _ONE_TEXT,
    "trimtab/compaction/pool_status.py [:MAX_NAMED_NODES]": _ONE_TEXT,
    "trimtab/compaction/pool_status.py [:MAX_PLAN_NODES]": _ONE_TEXT,
    "trimtab/compaction/pool_status.py [:MAX_TEXT]": _ONE_TEXT,
    "trimtab/compactor/notifications/messages.py [-MAX_LINES:]": _NOTIFIED,
    "trimtab/compactor/notifications/sender.py PoolManager": "the connection to the one receiver of notifications",
    "trimtab/compactor/notifications/sender.py _waiting >= MAX_WAITING": _NOTIFIED,
    "trimtab/compactor/notifications/sender.py deque": _NOTIFIED,
    "trimtab/compactor/order/order_acceptance.py [:MAX_NAMESPACES]": "the namespaces of one order",
    "trimtab/compactor/order/order_keeper.py [:MAX_NEW_ORDERS]": "orders take turns, so each of them is considered",
    "trimtab/compactor/order/order_ledger.py entries >= MAX_ORDERS": "orders of those who may drain nodes, which say "
    "in their status that there are too many",
    "trimtab/compactor/order/order_progress.py [:MAX_STOP_TEXT]": _ONE_TEXT,
    "trimtab/compactor/order/order_rights.py _answers >= MAX_REVIEWS": "an author without permissions uses few of them",
    "trimtab/compactor/order/order_source.py islice(MAX_NAMED_RIGHTS)": _ONE_TEXT,
    "trimtab/compactor/pool_state_store.py [:MAX_REASON_LENGTH]": _ONE_TEXT,
    "trimtab/compactor/resizer.py [:MAX_UNCOVERED_NAMES]": _ONE_TEXT,
    "trimtab/scheduling/fill_nodes.py heappush": "the nodes of one packing, in a command",
    "trimtab/kube/events.py [:_MAX_NOTE]": _ONE_TEXT,
    "trimtab/metricsapi/exposition.py _label_bytes >= MAX_LABEL_BYTES": _ONE_INPUT,
    "trimtab/metricsapi/exposition.py _lines >= MAX_LINES": _ONE_INPUT,
    "trimtab/metricsapi/exposition.py _rest >= MAX_LINE_BYTES": _ONE_INPUT,
    "trimtab/metricsapi/exposition.py _size >= MAX_BODY_BYTES": _ONE_INPUT,
    "trimtab/metricsapi/http_response.py _receives >= MAX_RECEIVES": _ONE_INPUT,
    "trimtab/metricsapi/http_response.py _sent_bytes >= MAX_SENT_BYTES": _ONE_INPUT,
    "trimtab/metricsapi/rules.py [:MAX_RULES]": _ONE_INPUT,
    "trimtab/policy/affinity_conflicts.py [:_MAX_QUOTED]": _ONE_TEXT,
    "trimtab/policy/load.py islice(MAX_MISTAKES)": _ONE_INPUT,
    "trimtab/reservations/overhead_history.py del [MAX_SAMPLES:]": "the runs of a node's own agents",
    "trimtab/reservations/overhead_history.py kept >= MAX_SAMPLES": "the runs of a node's own agents",
    "trimtab/runtime/environment.py [:_MAX_COMPARED]": _ONE_TEXT,
    "trimtab/runtime/immediate_answers.py _requests >= MAX_HEADS": "a head that is dropped is parsed again",
    "trimtab/runtime/http_framing.py _aside >= MAX_ASIDE_BYTES": _ONE_INPUT,
    "trimtab/runtime/http_framing.py _chunks >= MAX_CHUNKS": _ONE_INPUT,
    "trimtab/runtime/metrics.py _values >= _limit": "values of one label, such as names of policies",
    "trimtab/usage/cluster_label.py [:_MAX_NAMED_VALUES]": _ONE_TEXT,
    "trimtab/usage/cluster_label.py values >= _MAX_NAMED_VALUES": _ONE_TEXT,
    "trimtab/usage/files.py mistakes >= _MAX_ERRORS": _ONE_INPUT,
    "trimtab/usage/repeated_series.py islice(5)": _ONE_TEXT,
    "trimtab/usage/server_warnings.py _reported >= _MAX_WARNINGS": "the warnings of one Prometheus, in a report",
    "trimtab/usage/usage_file.py mistakes >= _MAX_NAMES": _ONE_INPUT,
    "trimtab/usage/usage_file.py most_common(_MAX_NAMES)": _ONE_INPUT,
    "trimtab/watchdog/policy_status.py [:_MAX_MESSAGE_CHARACTERS]": _ONE_TEXT,
    "trimtab/runtime/line_batches.py _lines >= MAX_LINES": "all lines are written, and none is lost",
    "webhook/metrics.py [:MAX_LOGGED_FIELDS]": _ONE_TEXT,
    "webhook/metrics.py _bytes >= MAX_RECORD_BYTES": "all counts are added to the metrics, and none is lost",
    "webhook/metrics.py _counts >= MAX_RECORDS": "all counts are added to the metrics, and none is lost",
}
"""A place that looks like a shared one → why namespaces share nothing there."""

FOLDERS_OF_ONE_USER = {
    "trimtab/cli/": "the run of a command, by one user",
    "trimtab/inputs/": "the run of a command, by one user",
    "trimtab/diagnosis/": "the run of a command, by one user",
    "trimtab/installation/": "the run of a command, by one user",
    "trimtab/fleet/": "the run of a command, by one user",
    "trimtab/autoscaling/churn/": "the run of a command, by one user",
    "trimtab/autoscaling/simulation/": "the run of a command, by one user",
    "trimtab/sizing/ranking/": "machine types of all pods together, which no pod waits for",
    "trimtab/machines/": "prices and types, which no namespace writes",
}

CACHES_OF_FUNCTIONS = frozenset({"cache", "cache_short_strings", "lru_cache"})
"""Signs that share nothing in any file: a result of such a function that is missing is computed again, and is the
same."""
