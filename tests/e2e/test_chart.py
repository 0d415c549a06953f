"""Does the chart give what `trimtab install` gives, and refuse what makes no sense?"""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
import yaml

from tests.controlplane.binaries import Binaries
from tests.e2e.charts import BASE, CHART, MUCH, NAMESPACE, Helm, objects
from trimtab.command.install.manifests import manifests
from trimtab.command.install.values import Values

ALSO_THE_NAMESPACE = {"namespace": {"create": True}}


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
