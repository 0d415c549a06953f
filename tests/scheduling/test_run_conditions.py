"""A pod runs where its operating system, architecture, runtime and drivers are, whatever the scheduler would accept."""

from typing import Any

import pytest

from tests.cluster_of import HOST, Item, cluster, node, pod
from trimtab.scheduling.cluster_model import FreeCapacity, build_cluster_model
from trimtab.scheduling.filters import fits_on_node, rejection_reason

ARCH, OS, BUILD = "kubernetes.io/arch", "kubernetes.io/os", "node.kubernetes.io/windows-build"


def machine(name: str, arch: str = "amd64", system: str = "linux", **more: Any) -> Item:
    return node(name, **{**more, "labels": {ARCH: arch, OS: system, **more.get("labels", {})}})


def why_not(target: str, *items: Item) -> str:
    """Returns the code of the reason why the first pod does not fit on the node; empty if it fits."""
    model = build_cluster_model(cluster(*items))
    capacity, number = FreeCapacity(model), model.node_numbers[target]
    reason = rejection_reason(capacity, model.successor_class_of[0], number)
    assert fits_on_node(capacity, model.successor_class_of[0], number) is (reason is None)
    return "" if reason is None else reason.code.name


X86, ARM, WINDOWS = machine("x"), machine("arm", "arm64"), machine("win", system="windows")


def test_a_pod_stays_on_its_architecture() -> None:
    assert why_not("arm", X86, ARM, pod("web-0", "x")) == "other-architecture"


def test_a_pod_of_which_nothing_is_known_may_run_on_any() -> None:
    assert why_not("x", machine("x", ""), machine("y", ""), pod("web-0", "y")) == ""


def test_a_node_of_unknown_architecture_is_not_trusted() -> None:
    assert why_not("b", X86, node("b"), pod("web-0", "x")) == "other-operating-system"


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": {"kubernetes.io/arch": "arm64"}},
        {"tolerations": [{"key": ARCH, "operator": "Exists"}]},
        {"tolerations": [{"key": ARCH, "value": "arm64", "effect": "NoSchedule"}]},
        {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": ARCH, "operator": "In", "values": ["amd64", "arm64"]}]}
                        ]
                    }
                }
            }
        },
        {
            "affinity": {
                "nodeAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "weight": 1,
                            "preference": {"matchExpressions": [{"key": ARCH, "operator": "In", "values": ["arm64"]}]},
                        }
                    ]
                }
            }
        },
    ],
    ids=["selector", "toleration of all", "toleration of one", "affinity", "preference"],
)
def test_the_author_may_name_the_architecture(spec: Item) -> None:
    assert why_not("arm", X86, ARM, pod("web-0", "x", spec=spec)) == ""


def test_a_toleration_of_everything_names_no_architecture() -> None:
    everything = {"tolerations": [{"operator": "Exists"}]}
    assert why_not("arm", X86, ARM, pod("web-0", "x", spec=everything)) == "other-architecture"


def test_an_affinity_of_which_only_one_term_names_the_architecture_decides_nothing() -> None:
    terms = [
        {"matchExpressions": [{"key": ARCH, "operator": "In", "values": ["amd64"]}]},
        {"matchExpressions": [{"key": HOST, "operator": "Exists"}]},
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    spec = {"affinity": {"nodeAffinity": required}}
    assert why_not("arm", X86, ARM, pod("web-0", "x", spec=spec)) == "other-architecture"


def test_ready_pods_of_the_workload_show_where_it_runs() -> None:
    assert why_not("arm", X86, ARM, pod("web-0", "x"), pod("web-1", "arm")) == ""
    assert why_not("arm", X86, ARM, pod("web-0", "x"), pod("web-1", "arm", ready=False)) == "other-architecture"
    assert why_not("arm", X86, ARM, pod("web-0", "x"), pod("zoo-1", "arm")) == "other-architecture"


def test_a_pod_that_fails_where_it_is_runs_where_its_ready_siblings_run() -> None:
    assert why_not("x", X86, ARM, pod("web-0", "arm", ready=False), pod("web-1", "x")) == ""


def test_a_pod_on_linux_never_goes_to_windows_and_the_other_way_round() -> None:
    assert why_not("win", X86, WINDOWS, pod("web-0", "x")) == "other-operating-system"
    assert why_not("x", X86, WINDOWS, pod("iis-0", "win")) == "other-operating-system"
    message = {"os": {"name": "linux"}}
    assert why_not("win", X86, WINDOWS, pod("web-0", "x", spec=message)) == "other-operating-system"


def test_the_kubelet_says_what_labels_do_not() -> None:
    silent = node("win", status={"nodeInfo": {"operatingSystem": "windows", "architecture": "amd64"}})
    assert why_not("win", X86, silent, pod("web-0", "x")) == "other-operating-system"


def test_a_pod_stays_on_its_build_of_windows() -> None:
    old, new = (machine(name, system="windows", labels={BUILD: name}) for name in ("10.0.17763", "10.0.20348"))
    assert why_not("10.0.20348", old, new, pod("iis-0", "10.0.17763")) == "other-operating-system"
    chosen = {"nodeSelector": {BUILD: "10.0.20348"}}
    assert why_not("10.0.20348", old, new, pod("iis-0", "10.0.17763", spec=chosen)) == ""


def runtime(name: str, *handlers: str, namespaces: bool = False, **status: Any) -> Item:
    entries = [{"name": one, "features": {"userNamespaces": namespaces}} for one in ("", *handlers)]
    return node(name, status={"runtimeHandlers": entries, **status})


KATA = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "vm"}, "handler": "kata"}
IN_VM = {"runtimeClassName": "vm"}


def test_a_sandbox_runs_where_its_handler_is() -> None:
    nodes = (runtime("a", "kata"), runtime("b"), runtime("c", "kata", "gvisor"))
    assert why_not("b", *nodes, KATA, pod("job-0", "a", spec=IN_VM)) == "runtime-handler-missing"
    assert why_not("c", *nodes, KATA, pod("job-0", "a", spec=IN_VM)) == ""
    assert why_not("b", *nodes, KATA, pod("job-0", "a")) == ""


def test_of_a_class_that_the_snapshot_lacks_the_present_node_shows_the_handlers() -> None:
    nodes = (runtime("a", "kata"), runtime("b"), runtime("c", "kata", "gvisor"))
    assert why_not("b", *nodes, pod("job-0", "a", spec=IN_VM)) == "runtime-handler-missing"
    assert why_not("c", *nodes, pod("job-0", "a", spec=IN_VM)) == ""


def test_a_node_that_reports_no_handlers_is_assumed_to_have_them() -> None:
    assert why_not("b", runtime("a", "kata"), node("b"), KATA, pod("job-0", "a", spec=IN_VM)) == ""


def test_a_pod_with_a_user_namespace_runs_where_the_runtime_has_them() -> None:
    nodes = (runtime("a", namespaces=True), runtime("b"))
    assert why_not("b", *nodes, pod("web-0", "a", spec={"hostUsers": False})) == "node-feature-missing"
    assert why_not("b", *nodes, pod("web-0", "a")) == ""


def test_strict_groups_run_where_the_runtime_has_them() -> None:
    strict = {"securityContext": {"supplementalGroupsPolicy": "Strict"}}
    nodes = [runtime(name, features={"supplementalGroupsPolicy": has}) for name, has in (("a", True), ("b", False))]
    assert why_not("b", *nodes, pod("web-0", "a", spec=strict)) == "node-feature-missing"


def storage(name: str, *drivers: str) -> Item:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": [{"name": one, "nodeID": name} for one in drivers] or None},
    }


DATABASE = (
    pod("db-0", "a", spec={"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "d"}}]}),
    {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "d", "namespace": "default"},
        "spec": {"volumeName": "pv", "accessModes": ["ReadWriteOnce"]},
    },
    {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv"},
        "spec": {"csi": {"driver": "disk.example", "volumeHandle": "1"}, "accessModes": ["ReadWriteOnce"]},
    },
)


def test_a_volume_goes_where_its_driver_is_registered() -> None:
    nodes = (node("a"), node("b"), node("c"), storage("a", "disk.example"), storage("c", "disk.example"))
    assert why_not("b", *nodes, storage("b"), *DATABASE) == "csi-driver-missing"
    assert why_not("b", *nodes, *DATABASE) == "csi-driver-missing"
    assert why_not("c", *nodes, storage("b"), *DATABASE) == ""


def test_without_any_registration_nothing_is_known_about_drivers() -> None:
    assert why_not("b", node("a"), node("b"), *DATABASE) == ""


VIRTUAL = node("v", labels={"type": "virtual-kubelet", "lane": "burst"}, taints=[])


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ({}, "node-only-if-selected"),
        ({"tolerations": [{"operator": "Exists"}]}, "node-only-if-selected"),
        ({"nodeSelector": {"type": "virtual-kubelet"}}, ""),
        ({"nodeSelector": {"lane": "burst"}}, ""),
    ],
    ids=["nothing", "toleration", "label that shows it", "label that only such nodes have"],
)
def test_a_node_that_is_no_machine_receives_only_pods_that_select_it(spec: Item, code: str) -> None:
    assert why_not("v", VIRTUAL, node("a"), pod("web-0", "a", spec=spec)) == code


def test_a_label_that_machines_have_too_selects_no_virtual_node() -> None:
    machines = node("a", labels={"lane": "burst"})
    assert why_not("v", VIRTUAL, machines, pod("web-0", "a", spec={"nodeSelector": {"lane": "burst"}})) == (
        "node-only-if-selected"
    )


def test_an_edge_node_receives_only_pods_that_select_it() -> None:
    edge = node("e", labels={"openyurt.io/is-edge-worker": "true"})
    assert why_not("e", edge, node("a"), pod("web-0", "a")) == "node-only-if-selected"
