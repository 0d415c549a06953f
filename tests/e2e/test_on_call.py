"""What a person on call wants to know first: whose cordon it is, which pools and policies there are, who leads."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.build import policies, policy
from tests.controlplane.cluster import Cluster
from tests.e2e.replicas import ROOT
from tests.reasons import has_facts
from trimtab.cluster.pool_labels import POOL_LABEL
from trimtab.policy.validating_policy import compile_validating_policy


def asked(cluster: Cluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "trimtab", *arguments, "--kubeconfig", str(cluster.kubeconfig)]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


def test_a_cordon_of_another_client_is_named_with_its_field_manager_and_its_time(cluster: Cluster) -> None:
    [node, *_] = cluster.pool(f"{cluster.namespace}-a", nodes=1)
    cluster.patch("Node", node, {"spec": {"unschedulable": True}})
    done = asked(cluster, "why", "node", node, "-o", "json")
    assert done.returncode == 0, done.stderr
    cordon = json.loads(done.stdout)["cordon"]
    assert (cordon["by"], cordon["undo"]) == ("other", [f"kubectl uncordon {node}"])
    assert "the field manager" in cordon["text"]
    assert cordon["since"]
    assert "did you mean" in asked(cluster, "why", "node", f"{node}x").stderr


def test_the_pools_of_the_cluster_are_checked(cluster: Cluster) -> None:
    name = f"{cluster.namespace}-b"
    cluster.pool(name, nodes=2)
    for pool, settings in ((name, "mode: rehearse"), (f"{name}x", "mode: act")):
        metadata = {"name": f"pool-{pool}", "labels": {POOL_LABEL: pool}}
        data = {"pool.yaml": settings}
        cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    done = asked(cluster, "pools", "check", "--cluster", "live", "--system-namespace", cluster.namespace, "-o", "json")
    report = json.loads(done.stdout)
    assert done.returncode == 1
    assert [pool["name"] for pool in report["pools"]] == [name, f"{name}x"]
    assert (f"{name}x", "pool-matches-nothing") in [(one["pool"], one["code"]) for one in report["findings"]]


def test_a_compactor_that_never_ran_is_said_to_be_so(cluster: Cluster) -> None:
    done = asked(cluster, "compactor", "status", "--system-namespace", cluster.namespace)
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert has_facts(text, "no compactor leads", "no Lease")
    assert "there is no Deployment" in text


def test_an_enforced_policy_is_listed_with_what_it_does(cluster: Cluster) -> None:
    cluster.needs_own("policies for the whole cluster")
    name = f"cost-{cluster.namespace[-5:]}"
    match = f"{{namespaces: {{include: [{cluster.namespace}-none]}}}}"
    source = policies(policy("{labels: {add: {cost: low}, required: true}}", name=name, match=match)).all[0]
    for manifest in compile_validating_policy(source, enforce=True).manifests:
        cluster.apply(manifest)
    done = asked(cluster, "policies", "list", "--cluster", "live", "-o", "json")
    assert done.returncode == 0, done.stderr
    compiled = {one["policy"]: one["denies"] for one in json.loads(done.stdout)["compiled"]}
    assert compiled[name] is True
