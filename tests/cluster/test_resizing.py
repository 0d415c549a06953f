"""While a pod is resized in place the larger of both sizes counts."""

import pytest

from tests.cluster_of import Item, cluster, node, pod

SIDE = {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}}
ONCE = {"name": "i", "resources": {"requests": {"cpu": "100m"}}}


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


@pytest.mark.parametrize(("init", "counted"), [(SIDE, 1500), (ONCE, 1000)])
def test_a_sidecar_that_is_resized_counts_too_an_init_container_that_ended_does_not(init: Item, counted: int) -> None:
    found = pod("x-1", "a", "1", spec={"initContainers": [init]})
    found["status"]["initContainerStatuses"] = [{"name": init["name"], "allocatedResources": {"cpu": "500m"}}]
    assert cluster(node("a"), found).pods[0].ask.requests == {"cpu": counted}
