"""A drain that does not go as it should: each ends as docs/explanation/the-drain.md says."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.controlplane.cluster import Cluster
from tests.e2e.compactors import Compactor, ask, budget, compactor, is_cordoned, nodes, noted, pool, state

GRACE = {"terminationGracePeriodSeconds": 1}
TAINT = {"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"}


class Stage:
    """Three nodes with four pods of a workload whose budget is one, so that some node has two.

    Successors take a minute to be ready, or as `slow` says: what is done to a drain that began, it surely meets.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.name = f"end-{cluster.namespace[-5:]}"
        cluster.pool(self.name, nodes=3, cpu="4", memory="16Gi")
        spec = {"nodeSelector": {"pool": self.name}, **GRACE}
        cluster.deployment("web", replicas=4, cpu="900m", spec=spec)
        cluster.apply(budget("web"))
        cluster.eventually(lambda: len(cluster.running("app=web")) == 4, within=60)
        self.slow("60s")
        cluster.eventually(lambda: cluster.get("PodDisruptionBudget", "web")["status"]["disruptionsAllowed"] == 1)

    def slow(self, ready_after: str) -> None:
        """Only pods to come: the ReplicaSet's template, and a Deployment that is paused leaves it so."""
        self.cluster.patch("Deployment", "web", {"spec": {"paused": True}})
        template = {"metadata": {"annotations": {"testbed.trimtab.dev/ready-after": ready_after}}}
        for result in self.cluster.list("ReplicaSet"):
            self.cluster.patch("ReplicaSet", result["metadata"]["name"], {"spec": {"template": template}})

    def began(self, one: Compactor) -> str:
        """The node that is being emptied."""
        [line] = self.cluster.eventually(lambda: one.told("started")[:1], within=30)
        return str(line["node"])

    def ended(self, one: Compactor, code: str, within: float = 30) -> None:
        self.cluster.eventually(
            lambda: [line for line in one.told("released") if line["code"] == code], within=within, what=code
        )

    def is_open(self, name: str) -> bool:
        node = self.cluster.get("Node", name)
        return not is_cordoned(node) and noted(node) is None


@pytest.fixture
def stage(cluster: Cluster) -> Iterator[Stage]:
    stage = Stage(cluster)
    cluster.apply(pool(cluster, stage.name))
    yield stage
    for pod in cluster.list("Pod"):
        if pod["metadata"].get("finalizers"):
            cluster.patch("Pod", pod["metadata"]["name"], {"metadata": {"finalizers": None}})


def test_a_pod_that_does_not_end_costs_the_drain(stage: Stage, cluster: Cluster, tmp_path: Path) -> None:
    for pod in cluster.running("app=web"):
        cluster.patch("Pod", pod["metadata"]["name"], {"metadata": {"finalizers": ["example.com/never"]}})
    with compactor(cluster, tmp_path, POD_TERMINATION_TIMEOUT_SECONDS="3") as one:
        name = stage.began(one)
        stage.ended(one, "drain-pod-stuck")
        cluster.eventually(lambda: stage.is_open(name))


def test_a_budget_that_closes_midway_is_waited_for_and_then_given_up(
    stage: Stage, cluster: Cluster, tmp_path: Path
) -> None:
    stage.slow("3s")
    with compactor(cluster, tmp_path, DRAIN_TIMEOUT_SECONDS="8") as one:
        name = stage.began(one)
        cluster.patch("PodDisruptionBudget", "web", {"spec": {"maxUnavailable": 0}})
        stage.ended(one, "drain-too-long", within=60)
        cluster.eventually(lambda: stage.is_open(name))
        assert len(one.told("evicted")) <= 1


def test_a_successor_that_finds_no_node_opens_the_node(stage: Stage, cluster: Cluster, tmp_path: Path) -> None:
    stage.slow("3s")
    with compactor(cluster, tmp_path, PENDING_TIMEOUT_SECONDS="2", DRAIN_POLL_INTERVAL_SECONDS="0.1") as one:
        name = stage.began(one)
        for node in nodes(cluster, stage.name):
            if node["metadata"]["name"] != name:
                cluster.patch("Node", node["metadata"]["name"], {"spec": {"unschedulable": True}})
        cluster.eventually(lambda: one.told("released"), within=40)
        assert one.told("released")[0]["code"] in ("drain-successor-not-placed", "drain-pods-pending")
        cluster.eventually(lambda: stage.is_open(name))


FEW_PODS = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": {"pods": "3"}}}


def test_no_drain_begins_where_a_quota_would_refuse_the_successor(
    stage: Stage, cluster: Cluster, tmp_path: Path
) -> None:
    cluster.apply(FEW_PODS)
    cluster.eventually(lambda: cluster.get("ResourceQuota", "few").get("status", {}).get("used"), what="pods counted")
    with compactor(cluster, tmp_path) as one:
        cluster.eventually(lambda: one.told("planned"), within=30)
        assert not one.told("started")
        cluster.kubectl("delete", "resourcequota", "few")
        stage.began(one)


def test_a_successor_that_a_quota_refuses_opens_the_node_at_once(
    stage: Stage, cluster: Cluster, tmp_path: Path
) -> None:
    stage.slow("3s")
    with compactor(cluster, tmp_path, DRAIN_TIMEOUT_SECONDS="600", READY_TIMEOUT_SECONDS="600") as one:
        name = stage.began(one)
        cluster.apply(FEW_PODS)
        stage.ended(one, "drain-successor-not-created", within=60)
        cluster.eventually(lambda: stage.is_open(name))
        assert "exceeded quota: few" in one.told("released")[0]["why"]
        assert not one.told("closed")


def test_what_somebody_opened_again_stays_open(stage: Stage, cluster: Cluster, tmp_path: Path) -> None:
    with compactor(cluster, tmp_path) as one:
        name = stage.began(one)
        cluster.kubectl("uncordon", name)
        stage.ended(one, "drain-uncordoned")
        cluster.eventually(lambda: stage.is_open(name))


def test_what_shall_stay_by_a_word_in_mid_drain_is_opened(stage: Stage, cluster: Cluster, tmp_path: Path) -> None:
    with compactor(cluster, tmp_path) as one:
        name = stage.began(one)
        cluster.kubectl("annotate", "node", name, "trimtab.dev/do-not-disrupt=true")
        stage.ended(one, "drain-node-kept")
        cluster.eventually(lambda: stage.is_open(name))


def test_a_node_whose_cordon_a_policy_engine_refuses_keeps_no_other_from_its_turn(
    stage: Stage, cluster: Cluster, tmp_path: Path
) -> None:
    with compactor(cluster, tmp_path / "first") as one:
        name = stage.began(one)  # the one that would go first, again and again
        one.stop()
    with refused(cluster, name), compactor(cluster, tmp_path / "second") as one:
        [line] = cluster.eventually(lambda: one.told("abandoned")[:1], within=30)
        assert (line["code"], line["node"]) == ("cordon-refused", name)
        assert "no cordon here" in line["why"]
        assert stage.began(one) != name


@contextmanager
def refused(cluster: Cluster, name: str) -> Iterator[None]:
    """Nobody may cordon this node."""
    policy, group = f"no-cordon-{name}", "admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["nodes"]}
    says = f"object.metadata.name != '{name}' || !has(object.spec.unschedulable) || !object.spec.unschedulable"
    guards = {
        "apiVersion": group,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": policy},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": says, "message": "no cordon here"}],
        },
    }
    bound = {"policyName": policy, "validationActions": ["Deny"]}
    binding = {**guards, "kind": "ValidatingAdmissionPolicyBinding", "spec": bound}
    cluster.apply([guards, binding])
    try:
        cluster.eventually(lambda: is_refused(cluster, name))
        yield
    finally:
        cluster.kubectl("delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", policy)


def is_refused(cluster: Cluster, name: str) -> bool:
    try:
        cluster.kubectl("patch", "node", name, "--dry-run=server", "-p", '{"spec": {"unschedulable": true}}')
    except AssertionError as error:
        return "no cordon here" in str(error)
    return False


@pytest.mark.parametrize("taint", ["ToBeDeletedByClusterAutoscaler=1:NoSchedule", "karpenter.sh/disrupted:NoSchedule"])
def test_a_node_somebody_else_deletes_is_left_alone(stage: Stage, cluster: Cluster, tmp_path: Path, taint: str) -> None:
    with compactor(cluster, tmp_path) as one:
        name = stage.began(one)
        cluster.kubectl("taint", "node", name, taint)
        cluster.eventually(lambda: one.told("abandoned"), within=30)
        auditor = cluster.auditor
        time.sleep(3)  # some rounds and a plan
        assert not [write for write in auditor.writes(user="compactor", resource="nodes") if write.name == name]
        assert is_cordoned(cluster.get("Node", name))


def test_a_pool_whose_settings_are_deleted_gets_its_node_back(stage: Stage, cluster: Cluster, tmp_path: Path) -> None:
    with compactor(cluster, tmp_path) as one:
        name = stage.began(one)
        cluster.delete("ConfigMap", f"pool-{stage.name}")
        stage.ended(one, "drain-stopped")
        cluster.eventually(lambda: stage.is_open(name))


def test_a_node_that_becomes_not_ready_is_given_back(stage: Stage, cluster: Cluster, tmp_path: Path) -> None:
    """Long before its pods, which do not end while kwok stands still, are called stuck."""
    with compactor(cluster, tmp_path, POD_TERMINATION_TIMEOUT_SECONDS="120") as one:
        name = stage.began(one)
        cluster.freeze("kwok")  # else it mends the node at once
        try:
            ill = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "for the test"}
            cluster.patch("Node", name, {"status": {"conditions": [ill]}}, sub="status")
            stage.ended(one, "drain-node-not-ready")
            cluster.eventually(lambda: stage.is_open(name))
        finally:
            cluster.thaw("kwok")
        cluster.eventually(lambda: cluster.is_ready(name))


def test_a_cordon_of_somebody_else_is_neither_used_nor_undone(stage: Stage, cluster: Cluster, tmp_path: Path) -> None:
    stage.slow("0s")
    theirs = f"{stage.name}-1"
    cluster.kubectl("cordon", theirs)
    auditor = cluster.auditor
    with compactor(cluster, tmp_path) as one:
        cluster.eventually(lambda: one.told("emptied"), within=40)
    node = cluster.get("Node", theirs)
    assert (is_cordoned(node), noted(node)) == (True, None)
    assert not [write for write in auditor.writes(user="compactor", resource="nodes") if write.name == theirs]


def test_where_somebody_cordons_a_node_midway_the_drain_goes_on_around_it(
    stage: Stage, cluster: Cluster, tmp_path: Path
) -> None:
    stage.slow("3s")
    auditor = cluster.auditor
    with compactor(cluster, tmp_path) as one:
        name = stage.began(one)
        theirs = next(n["metadata"]["name"] for n in nodes(cluster, stage.name) if not is_cordoned(n))
        cluster.kubectl("cordon", theirs)
        cluster.eventually(lambda: one.told("emptied"), within=60)
    assert {line["node"] for line in one.told("emptied")} == {name}
    node = cluster.get("Node", theirs)
    assert (is_cordoned(node), noted(node)) == (True, None)
    mine = [write for write in auditor.writes(user="compactor", resource="nodes") if write.name == theirs]
    assert not [write for write in mine if "unschedulable" in str(write.asked)]


def test_a_pod_that_takes_its_long_grace_is_waited_for(cluster: Cluster, tmp_path: Path) -> None:
    """Eight seconds of thirty, where a drain may last two, and a pod be there one past its grace."""
    name = f"grace-{cluster.namespace[-5:]}"
    cluster.pool(name, nodes=2, cpu="4", memory="16Gi")
    spec = {"nodeSelector": {"pool": name}, "terminationGracePeriodSeconds": 30}
    slow = {"testbed.trimtab.dev/stops-after": "8s"}
    cluster.deployment("web", replicas=2, cpu="900m", annotations=slow, spec=spec)
    cluster.eventually(lambda: len(cluster.running("app=web")) == 2, within=60)
    cluster.apply(pool(cluster, name))
    with compactor(cluster, tmp_path, DRAIN_TIMEOUT_SECONDS="2", POD_TERMINATION_TIMEOUT_SECONDS="1") as one:
        cluster.eventually(lambda: one.told("emptied"), within=60)
        [evicted, *_] = one.told("evicted")
        assert one.told("emptied")[0]["at"] - evicted["at"] >= 7
        assert not one.told("released")


def test_the_global_switch_to_rehearse_overrides_every_pool_and_ends_what_was_begun(
    stage: Stage, cluster: Cluster, tmp_path: Path
) -> None:
    with compactor(cluster, tmp_path / "acts") as one:
        name = stage.began(one)
        one.stop(signal.SIGKILL)
    assert is_cordoned(cluster.get("Node", name))
    with compactor(cluster, tmp_path / "rehearses", REHEARSE="true") as one:
        stage.ended(one, "drain-stopped")
        cluster.eventually(lambda: stage.is_open(name))
        cluster.eventually(
            lambda: "trimtab.dev/drain-candidate" not in str([n["spec"] for n in nodes(cluster, stage.name)])
        )
        time.sleep(1)  # what was told of that end
        auditor = cluster.auditor
        time.sleep(5)  # two plans
        assert {write.resource for write in auditor.writes(user="compactor")} <= {"configmaps", "leases"}
        assert all(line.get("rehearsed") for line in one.told("started"))


def test_state_that_cannot_be_read_is_put_aside_and_told(stage: Stage, cluster: Cluster, tmp_path: Path) -> None:
    theirs = '{"v": 99, "evictions": "what only a later version knows"}'
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "data": {"state.json": theirs},
            "metadata": {"name": f"trimtab-state-{stage.name}", "labels": {"trimtab.dev/state": stage.name}},
        }
    )
    with compactor(cluster, tmp_path) as one:
        [line] = cluster.eventually(lambda: one.told("unreadable"), within=30)
        cluster.eventually(
            lambda: [ring["what"] for ring in state(cluster, stage.name).get("ring", ())][:1] == ["unreadable"]
        )
        [rest] = cluster.list("ConfigMap", selector=f"trimtab.dev/unreadable-state={stage.name}")
        assert rest["data"] == {"state.json": theirs}
        assert rest["metadata"]["name"] in line["why"]
        cluster.eventually(lambda: one.told("planned"), within=30)
        assert not one.told("started"), "nobody knows what failed in this pool"
        cluster.eventually(lambda: "PoolStateUnreadable" in cluster.kubectl("get", "events", "-A"))
        ask(cluster, "resume", "--pool", stage.name)
        stage.began(one)


def test_a_pause_and_its_end(stage: Stage, cluster: Cluster, tmp_path: Path) -> None:
    cluster.kubectl("annotate", "namespace", cluster.namespace, "trimtab.dev/paused=for the release")
    with compactor(cluster, tmp_path) as one:
        cluster.eventually(lambda: one.told("planned"), within=30)
        assert not cluster.eventually(lambda: [True], within=1) or not one.told("started")
        cluster.kubectl("annotate", "namespace", cluster.namespace, "trimtab.dev/paused-")
        stage.began(one)


def test_who_is_asked_to_stop_gives_back_what_is_not_empty(stage: Stage, cluster: Cluster, tmp_path: Path) -> None:
    with compactor(cluster, tmp_path) as one:
        name = stage.began(one)
        assert one.stop() == 0
        assert {line["code"] for line in one.told("released")} == {"drain-process-stopping"}
    assert stage.is_open(name)
    assert "trimtab.dev/drain-candidate" not in str([node["spec"] for node in nodes(cluster, stage.name)])
    lease = cluster.get("Lease", "trimtab-compactor")
    assert not lease["spec"].get("holderIdentity"), "the next one need not wait"
