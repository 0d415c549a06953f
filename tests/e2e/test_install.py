"""Installed in a real cluster: the pair, who trusts it, and what becomes of pods while all of that goes wrong."""

from __future__ import annotations

import http.client
import http.server
import json
import socket
import ssl
import subprocess
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import certs
from tests.controlplane.api import ApiError, Unreachable
from tests.e2e.installed import Installed, changed, pod
from tests.e2e.replicas import EVERY
from tests.reasons import has_facts
from tests.webhook.damage import damaged
from trimtab.cli.install import apply
from trimtab.installation.names import CERTIFICATE_SECRET, CONFIGURATION_NAME, PROCESSES, WEBHOOK_NAME
from trimtab.installation.vpa_status_access import ROLE_NAME as VPA_STATUS_ROLE
from trimtab.installation.vpa_status_access import render_vpa_status_access
from trimtab.kube import certificate_rotation, objects
from trimtab.kube.certificate_rotation import certificate_names
from trimtab.kube.objects import Writer
from webhook import cert_manager

pytestmark = pytest.mark.usefixtures("two_replicas")


def test_the_right_to_write_vpa_statuses_goes_with_its_option(here: Installed) -> None:
    writer, kinds = Writer(client=here.client), ("ClusterRoleBinding", "ClusterRole")
    for manifest in render_vpa_status_access("recommender", replace(here.values, vpa_recommender=True)):
        objects.apply(writer, manifest)
    assert list(apply.leave_mode(writer, replace(here.values, vpa_recommender=True))) == []
    assert [step.how for step in apply.leave_mode(writer, here.values)] == ["removed", "removed"]
    assert [objects.get_plain(here.client, kind, VPA_STATUS_ROLE) for kind in kinds] == [None, None]
    assert list(apply.leave_mode(writer, here.values)) == []


# ── the pair ─────────────────────────────────────────────────────────────────────────────────────────


def test_both_replicas_serve_the_one_pair_and_both_configurations_trust_it(here: Installed) -> None:
    assert here.places == {here.store.bundle}
    assert here.served == {here.store.pair.certificate}


def test_the_status_says_that_all_is_well_and_names_what_is_not(here: Installed) -> None:
    document = json.loads(here.command("certs", "status", "--live", "-o", "json"))
    assert (document["folder"], document["usable"], document["problems"]) == (
        f"Secret trimtab-system/{CERTIFICATE_SECRET}",
        True,
        [],
    )


def test_a_rotated_pair_is_served_by_both_within_seconds(here: Installed) -> None:
    before = here.store
    assert has_facts(here.command("certs", "rotate"), "new certificate", "key")
    here.cluster.eventually(lambda: here.served == {here.store.pair.certificate} != {before.pair.certificate})
    assert here.store.bundle == before.bundle


def test_a_dry_run_of_an_installation_that_stands_is_taken_and_changes_nothing(here: Installed) -> None:
    before = objects.get_plain(here.client, "Deployment", "trimtab-webhook", here.values.namespace)
    done = list(apply.apply_manifests(Writer(client=here.client, dry_run=True), here.manifests, here.values))
    assert {entry.how for entry in done} == {"applied"}
    assert objects.get_plain(here.client, "Deployment", "trimtab-webhook", here.values.namespace) == before


@pytest.mark.parametrize("scope", [(), ("--traces",), ("--everything",)])
def test_a_dry_run_of_a_removal_removes_nothing(here: Installed, scope: tuple[str, ...]) -> None:
    kinds = {manifest["kind"] for manifest in here.manifests} | {"Lease", "ConfigMap", "PodPolicy"}

    def stored() -> dict[tuple[str, str, str], str]:
        """The uid of each object of the kinds that an installation has, by kind, namespace and name, without what is
        in a namespace that is being deleted: those of earlier tests go on ending beside this one."""
        namespaces = {one["metadata"]["name"]: one["metadata"] for one in here.cluster.list("Namespace")}
        ending = {name for name, meta in namespaces.items() if "deletionTimestamp" in meta}
        rows = [(kind, one["metadata"]) for kind in kinds for one in here.cluster.list(kind, everywhere=True)]
        return {
            (kind, meta.get("namespace", ""), meta["name"]): meta["uid"]
            for kind, meta in rows
            if "deletionTimestamp" not in meta and meta.get("namespace", "") not in ending
        }

    before = stored()
    printed = here.command("install", "--remove", *scope, "--dry-run")
    assert has_facts(printed, "MutatingWebhookConfiguration trimtab", "removed (dry run)")
    assert stored() == before
    deployment = here.cluster.get("Deployment", "trimtab-webhook", here.values.namespace)
    assert deployment["spec"]["replicas"] == 2
    assert here.calls()


def test_every_pod_of_ours_is_admitted_under_the_restricted_standard(here: Installed) -> None:
    def processes() -> list[str]:
        pods = here.cluster.list("Pod", here.values.namespace)
        return sorted(result["metadata"]["labels"]["app.kubernetes.io/component"] for result in pods)

    expected = sorted(PROCESSES * 2)
    here.cluster.eventually(lambda: processes() == expected, within=40, what="two pods of each process")


def test_applying_again_changes_neither_pair_nor_trust(here: Installed) -> None:
    before = here.store, here.places
    assert {done.how for done in here.apply()} == {"applied"}
    assert (here.store, here.places) == before
    assert here.calls()


@pytest.mark.parametrize("asked", [("--apply",), ("--remove",), ("--remove", "--traces")])
def test_an_installation_in_another_namespace_is_neither_taken_over_nor_cut_off(
    here: Installed, asked: tuple[str, ...]
) -> None:
    with pytest.raises(subprocess.CalledProcessError) as failed:
        here.command("install", *asked, "--system-namespace", "elsewhere")
    assert failed.value.returncode == 2
    assert f"--system-namespace {here.values.namespace}" in failed.value.stderr
    assert here.calls()


@pytest.mark.parametrize("kind", cert_manager.CONFIGURATIONS)
def test_a_ca_bundle_that_somebody_changed_is_put_back(here: Installed, kind: str) -> None:
    configuration = objects.get_plain(here.client, kind, CONFIGURATION_NAME)
    other = certs.issue(["x"], now=datetime.now(UTC)).bundle
    objects.replace_plain(Writer(client=here.client), certificate_rotation.with_ca_bundle(configuration or {}, other))
    here.cluster.eventually(lambda: here.places == {here.store.bundle}, within=10)


def test_a_configuration_that_cert_manager_keeps_is_left_alone_until_it_no_longer_does(here: Installed) -> None:
    kind = cert_manager.CONFIGURATIONS[1]
    ours = here.store.bundle
    both = ours + certs.issue(["x"], now=datetime.now(UTC)).bundle
    kube_object = certificate_rotation.with_ca_bundle(
        objects.get_plain(here.client, kind, CONFIGURATION_NAME) or {}, both
    )
    kube_object["metadata"]["annotations"] = {
        certificate_rotation.INJECTION_ANNOTATIONS[0]: "trimtab-system/trimtab-webhook"
    }
    objects.replace_plain(Writer(client=here.client), kube_object)
    time.sleep(4 * EVERY)
    assert here.places == {ours, both}
    here.cluster.patch(
        kind, CONFIGURATION_NAME, {"metadata": {"annotations": {certificate_rotation.INJECTION_ANNOTATIONS[0]: None}}}
    )
    here.cluster.eventually(lambda: here.places == {ours}, within=10)


def test_a_pair_that_expired_in_the_secret_is_renewed_by_the_replicas(here: Installed) -> None:
    store, then = here.store, datetime.now(UTC) - timedelta(days=30)
    names = certificate_names(WEBHOOK_NAME, here.values.namespace)
    here.write(certs.reissued_pair(store, names, now=then, life=timedelta(days=1)))
    here.cluster.eventually(lambda: certs.is_usable(here.store, datetime.now(UTC)), within=10)
    here.cluster.eventually(here.calls)


def test_an_emptied_secret_is_filled_again_and_no_review_is_lost(here: Installed) -> None:
    lost = here.lost
    path = f"/api/v1/namespaces/{here.values.namespace}/secrets/{CERTIFICATE_SECRET}"
    here.cluster.api.request("PATCH", path, {"data": None}, content_type="application/merge-patch+json")
    until = time.monotonic() + 12 * EVERY
    while time.monotonic() < until:
        assert changed(here.cluster.create(pod(), dryRun="All"))
    here.cluster.eventually(lambda: certs.is_usable(here.store, datetime.now(UTC)), within=10)
    assert here.lost == lost


def test_the_pair_and_its_authority_rotated_twice_under_a_thousand_pods_lose_no_review(here: Installed) -> None:
    lost, begun = here.lost, here.store
    done = threading.Event()
    rotations = threading.Thread(target=lambda: (rotate(here), rotate(here), done.set()))
    rotations.start()
    objects: list[dict[str, Any]] = []
    while len(objects) < 1000 or not done.is_set():
        objects += here.create(100)
    rotations.join()
    assert [changed(result) for result in objects].count(False) == 0
    assert here.lost == lost
    assert here.store.bundle.count(b"BEGIN") == begun.bundle.count(b"BEGIN") + 2
    assert here.served == {here.store.pair.certificate} != {begun.pair.certificate}


def rotate(here: Installed) -> None:
    """A new authority, told and then signing, and served by everybody."""
    before = here.store
    here.command("certs", "rotate", "--authority")

    def everywhere() -> bool:
        pair = here.store.pair
        return pair != before.pair and here.served == {pair.certificate}

    here.cluster.eventually(everywhere, within=30, what="the new pair served")


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


def test_removed_nobody_calls_us_before_we_go(here: Installed) -> None:
    done = here.remove()
    order = [entry.what for entry in done]
    # Compiled policies, here those of other tests, call nobody.
    earlier = order[: order.index("MutatingWebhookConfiguration trimtab")]
    assert {what.split()[0] for what in earlier} <= {"MutatingAdmissionPolicyBinding", "MutatingAdmissionPolicy"}
    namespaces = [entry.how for entry in done if entry.what.startswith("Namespace ")]
    [how] = namespaces
    assert has_facts(how, "being deleted", "wait", "install Trimtab again")
    assert {entry.how for entry in done if not entry.what.startswith("Namespace ")} == {"removed", "stopped"}
    here.cluster.eventually(lambda: not here.calls(), what="nobody calls us")
    with pytest.raises((ApiError, Unreachable)):
        here.cluster.get("ClusterRole", "trimtab-webhook")
