"""A history in a few lines, and what is made of it."""

from trimtab.autoscaling.churn.churn_history import BudgetSeen, ChurnRecord, NodeGone, NodeSeen, PodGone, PodSeen
from trimtab.autoscaling.churn.churn_outcome import ChurnOutcome, judge_history

HOUR = 3600


def judged(*records: ChurnRecord, begin: float = 0, end: float = 10 * HOUR) -> ChurnOutcome:
    return judge_history(sorted(records, key=lambda record: record.at), begin, end)


def seen(at: float, uid: str, node: str = "n", workload: str = "web", **more: bool) -> PodSeen:
    return PodSeen(at, uid, workload, node, is_ready=more.pop("is_ready", True), **more)


def test_core_hours_and_cost_count_within_the_measurement_alone() -> None:
    outcome = judged(NodeSeen(0, "n", 8000, 500_000), NodeGone(3 * HOUR, "n"), begin=HOUR, end=2 * HOUR)
    assert (outcome.core_hours, outcome.dollars) == (8.0, 0.5)


def test_a_node_that_returns_within_an_hour_is_told_from_one_that_was_lost() -> None:
    records = [
        record
        for name, gone, is_lost in (("a", 1800, False), ("b", 1800, True), ("c", 7000, False))
        for record in (NodeSeen(10, name, 1000, 1, is_lost=is_lost), NodeGone(10 + gone, name))
    ]
    outcome = judged(*records, begin=5)
    assert (outcome.bought, outcome.returned_within_hour) == (3, 1)


def test_nodes_of_before_the_measurement_were_not_bought() -> None:
    assert judged(NodeSeen(0, "n", 1000, 1), NodeSeen(50, "n", 1000, 1, is_cordoned=True), begin=10).bought == 0


def test_waits_are_from_the_first_sight_of_a_pod_to_its_node() -> None:
    outcome = judged(
        seen(10, "p", ""), seen(40, "p"), seen(10, "q", ""), PodGone(20, "q"), seen(90, "r", ""), begin=5, end=100
    )
    assert (outcome.pending_seconds, outcome.wait_longest, outcome.wait_p99, outcome.pods) == (50, 30, 30, 3)


def test_a_pod_that_replaces_an_evicted_one_is_moved_twice_if_it_is_evicted_within_an_hour() -> None:
    first = (seen(0, "p"), seen(100, "p", is_evicted=True, is_leaving=True))
    soon = (seen(101, "q"), seen(100 + HOUR, "q", is_evicted=True, is_leaving=True))
    late = (seen(101, "q"), seen(102 + HOUR, "q", is_evicted=True, is_leaving=True))
    assert (judged(*first, *soon).moved_twice, judged(*first, *late).moved_twice) == (1, 0)
    assert judged(*first, *soon).twice_share == 0.5


def test_a_budget_is_broken_by_an_eviction_that_leaves_too_few_ready_pods() -> None:
    pods = (seen(0, "p"), seen(0, "q"), BudgetSeen(1, "web", 1))
    first = seen(2, "p", is_evicted=True, is_leaving=True)
    second = seen(3, "q", is_evicted=True, is_leaving=True)
    assert (judged(*pods, first).broken, judged(*pods, first, second).broken) == (0, 1)
    # A pod that was not ready costs the budget nothing; nor does one that its controller deletes.
    unready = seen(3, "r", is_ready=False, is_evicted=True, is_leaving=True)
    deleted = seen(3, "q", is_ready=False, is_leaving=True)
    assert judged(*pods, first, seen(1, "r", is_ready=False), unready, deleted).broken == 0


def test_cordons_of_users_are_theirs() -> None:
    left = (
        NodeSeen(0, "a", 1, 1, is_cordoned=True),
        NodeSeen(0, "b", 1, 1, is_cordoned=True, is_cordoned_by_user=True),
    )
    assert judged(*left).cordons_left == 1
    assert judged(*left, NodeGone(11 * HOUR, "a")).cordons_left == 0
