"""An owner is known by its group, kind, namespace and name. What happens to an object of another group changes
nothing."""

import pytest

from tests.cluster_of import ALL, NOW, SAFE, Item, budget, cluster, node, pod
from trimtab.cluster.cluster_state import Inventory
from trimtab.compaction.blockers import Blocked, EvictionChecker
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import make_plan
from trimtab.compaction.reasons import OWNER_GONE
from trimtab.scheduling.cluster_model import build_cluster_model

KRUISE = "apps.kruise.io/v1beta1"


def owned(name: str, on: str, kind: str = "StatefulSet", version: str = KRUISE, **more: object) -> Item:
    """A pod whose owner has this kind in this version."""
    item = pod(name, on, **more)
    reference = {"apiVersion": version, "kind": kind, "name": item["metadata"]["labels"]["app"], "controller": True}
    return {**item, "metadata": {**item["metadata"], "ownerReferences": [reference]}}


def stateful_set(name: str, wanted: int = 2, ready: int = 2, version: str = "apps/v1") -> Item:
    return {
        "apiVersion": version,
        "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": wanted},
        "status": {"replicas": wanted, "readyReplicas": ready},
    }


def reasons(*items: Item) -> set[str]:
    """The code of the reason of each pod of `cache`, or "moves"."""
    inventory = cluster(node("a"), node("b"), node("c"), *items)
    checker = EvictionChecker.for_inventory(inventory, NOW)
    verdicts = [checker.judge_pod(each, ALL) for each in inventory.pods if each.name.startswith("cache")]
    return {verdict.reason.code.name if isinstance(verdict, Blocked) else "moves" for verdict in verdicts}


CACHE = (owned("cache-0", "a"), owned("cache-1", "b"), budget("cache", 1))


@pytest.mark.parametrize(
    "others",
    [
        (),
        (stateful_set("pg"),),
        (stateful_set("cache"),),
        (stateful_set("cache", 5, 1),),
        (stateful_set("cache", version=KRUISE),),
    ],
)
def test_an_owner_of_another_group_is_unknown_whatever_else_the_snapshot_holds(others: tuple[Item, ...]) -> None:
    assert reasons(*CACHE, *others) == {"pod-of-unknown-owner"}


def test_the_reason_names_the_group_of_the_owner() -> None:
    inventory = cluster(node("a"), node("b"), *CACHE, stateful_set("pg"))
    verdict = EvictionChecker.for_inventory(inventory, NOW).judge_pod(inventory.pods[0], ALL)
    assert isinstance(verdict, Blocked)
    assert "StatefulSet.apps.kruise.io default/cache" in str(verdict.reason)


def test_pods_of_an_unknown_owner_move_within_their_budget_when_they_are_safe_to_evict() -> None:
    safe = [owned(f"cache-{n}", on, annotations={SAFE: "true"}) for n, on in enumerate("ab")]
    assert reasons(*safe, budget("cache", 1), stateful_set("cache", 5, 1)) == {"moves"}


@pytest.mark.parametrize("version", ["apps/v1", "apps/v1beta1", ""])
def test_every_version_of_a_group_names_the_same_owner(version: str) -> None:
    pods = [owned(f"cache-{n}", on, version=version) for n, on in enumerate("ab")]
    assert reasons(*pods, stateful_set("cache")) == {"moves"}
    assert reasons(*pods, stateful_set("cache", 5, 2)) == {"owner-not-whole"}


def test_a_replica_set_of_the_former_group_is_the_one_of_today() -> None:
    pods = [owned(f"cache-{n}", on, "ReplicaSet", "extensions/v1beta1") for n, on in enumerate("ab")]
    replica_set = {**stateful_set("cache"), "kind": "ReplicaSet"}
    assert reasons(*pods, replica_set) == {"moves"}


@pytest.mark.parametrize("kind", ["DaemonSet", "Node"])
def test_pods_of_another_groups_daemon_set_or_node_are_not_passed_over(kind: str) -> None:
    assert reasons(*(owned(f"cache-{n}", on, kind, "example.com/v1") for n, on in enumerate("ab"))) == {
        "pod-of-unknown-owner"
    }


def foreign(item: Item) -> Item:
    return {**item, "apiVersion": "example.com/v1"}


def drains(inventory: Inventory) -> list[str]:
    plan = make_plan(build_cluster_model(inventory), [ALL], PlanningContext(now=NOW))
    return [step.node for wave in plan.waves for step in wave.steps]


def test_objects_of_other_groups_with_the_names_of_built_in_kinds_change_no_plan() -> None:
    ours = (node("a"), node("b"), pod("web-1", "a"), pod("web-2", "b"), budget("web", 1))
    theirs = (node("z"), pod("db-1", "a", cpu="3500m"), budget("web", 0), stateful_set("web"))
    alone, beside = cluster(*ours), cluster(*ours, *map(foreign, theirs))
    assert drains(beside) == drains(alone) != []
    assert (len(beside.nodes), len(beside.pods), len(beside.pdbs)) == (2, 2, 1)


def test_an_owner_that_the_snapshot_lacks_is_no_reason_to_delete_its_pods() -> None:
    assert reasons(owned("cache-0", "a", version="apps/v1"), stateful_set("pg")) == {"owner-missing"}
    assert "elete the pod" not in OWNER_GONE.todo
