"""Does the chart give what `trimtab install` gives, and refuse what makes no sense?"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.observe import dashboards, rules
from docs.chart import observed
from tests.controlplane.binaries import Binaries
from tests.controlplane.cluster import Cluster
from tests.e2e.charts import BASE, CHART, MUCH, NAMESPACE, ROOT, Helm, Objects, objects
from trimtab.installation.installed_processes import render_uninstall_policies
from trimtab.installation.manifests import render_manifests
from trimtab.installation.names import InstallValues

ALSO_THE_NAMESPACE = {"namespace": {"create": True}}


def test_lint_finds_nothing(helm: Helm) -> None:
    assert "0 chart(s) failed" in helm.run("lint", "--strict", CHART).stdout
    assert "0 chart(s) failed" in helm.run("lint", "--strict", CHART, values=MUCH).stdout


def for_the_hook(values: InstallValues) -> Objects:
    """What only the chart installs: the policies of the account of its uninstall hook."""
    return objects(render_uninstall_policies(values))


def test_chart_kustomize_base_and_install_are_the_same_objects(helm: Helm, built: Binaries) -> None:
    installed = objects(render_manifests(InstallValues()))
    base = subprocess.run([built["kubectl"], "kustomize", BASE], check=True, capture_output=True, text=True)
    assert objects(base.stdout) == installed
    assert objects(helm.rendered(ALSO_THE_NAMESPACE)) == installed | for_the_hook(InstallValues())


@pytest.mark.parametrize(
    ("chosen", "values"),
    [
        ({"recommender": {"vpa": True}}, InstallValues(vpa_recommender=True)),
        ({"mode": "vpa"}, InstallValues(mode="vpa")),
        ({"mode": "vpa", "uninstall": {"hook": False}}, InstallValues(mode="vpa")),
        ({"mode": "vpa", "recommender": {"enabled": False}}, InstallValues(mode="vpa")),
    ],
)
def test_a_recommender_of_vpas_alone_or_with_the_rest_is_what_install_gives(
    helm: Helm, chosen: dict[str, Any], values: InstallValues
) -> None:
    """Helm applies definitions whatever the values are."""
    hook = for_the_hook(values) if "uninstall" not in chosen else {}
    rendered, installed = objects(helm.rendered({**ALSO_THE_NAMESPACE, **chosen})), objects(render_manifests(values))
    definitions = {key for key in {**rendered, **installed} if key[0] == "CustomResourceDefinition"}
    assert _without(rendered, definitions) == _without(installed | hook, definitions)


def _without(documents: Objects, keys: set[Any]) -> Objects:
    return {key: document for key, document in documents.items() if key not in keys}


def test_alone_it_is_one_deployment_and_no_webhook(helm: Helm) -> None:
    kinds = [kind for kind, *_ in objects(helm.rendered({"mode": "vpa", "uninstall": {"hook": False}}))]
    assert kinds.count("Deployment") == 1
    assert not {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "Service", "Secret"} & set(kinds)


@pytest.mark.parametrize(("folder", "mode"), [("base", "webhook"), ("base/vpa", "vpa")])
def test_in_another_namespace_the_kustomize_base_is_what_install_gives_there(
    folder: str, mode: Any, built: Binaries, tmp_path: Path
) -> None:
    shutil.copytree(BASE, tmp_path / "base")
    expected = {"resources": [folder], "namespace": "ours", "replacements": [{"path": f"{folder}/elsewhere.yaml"}]}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(expected))
    process = subprocess.run([built["kubectl"], "kustomize", tmp_path], check=True, capture_output=True, text=True)
    placed = [of_the_cluster(item) for item in yaml.safe_load_all(process.stdout)]
    assert objects(placed) == objects(render_manifests(InstallValues(namespace="ours", mode=mode)))


@pytest.mark.parametrize("namespace", ["trimtab-system", "ours"])
def test_the_metrics_api_is_a_component_of_the_kustomize_base(namespace: str, built: Binaries, tmp_path: Path) -> None:
    shutil.copytree(BASE, tmp_path / "base")
    expected: dict[str, Any] = {
        "resources": ["base"],
        "components": ["base/metrics-api", "base/metrics-api-monitoring"],
    }
    if namespace != NAMESPACE:
        replacements = [{"path": f"base/{place}elsewhere.yaml"} for place in ("", "metrics-api/")]
        expected |= {"namespace": namespace, "replacements": replacements}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(expected))
    process = subprocess.run([built["kubectl"], "kustomize", tmp_path], check=True, capture_output=True, text=True)
    composed = objects([of_the_cluster(item) for item in yaml.safe_load_all(process.stdout)])
    watched = {key: item for key, item in composed.items() if key[0] in ("PodMonitor", "PrometheusRule")}
    assert set(watched) == {(kind, namespace, "trimtab-metrics-api") for kind in ("PodMonitor", "PrometheusRule")}
    installed = objects(render_manifests(InstallValues(namespace=namespace, metrics_api=True)))
    assert {key: item for key, item in composed.items() if key not in watched} == installed


def test_the_chart_with_the_metrics_api_is_what_install_gives(helm: Helm) -> None:
    values = InstallValues(metrics_api=True)
    installed = objects(render_manifests(values)) | for_the_hook(values)
    rendered = objects(helm.rendered({"metricsApi": {"enabled": True}, **ALSO_THE_NAMESPACE}))
    [rules_map] = rendered.keys() - installed.keys()
    assert rules_map == ("ConfigMap", NAMESPACE, "trimtab-metrics")
    assert yaml.safe_load(rendered.pop(rules_map)["data"]["rules.yaml"]) == {"rules": []}
    assert rendered == installed


def test_the_autoscalers_status_elsewhere_is_read_there_and_granted_by_that_name(helm: Helm) -> None:
    listed_objects = objects(
        helm.rendered({"compactor": {"autoscaler": {"namespace": "scaling", "status": "ours-status"}}})
    )
    rules = listed_objects["ClusterRole", "", "trimtab-compactor"]["rules"]
    assert [rule["resourceNames"] for rule in rules if "configmaps" in rule["resources"]] == [["ours-status"]]
    [container] = listed_objects["Deployment", NAMESPACE, "trimtab-compactor"]["spec"]["template"]["spec"]["containers"]
    values = {variable["name"]: variable.get("value") for variable in container["env"]}
    assert values["TRIMTAB_AUTOSCALER_NAMESPACE"] == "scaling"
    assert values["TRIMTAB_AUTOSCALER_STATUS_CONFIGMAP"] == "ours-status"


def of_the_cluster(item: dict[str, Any]) -> dict[str, Any]:
    """Kustomize takes kinds it does not know for namespaced ones; kubectl takes the namespace off again."""
    if not item["kind"].startswith("ValidatingAdmissionPolicy"):
        return item
    return {**item, "metadata": {key: value for key, value in item["metadata"].items() if key != "namespace"}}


def test_kubectl_applies_the_policies_that_kustomize_took_for_namespaced_ones(cluster: Cluster) -> None:
    items = [item for item in render_manifests(InstallValues()) if item["kind"].startswith("ValidatingAdmissionPolicy")]
    placed = [{**item, "metadata": {**item["metadata"], "namespace": cluster.namespace}} for item in items]
    printed = cluster.kubectl("apply", "--server-side", "--dry-run=server", "-f", "-", stdin=yaml.safe_dump_all(placed))
    assert printed.count("serverside-applied") == len(items)


@pytest.mark.parametrize("name", ["monitors", "rules", "dashboards"])
def test_what_only_some_want_is_the_same_object_from_the_chart_and_a_component(
    name: str, helm: Helm, built: Binaries, tmp_path: Path
) -> None:
    shutil.copytree(BASE, tmp_path / "base")
    expected = {"resources": ["base"], "components": [f"base/{name}"]}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(expected))
    command = [built["kubectl"], "kustomize", tmp_path]
    composed = subprocess.run(command, check=True, capture_output=True, text=True)
    rendered = objects(helm.rendered({name: {"enabled": True}, **ALSO_THE_NAMESPACE}))
    assert objects(composed.stdout) | for_the_hook(InstallValues()) == rendered


def test_dashboards_and_rules_are_those_of_the_folders(helm: Helm) -> None:
    enabled = {"enabled": True}
    listed_objects = objects(helm.rendered({"dashboards": enabled, "rules": enabled, "metricsApi": enabled}))
    for one in dashboards.ALL:
        model = listed_objects["ConfigMap", NAMESPACE, one.uid]["data"][f"{one.uid}.json"]
        assert json.loads(model) == json.loads((ROOT / f"deploy/dashboards/{one.uid}.json").read_text())
    written = [yaml.safe_load((rules.FOLDER / name).read_text())["groups"] for name in rules.FILES]
    assert listed_objects["PrometheusRule", NAMESPACE, "trimtab"]["spec"]["groups"] == [
        one for part in written for one in part
    ]


def test_alerts_are_of_the_processes_that_are_there_and_lead_to_where_the_pages_are(helm: Helm) -> None:
    page = "https://pages.example.com/trimtab/how-to/runbooks.html"
    values = {"recommender": {"enabled": False}, "rules": {"enabled": True, "runbooks": page}}
    groups = objects(helm.rendered(values))["PrometheusRule", NAMESPACE, "trimtab"]["spec"]["groups"]
    names = [group["name"] for group in groups]
    absent = {"trimtab.recommender.alerts", "trimtab.metricsApi.alerts"}
    assert names == [one["name"] for one in observed.groups() if one["name"] not in absent]
    alerts = [rule for group in groups for rule in group["rules"] if "alert" in rule]
    assert [one["annotations"]["runbook_url"] for one in alerts] == [f"{page}#{one['alert'].lower()}" for one in alerts]


@pytest.mark.parametrize("chosen", [{}, {"recommender": {"enabled": False}}])
def test_a_recommender_alone_has_no_alert_for_a_webhook_that_is_absent(helm: Helm, chosen: dict[str, Any]) -> None:
    values = {"mode": "vpa", "rules": {"enabled": True}, **chosen}
    groups = objects(helm.rendered(values))["PrometheusRule", NAMESPACE, "trimtab"]["spec"]["groups"]
    assert [group["name"] for group in groups] == ["trimtab.recommender.alerts"]


def test_the_namespace_is_left_to_who_installs(helm: Helm) -> None:
    missing = objects(render_manifests(InstallValues())).keys() - objects(helm.rendered()).keys()
    assert missing == {("Namespace", "", NAMESPACE)}


@pytest.mark.parametrize(
    ("values", "given"),
    [
        (InstallValues(cert_manager=True), {"webhook": {"certManager": True}}),
        (
            InstallValues(namespace="ours", image="registry/trimtab:2", replicas=5, timeout=2, service_port=8443),
            {
                "image": {"repository": "registry/trimtab", "tag": "2"},
                "webhook": {"replicas": 5, "timeoutSeconds": 2, "servicePort": 8443},
            },
        ),
        (InstallValues(mode="policies"), {"mode": "policies"}),
    ],
)
def test_what_both_can_be_told_gives_the_same(values: InstallValues, given: dict[str, Any], helm: Helm) -> None:
    listed_objects = objects(helm.rendered({**given, **ALSO_THE_NAMESPACE}, namespace=values.namespace))
    expected = objects(render_manifests(values)) | for_the_hook(values)
    for one in (listed_objects, expected):
        for webhook in one.get(("MutatingWebhookConfiguration", "", "trimtab"), {}).get("webhooks", ()):
            webhook["namespaceSelector"]["matchExpressions"][0]["values"].sort()
    assert listed_objects == expected


def test_every_value_arrives(helm: Helm) -> None:
    listed_objects = objects(helm.rendered(MUCH))
    deployment = listed_objects["Deployment", NAMESPACE, "trimtab-webhook"]["spec"]
    pod, [container] = deployment["template"]["spec"], deployment["template"]["spec"]["containers"]
    variables = {one["name"]: one["value"] for one in container["env"]}
    assert (deployment["replicas"], pod["priorityClassName"]) == (3, "system-cluster-critical")
    assert (pod["imagePullSecrets"], container["imagePullPolicy"]) == ([{"name": "registry"}], "Always")
    assert (variables["TRIMTAB_WEBHOOK_SHUTDOWN_DELAY_SECONDS"], variables["TRIMTAB_LOG_FORMAT"]) == ("3", "console")
    assert len(variables) == len(container["env"])
    assert deployment["template"]["metadata"]["annotations"] == {"a": "b"}
    watchdog = listed_objects["Deployment", NAMESPACE, "trimtab-watchdog"]["spec"]["template"]["spec"]
    assert (watchdog["nodeSelector"], watchdog["tolerations"][0]["key"]) == ({"pool": "system"}, "pool")
    assert (watchdog["affinity"], watchdog["topologySpreadConstraints"][0]["whenUnsatisfiable"]) == (
        {"nodeAffinity": {}},
        "DoNotSchedule",
    )
    assert listed_objects["PodDisruptionBudget", NAMESPACE, "trimtab-watchdog"]["spec"]["maxUnavailable"] == 2
    assert not [key for key in listed_objects if "compactor" in key[2]]
    assert listed_objects["ConfigMap", NAMESPACE, "trimtab-pools"]["metadata"]["labels"]["grafana"] == "yes"
    assert listed_objects["PodPolicy", "", "no-cpu-limits"]["spec"] == MUCH["policies"]["no-cpu-limits"]
    pool = listed_objects["ConfigMap", NAMESPACE, "trimtab-pool-batch"]
    assert yaml.safe_load(pool["data"]["pool.yaml"]) == MUCH["pools"]["batch"]


def test_outward_only_what_is_named_is_open(helm: Helm) -> None:
    listed_objects = objects(helm.rendered(MUCH))
    policy = listed_objects["NetworkPolicy", NAMESPACE, "trimtab-watchdog"]["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    ports = [port["port"] for rule in policy["egress"] for port in rule["ports"]]
    assert ports == [53, 53, 6443, 9090]
    assert policy["ingress"][0]["from"] == MUCH["networkPolicy"]["metricsFrom"]
    assert "from" not in listed_objects["NetworkPolicy", NAMESPACE, "trimtab-webhook"]["spec"]["ingress"][0]


def test_without_the_choice_there_is_no_network_policy_and_no_hook(helm: Helm) -> None:
    values = {"networkPolicy": {"enabled": False}, "uninstall": {"hook": False}}
    assert {"NetworkPolicy", "Job"}.isdisjoint(key[0] for key in objects(helm.rendered(values, hooks=True)))


def test_the_hook_is_restricted_as_every_pod_of_ours_and_told_what_to_keep(helm: Helm) -> None:
    listed_objects = objects(helm.rendered(MUCH, hooks=True))
    job = listed_objects["Job", NAMESPACE, "trimtab-uninstall"]
    pod, [container] = job["spec"]["template"]["spec"], job["spec"]["template"]["spec"]["containers"]
    other = listed_objects["Deployment", NAMESPACE, "trimtab-webhook"]["spec"]["template"]["spec"]
    assert container["args"] == ["install", "--remove", "--traces", "--system-namespace", NAMESPACE, "--keep-usage"]
    assert (pod["securityContext"], container["securityContext"], container["image"]) == (
        other["securityContext"],
        other["containers"][0]["securityContext"],
        other["containers"][0]["image"],
    )
    assert (pod["nodeSelector"], pod["tolerations"]) == ({"pool": "system"}, [{"operator": "Exists"}])
    hooks = [
        one
        for one in listed_objects.values()
        if one["metadata"].get("annotations", {}).get("helm.sh/hook") == "pre-delete"
    ]
    assert len(hooks) == 6
    assert {one["metadata"]["name"] for one in hooks} == {"trimtab-uninstall"}


def test_monitors_select_by_what_the_user_says(helm: Helm) -> None:
    listed_objects = objects(helm.rendered({"monitors": {"enabled": True, "labels": {"release": "prometheus"}}}))
    monitors = [one for key, one in listed_objects.items() if key[0] == "PodMonitor"]
    assert len(monitors) == 4
    assert {one["metadata"]["labels"]["release"] for one in monitors} == {"prometheus"}


def test_a_digest_comes_before_a_tag(helm: Helm) -> None:
    digest = f"sha256:{'a' * 64}"
    listed_objects = objects(helm.rendered({"image": {"tag": "1", "digest": digest}}))
    [container] = listed_objects["Deployment", NAMESPACE, "trimtab-webhook"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"trimtab@{digest}"


def test_a_default_that_is_taken_away_opens_no_port(helm: Helm) -> None:
    listed_objects = objects(helm.rendered({"networkPolicy": {"egress": {"enabled": True, "apiServerPorts": None}}}))
    policies = [item for (kind, _, _), item in listed_objects.items() if kind == "NetworkPolicy"]
    rules = [rule for policy in policies for rule in policy["spec"]["egress"]]
    assert rules
    assert all({port["port"] for port in rule["ports"]} == {53} for rule in rules)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"webhok": {}}, "webhok"),
        ({"webhook": {"replicas": "two"}}, "/webhook/replicas"),
        ({"webhook": {"timeoutSeconds": 30}}, "/webhook/timeoutSeconds"),
        ({"webhook": {"settings": {"TRIMTAB_WEBHOOK_LISTEN": "0.0.0.0:1"}}}, "TRIMTAB_WEBHOOK_LISTEN"),
        ({"compactor": {"settings": {"TRIMTAB_COMPACTOR_INTERVAL": "1"}}}, "TRIMTAB_COMPACTOR_INTERVAL"),
        ({"watchdog": {"resources": {"request": {}}}}, "request"),
        ({"image": {"digest": "latest"}}, "/image/digest"),
        ({"policies": {"Wrong_Name": {}}}, "Wrong_Name"),
        ({"policies": {"one": {"mode": "enforce"}}}, "/policies/one/mode"),
        ({"pools": {"one": "mode: act"}}, "/pools/one"),
        ({"pools": {"one": {"mode": "on"}}}, "/pools/one/mode"),
        ({"pools": {"one": {"keep": {"node": 2}}}}, "/pools/one/keep"),
        ({"compactor": {"replicas": -1}}, "/compactor/replicas"),
        ({"compactor": {"spread": "Always"}}, "/compactor/spread"),
        ({"recommender": {"maxUnavailable": "50%"}}, "/recommender/maxUnavailable"),
        ({"networkPolicy": {"egress": {"apiServerPorts": []}}}, "/networkPolicy/egress/apiServerPorts"),
        ({"monitors": {"interval": "often"}}, "/monitors/interval"),
        ({"rules": {"runbooks": "our wiki: runbooks"}}, "/rules/runbooks"),
        ({"dashboards": {"labels": ["grafana"]}}, "/dashboards/labels"),
        ({"uninstall": {"hook": "yes"}}, "/uninstall/hook"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(values: Any, said: str, helm: Helm) -> None:
    words = helm.refusal(values)
    assert said in words
    assert "schema" in words


def test_identities_labels_variables_and_volumes_go_where_they_are_chosen(helm: Helm) -> None:
    chosen = {
        "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/trimtab"}},
        "podLabels": {"team": "platform", "app.kubernetes.io/name": "other"},
        "extraEnv": [{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "prometheus", "key": "password"}}}],
        "extraVolumes": [{"name": "ca", "configMap": {"name": "ca"}}],
        "extraVolumeMounts": [{"name": "ca", "mountPath": "/ca"}],
    }
    plain = objects(helm.rendered())
    for process in ("webhook", "watchdog", "compactor", "recommender"):
        name = f"trimtab-{process}"
        listed_objects = objects(helm.rendered({process: chosen}))
        account = listed_objects["ServiceAccount", NAMESPACE, name]["metadata"]
        assert account["annotations"] == chosen["serviceAccount"]["annotations"]
        pod, before = (one["Deployment", NAMESPACE, name]["spec"]["template"] for one in (listed_objects, plain))
        assert pod["metadata"]["labels"] == {**before["metadata"]["labels"], "team": "platform"}
        [container], [container_before] = pod["spec"]["containers"], before["spec"]["containers"]
        assert container["env"] == [*container_before["env"], *chosen["extraEnv"]]
        assert pod["spec"]["volumes"] == [*before["spec"].get("volumes", []), *chosen["extraVolumes"]]
        assert container["volumeMounts"] == [*container_before.get("volumeMounts", []), *chosen["extraVolumeMounts"]]
        assert {key for key in listed_objects if listed_objects[key] != plain[key]} == {
            ("ServiceAccount", NAMESPACE, name),
            ("Deployment", NAMESPACE, name),
        }


def test_a_chart_that_contains_it_can_leave_it_out(helm: Helm, tmp_path: Path) -> None:
    shutil.copytree(CHART, tmp_path / "charts" / "trimtab")
    dependency = {"name": "trimtab", "version": "*", "condition": "trimtab.enabled"}
    about = {"apiVersion": "v2", "name": "platform", "version": "1.0.0", "dependencies": [dependency]}
    (tmp_path / "Chart.yaml").write_text(yaml.safe_dump(about))
    rendered = [
        helm.run("template", "platform", tmp_path, "--namespace", NAMESPACE, values={"trimtab": {"enabled": enabled}})
        for enabled in (True, False)
    ]
    assert [("kind: Deployment" in one.stdout) for one in rendered] == [True, False]


def test_its_test_asks_the_webhooks_service_and_may_do_nothing(helm: Helm) -> None:
    hooks = helm.run(
        "template",
        "trimtab",
        CHART,
        "--namespace",
        NAMESPACE,
        "--show-only",
        "templates/tests/webhook-answers.yaml",
        values={"webhook": {"servicePort": 8443}},
    )
    [pod] = [item for item in yaml.safe_load_all(hooks.stdout) if item]
    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
    assert pod["spec"]["automountServiceAccountToken"] is False
    [container] = pod["spec"]["containers"]
    assert container["command"][-1] == f"https://trimtab-webhook.{NAMESPACE}.svc:8443/readyz"
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
