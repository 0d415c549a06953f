"""Whose pod was it? The shape of a name says the kind; objects that exist and their owners say the rest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.build import owner_key
from trimtab.cluster.owner import OwnerKey
from trimtab.usage.owners import OwnerIndex, owner_by_name, topmost_owners

NAMES = {
    "Deployment": "web-7d4b9c6f5d-x2x4k",
    "Rollout": "web-7d4b9c6f5d-x2x4k",
    "StatefulSet": "web-3",
    "DaemonSet": "web-x2x4k",
    "CronJob": "web-29383200-x2x4k",
    "DeploymentConfig": "web-3-x2x4k",
    "Job": "web-x2x4k",
}
"""Kind of a workload named web → the name of one of its pods."""


def key(owner: str) -> OwnerKey:
    return owner_key(owner, "shop")


def index(*workloads: str, live: dict[str, str] | None = None, **above: str) -> OwnerIndex:
    """An index of workloads without controllers, of live pods (name → owner), and of objects that have a controller."""
    owners: dict[OwnerKey, OwnerKey | None] = {key(one): None for one in workloads}
    owners.update({key(one.replace("__", "/")): key(other) for one, other in above.items()})
    pods = {("shop", pod): key(owner) for pod, owner in (live or {}).items()}
    return OwnerIndex(pods, owners, pods.items)


@pytest.mark.parametrize(
    ("pod", "owner"),
    [
        ("web-7d4b9c6f5d-x2x4k", "Deployment/web"),
        ("db-0", "StatefulSet/db"),
        ("node-exporter-x2x4k", "DaemonSet/node-exporter"),
        ("report-29383200-x2x4k", "CronJob/report"),
        ("report-1609459200-x2x4k", "CronJob/report"),
        ("web-2-x2x4k", "DeploymentConfig/web"),
    ],
)
def test_a_pods_name_tells_who_made_it(pod: str, owner: str) -> None:
    assert owner_by_name("shop", pod) == key(owner)


@pytest.mark.parametrize("kind", ["Deployment", "CronJob", "DaemonSet"])
@pytest.mark.parametrize("length", range(44, 64))
def test_a_gone_pod_with_a_cut_name_belongs_to_the_workload_with_the_long_name(kind: str, length: int) -> None:
    """The API server cuts the start of a generated name at 58 characters, wherever the hash ends then."""
    name = "payments-gateway-".ljust(length, "x")
    middle = {"Deployment": "-7d4b9c6f5d", "CronJob": "-29383200", "DaemonSet": ""}[kind]
    pod = f"{name}{middle}-"[:58] + "x2x4k"
    owners = index(f"{kind}/{name}", f"{kind}/payments-gateway", f"StatefulSet/{name}")
    assert owners.topmost_owner("shop", pod) == key(f"{kind}/{name}")


def test_a_pods_name_without_a_generated_part_tells_no_owner() -> None:
    assert owner_by_name("shop", "lonely") is None


def test_a_pod_nobody_made_is_its_own_workload() -> None:
    assert OwnerIndex().topmost_owner("shop", "lonely") == key("Pod/lonely")


def test_what_the_cluster_knows_counts_before_the_name() -> None:
    assert index(live={"web-0": "Rollout/web"}).topmost_owner("shop", "web-0") == key("Rollout/web")


@given(st.sets(st.sampled_from(sorted(NAMES)), min_size=1), st.sampled_from(sorted(NAMES)))
def test_of_workloads_of_one_name_the_kind_with_the_shape_of_the_name_has_the_pod(kinds: set[str], kind: str) -> None:
    topmost_owner = index(*(f"{one}/web" for one in kinds)).topmost_owner("shop", NAMES[kind])
    # The pods of an indexed Job have the index of the pod where those of a DeploymentConfig have the rollout.
    same_shape = {one for one in kinds if NAMES[kind] in (NAMES[one], "web-3-x2x4k" if one == "Job" else "")}
    if len(same_shape) == 1:
        assert topmost_owner == key(f"{same_shape.pop()}/web")
    else:
        assert topmost_owner.kind not in kinds


def test_of_two_workloads_of_one_shape_the_one_with_live_pods_has_the_pod() -> None:
    owner_index = index("Deployment/web", "Rollout/web", live={"web-6c8f7d9b5c-bbbbb": "Rollout/web"})
    assert owner_index.topmost_owner("shop", NAMES["Rollout"]) == key("Rollout/web")


def test_a_pod_that_two_workloads_may_own_belongs_to_neither() -> None:
    live = {"web-6c8f7d9b5c-bbbbb": "Rollout/web", "web-8c8f7d9b5c-bbbbb": "Deployment/web"}
    topmost_owner = index("Deployment/web", "Rollout/web", live=live).topmost_owner("shop", NAMES["Rollout"])
    assert topmost_owner == key(f"Pod/{NAMES['Rollout']}")


def test_a_replica_set_that_still_exists_says_whose_pod_it_was() -> None:
    owner_index = index("Deployment/web", **{"ReplicaSet__web-7d4b9c6f5d": "Rollout/web"})
    assert owner_index.topmost_owner("shop", NAMES["Rollout"]) == key("Rollout/web")


def test_a_workload_of_an_operator_has_the_pods_that_are_gone() -> None:
    owner_index = index(**{"StatefulSet__prometheus-k8s": "Prometheus.monitoring.coreos.com/k8s"})
    assert owner_index.topmost_owner("shop", "prometheus-k8s-1") == key("Prometheus.monitoring.coreos.com/k8s")


@pytest.mark.parametrize(
    ("owner", "live", "gone"),
    [
        ("CloneSet.apps.kruise.io/web", "web-x2x4k", "web-bbbbb"),
        ("StatefulSet.apps.kruise.io/web", "web-0", "web-7"),
        ("DeploymentConfig/web", "web-3-x2x4k", "web-2-bbbbb"),
        ("Runner.acme.example/web", "web-x2x4k", "web-bbbbb"),
    ],
)
def test_any_object_that_owns_live_pods_has_those_that_are_gone(owner: str, live: str, gone: str) -> None:
    assert index(live={live: owner}).topmost_owner("shop", gone) == key(owner)


def test_workloads_of_one_name_and_two_groups_are_two() -> None:
    owner_index = index("StatefulSet/web", live={"web-0": "StatefulSet.apps.kruise.io/web", "web-1": "StatefulSet/web"})
    assert owner_index.topmost_owner("shop", "web-9") == key("Pod/web-9")


def test_metrics_report_a_kind_without_a_group() -> None:
    owner_index = index(live={"web-x2x4k": "CloneSet.apps.kruise.io/web"})
    owner_index.reported = {("shop", "web-bbbbb"): key("CloneSet/web"), ("shop", "db-0"): key("StatefulSet/db")}
    assert owner_index.topmost_owner("shop", "web-bbbbb") == key("CloneSet.apps.kruise.io/web")
    assert owner_index.topmost_owner("shop", "db-0") == key("StatefulSet/db")


def test_a_replica_set_that_metrics_report_without_its_owner_says_less_than_the_name() -> None:
    index = OwnerIndex(reported={("shop", NAMES["Deployment"]): key("ReplicaSet/web-7d4b9c6f5d")})
    assert index.topmost_owner("shop", NAMES["Deployment"]) == key("Deployment/web")


def test_owners_are_followed_to_the_top() -> None:
    rows = {
        "Pod/web-1-a": "ReplicaSet/web-1",
        "ReplicaSet/web-1": "Rollout/web",
        "Pod/job-1-a": "Job/job-1",
        "Job/job-1": "CronJob/job",
    }
    actual_topmost_owners = topmost_owners({key(one): key(other) for one, other in rows.items()})
    assert actual_topmost_owners == {("shop", "web-1-a"): key("Rollout/web"), ("shop", "job-1-a"): key("CronJob/job")}
