"""What other users do to a DrainOrder and to its nodes: they delete it, change its policy, and bring pods."""

from __future__ import annotations

import uuid
from typing import Any

from tests.controlplane.cluster import Cluster
from tests.e2e.adversary.identities import denied
from tests.e2e.adversary.test_drain_orders import POLICY, author_of, compactor, nodes, ours
from tests.e2e.drain_orders import as_user, create_order, order, status, wait_for_margin, wait_for_phase
from tests.e2e.drains import cordoned, grant_role, pods_on, role_of_page
from tests.e2e.installed import Installed
from tests.e2e.replicas import Worker

__all__ = ["compactor", "nodes", "ours"]
ONLY_READS = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]


def test_an_order_is_deleted_by_its_author_by_who_may_patch_nodes_and_with_its_namespace(ours: Cluster) -> None:
    owner, tenant, operator = author_of(ours), author_of(ours, ONLY_READS), author_of(ours)
    path = f"/apis/trimtab.dev/v1alpha1/namespaces/{ours.namespace}/drainorders"
    for name in ("repair", "second", "third"):
        create_order(ours, "no-such-node", user=owner, name=name)
    weak = as_user(ours, tenant)
    assert "uncordons its nodes" in denied(lambda: weak.delete("DrainOrder", "repair"))
    for rights in ("delete", "deletecollection"):
        grant_role(
            ours,
            tenant,
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRole",
                "metadata": {"name": f"{rights}-{tenant}"},
                "rules": [{"apiGroups": ["trimtab.dev"], "resources": ["drainorders"], "verbs": [rights]}],
            },
        )
    denied(lambda: weak.api.request("DELETE", path))
    assert status(ours, "repair") is not None
    as_user(ours, owner).delete("DrainOrder", "repair")
    as_user(ours, operator).delete("DrainOrder", "second")
    create_order(ours, "no-such-node", user=tenant, name="own")
    weak.delete("DrainOrder", "own")
    ours.delete("DrainOrder", "third")
    scratch = f"scratch-{uuid.uuid4().hex[:5]}"
    ours.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": scratch}})
    there = Cluster(ours.kubeconfig, scratch, ours.plane)
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    own = ours.api.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
    there.create(order("n1", name="left", by=own["status"]["userInfo"]["username"]))
    ours.api.request("DELETE", f"/api/v1/namespaces/{scratch}")
    ours.eventually(
        lambda: not [one for one in ours.list("Namespace") if one["metadata"]["name"] == scratch], within=60
    )


def test_a_policy_that_was_narrowed_and_restored_between_two_looks_proves_nothing(
    ours: Cluster, compactor: Worker, nodes: list[str]
) -> None:
    """A client adds matchResources to the binding, which then matches no request, and removes them. The managed fields
    do not say so."""
    user = author_of(ours)
    author = as_user(ours, user)
    path = f"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/{POLICY}"
    before = ours.get("ValidatingAdmissionPolicyBinding", POLICY)

    def narrow(resources: Any) -> None:
        body = {"spec": {"matchResources": resources}}
        ours.api.request("PATCH", path, body, content_type="application/merge-patch+json")

    def is_created() -> bool:
        try:
            author.create(order(*nodes[:2], name="claims", by="kubernetes-admin", groups=["system:masters"]))
        except Exception:
            return False
        return True

    try:
        narrow({"namespaceSelector": {"matchLabels": {"no": "namespace"}}})
        ours.eventually(is_created, within=30, what="the policy out of force")
        narrow(None)
        assert wait_for_phase(ours, "Refused", "claims", within=40)["reason"] == "order-author-unproven"
        assert not cordoned(ours, nodes)
        # What is created later is believed again, as soon as the compactor has observed the change.
        ours.eventually(lambda: is_believed(ours, user, nodes), within=60, what="an order is believed")
    finally:
        for name in ("claims", "later"):
            ours.delete("DrainOrder", name)
        # An object of the first generation proves itself to the tests that follow.
        ours.delete("ValidatingAdmissionPolicyBinding", POLICY)
        for key in ("resourceVersion", "uid", "creationTimestamp", "managedFields", "generation"):
            before["metadata"].pop(key, None)
        ours.create(before)
        wait_for_margin()


def is_believed(ours: Cluster, user: str, nodes: list[str]) -> bool:
    create_order(ours, nodes[0], user=user, name="later")
    ours.eventually(lambda: status(ours, "later").get("phase") in ("Refused", "Draining", "Done"), within=30)
    if status(ours, "later")["phase"] != "Refused":
        return True
    ours.delete("DrainOrder", "later")
    return False


def test_permissions_for_single_nodes_and_namespaces_suffice_and_no_others_count(
    applied: Installed, ours: Cluster, compactor: Worker, nodes: list[str]
) -> None:
    user = author_with_narrow_rights(ours, applied.cluster, nodes[:2])
    create_order(ours, nodes[0], nodes[2], user=user, name="wide")
    assert wait_for_phase(ours, "Refused", "wide", within=40)["reason"] == "order-author-not-permitted"
    create_order(ours, *nodes[:2], user=user, name="narrow")
    wait_for_phase(ours, "Done", "narrow", within=90)
    for name in ("wide", "narrow"):
        ours.delete("DrainOrder", name)
    ours.eventually(lambda: not cordoned(ours, nodes), within=40)


def author_with_narrow_rights(ours: Cluster, team: Cluster, nodes: list[str]) -> str:
    """A user who may patch these nodes by name, and evict pods in the namespace of the team."""
    wide = [rule for rule in role_of_page()["rules"] if rule["resources"] not in (["nodes"], ["pods/eviction"])]
    reads = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}
    patches = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["patch"], "resourceNames": nodes}
    user = author_of(ours, [*wide, reads, patches])
    subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": f"evict-{user}", "namespace": team.namespace},
        "rules": [{"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]}],
    }
    team.apply(role)
    team.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": f"evict-{user}", "namespace": team.namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": f"evict-{user}"},
            "subjects": [subject],
        }
    )
    return user


def test_a_pod_of_a_tenant_on_a_cordoned_node_ends_no_order_of_other_nodes(
    applied: Installed, ours: Cluster, compactor: Worker, nodes: list[str]
) -> None:
    """The tenant names the node in spec.nodeName, which no cordon prevents, in a namespace in which the author may not
    evict."""
    team = applied.cluster
    user, app = author_with_narrow_rights(ours, team, nodes[:2]), nodes[0].rpartition("-")[0]
    slow = {"template": {"metadata": {"annotations": {"testbed.trimtab.dev/ready-after": "3s"}}}}
    team.patch("Deployment", app, {"spec": slow})
    team.eventually(lambda: len(team.running(f"app={app}")) == 4, within=90)
    create_order(ours, *nodes[:2], user=user, name="beside")
    ours.eventually(lambda: cordoned(ours, nodes) == set(nodes[:2]), within=40)
    space = f"tenant-{uuid.uuid4().hex[:5]}"
    ours.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}})
    there = Cluster(ours.kubeconfig, space, ours.plane)
    there.deployment("squat", replicas=1, cpu="10m", spec={"nodeName": nodes[1]})
    told = wait_for_phase(ours, "Failed", "beside", within=120)
    assert told["reason"] == "order-pod-not-permitted", told
    assert [remark["node"] for remark in told["failed"]] == [nodes[1]]
    assert not pods_on(team, [nodes[0]])
    assert pods_on(there, [nodes[1]])
    assert cordoned(ours, nodes) == set(nodes[:2])
    there.delete("Deployment", "squat")
    ours.delete("DrainOrder", "beside")
    ours.eventually(lambda: not cordoned(ours, nodes), within=40)
