"""What is left to us where the API server runs without the RuntimeClass admission (`overhead: webhook`)?"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.controlplane.binaries import Binaries
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.webhook_server import WebhookServer
from tests.e2e.patches import add, refused

AMOUNTS = {"cpu": "100m", "memory": "64Mi"}


@pytest.fixture(scope="module")
def without_it(built: Binaries) -> Iterator[Cluster]:
    flags = {"kube-apiserver": ["--disable-admission-plugins=RuntimeClass"]}
    with ControlPlane.start(built, extra_flags=flags) as plane:
        cluster = Cluster(plane.kubeconfig, plane=plane).in_namespace("without-it")
        kind = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "oh"}}
        scheduling = {"nodeSelector": {"pool": "a"}}
        cluster.apply({**kind, "handler": "oh", "overhead": {"podFixed": AMOUNTS}, "scheduling": scheduling})
        yield cluster


def test_the_class_alone_brings_nothing(without_it: Cluster) -> None:
    with WebhookServer([add("/spec/runtimeClassName", "oh")]) as hook:
        without_it.webhook_configuration("class", hook, reinvocation_policy="IfNeeded")
        spec = without_it.pod(name="alone")["spec"]
        without_it.delete("MutatingWebhookConfiguration", "without-it-class")
    assert spec["runtimeClassName"] == "oh"
    assert "overhead" not in spec
    assert "nodeSelector" not in spec
    assert len(hook.calls) == 1


@pytest.mark.parametrize("cpu", ["100m", "200m"])
def test_the_webhooks_overhead_is_kept_right_or_wrong(without_it: Cluster, cpu: str) -> None:
    expected = {"cpu": cpu, "memory": "64Mi"}
    with WebhookServer([add("/spec/runtimeClassName", "oh"), add("/spec/overhead", expected)]) as hook:
        without_it.webhook_configuration("overhead", hook)
        assert without_it.pod(name=f"own-{cpu}")["spec"]["overhead"] == expected
        without_it.delete("MutatingWebhookConfiguration", "without-it-overhead")


def test_negative_overhead_is_invalid(without_it: Cluster) -> None:
    refused(without_it, [add("/spec/overhead", {"cpu": "-1"})], 422, "must be greater than or equal to 0")
