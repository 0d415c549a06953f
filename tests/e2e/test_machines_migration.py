"""Thirty nodes of one type give way to another type: room is bought first, budgets hold, nobody waits for a minute."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests.controlplane import environ, objects
from tests.controlplane.autoscaler import Autoscaler
from tests.controlplane.cluster import Cluster
from tests.controlplane.objects import Object
from tests.e2e.compactors import Eye, budget, compactor, nodes, pool

# A migration of thirty nodes takes minutes.
pytestmark = pytest.mark.slow

NODES = 30
TYPES = {"old": "m5.xlarge", "new": "m7i.2xlarge"}
MAP = "cluster-autoscaler-priority-expander"


def labels_of(which: str, name: str, fleet: str) -> dict[str, str]:
    return {
        "nodepool": name,
        "fleet": fleet,
        "node.kubernetes.io/instance-type": TYPES[which],
        "topology.kubernetes.io/region": "us-east-1",
        "kubernetes.io/arch": "amd64",
    }


def trimtab(cluster: Cluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    login = ("--cluster", "live", "--kubeconfig", str(cluster.kubeconfig))
    return subprocess.run(
        [sys.executable, "-m", "trimtab", "machines", *arguments, *login],
        env=environ.plain(),
        capture_output=True,
        text=True,
        check=False,
    )


def test_thirty_nodes_move_to_another_type(cluster: Cluster, tmp_path: Path) -> None:
    fleet = f"fleet-{cluster.namespace[-5:]}"
    old, new = f"old-{cluster.namespace[-5:]}", f"new-{cluster.namespace[-5:]}"
    cluster.pool(old, nodes=NODES, cpu="4", memory="16Gi", labels=labels_of("old", old, fleet))
    cluster.pool(new, nodes=1, cpu="8", memory="32Gi", labels=labels_of("new", new, fleet))
    cluster.patch("Node", f"{new}-0", {"spec": {"unschedulable": True}})
    for number in range(10):
        name = f"web-{number}"
        cluster.deployment(name, replicas=6, cpu="1700m", memory="6Gi", spec={"nodeSelector": {"fleet": fleet}})
        cluster.create(budget(name, unavailable=1))
    cluster.eventually(lambda: len(cluster.running()) == 60, within=120)
    cluster.patch("Node", f"{new}-0", {"spec": {"unschedulable": None}})
    settings = {"underUsed": {"cpu": 100, "memory": 100, "for": 0}, "protect": {"singleReplicas": False}}
    cluster.apply(pool(cluster, old, **settings))

    def add(pod: Object) -> str:
        selector = pod["spec"].get("nodeSelector", {})
        if selector.get("nodepool") != new and selector.get("fleet") != fleet:
            return ""
        machine = f"{new}-{time.monotonic_ns()}"
        values = {"pool": new, **labels_of("new", new, fleet)}
        cluster.create(objects.node(machine, cpu="8", memory="32Gi", pods=110, labels=values, taints=()))
        return new

    def group_of(node: Object) -> str:
        name = node["metadata"]["labels"].get("nodepool", "")
        return name if name in (old, new) else ""

    eye = Eye(cluster, every=0.5, selector="app", watches_budgets=True, waits_for_start=True)
    # The new pool keeps a node, as its group would be set to: from that node its labels and its type are known.
    times = {"unneeded": 25, "least": 0, "minimums": {new: 1}}
    with Autoscaler(cluster, group_of, add, **times, tells_groups=True) as autoscaler, eye:
        groups = [f"gke-{name}-grp={TYPES[which]}" for which, name in (("old", old), ("new", new))]
        chosen = [word for group in groups for word in ("--group", group)]
        before = trimtab(cluster, "priorities", "--pool", old, *chosen, "--legacy", f"gke-{old}-grp", "--apply")
        assert before.returncode == 0, before.stderr
        written = yaml.safe_load(cluster.get("ConfigMap", MAP, "kube-system")["data"]["priorities"])
        assert written == {100: [f"^gke-{new}-grp$"], 1: [f"^gke-{old}-grp$"], 0: [".*"]}
        with compactor(cluster, tmp_path):
            log = tmp_path / "legacy.log"
            with log.open("w") as output:
                following = subprocess.Popen(
                    [
                        sys.executable,
                        "-m",
                        "trimtab",
                        "machines",
                        "legacy",
                        "--pool",
                        old,
                        "--to-pool",
                        new,
                        "--apply",
                        "--batch",
                        "6",
                        "--follow",
                        "3",
                        "--system-namespace",
                        cluster.namespace,
                        "--cluster",
                        "live",
                        "--kubeconfig",
                        str(cluster.kubeconfig),
                    ],
                    env=environ.plain(),
                    stdout=output,
                    stderr=subprocess.STDOUT,
                )
            try:
                following.wait(timeout=560)
            except subprocess.TimeoutExpired:
                print(log.read_text()[-3000:])
                raise
            finally:
                following.kill()
                following.wait()
            text = log.read_text()
            assert following.returncode == 0, text
            assert "taint trimtab.dev/legacy:NoSchedule" in text
            # The stand-in takes an empty node after 25 looks, which take longer where the machine is busy.
            cluster.eventually(lambda: not nodes(cluster, old), within=300, what="the old nodes are gone")
        cluster.eventually(lambda: len(cluster.running()) >= 60, within=60)
    assert eye.broken_budgets == set()
    assert eye.longest_wait <= 60, eye.longest_wait
    print(f"longest Pending {eye.longest_wait:.0f} s, {len(autoscaler.added)} nodes added")
    assert "trimtab-placeholder" not in {
        one["metadata"]["name"] for one in cluster.list("PriorityClass", everywhere=True)
    }
    undone = trimtab(cluster, "priorities", "--undo")
    assert undone.returncode == 0, undone.stderr
    assert MAP not in {one["metadata"]["name"] for one in cluster.list("ConfigMap", everywhere=True)}


def test_undo_leaves_nothing(cluster: Cluster) -> None:
    old, new = f"old-{cluster.namespace[-5:]}", f"new-{cluster.namespace[-5:]}"
    foreign = {"key": "team", "value": "a", "effect": "PreferNoSchedule"}
    cluster.pool(old, nodes=2, cpu="4", memory="16Gi", labels=labels_of("old", old, old), taints=[foreign])
    cluster.pool(new, nodes=1, cpu="1", memory="2Gi", labels=labels_of("new", new, old))
    cluster.deployment("web", replicas=2, cpu="1700m", spec={"nodeSelector": {"nodepool": old}})
    cluster.eventually(lambda: len(cluster.running()) == 2, within=60)
    process = trimtab(
        cluster,
        "legacy",
        "--pool",
        old,
        "--to-pool",
        new,
        "--apply",
        "--no-compare",
        "--system-namespace",
        cluster.namespace,
    )
    assert process.returncode == 0, process.stderr
    assert "trimtab.dev/legacy:PreferNoSchedule" in process.stdout, process.stdout
    text = "trimtab.dev/placeholder"
    assert len(cluster.list("Pod", selector=text)) == 2
    undone = trimtab(cluster, "legacy", "--pool", old, "--undo", "--system-namespace", cluster.namespace)
    assert undone.returncode == 0, undone.stderr
    cluster.eventually(lambda: not cluster.list("Pod", selector=text))
    for node in nodes(cluster, old):
        assert [taint["key"] for taint in node["spec"].get("taints", ())] == ["team"]
