"""While a pod is resized in place the larger of both sizes counts."""

import pytest

from tests.cluster_of import Item, cluster, node, pod

SIDE = {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}}
ONCE = {"name": "i", "resources": {"requests": {"cpu": "100m"}}}


def requests(asked: str, allocated: dict[str, str]) -> object:
    created_pod = pod("x-1", "a", asked)
    created_pod["status"]["containerStatuses"] = [{"name": "c", "allocatedResources": allocated}]
    return cluster(node("a"), created_pod).pods[0].requirements.requests


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


@pytest.mark.parametrize(
    ("allocated", "actual", "counted"), [("1", "3", 3000), ("3", "1", 3000), ("1", "1", 2000), ("1", "pears", 2000)]
)
def test_what_a_container_really_has_counts_while_it_shrinks(allocated: str, actual: str, counted: int) -> None:
    created_pod = pod("x-1", "a", "2")
    created_pod["status"]["containerStatuses"] = [
        {"name": "c", "allocatedResources": {"cpu": allocated}, "resources": {"requests": {"cpu": actual}}}
    ]
    assert cluster(node("a"), created_pod).pods[0].requirements.requests == {"cpu": counted}


@pytest.mark.parametrize(
    "status", [{"allocatedResources": {"cpu": "3250m"}}, {"resources": {"requests": {"cpu": "3250m"}}}]
)
def test_so_it_is_with_a_pod_that_asks_as_a_whole_its_overhead_counted_once(status: Item) -> None:
    created_pod = pod("x-1", "a", "1", spec={"resources": {"requests": {"cpu": "2"}}, "overhead": {"cpu": "250m"}})
    created_pod["status"] |= status
    assert cluster(node("a"), created_pod).pods[0].requirements.requests == {"cpu": 3250}


def test_pods_that_are_resized_do_not_count_for_those_that_are_not() -> None:
    one, two = pod("x-1", "a", "1"), pod("x-2", "a", "1")
    one["status"]["containerStatuses"] = [{"name": "c", "allocatedResources": {"cpu": "2"}}]
    assert [p.requirements.requests for p in cluster(node("a"), one, two).pods] == [{"cpu": 2000}, {"cpu": 1000}]


@pytest.mark.parametrize(("init", "counted"), [(SIDE, 1500), (ONCE, 1000)])
def test_a_sidecar_that_is_resized_counts_too_an_init_container_that_ended_does_not(init: Item, counted: int) -> None:
    created_pod = pod("x-1", "a", "1", spec={"initContainers": [init]})
    created_pod["status"]["initContainerStatuses"] = [{"name": init["name"], "allocatedResources": {"cpu": "500m"}}]
    assert cluster(node("a"), created_pod).pods[0].requirements.requests == {"cpu": counted}


@pytest.mark.parametrize(
    ("reason", "actual", "counted"),
    [("Infeasible", "1", 1000), ("Infeasible", "3", 3000), ("Deferred", "1", 9000), ("Infeasible", "", 9000)],
)
def test_a_resize_that_can_never_happen_does_not_count(reason: str, actual: str, counted: int) -> None:
    """Without the actual amounts, the scheduler takes the spec."""
    created_pod = pod("x-1", "a", "9", memory="1Gi")
    has = {"resources": {"requests": {"cpu": actual}}} if actual else {}
    created_pod["status"]["containerStatuses"] = [{"name": "c", "allocatedResources": {"cpu": "1"}, **has}]
    created_pod["status"]["conditions"].append({"type": "PodResizePending", "status": "True", "reason": reason})
    assert cluster(node("a"), created_pod).pods[0].requirements.requests == {"cpu": counted, "memory": 1 << 30}


def test_so_it_is_with_an_infeasible_resize_of_pod_level_resources() -> None:
    created_pod = pod("x-1", "a", "1", spec={"resources": {"requests": {"cpu": "9"}}})
    created_pod["status"] |= {"resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "2"}}
    created_pod["status"]["conditions"].append({"type": "PodResizePending", "status": "True", "reason": "Infeasible"})
    assert cluster(node("a"), created_pod).pods[0].requirements.requests == {"cpu": 2000}
