"""Policies that choose a RuntimeClass, with facts and policies from the cluster itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane.api import ApiError
from tests.controlplane.auditor import Auditor
from tests.controlplane.cluster import Cluster
from tests.e2e.ours import Ours, following, kubectl
from tests.reasons import has_facts

OVERHEAD = {"cpu": "250m", "memory": "160Mi"}
TOLERATION = {"key": "kata", "operator": "Exists", "effect": "NoSchedule"}


@pytest.fixture(scope="module")
def ours(whole_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ours]:
    with following(whole_cluster, tmp_path_factory.mktemp("ours")) as installation:
        yield installation


def runtime_class(cluster: Cluster, handler: str, **more: Any) -> str:
    """Its name, which no other test has."""
    name = f"{handler}-{cluster.namespace[-5:]}"
    kind = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass"}
    cluster.apply({**kind, "metadata": {"name": name}, "handler": handler, **more})
    return name


def kata(cluster: Cluster, **scheduling: Any) -> str:
    result = {"nodeSelector": {"pool": cluster.namespace}, "tolerations": [TOLERATION], **scheduling}
    return runtime_class(cluster, "kata", overhead={"podFixed": OVERHEAD}, scheduling=result)


def chosen(ours: Ours, cluster: Cluster, name: str, more: str = "") -> None:
    """A policy for every pod of the namespace chooses it, once our process knows the class."""
    ours.policy(cluster, "class", f"{{runtimeClass: {{name: {name}{more}}}}}")
    ours.serves(cluster)


def rounds(auditor: Auditor, cluster: Cluster) -> list[bool]:
    """Of the one pod made there: did our webhook change it, call by call?"""
    [write] = auditor.writes(verb="create", resource="pods", namespace=cluster.namespace)
    rows = sorted((key, text) for key, text in write.annotations.items() if key.startswith("mutation.webhook"))
    return [json.loads(text)["mutated"] for _, text in rows]


def test_class_overhead_selector_and_tolerations_are_stored_and_the_second_call_changes_nothing(
    ours: Ours, cluster: Cluster
) -> None:
    name = kata(cluster)
    chosen(ours, cluster, name)
    cluster.eventually(lambda: "overhead" in cluster.pod(dry_run=True)["spec"])
    auditor = cluster.auditor
    spec = cluster.pod()["spec"]
    assert spec["runtimeClassName"] == name
    assert spec["overhead"] == OVERHEAD
    assert spec["nodeSelector"] == {"pool": cluster.namespace}
    assert TOLERATION in spec["tolerations"]
    assert rounds(auditor, cluster) == [True, False]


def test_the_scheduler_counts_the_overhead(ours: Ours, cluster: Cluster) -> None:
    name = kata(cluster)
    chosen(ours, cluster, name)
    cluster.eventually(lambda: "overhead" in cluster.pod(dry_run=True)["spec"])
    cluster.pool(cluster.namespace, cpu="1", memory="4Gi", taints=["kata=yes:NoSchedule"])
    exact = {"name": "main", "image": cluster.image, "resources": {"requests": {"cpu": "750m"}}}
    above = {"name": "main", "image": cluster.image, "resources": {"requests": {"cpu": "751m"}}}
    cluster.pod({"containers": [above]}, name="above")
    cluster.eventually(lambda: "Insufficient cpu" in unscheduled(cluster, "above"))
    cluster.pod({"containers": [exact]}, name="exact")
    cluster.eventually(lambda: cluster.get("Pod", "exact")["spec"].get("nodeName"))
    assert not cluster.get("Pod", "above")["spec"].get("nodeName")


def unscheduled(cluster: Cluster, name: str) -> str:
    conditions = cluster.get("Pod", name)["status"].get("conditions", ())
    return next((c["message"] for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"), "")


def manifest(cluster: Cluster, **spec: Any) -> dict[str, Any]:
    whole = {"containers": [{"name": "main", "image": cluster.image}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": whole}


def test_a_missing_class_leaves_the_pod_and_kubectl_shows_why(ours: Ours, cluster: Cluster) -> None:
    chosen(ours, cluster, "nowhere")
    client = kubectl(cluster, "apply", "-f", "-", stdin=manifest(cluster))
    assert client.code == 0
    assert [line for line in client.warnings if has_facts(line, "RuntimeClass nowhere", "not exist")]
    assert "runtimeClassName" not in cluster.get("Pod", "web")["spec"]


def test_a_class_without_overhead_is_chosen_and_brings_none(ours: Ours, cluster: Cluster) -> None:
    name = runtime_class(cluster, "plain")
    chosen(ours, cluster, name)
    spec = cluster.eventually(lambda: having(cluster.pod(dry_run=True)["spec"], "runtimeClassName"))
    assert spec["runtimeClassName"] == name
    assert "overhead" not in spec


def having(spec: dict[str, Any], field: str) -> dict[str, Any] | None:
    return spec if field in spec else None


def test_a_class_whose_scheduling_contradicts_the_pod_is_not_chosen(ours: Ours, cluster: Cluster) -> None:
    name = kata(cluster)
    chosen(ours, cluster, name)
    cluster.eventually(lambda: "overhead" in cluster.pod(dry_run=True)["spec"])
    client = kubectl(cluster, "apply", "-f", "-", stdin=manifest(cluster, nodeSelector={"pool": "web"}))
    assert client.code == 0
    pool = f"pool={cluster.namespace}"
    assert [line for line in client.warnings if has_facts(line, "requires", pool, "the pod selects")]
    assert "runtimeClassName" not in cluster.get("Pod", "web")["spec"]


def test_a_users_class_is_changed_with_all_that_it_had_brought(ours: Ours, cluster: Cluster) -> None:
    old = kata(cluster)
    new = runtime_class(cluster, "gvisor", overhead={"podFixed": {"cpu": "50m"}})
    chosen(ours, cluster, new, more=", override: true")
    cluster.eventually(lambda: cluster.pod(dry_run=True)["spec"].get("overhead") == {"cpu": "50m"})
    cluster.eventually(lambda: cluster.pod({"runtimeClassName": old}, dry_run=True)["spec"].get("nodeSelector") is None)
    spec = cluster.pod({"runtimeClassName": old})["spec"]
    assert (spec["runtimeClassName"], spec["overhead"]) == (new, {"cpu": "50m"})
    assert "nodeSelector" not in spec
    assert TOLERATION not in spec["tolerations"]


def test_a_users_class_stays_where_the_policy_does_not_override(ours: Ours, cluster: Cluster) -> None:
    old, new = kata(cluster), runtime_class(cluster, "gvisor")
    chosen(ours, cluster, new)
    cluster.eventually(lambda: cluster.pod(dry_run=True)["spec"].get("runtimeClassName") == new)
    spec = cluster.pod({"runtimeClassName": old})["spec"]
    assert (spec["runtimeClassName"], spec["overhead"]) == (old, OVERHEAD)


def test_an_overhead_edited_meanwhile_is_the_new_one_for_new_pods(ours: Ours, cluster: Cluster) -> None:
    name = kata(cluster)
    chosen(ours, cluster, name)
    cluster.eventually(lambda: "overhead" in cluster.pod(dry_run=True)["spec"])
    runtime_class(cluster, "kata", overhead={"podFixed": {"cpu": "300m"}})
    cluster.eventually(lambda: cluster.pod(dry_run=True)["spec"]["overhead"] == {"cpu": "300m"})


def test_a_required_class_that_the_quota_has_no_room_for_is_refused_by_the_quota_with_our_warning(
    ours: Ours, cluster: Cluster
) -> None:
    name = runtime_class(cluster, "kata", overhead={"podFixed": {"cpu": "250m"}})
    actions = f"{{runtimeClass: {{name: {name}, required: true}}}}"
    ours.policy(cluster, "class", actions, match="podLabels: {safe: 'yes'}")
    ours.serves(cluster)
    cluster.eventually(lambda: "overhead" in cluster.create(asking("120m"), dryRun="All")["spec"])
    hard = {"spec": {"hard": {"requests.cpu": "1"}}}
    cluster.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, **hard})
    cluster.eventually(lambda: cluster.get("ResourceQuota", "q")["status"].get("used"))
    cluster.create(asking("800m", name="first", labels={}))
    cluster.eventually(lambda: cluster.get("ResourceQuota", "q")["status"]["used"]["requests.cpu"] == "800m")
    mistakes = counted(ours)
    warned = f"RuntimeClass {name} adds an overhead of cpu 250m to the pod, but ResourceQuota q may refuse"

    def refused() -> str:
        cluster.api.warnings.clear()
        with pytest.raises(ApiError) as error:
            cluster.create(asking("120m"))
        assert any(warned in text for text in cluster.api.warnings), list(cluster.api.warnings)
        return str(error.value)

    message = cluster.eventually(refused, what="our facts know what the quota has left")
    assert has_facts(message, "exceeded quota: q", "requests.cpu=370m", "requests.cpu=800m")
    assert cluster.create(asking("120m", name="other", labels={}))["spec"].get("runtimeClassName") is None
    assert counted(ours) == mistakes


def counted(ours: Ours) -> list[float]:
    """How many pods were denied, and how many went through unchanged by a mistake of ours."""
    series = (
        f'trimtab_review_outcomes_total{{dry_run="false",outcome="{name}"}}' for name in ("denied", "unsafe", "failed")
    )
    return [ours.metric(name) for name in series]


def asking(cpu: str, name: str = "small", labels: dict[str, str] | None = None) -> dict[str, Any]:
    """A pod with this request, which the policy means unless it is given other labels."""
    container = {"name": "app", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "labels": {"safe": "yes"} if labels is None else labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
