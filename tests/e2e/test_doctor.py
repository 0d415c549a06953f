"""`trimtab doctor` at a real installation: green, and each planted fault found by its name."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

import certs
from tests.controlplane.cluster import Cluster
from tests.e2e.installed import Installed
from tests.e2e.replicas import ROOT
from trimtab.command.doctor.finding import Severity
from trimtab.command.doctor.judge import Told, is_well, judged
from trimtab.command.doctor.look import look
from trimtab.command.install.names import CONFIGURATION, SECRET, WEBHOOK
from trimtab.kube import whole
from trimtab.kube.writer import Writer
from webhook import shared
from webhook.keeping import called

MUTATING, VALIDATING = shared.CONFIGURATIONS
WORKERS = ("watchdog", "compactor", "recommender")


@pytest.fixture(scope="module")
def wired(here: Installed) -> Iterator[Installed]:
    """The installation with everything around it: nodes for its pods, an autoscaler that reports, a leader each."""
    here.cluster.pool("doctor", nodes=2, cpu="8", memory="32Gi")
    with contextlib.ExitStack() as stack:
        for process in WORKERS:
            stack.enter_context(here.working(process))
        reports(here)
        here.cluster.eventually(lambda: is_well(seen(here)), within=60, what="all is well before a fault is planted")
        yield here
    with contextlib.suppress(Exception):
        inside(here, "kube-system").delete("ConfigMap", "cluster-autoscaler-status")


def inside(here: Installed, namespace: str) -> Cluster:
    return Cluster(here.cluster.kubeconfig, namespace)


def reports(here: Installed, ago: int = 0) -> None:
    """The autoscaler, so many seconds ago."""
    at = (datetime.now(UTC) - timedelta(seconds=ago)).strftime("%Y-%m-%d %H:%M:%S.0 +0000 UTC")
    status = "clusterWide:\n  health: {status: Healthy}\n  scaleUp: {status: NoActivity}\nnodeGroups: []\n"
    meta = {
        "name": "cluster-autoscaler-status", "namespace": "kube-system",
        "annotations": {"cluster-autoscaler.kubernetes.io/last-updated": at},
    }  # fmt: skip
    here.cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"status": status}})


def seen(here: Installed) -> tuple[Told, ...]:
    return judged(look(here.client, here.values.namespace, here.cluster.namespace))


def codes(here: Installed) -> set[str]:
    """Of everything that is not as it should be."""
    return {each.finding.reason.code.name for each in seen(here) if each.finding.severity != Severity.OK}


def doctor(here: Installed, *more: str, login: Path | None = None) -> subprocess.CompletedProcess[str]:
    kubeconfig = str(login or here.cluster.kubeconfig)
    given = [sys.executable, "-m", "trimtab", "doctor", "--ask-in", here.cluster.namespace, "--kubeconfig", kubeconfig]
    return subprocess.run([*given, *more], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


# ── all is well ──────────────────────────────────────────────────────────────────────────────────────


def test_an_installation_that_stands_is_green(wired: Installed) -> None:
    reports(wired)
    found = doctor(wired, "-o", "json")
    told = json.loads(found.stdout)
    severities = {each["check"]: each["severity"] for each in told["findings"] if each["severity"] != "ok"}
    assert severities == {"usage-source": "warn"}, "a test bed has no metrics-server"
    assert (told["well"], found.returncode) == (True, 0)


def test_strictly_a_warning_is_a_finding_and_a_check_may_be_left_out(wired: Installed) -> None:
    reports(wired)
    assert doctor(wired, "--strict").returncode == 1
    found = doctor(wired, "--strict", "--without", "usage-source")
    assert (found.returncode, "left out: usage-source" in found.stdout) == (0, True), found.stdout


def test_nothing_of_what_it_tried_is_stored(wired: Installed) -> None:
    doctor(wired)
    names = [found["metadata"]["name"] for found in wired.cluster.list("Pod")]
    assert not [name for name in names if name.startswith("trimtab-doctor")]
    assert whole.get(wired.client, "PodPolicy", "trimtab-doctor-asks") is None


def test_who_may_not_look_is_told_which_right_is_missing_and_nothing_is_called_well(wired: Installed) -> None:
    found = doctor(wired, "-o", "json", login=wired.login_of("recommender"))
    told = json.loads(found.stdout)
    unknown = {each["check"]: each["reason"]["text"] for each in told["findings"] if each["severity"] == "unknown"}
    assert found.returncode == 1
    assert 'cannot create resource "pods"' in unknown["answers"]
    assert 'cannot create resource "subjectaccessreviews"' in unknown["rights"]
    assert (
        f'cannot get resource "secrets" in API group "" in the namespace "{wired.values.namespace}"'
        in (unknown["certificates"])
    )
    assert {"certificates", "ca-bundle", "answers", "validates", "rights", "policies"} <= set(unknown)


def test_the_rights_of_the_how_to_are_enough_to_look_at_everything(wired: Installed) -> None:
    page = (ROOT / "docs" / "how-to" / "see-that-it-is-wired.md").read_text()
    block = page.split("<!-- test: doctor-rights -->\n```yaml\n")[1].split("```")[0]
    *roles, last = yaml.safe_load_all(block)
    last["metadata"]["namespace"] = wired.cluster.namespace
    reports(wired)
    with contextlib.ExitStack() as stack:
        for made in (made for role in (*roles, last) for made in (role, bound(role))):
            wired.cluster.apply(made)
            namespace = made["metadata"].get("namespace")
            stack.callback(wired.cluster.delete, made["kind"], "trimtab-doctor", namespace)
        found = doctor(wired, "-o", "json", login=wired.cluster.plane.kubeconfig_for("somebody-on-call"))
    told = json.loads(found.stdout)["findings"]
    assert [each["reason"]["text"] for each in told if each["severity"] in ("unknown", "error")] == []


def bound(role: dict[str, Any]) -> dict[str, Any]:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1", "kind": f"{role['kind']}Binding", "metadata": role["metadata"],
        "roleRef": {"apiGroup": group, "kind": role["kind"], "name": "trimtab-doctor"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "somebody-on-call"}],
    }  # fmt: skip


def test_where_no_api_server_answers_it_fails(wired: Installed, tmp_path: Path) -> None:
    text = wired.cluster.kubeconfig.read_text()
    port = text.split("https://127.0.0.1:")[1].split("\n")[0].strip().strip('"')
    (tmp_path / "config").write_text(text.replace(port, "9"))
    assert doctor(wired, login=tmp_path / "config").returncode == 3


# ── planted faults ───────────────────────────────────────────────────────────────────────────────────

Fault = Callable[[Installed], AbstractContextManager[None]]
FAULTS: dict[str, tuple[Fault, set[str]]] = {}


def finds(*names: str) -> Callable[[Fault], Fault]:
    def keep(fault: Fault) -> Fault:
        FAULTS[fault.__name__.replace("_", " ")] = (fault, set(names))
        return fault

    return keep


def changed(here: Installed, kind: str, change: Callable[[dict[str, Any]], Any], name: str = CONFIGURATION) -> None:
    """The object with this done to it, as somebody does it."""
    namespace = here.values.namespace if kind in ("Deployment", "Secret", "Lease") else ""
    found = whole.get(here.client, kind, name, namespace)
    assert found is not None
    change(found)
    whole.put(Writer(client=here.client), found)


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


@finds("webhook-silent", "validation-silent")
@contextmanager
def nobody_answers_behind_the_service(here: Installed) -> Iterator[None]:
    with nobody_keeps(here):
        yield


@finds("ca-bundle-strange", "ca-bundles-differ", "webhook-silent")
@contextmanager
def another_authority_in_one_configuration(here: Installed) -> Iterator[None]:
    other = certs.issue(["x"], now=datetime.now(UTC)).bundle
    with nobody_keeps(here):
        found = whole.get(here.client, MUTATING, CONFIGURATION) or {}
        whole.put(Writer(client=here.client), shared.trusting(found, other))
        yield


@finds("ca-bundle-missing")
@contextmanager
def a_configuration_without_a_bundle(here: Installed) -> Iterator[None]:
    with nobody_keeps(here):
        changed(here, VALIDATING, lambda found: found["webhooks"][0]["clientConfig"].pop("caBundle"))
        yield


@finds("pair-unusable")
@contextmanager
def a_pair_that_expired(here: Installed) -> Iterator[None]:
    then, names = datetime.now(UTC) - timedelta(days=30), called(WEBHOOK, here.values.namespace)
    with nobody_keeps(here):
        here.write(certs.signed_anew(here.store, names, now=then, life=timedelta(days=1)))
        yield


@finds("pair-unusable")
@contextmanager
def a_pair_of_another_name(here: Installed) -> Iterator[None]:
    with nobody_keeps(here):
        here.write(certs.signed_anew(here.store, ["elsewhere.svc"], now=datetime.now(UTC)))
        yield


@finds("pair-missing")
@contextmanager
def an_emptied_secret(here: Installed) -> Iterator[None]:
    with nobody_keeps(here):
        changed(here, "Secret", lambda found: found.pop("data"), SECRET)
        yield


@finds("configuration-missing", "validation-silent")
@contextmanager
def a_configuration_is_gone(here: Installed) -> Iterator[None]:
    with mended(here):
        here.cluster.delete(VALIDATING, CONFIGURATION)
        yield


@finds("failure-policy-fail", "timeout-long", "asked-once", "system-namespaces-asked")
@contextmanager
def a_configuration_that_somebody_changed(here: Installed) -> Iterator[None]:
    wrong = {"failurePolicy": "Fail", "timeoutSeconds": 20, "reinvocationPolicy": "Never", "namespaceSelector": {}}
    with mended(here):
        changed(here, MUTATING, lambda found: found["webhooks"][0].update(wrong))
        yield


@finds("right-missing")
@contextmanager
def a_role_that_somebody_cut(here: Installed) -> Iterator[None]:
    with mended(here):
        changed(here, "ClusterRole", lambda found: found["rules"].pop(), "trimtab-compactor")
        yield


@finds("process-missing")
@contextmanager
def a_deployment_is_gone(here: Installed) -> Iterator[None]:
    with mended(here):
        inside(here, here.values.namespace).delete("Deployment", "trimtab-recommender")
        yield
    here.cluster.eventually(lambda: is_well(seen(here)), within=60, what="its pods are ready again")


@finds("overhead-set-otherwise")
@contextmanager
def a_setting_that_does_not_fit_the_server(here: Installed) -> Iterator[None]:
    def set_it(found: dict[str, Any]) -> None:
        [container] = found["spec"]["template"]["spec"]["containers"]
        container["env"].append({"name": "TRIMTAB_OVERHEAD", "value": "webhook"})

    def take_it_away(found: dict[str, Any]) -> None:
        [container] = found["spec"]["template"]["spec"]["containers"]
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


@finds("may-be-overruled")
@contextmanager
def somebody_is_asked_after_us(here: Installed) -> Iterator[None]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
    hook = {
        "name": "last.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None", "rules": [rule],
        "clientConfig": {"url": "https://127.0.0.1:9/"}, "failurePolicy": "Ignore", "reinvocationPolicy": "IfNeeded",
        "namespaceSelector": {"matchLabels": {"nobody": "has-this"}},
    }  # fmt: skip
    here.cluster.apply(
        {"apiVersion": "admissionregistration.k8s.io/v1", "kind": MUTATING, "metadata": {"name": "zz-last"},
         "webhooks": [hook]}
    )  # fmt: skip
    yield
    here.cluster.delete(MUTATING, "zz-last")


@finds("autoscaler-ill")
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


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found_by_name(wired: Installed, name: str) -> None:
    fault, wanted = FAULTS[name]
    reports(wired)
    assert not wanted & codes(wired)
    with fault(wired):
        found = [each for each in seen(wired) if each.finding.reason.code.name in wanted]
    assert {each.finding.reason.code.name for each in found} == wanted
    assert all(each.finding.fix for each in found)
    assert not wanted & codes(wired)
