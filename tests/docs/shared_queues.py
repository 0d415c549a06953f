"""What the namespaces of a cluster share in Trimtab, with the tests of what limits one of them, or a reason."""

from typing import NamedTuple


class Law(NamedTuple):
    """What holds for one shared thing: tests, and a reason where there is no test for it or the test is no limit."""

    tests: tuple[str, ...]
    reason: str = ""


_NAMESPACES = "tests/compactor/test_failing_namespaces.py"
_SLOTS = "tests/metricsapi/test_scrape_queue.py"

SHARED: dict[str, Law] = {
    "the time of the webhook": Law((
        "tests/property/test_costs.py::test_a_review_costs_no_more_than_in_proportion_to_the_pod",
        "tests/e2e/adversary/test_tenant.py::test_no_pod_of_a_tenant_takes_the_webhook_away_from_others",
    )),
    "reviews that wait for a new owner": Law((
        "tests/webhook/test_asgi.py::test_no_pod_waits_longer_than_a_moment_nor_with_too_many_others",
    )),
    "cached responses and templates": Law((
        "tests/admission/test_response_cache.py::test_memory_is_bounded_and_keeps_what_is_asked_for",
        "tests/admission/test_response_cache.py::test_another_namespace_is_another_pod",
        "tests/admission/test_template_cache.py::test_the_number_of_templates_is_bounded",
        "tests/admission/test_template_cache.py::test_another_namespace_is_another_template",
    )),
    "failed drains that close a pool": Law((
        f"{_NAMESPACES}::test_pods_of_one_namespace_that_never_end_close_no_pool",
        f"{_NAMESPACES}::test_no_node_with_pods_of_the_namespace_is_drained_for_a_while",
        f"{_NAMESPACES}::test_the_strikes_of_a_pool_are_its_failing_namespaces_and_its_failures_without_one",
    )),
    "the back-off of a pool": Law(
        ("tests/compactor/test_backoff.py::test_pods_that_wait_because_their_workload_has_grown_are_no_setback",),
        "pods without a node are harm to the pool, whichever namespace they are in; a back-off evicts no pod",
    ),
    "the evictions per hour of a pool": Law(
        (), "the plan chooses nodes by what their removal saves; a pod that is not evicted loses nothing",
    ),
    "the pods that the watchdog examines in one check": Law((
        "tests/watchdog/test_loop.py::test_while_pods_wait_for_their_turn_nothing_is_written",
    )),
    "Events": Law((
        "tests/watchdog/test_loop.py::test_no_more_events_in_one_look_than_there_may_be",
        "tests/kube/test_evict_and_events.py::test_what_many_threads_tell_is_one_event_that_counts_them_all",
    )),
    "what the recommender reads": Law((
        "tests/recommender/test_collector.py"
        "::test_a_namespace_that_cannot_be_read_is_read_next_time_and_the_others_not_twice",
        "tests/recommender/test_memory_of_documents.py::test_a_hostile_text_costs_at_most_64_mb",
    )),
    "the slots for scrapes of the metrics API": Law((
        f"{_SLOTS}::test_pods_that_never_respond_take_nothing_from_other_namespaces",
        f"{_SLOTS}::test_pods_of_any_speed_leave_another_namespace_its_interval",
        f"{_SLOTS}::test_a_namespace_cannot_shed_its_load_by_removing_its_pods",
    )),
}  # fmt: skip
"""A shared thing, as its line in the threat model begins → what holds for it."""
