"""Installed in a real cluster: the pair, who trusts it, and what becomes of pods while all of that goes wrong."""

from __future__ import annotations

import http.client
import http.server
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import certs
from tests.controlplane.api import ApiError, Unreachable
from tests.controlplane.cluster import Cluster
from tests.e2e.installed import EVERY, ROOT, Installed, changed, installed, pod
from tests.e2e.stand_in import standing_in
from tests.webhook.damage import damaged
from trimtab.command.install import carry, working
from trimtab.command.install.names import CONFIGURATION, SECRET, WEBHOOK
from trimtab.kube import whole
from trimtab.kube.writer import Writer
from webhook import shared
from webhook.keeping import called


@pytest.fixture(scope="module")
def module_cluster(whole_cluster: Cluster) -> Iterator[Cluster]:
    whole_cluster.needs_own("webhooks on this machine")
    inside = whole_cluster.in_namespace("pods-of-a-team")
    yield inside
    inside.clean_up()


@pytest.fixture(scope="module")
def here(module_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    with installed(module_cluster, tmp_path_factory.mktemp("installed")) as found:
        yield found


@pytest.fixture(autouse=True)
def two_replicas(here: Installed) -> None:
    """Every test begins with two that are ready and are called."""
    here.replicas = [replica for replica in here.replicas if replica.process.poll() is None]
    here.start(2 - len(here.replicas)) if len(here.replicas) < 2 else here.route()
    here.cluster.eventually(here.calls, what="pods changed")


def create(here: Installed, count: int, clients: int = 8) -> list[dict[str, Any]]:
    """So many pods by so many clients; whatever is refused raises."""
    with ThreadPoolExecutor(clients) as pool:
        return list(pool.map(lambda _: here.cluster.create(pod()), range(count)))


# ── the pair ─────────────────────────────────────────────────────────────────────────────────────────


def test_both_replicas_serve_the_one_pair_and_both_configurations_trust_it(here: Installed) -> None:
    assert here.places == {here.store.bundle}
    assert here.served == {here.store.pair.certificate}


def test_the_status_says_that_all_is_well_and_names_what_is_not(here: Installed) -> None:
    said = json.loads(here.command("certs", "status", "--live", "-o", "json"))
    assert (said["folder"], said["usable"], said["problems"]) == (f"Secret trimtab-system/{SECRET}", True, [])


def test_a_rotated_pair_is_served_by_both_within_seconds(here: Installed) -> None:
    before = here.store
    assert "a new pair" in here.command("certs", "rotate")
    here.cluster.eventually(lambda: here.served == {here.store.pair.certificate} != {before.pair.certificate})
    assert here.store.bundle == before.bundle


def test_a_dry_run_of_an_installation_that_stands_is_taken_and_changes_nothing(here: Installed) -> None:
    before = whole.get(here.client, "Deployment", "trimtab-webhook", here.values.namespace)
    done = list(carry.apply(Writer(client=here.client, dry_run=True), here.manifests, here.values))
    assert {entry.how for entry in done} == {"applied"}
    assert whole.get(here.client, "Deployment", "trimtab-webhook", here.values.namespace) == before


def test_every_pod_of_ours_is_admitted_under_the_restricted_standard(here: Installed) -> None:
    def processes() -> list[str]:
        pods = here.cluster.list("Pod", here.values.namespace)
        return sorted(found["metadata"]["labels"]["app.kubernetes.io/component"] for found in pods)

    wanted = ["compactor"] * 2 + ["watchdog"] * 2 + ["webhook"] * 2
    here.cluster.eventually(lambda: processes() == wanted, within=20, what="two pods of each process")


def test_applying_again_changes_neither_pair_nor_trust(here: Installed) -> None:
    before = here.store, here.places
    assert {done.how for done in here.apply()} == {"applied"}
    assert (here.store, here.places) == before
    assert here.calls()


@pytest.mark.parametrize("kind", shared.CONFIGURATIONS)
def test_a_ca_bundle_that_somebody_changed_is_put_back(here: Installed, kind: str) -> None:
    configuration = whole.get(here.client, kind, CONFIGURATION)
    other = certs.issue(["x"], now=datetime.now(UTC)).bundle
    whole.put(Writer(client=here.client), shared.trusting(configuration or {}, other))
    here.cluster.eventually(lambda: here.places == {here.store.bundle}, within=10)


def test_a_configuration_that_cert_manager_keeps_is_left_alone_until_it_no_longer_does(here: Installed) -> None:
    kind = shared.CONFIGURATIONS[1]
    ours = here.store.bundle
    both = ours + certs.issue(["x"], now=datetime.now(UTC)).bundle
    found = shared.trusting(whole.get(here.client, kind, CONFIGURATION) or {}, both)
    found["metadata"]["annotations"] = {shared.INJECTED[0]: "trimtab-system/trimtab-webhook"}
    whole.put(Writer(client=here.client), found)
    time.sleep(4 * EVERY)
    assert here.places == {ours, both}
    here.cluster.patch(kind, CONFIGURATION, {"metadata": {"annotations": {shared.INJECTED[0]: None}}})
    here.cluster.eventually(lambda: here.places == {ours}, within=10)


def test_a_pair_that_expired_in_the_secret_is_renewed_by_the_replicas(here: Installed) -> None:
    held, then = here.store, datetime.now(UTC) - timedelta(days=30)
    names = called(WEBHOOK, here.values.namespace)
    here.write(certs.signed_anew(held, names, now=then, life=timedelta(days=1)))
    here.cluster.eventually(lambda: certs.usable(here.store, datetime.now(UTC)), within=10)
    here.cluster.eventually(here.calls)


def test_an_emptied_secret_is_filled_again_and_no_review_is_lost(here: Installed) -> None:
    lost = here.lost
    path = f"/api/v1/namespaces/{here.values.namespace}/secrets/{SECRET}"
    here.cluster.api.request("PATCH", path, {"data": None}, content_type="application/merge-patch+json")
    until = time.monotonic() + 12 * EVERY
    while time.monotonic() < until:
        assert changed(here.cluster.create(pod(), dryRun="All"))
    here.cluster.eventually(lambda: certs.usable(here.store, datetime.now(UTC)), within=10)
    assert here.lost == lost


def test_the_pair_and_its_authority_rotated_twice_under_a_thousand_pods_lose_no_review(here: Installed) -> None:
    lost, begun = here.lost, here.store
    done = threading.Event()
    rotations = threading.Thread(target=lambda: (rotate(here), rotate(here), done.set()))
    rotations.start()
    made: list[dict[str, Any]] = []
    while len(made) < 1000 or not done.is_set():
        made += create(here, 100)
    rotations.join()
    assert [changed(found) for found in made].count(False) == 0
    assert here.lost == lost
    assert here.store.bundle.count(b"BEGIN") == begun.bundle.count(b"BEGIN") + 2
    assert here.served == {here.store.pair.certificate} != {begun.pair.certificate}


def rotate(here: Installed) -> None:
    """A new authority, told and then signing, and served by everybody."""
    before = here.store
    here.command("certs", "rotate", "--authority")

    def everywhere() -> bool:
        held = here.store.pair
        return held != before.pair and here.served == {held.certificate}

    here.cluster.eventually(everywhere, within=30, what="the new pair served")


# ── rights ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def account(here: Installed) -> Cluster:
    """The cluster as the webhook's account sees it."""
    return Cluster(here.login, here.values.namespace)


def test_the_account_may_do_what_its_roles_say(here: Installed, account: Cluster) -> None:
    account.get("Secret", SECRET)
    for kind in shared.CONFIGURATIONS:
        account.get(kind, CONFIGURATION)
    for kind in ("Namespace", "Node", "LimitRange", "PodPolicy", "ReplicaSet", "RuntimeClass", "EndpointSlice"):
        account.list(kind, everywhere=True)
    account.list("ConfigMap")


NOT_ALLOWED = [
    ("GET", "/api/v1/namespaces/kube-system/secrets"),
    ("GET", "/api/v1/namespaces/{own}/secrets"),
    ("GET", "/api/v1/namespaces/{own}/secrets/another"),
    ("POST", "/api/v1/namespaces/{own}/secrets"),
    ("DELETE", "/api/v1/namespaces/{own}/secrets/" + SECRET),
    ("GET", "/api/v1/configmaps"),
    ("POST", "/api/v1/namespaces/{own}/configmaps"),
    ("GET", "/api/v1/pods"),
    ("POST", "/api/v1/namespaces/default/pods"),
    ("DELETE", "/api/v1/namespaces/default/pods/x"),
    ("POST", "/api/v1/namespaces/default/pods/x/eviction"),
    ("PATCH", "/api/v1/nodes/x"),
    ("PATCH", "/apis/trimtab.dev/v1alpha1/podpolicies/x"),
    ("PATCH", "/apis/trimtab.dev/v1alpha1/podpolicies/x/status"),
    ("DELETE", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/trimtab"),
    ("PUT", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/another"),
    ("GET", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"),
    ("PUT", "/apis/rbac.authorization.k8s.io/v1/clusterroles/trimtab-webhook"),
    ("POST", "/api/v1/namespaces/{own}/serviceaccounts/trimtab-compactor/token"),
    ("PATCH", "/api/v1/namespaces/{own}"),
]


@pytest.mark.parametrize("process", ["watchdog", "compactor", "recommender"])
def test_who_works_behind_a_lease_is_refused_nothing(here: Installed, process: str) -> None:
    log, ready = here.home / f"{process}.log", here.home / f"{process}.json"
    own = {"TRIMTAB_LISTEN": "127.0.0.1:0", "TRIMTAB_READY_FILE": str(ready), "TRIMTAB_INTERVAL": "1"}
    environ = {**os.environ, **working.environment(here.values), **own, "KUBECONFIG": str(here.login_of(process))}
    with log.open("wb") as out:
        running = subprocess.Popen([sys.executable, "-m", "trimtab", process], cwd=ROOT, env=environ, stderr=out)
    try:
        here.cluster.eventually(lambda: f"{process}.leads" in log.read_text(), within=60, what=f"{process} leads")
        time.sleep(4)  # some rounds
    finally:
        running.terminate()
        assert running.wait(60) == 0
    refused = [line for line in log.read_text().splitlines() if "orbidden" in line or '"level": "error"' in line]
    assert refused == []


@pytest.mark.parametrize(("method", "path"), NOT_ALLOWED)
def test_the_account_may_not(account: Cluster, method: str, path: str) -> None:
    body = None if method in ("GET", "DELETE") else {}
    how = "application/merge-patch+json" if method == "PATCH" else "application/json"
    with pytest.raises(ApiError) as refused:
        account.api.request(method, path.format(own=account.namespace), body, content_type=how)
    assert refused.value.status == 403


def test_the_processes_were_refused_nothing(here: Installed) -> None:
    told = [line for replica in here.replicas for line in replica.log if "forbidden" in str(line).lower()]
    assert told == []


# ── bad input ────────────────────────────────────────────────────────────────────────────────────────


def test_two_thousand_damaged_reviews_and_rude_clients_disturb_nobody(here: Installed) -> None:
    lost, replica = here.lost, here.replicas[0]
    anything = ssl.create_default_context()
    anything.check_hostname, anything.verify_mode = False, ssl.CERT_NONE
    rude = [socket.create_connection(("127.0.0.1", replica.port), 10) for _ in range(16)]
    for number, client in enumerate(rude):
        client.sendall((b"\x16\x03\x01\x02\x00\x01", b"POST /mutate HTTP/1.1\r\nHost: x\r\n\r\n", b"\x00")[number % 3])
    connection = http.client.HTTPSConnection("127.0.0.1", replica.port, timeout=30, context=anything)
    statuses = set()
    for number, body in enumerate(damaged(2000, seed=99)):
        connection.request("POST", "/mutate?timeout=3s", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        statuses.add(answer.status)
        assert b"Traceback" not in answer.read()
        if number % 100 == 0:
            assert changed(here.cluster.create(pod(), dryRun="All"))
    for client in (*rude, connection):
        client.close()
    assert statuses <= {200, 400, 413}
    assert here.lost == lost
    assert not [line for line in replica.log if "exception" in line]


# ── outages ──────────────────────────────────────────────────────────────────────────────────────────


def test_one_of_two_replicas_stopped_under_load_loses_no_review(here: Installed) -> None:
    lost = here.lost
    leaving = here.replicas[0]
    routing = threading.Event()

    def endpoints() -> None:
        while not routing.wait(0.2):
            here.balancer.backends = [r.port for r in here.replicas if r.process.poll() is None and r.ready()]

    following = threading.Thread(target=endpoints)
    following.start()
    try:
        made = create(here, 100)
        leaving.process.send_signal(signal.SIGTERM)
        while leaving.process.poll() is None:
            made += create(here, 50)
        made += create(here, 100)
    finally:
        routing.set()
        following.join()
    assert leaving.process.returncode == 0
    assert [changed(found) for found in made].count(False) == 0
    assert here.lost == lost


def test_killed_every_pod_is_created_and_the_loss_is_counted(here: Installed) -> None:
    lost = here.lost
    here.stop(signal.SIGKILL)
    assert [changed(found) for found in create(here, 20)] == [False] * 20
    assert here.lost == lost + 20


def test_hung_every_pod_is_created_when_the_server_gives_up(here: Installed) -> None:
    for replica in here.replicas:
        replica.send(signal.SIGSTOP)
    try:
        begun = time.monotonic()
        assert not changed(here.cluster.create(pod()))
        assert time.monotonic() - begun < here.values.timeout + 2
    finally:
        for replica in here.replicas:
            replica.send(signal.SIGCONT)
    here.cluster.eventually(here.calls, what="called again")


def test_a_stand_in_that_answers_garbage_blocks_no_pod(here: Installed) -> None:
    with standing_in(here, here.store) as other:
        for other.answer in (b"", b"garbage", b'{"response":{}}', b'{"kind":"AdmissionReview"}', b"[" * 9999):
            other.asked.clear()
            # A connection that was kept to those before ends without a question: that pod is created, too.
            for _ in range(10):
                assert not changed(here.cluster.create(pod()))
            assert other.asked


def test_a_stand_in_whose_certificate_expired_blocks_no_pod(here: Installed) -> None:
    then, names = datetime.now(UTC) - timedelta(days=30), called(WEBHOOK, here.values.namespace)
    with standing_in(here, certs.signed_anew(here.store, names, now=then, life=timedelta(days=1))) as other:
        for _ in range(10):
            assert not changed(here.cluster.create(pod()))
        assert not other.asked


def test_the_api_server_restarted_is_answered_again_and_no_pod_is_refused(here: Installed) -> None:
    here.cluster.restart("kube-apiserver")
    here.cluster.eventually(here.calls, within=30, what="called again")
    made = create(here, 50)
    assert [changed(found) for found in made].count(False) == here.lost == 0, failed_open(here)


def failed_open(here: Installed) -> list[str]:
    """Why, in the API server's own words."""
    tail = here.cluster.plane.processes.log_tail("kube-apiserver", 400).splitlines()
    return [line for line in tail if "failing open" in line]


def test_removed_nobody_calls_us_before_we_go(here: Installed) -> None:
    done = here.remove()
    assert done[0].what == "MutatingWebhookConfiguration trimtab"
    assert {entry.how for entry in done} == {"removed"}
    assert not changed(here.cluster.create(pod(), dryRun="All"))
    with pytest.raises((ApiError, Unreachable)):
        here.cluster.get("ClusterRole", "trimtab-webhook")
