"""What the API server does with the RuntimeClass a mutating webhook sets.

Nothing of ours runs here but a webhook that answers with the patch a test gives. When one of these fails
under a newer Kubernetes, `trimtab.admission` is what to look at next.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.webhook_server import WebhookServer
from tests.e2e.patches import add, refused, remove

BOTH = pytest.mark.parametrize("again", ["Never", "IfNeeded"])
AMOUNTS = {"cpu": "100m", "memory": "64Mi"}
RC_TOLERATION = {"key": "rc-tol", "operator": "Exists"}


@pytest.fixture
def sandbox(cluster: Cluster) -> str:
    """The name of a class with overhead, a node selector and a toleration."""
    scheduling = {"nodeSelector": {"pool": "a"}, "tolerations": [RC_TOLERATION]}
    return runtime_class(cluster, "oh", overhead={"podFixed": AMOUNTS}, scheduling=scheduling)


@pytest.fixture
def plain(cluster: Cluster) -> str:
    """The name of a class with nothing but itself."""
    return runtime_class(cluster, "plain")


def runtime_class(cluster: Cluster, handler: str, **more: Any) -> str:
    name = f"{handler}-{cluster.namespace[-5:]}"
    kind = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass"}
    cluster.apply({**kind, "metadata": {"name": name}, "handler": handler, **more})
    return name


@BOTH
def test_the_class_alone_brings_overhead_selector_and_tolerations(cluster: Cluster, sandbox: str, again: str) -> None:
    with WebhookServer(
        lambda pod: [] if pod["spec"].get("runtimeClassName") else [add("/spec/runtimeClassName", sandbox)]
    ) as hook:
        cluster.webhook_configuration("class", hook, reinvocation_policy=again)
        spec = cluster.pod()["spec"]
    assert spec["runtimeClassName"] == sandbox
    assert spec["overhead"] == AMOUNTS
    assert spec["nodeSelector"] == {"pool": "a"}
    assert RC_TOLERATION in spec["tolerations"]
    overheads = [call["object"]["spec"].get("overhead") for call in hook.calls]
    assert overheads == ([None] if again == "Never" else [None, AMOUNTS])


def test_a_class_the_user_chose_is_complete_at_the_first_call(cluster: Cluster, sandbox: str) -> None:
    with WebhookServer([]) as hook:
        cluster.webhook_configuration("look", hook, reinvocation_policy="IfNeeded")
        cluster.pod({"runtimeClassName": sandbox})
    assert [call["object"]["spec"]["overhead"] for call in hook.calls] == [AMOUNTS]


@pytest.mark.parametrize(("again", "memory"), [("Never", "64Mi"), ("IfNeeded", "67108864")])
def test_equal_overhead_is_accepted_and_the_last_hand_writes_it(
    cluster: Cluster, sandbox: str, again: str, memory: str
) -> None:
    """The plugins' second run writes it as the class does; a webhook called after that writes its own."""
    same = {"cpu": "0.1", "memory": "67108864"}
    patch = [add("/spec/runtimeClassName", sandbox), add("/spec/overhead", same)]
    with WebhookServer(patch) as hook:
        cluster.webhook_configuration("equal", hook, reinvocation_policy=again)
        assert cluster.pod()["spec"]["overhead"] == {"cpu": "100m", "memory": memory}


def test_different_overhead_is_refused(cluster: Cluster, sandbox: str) -> None:
    patch = [add("/spec/runtimeClassName", sandbox), add("/spec/overhead", {"cpu": "200m"})]
    refused(cluster, patch, 403, "Pod's Overhead doesn't match RuntimeClass's defined Overhead")


def test_overhead_without_a_class_is_refused(cluster: Cluster) -> None:
    refused(cluster, [add("/spec/overhead", AMOUNTS)], 403, "without corresponding RuntimeClass defined Overhead")


def test_changing_the_class_takes_the_old_overhead_out_and_leaves_the_old_selector(
    cluster: Cluster, sandbox: str, plain: str
) -> None:
    swap = add("/spec/runtimeClassName", plain)
    mine = {"runtimeClassName": sandbox}
    refused(cluster, [swap], 403, "without corresponding RuntimeClass defined Overhead", pod=mine)
    with WebhookServer([swap, remove("/spec/overhead")]) as hook:
        cluster.webhook_configuration("swap", hook)
        spec = cluster.pod(mine)["spec"]
    assert "overhead" not in spec
    assert spec["nodeSelector"] == {"pool": "a"}
    assert RC_TOLERATION in spec["tolerations"]


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_a_class_that_does_not_exist_is_refused(cluster: Cluster, policy: str) -> None:
    refused(cluster, [add("/spec/runtimeClassName", "nope")], 403, 'RuntimeClass "nope" not found', policy=policy)


def test_a_selector_against_the_classs_is_refused(cluster: Cluster, sandbox: str) -> None:
    pod = {"nodeSelector": {"pool": "b"}}
    refused(
        cluster,
        [add("/spec/runtimeClassName", sandbox)],
        403,
        "conflict: runtimeClass.scheduling.nodeSelector",
        pod=pod,
    )


def test_a_dry_run_is_called_and_leaves_nothing(cluster: Cluster, sandbox: str) -> None:
    with WebhookServer([add("/spec/runtimeClassName", sandbox)]) as hook:
        cluster.webhook_configuration("dry", hook)
        assert cluster.pod(dry_run=True)["spec"]["overhead"] == AMOUNTS
    assert [call["dryRun"] for call in hook.calls] == [True]
    assert cluster.list("Pod") == []
