"""A DrainOrder is no way round the rights of its author, and nobody orders in the name of another user."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane import objects
from tests.controlplane.cluster import Cluster
from tests.e2e.adversary.identities import denied, tenant, thief
from tests.e2e.compactors import noted
from tests.e2e.drain_orders import as_user, create_order, may_order, order, status, wait_for_margin, wait_for_phase
from tests.e2e.drains import cordoned, grant_role, pods_on, role_of_page
from tests.e2e.installed import Installed
from tests.e2e.replicas import Worker

Object = dict[str, Any]
NOTE = "trimtab.dev/cordoned-for"
POLICY = "trimtab-compactor-drainorders"


@pytest.fixture(scope="module")
def ours(applied: Installed) -> Cluster:
    """Our namespace, in which the policy for authors is in force."""
    cluster = Cluster(applied.cluster.kubeconfig, applied.values.namespace, applied.cluster.plane)
    cluster.eventually(
        lambda: POLICY in denied(lambda: cluster.create(order("n1", name="probe", by="somebody"))),
        within=30,
        what="the policy in force",
    )
    wait_for_margin()
    return cluster


@pytest.fixture(scope="module")
def compactor(applied: Installed, ours: Cluster) -> Iterator[Worker]:
    """The compactor with the token of its account: all that its roles grant, and nothing else."""
    worker = Worker(
        applied.home / f"orders-{uuid.uuid4().hex[:5]}", "compactor", applied.values, applied.login_of("compactor")
    )
    try:
        yield worker
    except BaseException:
        print(worker.log.read_text()[-6000:])
        raise
    finally:
        worker.process.kill()
        worker.process.wait()


@pytest.fixture
def nodes(applied: Installed) -> Iterator[list[str]]:
    """Four nodes; an app is on the first two."""
    team = applied.cluster
    name = f"adv-{uuid.uuid4().hex[:5]}"
    first = list(team.pool(name, nodes=2, cpu="4", memory="16Gi", labels={"team": name}))
    spec = {"nodeSelector": {"team": name}, "terminationGracePeriodSeconds": 1}
    team.deployment(name, replicas=4, cpu="500m", spec=spec)
    team.eventually(lambda: len(team.running(f"app={name}")) == 4, within=60)
    more = list(team.pool(f"{name}-more", nodes=2, cpu="4", memory="16Gi", labels={"team": name}))
    yield [*first, *more]
    team.delete("Deployment", name)


def author_of(ours: Cluster, rules: list[Object] | None = None) -> str:
    """A user with the role of the page, or another one, who may create orders."""
    user, role = f"author-{uuid.uuid4().hex[:5]}", role_of_page()
    role["metadata"]["name"] = f"role-{user}"
    if rules is not None:
        role["rules"] = rules
    grant_role(ours, user, role)
    may_order(ours, user)
    return user


def test_a_tenant_without_the_role_creates_no_order(applied: Installed, ours: Cluster) -> None:
    mine = tenant(applied.cluster)
    denied(lambda: mine.create(order("n1", by="anybody")))
    denied(lambda: Cluster(mine.kubeconfig, ours.namespace, ours.plane).create(order("n1", by="anybody")))


def test_nobody_orders_in_the_name_of_another_user(ours: Cluster) -> None:
    user = author_of(ours)
    author = as_user(ours, user, "team-a")
    # Not stored: an order that went through before the policy was in force would exist ever after.
    create = lambda: author.create(order("n1", by="kubernetes-admin"), dryRun="All")  # noqa: E731
    ours.eventually(lambda: "spec.by" in denied(create))
    assert "spec.groups" in denied(lambda: author.create(order("n1", by=user, groups=["system:masters"])))
    assert "spec.groups" in denied(lambda: author.create(order("n1", by=user, groups=["team-a", "team-b"])))
    author.create(order("n1", name=f"own-{user}", by=user, groups=["team-a"]))
    # A person who may update orders still changes nothing of the spec.
    for change in ({"by": "kubernetes-admin"}, {"nodes": ["n2"]}, {"force": True}, {"groups": ["system:masters"]}):
        assert "cannot be changed" in denied(
            lambda change=change: ours.patch("DrainOrder", f"own-{user}", {"spec": change})
        )
    ours.delete("DrainOrder", f"own-{user}")


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"nodes": ["a"], "pool": "b"},
        {"nodes": ["a"] * 2},
        {"nodes": [f"n{number}" for number in range(501)]},
        {"nodes": ["a"], "why": "x" * 501},
        {"nodes": ["a"], "timeout": "soon"},
        {"nodes": ["a"], "until": "2026-11-29t16:00:00z"},
        {"nodes": ["a"], "until": "2026-11-29T23:59:60Z"},
        {"nodes": ["a"], "until": "2026-11-29T24:00:00Z"},
        {"nodes": ["a"], "until": "2026-11-29T16:00:00+25:00"},
        {"nodes": ["a"], "atOnce": 0},
        {"nodes": ["a"], "override": ["Rights"]},
    ],
)
def test_what_the_schema_does_not_allow_is_refused(ours: Cluster, spec: Object) -> None:
    document = order(name="odd", by="kubernetes-admin")
    document["spec"] |= spec
    denied(lambda: ours.create(document))


def test_an_author_without_rights_to_nodes_drains_nothing(ours: Cluster, compactor: Worker, nodes: list[str]) -> None:
    rules = role_of_page()["rules"]
    without_nodes = [rule for rule in rules if rule["resources"] != ["nodes"]]
    without_evictions = [rule for rule in rules if rule["resources"] != ["pods/eviction"]]
    for number, partial in enumerate((without_nodes, without_evictions, [])):
        user = author_of(ours, partial or [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}])
        create_order(ours, *nodes[:2], user=user, name=f"weak-{number}")
        told = wait_for_phase(ours, "Refused", f"weak-{number}", within=40)
        assert told["reason"] == "order-author-not-permitted"
        ours.delete("DrainOrder", f"weak-{number}")
    assert not cordoned(ours, nodes)


def test_an_order_of_every_node_is_refused(ours: Cluster, compactor: Worker, nodes: list[str]) -> None:
    user = author_of(ours)
    master = f"master-{uuid.uuid4().hex[:5]}"
    labels = {"node-role.kubernetes.io/control-plane": ""}
    ours.create(objects.node(master, cpu="4", memory="16Gi", pods=110, labels=labels, taints=()))
    karpenter = f"karpenter-{uuid.uuid4().hex[:5]}"
    labels = {"karpenter.sh/nodepool": "default", "karpenter.sh/initialized": "true"}
    ours.create(objects.node(karpenter, cpu="4", memory="16Gi", pods=110, labels=labels, taints=()))
    wishes: list[Object] = [
        {"selector": "!no-such-label"},
        {"nodes": [nodes[0], master]},
        {"nodes": [nodes[0], karpenter]},
        {"nodes": [nodes[0], "no-such-node"]},
        {"nodes": [node["metadata"]["name"] for node in ours.list("Node", everywhere=True)]},
    ]
    for number, wish in enumerate(wishes):
        create_order(ours, user=user, name=f"all-{number}", force=True, overrideProtection=True, **wish)
        assert wait_for_phase(ours, "Refused", f"all-{number}", within=40)["reason"] == "order-wrong-nodes"
        ours.delete("DrainOrder", f"all-{number}")
    assert not cordoned(ours, [*nodes, master, karpenter])
    for name in (master, karpenter):
        ours.delete("Node", name)


def test_rights_that_are_taken_away_stop_the_order_and_give_the_cordons_back(
    applied: Installed, ours: Cluster, compactor: Worker, nodes: list[str]
) -> None:
    user = author_of(ours)
    app = nodes[0].rpartition("-")[0]
    applied.cluster.patch(
        "Deployment",
        app,
        {"spec": {"template": {"metadata": {"annotations": {"testbed.trimtab.dev/ready-after": "20s"}}}}},
    )
    applied.cluster.eventually(lambda: len(applied.cluster.running(f"app={app}")) == 4, within=180)
    create_order(ours, *nodes[:2], user=user, name="lost")
    ours.eventually(lambda: status(ours, "lost").get("phase") == "Draining", within=40)
    ours.delete("ClusterRoleBinding", f"role-{user}-{user}")
    told = wait_for_phase(ours, "Failed", "lost", within=90)
    assert told["reason"] == "order-author-not-permitted"
    ours.eventually(lambda: not cordoned(ours, nodes), within=30)
    assert not [name for name in nodes if noted(ours.get("Node", name))]
    assert pods_on(applied.cluster, nodes[:2]), "not all pods were evicted"
    ours.delete("DrainOrder", "lost")


def test_without_the_policy_no_order_is_accepted(ours: Cluster, compactor: Worker, nodes: list[str]) -> None:
    """The binding is gone for a while, and a user names an administrator; then it is there again."""
    user = author_of(ours)
    binding = ours.get("ValidatingAdmissionPolicyBinding", POLICY)
    ours.delete("ValidatingAdmissionPolicyBinding", POLICY)
    author = as_user(ours, user)

    def is_created() -> bool:
        try:
            author.create(order(*nodes[:2], name="claims", by="kubernetes-admin", groups=["system:masters"]))
        except Exception:
            return False
        return True

    ours.eventually(is_created, within=30, what="the policy out of force")
    told = wait_for_phase(ours, "Refused", "claims", within=40)
    assert told["reason"] == "order-author-unproven"
    for key in ("resourceVersion", "uid", "creationTimestamp", "managedFields", "generation"):
        binding["metadata"].pop(key, None)
    # What was created before does not become true by the policy.
    ours.delete("DrainOrder", "claims")
    ours.eventually(is_created, within=30)
    ours.create(binding)
    assert wait_for_phase(ours, "Refused", "claims", within=40)["reason"] == "order-author-unproven"
    ours.delete("DrainOrder", "claims")
    assert not cordoned(ours, nodes)
    wait_for_margin()


def test_only_the_compactor_writes_the_status(applied: Installed, ours: Cluster) -> None:
    user = author_of(ours)
    create_order(ours, "n1", user=user, name="told")
    path = f"/apis/trimtab.dev/v1alpha1/namespaces/{ours.namespace}/drainorders/told/status"
    body = {"status": {"phase": "Done", "message": "all is well"}}

    def write(who: Cluster) -> None:
        who.api.request("PATCH", path, body, content_type="application/merge-patch+json")

    assert "only the compactor" in denied(lambda: write(ours))
    denied(lambda: write(as_user(ours, user)))
    stolen = thief(applied, "compactor")
    write(stolen)
    denied(lambda: stolen.patch("DrainOrder", "told", {"spec": {"force": True}}))
    denied(lambda: stolen.create(order("n1", name="mine", by="system:serviceaccount:trimtab-system:trimtab-compactor")))
    for process in ("webhook", "watchdog", "recommender"):
        denied(lambda process=process: write(thief(applied, process)))
    ours.delete("DrainOrder", "told")


def test_a_forged_annotation_joins_no_order(
    applied: Installed, ours: Cluster, compactor: Worker, nodes: list[str]
) -> None:
    """A node is annotated as if the order had cordoned it: by a copy of a true annotation, and by an invented one."""
    user = author_of(ours)
    create_order(ours, nodes[0], user=user, name="true")
    wait_for_phase(ours, "Done", "true", within=60)
    uid = ours.get("DrainOrder", "true")["metadata"]["uid"]
    copy = ours.get("Node", nodes[0])["metadata"]["annotations"][NOTE]
    invented = json.dumps({"note": {"drain": "d", "pool": "", "since": 1, "order": {"order": uid}}, "signature": "x"})
    before = pods_on(applied.cluster, [nodes[1]])
    for node, text in ((nodes[1], copy), (nodes[2], invented)):
        ours.patch("Node", node, {"metadata": {"annotations": {NOTE: text}}, "spec": {"unschedulable": True}})
    ours.delete("DrainOrder", "true")
    ours.eventually(lambda: not cordoned(ours, [nodes[0]]), within=40)
    assert cordoned(ours, nodes) == {nodes[1], nodes[2]}, "what the order did not cordon, it does not uncordon"
    assert pods_on(applied.cluster, [nodes[1]]) == before
    for node in nodes[1:3]:
        ours.patch("Node", node, {"metadata": {"annotations": {NOTE: None}}, "spec": {"unschedulable": None}})
