"""Beside our own webhook: successors are admitted by today's policies, and what was planned to fit still fits."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.witness import Witness
from tests.e2e.compactors import budget, captured, compactor, nodes, noted, planned, pool, state
from tests.e2e.ours import Ours, following


@pytest.fixture
def ours(whole_cluster: Cluster, tmp_path: Path) -> Iterator[Ours]:
    with following(whole_cluster, tmp_path / "ours") as installation:
        yield installation


@pytest.fixture
def team(cluster: Cluster) -> Iterator[Cluster]:
    """A namespace that is not the compactor's own: policies leave that alone."""
    actual_cluster = cluster.in_namespace(f"team-{uuid.uuid4().hex[:5]}")
    yield actual_cluster
    actual_cluster.clean_up()
    actual_cluster.delete("Namespace", actual_cluster.namespace)


def test_what_a_policy_would_raise_is_planned_with_what_it_would_be(
    ours: Ours, cluster: Cluster, team: Cluster, tmp_path: Path
) -> None:
    """Two pods of half a core on each of four nodes; the policy, that came later, asks 1.5 cores for each new one."""
    name = f"more-{cluster.namespace[-5:]}"
    cluster.pool(name, nodes=4, cpu="4", memory="16Gi")
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    spec = {"nodeSelector": {"pool": name}, "topologySpreadConstraints": [spread]}
    team.deployment("web", replicas=8, cpu="500m", memory="100Mi", spec=spec)
    team.apply(budget("web", unavailable=2))
    team.eventually(lambda: len(team.running("app=web")) == 8, within=60)
    ours.serves(team)
    ours.policy(team, "more", "{requests: {cpu: {from: policy, otherwise: 1500m, when: always}}}")
    cluster.apply(pool(cluster, name, mode="rehearse"))
    with compactor(cluster, tmp_path / "dry") as one:
        cluster.eventually(lambda: one.told("started"), within=30)
        plan = state(cluster, name)["plan"]
        assert len(plan) == 2, "without the policy one node holds all eight, and three could go"
        assert planned(cluster, name) == plan
        assert planned(cluster, name, captured(cluster, tmp_path)) == plan
    cluster.apply(pool(cluster, name))
    with Witness(cluster) as witness, compactor(cluster, tmp_path / "one", MOVE_COOLDOWN_SECONDS="0") as one:
        cluster.eventually(lambda: len(one.told("emptied")) == 2, within=60, what="two nodes emptied")
        time.sleep(6)  # three plans
        gone = [node for node in nodes(cluster, name) if (noted(node) or {}).get("emptied")]
        assert (len(gone), one.told("released")) == (2, [])
    assert witness.longest_wait < 5
    cpus = sorted(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] for pod in team.running("app=web"))
    assert cpus == ["1500m"] * 4 + ["500m"] * 4
