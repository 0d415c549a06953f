"""Devices are counted where they are single and asked for by class and number; everything else is named, never zero."""

from typing import Any

import pytest

from tests.cluster_of import ALL, NOW, Item, cluster, node, pod
from tests.compaction.plans import planned
from trimtab.cluster.cluster_autoscaler import Autoscaler
from trimtab.compaction.candidates import PlanningContext

DRIVER = "gpu.example.com"
CLASS: Item = {
    "kind": "DeviceClass",
    "metadata": {"name": "gpu"},
    "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
}


def devices(on: str, count: int = 2, **more: Any) -> Item:
    """The slice of a node."""
    names = [{"name": f"gpu-{n}", **more.get("device", {})} for n in range(count)]
    pool = {"name": on, "generation": 1, "resourceSliceCount": 1, **more.get("pool", {})}
    spec = {"driver": DRIVER, "nodeName": on, "pool": pool, "devices": names, **more.get("spec", {})}
    return {"kind": "ResourceSlice", "metadata": {"name": f"{on}-{more.get('slice', 0)}"}, "spec": spec}


def claim(name: str, on: str, *held: int, **more: Any) -> Item:
    """Of the pod of this name, with devices of this node."""
    exactly = {"deviceClassName": "gpu", "count": len(held), **more.get("exactly", {})}
    requests = more.get("requests", [{"name": "r", "exactly": exactly}])
    results = [{"request": "r", "driver": DRIVER, "pool": on, "device": f"gpu-{n}"} for n in held]
    owner = [{"kind": "Pod", "name": name, "uid": name, "controller": True}]
    meta = {"name": f"{name}-gpu", "namespace": "default", "ownerReferences": more.get("owner", owner)}
    spec = {"devices": {"requests": requests, **more.get("devices", {})}}
    return {
        "kind": "ResourceClaim",
        "metadata": meta,
        "spec": spec,
        "status": {"allocation": {"devices": {"results": results}}},
    }


def user(name: str, on: str) -> Item:
    """A pod that holds the claim of its name."""
    created_pod = pod(name, on, spec={"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]})
    created_pod["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": f"{name}-gpu"}]
    return created_pod


def steps(*items: Item) -> list[str]:
    return [step.node for step in planned(CLASS, *items, pool=ALL).all_steps]


TWO = [node("a"), node("b"), user("x-0", "a"), user("y-0", "b"), pod("z-0", "b", "2")]


def test_a_pod_moves_to_a_node_that_has_a_device_free() -> None:
    assert steps(*TWO, devices("a"), devices("b"), claim("x-0", "a", 0), claim("y-0", "b", 0)) == ["a"]


def test_a_pod_stays_where_no_other_node_has_a_device_free() -> None:
    assert steps(*TWO, devices("a"), devices("b", 1), claim("x-0", "a", 0), claim("y-0", "b", 0)) == ["b"]
    assert steps(*TWO, devices("a", 1), devices("b", 1), claim("x-0", "a", 0), claim("y-0", "b", 0)) == []


def test_devices_are_counted_by_number() -> None:
    both = claim("x-0", "a", 0, 1), claim("y-0", "b", 0)
    assert steps(*TWO, devices("a"), devices("b", 3), *both) == ["a"]
    assert steps(*TWO, devices("a"), devices("b", 2), *both) == []


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"owner": []}, "does not belong to a single pod"),
        ({"devices": {"constraints": [{"matchAttribute": "x"}]}}, "has constraints"),
        ({"requests": [{"name": "r", "firstAvailable": [{"name": "s"}]}]}, "alternatives"),
        ({"exactly": {"selectors": [{"cel": {"expression": "true"}}]}}, "more than class and number"),
        ({"exactly": {"allocationMode": "All"}}, "more than class and number"),
        ({"exactly": {"adminAccess": True}}, "more than class and number"),
        ({"exactly": {"deviceClassName": "other"}}, "does not select only by driver"),
        ({"exactly": {"count": 2}}, "devices other than those that it requests"),
    ],
)
def test_what_only_the_scheduler_can_place_stays_with_the_reason(change: dict[str, Any], why: str) -> None:
    items = [CLASS, *TWO, devices("a"), devices("b"), claim("x-0", "a", 0, **change), claim("y-0", "b", 0)]
    result = planned(*items)
    assert "a" not in {step.node for step in result.all_steps}
    assert why in cluster(*items).devices.held_by_claims("default", ["x-0-gpu"])


def test_a_claim_that_is_not_in_the_snapshot_keeps_its_pod() -> None:
    assert (
        steps(
            node("a"),
            node("b"),
            user("x-0", "a"),
            pod("k-0", "b", "1", annotations={"trimtab.dev/do-not-disrupt": "true"}),
        )
        == []
    )


@pytest.mark.parametrize(
    "slice_",
    [
        {"spec": {"sharedCounters": [{"name": "memory"}]}},
        {"device": {"consumesCounters": [{"counterSet": "memory"}]}},
        {"device": {"taints": [{"key": "broken", "effect": "NoSchedule"}]}},
        {"device": {"allowMultipleAllocations": True}},
        {"pool": {"resourceSliceCount": 2}},
    ],
)
def test_devices_that_are_not_single_or_not_all_known_take_nobody(slice_: dict[str, Any]) -> None:
    described_node = cluster(CLASS, node("b"), devices("b", 4, **slice_)).nodes[0]
    assert f"devices:{DRIVER}" not in described_node.allocatable  # type: ignore[operator]


def test_devices_of_claims_that_cannot_be_counted_are_nobody_elses() -> None:
    described_node = cluster(CLASS, node("b"), devices("b", 4), claim("y-0", "b", 0, 1, owner=[])).nodes[0]
    assert described_node.allocatable[f"devices:{DRIVER}"] == 2  # type: ignore[index]


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    old, new = devices("b", 4, slice=1), devices("b", 1, slice=2, pool={"generation": 2})
    described_node = cluster(CLASS, node("b"), old, new).nodes[0]
    assert described_node.allocatable[f"devices:{DRIVER}"] == 1  # type: ignore[index]


def left_to_autoscaler(held: int, threshold: int = 50, flags: dict[str, str] | None = None, **more: Any) -> bool:
    """Returns whether the nodes, of whose two devices so many are held and whose cpu is hardly used, are left to the
    cluster autoscaler."""
    nodes = [node("a"), node("b"), user("x-0", "a"), user("y-0", "b")]
    claims = [claim(name, on, *range(held)) for name, on in (("x-0", "a"), ("y-0", "b"))]
    autoscaler = Autoscaler(updated=NOW, threshold=threshold, flags=flags or {})
    now = PlanningContext(now=NOW, autoscaler=autoscaler)
    return bool(planned(CLASS, *nodes, devices("a", **more), devices("b", **more), *claims, pool=ALL, now=now).left)


def test_the_autoscaler_looks_at_nothing_but_the_devices_of_a_node() -> None:
    assert not left_to_autoscaler(1, threshold=50)
    assert left_to_autoscaler(1, threshold=51)


def test_an_autoscaler_that_does_not_count_devices_looks_at_cpu_and_memory() -> None:
    assert left_to_autoscaler(1, threshold=50, flags={"enable-dynamic-resource-allocation": "false"})


def test_devices_whose_use_is_not_known_leave_nothing_to_the_autoscaler() -> None:
    assert not left_to_autoscaler(1, threshold=90, spec={"sharedCounters": [{"name": "c"}]})
