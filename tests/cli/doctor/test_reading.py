"""API objects as `doctor` holds them, the rights it asks for, and how it asks an API server."""

from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from urllib3 import HTTPHeaderDict

from tests.cli.doctor.worlds import HIDDEN, NOW, OURS, WELL
from tests.reasons import has_facts
from trimtab.cli.doctor.command import build_report
from trimtab.cluster.api.admissionregistration import MutatingWebhookConfiguration
from trimtab.cluster.cluster_autoscaler import parse_flags
from trimtab.cluster.processes import METRICS_API, account_name
from trimtab.diagnosis import cluster_reader, observed
from trimtab.diagnosis.account_policies import expected_account_policies
from trimtab.diagnosis.cluster_reader import POD_METRICS_PATH, ClusterProbe, DoctorReader, read_cluster
from trimtab.diagnosis.lease_state import decode_lease
from trimtab.diagnosis.observed import DeploymentState, DryRunResult
from trimtab.diagnosis.permissions import Permission, needed_permissions, resize_permissions
from trimtab.installation.installed_processes import render_account_policies
from trimtab.installation.manifests import render_manifests
from trimtab.installation.names import PROCESSES, InstallValues
from trimtab.installation.processes.webhook import render_webhook_configurations
from trimtab.kube.client import Exchange
from trimtab.kube.errors import ApiStatus, NotAllowed, Unreachable
from trimtab.policy import vpa_webhook
from trimtab.policy.vpa_webhook import WebhookTarget

POLICY_KIND = "ValidatingAdmissionPolicy"


def exchange(status: int, body: Any = None, **headers: str) -> Exchange:
    return Exchange(status=status, content=msgspec.json.encode(body), headers=HTTPHeaderDict(headers))


class Answers:
    """A client that answers every exchange so, and refuses everything else."""

    def __init__(self, answer: Exchange) -> None:
        self.answer, self.asked = answer, []  # type: ignore[var-annotated]
        self.deadlines = type("Deadlines", (), {"read": 1.0, "write": 1.0})

    def send_request(self, method: str, path: str, **more: Any) -> Exchange:
        self.asked.append((method, path, more["query"]))
        return self.answer

    def get(self, path: str, query: Any = None, *, doing: str = "", accept: str = "") -> bytes:
        raise NotAllowed(doing, 403, ApiStatus(reason="Forbidden", message="you cannot"))

    def write(self, method: str, path: str, body: Any, *, doing: str) -> bytes:
        return self.get(path, doing=doing)


class Refuses(Answers):
    """Nobody has any right."""

    def __init__(self) -> None:
        super().__init__(exchange(200))

    def write(self, method: str, path: str, body: Any, *, doing: str) -> bytes:
        return msgspec.json.encode({"status": {"allowed": False}})


def test_our_own_configurations_are_read_as_what_they_are() -> None:
    validating, mutating = map(observed.decode_configuration, render_webhook_configurations(InstallValues()))
    [pods] = mutating.hooks
    assert (pods.fails_closed, pods.reinvoked, pods.creates_pods, pods.timeout_seconds) == (False, True, True, 3)
    assert pods.service == (OURS, "trimtab-webhook")
    assert pods.excluded_namespaces == {"kube-system", "kube-public", "kube-node-lease", OURS}
    assert not any(hook.creates_pods for hook in validating.hooks)
    assert [hook.included_namespaces for hook in validating.hooks] == [None, {OURS}]
    assert pods.included_namespaces is None
    assert observed.decode_configuration(
        next(iter(render_webhook_configurations(InstallValues(cert_manager=True))))
    ).injected


@pytest.mark.parametrize(
    ("config", "called"),
    [
        ({"service": {"namespace": "kube-system", "name": "vpa"}, "caBundle": "eA=="}, (("kube-system", "vpa"), True)),
        ({"service": {"namespace": "kube-system", "name": "vpa"}}, (("kube-system", "vpa"), False)),
        ({"url": "https://vpa.example.com"}, (None, True)),
    ],
)
def test_the_vpas_webhook_is_found_by_its_name_whatever_holds_it(config: Any, called: Any) -> None:
    webhooks = [{"name": "other", "clientConfig": {"url": "https://x"}}, {"name": "vpa.k8s.io", "clientConfig": config}]
    manifest = {"metadata": {"name": "c"}, "webhooks": webhooks}
    assert observed.find_vpa_targets(observed.decode_configuration(manifest)) == (WebhookTarget(*called),)
    assert vpa_webhook.find_vpa_targets(msgspec.convert(manifest, MutatingWebhookConfiguration)) == (
        WebhookTarget(*called),
    )


def test_what_an_object_does_not_say_has_the_apis_own_default() -> None:
    webhook = {"name": "x", "clientConfig": {"url": "https://x"}, "rules": [{"apiGroups": ["*"], "resources": ["*"]}]}
    [hook] = observed.decode_configuration({"metadata": {"name": "c"}, "webhooks": [webhook]}).hooks
    assert (hook.fails_closed, hook.timeout_seconds, hook.reinvoked, hook.service) == (True, 10, False, None)
    assert observed.decode_process({}).replicas == 1
    assert decode_lease({}).holder == ""
    assert observed.decode_policy({"metadata": {"name": "p"}}).observed_generation == 0


def test_the_autoscalers_flags_are_found_in_either_form_and_others_are_not_taken_for_it() -> None:
    def deployment(**container: Any) -> dict[str, Any]:
        return {"spec": {"template": {"spec": {"containers": [container]}}}}

    ours = deployment(
        image="registry.k8s.io/autoscaling/cluster-autoscaler:v1.33.0",
        command=["./cluster-autoscaler", "--scale-down-enabled=false", "--v", "4"],
    )
    [arguments] = observed.list_autoscaler_arguments([deployment(image="coredns"), ours])
    assert parse_flags(arguments) == {"scale-down-enabled": "false", "v": "4"}


def test_a_policys_conditions_are_told_only_while_they_hold() -> None:
    def policy(kind: str, status: str) -> dict[str, Any]:
        condition = {"type": kind, "status": status, "message": "because"}
        return {"metadata": {"name": "p", "generation": 3}, "status": {"conditions": [condition]}}

    assert observed.decode_policy(policy("Loaded", "False")).invalid_reason == "because"
    assert observed.decode_policy(policy("Loaded", "True")).invalid_reason == ""
    assert observed.decode_policy(policy("HarmBrake", "True")).brake_reason == "because"
    assert observed.decode_policy(policy("HarmBrake", "False")).brake_reason == ""


# ── rights ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("process", PROCESSES)
def test_every_right_is_told_in_words_and_asked_for_the_account(process: str) -> None:
    rights = needed_permissions(process, OURS, cert_manager=False)
    actual = [right.to_access_review(f"trimtab-{process}", OURS)["spec"] for right in rights]
    assert len(set(map(str, rights))) > 10
    assert {spec["user"] for spec in actual} == {f"system:serviceaccount:{OURS}:trimtab-{process}"}


def test_a_subresource_is_asked_as_one() -> None:
    assert str(Permission(verb="create", group="", resource="pods", subresource="eviction")) == "create pods/eviction"
    assert any(right.subresource == "eviction" for right in needed_permissions("compactor", OURS, cert_manager=False))


def rendered(process: str, *, cert_manager: bool) -> set[Permission]:
    """What the roles say that are installed."""
    return {
        Permission(
            verb=verb,
            group=group,
            resource=resource.partition("/")[0],
            subresource=resource.partition("/")[2],
            name=name,
            namespace=role["metadata"].get("namespace", ""),
        )
        for role in render_manifests(InstallValues(cert_manager=cert_manager, metrics_api=True))
        if role["kind"] in ("Role", "ClusterRole") and role["metadata"]["name"] == account_name(process)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    }


@pytest.mark.parametrize("cert_manager", [False, True])
@pytest.mark.parametrize("process", PROCESSES)
def test_the_rights_asked_for_are_those_that_are_installed(process: str, cert_manager: bool) -> None:
    assert {*needed_permissions(process, OURS, cert_manager=cert_manager)} == rendered(
        process, cert_manager=cert_manager
    )


@pytest.mark.parametrize("cert_manager", [False, True])
def test_the_metrics_api_also_needs_to_read_how_api_servers_name_users(cert_manager: bool) -> None:
    needed = {*needed_permissions(METRICS_API.name, OURS, cert_manager=cert_manager)}
    [header] = needed - rendered(METRICS_API.name, cert_manager=cert_manager)
    assert has_facts(str(header), "get configmaps", "extension-apiserver-authentication", "kube-system")


def descriptions(process: str, *, cert_manager: bool) -> tuple[str, ...]:
    return tuple(one.description for one in needed_permissions(process, OURS, cert_manager=cert_manager))


@pytest.mark.parametrize("process", [*PROCESSES, METRICS_API.name])
def test_every_permission_says_what_it_is_for(process: str) -> None:
    rights = [*needed_permissions(process, OURS, cert_manager=False, scale_namespaces=["team"]), *resize_permissions()]
    assert [str(one) for one in rights if not one.purpose] == []


def test_a_missing_permission_is_named_with_what_it_is_for() -> None:
    [evict] = [
        one for one in needed_permissions("compactor", OURS, cert_manager=False) if one.subresource == "eviction"
    ]
    assert has_facts(evict.description, "create pods/eviction", "PodDisruptionBudgets")


PROCESS = DeploymentState(replicas=1, ready_replicas=1)


@pytest.mark.parametrize("secret", ["trimtab-metrics-api-tls", ""])
def test_the_metrics_apis_rights_follow_from_who_issues_its_certificate(secret: str) -> None:
    refused: Any = Refuses()
    settings = {"TRIMTAB_METRICS_API_CERTS_SECRET": secret} if secret else {}
    deployment = DeploymentState(replicas=2, ready_replicas=2, settings=settings)
    lacking = DoctorReader(ClusterProbe(refused), OURS).find_missing_permissions(METRICS_API.name, deployment, HIDDEN)
    assert lacking == descriptions(METRICS_API.name, cert_manager=not secret)


def test_the_right_to_scale_is_asked_for_where_the_compactor_was_told_that_it_has_it() -> None:
    deployment = DeploymentState(
        replicas=1, ready_replicas=1, settings={"TRIMTAB_COMPACTOR_SCALE_NAMESPACES": "team:other"}
    )
    refused: Any = Refuses()
    door = DoctorReader(ClusterProbe(refused), OURS)
    without, request = (
        door.find_missing_permissions("compactor", process, HIDDEN) for process in (PROCESS, deployment)
    )
    assert isinstance(request, tuple)
    assert isinstance(without, tuple)
    assert {right.partition(" (")[0] for right in set(request) - set(without)} == {
        f"{verb} {resource} in {namespace}"
        for verb in ("get", "patch")
        for resource in ("deployments/scale.apps", "horizontalpodautoscalers.autoscaling")
        for namespace in ("team", "other")
    }


def test_the_autoscalers_status_is_asked_for_by_the_name_that_the_compactor_was_told() -> None:
    rights = needed_permissions("compactor", OURS, cert_manager=False, autoscaler_status="status-of-ours")
    assert {right.name for right in rights if right.resource == "configmaps"} == {"", "status-of-ours"}


def test_what_became_of_a_policy_that_holds_an_account_is_read_off_it_and_its_binding() -> None:
    rendered = list(render_account_policies(InstallValues()))
    there = {(each["kind"], each["metadata"]["name"]): deepcopy(each) for each in rendered}
    names = [name for kind, name in there if kind == POLICY_KIND]
    for name in names:  # as a server stores it
        there[POLICY_KIND, name]["spec"]["matchConstraints"] |= {"namespaceSelector": {}, "matchPolicy": "Equivalent"}
    assert {(one.is_there, one.is_bound, one.is_ours) for one in observed.decode_account_policies(rendered, there)} == {
        (True, True, True)
    }
    gone, unbound, warns, emptied, narrowed, spared, *_ = [*names, *names]
    del there[POLICY_KIND, gone], there[f"{POLICY_KIND}Binding", gone]
    actual = {one.name: one for one in observed.decode_account_policies(rendered, there)}
    assert (actual[gone].is_there, actual[gone].is_bound) == (False, False)
    there = {(each["kind"], each["metadata"]["name"]): deepcopy(each) for each in rendered}
    there[f"{POLICY_KIND}Binding", unbound]["spec"]["policyName"] = "another"
    there[f"{POLICY_KIND}Binding", warns]["spec"]["validationActions"] = ["Warn", "Audit"]
    there[POLICY_KIND, emptied]["spec"]["validations"] = [{"expression": "true"}]
    actual = {one.name: one for one in observed.decode_account_policies(rendered, there)}
    assert (actual[unbound].is_bound, actual[warns].is_bound, actual[emptied].is_ours) == (False, False, False)
    there = {(each["kind"], each["metadata"]["name"]): deepcopy(each) for each in rendered}
    there[POLICY_KIND, narrowed]["spec"]["matchConstraints"]["namespaceSelector"] = {"matchLabels": {"a": "b"}}
    there[f"{POLICY_KIND}Binding", spared]["spec"]["matchResources"] = {"namespaceSelector": {}}
    actual = {one.name: one for one in observed.decode_account_policies(rendered, there)}
    assert (actual[narrowed].is_ours, actual[spared].is_ours) == (False, False)


def test_the_policies_of_the_metrics_api_are_expected_where_it_is_installed() -> None:
    def names(metrics_api: DeploymentState | None) -> set[str]:
        expected = expected_account_policies(OURS, metrics_api, is_injected=False)
        return {item["metadata"]["name"] for item in expected if "metrics-api" in item["metadata"]["name"]}

    own = {"TRIMTAB_METRICS_API_CERTS_SECRET": "trimtab-metrics-api-tls"}
    assert names(None) == set()
    assert names(DeploymentState(replicas=2, ready_replicas=2)) == {"trimtab-metrics-api-secrets"}
    assert names(DeploymentState(replicas=2, ready_replicas=2, settings=own)) == {
        "trimtab-metrics-api-secrets",
        "trimtab-metrics-api-cabundle",
    }


def test_where_cert_manager_keeps_the_pair_no_right_to_it_is_missed() -> None:
    refused: Any = Refuses()
    injected = observed.decode_configuration(
        next(iter(render_webhook_configurations(InstallValues(cert_manager=True))))
    )
    lacking = DoctorReader(ClusterProbe(refused), OURS).find_missing_permissions("webhook", PROCESS, (injected,))
    assert lacking == descriptions("webhook", cert_manager=True)


def test_while_nobody_knows_who_keeps_the_pair_the_webhooks_rights_are_not_judged() -> None:
    refused: Any = Refuses()
    assert DoctorReader(ClusterProbe(refused), OURS).find_missing_permissions("webhook", PROCESS, HIDDEN) is HIDDEN
    assert (
        DoctorReader(ClusterProbe(refused), OURS).find_missing_permissions("recommender", PROCESS, HIDDEN) is not HIDDEN
    )


# ── asking ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_trial_is_never_stored_and_brings_its_warnings() -> None:
    client: Any = Answers(exchange(201, {}, Warning='299 - "trimtab: here, with \\"3\\" policies"'))
    dry_run = ClusterProbe(client).create_dry_run(cluster_reader.build_asking_pod(), "shop")
    assert client.asked == [("POST", "/api/v1/namespaces/shop/pods", {"dryRun": "All"})]
    assert dry_run.warnings == ('trimtab: here, with "3" policies',)
    assert dry_run.message == ""


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://prometheus.obs.svc:9090", "/api/v1/namespaces/obs/services/prometheus:9090/proxy/api/v1/query"),
        ("http://thanos.obs/", "/api/v1/namespaces/obs/services/thanos:80/proxy/api/v1/query"),
        (
            "https://mimir.obs.svc.cluster.local/prometheus",
            "/api/v1/namespaces/obs/services/https:mimir:443/proxy/prometheus/api/v1/query",
        ),
    ],
)
def test_a_prometheus_of_the_cluster_is_asked_through_the_api_server(url: str, path: str) -> None:
    client: Any = Answers(exchange(200, {}))
    assert ClusterProbe(client).query_usage_source(url).status == 200
    assert client.asked[0][1] == path


def test_a_prometheus_elsewhere_cannot_be_asked_from_here() -> None:
    client: Any = Answers(exchange(200, {}))
    with pytest.raises(Unreachable, match="not a Service of this cluster"):
        ClusterProbe(client).query_usage_source("https://prometheus.example.com")


def test_a_metrics_api_that_knows_of_no_pod_is_empty_and_one_that_is_forbidden_is_not_judged() -> None:
    empty: Any = Answers(exchange(200, {"items": []}))
    assert ClusterProbe(empty).query_usage_source("").empty
    assert empty.asked[0][1] == POD_METRICS_PATH
    hidden: Any = Answers(exchange(403, {"message": "no"}))
    with pytest.raises(NotAllowed):
        ClusterProbe(hidden).query_usage_source("")


def test_who_may_nothing_hears_of_everything_why() -> None:
    client: Any = Answers(exchange(403, {"message": "x cannot create"}, Date="Sat, 21 Nov 2026 12:00:00 GMT"))
    cluster = read_cluster(client, OURS, "default")
    assert cluster.server_time == datetime(2026, 11, 21, 12, tzinfo=UTC)
    assert cluster.pod_trial == DryRunResult(status=403, message="x cannot create", seconds=cluster.pod_trial.seconds)  # type: ignore[union-attr]
    assert str(cluster.secret).startswith("read Secret trimtab-system/trimtab-webhook-tls: 403")
    assert all(
        "you cannot" in str(each)
        for each in (cluster.own_namespace, cluster.crd, cluster.mutating, cluster.vpa, cluster.pools)
    )
    assert all("you cannot" in str(each) for each in (*cluster.missing_permissions.values(), *cluster.leases.values()))


def test_an_answer_without_a_date_tells_no_time() -> None:
    assert exchange(200).server_time is None
    assert exchange(200, Date="yesterday").server_time is None


def test_the_report_counts_and_says_what_was_left_out() -> None:
    from trimtab.cli.doctor.command import judge_cluster

    results = judge_cluster(WELL, without=["vpa"])
    actual_report = build_report(
        results, server="https://x", namespace=OURS, at=str(NOW), without=["vpa"], strict=False
    )
    assert (actual_report.well, actual_report.left_out) == (True, ["vpa"])
    assert sum(actual_report.counts.values()) == len(actual_report.findings)
