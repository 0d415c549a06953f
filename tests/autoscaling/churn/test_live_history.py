"""A live run's watch writes the same records as the simulation."""

from tests.bench.churn_live import budget_item, is_staying, job_item, node_item, scale_flags
from tests.bench.churn_watch import LOST, USER_CORDON, read_budget, read_node, read_pod
from tests.cluster_of import pod
from trimtab.autoscaling.churn.churn_history import BudgetSeen, NodeGone, NodeSeen, PodGone, PodSeen
from trimtab.autoscaling.churn.churn_script import MACHINES
from trimtab.autoscaling.churn.pod_shapes import ChurnPodShape
from trimtab.autoscaling.churn.stand_in_rules import StandInFlags

READY = [{"type": "Ready", "status": "True"}]


def node_of(name: str = "small-0001", **annotations: str) -> dict:  # type: ignore[type-arg]
    item = node_item(MACHINES[0], name)
    item["metadata"]["annotations"] = {key.replace("_", "/", 1): value for key, value in annotations.items()}
    item["status"]["conditions"] = READY
    return item


def test_a_node_is_read_with_its_price_and_who_cordoned_it() -> None:
    item = node_of()
    seen = NodeSeen(5, "small-0001", 7910, 384_000)
    assert read_node(item, 5, False) == seen
    item["metadata"]["annotations"] = {USER_CORDON: "true", LOST: "true"}
    item["spec"]["unschedulable"] = True
    user = NodeSeen(5, "small-0001", 7910, 384_000, is_cordoned=True, is_cordoned_by_user=True, is_lost=True)
    assert read_node(item, 5, False) == user
    assert read_node(item, 6, True) == NodeGone(6, "small-0001")
    assert [is_staying(node_of()), is_staying(item)] == [True, False]


def test_an_eviction_is_read_from_the_pods_condition() -> None:
    item = pod("web-1", "n", namespace="churn")
    seen = PodSeen(1, "uid-web-1", "web", "n", is_ready=True)
    assert read_pod(item, 1, False) == seen
    item["status"]["conditions"].append({"type": "DisruptionTarget", "reason": "EvictionByEvictionAPI"})
    evicted = read_pod(item, 1, False)
    assert isinstance(evicted, PodSeen)
    assert evicted.is_evicted
    assert read_pod(item, 2, True) == PodGone(2, "uid-web-1")
    assert read_pod(pod("dns-1", "n", namespace="kube-system"), 1, False) is None


def test_a_budget_that_is_gone_wants_nothing() -> None:
    item = budget_item("web", 1)
    item["status"] = {"desiredHealthy": 3}
    assert read_budget(item, 1, False) == BudgetSeen(1, "web", 3)
    assert read_budget(item, 1, True) == BudgetSeen(1, "web", 0)


def test_a_scan_takes_a_second_at_least_on_a_faster_clock() -> None:
    flags = scale_flags(StandInFlags(threshold=0.7), 20)
    assert (flags.threshold, flags.unneeded_seconds, flags.scan_seconds) == (0.7, 30, 1)


def test_a_job_runs_until_it_is_deleted() -> None:
    job = job_item("j1", ChurnPodShape(millicores=500, mebibytes=512, seconds=60))
    [container] = job["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["requests"] == {"cpu": "500m", "memory": "512Mi"}
