"""The compactor's token, where it may scale: steps of a surge, and nothing that takes a service down."""

from __future__ import annotations

import pytest

from tests.controlplane.cluster import Cluster
from tests.e2e.adversary.identities import Object, denied, thief
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
    in_force = lambda: "trimtab-compactor-scale" in denied(lambda: scale(stolen, 0, **NOT_STORED))  # noqa: E731
    owner.eventually(in_force, what="the policy in force")
    return stolen, owner


NOT_STORED = {"dryRun": "All"}
"""Whether the policy is in force is asked without a change: once the count was 0, the policy permits that it stays so,
and nothing is refused ever after."""


def scale(cluster: Cluster, replicas: int, **query: str) -> object:
    return cluster.patch("Deployment", "bank", {"spec": {"replicas": replicas}}, sub="scale", **query)


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


MARK = "trimtab.dev/min-replicas-before"


def hpa(
    cluster: Cluster, least: int, mark: str | None = None, *, is_stored: bool = True, spec: Object | None = None
) -> object:
    """Writes `minReplicas` and the annotation, as the compactor does; `spec`: further fields."""
    change = {"metadata": {"annotations": {MARK: mark}}, "spec": {"minReplicas": least, **(spec or {})}}
    return cluster.patch("HorizontalPodAutoscaler", "bank", change, **({} if is_stored else NOT_STORED))


@pytest.fixture(scope="module")
def autoscaled(thief_and_owner: tuple[Cluster, Cluster]) -> tuple[Cluster, Cluster]:
    """An HPA whose controller has last counted four pods."""
    stolen, owner = thief_and_owner
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "unknown"}
    metrics = [
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
    ]
    owner.apply(
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "bank"},
            "spec": {"scaleTargetRef": ref, "minReplicas": 2, "maxReplicas": 20, "metrics": metrics},
        }
    )
    status = {"status": {"currentReplicas": 4, "desiredReplicas": 4}}
    owner.patch("HorizontalPodAutoscaler", "bank", status, sub="status")
    in_force = lambda: "trimtab-compactor-autoscalers" in denied(lambda: hpa(stolen, 1, is_stored=False))  # noqa: E731
    owner.eventually(in_force, what="the policy in force")
    return stolen, owner


@pytest.mark.parametrize(
    ("before", "stored", "after", "mark", "spec"),
    [
        (2, None, 1, None, {}),
        (2, None, 8, "2-8", {}),
        (2, None, 5, None, {}),
        (2, None, 5, "1-5", {}),
        (2, None, 5, "2-5", {"maxReplicas": 30}),
        (2, None, 2, None, {"maxReplicas": 3}),
        (5, "2-5", 1, None, {}),
        (5, "2-5", 3, None, {}),
        (5, "2-5", 2, "2-5", {}),
        (6, "2-5", 2, None, {}),
        (5, None, 2, None, {}),
        (2, None, 2, "1-2", {}),
    ],
)
def test_the_token_takes_no_autoscaler_below_what_others_wrote_and_not_far_above_its_count(
    autoscaled: tuple[Cluster, Cluster], before: int, stored: str | None, after: int, mark: str | None, spec: dict
) -> None:
    stolen, owner = autoscaled
    hpa(owner, before, stored)
    assert "trimtab-compactor-autoscalers" in denied(lambda: hpa(stolen, after, mark, spec=spec))
    assert owner.get("HorizontalPodAutoscaler", "bank")["spec"]["minReplicas"] == before


def test_the_steps_of_a_surge_of_an_autoscaler_go_through(autoscaled: tuple[Cluster, Cluster]) -> None:
    stolen, owner = autoscaled
    hpa(owner, 2)
    hpa(stolen, 5, "2-5")
    hpa(stolen, 2)
    hpa(stolen, 7, "2-7")
    hpa(owner, 4)
    hpa(stolen, 4)
    stored = owner.get("HorizontalPodAutoscaler", "bank")
    assert (stored["spec"]["minReplicas"], stored["metadata"].get("annotations")) == (4, None)


def test_the_token_changes_no_deployment_and_no_autoscaler(thief_and_owner: tuple[Cluster, Cluster]) -> None:
    stolen, _ = thief_and_owner
    denied(lambda: stolen.patch("Deployment", "bank", {"spec": {"replicas": 3}}))
    denied(lambda: stolen.patch("Deployment", "bank", {"spec": {"paused": True}}))
    denied(lambda: stolen.patch("HorizontalPodAutoscaler", "bank", {"metadata": {"labels": {"a": "b"}}}))
    denied(lambda: stolen.patch("HorizontalPodAutoscaler", "bank", {"status": {"currentReplicas": 9}}, sub="status"))
