"""To whom is room promised, and whom does a pool wait for?"""

from dataclasses import replace
from typing import Any

import pytest

from tests.cluster_of import ALL, NOW, Item, node, pod
from tests.compaction.plans import keeper
from tests.compaction.test_plan import TWO_AND_ONE, goes, planned
from tests.reasons import has_facts
from trimtab.cluster.timestamps import format_timestamp


def waits(name: str, minutes: int = 5, **more: Any) -> Item:
    return pod(name, created=format_timestamp(NOW - 60 * minutes), **more)


def test_case_59_a_pod_that_no_node_could_ever_take_stops_nothing() -> None:
    hopeless = pod("lost-1", spec={"nodeSelector": {"nobody": "has"}})
    assert goes(*TWO_AND_ONE, hopeless) == ["n1"]


def test_a_pod_that_waits_for_room_in_the_pool_stops_it() -> None:
    items = [node("a"), node("b"), pod("x-1", "a", "3"), pod("x-2", "b", "3"), waits("w-1", cpu="2")]
    assert planned(*items).pools["all"].code.name == "pods-waiting"


def test_a_pod_that_waits_for_a_device_only_stops_pools_that_have_it() -> None:
    lacking = waits("w-1", extra={"example.com/gpu": "1"})
    items = [node("a"), node("b"), pod("x-1", "a"), pod("x-2", "b")]
    assert goes(*items, lacking) == ["a"]
    full = [node("g", extra={"example.com/gpu": "1"}), pod("y-1", "g", extra={"example.com/gpu": "1"})]
    assert planned(*items, *full, lacking).pools["all"].code.name == "pods-waiting"


UNBOUND = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "new"}}]}


@pytest.mark.parametrize("spec", [UNBOUND, {"schedulerName": "volcano"}, {"resourceClaims": [{"name": "c"}]}])
def test_a_pod_that_waits_and_cannot_be_judged_may_need_the_room_all_the_same(spec: Item) -> None:
    items = [node("a"), node("b"), pod("x-1", "a", "1"), pod("x-2", "b", "1")]
    assert planned(*items, waits("w-1", cpu="4", spec=spec)).pools["all"].code.name == "pods-waiting"
    assert planned(*items, waits("w-1", cpu="3", spec=spec)).refusals["b"].code.name == "capacity-reserved"
    assert goes(*items, waits("w-1", cpu="2", spec=spec)) == ["a"]
    assert goes(*items, waits("w-1", cpu="64", spec=spec)) == ["a"]


NEEDS_TWO = [node("a"), node("b"), pod("x-1", "a", "3"), pod("x-2", "b", "1")]
"""One node could go, and neither has room for three cores more."""


@pytest.mark.parametrize(("minutes", "limit", "stopped"), [(59, 3600, True), (61, 3600, False), (6, 300, False)])
def test_a_pod_stops_a_pool_for_so_long_only(minutes: int, limit: int, stopped: bool) -> None:
    result = planned(*NEEDS_TWO, waits("w-1", minutes, cpu="3500m"), pool=replace(ALL, pending_limit=limit))
    assert ("all" in result.pools) is stopped
    assert bool(result.all_steps) is not stopped
    assert any("default/w-1" in note for note in result.notes) is not stopped


def test_a_pod_that_fits_on_no_node_is_named() -> None:
    [named] = [note for note in planned(*NEEDS_TWO, waits("w-1", cpu="64")).notes if "w-1" in note]
    assert has_facts(named, "default/w-1", "Pending", "no node", "any pool")


def nominated(name: str, to: str, cpu: str) -> Item:
    """Returns a pod for which a preemption has made room on a node."""
    item = pod(name, cpu=cpu, phase="Pending")
    item["status"]["nominatedNodeName"] = to
    return item


SSD: Item = {"labels": {"disk": "ssd"}}
ON_SSD: Item = {"spec": {"nodeSelector": {"disk": "ssd"}}}


def test_room_that_a_preemption_has_promised_is_on_the_nominated_node() -> None:
    items = [
        node("n0", **SSD),
        node("n1"),
        node("n2", **SSD),
        pod("web-0", "n0", "1500m", **ON_SSD),
        keeper("etl-0", "n1", "1500m"),
        keeper("etl-1", "n2", "1500m"),
    ]
    assert goes(*items) == ["n0"]
    assert goes(*items, nominated("urgent-0", "n2", "2")) == []
    assert goes(*items, nominated("urgent-0", "n1", "2")) == ["n0"]


def test_a_nominated_node_stays_and_takes_nothing_until_the_preempted_pods_are_gone() -> None:
    items = [node("a"), node("b"), node("c"), pod("x-1", "a", "3500m"), pod("y-1", "b", "500m"), pod("z-1", "c", "1")]
    plan = planned(*items, nominated("urgent-0", "a", "3"))
    assert plan.refusals["a"].code.name == "capacity-reserved"
    assert {move.target for move in plan.all_moves} == {"c"}


def test_a_nomination_to_a_cordoned_node_promises_nothing_there() -> None:
    items = [node("a"), node("b"), node("c", cordoned=True), pod("x-1", "a", "1"), pod("y-1", "b", "1")]
    assert goes(*items, nominated("urgent-0", "c", "2")) == ["a"]
