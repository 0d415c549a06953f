"""A webhook that answers only the API server, with the files and commands of its how-to page and a real API server."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

import certs
from certs.ca import create_authority
from tests.controlplane import ports
from tests.controlplane.api import ApiError
from tests.controlplane.binaries import Binaries
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.e2e.charts import Helm
from tests.e2e.ours import Ours, following
from tests.e2e.pages import ROOT, blocks, files

PAGE = "docs/how-to/firewalls-and-certificates.md"
ETC = "/etc/kubernetes"
HOST = "trimtab-webhook.trimtab-system.svc"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything the page makes, in one folder; the Service's port is not 443."""
    home = tmp_path_factory.mktemp("callers")
    subprocess.run(["bash", "-euc", blocks(PAGE, "sh")[0]], cwd=home, check=True, capture_output=True)
    [port] = ports.free(1)
    (home / "port").write_text(str(port))
    for name, content in files(PAGE).items():
        if name.startswith(ETC):
            local = content.replace(ETC, str(home)).replace(HOST, f"{HOST}:{port}")
            (home / name.removeprefix(f"{ETC}/")).write_text(local)
    return home


@pytest.fixture(scope="module")
def cluster(built: Binaries, home: Path) -> Iterator[Cluster]:
    flags = {"kube-apiserver": [f"--admission-control-config-file={home / 'admission.yaml'}"]}
    with ControlPlane.start(built, extra_flags=flags) as plane:
        yield Cluster(plane.kubeconfig, plane=plane).in_namespace("trimtab-system")


@pytest.fixture(scope="module")
def ours(cluster: Cluster, home: Path) -> Iterator[Ours]:
    settings = {"CLIENT_CA_FILE": home / "callers-ca.crt", "CLIENT_COMMON_NAME": "kube-apiserver"}
    listen = f"127.0.0.1:{(home / 'port').read_text()}"
    with following(cluster, home / "webhook", LISTEN=listen, **settings) as running:
        pair = certs.issue(["localhost", "127.0.0.1", HOST], now=datetime.now(UTC))
        certs.write_folder(running.home / "certs", pair)
        running = replace(running, ca_bundle=base64.b64encode(pair.bundle).decode())
        running.policy(cluster, "tolerates", "placement: {tolerate: [{key: a, value: b, effect: NoSchedule}]}")
        running.serves(cluster, "trimtab-webhook", by="service", failure_policy="Fail")
        yield running


def test_the_api_server_shows_its_certificate_and_is_answered(cluster: Cluster, ours: Ours) -> None:
    assert "a" in [one["key"] for one in cluster.pod(name="one")["spec"]["tolerations"]]
    assert ours.metric('trimtab_reviews_total{code="200",path="/mutate"}') >= 1
    assert ours.metric('trimtab_reviews_total{code="403",path="/mutate"}') == 0


def test_one_that_shows_another_authoritys_is_refused_until_that_is_known_too(
    cluster: Cluster, ours: Ours, home: Path
) -> None:
    facts = home / "callers-ca.crt"
    before, other = facts.read_bytes(), create_authority(now=datetime.now(UTC)).certificate
    facts.write_bytes(other)
    cluster.api.close()  # connections that were let in stay: the API server is given new ones by a restart
    cluster.plane.restart("kube-apiserver")
    with pytest.raises(ApiError, match="failed calling webhook"):
        cluster.pod(name="two")
    facts.write_bytes(other + before)
    cluster.eventually(lambda: cluster.pod(name="three"), within=20)


def test_the_patch_of_the_page_makes_the_base_ask_for_it(built: Binaries, home: Path) -> None:
    folder = home / "kustomize"
    folder.mkdir()
    (folder / "base").symlink_to(ROOT / "deploy" / "kustomize")
    (folder / "kustomization.yaml").write_text(files(PAGE)["kustomization.yaml"].replace("../base", "base"))
    argv = [built["kubectl"], "kustomize", "--load-restrictor=LoadRestrictionsNone", str(folder)]
    asks(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)


def test_the_values_of_the_page_make_the_chart_ask_for_it(helm: Helm) -> None:
    asks(helm.rendered(yaml.safe_load(files(PAGE)["values.yaml"])))


def asks(rendered: str) -> None:
    """The webhook reads the authorities from where the ConfigMap is mounted, and what was there is still there."""
    [document] = [
        one
        for one in yaml.safe_load_all(rendered)
        if one and (one["kind"], one["metadata"]["name"]) == ("Deployment", "trimtab-webhook")
    ]
    [container] = document["spec"]["template"]["spec"]["containers"]
    environ = {one["name"]: one["value"] for one in container["env"]}
    [mount] = [one for one in container["volumeMounts"] if one["name"] == "callers"]
    [volume] = [one for one in document["spec"]["template"]["spec"]["volumes"] if one["name"] == "callers"]
    assert environ["TRIMTAB_WEBHOOK_CLIENT_CA_FILE"].startswith(mount["mountPath"])
    assert volume["configMap"]["name"] in blocks(PAGE, "sh")[1]
    assert environ["TRIMTAB_WEBHOOK_LISTEN"]
