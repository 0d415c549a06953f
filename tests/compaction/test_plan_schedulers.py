"""Whose pods move, where another scheduler than the default one places them?"""

import json
from dataclasses import replace

import pytest

from tests.cluster_of import ALL, NOW, Item, cluster, node, pod
from tests.compaction.plans import goes, keeper, planned
from trimtab.cluster.pool import schedulers_of
from trimtab.cluster.schedulers import SchedulerPlacement
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import make_plan
from trimtab.compaction.simulate import Scheduler, simulate_rounds
from trimtab.scheduling.cluster_model import build_cluster_model

MY_SCHEDULER = {"schedulerName": "my-bin-packer"}


@pytest.mark.parametrize("name", ["gke.io/optimize-utilization-scheduler", "bin-packing-scheduler"])
def test_pods_of_a_known_second_scheduler_move_like_all_others(name: str) -> None:
    assert goes(node("a"), node("b"), pod("x-1", "a", spec={"schedulerName": name}), keeper("k-1", "b", "1")) == ["a"]


def test_pods_of_a_scheduler_that_nobody_knows_keep_their_node_until_a_pool_says_how_it_places() -> None:
    items = [node("a"), node("b"), pod("x-1", "a", spec=MY_SCHEDULER), keeper("k-1", "b", "1")]
    result = planned(*items)
    assert (result.all_steps, result.refusals["a"].code.name) == ((), "unknown-placement-rule")
    pool = replace(ALL, schedulers={"my-bin-packer": SchedulerPlacement.PACK})
    inventory = replace(cluster(*items), schedulers=schedulers_of([pool]))
    assert [
        step.node for step in make_plan(build_cluster_model(inventory), [pool], PlanningContext(now=NOW)).all_steps
    ] == ["a"]


def scheduler_configuration(**profile: object) -> Item:
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "my-bin-packer", **profile}],
    }
    return {
        "kind": "ConfigMap",
        "metadata": {"name": "s", "namespace": "kube-system"},
        "data": {"config.yaml": json.dumps(configuration)},
    }


def test_a_stock_second_scheduler_is_found_by_its_configuration() -> None:
    fit = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}
    items = [node("a"), node("b"), pod("x-1", "a", spec=MY_SCHEDULER), keeper("k-1", "b", "1")]
    assert goes(*items, scheduler_configuration(pluginConfig=[fit])) == ["a"]
    gang = {"filter": {"enabled": [{"name": "Coscheduling"}]}}
    assert goes(*items, scheduler_configuration(pluginConfig=[fit], plugins=gang)) == []


@pytest.mark.parametrize(("scheduler", "target"), [("default-scheduler", "empty"), ("bin-packing-scheduler", "full")])
def test_in_a_simulation_each_pod_lands_where_its_own_scheduler_puts_it(scheduler: str, target: str) -> None:
    items = [
        node("small", "1"),
        node("full"),
        node("empty", "5"),
        keeper("k-1", "full", "2"),
        keeper("k-2", "empty", "1"),
    ]
    moving = pod("x-1", "small", spec={"schedulerName": scheduler})
    simulation = simulate_rounds(cluster(*items, moving), [ALL], Scheduler.SPREAD, PlanningContext(now=NOW))
    assert [landing.target for landing in simulation.rounds[0].landings] == [target]
