"""Pods of the real controllers: every one comes through us, and is known by who made it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.e2e.ours import Ours, following

NO_LIMITS = "{limits: {cpu: remove}}"
GIVEN = {"requests": {"cpu": "10m"}, "limits": {"cpu": "1"}}


@pytest.fixture(scope="module")
def ours(whole_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ours]:
    with following(whole_cluster, tmp_path_factory.mktemp("ours")) as installation:
        yield installation


def template(cluster: Cluster, app: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": cluster.image, "resources": GIVEN}]
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": containers, **spec}}


def workload(cluster: Cluster, kind: str, name: str, **spec: Any) -> dict[str, Any]:
    group = "batch/v1" if kind in ("Job", "CronJob") else "apps/v1"
    return cluster.create({"apiVersion": group, "kind": kind, "metadata": {"name": name}, "spec": spec})


def all_changed(ours: Ours, cluster: Cluster, owner: str, count: int) -> None:
    """So many pods of this owner came to be, and every one lost its limit: the policy means only that owner's."""
    selector = f"app={owner.partition('/')[2]}"
    pods = cluster.eventually(
        lambda: enough(cluster.list("Pod", selector=selector), count), within=60, what=f"{count} pods of {owner}"
    )
    names = [pod["metadata"]["name"] for pod in pods if "limits" in pod["spec"]["containers"][0]["resources"]]
    assert names == []
    assert len(pods) >= count


def enough(pods: list[dict[str, Any]], count: int) -> list[dict[str, Any]] | None:
    return pods if len(pods) >= count else None


def meant(ours: Ours, cluster: Cluster, owner: str) -> None:
    ours.policy(cluster, "owned", NO_LIMITS, f"{{owners: [{owner}]}}")
    ours.serves(cluster)


def selecting(cluster: Cluster, app: str, **spec: Any) -> dict[str, Any]:
    return {"selector": {"matchLabels": {"app": app}}, "template": template(cluster, app), **spec}


def test_a_deployment_of_fifty(ours: Ours, cluster: Cluster) -> None:
    meant(ours, cluster, "Deployment/web")
    workload(cluster, "Deployment", "web", replicas=50, **selecting(cluster, "web"))
    all_changed(ours, cluster, "Deployment/web", 50)


def test_a_stateful_set(ours: Ours, cluster: Cluster) -> None:
    cluster.some_nodes()
    meant(ours, cluster, "StatefulSet/db")
    workload(cluster, "StatefulSet", "db", replicas=3, serviceName="db", **selecting(cluster, "db"))
    all_changed(ours, cluster, "StatefulSet/db", 3)


def test_a_daemon_set(ours: Ours, cluster: Cluster) -> None:
    nodes = cluster.pool(f"ds-{cluster.namespace[-5:]}", nodes=2)
    meant(ours, cluster, "DaemonSet/logs")
    here = template(cluster, "logs", nodeSelector={"pool": f"ds-{cluster.namespace[-5:]}"})
    workload(cluster, "DaemonSet", "logs", **{**selecting(cluster, "logs"), "template": here})
    all_changed(ours, cluster, "DaemonSet/logs", len(nodes))


def test_a_job(ours: Ours, cluster: Cluster) -> None:
    meant(ours, cluster, "Job/import")
    whole = template(cluster, "import", restartPolicy="Never")
    workload(cluster, "Job", "import", parallelism=4, completions=4, template=whole)
    all_changed(ours, cluster, "Job/import", 4)


def test_a_cron_jobs_job(ours: Ours, cluster: Cluster) -> None:
    """A CronJob's first pods outrun the watch of its Job: the Job's own name tells whose it is."""
    meant(ours, cluster, "CronJob/nightly")
    whole = template(cluster, "nightly", restartPolicy="Never")
    job = {"spec": {"template": whole}}
    workload(cluster, "CronJob", "nightly", schedule="* * * * *", suspend=True, jobTemplate=job)
    # A run that was missed is made up for at once; otherwise a test would wait for the minute.
    before = (datetime.now(UTC) - timedelta(seconds=90)).strftime("%Y-%m-%dT%H:%M:%SZ")
    cluster.patch("CronJob", "nightly", {"status": {"lastScheduleTime": before}}, sub="status")
    time.sleep(2)  # as in life, the CronJob is older than its run; what the run outruns is the watch of the Job
    cluster.patch("CronJob", "nightly", {"spec": {"suspend": False}})
    all_changed(ours, cluster, "CronJob/nightly", 1)
    cluster.patch("CronJob", "nightly", {"spec": {"suspend": True}})
