"""What is installed: least rights, safe failure, and one source for whoever renders it."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from trimtab.cli.install.cleanup import render_uninstall_job
from trimtab.cli.main import cli
from trimtab.cluster.processes import account_name
from trimtab.compactor import cluster_reader, successor_requests
from trimtab.compactor import settings as compactor_settings
from trimtab.installation import deployments
from trimtab.installation.installed_processes import CLUSTER_RULES, NAMESPACE_RULES, find_installed_process
from trimtab.installation.manifests import render_manifests
from trimtab.installation.names import PROCESSES, InstallValues
from trimtab.installation.processes.webhook import WEBHOOK_GRACE_SECONDS, webhook_environment
from trimtab.kube import certificate_rotation, resources
from trimtab.recommender import pod_watcher as recommender_following
from trimtab.recommender import settings as recommender_settings
from trimtab.runtime import environment as read_environment
from trimtab.runtime.settings import Settings
from trimtab.watchdog import policy_state as watchdog_seen
from trimtab.watchdog import settings as watchdog_settings
from webhook import cert_manager
from webhook import policy_state as webhook_seen

VALUES = InstallValues()
EVERYTHING = render_manifests(VALUES)
WITH_CERT_MANAGER = render_manifests(InstallValues(cert_manager=True))


def one(kind: str, name: str, among: tuple[dict[str, Any], ...] = EVERYTHING) -> dict[str, Any]:
    [actual_item] = [item for item in among if (item["kind"], item["metadata"]["name"]) == (kind, name)]
    return actual_item


def pod(among: tuple[dict[str, Any], ...] = EVERYTHING) -> dict[str, Any]:
    spec: dict[str, Any] = one("Deployment", "trimtab-webhook", among)["spec"]["template"]["spec"]
    return spec


def test_the_certificate_comes_before_whatever_makes_api_servers_call() -> None:
    kinds = [item["kind"] for item in EVERYTHING]
    assert kinds[:2] == ["Namespace", "CustomResourceDefinition"]
    assert kinds[-2:] == ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"]
    assert kinds.index("Secret") < kinds.index("Deployment") < len(kinds) - 2


def test_what_the_replicas_write_is_in_no_manifest() -> None:
    for name in ("trimtab-webhook-tls", "trimtab-webhook-signing", "trimtab-compactor-signing"):
        assert not {"data", "stringData"} & one("Secret", name).keys()
    for kind in cert_manager.CONFIGURATIONS:
        assert set(certificate_rotation.ca_bundles(one(kind, "trimtab"))) == {b""}


def test_no_webhook_of_ours_can_block_or_hold_up_anything() -> None:
    webhooks = [webhook for kind in cert_manager.CONFIGURATIONS for webhook in one(kind, "trimtab")["webhooks"]]
    assert len(webhooks) == 3
    assert {(w["failurePolicy"], w["timeoutSeconds"], w["sideEffects"]) for w in webhooks} == {("Ignore", 3, "None")}


def test_system_namespaces_and_our_own_are_not_even_sent() -> None:
    [webhook] = one("MutatingWebhookConfiguration", "trimtab")["webhooks"]
    excluded = webhook["namespaceSelector"]["matchExpressions"][0]
    assert excluded["operator"] == "NotIn"
    assert {"kube-system", "trimtab-system"} <= set(excluded["values"])
    assert webhook["reinvocationPolicy"] == "IfNeeded"


def test_pools_are_heard_of_in_our_own_namespace_only() -> None:
    policies, pools = one("ValidatingWebhookConfiguration", "trimtab")["webhooks"]
    expected = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["trimtab-system"]}
    assert pools["namespaceSelector"]["matchExpressions"] == [expected]
    assert "namespaceSelector" not in policies  # they are cluster-scoped


def test_the_kubelet_waits_longer_than_a_stop_takes() -> None:
    settings = read_environment.read_settings(webhook_environment(VALUES))
    assert pod()["terminationGracePeriodSeconds"] == WEBHOOK_GRACE_SECONDS > settings.graceful_timeout_seconds


@pytest.mark.parametrize("values", [VALUES, InstallValues(cert_manager=True)])
def test_the_environment_is_one_the_process_understands(values: InstallValues) -> None:
    settings = read_environment.read_settings(webhook_environment(values))
    assert settings.is_live
    assert settings.certs_secret == (None if values.cert_manager else "trimtab-webhook-tls")
    assert (settings.service_name, settings.configuration_name) == (
        Settings().service_name,
        Settings().configuration_name,
    )


def test_the_container_has_no_right_it_does_not_need() -> None:
    [container] = pod()["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod()["securityContext"]["runAsNonRoot"] is True
    assert pod()["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert "cpu" not in container["resources"]["limits"]


def test_a_cpu_or_a_node_that_goes_leaves_one_replica() -> None:
    assert one("Deployment", "trimtab-webhook")["spec"]["replicas"] == 2
    assert one("PodDisruptionBudget", "trimtab-webhook")["spec"]["maxUnavailable"] == 1
    assert pod()["topologySpreadConstraints"][0]["topologyKey"] == "kubernetes.io/hostname"


def test_with_cert_manager_nobody_of_us_reads_the_pair_and_the_ca_bundle_is_left_to_it() -> None:
    roles = [item for item in WITH_CERT_MANAGER if item["kind"] in ("Role", "ClusterRole")]
    secrets = [rule for role in roles for rule in role["rules"] if "secrets" in rule["resources"]]
    assert {name for rule in secrets for name in rule["resourceNames"]} == {
        "trimtab-webhook-signing",
        "trimtab-compactor-signing",
    }
    for kind in cert_manager.CONFIGURATIONS:
        assert certificate_rotation.is_managed_elsewhere(one(kind, "trimtab", WITH_CERT_MANAGER))
    assert pod(WITH_CERT_MANAGER)["volumes"][0]["secret"]["secretName"] == "trimtab-webhook-tls"
    assert one("Certificate", "trimtab-webhook", WITH_CERT_MANAGER)["spec"]["dnsNames"][0].endswith(
        ".trimtab-system.svc"
    )


def test_who_keeps_the_certificate_changes_nothing_about_what_an_uninstall_may_take_away() -> None:
    """With cert-manager, too, the webhook configurations go first."""
    own, theirs = (
        [
            item["rules"]
            for item in render_uninstall_job(InstallValues(cert_manager=cert_manager))
            if item["kind"].endswith("Role")
        ]
        for cert_manager in (False, True)
    )
    assert own == theirs
    assert any(rule["verbs"] == ["delete"] and "resourceNames" in rule for rules in theirs for rule in rules)


def test_what_somebody_may_bring_along_is_mounted_and_never_needed() -> None:
    for process, volume, kind in (("webhook", "callers", "configMap"), ("recommender", "prometheus", "secret")):
        spec = one("Deployment", account_name(process))["spec"]["template"]["spec"]
        [result] = [one_ for one_ in spec["volumes"] if one_["name"] == volume]
        [mount] = [one_ for one_ in spec["containers"][0]["volumeMounts"] if one_["name"] == volume]
        assert result[kind]["optional"] is True
        assert mount["readOnly"] is True


@pytest.mark.parametrize("process", PROCESSES)
def test_a_drain_takes_one_replica_and_nobody_connects_but_to_the_one_port(process: str) -> None:
    selected = one("Deployment", account_name(process))["spec"]["selector"]
    [container] = one("Deployment", account_name(process))["spec"]["template"]["spec"]["containers"]
    budget, network = (one(kind, account_name(process))["spec"] for kind in ("PodDisruptionBudget", "NetworkPolicy"))
    assert (budget["maxUnavailable"], budget["selector"]) == (1, selected)
    assert (network["policyTypes"], network["podSelector"]) == (["Ingress"], selected)
    [ports] = [rule["ports"] for rule in network["ingress"]]
    assert [port["port"] for port in ports] == [port["name"] for port in container["ports"]]


@pytest.mark.parametrize("process", PROCESSES)
def test_every_process_has_an_account_of_its_own(process: str) -> None:
    one("ServiceAccount", account_name(process))
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        binding = one(kind, account_name(process))
        assert binding["roleRef"]["name"] == account_name(process)
        assert [subject["name"] for subject in binding["subjects"]] == [account_name(process)]


def may(process: str, source: resources.ListSource, verb: str, rules: dict[str, Any]) -> bool:
    """Is the process granted this verb on all that the source lists, and on nothing more where the source names one?"""
    group, named = source.group_version.rpartition("/")[0], source.field_selector.removeprefix("metadata.name=")
    return any(
        group == rule.group
        and source.plural in rule.resources
        and verb in rule.verbs
        and rule.names == ((named,) if named else ())
        for rule in rules[process]
    )


FOLLOWED = {
    "webhook": [
        *webhook_seen.list_sources("trimtab-system", policies=True),
        resources.endpoint_slices(("anywhere", "vpa")),
        resources.LIST_SOURCES["Lease"],
    ],
    "watchdog": [
        *watchdog_seen.list_sources("trimtab-system", policies=True),
        resources.endpoint_slices(("anywhere", "vpa")),
        resources.LIST_SOURCES["Lease"],
    ],
    "compactor": [
        *cluster_reader.list_sources(compactor_settings.Settings()),
        *successor_requests.list_sources("trimtab-system"),
        *(resources.LIST_SOURCES[kind] for kind in successor_requests.FIRST_KINDS),
    ],
    "recommender": [*recommender_following.watched_lists()],
}


@pytest.mark.parametrize("process", FOLLOWED)
def test_a_process_may_watch_what_it_follows_and_nothing_else(process: str) -> None:
    granted = {
        (rule.group, resource)
        for rule in (*CLUSTER_RULES[process], *NAMESPACE_RULES[process])
        for resource in rule.resources
        if "watch" in rule.verbs
    }
    followed = {(source.group_version.rpartition("/")[0], source.plural) for source in FOLLOWED[process]}
    assert granted == followed
    for source in FOLLOWED[process]:
        rules = NAMESPACE_RULES if source.namespace == "trimtab-system" else CLUSTER_RULES
        assert all(may(process, source, verb, rules) for verb in ("list", "watch")), source.kind


@pytest.mark.parametrize("process", ["watchdog", "compactor", "recommender"])
def test_the_environment_of_who_works_behind_a_lease_is_understood(process: str) -> None:
    result = {"watchdog": watchdog_settings, "compactor": compactor_settings, "recommender": recommender_settings}[
        process
    ].Settings
    settings: Any = read_environment.read_as(find_installed_process(process).environment(VALUES), result)
    assert (settings.namespace, settings.listen.port) == ("trimtab-system", deployments.PORT)
    [container] = one("Deployment", account_name(process))["spec"]["template"]["spec"]["containers"]
    assert container["args"] == [process]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_nobody_may_create_or_list_secrets_or_anything_with_a_star() -> None:
    for rules in (*CLUSTER_RULES.values(), *NAMESPACE_RULES.values()):
        for rule in rules:
            assert not {"*", "escalate", "bind", "impersonate"} & {*rule.verbs, *rule.resources, rule.group}
            if "secrets" in rule.resources:
                assert set(rule.verbs) <= {"get", "update"}
                assert len(rule.names) == 1


@pytest.mark.parametrize("process", ["webhook", "compactor"])
def test_a_process_may_read_the_signing_keys_of_its_own_alone(process: str) -> None:
    named = {name for rule in NAMESPACE_RULES[process] if "secrets" in rule.resources for name in rule.names}
    assert {name for name in named if name.endswith("-signing")} == {f"trimtab-{process}-signing"}


def scalers(values: InstallValues) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """(account, namespace) → rules by which it may scale Deployments."""
    results: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for item in (*render_manifests(values), *render_uninstall_job(values)):
        for rule in item.get("rules", []) if item["kind"] in ("Role", "ClusterRole") else []:
            if "deployments/scale" in rule["resources"]:
                where = (item["metadata"]["name"], item["metadata"].get("namespace", ""))
                results.setdefault(where, []).append(rule)
    return results


def test_nobody_may_scale_what_is_not_ours_unless_its_namespace_is_named() -> None:
    [(where, [rule])] = scalers(VALUES).items()
    assert where == ("trimtab-uninstall", "trimtab-system")
    assert rule["resourceNames"] == ["trimtab-watchdog", "trimtab-compactor", "trimtab-recommender"]


def test_a_namespace_that_is_named_gets_a_role_of_its_own_and_the_compactor_is_told() -> None:
    values = InstallValues(scale_namespaces=("shop", "bank"))
    named = {where for where in scalers(values) if where[1] in ("shop", "bank")}
    assert named == {
        (f"trimtab-{process}-scale", namespace)
        for process in ("compactor", "uninstall")
        for namespace in ("shop", "bank")
    }
    bindings = [
        item
        for item in render_manifests(values)
        if item["kind"] == "RoleBinding" and item["metadata"]["namespace"] == "shop"
    ]
    assert [item["subjects"] for item in bindings] == [
        [{"kind": "ServiceAccount", "name": "trimtab-compactor", "namespace": "trimtab-system"}]
    ]
    [container] = one("Deployment", "trimtab-compactor", render_manifests(values))["spec"]["template"]["spec"][
        "containers"
    ]
    assert {"name": "TRIMTAB_COMPACTOR_SCALE_NAMESPACES", "value": "shop:bank"} in container["env"]
    settings = read_environment.read_as(
        find_installed_process("compactor").environment(values), compactor_settings.Settings
    )
    assert settings.scale_namespaces == ("shop", "bank")


def test_with_policies_only_no_pod_is_sent_to_the_webhook() -> None:
    kinds = [item["kind"] for item in render_manifests(InstallValues(mode="policies"))]
    assert "MutatingWebhookConfiguration" not in kinds
    assert "ValidatingWebhookConfiguration" in kinds
    assert render_manifests(InstallValues(mode="both")) == render_manifests(InstallValues())


def _is_of_parameters(item: dict[str, Any]) -> bool:
    return item["kind"] in ("Role", "RoleBinding") and item["metadata"]["name"] == "trimtab-recommender-parameters"


def test_the_recommender_writes_parameters_only_where_it_is_named() -> None:
    assert not [item for item in render_manifests(VALUES) if _is_of_parameters(item)]
    values = InstallValues(parameter_namespaces=("shop", "bank"))
    roles = [item for item in render_manifests(values) if item["metadata"]["name"] == "trimtab-recommender-parameters"]
    assert {item["metadata"].get("namespace") for item in roles if item["kind"] == "Role"} == {"shop", "bank"}
    [role] = [item for item in roles if item["kind"] == "Role" and item["metadata"]["namespace"] == "shop"]
    assert {
        "apiGroups": [""],
        "resources": ["configmaps"],
        "verbs": ["patch"],
        "resourceNames": ["trimtab-requests"],
    } in (role["rules"])
    settings = read_environment.read_as(
        find_installed_process("recommender").environment(values), recommender_settings.Settings
    )
    assert settings.parameter_namespaces == ("shop", "bank")


def test_the_recommender_demotes_groups_only_where_that_is_switched_on() -> None:
    assert not [item for item in render_manifests(VALUES) if "demotion" in item["metadata"]["name"]]
    values = InstallValues(demote_groups=True, autoscaler_namespace="scaling", autoscaler_status="status-of-it")
    role = one("Role", "trimtab-recommender-demotion", render_manifests(values))
    assert role["metadata"]["namespace"] == "scaling"
    names = {rule["resourceNames"][0]: rule["verbs"] for rule in role["rules"]}
    assert names == {"cluster-autoscaler-priority-expander": ["get", "update"], "status-of-it": ["get"]}
    settings = read_environment.read_as(
        find_installed_process("recommender").environment(values), recommender_settings.Settings
    )
    assert settings.demote_groups
    assert (settings.autoscaler_namespace, settings.autoscaler_status_configmap) == ("scaling", "status-of-it")


def test_only_the_recommender_may_write_parameters() -> None:
    guard = one(
        "ValidatingAdmissionPolicy",
        "trimtab-requests-writer",
        render_manifests(InstallValues(parameter_namespaces=("shop",))),
    )
    assert guard["spec"]["matchConditions"][0]["expression"] == "object.metadata.name == 'trimtab-requests'"
    assert "system:serviceaccount:trimtab-system:trimtab-recommender" in guard["spec"]["validations"][0]["expression"]


def test_the_permission_to_resize_pods_is_granted_only_on_request() -> None:
    def resizing(values: InstallValues) -> list[str]:
        return [
            item["metadata"]["name"]
            for item in render_manifests(values)
            if item["kind"] == "ClusterRole" and "pods/resize" in str(item["rules"])
        ]

    assert resizing(InstallValues()) == []
    assert resizing(InstallValues(resize=True)) == ["trimtab-compactor-resize"]


@pytest.mark.parametrize(
    "values",
    [
        InstallValues(),
        InstallValues(cert_manager=True, metrics_api=True),
        InstallValues(mode="policies"),
        InstallValues(mode="both", resize=True, scale_namespaces=("shop",), replicas=3),
    ],
)
def test_what_is_installed_passes_the_lint_of_trimtab(values: InstallValues, tmp_path: Path) -> None:
    manifests = (*render_manifests(values), *render_uninstall_job(values))
    (tmp_path / "install.yaml").write_text("\n---\n".join(map(json.dumps, manifests)))
    result = CliRunner().invoke(cli, ["lint", "-f", str(tmp_path), "--strict", "-o", "json"])
    assert (result.exit_code, json.loads(result.stdout)["findings"]) == (0, [])
