"""Pods of one group stay, for one reason, while they are on several nodes."""

from typing import Any

import pytest

from tests.cluster_of import ALL, NOW, SAFE, Item, budget, cluster, node, pod
from trimtab.cluster.pod_groups import GROUP_MARKS, LEADER_ANNOTATION, GroupMark
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import make_plan
from trimtab.compaction.plan_types import Plan
from trimtab.scheduling.cluster_model import build_cluster_model

NODES = [node(name) for name in "abcd"]
KEY = "leaderworkerset.sigs.k8s.io/group-key"


def planned(*items: Item) -> Plan:
    return make_plan(build_cluster_model(cluster(*NODES, *items)), [ALL], PlanningContext(now=NOW))


def moved(plan: Plan) -> set[str]:
    return {move.pod for step in plan.all_steps for move in step.moves}


def codes(plan: Plan) -> set[str]:
    return {reason.code.name for reason in plan.pods.values()}


def owned_by(name: str, on: str, version: str, kind: str, owner: str, **more: Any) -> Item:
    item = pod(name, on, **more)
    reference = {"apiVersion": version, "kind": kind, "name": owner, "controller": True}
    return {**item, "metadata": {**item["metadata"], "ownerReferences": [reference]}}


def stateful_set(name: str, owner: str = "") -> Item:
    references = [{"apiVersion": "v1", "kind": "Pod", "name": owner, "controller": True}] if owner else []
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "spec": {"replicas": 1},
        "metadata": {"name": name, "namespace": "default", "ownerReferences": references},
        "status": {"replicas": 1, "readyReplicas": 1},
    }


@pytest.mark.parametrize("mark", GROUP_MARKS, ids=lambda mark: mark.keys[-1])
def test_pods_with_one_mark_stay_on_their_nodes(mark: GroupMark) -> None:
    marked = {mark.where: dict.fromkeys(mark.keys, "train")}
    plan = planned(pod("web-0", "a", **marked), pod("web-1", "b", **marked))
    assert (moved(plan), codes(plan)) == (set(), {"pod-group-spans-nodes"})


@pytest.mark.parametrize("mark", GROUP_MARKS, ids=lambda mark: mark.keys[-1])
def test_groups_of_one_name_in_two_namespaces_are_two_groups(mark: GroupMark) -> None:
    marked = {mark.where: dict.fromkeys(mark.keys, "train")}
    plan = planned(pod("web-0", "a", **marked), pod("web-1", "b", namespace="other", **marked))
    assert moved(plan) != set()


def leader_and_worker(number: int, on: str, other: str, **marks: Any) -> list[Item]:
    return [
        owned_by(f"llm-{number}", on, "apps/v1", "StatefulSet", "llm", app="llm", **marks),
        owned_by(f"llm-{number}-1", other, "apps/v1", "StatefulSet", f"llm-{number}", app=f"llm-{number}", **marks),
    ]


def test_leader_and_worker_of_a_leader_worker_set_stay_within_a_budget_that_allows_one() -> None:
    groups = [
        *leader_and_worker(0, "a", "b", labels={KEY: "key0", "set": "llm"}),
        *leader_and_worker(1, "c", "d", labels={KEY: "key1", "set": "llm"}),
    ]
    over = budget("llm", 1, selector={"matchLabels": {"set": "llm"}})
    plan = planned(*groups, stateful_set("llm"), stateful_set("llm-0"), stateful_set("llm-1"), over)
    assert (moved(plan), codes(plan)) == (set(), {"pod-group-spans-nodes"})


def test_a_worker_that_names_its_leader_keeps_the_leader_too() -> None:
    leader, worker = leader_and_worker(0, "a", "b")
    worker["metadata"]["annotations"] = {LEADER_ANNOTATION: "llm-0"}
    assert codes(planned(leader, worker)) == {"pod-group-spans-nodes"}


def test_a_pod_whose_owner_belongs_to_a_pod_ends_with_it() -> None:
    """No mark says so: pod -> StatefulSet -> pod."""
    plan = planned(*leader_and_worker(0, "a", "b"), stateful_set("llm"), stateful_set("llm-0", owner="llm-0"))
    assert (moved(plan), codes(plan)) == (set(), {"pod-group-spans-nodes"})


def test_executors_that_belong_to_a_driver_stay_with_it() -> None:
    driver = owned_by("driver", "a", "example.com/v1", "Application", "run", annotations={SAFE: "true"})
    executors = [owned_by(f"exec-{on}", on, "v1", "Pod", "driver", annotations={SAFE: "true"}) for on in "bc"]
    plan = planned(driver, *executors)
    assert (moved(plan), codes(plan)) == (set(), {"pod-group-spans-nodes"})


def test_a_leader_without_followers_moves_like_any_replica_although_another_leader_of_its_owner_stays() -> None:
    alone = owned_by("llm-1", "c", "apps/v1", "StatefulSet", "llm", app="llm")
    sets = stateful_set("llm"), stateful_set("llm-0", owner="llm-0")
    plan = planned(*leader_and_worker(0, "a", "b"), alone, *sets)
    assert (moved(plan), set(plan.pods)) == ({"default/llm-1"}, {"default/llm-0", "default/llm-0-1"})
