"""A single replica moves only after a second one runs: a ResourceQuota without room for it keeps the node."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.cluster_of import ALL, Item, node, pod
from tests.compaction.plans import planned
from trimtab.cluster.pool import Pool
from trimtab.compaction import reasons

MOVES_SINGLES = replace(ALL, single_replicas=True)


def quota(hard: Mapping[str, str], used: Mapping[str, str], **spec: object) -> Item:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": {**hard}, **spec},
        "status": {"hard": {**hard}, "used": {**used}},
    }


def code(*others: Item, pool: Pool = MOVES_SINGLES, extra: Mapping[str, str] | None = None, **more: object) -> str:
    """The code of the reason why the pod solo-0 stays, or "moves"."""
    item = pod("solo-0", "a", "500m", "512Mi", extra={**(extra or {})}, **more)
    capacity = {"extra": {**(extra or {})}}
    made = planned(node("a", **capacity), node("b", **capacity), item, pod("other-1", "b", "2"), *others, pool=pool)
    return made.pods["default/solo-0"].code.name if "default/solo-0" in made.pods else "moves"


FULL = "single-replica-without-quota"


@pytest.mark.parametrize(
    ("hard", "used", "expected"),
    [
        ({"pods": "3"}, {"pods": "3"}, FULL),
        ({"count/pods": "3"}, {"count/pods": "3"}, FULL),
        ({"pods": "4"}, {"pods": "3"}, "moves"),
        ({"requests.cpu": "1100m"}, {"requests.cpu": "700m"}, FULL),
        ({"cpu": "1"}, {"cpu": "600m"}, FULL),
        ({"requests.cpu": "1200m"}, {"requests.cpu": "700m"}, "moves"),
        ({"requests.memory": "1Gi"}, {"requests.memory": "600Mi"}, FULL),
        ({"memory": "1Gi"}, {"memory": "512Mi"}, "moves"),
        ({"limits.cpu": "2"}, {"limits.cpu": "2"}, FULL),
        ({"limits.cpu": "2"}, {"limits.cpu": "1900m"}, "moves"),
        ({"persistentvolumeclaims": "0"}, {"persistentvolumeclaims": "0"}, "moves"),
        ({"requests.nvidia.com/gpu": "1"}, {"requests.nvidia.com/gpu": "1"}, "moves"),
    ],
)
def test_the_second_replica_must_be_within_every_quota(
    hard: Mapping[str, str], used: Mapping[str, str], expected: str
) -> None:
    assert code(quota(hard, used)) == expected


def test_a_quota_of_devices_counts_for_a_pod_with_devices() -> None:
    full = quota({"requests.nvidia.com/gpu": "1"}, {"requests.nvidia.com/gpu": "1"})
    assert code(full, extra={"nvidia.com/gpu": "1"}) == FULL


def test_a_quota_that_may_not_count_the_pod_or_whose_use_is_not_known_keeps_nothing() -> None:
    assert code(quota({"pods": "3"}, {"pods": "3"}, scopes=["BestEffort"])) == "moves"
    assert code(quota({"pods": "3"}, {})) == "moves"


def test_a_workload_that_needs_no_second_replica_first_is_not_asked() -> None:
    full = quota({"pods": "3"}, {"pods": "3"})
    assert code(full, owner="StatefulSet") == "moves"
    assert code(full, pod("solo-1", "b")) == "moves"


def test_the_advice_is_no_second_replica_which_the_quota_rejects() -> None:
    assert "two replicas" not in reasons.NO_QUOTA_FOR_SECOND_REPLICA.todo
