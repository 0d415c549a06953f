"""A policy that the harm brake holds changes no pod, until its author edits it: the status alone says so."""

from __future__ import annotations

from tests.controlplane.cluster import Cluster
from tests.e2e.installed import Installed

NAME = "e2e-sizes"


def test_a_policy_whose_status_says_so_changes_no_pod_until_it_is_edited(here: Installed, two_replicas: None) -> None:
    cluster = here.cluster
    cluster.eventually(here.calls, what="pods changed")
    generation = cluster.get("PodPolicy", NAME)["metadata"]["generation"]
    cluster.patch("PodPolicy", NAME, {"status": {"brakedGeneration": generation}}, sub="status")
    cluster.eventually(lambda: _calls(here, 4) == {False}, what="no pod changed")
    assert _mode(cluster) == "apply"
    cluster.patch("PodPolicy", NAME, {"spec": {"description": "edited"}})
    cluster.eventually(lambda: _calls(here, 4) == {True}, what="pods changed again")


def _calls(here: Installed, times: int) -> set[bool]:
    """Both replicas are asked."""
    return {here.calls() for _ in range(times)}


def _mode(cluster: Cluster) -> str:
    mode: str = cluster.get("PodPolicy", NAME)["spec"].get("mode", "apply")
    return mode
