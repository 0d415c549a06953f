"""The compactor's token, where it may scale: steps of a surge, and nothing that takes a service down."""

from __future__ import annotations

import pytest

from tests.controlplane.cluster import Cluster
from tests.e2e.adversary.identities import denied, thief
from tests.e2e.installed import Installed
from trimtab.installation.rbac import render_scale_role


@pytest.fixture(scope="module")
def thief_and_owner(applied: Installed) -> tuple[Cluster, Cluster]:
    """Who holds the compactor's token, and our namespace with a Deployment, in which the token may scale."""
    owner = Cluster(applied.cluster.kubeconfig, applied.values.namespace, applied.cluster.plane)
    for manifest in render_scale_role("compactor", applied.values.namespace, applied.values):
        owner.apply(manifest)
    stolen = thief(applied, "compactor")
    owner.deployment("bank", replicas=2, cpu="10m", spec={"nodeSelector": {"no": "node"}})
    owner.eventually(lambda: scale(stolen, 2), what="the right in force")
    owner.eventually(lambda: "trimtab-compactor-scale" in denied(lambda: scale(stolen, 0)), what="the policy in force")
    return stolen, owner


def scale(cluster: Cluster, replicas: int) -> object:
    return cluster.patch("Deployment", "bank", {"spec": {"replicas": replicas}}, sub="scale")


@pytest.mark.parametrize(("before", "after"), [(2, 0), (1, 0), (0, 1), (0, 3), (1, 5), (2, 6), (9, 5), (5, 1)])
def test_the_token_scales_nothing_to_or_from_zero_or_by_more_than_a_surge(
    thief_and_owner: tuple[Cluster, Cluster], before: int, after: int
) -> None:
    stolen, owner = thief_and_owner
    scale(owner, before)
    assert "trimtab-compactor-scale" in denied(lambda: scale(stolen, after))
    assert owner.get("Deployment", "bank")["spec"]["replicas"] == before


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1), (3, 6), (6, 3)])
def test_the_steps_of_a_surge_go_through(thief_and_owner: tuple[Cluster, Cluster], before: int, after: int) -> None:
    stolen, owner = thief_and_owner
    scale(owner, before)
    scale(stolen, after)
    assert owner.get("Deployment", "bank")["spec"]["replicas"] == after


def test_the_token_changes_no_deployment_and_no_autoscaler(thief_and_owner: tuple[Cluster, Cluster]) -> None:
    stolen, _ = thief_and_owner
    denied(lambda: stolen.patch("Deployment", "bank", {"spec": {"replicas": 3}}))
    denied(lambda: stolen.patch("Deployment", "bank", {"spec": {"paused": True}}))
    denied(lambda: stolen.patch("HorizontalPodAutoscaler", "bank", {"spec": {"minReplicas": 2}}))
