"""While a pod is resized in place the larger of both sizes counts."""

import pytest

from tests.cluster_of import cluster, node, pod


def requests(asked: str, allocated: dict[str, str]) -> object:
    found = pod("x-1", "a", asked)
    found["status"]["containerStatuses"] = [{"name": "c", "allocatedResources": allocated}]
    return cluster(node("a"), found).pods[0].ask.requests


@pytest.mark.parametrize(
    ("asked", "allocated", "counted"),
    [
        ("1", {"cpu": "2"}, {"cpu": 2000}),
        ("2", {"cpu": "1"}, {"cpu": 2000}),
        ("1", {"cpu": "1000m", "memory": "1Gi"}, {"cpu": 1000, "memory": 1 << 30}),
        ("1", {}, {"cpu": 1000}),
        ("1", {"cpu": "apples"}, {"cpu": 1000}),
    ],
)
def test_the_larger_of_what_is_asked_and_what_is_set_aside_counts(
    asked: str, allocated: dict[str, str], counted: dict[str, int]
) -> None:
    assert requests(asked, allocated) == counted


def test_pods_that_are_resized_do_not_count_for_those_that_are_not() -> None:
    one, two = pod("x-1", "a", "1"), pod("x-2", "a", "1")
    one["status"]["containerStatuses"] = [{"name": "c", "allocatedResources": {"cpu": "2"}}]
    assert [p.ask.requests for p in cluster(node("a"), one, two).pods] == [{"cpu": 2000}, {"cpu": 1000}]
