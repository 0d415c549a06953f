"""Does a real API server take what the chart renders, and does Helm install, upgrade and remove it?"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from certs.ca import create_authority
from tests.controlplane.binaries import Binaries
from tests.controlplane.cluster import Cluster
from tests.e2e.charts import CHART, MUCH, NAMESPACE, Helm, objects
from trimtab.installation.manifests import render_manifests
from trimtab.installation.names import InstallValues
from trimtab.kube import certificate_rotation
from trimtab.kube import objects as objects_module
from trimtab.kube.client import connect_to_cluster
from trimtab.kube.objects import Writer
from trimtab.policy.status import is_braked
from webhook import cert_manager

BUNDLE = create_authority(now=datetime.now(UTC)).certificate


_TERMINATING = ("wait", f"namespace/{NAMESPACE}", "--for=jsonpath={.status.phase}=Terminating", "--timeout=0s")


@pytest.fixture
def room(whole_cluster: Cluster, built: Binaries) -> Iterator[Kubectl]:
    """The namespace and the CRD, as somebody made them before; taken away afterwards."""
    kubectl = Kubectl(built["kubectl"], whole_cluster.kubeconfig)
    before = yaml.safe_dump_all(render_manifests(InstallValues())[:2])
    # Tests of another file may have removed an installation a moment ago: its namespace takes a while to end.
    whole_cluster.eventually(lambda: not kubectl.says(*_TERMINATING), within=90, what="no namespace that ends")
    # Another file may have left the CRD to its own manager.
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given=before)
    whole_cluster.eventually(lambda: kubectl.says("get", "podpolicies", "-A"), within=30, what="the CRD served")
    yield kubectl
    kubectl("delete", "--wait", "-f", "-", given=before)


class Kubectl:
    def __init__(self, path: str, kubeconfig: Path) -> None:
        self._command = [path, "--kubeconfig", str(kubeconfig)]

    def says(self, *arguments: str) -> bool:
        """Does it end well?"""
        return self._run(*arguments).returncode == 0

    def _run(self, *arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        command = [*self._command, *arguments]
        return subprocess.run(command, input=given, capture_output=True, text=True, timeout=120, check=False)

    def __call__(self, *arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        process = self._run(*arguments, given=given)
        assert process.returncode == 0, process.stderr + process.stdout
        return process


@pytest.mark.parametrize("values", [{}, MUCH], ids=["default", "much"])
def test_a_real_api_server_takes_every_object_and_warns_of_none(helm: Helm, room: Kubectl, values: Any) -> None:
    rendered = helm.rendered(values, crds=False)
    kubectl = room("apply", "--dry-run=server", "-f", "-", given=rendered)
    assert kubectl.stdout.count("(server dry run)") == len(objects(rendered))
    assert "Warning" not in kubectl.stderr


@pytest.fixture
def release(helm: Helm, room: Kubectl, whole_cluster: Cluster) -> Iterator[Release]:
    release = Release(helm, room, ("--kubeconfig", str(whole_cluster.kubeconfig), "--namespace", NAMESPACE))
    yield release
    release.run("uninstall", "--wait", "--no-hooks")


@dataclass(frozen=True, slots=True)
class Release:
    """One policy, from the chart's values."""

    helm: Helm
    kubectl: Kubectl
    login: tuple[str, ...]

    def run(self, verb: str, *more: str, **given: Any) -> subprocess.CompletedProcess[str]:
        return self.helm.run(verb, "trimtab", *([] if verb == "uninstall" else [CHART]), *self.login, *more, **given)

    def put(self, priority: int, *more: str, verb: str = "upgrade") -> None:
        """Install or upgrade with this policy among the values."""
        policy = {"priority": priority, "actions": {"limits": {"cpu": "remove"}}}
        self.run(verb, *more, values={"policies": {"sizes": policy}})

    def brake(self) -> None:
        """As the watchdog does it."""
        status = json.dumps({"status": {"brakedGeneration": self._stored()["metadata"]["generation"]}})
        patch = ("patch", "podpolicy", "sizes", "--subresource=status", "--type=merge", "-p", status)
        self.kubectl(*patch, "--field-manager=trimtab-watchdog")

    def is_braked(self) -> bool:
        return is_braked(self._stored())

    def _stored(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.kubectl("get", "podpolicy", "sizes", "-o", "json").stdout)
        return document


@pytest.mark.parametrize("way", [(), ("--server-side=false",)], ids=["helm-4", "as-helm-3"])
def test_an_upgrade_takes_no_brake_off_and_a_corrected_policy_ends_it(release: Release, way: tuple[str, ...]) -> None:
    release.put(1, "--skip-crds", *way, verb="install")
    release.brake()
    release.put(1, *way)
    assert release.is_braked()
    release.put(2, *way)
    assert not release.is_braked()


def test_an_upgrade_keeps_what_the_replicas_wrote_and_an_uninstall_leaves_nothing(
    helm: Helm, room: Kubectl, whole_cluster: Cluster
) -> None:
    login = ("--kubeconfig", whole_cluster.kubeconfig, "--namespace", NAMESPACE)
    # Tests of other files leave the Secret of a compactor in their namespaces of the same control plane.
    before = _list_named_after_us(room)
    helm.run("install", "trimtab", CHART, *login, "--skip-crds")
    client = connect_to_cluster(str(whole_cluster.kubeconfig))
    for kind in cert_manager.CONFIGURATIONS:
        configuration = objects_module.get_plain(client, kind, "trimtab")
        assert configuration is not None
        objects_module.replace_plain(Writer(client=client), certificate_rotation.with_ca_bundle(configuration, BUNDLE))
    helm.run("upgrade", "trimtab", CHART, *login, values={"webhook": {"timeoutSeconds": 2}})
    for kind in cert_manager.CONFIGURATIONS:
        stored_object = objects_module.get_plain(client, kind, "trimtab") or {}
        assert set(certificate_rotation.ca_bundles(stored_object)) == {BUNDLE}
        assert {webhook["timeoutSeconds"] for webhook in stored_object["webhooks"]} == {2}
    client.close()
    helm.run("uninstall", "trimtab", *login, "--wait", "--no-hooks")  # nobody runs its pod here: test_life does
    assert _list_named_after_us(room) - before == set()


def _list_named_after_us(kubectl: Kubectl) -> set[str]:
    """What the chart may create, in all namespaces: `namespace kind/name`."""
    kinds = "all,secret,role,rolebinding,sa,pdb,netpol,clusterrole,clusterrolebinding,mutatingwebhookconfiguration"
    line = '{range .items[*]}{.metadata.namespace} {.kind}/{.metadata.name}{"\\n"}{end}'
    answer = kubectl("get", f"{kinds},validatingwebhookconfiguration", "-A", "-o", f"jsonpath={line}").stdout
    return {name for name in answer.splitlines() if "trimtab" in name}
