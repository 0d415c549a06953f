"""A plan offline, where the owner of a pod creates the next one with other requests than the pod has now."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.snapshots import snapshot, told
from tests.cli.test_plan_policies import KEEN, evictions
from tests.cluster_of import Item, node, pod
from tests.reasons import has_facts

REVISION = "controller-revision-hash"


def small_pods(kind: str = "ReplicaSet", **more: Any) -> list[Item]:
    """Three nodes of four cores with a pod of half a core each: two nodes could go, as the pods are."""
    pods = [pod(f"web-{number}", on=f"n{number}", owner=kind, **more) for number in range(3)]
    return [*(node(f"n{number}") for number in range(3)), *pods]


def owner(kind: str = "ReplicaSet", resources: Item | None = None, version: str = "apps/v1", **more: Any) -> Item:
    """The owner of these pods, whose template requests 3.7 cores unless `resources` says otherwise."""
    large = {"requests": {"cpu": "3700m"}}
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "containers": [{"name": "c", "image": "i", "resources": large if resources is None else resources}],
            **more.pop("pod_spec", {}),
        },
    }
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": 3, "template": template, **more.get("spec", {})},
        "status": {"replicas": 3, "readyReplicas": 3, **more.get("status", {})},
    }


def test_pods_that_were_resized_below_their_template_stay_where_only_they_would_fit(tmp_path: Path) -> None:
    assert evictions(snapshot(tmp_path, *small_pods(), owner(resources={"requests": {"cpu": "500m"}}))) == 2
    report = told("plan", "--cluster", snapshot(tmp_path, *small_pods(), owner()), *KEEN)
    assert report["evictions"] == 0
    assert has_facts(report["notes"], "3 pods", "templates")


@pytest.mark.parametrize(
    ("kind", "version"), [("StatefulSet", "apps/v1"), ("ReplicationController", "v1"), ("ReplicaSet", "apps/v1")]
)
def test_every_owner_with_a_template_counts(kind: str, version: str, tmp_path: Path) -> None:
    assert evictions(snapshot(tmp_path, *small_pods(kind), owner(kind, version=version))) == 0


def test_a_job_counts_as_its_template_where_its_pods_may_move(tmp_path: Path) -> None:
    safe = {"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}}
    assert evictions(snapshot(tmp_path, *small_pods("Job", **safe))) == 2
    assert evictions(snapshot(tmp_path, *small_pods("Job", **safe), owner("Job", version="batch/v1"))) == 0


def test_limits_of_a_template_without_requests_are_its_requests(tmp_path: Path) -> None:
    assert evictions(snapshot(tmp_path, *small_pods(), owner(resources={"limits": {"cpu": "3700m"}}))) == 0


def test_a_smaller_template_reserves_what_the_pods_have(tmp_path: Path) -> None:
    large = [pod(f"web-{number}", on=f"n{number}", cpu="2500m") for number in range(3)]
    nodes = [node(f"n{number}") for number in range(3)]
    assert evictions(snapshot(tmp_path, *nodes, *large, owner(resources={"requests": {"cpu": "100m"}}))) == 0


def test_the_default_of_a_limit_range_counts_for_a_template_without_requests(tmp_path: Path) -> None:
    range_: Item = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "r", "namespace": "default"},
        "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "3700m"}}]},
    }
    assert evictions(snapshot(tmp_path, *small_pods(), owner(resources={}))) == 2
    assert evictions(snapshot(tmp_path, *small_pods(), owner(resources={}), range_)) == 0


def test_overhead_of_a_runtime_class_is_no_difference(tmp_path: Path) -> None:
    runtime_class: Item = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "vm"},
        "handler": "vm",
        "overhead": {"podFixed": {"cpu": "250m"}},
    }
    spec = {"runtimeClassName": "vm", "overhead": {"cpu": "250m"}}
    same = owner(resources={"requests": {"cpu": "500m"}}, pod_spec={"runtimeClassName": "vm"})
    report = told("plan", "--cluster", snapshot(tmp_path, *small_pods(spec=spec), same, runtime_class), *KEEN)
    assert report["evictions"] == 2
    assert not has_facts(report["notes"], "templates")


def test_without_a_template_the_largest_pod_of_the_owner_counts(tmp_path: Path) -> None:
    nodes = [node("n0", cpu="3"), node("n1", cpu="3"), node("n2")]
    pods = [pod("web-0", on="n0"), pod("web-1", on="n1"), pod("web-2", on="n2", cpu="3700m")]
    custom = {"owner": "CloneSet"}
    strange = [pod("web-0", on="n0", **custom), pod("web-1", on="n1", **custom)]
    assert evictions(snapshot(tmp_path, *nodes, *pods)) == 0
    assert evictions(snapshot(tmp_path, *nodes, *strange, pod("web-2", on="n2", cpu="3700m", **custom))) == 0
    assert evictions(snapshot(tmp_path, *nodes, *pods, owner(resources={"requests": {"cpu": "500m"}}))) == 1


def test_a_pod_of_an_old_revision_counts_as_the_largest_of_its_owner(tmp_path: Path) -> None:
    """Below its partition, a StatefulSet creates pods from the old revision, whose template is not known."""
    nodes = [node("n0", cpu="3"), node("n1", cpu="3"), node("n2")]
    old = {"owner": "StatefulSet", "labels": {REVISION: "web-1"}}
    pods = [pod("web-0", on="n0", **old), pod("web-1", on="n1", **old), pod("web-2", on="n2", cpu="3700m", **old)]
    small = {"requests": {"cpu": "500m"}}
    status = {"currentRevision": "web-1", "updateRevision": "web-2"}
    partition = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 3}}}
    held = owner("StatefulSet", small, spec=partition, status=status)
    at_once = owner("StatefulSet", small, spec={"updateStrategy": {"type": "OnDelete"}}, status=status)
    assert evictions(snapshot(tmp_path, *nodes, *pods, held)) == 0
    assert evictions(snapshot(tmp_path, *nodes, *pods, at_once)) == 1
