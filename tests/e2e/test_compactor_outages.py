"""An API server that answers 429, 500 or not at all for a minute, or starts anew: nothing broken, nothing forgotten."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

from tests.controlplane.cluster import Cluster
from tests.controlplane.troubled import relay
from tests.controlplane.witness import Witness
from tests.e2e.compactors import USER, Compactor, budget, compactor, is_cordoned, nodes, noted, pool, state

MINUTE = 60.0


def five_nodes(cluster: Cluster, name: str) -> None:
    """Ten pods of 900m of two workloads with a budget of one each: three nodes of four cores would do."""
    cluster.pool(name, nodes=5, cpu="4", memory="16Gi")
    slow = {"testbed.trimtab.dev/ready-after": "2s"}
    for app in ("a", "b"):
        cluster.deployment(app, replicas=5, cpu="900m", annotations=slow, spec={"nodeSelector": {"pool": name}})
        cluster.apply(budget(app))
    cluster.eventually(lambda: len(cluster.running()) == 10, within=60)
    cluster.apply(pool(cluster, name))


def empty(cluster: Cluster, name: str) -> list[str]:
    return [node["metadata"]["name"] for node in nodes(cluster, name) if (noted(node) or {}).get("emptied")]


def is_sound(cluster: Cluster, one: Compactor, name: str) -> None:
    """Two nodes are empty and left to the autoscaler, each after one drain; nothing else of ours is on any node."""
    assert len(cluster.running()) == 10
    gone = set(empty(cluster, name))
    assert {node["metadata"]["name"] for node in nodes(cluster, name) if is_cordoned(node) or noted(node)} == gone
    assert not one.told("closed")


def test_a_minute_of_refusals_errors_and_silence(cluster: Cluster, tmp_path: Path) -> None:
    name = f"ill-{cluster.namespace[-5:]}"
    five_nodes(cluster, name)
    login = cluster.plane.kubeconfig_for(USER, "system:masters")
    with (
        relay(login, tmp_path) as (troubled, path),
        Witness(cluster) as witness,
        compactor(cluster, tmp_path, KUBECONFIG=str(path)) as one,
    ):
        cluster.eventually(lambda: one.told("evicted"), within=30)
        before = cluster.eventually(lambda: (state := remembered(cluster, name)) and state["evictions"] and state)
        troubled.trouble, until = 0.5, time.monotonic() + MINUTE
        while time.monotonic() < until:
            assert one.process.poll() is None
            time.sleep(0.5)
        troubled.trouble = 0.0
        cluster.eventually(lambda: len(empty(cluster, name)) == 2, within=60, what="two nodes emptied")
        cluster.eventually(lambda: is_sound(cluster, one, name) or True, within=10)
        is_kept(before, remembered(cluster, name))
    assert set(troubled.failed) == {"429", "500", "hang", "untold"}
    assert witness.broken == []
    assert not witness.waiting()


def remembered(cluster: Cluster, name: str) -> dict[str, Any]:
    """What must outlive an outage."""
    actual_state = state(cluster, name)
    return {"under": actual_state.get("under", {}), "evictions": actual_state.get("evictions", [])}


def is_kept(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Nodes are under the line since the same time, and no eviction of the hour is forgotten."""
    stayed = before["under"].keys() & after["under"].keys()
    assert stayed
    assert {n: after["under"][n] for n in stayed} == {n: before["under"][n] for n in stayed}
    assert after["evictions"][: len(before["evictions"])] == before["evictions"]


def test_an_api_server_that_is_killed_and_starts_anew(cluster: Cluster, tmp_path: Path) -> None:
    name = f"anew-{cluster.namespace[-5:]}"
    five_nodes(cluster, name)
    # The played kubelets, which start anew too, wait for their nodes' old leases: 40 s in which no pod ends.
    with Witness(cluster) as witness, compactor(cluster, tmp_path, POD_TERMINATION_TIMEOUT_SECONDS="60") as one:
        cluster.eventually(lambda: one.told("evicted"), within=30)
        before = cluster.eventually(lambda: (state := remembered(cluster, name)) and state["evictions"] and state)
        cluster.restart("kube-apiserver", signal.SIGKILL)
        cluster.eventually(lambda: len(empty(cluster, name)) == 2, within=150, what="two nodes emptied")
        cluster.eventually(lambda: is_sound(cluster, one, name) or True, within=10)
        begun = [line["node"] for line in one.told("started")]
        assert len(begun) == len(set(begun)), "the drain that was under way went on: it did not begin again"
        assert one.process.poll() is None
        is_kept(before, remembered(cluster, name))
        assert len(remembered(cluster, name)["evictions"]) == len(one.told("evicted"))
    assert witness.broken == []


def test_what_was_observed_goes_on_in_a_fresh_process(cluster: Cluster, tmp_path: Path) -> None:
    name = f"fresh-{cluster.namespace[-5:]}"
    five_nodes(cluster, name)
    with compactor(cluster, tmp_path / "one") as one:
        cluster.eventually(lambda: one.told("evicted"), within=30)
        before = cluster.eventually(lambda: (state := remembered(cluster, name)) and state["evictions"] and state)
        one.stop(signal.SIGKILL)
    with compactor(cluster, tmp_path / "two"):
        cluster.eventually(lambda: len(empty(cluster, name)) == 2, within=90, what="two nodes emptied")
        is_kept(before, remembered(cluster, name))
