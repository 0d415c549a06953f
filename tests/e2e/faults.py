"""Faults to plant in an installation, each under the names by which `doctor` must find it; undone at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import certs
from tests.controlplane.cluster import Cluster
from tests.e2e.installed import Installed
from trimtab.cli.doctor.command import CheckResult, is_well, judge_cluster
from trimtab.diagnosis.cluster_reader import read_cluster
from trimtab.diagnosis.finding import FindingSeverity
from trimtab.installation.names import CERTIFICATE_SECRET, CONFIGURATION_NAME, WEBHOOK_NAME
from trimtab.kube import certificate_rotation, objects
from trimtab.kube.certificate_rotation import certificate_names
from trimtab.kube.objects import Writer
from webhook import cert_manager

MUTATING, VALIDATING = cert_manager.CONFIGURATIONS


def inside(here: Installed, namespace: str) -> Cluster:
    return Cluster(here.cluster.kubeconfig, namespace)


def reports(here: Installed, ago: int = 0) -> None:
    """The autoscaler, so many seconds ago."""
    at = (datetime.now(UTC) - timedelta(seconds=ago)).strftime("%Y-%m-%d %H:%M:%S.0 +0000 UTC")
    status = "clusterWide:\n  health: {status: Healthy}\n  scaleUp: {status: NoActivity}\nnodeGroups: []\n"
    meta = {
        "name": "cluster-autoscaler-status",
        "namespace": "kube-system",
        "annotations": {"cluster-autoscaler.kubernetes.io/last-updated": at},
    }
    here.cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"status": status}})


def seen(here: Installed) -> tuple[CheckResult, ...]:
    return judge_cluster(read_cluster(here.client, here.values.namespace, here.cluster.namespace))


def codes(here: Installed) -> set[str]:
    """Of everything that is not as it should be."""
    return {each.finding.reason.code.name for each in seen(here) if each.finding.severity != FindingSeverity.OK}


Fault = Callable[[Installed], AbstractContextManager[None]]
FAULTS: dict[str, tuple[Fault, set[str]]] = {}


def finds(*names: str) -> Callable[[Fault], Fault]:
    def keep(fault: Fault) -> Fault:
        FAULTS[fault.__name__.replace("_", " ")] = (fault, set(names))
        return fault

    return keep


def changed(
    here: Installed, kind: str, change: Callable[[dict[str, Any]], Any], name: str = CONFIGURATION_NAME
) -> None:
    """The object with this done to it, as somebody does it."""
    namespace = here.values.namespace if kind in ("Deployment", "Secret", "Lease") else ""
    stored_object = objects.get_plain(here.client, kind, name, namespace)
    assert stored_object is not None
    change(stored_object)
    objects.replace_plain(Writer(client=here.client), stored_object)


@contextmanager
def nobody_keeps(here: Installed) -> Iterator[None]:
    """No replica of the webhook runs; two do afterwards, and all stands again."""
    here.stop()
    try:
        yield
    finally:
        here.apply()
        here.start(2)
        here.cluster.eventually(here.calls, what="pods changed again")


@contextmanager
def mended(here: Installed) -> Iterator[None]:
    """What was broken is applied anew."""
    try:
        yield
    finally:
        here.apply()


@finds("webhook-not-called", "validation-not-called")
@contextmanager
def nobody_answers_behind_the_service(here: Installed) -> Iterator[None]:
    with nobody_keeps(here):
        yield


@finds("ca-bundle-mismatch", "ca-bundles-differ", "webhook-not-called")
@contextmanager
def another_authority_in_one_configuration(here: Installed) -> Iterator[None]:
    other = certs.issue(["x"], now=datetime.now(UTC)).bundle
    with nobody_keeps(here):
        stored_object = objects.get_plain(here.client, MUTATING, CONFIGURATION_NAME) or {}
        objects.replace_plain(Writer(client=here.client), certificate_rotation.with_ca_bundle(stored_object, other))
        yield


@finds("ca-bundle-missing")
@contextmanager
def a_configuration_without_a_bundle(here: Installed) -> Iterator[None]:
    with nobody_keeps(here):
        changed(here, VALIDATING, lambda result: result["webhooks"][0]["clientConfig"].pop("caBundle"))
        yield


@finds("certificate-unusable")
@contextmanager
def a_pair_that_expired(here: Installed) -> Iterator[None]:
    then, names = datetime.now(UTC) - timedelta(days=30), certificate_names(WEBHOOK_NAME, here.values.namespace)
    with nobody_keeps(here):
        here.write(certs.reissued_pair(here.store, names, now=then, life=timedelta(days=1)))
        yield


@finds("certificate-unusable")
@contextmanager
def a_pair_of_another_name(here: Installed) -> Iterator[None]:
    with nobody_keeps(here):
        here.write(certs.reissued_pair(here.store, ["elsewhere.svc"], now=datetime.now(UTC)))
        yield


@finds("certificate-missing")
@contextmanager
def an_emptied_secret(here: Installed) -> Iterator[None]:
    with nobody_keeps(here):
        changed(here, "Secret", lambda result: result.pop("data"), CERTIFICATE_SECRET)
        yield


@finds("configuration-missing", "validation-not-called")
@contextmanager
def a_configuration_is_gone(here: Installed) -> Iterator[None]:
    with mended(here):
        here.cluster.delete(VALIDATING, CONFIGURATION_NAME)
        yield


@finds("failure-policy-fail", "timeout-too-long", "reinvocation-never", "system-namespaces-selected")
@contextmanager
def a_configuration_that_somebody_changed(here: Installed) -> Iterator[None]:
    wrong = {"failurePolicy": "Fail", "timeoutSeconds": 20, "reinvocationPolicy": "Never", "namespaceSelector": {}}
    with mended(here):
        changed(here, MUTATING, lambda result: result["webhooks"][0].update(wrong))
        yield


@finds("permission-missing")
@contextmanager
def a_role_that_somebody_cut(here: Installed) -> Iterator[None]:
    with mended(here):
        changed(here, "ClusterRole", lambda result: result["rules"].pop(), "trimtab-compactor")
        yield


@finds("account-policy-missing")
@contextmanager
def a_policy_on_an_account_is_gone(here: Installed) -> Iterator[None]:
    with mended(here):
        here.cluster.delete("ValidatingAdmissionPolicy", "trimtab-compactor-nodes")
        yield


@finds("account-policy-missing", "account-policy-differs")
@contextmanager
def policies_on_accounts_that_somebody_softened(here: Installed) -> Iterator[None]:
    kind, rule = "ValidatingAdmissionPolicy", {"expression": "true", "message": "any"}
    with mended(here):
        changed(
            here,
            f"{kind}Binding",
            lambda result: result["spec"].update(validationActions=["Audit"]),
            "trimtab-recommender-configmaps",
        )
        changed(here, kind, lambda result: result["spec"].update(validations=[rule]), "trimtab-compactor-nodes")
        yield


@finds("pool-without-right-to-scale")
@contextmanager
def a_pool_that_asks_for_what_nobody_may(here: Installed) -> Iterator[None]:
    meta = {"name": "pool-x", "namespace": here.values.namespace, "labels": {"trimtab.dev/pool": "x"}}
    text = "nodes: {labels: {pool: x}}\nprotect: {singleReplicas: false}"
    here.cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"pool.yaml": text}})
    yield
    inside(here, here.values.namespace).delete("ConfigMap", "pool-x")


@finds("drain-annotation-not-authentic")
@contextmanager
def a_note_that_nobody_signed(here: Installed) -> Iterator[None]:
    [node, *_] = [result["metadata"]["name"] for result in here.cluster.list("Node", selector="pool=doctor")]
    say: Callable[[str | None], object] = lambda text: here.cluster.patch(  # noqa: E731
        "Node", node, {"metadata": {"annotations": {"trimtab.dev/cordoned-for": text}}}
    )
    say('{"drain":"x","pool":"x","since":1,"v":1}')
    yield
    say(None)


@finds("process-missing")
@contextmanager
def a_deployment_is_gone(here: Installed) -> Iterator[None]:
    with mended(here):
        inside(here, here.values.namespace).delete("Deployment", "trimtab-recommender")
        yield
    here.cluster.eventually(lambda: is_well(seen(here)), within=60, what="its pods are ready again")


@finds("overhead-setting-mismatch")
@contextmanager
def a_setting_that_does_not_fit_the_server(here: Installed) -> Iterator[None]:
    def set_it(result: dict[str, Any]) -> None:
        [container] = result["spec"]["template"]["spec"]["containers"]
        container["env"].append({"name": "TRIMTAB_OVERHEAD", "value": "webhook"})

    def take_it_away(result: dict[str, Any]) -> None:
        [container] = result["spec"]["template"]["spec"]["containers"]
        container["env"] = [each for each in container["env"] if each["name"] != "TRIMTAB_OVERHEAD"]

    changed(here, "Deployment", set_it, "trimtab-watchdog")
    yield
    changed(here, "Deployment", take_it_away, "trimtab-watchdog")


@finds("all-paused")
@contextmanager
def everything_is_paused(here: Installed) -> Iterator[None]:
    say: Callable[[str | None], object] = lambda word: here.cluster.patch(  # noqa: E731
        "Namespace", here.values.namespace, {"metadata": {"annotations": {"trimtab.dev/paused": word}}}
    )
    say("true")
    yield
    say(None)


@finds("another-webhook-called-later")
@contextmanager
def somebody_is_asked_after_us(here: Installed) -> Iterator[None]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
    hook = {
        "name": "last.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "rules": [rule],
        "clientConfig": {"url": "https://127.0.0.1:9/"},
        "failurePolicy": "Ignore",
        "reinvocationPolicy": "IfNeeded",
        "namespaceSelector": {"matchLabels": {"nobody": "has-this"}},
    }
    here.cluster.apply(
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": MUTATING,
            "metadata": {"name": "zz-last"},
            "webhooks": [hook],
        }
    )
    yield
    here.cluster.delete(MUTATING, "zz-last")


@finds("autoscaler-status-unusable")
@contextmanager
def an_autoscaler_that_fell_silent(here: Installed) -> Iterator[None]:
    reports(here, ago=600)
    yield
    reports(here)


@finds("pool-not-loaded", "policy-not-loaded")
@contextmanager
def documents_that_came_in_while_nobody_looked(here: Installed) -> Iterator[None]:
    meta = {"name": "pool-x", "namespace": here.values.namespace, "labels": {"trimtab.dev/pool": "x"}}
    pool = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"pool.yaml": "mode: perhaps"}}
    spec = {"match": {}, "actions": {"limits": {"cpu": "remove"}}, "nonsense": 1}
    policy = {"apiVersion": "trimtab.dev/v1alpha1", "kind": "PodPolicy", "metadata": {"name": "nonsense"}, "spec": spec}
    with nobody_keeps(here):
        here.cluster.apply(pool)
        here.cluster.apply(policy)
        here.cluster.eventually(lambda: "policy-not-loaded" in codes(here), within=90, what="its status is written")
        yield
        inside(here, here.values.namespace).delete("ConfigMap", "pool-x")
        here.cluster.delete("PodPolicy", "nonsense")


@finds("estafette-still-running")
@contextmanager
def an_estafette_compactor_that_runs_beside_us(here: Installed) -> Iterator[None]:
    labels = {"app": "estafette-k8s-node-compactor"}
    container = {"name": "compactor", "image": "estafette/estafette-k8s-node-compactor:0.1.42"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    meta = {"name": "old-compactor", "namespace": here.cluster.namespace}
    here.cluster.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec})
    yield
    here.cluster.delete("Deployment", "old-compactor")
