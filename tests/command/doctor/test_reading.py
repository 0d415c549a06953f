"""API objects as `doctor` holds them, the rights it asks for, and how it asks an API server."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from urllib3 import HTTPHeaderDict

from tests.command.doctor.worlds import HIDDEN, NOW, OURS, WELL
from trimtab.cluster.api.webhooks import MutatingWebhookConfiguration
from trimtab.command.doctor import shapes, trials
from trimtab.command.doctor.asking import METRICS, Asking
from trimtab.command.doctor.look import Door, look
from trimtab.command.doctor.report import report
from trimtab.command.doctor.rights import Right, needed
from trimtab.command.doctor.seen import Trial
from trimtab.command.install.calling import calling
from trimtab.command.install.manifests import manifests
from trimtab.command.install.names import PROCESSES, account
from trimtab.command.install.values import Values
from trimtab.kube.errors import NotAllowed, Status, Unreachable
from trimtab.kube.exchange import Exchange
from trimtab.policy import vpa_webhook
from trimtab.policy.vpa_webhook import Called


def exchange(status: int, body: Any = None, **headers: str) -> Exchange:
    return Exchange(status=status, content=msgspec.json.encode(body), headers=HTTPHeaderDict(headers))


class Answers:
    """A client that answers every exchange so, and refuses everything else."""

    def __init__(self, answer: Exchange) -> None:
        self.answer, self.asked = answer, []  # type: ignore[var-annotated]
        self.deadlines = type("Deadlines", (), {"read": 1.0, "write": 1.0})

    def exchange(self, method: str, path: str, **more: Any) -> Exchange:
        self.asked.append((method, path, more["query"]))
        return self.answer

    def get(self, path: str, query: Any = None, *, doing: str = "", accept: str = "") -> bytes:
        raise NotAllowed(doing, 403, Status(reason="Forbidden", message="you cannot"))

    def write(self, method: str, path: str, body: Any, *, doing: str) -> bytes:
        return self.get(path, doing=doing)


class Refuses(Answers):
    """Nobody has any right."""

    def __init__(self) -> None:
        super().__init__(exchange(200))

    def write(self, method: str, path: str, body: Any, *, doing: str) -> bytes:
        return msgspec.json.encode({"status": {"allowed": False}})


def test_our_own_configurations_are_read_as_what_they_are() -> None:
    validating, mutating = map(shapes.configuration, calling(Values()))
    [pods] = mutating.hooks
    assert (pods.fails, pods.again, pods.creates_pods, pods.timeout) == (False, True, True, 3)
    assert pods.service == (OURS, "trimtab-webhook")
    assert pods.spares == {"kube-system", "kube-public", "kube-node-lease", OURS}
    assert not any(hook.creates_pods for hook in validating.hooks)
    assert shapes.configuration(next(iter(calling(Values(cert_manager=True))))).injected


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
    found = {"metadata": {"name": "c"}, "webhooks": webhooks}
    assert shapes.vpa(shapes.configuration(found)) == (Called(*called),)
    assert vpa_webhook.called(msgspec.convert(found, MutatingWebhookConfiguration)) == (Called(*called),)


def test_what_an_object_does_not_say_has_the_apis_own_default() -> None:
    webhook = {"name": "x", "clientConfig": {"url": "https://x"}, "rules": [{"apiGroups": ["*"], "resources": ["*"]}]}
    [hook] = shapes.configuration({"metadata": {"name": "c"}, "webhooks": [webhook]}).hooks
    assert (hook.fails, hook.timeout, hook.again, hook.service) == (True, 10, False, None)
    assert shapes.process({}).wanted == 1
    assert shapes.lease({}).holder == ""
    assert shapes.standing({"metadata": {"name": "p"}}).observed == 0


def test_the_autoscalers_flags_are_found_in_either_form_and_others_are_not_taken_for_it() -> None:
    def deployment(**container: Any) -> dict[str, Any]:
        return {"spec": {"template": {"spec": {"containers": [container]}}}}

    ours = deployment(image="registry.k8s.io/autoscaling/cluster-autoscaler:v1.33.0",
                      command=["./cluster-autoscaler", "--scale-down-enabled=false", "--v", "4"])  # fmt: skip
    assert shapes.autoscaler_flags([deployment(image="coredns"), ours]) == {"scale-down-enabled": "false", "v": "4"}
    assert shapes.autoscaler_flags([deployment(image="coredns")]) is None


def test_a_policys_conditions_are_told_only_while_they_hold() -> None:
    def policy(kind: str, status: str) -> dict[str, Any]:
        condition = {"type": kind, "status": status, "message": "because"}
        return {"metadata": {"name": "p", "generation": 3}, "status": {"conditions": [condition]}}

    assert shapes.standing(policy("Loaded", "False")).broken == "because"
    assert shapes.standing(policy("Loaded", "True")).broken == ""
    assert shapes.standing(policy("HarmBrake", "True")).braked == "because"
    assert shapes.standing(policy("HarmBrake", "False")).braked == ""


# ── rights ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("process", PROCESSES)
def test_every_right_is_told_in_words_and_asked_for_the_account(process: str) -> None:
    rights = needed(process, OURS, cert_manager=False)
    asked = [right.review(f"trimtab-{process}", OURS)["spec"] for right in rights]
    assert len(set(map(str, rights))) > 10
    assert {spec["user"] for spec in asked} == {f"system:serviceaccount:{OURS}:trimtab-{process}"}


def test_a_subresource_is_asked_as_one() -> None:
    assert str(Right(verb="create", group="", resource="pods", subresource="eviction")) == "create pods/eviction"
    assert any(right.subresource == "eviction" for right in needed("compactor", OURS, cert_manager=False))


def rendered(process: str, *, cert_manager: bool) -> set[Right]:
    """What the roles say that are installed."""
    return {
        Right(
            verb=verb, group=group, resource=resource.partition("/")[0], subresource=resource.partition("/")[2],
            name=name, namespace=role["metadata"].get("namespace", ""),
        )
        for role in manifests(Values(cert_manager=cert_manager))
        if role["kind"] in ("Role", "ClusterRole") and role["metadata"]["name"] == account(process)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    }  # fmt: skip


@pytest.mark.parametrize("cert_manager", [False, True])
@pytest.mark.parametrize("process", PROCESSES)
def test_the_rights_asked_for_are_those_that_are_installed(process: str, cert_manager: bool) -> None:
    assert {*needed(process, OURS, cert_manager=cert_manager)} == rendered(process, cert_manager=cert_manager)


def test_where_cert_manager_keeps_the_pair_no_right_to_it_is_missed() -> None:
    refused: Any = Refuses()
    injected = shapes.configuration(next(iter(calling(Values(cert_manager=True)))))
    lacking = Door(Asking(refused), OURS).lacking("webhook", (injected,))
    assert lacking == tuple(map(str, needed("webhook", OURS, cert_manager=True)))


def test_while_nobody_knows_who_keeps_the_pair_the_webhooks_rights_are_not_judged() -> None:
    refused: Any = Refuses()
    assert Door(Asking(refused), OURS).lacking("webhook", HIDDEN) is HIDDEN
    assert Door(Asking(refused), OURS).lacking("recommender", HIDDEN) is not HIDDEN


# ── asking ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_trial_is_never_stored_and_brings_its_warnings() -> None:
    client: Any = Answers(exchange(201, {}, Warning='299 - "trimtab: here, with \\"3\\" policies"'))
    found = Asking(client).trial(trials.asking(), "shop")
    assert client.asked == [("POST", "/api/v1/namespaces/shop/pods", {"dryRun": "All"})]
    assert found.warnings == ('trimtab: here, with "3" policies',)
    assert found.message == ""


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
    assert Asking(client).usage(url).status == 200
    assert client.asked[0][1] == path


def test_a_prometheus_elsewhere_cannot_be_asked_from_here() -> None:
    client: Any = Answers(exchange(200, {}))
    with pytest.raises(Unreachable, match="no Service of this cluster"):
        Asking(client).usage("https://prometheus.example.com")


def test_a_metrics_api_that_knows_of_no_pod_is_empty_and_one_that_is_forbidden_is_not_judged() -> None:
    empty: Any = Answers(exchange(200, {"items": []}))
    assert Asking(empty).usage("").empty
    assert empty.asked[0][1] == METRICS
    hidden: Any = Answers(exchange(403, {"message": "no"}))
    with pytest.raises(NotAllowed):
        Asking(hidden).usage("")


def test_who_may_nothing_hears_of_everything_why() -> None:
    client: Any = Answers(exchange(403, {"message": "x cannot create"}, Date="Sat, 21 Nov 2026 12:00:00 GMT"))
    found = look(client, OURS, "default")
    assert found.there == datetime(2026, 11, 21, 12, tzinfo=UTC)
    assert found.pod == Trial(status=403, message="x cannot create", seconds=found.pod.seconds)  # type: ignore[union-attr]
    assert str(found.secret).startswith("read Secret trimtab-system/trimtab-webhook-tls: 403")
    assert all("you cannot" in str(each) for each in (found.home, found.crd, found.mutating, found.vpa, found.pools))
    assert all("you cannot" in str(each) for each in (*found.rights.values(), *found.leases.values()))


def test_an_answer_without_a_date_tells_no_time() -> None:
    assert exchange(200).at is None
    assert exchange(200, Date="yesterday").at is None


def test_the_report_counts_and_says_what_was_left_out() -> None:
    from trimtab.command.doctor.judge import judged

    told = judged(WELL, without=["vpa"])
    found = report(told, server="https://x", namespace=OURS, at=str(NOW), without=["vpa"], strict=False)
    assert (found.well, found.left_out) == (True, ["vpa"])
    assert sum(found.counts.values()) == len(found.findings)
