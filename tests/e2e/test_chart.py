"""Does the chart give what `trimtab install` gives, refuse what makes no sense, and pass a real API server?"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

import certs
from tests.controlplane import binaries
from tests.controlplane.binaries import Binaries
from tests.controlplane.cluster import Cluster
from tests.e2e.charts import BASE, CHART, NAMESPACE, Helm, objects
from trimtab.command.install.manifests import manifests
from trimtab.command.install.values import Values
from trimtab.kube import whole
from trimtab.kube.client import connect
from trimtab.kube.writer import Writer
from webhook import shared

BUNDLE = certs.authority(now=datetime.now(UTC)).certificate
ALSO_THE_NAMESPACE = {"namespace": {"create": True}}
MUCH: dict[str, Any] = {
    "image": {"repository": "registry.example.com/trimtab", "tag": "1", "pullPolicy": "Always",
              "pullSecrets": [{"name": "registry"}]},
    "webhook": {"replicas": 3, "priorityClassName": "system-cluster-critical", "podAnnotations": {"a": "b"},
                "settings": {"TRIMTAB_DRAIN": "3", "TRIMTAB_LOG_FORMAT": "console"}},
    "watchdog": {"nodeSelector": {"pool": "system"}, "tolerations": [{"key": "pool", "operator": "Exists"}]},
    "compactor": {"enabled": False},
    "recommender": {"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}},
    "networkPolicy": {"enabled": False},
    "policies": {"no-cpu-limits": {"actions": {"limits": {"cpu": "remove"}}}},
    "pools": {"batch": {"preset": "careful", "keep": {"nodes": 2}}},
}  # fmt: skip


@pytest.fixture(scope="session")
def helm(built: Binaries, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        return Helm(binaries.helm(), tmp_path_factory.mktemp("helm"))


def test_lint_finds_nothing(helm: Helm) -> None:
    assert "0 chart(s) failed" in helm.run("lint", "--strict", CHART).stdout
    assert "0 chart(s) failed" in helm.run("lint", "--strict", CHART, values=MUCH).stdout


def test_chart_kustomize_base_and_install_are_the_same_objects(helm: Helm, built: Binaries) -> None:
    installed = objects(manifests(Values()))
    base = subprocess.run([built["kubectl"], "kustomize", BASE], check=True, capture_output=True, text=True)
    assert objects(base.stdout) == installed
    assert objects(helm.rendered(ALSO_THE_NAMESPACE)) == installed


def test_the_namespace_is_left_to_who_installs(helm: Helm) -> None:
    missing = objects(manifests(Values())).keys() - objects(helm.rendered()).keys()
    assert missing == {("Namespace", "", NAMESPACE)}


@pytest.mark.parametrize(
    ("values", "given"),
    [
        (Values(cert_manager=True), {"webhook": {"certManager": True}}),
        (
            Values(namespace="ours", image="registry/trimtab:2", replicas=5, timeout=2, service_port=8443),
            {"image": {"repository": "registry/trimtab", "tag": "2"},
             "webhook": {"replicas": 5, "timeoutSeconds": 2, "servicePort": 8443}},
        ),
    ],
)  # fmt: skip
def test_what_both_can_be_told_gives_the_same(values: Values, given: dict[str, Any], helm: Helm) -> None:
    found = objects(helm.rendered({**given, **ALSO_THE_NAMESPACE}, namespace=values.namespace))
    expected = objects(manifests(values))
    for one in (found, expected):
        for webhook in one["MutatingWebhookConfiguration", "", "trimtab"]["webhooks"]:
            webhook["namespaceSelector"]["matchExpressions"][0]["values"].sort()
    assert found == expected


def test_every_value_arrives(helm: Helm) -> None:
    found = objects(helm.rendered(MUCH))
    deployment = found["Deployment", NAMESPACE, "trimtab-webhook"]["spec"]
    pod, [container] = deployment["template"]["spec"], deployment["template"]["spec"]["containers"]
    variables = {one["name"]: one["value"] for one in container["env"]}
    assert (deployment["replicas"], pod["priorityClassName"]) == (3, "system-cluster-critical")
    assert (pod["imagePullSecrets"], container["imagePullPolicy"]) == ([{"name": "registry"}], "Always")
    assert (variables["TRIMTAB_DRAIN"], variables["TRIMTAB_LOG_FORMAT"]) == ("3", "console")
    assert len(variables) == len(container["env"])
    assert deployment["template"]["metadata"]["annotations"] == {"a": "b"}
    watchdog = found["Deployment", NAMESPACE, "trimtab-watchdog"]["spec"]["template"]["spec"]
    assert (watchdog["nodeSelector"], watchdog["tolerations"][0]["key"]) == ({"pool": "system"}, "pool")
    assert not [key for key in found if "compactor" in key[2] or key[0] == "NetworkPolicy"]
    assert found["PodPolicy", "", "no-cpu-limits"]["spec"] == MUCH["policies"]["no-cpu-limits"]
    pool = found["ConfigMap", NAMESPACE, "trimtab-pool-batch"]
    assert yaml.safe_load(pool["data"]["pool.yaml"]) == MUCH["pools"]["batch"]


def test_monitors_select_by_what_the_user_says(helm: Helm) -> None:
    found = objects(helm.rendered({"monitors": {"enabled": True, "labels": {"release": "prometheus"}}}))
    monitors = [one for key, one in found.items() if key[0] == "PodMonitor"]
    assert len(monitors) == 4
    assert {one["metadata"]["labels"]["release"] for one in monitors} == {"prometheus"}


def test_a_digest_comes_before_a_tag(helm: Helm) -> None:
    digest = f"sha256:{'a' * 64}"
    found = objects(helm.rendered({"image": {"tag": "1", "digest": digest}}))
    [container] = found["Deployment", NAMESPACE, "trimtab-webhook"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"trimtab@{digest}"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"webhok": {}}, "webhok"),
        ({"webhook": {"replicas": "two"}}, "/webhook/replicas"),
        ({"webhook": {"timeoutSeconds": 30}}, "/webhook/timeoutSeconds"),
        ({"webhook": {"settings": {"TRIMTAB_LISTEN": "0.0.0.0:1"}}}, "TRIMTAB_LISTEN"),
        ({"compactor": {"settings": {"TRIMTAB_INTERVALL": "1"}}}, "TRIMTAB_INTERVALL"),
        ({"watchdog": {"resources": {"request": {}}}}, "request"),
        ({"image": {"digest": "latest"}}, "/image/digest"),
        ({"policies": {"Wrong_Name": {}}}, "Wrong_Name"),
        ({"policies": {"one": {"mode": "enforce"}}}, "/policies/one/mode"),
        ({"pools": {"one": "mode: act"}}, "/pools/one"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(values: Any, said: str, helm: Helm) -> None:
    words = helm.refusal(values)
    assert said in words
    assert "schema" in words


@pytest.fixture
def room(whole_cluster: Cluster, built: Binaries) -> Iterator[Kubectl]:
    """The namespace and the CRD, as somebody made them before; taken away afterwards."""
    kubectl = Kubectl(built["kubectl"], whole_cluster.kubeconfig)
    before = yaml.safe_dump_all(manifests(Values())[:2])
    kubectl("apply", "--server-side", "-f", "-", given=before)
    kubectl("wait", "--for=condition=Established", "crd/podpolicies.trimtab.dev", "--timeout=30s")
    yield kubectl
    kubectl("delete", "--wait", "-f", "-", given=before)


class Kubectl:
    def __init__(self, path: str, kubeconfig: Path) -> None:
        self._command = [path, "--kubeconfig", str(kubeconfig)]

    def __call__(self, *arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        found = subprocess.run(
            [*self._command, *arguments], input=given, capture_output=True, text=True, timeout=120, check=False
        )
        assert found.returncode == 0, found.stderr + found.stdout
        return found


@pytest.mark.parametrize("values", [{}, MUCH], ids=["default", "much"])
def test_a_real_api_server_takes_every_object_and_warns_of_none(helm: Helm, room: Kubectl, values: Any) -> None:
    rendered = helm.rendered(values, crds=False)
    found = room("apply", "--dry-run=server", "-f", "-", given=rendered)
    assert found.stdout.count("(server dry run)") == len(objects(rendered))
    assert "Warning" not in found.stderr


def test_an_upgrade_keeps_what_the_replicas_wrote_and_an_uninstall_leaves_nothing(
    helm: Helm, room: Kubectl, whole_cluster: Cluster
) -> None:
    login = ("--kubeconfig", whole_cluster.kubeconfig, "--namespace", NAMESPACE)
    helm.run("install", "trimtab", CHART, *login, "--skip-crds")
    client = connect(str(whole_cluster.kubeconfig))
    for kind in shared.CONFIGURATIONS:
        configuration = whole.get(client, kind, "trimtab")
        assert configuration is not None
        whole.put(Writer(client=client), shared.trusting(configuration, BUNDLE))
    helm.run("upgrade", "trimtab", CHART, *login, values={"webhook": {"timeoutSeconds": 2}})
    for kind in shared.CONFIGURATIONS:
        found = whole.get(client, kind, "trimtab") or {}
        assert set(shared.bundles(found)) == {BUNDLE}
        assert {webhook["timeoutSeconds"] for webhook in found["webhooks"]} == {2}
    client.close()
    helm.run("uninstall", "trimtab", *login, "--wait")
    kinds = "all,secret,role,rolebinding,sa,pdb,netpol,clusterrole,clusterrolebinding,mutatingwebhookconfiguration"
    left = room("get", f"{kinds},validatingwebhookconfiguration", "-A", "-o", "name").stdout.splitlines()
    assert [name for name in left if "trimtab" in name and "namespace" not in name] == []
