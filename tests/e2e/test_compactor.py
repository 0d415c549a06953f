"""Pools compacted on a real control plane, watched by somebody who is not the compactor."""

from __future__ import annotations

from pathlib import Path

from tests.controlplane import objects
from tests.controlplane.auditor import Auditor
from tests.controlplane.cluster import Cluster
from tests.controlplane.witness import Witness
from tests.e2e.compactors import Eye, budget, captured, compactor, is_cordoned, nodes, noted, planned, pool, state

PAUSED = "trimtab.dev/paused"
SLOW = {"testbed.trimtab.dev/ready-after": "1s"}


def filled(cluster: Cluster, name: str, count: int, apps: int, replicas: int) -> None:
    """Nodes of four cores, and pods of 600m on them, each workload with a budget of one."""
    cluster.pool(name, nodes=count, cpu="4", memory="16Gi")
    for number in range(apps):
        app = f"app{number}"
        cluster.deployment(app, replicas=replicas, cpu="600m", annotations=SLOW, spec={"nodeSelector": {"pool": name}})
        cluster.apply(budget(app))
    cluster.eventually(lambda: len(cluster.running()) == apps * replicas, within=90, every=0.5)
    cluster.eventually(
        lambda: all(b["status"].get("disruptionsAllowed") == 1 for b in cluster.list("PodDisruptionBudget"))
    )


def empty(cluster: Cluster, name: str) -> list[str]:
    return [node["metadata"]["name"] for node in nodes(cluster, name) if (noted(node) or {}).get("emptied")]


def test_thirty_nodes_become_what_was_planned_and_no_budget_is_broken(cluster: Cluster, tmp_path: Path) -> None:
    name = f"many-{cluster.namespace[-5:]}"
    filled(cluster, name, count=30, apps=12, replicas=5)
    unused = 30 - len({one["spec"]["nodeName"] for one in cluster.running()})
    cluster.apply(pool(cluster, name))
    auditor = cluster.auditor
    with Eye(cluster, every=0.2) as eye, compactor(cluster, tmp_path, MOVE_COOLDOWN_SECONDS="0") as one:
        [first] = cluster.eventually(lambda: one.told("planned")[:1], within=30)
        promised = int(first["why"].split()[0])
        cluster.eventually(lambda: len(empty(cluster, name)) >= promised, within=150, every=0.5)
        order = [line["node"] for line in one.told("started")]
    assert promised + unused >= 19, "sixty pods of 600m need ten nodes; a busy scheduler leaves some without a pod"
    assert min(eye.fewest.values()) >= 4, "no budget of one was ever broken"
    assert eye.longest_wait < 5
    evictions = auditor.writes(user="compactor", resource="pods/eviction")
    assert evictions
    assert sum(not write.allowed for write in evictions) * 100 <= len(evictions), "refused"
    assert set(empty(cluster, name)) <= set(order)
    assert not auditor.writes(user="compactor", resource="pods"), "pods are evicted, never deleted"
    assert not auditor.writes(user="compactor", resource="nodes", verb="delete")


def begun(auditor: Auditor) -> list[str]:
    """Nodes in the order in which they were cordoned, as the API server wrote it down."""
    notes = auditor.writes(user="compactor", resource="nodes", verb="patch")
    results = [w.name or "" for w in notes if w.allowed and (w.asked or {}).get("spec", {}).get("unschedulable")]
    return list(dict.fromkeys(results))


def test_nodes_go_one_after_the_other_as_planned_and_the_lowest_priority_leaves_first(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Four nodes, on each a pod of either priority; two nodes would do."""
    name = f"row-{cluster.namespace[-5:]}"
    cluster.pool(name, nodes=4, cpu="4", memory="16Gi")
    cluster.apply(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": f"{name}-high"},
            "value": 1000,
        }
    )
    for app, more in (("high", {"priorityClassName": f"{name}-high"}), ("low", {})):
        apart = {
            "topologyKey": "kubernetes.io/hostname",
            "maxSkew": 1,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": app}},
        }
        spec = {"nodeSelector": {"pool": name}, "topologySpreadConstraints": [apart], **more}
        cluster.deployment(app, replicas=4, cpu="600m", annotations=SLOW, spec=spec)
        cluster.apply(budget(app))
    cluster.eventually(lambda: len(cluster.running()) == 8, within=60)
    cluster.eventually(
        lambda: all(b["status"].get("disruptionsAllowed") == 1 for b in cluster.list("PodDisruptionBudget"))
    )
    cluster.apply(pool(cluster, name, pace={"drains": 1}))
    cluster.kubectl("annotate", "namespace", cluster.namespace, f"{PAUSED}=to look at the plan")
    auditor, order = cluster.auditor, list[str]()
    with (
        Witness(cluster) as witness,
        compactor(cluster, tmp_path, MOVE_COOLDOWN_SECONDS="0", PLAN_INTERVAL_SECONDS="1") as one,
    ):
        for count in (1, 2):
            if count == 1:
                cluster.eventually(lambda: one.told("planned"), within=30)
            order.append(next(node for node in planned(cluster, name) if node not in order))
            cluster.kubectl("annotate", "namespace", cluster.namespace, f"{PAUSED}-")
            cluster.eventually(lambda: len(empty(cluster, name)) >= len(order), within=40, what="a node emptied")
            cluster.kubectl("annotate", "namespace", cluster.namespace, f"{PAUSED}=to look at the plan")
    assert begun(auditor)[:2] == order
    assert [node for node, _ in witness.left] == [order[0]] * 2 + [order[1]] * (len(witness.left) - 2)
    apps = [pod.split("/")[1].split("-")[0] for _, pod in witness.left]
    assert apps[:2] == ["low", "high"]
    assert witness.broken == []


def test_a_rehearsal_changes_nothing_but_its_own_state_and_plans_as_the_command_does(
    cluster: Cluster, tmp_path: Path
) -> None:
    name = f"dry-{cluster.namespace[-5:]}"
    filled(cluster, name, count=5, apps=3, replicas=3)
    cluster.apply(pool(cluster, name, mode="rehearse"))
    auditor = cluster.auditor
    with compactor(cluster, tmp_path) as one:
        cluster.eventually(lambda: one.told("started"), within=30)
        actual_state = state(cluster, name)
        assert actual_state["plan"]
        assert planned(cluster, name) == actual_state["plan"]
        assert planned(cluster, name, captured(cluster, tmp_path)) == actual_state["plan"]
    assert not any(map(is_cordoned, nodes(cluster, name)))
    mine = {(write.resource, write.name) for write in auditor.writes(user="compactor")}
    assert mine - {("leases", None)} == {  # the audit log names an object that is created, or does not
        ("configmaps", f"trimtab-state-{name}"),
        ("leases", "trimtab-compactor"),
        ("secrets", "trimtab-compactor-signing"),
    }
    assert all(record["rehearsed"] for record in actual_state["ring"])


def test_the_eye_sees_a_breach(cluster: Cluster) -> None:
    name = f"eye-{cluster.namespace[-5:]}"
    filled(cluster, name, count=2, apps=2, replicas=3)
    with Eye(cluster) as eye:
        for pod in cluster.running("app=app0")[:2]:
            cluster.delete("Pod", pod["metadata"]["name"], grace=0)
        cluster.eventually(lambda: len(cluster.running("app=app0")) == 3)
    assert (eye.fewest["app0"], eye.fewest["app1"]) == (1, 3)


def test_the_only_replica_moves_without_ever_being_missed(cluster: Cluster, tmp_path: Path) -> None:
    name = f"one-{cluster.namespace[-5:]}"
    cluster.pool(name, nodes=1, cpu="4", memory="16Gi")
    cluster.deployment("only", replicas=1, cpu="600m", annotations=SLOW, spec={"nodeSelector": {"pool": name}})
    cluster.eventually(lambda: len(cluster.running("app=only")) == 1)
    cluster.create(objects.node(f"{name}-b", cpu="8", memory="32Gi", pods=110, labels={"pool": name}, taints=()))
    cluster.deployment("many", replicas=6, cpu="900m", annotations=SLOW, spec={"nodeName": f"{name}-b"})
    cluster.eventually(lambda: len(cluster.running("app=many")) == 6)
    cluster.apply(pool(cluster, name, protect={"singleReplicas": False}))
    auditor = cluster.auditor
    with Eye(cluster) as eye, compactor(cluster, tmp_path):
        cluster.eventually(lambda: f"{name}-0" in empty(cluster, name), within=40)
    assert eye.fewest["only"] == 1
    assert cluster.get("Deployment", "only")["spec"]["replicas"] == 1
    scaled = [w.asked["spec"]["replicas"] for w in auditor.writes(user="compactor", resource="deployments/scale")]
    assert scaled == [2, 1]
