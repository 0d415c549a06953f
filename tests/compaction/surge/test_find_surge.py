"""A pod whose budget allows no eviction moves after its Deployment got more pods, or stays for one reason of many."""

from dataclasses import replace
from typing import Any

import pytest

from tests.cluster_of import ALL, HOST, NOW, Item, budget, cluster, node, pod
from tests.compactor.played_autoscaler import autoscaler
from trimtab.cluster.pool import Pool
from trimtab.compaction.blockers import Blocked, Evictable, EvictionChecker
from trimtab.compaction.drain.annotation import DrainAnnotation, DrainAnnotations, surging_deployments

SURGES = replace(ALL, surge=1)


def deployment(app: str = "web", replicas: int = 3, *, kind: str = "Deployment", **more: Any) -> Item:
    status = {"replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas}
    status |= {"updatedReplicas": replicas, "observedGeneration": 1}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": app, "uid": app, "controller": True}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {
            "name": app,
            "namespace": "default",
            "generation": 1,
            "ownerReferences": more.get("owners", [owner] if kind == "ReplicaSet" else []),
        },
        "spec": {"replicas": replicas, **more.get("spec", {})},
        "status": {**status, **more.get("status", {})},
    }


WEB = (deployment(), deployment(kind="ReplicaSet"))
FULL = budget("web", 0, spec={"minAvailable": 3})


def web(**more: Any) -> list[Item]:
    return [pod(f"web-{number}", "a" if not number else "b", **more) for number in range(3)]


def fate(*items: Item, pool: Pool = SURGES, pods: list[Item] | None = None) -> str:
    """The number of more pods with which web-0 moves, as text; or the code of the reason why it stays."""
    inventory = cluster(node("a"), node("b"), *(web() if pods is None else pods), *items)
    mine = next(each for each in inventory.pods if each.name == "web-0")
    verdict = EvictionChecker.for_inventory(inventory, NOW).judge_pod(mine, pool)
    if isinstance(verdict, Blocked):
        return verdict.reason.code.name
    assert isinstance(verdict, Evictable)
    return str(verdict.surge.extra) if verdict.surge is not None else "moves"


def test_a_budget_that_allows_none_allows_one_with_one_pod_more() -> None:
    assert fate(*WEB, FULL) == "1"


def test_an_autoscaler_that_owns_the_count_is_raised_where_only_people_write_it() -> None:
    assert fate(*WEB, autoscaler(), FULL) == "1"


def test_without_the_setting_the_pod_stays_and_the_reason_says_that_the_setting_would_move_it() -> None:
    inventory = cluster(node("a"), node("b"), *web(), *WEB, FULL)
    mine = next(each for each in inventory.pods if each.name == "web-0")
    verdict = EvictionChecker.for_inventory(inventory, NOW).judge_pod(mine, ALL)
    assert isinstance(verdict, Blocked)
    assert (verdict.reason.code.name, "surge.extraPods: 1" in str(verdict.reason)) == ("budget-never-allows", True)


def test_a_budget_that_no_number_opens_stays_and_says_what_to_change() -> None:
    for spec in ({"maxUnavailable": 0}, {"maxUnavailable": "0%"}, {"minAvailable": "100%"}):
        assert fate(*WEB, budget("web", 0, spec=spec)) == "budget-never-allows"


QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "q", "namespace": "default"},
    "spec": {"hard": {"pods": "3"}},
    "status": {"hard": {"pods": "3"}, "used": {"pods": "3"}},
}
OPERATOR = [{"apiVersion": "x.io/v1", "kind": "App", "name": "web", "uid": "app", "controller": True}]
REPLICA_SET = deployment(kind="ReplicaSet")


@pytest.mark.parametrize(
    ("items", "code"),
    [
        ([deployment(spec={"paused": True}), REPLICA_SET], "surge-deployment-paused"),
        ([deployment(status={"updatedReplicas": 1}), REPLICA_SET], "surge-rollout-in-progress"),
        ([deployment(status={"observedGeneration": 0}), REPLICA_SET], "surge-rollout-in-progress"),
        ([deployment(spec={"strategy": {"type": "Recreate"}}), REPLICA_SET], "surge-strategy-recreate"),
        ([deployment(spec={"strategy": {"rollingUpdate": {"maxSurge": 0}}}), REPLICA_SET], "surge-max-surge-is-zero"),
        (
            [deployment(spec={"strategy": {"rollingUpdate": {"maxSurge": "0%"}}}), REPLICA_SET],
            "surge-max-surge-is-zero",
        ),
        ([*WEB, autoscaler(), autoscaler(metadata={"name": "more"})], "surge-autoscaler-owns-count"),
        ([*WEB, autoscaler(least=0)], "surge-autoscaler-owns-count"),
        ([*WEB, autoscaler(metadata={"managedFields": []})], "surge-autoscaler-unknown"),
        ([*WEB, autoscaler(metadata={"labels": {"argocd.argoproj.io/instance": "x"}})], "surge-autoscaler-managed"),
        ([*WEB, autoscaler(count=2)], "surge-autoscaler-is-scaling"),
        ([*WEB, autoscaler(status={"desiredReplicas": 5})], "surge-autoscaler-is-scaling"),
        ([*WEB, autoscaler(least=4)], "surge-autoscaler-is-scaling"),
        ([*WEB, autoscaler(most=3)], "surge-autoscaler-at-maximum"),
        ([deployment(owners=OPERATOR), REPLICA_SET], "surge-controller-owns-count"),
        ([*WEB, QUOTA], "surge-without-quota"),
        ([], "surge-deployment-unknown"),
        ([REPLICA_SET], "surge-deployment-unknown"),
        ([deployment(kind="ReplicaSet", owners=[])], "surge-not-a-deployment"),
    ],
)
def test_what_keeps_the_pod_where_the_count_is_not_ours_to_change(items: list[Item], code: str) -> None:
    assert fate(*items, FULL) == code


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"owner": "StatefulSet"}, "surge-not-a-deployment"),
        ({"spec": {"nodeSelector": {HOST: "a"}}}, "surge-pod-tied-to-node"),
        (
            {"spec": {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "d"}}]}},
            "surge-claim-of-one-node",
        ),
        (
            {
                "spec": {"volumes": [{"name": "h", "hostPath": {"path": "/x"}}]},
                "annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"},
            },
            "surge-pod-tied-to-node",
        ),
    ],
)
def test_what_keeps_a_pod_beside_which_no_second_one_can_run(more: Item, code: str) -> None:
    assert fate(*WEB, FULL, pods=web(**more)) == code


def test_more_pods_than_the_pool_permits_are_not_started() -> None:
    ninety = budget("web", 0, spec={"minAvailable": "90%"})
    assert fate(*WEB, ninety, pool=replace(ALL, surge=3)) == "surge-too-large"
    above = budget("web", 0, spec={"minAvailable": 4})
    assert fate(*WEB, above) == "surge-too-large"
    assert fate(*WEB, above, pool=replace(ALL, surge=2)) == "2"


def test_without_the_right_to_scale_in_the_namespace_the_pod_stays() -> None:
    assert fate(*WEB, FULL, pool=replace(SURGES, scale_namespaces=frozenset({"other"}))) == "surge-without-right"
    assert fate(*WEB, FULL, pool=replace(SURGES, scale_namespaces=frozenset({"default"}))) == "1"


@pytest.mark.parametrize(
    ("created", "expected"), [("2026-01-02T23:58:00Z", "budget-spent"), ("2026-01-02T00:00:00Z", "1")]
)
def test_two_of_three_wait_for_the_third_until_it_has_been_missing_for_long(created: str, expected: str) -> None:
    pods = [pod("web-0", "a"), pod("web-1", "b"), pod("web-2", "b", ready=False, created=created)]
    two = budget("web", 0, most=1, spec={"minAvailable": 2})
    two["status"]["currentHealthy"] = 2
    assert fate(*WEB, two, pods=pods) == expected


def test_a_deployment_that_another_drain_gives_more_pods_is_left_alone() -> None:
    """Its count is not its own now: what this drain would call the count before includes the other's pods."""
    inventory = cluster(node("a"), node("b"), *web(), *WEB, FULL)
    moving = note(surges={"default/web": 3}, extras={"default/web": 1})
    surging = surging_deployments(DrainAnnotations(ours={"b": moving}))
    inventory = replace(inventory, deployments=replace(inventory.deployments, surging=surging))
    mine = next(each for each in inventory.pods if each.name == "web-0")
    verdict = EvictionChecker.for_inventory(inventory, NOW).judge_pod(mine, SURGES)
    assert isinstance(verdict, Blocked)
    assert verdict.reason.code.name == "surge-in-progress"


def note(**more: Any) -> DrainAnnotation:
    return DrainAnnotation(drain="d", pool="all", since=NOW, **more)
