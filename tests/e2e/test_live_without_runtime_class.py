"""Where the API server runs without the RuntimeClass admission: `overhead: webhook`, on a control plane of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from tests.controlplane.api import ApiError
from tests.controlplane.binaries import Binaries
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.e2e.ours import Ours, following, kubectl
from tests.reasons import has_facts
from trimtab.diagnosis import check_integrations
from trimtab.diagnosis.cluster_reader import read_cluster
from trimtab.diagnosis.observed import DeploymentState
from trimtab.diagnosis.reasons import OVERHEAD_MISMATCH
from trimtab.installation.names import PROCESSES
from trimtab.kube.client import connect_to_cluster

OVERHEAD = {"cpu": "250m", "memory": "160Mi"}
KATA = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "kata"},
    "handler": "kata",
    "overhead": {"podFixed": OVERHEAD},
    "scheduling": {"nodeSelector": {"pool": "kata"}},
}


@pytest.fixture(scope="module")
def without_it(built: Binaries) -> Iterator[Cluster]:
    flags = {"kube-apiserver": ["--disable-admission-plugins=RuntimeClass"]}
    with ControlPlane.start(built, extra_flags=flags) as plane:
        cluster = Cluster(plane.kubeconfig, plane=plane).in_namespace("live-without-it")
        cluster.apply(KATA)
        yield cluster


@pytest.fixture(scope="module")
def ours(without_it: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ours]:
    with following(without_it, tmp_path_factory.mktemp("ours"), OVERHEAD="webhook") as installation:
        installation.policy(without_it, "class", "{runtimeClass: {name: kata}}", "{podLabels: {tier: untrusted}}")
        installation.policy(without_it, "overhead", "{overhead: {stray: warn}}")
        installation.serves(without_it)
        yield installation


def pod(name: str, **spec: Any) -> dict[str, Any]:
    whole = {"containers": [{"name": "main", "image": "pause"}], **spec}
    metadata = {"name": name, "labels": {"tier": "untrusted"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": whole}


@pytest.mark.usefixtures("ours")
def test_the_webhook_writes_what_the_server_does_not(without_it: Cluster) -> None:
    spec = without_it.create(pod("chosen"))["spec"]
    assert spec["runtimeClassName"] == "kata"
    assert spec["overhead"] == OVERHEAD
    assert spec["nodeSelector"] == {"pool": "kata"}


@pytest.mark.usefixtures("ours")
def test_a_class_the_user_chose_gets_its_overhead_too(without_it: Cluster) -> None:
    assert without_it.create(pod("own", runtimeClassName="kata"))["spec"]["overhead"] == OVERHEAD


@pytest.mark.usefixtures("ours")
def test_contradicting_overhead_is_denied_with_both_values(without_it: Cluster) -> None:
    with pytest.raises(ApiError) as caught:
        without_it.create(pod("bad", runtimeClassName="kata", overhead={"cpu": "1m"}))
    assert caught.value.status == 403
    assert "cpu 1m" in caught.value.message
    assert has_facts(caught.value.message, "RuntimeClass kata", "cpu 250m, memory 160Mi")


@pytest.mark.usefixtures("ours")
def test_equal_overhead_written_otherwise_is_no_contradiction(without_it: Cluster) -> None:
    same = {"cpu": "0.25", "memory": "163840Ki"}
    stored = without_it.create(pod("same", runtimeClassName="kata", overhead=same))["spec"]
    assert stored["overhead"] == {"cpu": "250m", "memory": "160Mi"}


@pytest.mark.usefixtures("ours")
def test_stray_overhead_is_told(without_it: Cluster) -> None:
    stray = pod("stray", overhead={"cpu": "1m"})
    client = kubectl(without_it, "apply", "-f", "-", stdin={**stray, "metadata": {"name": "stray"}})
    assert client.code == 0
    assert [line for line in client.warnings if has_facts(line, "overhead cpu 1m", "no RuntimeClass")]


def test_doctor_sees_that_the_server_does_not_and_which_setting_fits(without_it: Cluster) -> None:
    with closing(connect_to_cluster(str(without_it.kubeconfig))) as client:
        cluster = read_cluster(client, "trimtab-system", without_it.namespace)
    both = {name: DeploymentState(replicas=2, ready_replicas=2) for name in PROCESSES}
    [webhook, watchdog] = check_integrations.check_runtime_class(replace(cluster, processes=both))
    assert {webhook.reason.code, watchdog.reason.code} == {OVERHEAD_MISMATCH}
    assert webhook.fix == "TRIMTAB_OVERHEAD=webhook of webhook"
