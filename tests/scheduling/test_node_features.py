"""A pod runs where the node has the features and drivers that the pod names."""

from typing import Any

import pytest

from tests.cluster_of import Item, node, pod
from tests.compaction.plans import goes
from tests.scheduling.test_run_conditions import DATABASE, storage, why_not

MISSING = "node-feature-missing"


def handlers(name: str, **features: bool) -> Item:
    """A node whose default handler, and the handler kata, have these features."""
    entries = [{"name": handler, "features": features} for handler in ("", "kata")]
    return node(name, status={"runtimeHandlers": entries})


def mounting(kind: str, *, where: str = "containers") -> Item:
    mount = {"name": "d", "mountPath": "/d", "readOnly": True, "recursiveReadOnly": kind}
    item = pod("web-0", "a")
    item["spec"]["containers"][0]["volumeMounts"] = [mount] if where == "containers" else []
    item["spec"]["initContainers"] = [{"name": "i", "volumeMounts": [mount]}] if where == "initContainers" else []
    return item


ABLE, UNABLE = handlers("a", recursiveReadOnlyMounts=True), handlers("b", userNamespaces=True)


@pytest.mark.parametrize("where", ["containers", "initContainers"])
def test_a_recursive_read_only_mount_needs_a_runtime_that_has_it(where: str) -> None:
    assert why_not("b", ABLE, UNABLE, mounting("Enabled", where=where)) == MISSING
    assert why_not("b", ABLE, handlers("b", recursiveReadOnlyMounts=True), mounting("Enabled", where=where)) == ""


@pytest.mark.parametrize("kind", ["IfPossible", "Disabled"])
def test_a_mount_that_does_not_insist_runs_anywhere(kind: str) -> None:
    assert why_not("b", ABLE, UNABLE, mounting(kind)) == ""


def test_where_no_runtime_reports_its_handlers_nothing_is_known() -> None:
    assert why_not("b", node("a"), node("b"), mounting("Enabled")) == ""


def declaring(name: str, *features: str, **more: Any) -> Item:
    return node(name, status={"declaredFeatures": [*features]}, **more)


RESTARTING = pod("web-0", "a")
RESTARTING["spec"]["containers"][0]["restartPolicyRules"] = [{"action": "RestartAllContainers"}]
IN_HOST_NETWORK = pod("web-0", "a", spec={"hostNetwork": True, "hostUsers": False})


@pytest.mark.parametrize(
    ("item", "feature"),
    [(RESTARTING, "RestartAllContainersOnContainerExits"), (IN_HOST_NETWORK, "UserNamespacesHostNetworkSupport")],
)
def test_a_pod_runs_where_the_feature_that_its_spec_needs_is_declared(item: Item, feature: str) -> None:
    assert why_not("b", declaring("a", feature), declaring("b", "Other"), item) == MISSING
    assert why_not("b", declaring("a", feature), node("b"), item) == MISSING
    assert why_not("b", declaring("a", feature), declaring("b", feature), item) == ""
    assert why_not("b", node("a"), node("b"), item) == ""


def test_a_pod_that_needs_no_feature_runs_anywhere() -> None:
    assert why_not("b", declaring("a", "Other"), node("b"), pod("web-0", "a")) == ""


SECRETS = pod("web-0", "a", spec={"volumes": [{"name": "s", "csi": {"driver": "secrets.example"}}]})


def test_the_driver_of_a_volume_that_the_pod_defines_counts() -> None:
    nodes = (node("a"), node("b"), storage("a", "secrets.example"), storage("b"))
    assert why_not("b", *nodes, SECRETS) == "csi-driver-missing"
    assert why_not("b", *nodes, pod("web-0", "a")) == ""


def driver(name: str, *, prevents: bool) -> Item:
    spec = {"preventPodSchedulingIfMissing": prevents}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": name}, "spec": spec}


def test_where_the_scheduler_itself_checks_the_driver_the_node_may_be_drained() -> None:
    """Node c has the driver, node b has room but no driver."""
    nodes = [node("a"), node("b"), node("c"), storage("a", "disk.example"), storage("b"), storage("c", "disk.example")]
    busy = pod("big-0", "b", "3", annotations={"trimtab.dev/do-not-disrupt": "true"})
    items = [*nodes, *DATABASE, busy, pod("web-0", "c", "1", annotations={"trimtab.dev/do-not-disrupt": "true"})]
    assert goes(*items, driver("disk.example", prevents=False)) == []
    assert goes(*items, driver("disk.example", prevents=True)) == ["a"]


def test_a_driver_that_no_node_has_is_missing_where_the_scheduler_checks_it() -> None:
    nodes = (node("a"), node("b"), storage("a"), storage("b"))
    assert why_not("b", *nodes, *DATABASE) == ""
    assert why_not("b", *nodes, *DATABASE, driver("disk.example", prevents=True)) == "csi-driver-missing"
