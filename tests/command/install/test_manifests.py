"""What is installed: least rights, safe failure, and one source for whoever renders it."""

from typing import Any

import pytest

from trimtab.command.install import working
from trimtab.command.install.manifests import manifests
from trimtab.command.install.names import PROCESSES, account
from trimtab.command.install.rbac import CLUSTER, OWN
from trimtab.command.install.removal import removal
from trimtab.command.install.serving import GRACE, environment
from trimtab.command.install.values import Values
from trimtab.compactor import admitting, sight
from trimtab.compactor import settings as compactor_settings
from trimtab.kube import kinds
from trimtab.recommender import following as recommender_following
from trimtab.recommender import settings as recommender_settings
from trimtab.runtime import environment as read_environment
from trimtab.runtime.settings import Settings
from trimtab.watchdog import seen as watchdog_seen
from trimtab.watchdog import settings as watchdog_settings
from webhook import seen as webhook_seen
from webhook import shared

VALUES = Values()
EVERYTHING = manifests(VALUES)
WITH_CERT_MANAGER = manifests(Values(cert_manager=True))


def one(kind: str, name: str, among: tuple[dict[str, Any], ...] = EVERYTHING) -> dict[str, Any]:
    [found] = [item for item in among if (item["kind"], item["metadata"]["name"]) == (kind, name)]
    return found


def pod(among: tuple[dict[str, Any], ...] = EVERYTHING) -> dict[str, Any]:
    found: dict[str, Any] = one("Deployment", "trimtab-webhook", among)["spec"]["template"]["spec"]
    return found


def test_the_certificate_comes_before_whatever_makes_api_servers_call() -> None:
    kinds = [item["kind"] for item in EVERYTHING]
    assert kinds[:2] == ["Namespace", "CustomResourceDefinition"]
    assert kinds[-2:] == ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"]
    assert kinds.index("Secret") < kinds.index("Deployment") < len(kinds) - 2


def test_what_the_replicas_write_is_in_no_manifest() -> None:
    assert "data" not in one("Secret", "trimtab-webhook-tls")
    for kind in shared.CONFIGURATIONS:
        assert set(shared.bundles(one(kind, "trimtab"))) == {b""}


def test_no_webhook_of_ours_can_block_or_hold_up_anything() -> None:
    webhooks = [webhook for kind in shared.CONFIGURATIONS for webhook in one(kind, "trimtab")["webhooks"]]
    assert len(webhooks) == 3
    assert {(w["failurePolicy"], w["timeoutSeconds"], w["sideEffects"]) for w in webhooks} == {("Ignore", 3, "None")}


def test_system_namespaces_and_our_own_are_not_even_sent() -> None:
    [webhook] = one("MutatingWebhookConfiguration", "trimtab")["webhooks"]
    excluded = webhook["namespaceSelector"]["matchExpressions"][0]
    assert excluded["operator"] == "NotIn"
    assert {"kube-system", "trimtab-system"} <= set(excluded["values"])
    assert webhook["reinvocationPolicy"] == "IfNeeded"


def test_the_kubelet_waits_longer_than_a_stop_takes() -> None:
    settings = read_environment.read(environment(VALUES))
    assert pod()["terminationGracePeriodSeconds"] == GRACE > settings.graceful_timeout


@pytest.mark.parametrize("values", [VALUES, Values(cert_manager=True)])
def test_the_environment_is_one_the_process_understands(values: Values) -> None:
    settings = read_environment.read(environment(values))
    assert settings.live
    assert settings.certs_secret == (None if values.cert_manager else "trimtab-webhook-tls")
    assert (settings.service, settings.configuration) == (Settings().service, Settings().configuration)


def test_the_container_has_no_right_it_does_not_need() -> None:
    [container] = pod()["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert pod()["securityContext"]["runAsNonRoot"] is True
    assert pod()["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert "cpu" not in container["resources"]["limits"]


def test_a_cpu_or_a_node_that_goes_leaves_one_replica() -> None:
    assert one("Deployment", "trimtab-webhook")["spec"]["replicas"] == 2
    assert one("PodDisruptionBudget", "trimtab-webhook")["spec"]["maxUnavailable"] == 1
    assert pod()["topologySpreadConstraints"][0]["topologyKey"] == "kubernetes.io/hostname"


def test_with_cert_manager_nobody_of_us_reads_a_secret_and_the_ca_bundle_is_left_to_it() -> None:
    roles = [item for item in WITH_CERT_MANAGER if item["kind"] in ("Role", "ClusterRole")]
    assert not [rule for role in roles for rule in role["rules"] if "secrets" in rule["resources"]]
    for kind in shared.CONFIGURATIONS:
        assert shared.left_alone(one(kind, "trimtab", WITH_CERT_MANAGER))
    assert pod(WITH_CERT_MANAGER)["volumes"][0]["secret"]["secretName"] == "trimtab-webhook-tls"
    assert one("Certificate", "trimtab-webhook", WITH_CERT_MANAGER)["spec"]["dnsNames"][0].endswith(
        ".trimtab-system.svc"
    )


def test_who_keeps_the_certificate_changes_nothing_about_what_an_uninstall_may_take_away() -> None:
    """With cert-manager, too, the webhook configurations go first."""
    own, theirs = (
        [item["rules"] for item in removal(Values(cert_manager=cert_manager)) if item["kind"].endswith("Role")]
        for cert_manager in (False, True)
    )
    assert own == theirs
    assert any(rule["verbs"] == ["delete"] and "resourceNames" in rule for rules in theirs for rule in rules)


def test_what_somebody_may_bring_along_is_mounted_and_never_needed() -> None:
    for process, volume, kind in (("webhook", "callers", "configMap"), ("recommender", "prometheus", "secret")):
        spec = one("Deployment", account(process))["spec"]["template"]["spec"]
        [found] = [one_ for one_ in spec["volumes"] if one_["name"] == volume]
        [mount] = [one_ for one_ in spec["containers"][0]["volumeMounts"] if one_["name"] == volume]
        assert found[kind]["optional"] is True
        assert mount["readOnly"] is True


@pytest.mark.parametrize("process", PROCESSES)
def test_a_drain_takes_one_replica_and_nobody_connects_but_to_the_one_port(process: str) -> None:
    selected = one("Deployment", account(process))["spec"]["selector"]
    [container] = one("Deployment", account(process))["spec"]["template"]["spec"]["containers"]
    budget, network = (one(kind, account(process))["spec"] for kind in ("PodDisruptionBudget", "NetworkPolicy"))
    assert (budget["maxUnavailable"], budget["selector"]) == (1, selected)
    assert (network["policyTypes"], network["podSelector"]) == (["Ingress"], selected)
    [ports] = [rule["ports"] for rule in network["ingress"]]
    assert [port["port"] for port in ports] == [port["name"] for port in container["ports"]]


@pytest.mark.parametrize("process", PROCESSES)
def test_every_process_has_an_account_of_its_own(process: str) -> None:
    one("ServiceAccount", account(process))
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        binding = one(kind, account(process))
        assert binding["roleRef"]["name"] == account(process)
        assert [subject["name"] for subject in binding["subjects"]] == [account(process)]


def may(process: str, group: str, resource: str, verb: str, rules: dict[str, Any]) -> bool:
    return any(
        group == rule.group and resource in rule.resources and verb in rule.verbs and not rule.names
        for rule in rules[process]
    )


FOLLOWED = {
    "webhook": [*webhook_seen.sources("trimtab-system", policies=True), webhook_seen.slices(("anywhere", "vpa"))],
    "watchdog": [*watchdog_seen.sources("trimtab-system", policies=True), watchdog_seen.slices(("anywhere", "vpa"))],
    "compactor": [*kinds.sources(sight.KINDS), *admitting.sources("trimtab-system"), kinds.PLACES["PodPolicy"]],
    "recommender": [*recommender_following.sources()],
}


@pytest.mark.parametrize("process", FOLLOWED)
def test_a_process_may_watch_what_it_follows_and_nothing_else(process: str) -> None:
    granted = {
        (rule.group, resource)
        for rule in (*CLUSTER[process], *OWN[process])
        for resource in rule.resources
        if "watch" in rule.verbs
    }
    followed = {(source.group_version.rpartition("/")[0], source.plural) for source in FOLLOWED[process]}
    assert granted == followed
    for source in FOLLOWED[process]:
        group = source.group_version.rpartition("/")[0]
        rules = OWN if source.namespace == "trimtab-system" else CLUSTER
        assert all(may(process, group, source.plural, verb, rules) for verb in ("list", "watch")), source.kind


@pytest.mark.parametrize("process", ["watchdog", "compactor", "recommender"])
def test_the_environment_of_who_works_behind_a_lease_is_understood(process: str) -> None:
    found = {"watchdog": watchdog_settings, "compactor": compactor_settings, "recommender": recommender_settings}[
        process
    ].Settings
    settings: Any = read_environment.read_as(working.environment(VALUES), found)
    assert (settings.namespace, settings.listen.port) == ("trimtab-system", working.PORT)
    [container] = one("Deployment", account(process))["spec"]["template"]["spec"]["containers"]
    assert container["args"] == [process]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_nobody_may_create_or_list_secrets_or_anything_with_a_star() -> None:
    for rules in (*CLUSTER.values(), *OWN.values()):
        for rule in rules:
            assert not {"*", "escalate", "bind", "impersonate"} & {*rule.verbs, *rule.resources, rule.group}
            if "secrets" in rule.resources:
                assert (set(rule.verbs), rule.names) == ({"get", "update"}, ("trimtab-webhook-tls",))
