"""May this pod move? The cases of the peers' own tests (§5.2), and rules nobody else has."""

from dataclasses import replace

import pytest

from tests.cluster_of import ALL, NOW, SAFE, Item, budget, cluster, node, pod
from trimtab.cluster.pool import Pool
from trimtab.compaction.blockers import UNRESTRICTED, Blocked, Evictable, EvictionChecker, Verdict
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import make_plan
from trimtab.scheduling.cluster_model import build_cluster_model

MIRROR = "kubernetes.io/config.mirror"
DISTURB = "karpenter.sh/do-not-disrupt"


def verdict(item: Item, *others: Item, pool: Pool = ALL, now: int | None = NOW) -> str:
    """ "moves", "skipped", or the code of the reason it stays."""
    verdict = judged(item, *others, pool=pool, now=now)
    return (
        "moves"
        if isinstance(verdict, Evictable)
        else verdict.reason.code.name
        if isinstance(verdict, Blocked)
        else "skipped"
    )


def judged(item: Item, *others: Item, pool: Pool = ALL, now: int | None = NOW) -> Verdict:
    """A twin keeps it from being the only replica."""
    twin = {**pod("twin", "b"), "metadata": {**item["metadata"], "name": "twin", "uid": "twin", "annotations": {}}}
    inventory = cluster(node("a"), node("b"), item, twin, *others)
    mine = next(p for p in inventory.pods if p.name == item["metadata"]["name"])
    return EvictionChecker.for_inventory(inventory, now).judge_pod(mine, pool)


def test_case_13_a_pod_without_controller_blocks() -> None:
    assert verdict(pod("x-1", "a", owner="")) == "pod-without-owner"


def test_case_14_a_mirror_pod_in_kube_system_is_ignored() -> None:
    assert verdict(pod("x-1", "a", owner="Node", namespace="kube-system", annotations={MIRROR: "1"})) == "skipped"


def test_case_15_a_daemon_set_pod_neither_moves_nor_blocks_a_custom_one_neither() -> None:
    assert verdict(pod("x-1", "a", owner="DaemonSet")) == "skipped"
    custom = {"cluster-autoscaler.kubernetes.io/daemonset-pod": "true"}
    assert verdict(pod("x-1", "a", owner="OwnDaemons", annotations=custom)) == "skipped"


def sentence(item: Item, *others: Item) -> str:
    stays = judged(item, *others)
    assert isinstance(stays, Blocked), stays
    return str(stays.reason)


@pytest.mark.parametrize("kind", ["Deployment", "CronJob", "ConfigMap"])
def test_a_pod_of_a_kind_whose_controller_creates_no_pods_is_said_to_be_one(kind: str) -> None:
    # As Flink's native mode, whose task managers belong directly to a Deployment.
    said = sentence(pod("x-1", "a", owner=kind))
    assert (verdict(pod("x-1", "a", owner=kind)), f"directly to {kind} default/x" in said) == (
        "pod-of-unknown-owner",
        True,
    )


def test_a_pod_of_a_kind_that_kubernetes_does_not_have_is_said_to_be_one() -> None:
    assert "directly" not in sentence(pod("x-1", "a", owner="Worker"))


USES = {
    "": "a path",
    "Directory": "a directory",
    "DirectoryOrCreate": "a directory",
    "File": "a file",
    "FileOrCreate": "a file",
    "Socket": "a socket",
    "CharDevice": "a character device",
    "BlockDevice": "a block device",
}


@pytest.mark.parametrize("kind", USES)
def test_a_host_path_is_named_by_what_it_is_and_not_as_stored_data(kind: str) -> None:
    volume = {"volumes": [{"name": "host", "hostPath": {"path": "/x", "type": kind}}]}
    assert f"uses {USES[kind]} of its node" in sentence(pod("x-1", "a", spec=volume))


def test_an_empty_dir_stores_data() -> None:
    assert "stores data" in sentence(pod("x-1", "a", spec={"volumes": [{"name": "scratch", "emptyDir": {}}]}))


SCRATCH = {"volumes": [{"name": "one", "emptyDir": {}}, {"name": "two", "hostPath": {"path": "/x"}}]}
NAMED = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [({}, "local-data"), ({SAFE: "true"}, "moves"), ({NAMED: "one,two"}, "moves"), ({NAMED: "one"}, "local-data")],
)
def test_case_18_local_data_blocks_unless_it_is_said_to_be_scratch(annotations: Item, expected: str) -> None:
    assert verdict(pod("x-1", "a", spec=SCRATCH, annotations=annotations)) == expected


def test_an_empty_dir_in_memory_does_not_block() -> None:
    assert verdict(pod("x-1", "a", spec={"volumes": [{"name": "m", "emptyDir": {"medium": "Memory"}}]})) == "moves"


def test_case_19_a_volume_that_is_not_local_does_not_block() -> None:
    assert verdict(pod("x-1", "a", spec={"volumes": [{"name": "g", "gitRepo": {"repository": "r"}}]})) == "moves"


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_case_21_a_finished_bare_pod_is_ignored(phase: str) -> None:
    assert verdict(pod("x-1", "a", owner="", phase=phase)) == "skipped"


def test_case_22_a_terminating_pod_counts_until_half_a_minute_after_its_grace() -> None:
    gone, going = "2026-01-02T23:59:00Z", "2026-01-02T23:59:45Z"
    assert verdict(pod("x-1", "a", owner="", deleted=gone)) == "skipped"
    assert verdict(pod("x-1", "a", owner="", deleted=going)) == "pod-terminating"
    assert verdict(pod("x-1", "a", owner="", deleted="2026-01-03T00:05:00Z")) == "pod-terminating"


def test_case_24_only_daemons_mirrors_and_critical_pods_means_nothing_is_evicted() -> None:
    items = [
        pod("d-1", "a", owner="DaemonSet"),
        pod("m-1", "a", owner="Node", annotations={MIRROR: "1"}),
        pod("c-1", "a", spec={"priority": 2000000000}),
    ]
    plan = make_plan(build_cluster_model(cluster(node("a"), node("b"), *items)), [ALL], PlanningContext(now=NOW))
    assert not plan.all_moves
    assert plan.pods["default/c-1"].code.name == "system-critical"


def test_case_25_a_mirror_pod_is_never_evicted_whatever_it_says() -> None:
    notes = {MIRROR: "1", "descheduler.alpha.kubernetes.io/evict": "true"}
    assert verdict(pod("x-1", "a", owner="Node", annotations=notes)) == "skipped"


def test_case_27_a_pod_younger_than_the_pool_wants_stays() -> None:
    young = Pool(name="all", everything=True, min_pod_age=600)
    assert verdict(pod("x-1", "a", created="2026-01-02T23:59:00Z"), pool=young) == "pod-too-young"
    assert verdict(pod("x-1", "a"), pool=young) == "moves"


@pytest.mark.parametrize(
    ("said", "expected"),
    [("true", "not-safe-to-evict"), ("48h", "not-safe-to-evict"), ("1h30m", "moves"), ("false", "moves")],
)
def test_case_30_do_not_disrupt_lasts_as_long_as_it_says(said: str, expected: str) -> None:
    assert verdict(pod("x-1", "a", annotations={DISTURB: said})) == expected


@pytest.mark.parametrize("said", ["soon", "True", "", "-1h", "4 h"])
@pytest.mark.parametrize("note", [DISTURB, SAFE, "trimtab.dev/do-not-disrupt", "example.com/stay"])
def test_a_value_that_we_do_not_understand_keeps_the_pod(note: str, said: str) -> None:
    """Karpenter takes a malformed one for none (case 30); what we can't judge blocks."""
    theirs = Pool(name="all", everything=True, keep_pods=("example.com/stay",))
    assert verdict(pod("x-1", "a", annotations={note: said}), pool=theirs) == "annotation-not-understood"


def test_case_31_two_budgets_over_a_pod_block_it() -> None:
    assert verdict(pod("x-1", "a"), budget("x", 1), budget("x", 1, name="again")) == "two-budgets"


def test_case_32_a_closed_budget_blocks_daemons_but_not_mirrors_finished_or_going_pods() -> None:
    closed = budget("x", 0)
    assert verdict(pod("x-1", "a", owner="DaemonSet"), closed) == "budget-spent"
    assert verdict(pod("x-1", "a", owner="Node", annotations={MIRROR: "1"}), closed) == "skipped"
    assert verdict(pod("x-1", "a", phase="Succeeded"), closed) == "skipped"
    assert verdict(pod("x-1", "a", deleted="2026-01-02T12:00:00Z"), closed) == "skipped"


def test_case_33_a_budget_of_another_namespace_does_not_block() -> None:
    assert verdict(pod("x-1", "a"), budget("x", 0, namespace="other")) == "moves"


def test_a_budget_that_never_allows_is_told_from_one_that_is_spent() -> None:
    assert verdict(pod("x-1", "a"), budget("x", 0)) == "budget-never-allows"
    assert verdict(pod("x-1", "a"), budget("x", 0, most=1)) == "budget-spent"


def test_a_budget_whose_status_is_stale_or_missing_blocks() -> None:
    assert verdict(pod("x-1", "a"), budget("x", 1, observed=1)) == "budget-stale"


def test_a_budget_with_a_broken_selector_blocks_its_namespace() -> None:
    broken = budget("x", 1, selector={"matchExpressions": [{"key": "app", "operator": "Like", "values": ["x"]}]})
    assert verdict(pod("x-1", "a"), broken) == "budget-broken"


def test_an_unready_pod_may_go_while_enough_others_are_healthy() -> None:
    assert judged(pod("x-1", "a", ready=False), budget("x", 0)) == UNRESTRICTED


def test_an_unready_pod_spends_from_a_budget_that_wants_no_healthy_pods() -> None:
    assert judged(pod("x-1", "a", ready=False), budget("x", 3)) == Evictable(0)


@pytest.mark.parametrize(
    ("value", "expected"), [("false", "not-safe-to-evict"), ("on-completion", "not-safe-to-evict"), ("true", "moves")]
)
def test_safe_to_evict(value: str, expected: str) -> None:
    assert verdict(pod("x-1", "a", annotations={SAFE: value})) == expected


def test_a_pod_that_may_be_evicted_by_its_own_word_waits_for_its_budget_all_the_same() -> None:
    """The autoscaler skips its own look at budgets then; the eviction API refuses anyway."""
    safe = pod("x-1", "a", annotations={SAFE: "true"})
    assert verdict(safe, budget("x", 0, most=1)) == "budget-spent"
    assert verdict(safe, budget("x", 0)) == "budget-never-allows"
    assert judged(safe, budget("x", 1)) == Evictable(0)


@pytest.mark.parametrize(
    "note",
    ["trimtab.dev/do-not-disrupt", "descheduler.alpha.kubernetes.io/prefer-no-eviction", "karpenter.sh/do-not-disrupt"],
)
def test_every_family_of_annotations_is_honoured(note: str) -> None:
    assert verdict(pod("x-1", "a", annotations={note: "true"})) == "not-safe-to-evict"


def test_the_earlier_name_of_do_not_disrupt_blocks_and_names_the_new_one() -> None:
    earlier = pod("x-1", "a", annotations={"trimtab.dev/keep": "true"})
    assert verdict(earlier) == "annotation-not-understood"
    assert "use trimtab.dev/do-not-disrupt" in str(judged(earlier))
    assert verdict(pod("x-1", "a", annotations={"trimtab.dev/keep": "false"})) == "moves"


def test_an_owner_of_unknown_kind_blocks() -> None:
    assert verdict(pod("x-1", "a", owner="Database")) == "pod-of-unknown-owner"


def test_a_running_job_blocks_unless_the_pool_allows_it() -> None:
    assert verdict(pod("x-1", "a", owner="Job")) == "job-running"
    assert verdict(pod("x-1", "a", owner="Job"), pool=Pool(name="all", everything=True, jobs=True)) == "moves"


def owner(name: str, wanted: int, ready: int, kind: str = "ReplicaSet", namespace: str = "default") -> Item:
    return {
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": wanted},
        "status": {"replicas": wanted, "readyReplicas": ready},
    }


def test_a_workload_that_is_not_whole_blocks() -> None:
    assert verdict(pod("x-1", "a"), owner("x", 3, 2)) == "owner-not-whole"
    assert verdict(pod("x-1", "a"), owner("x", 3, 3)) == "moves"


def test_a_rollout_blocks_the_pods_of_both_its_owners_unless_a_budget_speaks_for_them() -> None:
    """Each ReplicaSet may be whole while the Deployment is not."""
    old = pod("x-1", "a", app="x-5d6f", labels={"pod-template-hash": "5d6f"})
    whole = owner("x-5d6f", 3, 3)
    rolling, over = owner("x", 4, 3, kind="Deployment"), owner("x", 4, 4, kind="Deployment")
    assert verdict(old, whole, rolling) == "owner-not-whole"
    assert verdict(old, whole, over) == "moves"
    assert verdict(old, whole, rolling, budget("x-5d6f", 1)) == "moves"


def test_an_owner_that_is_gone_blocks_only_where_the_snapshot_shows_owners() -> None:
    assert verdict(pod("x-1", "a"), owner("y", 1, 1)) == "owner-missing"


def test_the_only_replica_stays_unless_the_pool_allows_it() -> None:
    calm = Pool(name="all", everything=True)
    assert verdict(pod("x-1", "a"), owner("x", 1, 1), pool=calm) == "single-replica"
    assert verdict(pod("x-1", "a"), owner("x", 1, 1)) == "moves"


def test_a_young_system_pod_without_budget_blocks() -> None:
    fresh = pod("x-1", "a", namespace="kube-system", created="2026-01-02T23:30:00Z")
    assert verdict(fresh) == "system-pod-without-budget"
    assert verdict(pod("x-1", "a", namespace="kube-system")) == "moves"


# ── volumes and neighbours on their way ──────────────────────────────────
def claimed(volume: Item) -> list[Item]:
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "default"},
            "spec": {"volumeName": "pv", "accessModes": ["ReadWriteOnce"]},
            "status": {"phase": "Bound"},
        },
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"}, "spec": volume},
    ]


@pytest.mark.parametrize("source", [{"local": {"path": "/d"}}, {"hostPath": {"path": "/d"}}])
def test_a_pod_with_a_volume_that_lives_on_its_node_stays_for_that_reason(source: Item) -> None:
    volumes = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
    items = [node("a"), node("b"), pod("x-1", "a", spec=volumes), pod("x-2", "b", "3"), *claimed(source)]
    plan = make_plan(build_cluster_model(cluster(*items)), [ALL], PlanningContext(now=NOW))
    assert plan.pods["default/x-1"].code.name == "local-volume"


def test_the_next_pod_of_a_workload_waits_until_the_one_that_was_moved_is_ready() -> None:
    items = [node("a"), node("b"), pod("x-1", "a", "1"), pod("y-1", "b", "3")]
    now = PlanningContext(now=NOW, moved_pods=frozenset({"default/x-2"}))
    waiting = make_plan(build_cluster_model(cluster(*items, pod("x-2", "b", "100m", ready=False))), [ALL], now)
    assert waiting.pods["default/x-1"].code.name == "workload-unsettled"
    assert not make_plan(build_cluster_model(cluster(*items, pod("x-2", "b", "100m"))), [ALL], now).pods.get(
        "default/x-1"
    )


@pytest.mark.parametrize(
    ("namespaces", "namespace", "kind", "becomes"),
    [
        (None, "default", "ReplicaSet", "moves"),
        ((), "default", "ReplicaSet", "single-replica-without-right"),
        (("shop",), "default", "ReplicaSet", "single-replica-without-right"),
        (("shop",), "shop", "ReplicaSet", "moves"),
        ((), "default", "StatefulSet", "moves"),
    ],
)
def test_the_only_replica_of_a_deployment_moves_where_the_compactor_may_give_it_a_second_one(
    namespaces: tuple[str, ...] | None, namespace: str, kind: str, becomes: str
) -> None:
    """A StatefulSet is given none: its pod has a name of its own."""
    pool = replace(ALL, scale_namespaces=None if namespaces is None else frozenset(namespaces))
    only = pod("x-1", "a", owner=kind, namespace=namespace)
    assert verdict(only, owner("x", 1, 1, kind=kind, namespace=namespace), pool=pool) == becomes
    twins = (owner("x", 2, 2, kind=kind, namespace=namespace),)
    assert verdict(only, *twins, pool=pool) == "moves"
