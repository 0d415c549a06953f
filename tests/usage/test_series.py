"""What sources do to a series, and what becomes of it."""

from math import inf, nan

import pytest

from tests.build import owner_key
from trimtab.usage.owners import OwnerIndex, owner_by_name, topmost_owners
from trimtab.usage.series import MAX_GAP_SECONDS, clean_samples, counter_rate


# ── cleaning ─────────────────────────────────────────────────────────────
def test_samples_are_put_in_order_and_of_two_scrapers_the_greater_counts() -> None:
    assert clean_samples([(120, 2.0), (60, 1.0), (120, 3.0), (120, 2.5)]) == ([60, 120], [1.0, 3.0])


def test_what_is_no_amount_or_from_the_future_is_left_out() -> None:
    assert clean_samples([(60, nan), (120, -1.0), (180, inf), (240, 1.0), (9999, 5.0)], now=300) == ([240], [1.0])


# ── counters ─────────────────────────────────────────────────────────────
def test_a_counter_becomes_a_rate() -> None:
    assert counter_rate([0, 60, 120], [100.0, 130.0, 190.0]) == ([60, 120], [0.5, 1.0])


def test_a_counter_that_went_down_began_at_nothing_again() -> None:
    assert counter_rate([0, 60, 120], [100.0, 6.0, 12.0]) == ([60, 120], [0.1, 0.1])


def test_over_a_gap_nothing_is_said() -> None:
    assert counter_rate([0, 60, 60 + MAX_GAP_SECONDS + 1], [0.0, 6.0, 999.0]) == ([60], [0.1])


# ── owners ───────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("pod", "owner"),
    [("web-7d4b9c6f5d-x2x4k", "Deployment/web"), ("db-0", "StatefulSet/db"),
     ("node-exporter-x2x4k", "DaemonSet/node-exporter"), ("report-29383200-x2x4k", "CronJob/report")],
)  # fmt: skip
def test_a_pods_name_tells_who_made_it(pod: str, owner: str) -> None:
    assert owner_by_name("shop", pod) == owner_key(owner, "shop")


def test_a_pods_name_without_a_generated_part_tells_no_owner() -> None:
    assert owner_by_name("shop", "lonely") is None


def test_a_pod_nobody_made_is_its_own_workload() -> None:
    assert OwnerIndex().topmost_owner("shop", "lonely") == owner_key("Pod/lonely", namespace="shop")


def test_what_the_cluster_knows_counts_before_the_name() -> None:
    known = OwnerIndex(pods={("shop", "web-0"): owner_key("Rollout/web", namespace="shop")})
    assert known.topmost_owner("shop", "web-0") == owner_key("Rollout/web", namespace="shop")


def test_a_pod_that_is_gone_belongs_to_the_workload_that_would_name_it_so() -> None:
    known = OwnerIndex(workloads={("shop", "web"): owner_key("Rollout/web", namespace="shop")})
    assert known.topmost_owner("shop", "web-7d4b9c6f5d-x2x4k") == owner_key("Rollout/web", namespace="shop")


def test_owners_are_followed_to_the_top() -> None:
    rows = {"Pod/web-1-a": "ReplicaSet/web-1", "ReplicaSet/web-1": "Rollout/web", "Pod/job-1-a": "Job/job-1",
            "Job/job-1": "CronJob/job"}  # fmt: skip
    found = topmost_owners({owner_key(one, "shop"): owner_key(other, "shop") for one, other in rows.items()})
    assert found == {
        ("shop", "web-1-a"): owner_key("Rollout/web", namespace="shop"),
        ("shop", "job-1-a"): owner_key("CronJob/job", namespace="shop"),
    }
