"""Policies edited in the cluster, the switch that stops all changes, and requests that leave no trace."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.cluster import Cluster
from tests.e2e.ours import Ours, following, kubectl, podpolicy
from tests.e2e.test_webhook import ROOT
from trimtab.cluster.format_count import format_count

NO_LIMITS = "{limits: {cpu: remove}}"
LIMITED = {"requests": {"cpu": "10m"}, "limits": {"cpu": "1"}}
SWITCH = "trimtab.dev/paused"


@pytest.fixture(scope="module")
def ours(whole_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ours]:
    with following(whole_cluster, tmp_path_factory.mktemp("ours")) as installation:
        yield installation


def manifest(cluster: Cluster, name: str = "web") -> dict[str, Any]:
    container = {"name": "main", "image": cluster.image, "resources": LIMITED}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}


def limited(cluster: Cluster) -> bool:
    """Does a pod made now keep its limit?"""
    stored = cluster.create(manifest(cluster), dryRun="All")
    return "limits" in stored["spec"]["containers"][0]["resources"]


def test_a_policy_is_in_force_within_seconds_and_out_of_it_when_it_goes(ours: Ours, cluster: Cluster) -> None:
    ours.serves(cluster)
    assert limited(cluster)
    name = ours.policy(cluster, "limits", NO_LIMITS)
    cluster.eventually(lambda: not limited(cluster), within=5)
    cluster.patch("PodPolicy", name, {"spec": {"enabled": False}})
    cluster.eventually(lambda: limited(cluster), within=5)
    cluster.patch("PodPolicy", name, {"spec": {"enabled": True}})
    cluster.eventually(lambda: not limited(cluster), within=5)
    cluster.delete("PodPolicy", name)
    cluster.eventually(lambda: limited(cluster), within=5)


@pytest.mark.parametrize("how", ["annotations", "labels"])
def test_the_switch_stops_all_changes_within_seconds(ours: Ours, cluster: Cluster, how: str) -> None:
    ours.serves(cluster)
    ours.policy(cluster, "limits", NO_LIMITS)
    assert not limited(cluster)
    cluster.patch("Namespace", ours.namespace, {"metadata": {how: {SWITCH: "true"}}})
    cluster.eventually(lambda: limited(cluster), within=5)
    assert ours.metric("trimtab_paused") == 1.0
    cluster.patch("Namespace", ours.namespace, {"metadata": {how: {SWITCH: None}}})
    cluster.eventually(lambda: not limited(cluster), within=5)


def test_a_broken_edit_that_got_past_everybody_leaves_the_policy_as_it_was(ours: Ours, cluster: Cluster) -> None:
    """Nobody validates here: what gets into the cluster like this is told, and harms nobody."""
    ours.serves(cluster)
    name = ours.policy(cluster, "limits", NO_LIMITS)
    cluster.patch("PodPolicy", name, {"spec": {"wat": 1}})
    cluster.eventually(lambda: ours.metric("trimtab_invalid_objects") == 1.0, within=5)
    assert not limited(cluster)
    [line] = [log for log in ours.log if log.get("policy") == name]
    assert "the unknown field 'wat'" in line["why"][0]


@pytest.fixture
def validated(ours: Ours, cluster: Cluster) -> Iterator[Cluster]:
    """PodPolicies and pools go past our process before they are stored, with no way around it."""
    rules = [
        {
            "apiGroups": ["trimtab.dev"],
            "apiVersions": ["*"],
            "operations": ["CREATE", "UPDATE"],
            "resources": ["podpolicies"],
        },
        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]},
    ]
    webhook = {
        "name": "validate.trimtab.dev",
        "rules": rules,
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "clientConfig": {"url": f"https://{ours.host}:{ours.port}/validate", "caBundle": ours.ca_bundle},
        "matchConditions": [{"name": "ours", "expression": CONDITION}],
        "admissionReviewVersions": ["v1"],
    }
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": cluster.namespace},
        "webhooks": [webhook],
    }
    cluster.apply(configuration)
    broken = podpolicy(cluster, "probe", NO_LIMITS, wat=1)
    cluster.eventually(lambda: kubectl(cluster, "apply", "--dry-run=server", "-f", "-", stdin=broken).code == 1)
    yield cluster
    cluster.delete("ValidatingWebhookConfiguration", cluster.namespace)


CONDITION = (
    "request.resource.group == 'trimtab.dev' || "
    "(has(object.metadata.labels) && 'trimtab.dev/pool' in object.metadata.labels)"
)


def test_a_policy_that_makes_no_sense_is_refused_with_the_loaders_message(validated: Cluster) -> None:
    wrong = podpolicy(validated, "wrong", "{requests: {cpu: {otherwise: 50 apples}}}")
    client = kubectl(validated, "apply", "-f", "-", stdin=wrong)
    assert client.code == 1
    assert f"PodPolicy {wrong['metadata']['name']} spec.actions.requests.cpu.otherwise: expected" in client.err
    assert validated.list("PodPolicy", selector=None) == []


def test_what_the_cluster_does_not_have_is_found_in_a_policy(cluster: Cluster, tmp_path: Path) -> None:
    """Sound in form: without the cluster nobody sees that the pool's name is misspelt."""
    tag = cluster.namespace[-5:]
    cluster.pool(f"web-{tag}")
    own = podpolicy(cluster, "place", f"{{placement: {{require: [{{label: pool, in: [wbe-{tag}]}}]}}}}")
    (tmp_path / "place.yaml").write_text(yaml.safe_dump(own))
    command = [sys.executable, "-m", "trimtab", "policies", "check", str(tmp_path / "place.yaml")]
    live = ["--cluster", "live", "--kubeconfig", str(cluster.kubeconfig)]
    done = [
        subprocess.run([*command, *more], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
        for more in ([], live)
    ]
    assert [each.returncode for each in done] == [0, 1]
    assert f"wbe-{tag}" in done[1].stdout + done[1].stderr


def test_a_pool_that_makes_no_sense_is_refused_with_its_line(validated: Cluster) -> None:
    labels = {"trimtab.dev/pool": "batch"}
    metadata = {"name": "batch", "namespace": validated.namespace, "labels": labels}
    pool = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"pool.yaml": "goal: cots\n"}}
    client = kubectl(validated, "apply", "-f", "-", stdin=pool)
    assert client.code == 1
    assert "ConfigMap batch pool.yaml:1:" in client.err
    assert "did you mean 'cost'?" in client.err
    sound = {**pool, "data": {"pool.yaml": "goal: cost\n"}}
    assert kubectl(validated, "apply", "-f", "-", stdin=sound).code == 0


def test_a_dry_run_is_answered_and_leaves_no_trace(ours: Ours, cluster: Cluster) -> None:
    ours.serves(cluster)
    ours.policy(cluster, "limits", NO_LIMITS)
    auditor = cluster.auditor
    client = kubectl(cluster, "create", "--dry-run=server", "-o", "yaml", "-f", "-", stdin=manifest(cluster))
    assert client.code == 0
    assert "limits:\n" not in client.out.split("resources:")[1].split("terminationMessage")[0]
    assert cluster.list("Pod") == []
    written = [write for write in auditor.writes(namespace=cluster.namespace) if not write.dry_run]
    assert written == []
    assert ours.metric('trimtab_review_outcomes_total{dry_run="true",outcome="changed"}') >= 1.0


def test_a_pod_we_added_to_may_be_applied_twice(ours: Ours, cluster: Cluster) -> None:
    ours.serves(cluster)
    ours.policy(cluster, "sizes", "{requests: {memory: {from: policy, otherwise: 64Mi}}}")
    client = [kubectl(cluster, "apply", "-f", "-", stdin=manifest(cluster)) for _ in range(2)]
    assert [each.out.strip() for each in client] == ["pod/web created", "pod/web unchanged"]
    assert cluster.get("Pod", "web")["spec"]["containers"][0]["resources"]["requests"]["memory"] == "64Mi"


def test_a_pod_whose_limit_a_policy_would_take_may_be_applied_twice_and_says_why_it_keeps_it(
    ours: Ours, cluster: Cluster
) -> None:
    ours.serves(cluster)
    ours.policy(cluster, "limits", NO_LIMITS)
    client = [kubectl(cluster, "apply", "-f", "-", stdin=manifest(cluster)) for _ in range(2)]
    assert [each.out.strip() for each in client] == ["pod/web created", "pod/web unchanged"]
    assert "applied-as-written" in client[0].err
    kubectl(cluster, "create", "-f", "-", stdin=manifest(cluster, "made-once"))
    rest = {
        name: "limits" in cluster.get("Pod", name)["spec"]["containers"][0]["resources"]
        for name in ("web", "made-once")
    }
    assert rest == {"web": True, "made-once": False}


def test_a_pod_with_tolerations_of_its_own_may_be_applied_twice(ours: Ours, cluster: Cluster) -> None:
    ours.serves(cluster)
    ours.policy(cluster, "tolerate", "{placement: {tolerate: [{key: pool, value: web, effect: NoSchedule}]}}")
    written = manifest(cluster)
    written["spec"]["tolerations"] = [{"key": "other", "operator": "Exists"}]
    client = [kubectl(cluster, "apply", "-f", "-", stdin=written) for _ in range(2)]
    assert [each.code for each in client] == [0, 0], client[1].err
    assert "applied-as-written" in client[0].err


def test_a_deployment_whose_pods_lost_their_limits_may_be_applied_twice(ours: Ours, cluster: Cluster) -> None:
    ours.serves(cluster)
    ours.policy(cluster, "limits", NO_LIMITS)
    template = {"metadata": {"labels": {"app": "web"}}, "spec": manifest(cluster)["spec"]}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    client = [kubectl(cluster, "apply", "-f", "-", stdin=web) for _ in range(2)]
    assert [each.out.strip() for each in client] == ["deployment.apps/web created", "deployment.apps/web unchanged"]
    [pod] = cluster.eventually(lambda: cluster.list("Pod", selector="app=web"))
    assert "limits" not in pod["spec"]["containers"][0]["resources"]


def test_what_it_says_of_itself(ours: Ours, cluster: Cluster) -> None:
    ours.policy(cluster, "limits", NO_LIMITS)
    assert 0 <= ours.metric("trimtab_facts_age_seconds") < 200
    assert ours.metric("trimtab_policies") == len(ours.in_force)
    assert format_count(len(ours.in_force), "policy", "policies") in ours.get("/readyz")
