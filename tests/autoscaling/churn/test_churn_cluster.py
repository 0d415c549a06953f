"""The cluster in memory, and the events that happen in it."""

from collections import Counter
from itertools import pairwise

import pytest

from trimtab.autoscaling.churn.churn_cluster import ChurnCluster, ClusterTimes
from trimtab.autoscaling.churn.churn_outcome import judge_history
from trimtab.autoscaling.churn.churn_script import (
    Churn,
    ChurnEvent,
    ChurnKind,
    ChurnOptions,
    ChurnWorkload,
    draw_churn,
)
from trimtab.autoscaling.churn.churn_stand_in import ChurnStandIn
from trimtab.autoscaling.churn.pod_shapes import ChurnPodShape, generate_shapes, read_trace
from trimtab.autoscaling.churn.stand_in_rules import StandInFlags
from trimtab.cluster.reason import Unreadable

SHAPES = generate_shapes()
CORE = ChurnPodShape(millicores=1000, mebibytes=1024, seconds=600)


def small(*events: ChurnEvent, replicas: int = 4, nodes: int = 2, budget: int | None = 1) -> ChurnCluster:
    """Two small nodes and one workload, `web`, whose pods are ready."""
    workload = ChurnWorkload(name="web", shape=CORE, replicas=replicas, max_unavailable=budget)
    churn = Churn(options=ChurnOptions(hours=1), workloads=(workload,), events=events, nodes=("small",) * nodes)
    cluster = ChurnCluster(churn, ClusterTimes(start_up=30, stop=5))
    cluster.advance_to(60)
    return cluster


def placed(cluster: ChurnCluster) -> list[str]:
    return sorted(pod.node for pod in cluster.pods.values())


def test_equal_seeds_give_equal_events_and_others_give_others() -> None:
    first, again, other = (draw_churn(ChurnOptions(seed=seed, hours=2), SHAPES) for seed in (1, 1, 2))
    assert first == again
    assert first.events != other.events
    assert all(one.at <= two.at for one, two in pairwise(first.events))


def test_something_of_each_kind_happens_in_ten_hours() -> None:
    churn = draw_churn(ChurnOptions(), SHAPES)
    kinds = Counter(event.kind for event in churn.events)
    assert set(kinds) == set(ChurnKind)
    assert sum(kinds.values()) - kinds[ChurnKind.JOB_ENDS] == pytest.approx(3600, rel=0.03)


def test_the_trace_is_read_without_gpus_and_pending_pods() -> None:
    header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,x"
    rows = ("a,16000,32768,0,,,LS,Running,100,400,", "b,1,1,1,,,LS,Running,1,2,", "c,1,1,0,,,LS,Pending,1,2,")
    assert read_trace([header, *rows]) == (ChurnPodShape(millicores=500, mebibytes=1024, seconds=300),)


def test_pods_are_spread_and_ready_after_their_start() -> None:
    cluster = small()
    assert placed(cluster) == ["small-0001", "small-0001", "small-0002", "small-0002"]
    assert all(pod.is_ready for pod in cluster.pods.values())


def test_a_rollout_keeps_enough_pods_ready() -> None:
    cluster = small(ChurnEvent(at=100, kind=ChurnKind.ROLLOUT, workload="web"))
    for second in range(100, 400):
        cluster.advance_to(second)
        assert sum(pod.is_ready for pod in cluster.pods.values()) >= 3
    assert {pod.owner.name for pod in cluster.pods.values() if pod.owner} == {"web-1"}
    assert len(cluster.pods) == 4


def test_the_eviction_api_obeys_the_budget() -> None:
    cluster = small()
    first, second, *_ = cluster.pods
    assert (cluster.evict_pod(first), cluster.evict_pod(second)) == (True, False)
    cluster.advance_to(120)
    assert cluster.evict_pod(second)
    assert judge_history(cluster.history, 0, 200).broken == 0


def test_a_lost_node_takes_its_pods_and_they_are_created_again() -> None:
    cluster = small(ChurnEvent(at=100, kind=ChurnKind.NODE_DIES, share=0.0))
    cluster.advance_to(200)
    assert list(cluster.nodes) == ["small-0002"]
    assert placed(cluster) == ["small-0002"] * 4


def test_a_job_ends_with_its_pod() -> None:
    job = (ChurnEvent(at=100, kind=ChurnKind.JOB, workload="j", shape=CORE),)
    cluster = small(*job, ChurnEvent(at=200, kind=ChurnKind.JOB_ENDS, workload="j"))
    cluster.advance_to(150)
    evicted = next(uid for uid in cluster.pods if uid.startswith("j-"))
    assert cluster.evict_pod(evicted)
    assert sum(uid.startswith("j-") for uid in cluster.pods) == 2
    cluster.advance_to(300)
    assert not any(uid.startswith("j-") for uid in cluster.pods)
    assert "j" not in cluster.workloads


def test_the_free_capacity_is_what_the_pods_leave() -> None:
    """A law: what the scheduler counts from pod to pod equals what it would count anew."""
    churn = draw_churn(ChurnOptions(hours=1, seed=3), SHAPES)
    cluster = ChurnCluster(churn)
    stand_in = ChurnStandIn(cluster, StandInFlags(threshold=0.7))
    for second in range(10, 3600, 10):
        cluster.advance_to(second)
        stand_in.run_scan()
        capacity = cluster.scheduler.refresh(cluster.nodes, cluster.pods.values())
        for number, node in enumerate(capacity.world.nodes):
            pods = cluster.pods_on(node.name)
            sizes = [one.requirements.requests for one in pods]
            assert not isinstance(node.allocatable, Unreadable)
            used = sum(size["cpu"] for size in sizes if not isinstance(size, Unreadable))
            free = {capacity.major[number], capacity.minor[number]}
            assert node.allocatable["cpu"] - used in free
            assert node.allocatable["cpu"] >= used
            assert capacity.slots[number] == node.allocatable["pods"] - len(pods)


def test_the_stand_in_buys_for_pods_that_wait_and_removes_what_it_does_not_need() -> None:
    scales = [ChurnEvent(at=at, kind=ChurnKind.SCALE, workload="web", amount=n) for at, n in ((100, 20), (1000, 2))]
    cluster = small(*scales)
    stand_in = ChurnStandIn(cluster, StandInFlags())
    sizes = {}
    for second in range(70, 3600, 10):
        cluster.advance_to(second)
        stand_in.run_scan()
        sizes[second] = len(cluster.nodes)
    assert (sizes[90], sizes[300], sizes[3590]) == (2, 3, 1)
    assert not cluster.waiting
