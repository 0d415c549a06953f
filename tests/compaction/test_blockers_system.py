"""Which pods of the system may move, and what one replica that is not ready keeps."""

from dataclasses import replace
from typing import Any

import pytest

from tests.cluster_of import ALL, NOW, SAFE, Item, budget, node, pod
from tests.compaction.test_blockers import owner, verdict
from tests.compaction.test_plan import goes
from trimtab.cluster.pool import ProtectCritical, ProtectUnready
from trimtab.cluster.timestamps import format_timestamp

OLD, YOUNG = format_timestamp(NOW - 601), format_timestamp(NOW - 599)


# ── one replica that is not ready ────────────────────────────────────────────────────────────────────


def crashing(wanted: int, unready: int = 1, created: str = OLD) -> list[Item]:
    """A workload called x of so many replicas; those that are not ready were made at that time."""
    pods = [pod(f"x-u{n}", "b", ready=False, created=created) for n in range(unready)]
    return [*pods, owner("x", wanted, wanted - unready)]


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        (crashing(3), "moves"),
        (crashing(24), "moves"),
        (crashing(3, created=YOUNG), "owner-not-whole"),
        (crashing(2), "owner-not-whole"),
        (crashing(24, unready=2), "owner-not-whole"),
        ([owner("x", 3, 2)], "owner-not-whole"),  # it is not there at all
        ([*crashing(24, unready=2), budget("x", 1)], "moves"),
        ([*crashing(3, created=YOUNG), budget("x", 1)], "moves"),
        ([*crashing(3), budget("x", 0)], "budget-never-allows"),
    ],
)
def test_the_budget_decides_and_without_one_a_single_replica_of_three_that_is_long_unready_keeps_none(
    others: list[Item], expected: str
) -> None:
    assert verdict(pod("x-1", "a"), *others) == expected


def test_a_pool_may_protect_every_workload_that_is_not_whole() -> None:
    protecting = replace(ALL, unready=ProtectUnready.WORKLOAD)
    assert verdict(pod("x-1", "a"), *crashing(3), pool=protecting) == "owner-not-whole"
    assert verdict(pod("x-1", "a"), *crashing(3), budget("x", 1), pool=protecting) == "owner-not-whole"


def test_a_deployment_that_lacks_what_its_replica_set_lacks_is_not_rolling() -> None:
    labels = {"pod-template-hash": "5d6f"}
    item = pod("x-1", "a", app="x-5d6f", labels=labels)
    unready = pod("x-2", "b", app="x-5d6f", labels=labels, ready=False, created=OLD)
    one_short = [unready, owner("x-5d6f", 3, 2), owner("x", 3, 2, kind="Deployment")]
    assert verdict(item, *one_short) == "moves"
    rolling = [unready, owner("x-5d6f", 3, 2), owner("x", 4, 2, kind="Deployment")]
    assert verdict(item, *rolling) == "owner-not-whole"


# ── pods of the system ───────────────────────────────────────────────────────────────────────────────


def critical(priority: int = 2_000_000_000, **more: Any) -> Item:
    return pod("dns-1", "a", namespace="kube-system", spec={"priority": priority}, **more)


TWO = owner("dns", 2, 2, namespace="kube-system")
PLAIN = budget("dns", 1, namespace="kube-system")


@pytest.mark.parametrize(
    ("item", "others", "expected"),
    [
        (critical(), [TWO, PLAIN], "moves"),
        (critical(), [TWO, budget("dns", 0, namespace="kube-system", most=1)], "budget-spent"),
        (critical(), [TWO], "system-critical"),
        (critical(), [owner("dns", 2, 1, namespace="kube-system"), PLAIN], "system-critical"),
        (critical(annotations={SAFE: "true"}), [TWO], "system-critical"),
        (critical(owner="", annotations={SAFE: "true"}), [PLAIN], "system-critical"),
        (critical(owner="Node", annotations={"kubernetes.io/config.mirror": "1"}), [PLAIN], "skipped"),
        (critical(2_000_001_000), [TWO, PLAIN], "system-critical"),
        (critical(annotations={SAFE: "false"}), [TWO, PLAIN], "not-safe-to-evict"),
    ],
)
def test_a_critical_pod_moves_where_a_budget_allows_it_and_a_second_replica_is_ready(
    item: Item, others: list[Item], expected: str
) -> None:
    assert verdict(item, *others) == expected


@pytest.mark.parametrize(
    ("protection", "with_budget", "annotated", "node_critical"),
    [
        (ProtectCritical.ALWAYS, "system-critical", "system-critical", "system-critical"),
        (ProtectCritical.WITHOUT_BUDGET, "moves", "system-critical", "system-critical"),
        (ProtectCritical.UNLESS_SAFE, "moves", "moves", "system-critical"),
    ],
)
def test_what_a_pool_says_of_critical_pods_is_obeyed(
    protection: ProtectCritical, with_budget: str, annotated: str, node_critical: str
) -> None:
    mine = replace(ALL, critical_pods=protection)
    safe = {SAFE: "true"}
    assert verdict(critical(), TWO, PLAIN, pool=mine) == with_budget
    assert verdict(critical(annotations=safe), TWO, pool=mine) == annotated
    assert verdict(critical(2_000_001_000, annotations=safe), TWO, pool=mine) == node_critical
    assert verdict(critical(owner="", annotations=safe), pool=mine) == "system-critical"


def test_the_last_ready_replica_of_our_own_webhook_stays() -> None:
    labels = {"app.kubernetes.io/name": "trimtab", "app.kubernetes.io/component": "webhook"}
    ours = pod("hook-1", "a", labels=labels)
    assert verdict(ours, owner("hook", 2, 2), budget("hook", 1)) == "moves"
    other = pod("hook-2", "b", labels=labels, ready=False)
    for pool in (ALL, replace(ALL, single_replicas=True)):
        assert verdict(ours, other, owner("hook", 2, 1), budget("hook", 1), pool=pool) == "last-webhook-replica"


def test_a_node_with_a_crash_looping_neighbour_goes() -> None:
    """Twelve nodes, 24 replicas, one of them not ready: nothing went."""
    pods = [pod(f"web-{n}", f"n{n % 12:02}", "100m", ready=n != 0, created=OLD) for n in range(24)]
    items = [*(node(f"n{n:02}") for n in range(12)), *pods, owner("web", 24, 23)]
    assert len(goes(*items)) >= 10
