"""The token of one process moves no other process, and reads nothing of anybody else's."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.controlplane.api import ApiError
from tests.controlplane.cluster import Cluster
from tests.e2e import real_vpa
from tests.e2e.adversary.identities import config_map, denied, thief
from tests.e2e.installed import Installed
from tests.e2e.ours import install_crd
from trimtab.cluster.published_reservations import RESERVATIONS_LABEL
from trimtab.installation.vpa_status_access import render_vpa_status_access
from trimtab.recommender.reservations import HISTORY_LABEL, HISTORY_PREFIX, RESERVATIONS_NAME

Object = dict[str, Any]
Objects = list[Object]

HELD = {"compactor": "trimtab-state-web", "recommender": "trimtab-recommendations-000"}
"""A name that each process writes."""
NOTE = "trimtab.dev/cordoned-for"
POOL, STATE, RECOMMENDED = "trimtab.dev/pool", "trimtab.dev/state", "trimtab.dev/recommendations"
LABELS = {"compactor": STATE, "recommender": RECOMMENDED}
OTHERS = {
    "compactor": ["pool-web", "trimtab-recommendations-000", "trimtab-usage-000", "anything", "trimtab-stat"],
    "recommender": ["pool-web", "trimtab-state-web", "anything", "trimtab-recommendation"],
}
WORKERS = ("watchdog", "compactor", "recommender")


@pytest.fixture(scope="module")
def ours(applied: Installed) -> Cluster:
    """Our namespace with objects of each process, as an administrator made them; and the policies in force."""
    cluster = Cluster(applied.cluster.kubeconfig, applied.values.namespace, applied.cluster.plane)
    for name, labels in {
        "pool-web": {POOL: "web"},
        "trimtab-state-web": {STATE: "web"},
        "trimtab-recommendations-000": {RECOMMENDED: "v1"},
        "trimtab-usage-000": {"trimtab.dev/usage": "v1"},
    }.items():
        cluster.apply(config_map(name, labels, text="ours"))
    for process in HELD:
        cluster.eventually(
            lambda process=process: (
                f"trimtab-{process}-configmaps"
                in denied(lambda: thief(applied, process).apply(config_map("not-yet", text="stolen")))
            ),
            what=f"the policy of {process} in force",
        )
    return cluster


CHANGED = [(process, name) for process, names in OTHERS.items() for name in names]


@pytest.mark.parametrize(("process", "name"), CHANGED)
def test_a_token_writes_no_config_map_of_another_process_or_person(
    applied: Installed, ours: Cluster, process: str, name: str
) -> None:
    """By server-side apply, by a patch, and as a new object of any name."""
    stolen = thief(applied, process)
    assert f"trimtab-{process}-configmaps" in denied(lambda: stolen.apply(config_map(name, text="stolen")))
    assert f"trimtab-{process}-configmaps" in denied(lambda: stolen.create(config_map(f"{name}-2", text="stolen")))
    if name in {shape["metadata"]["name"] for shape in ours.list("ConfigMap")}:
        denied(lambda: stolen.patch("ConfigMap", name, {"data": {"text": "stolen"}}))
        denied(lambda: stolen.delete("ConfigMap", name))
        assert ours.get("ConfigMap", name)["data"] == {"text": "ours"}


@pytest.mark.parametrize(
    ("process", "label"),
    [(process, label) for process in HELD for label in (POOL, STATE, RECOMMENDED) if label != LABELS[process]],
)
def test_a_token_labels_nothing_so_that_another_process_reads_it(
    applied: Installed, ours: Cluster, process: str, label: str
) -> None:
    stolen, name = thief(applied, process), HELD[process]
    assert label.partition("/")[0] in denied(lambda: stolen.apply(config_map(name, {label: "web"}, text="stolen")))
    denied(lambda: stolen.patch("ConfigMap", name, {"metadata": {"labels": {label: "web"}}}))
    assert label not in ours.get("ConfigMap", name)["metadata"]["labels"]


@pytest.mark.parametrize("process", HELD)
def test_what_a_process_is_there_for_goes_through(applied: Installed, ours: Cluster, process: str) -> None:
    own = thief(applied, process)
    own.apply(config_map(HELD[process], {LABELS[process]: "v1"}, text="ours"))
    own.apply(config_map(f"{HELD[process]}-new", {LABELS[process]: "v1"}, text="ours"))
    ours.delete("ConfigMap", f"{HELD[process]}-new")
    denied(lambda: own.create(config_map("", text="stolen") | {"metadata": {"generateName": "any-"}}))


@pytest.mark.parametrize(
    ("name", "label"), [(RESERVATIONS_NAME, RESERVATIONS_LABEL), (f"{HISTORY_PREFIX}-3f2a", HISTORY_LABEL)]
)
def test_the_recommender_publishes_reservations(applied: Installed, ours: Cluster, name: str, label: str) -> None:
    """The policy that holds its account was written before there were any, and refused them."""
    thief(applied, "recommender").apply(config_map(name, {label: "v1"}, text="ours"))
    ours.delete("ConfigMap", name)


def test_the_watchdogs_token_writes_no_config_map(applied: Installed, ours: Cluster) -> None:
    stolen = thief(applied, "watchdog")
    denied(lambda: stolen.create(config_map("anything", text="stolen")))
    for name in ("pool-web", "trimtab-state-web", "trimtab-recommendations-000"):
        denied(lambda name=name: stolen.patch("ConfigMap", name, {"data": {"text": "stolen"}}))
        denied(lambda name=name: stolen.delete("ConfigMap", name))


def test_the_watchdogs_token_changes_no_spec_of_a_policy(applied: Installed, ours: Cluster) -> None:
    """It may write the status, and that takes no spec with it."""
    stolen, spec = (
        thief(applied, "watchdog"),
        {"actions": {"requests": {"cpu": {"from": "policy", "otherwise": "50m"}}}},
    )
    meta = {"name": "spared"}
    ours.apply({"apiVersion": "trimtab.dev/v1alpha1", "kind": "PodPolicy", "metadata": meta, "spec": spec})
    stored = ours.get("PodPolicy", "spared")["spec"]
    denied(lambda: stolen.patch("PodPolicy", "spared", {"spec": {"mode": "warn"}}))
    stolen.patch("PodPolicy", "spared", {"spec": {"mode": "warn"}, "status": {"matched": 1}}, sub="status")
    assert ours.get("PodPolicy", "spared")["spec"] == stored
    ours.delete("PodPolicy", "spared")


@pytest.mark.parametrize(("process", "other"), list(itertools.permutations(WORKERS, 2)))
def test_a_token_takes_no_other_process_lease(applied: Installed, ours: Cluster, process: str, other: str) -> None:
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": f"trimtab-{other}"},
        "spec": {"holderIdentity": "a-thief", "leaseDurationSeconds": 3600},
    }
    stolen, path = thief(applied, process), f"/apis/coordination.k8s.io/v1/namespaces/{ours.namespace}/leases"
    denied(lambda: stolen.create(lease))
    denied(lambda: stolen.apply(lease))
    denied(lambda: stolen.api.request("PUT", f"{path}/trimtab-{other}", lease))
    denied(lambda: stolen.delete("Lease", f"trimtab-{other}"))
    ours.apply(lease | {"spec": {"holderIdentity": "ours"}})
    denied(lambda: stolen.patch("Lease", f"trimtab-{other}", {"spec": {"holderIdentity": "a-thief"}}))
    assert ours.get("Lease", f"trimtab-{other}")["spec"]["holderIdentity"] == "ours"
    ours.delete("Lease", f"trimtab-{other}")


@pytest.mark.parametrize("process", WORKERS)
def test_a_process_creates_its_own_lease_by_put(applied: Installed, ours: Cluster, process: str) -> None:
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": f"trimtab-{process}"},
        "spec": {"holderIdentity": process},
    }
    path = f"/apis/coordination.k8s.io/v1/namespaces/{ours.namespace}/leases/trimtab-{process}"
    thief(applied, process).api.request("PUT", path, lease)
    assert ours.get("Lease", f"trimtab-{process}")["spec"]["holderIdentity"] == process
    ours.delete("Lease", f"trimtab-{process}")


@pytest.mark.parametrize("process", ["webhook", *WORKERS])
def test_a_token_reads_no_config_map_and_no_secret_of_others(applied: Installed, ours: Cluster, process: str) -> None:
    stolen = thief(applied, process)
    for namespace in (applied.cluster.namespace, "kube-system"):
        denied(lambda namespace=namespace: stolen.list("ConfigMap", namespace))
        denied(lambda namespace=namespace: stolen.list("Secret", namespace))
        denied(lambda namespace=namespace: stolen.get("ConfigMap", "kube-root-ca.crt", namespace))
    denied(lambda: stolen.list("ConfigMap", everywhere=True))
    denied(lambda: stolen.list("Secret"))


@pytest.mark.parametrize("process", ["webhook", *WORKERS])
def test_a_token_changes_no_policy_that_holds_it(applied: Installed, ours: Cluster, process: str) -> None:
    stolen, name = thief(applied, process), "trimtab-compactor-configmaps"
    for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"):
        denied(lambda kind=kind: stolen.delete(kind, name))
        denied(lambda kind=kind: stolen.patch(kind, name, {"metadata": {"labels": {"a": "b"}}}))


def test_the_compactor_reads_the_autoscalers_status_by_its_name_alone(applied: Installed, ours: Cluster) -> None:
    stolen, path = thief(applied, "compactor"), "/api/v1/namespaces/kube-system/configmaps"
    stolen.api.request("GET", f"{path}?fieldSelector=metadata.name%3Dcluster-autoscaler-status")
    denied(
        lambda: stolen.api.request("GET", f"{path}?fieldSelector=metadata.name%3Dextension-apiserver-authentication")
    )


NODE_CHANGES: dict[str, dict[str, Any]] = {
    "a taint that evicts": {"spec": {"taints": [{"key": "any", "effect": "NoExecute"}]}},
    "our taint, so that it evicts": {
        "spec": {"taints": [{"key": "trimtab.dev/drain-candidate", "effect": "NoExecute"}]}
    },
    "a taint taken off": {"spec": {"taints": []}},
    "a label": {"metadata": {"labels": {"pool": "theirs"}}},
    "a label taken off": {"metadata": {"labels": {"pool": None}}},
    "an annotation": {"metadata": {"annotations": {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}}},
    "an annotation taken off": {"metadata": {"annotations": {"team": None}}},
    "a finalizer": {"metadata": {"finalizers": ["example.com/never"]}},
}


@pytest.fixture(scope="module")
def node(applied: Installed, ours: Cluster) -> Iterator[str]:
    """A node with a taint, labels and an annotation of its own; and the policy on nodes in force."""
    name = f"tok-{applied.cluster.namespace[-5:]}"
    applied.cluster.pool(name, nodes=1, taints=["team=a:NoSchedule"])
    [actual_name] = [shape["metadata"]["name"] for shape in applied.cluster.list("Node", selector=f"pool={name}")]
    applied.cluster.patch("Node", actual_name, {"metadata": {"annotations": {"team": "a"}}})
    stolen = thief(applied, "compactor")
    # Not stored: a label that an earlier attempt wrote would be no change, which every policy permits.
    label = lambda: stolen.patch("Node", actual_name, {"metadata": {"labels": {"a": "b"}}}, dryRun="All")  # noqa: E731
    ours.eventually(lambda: "trimtab-compactor-nodes" in denied(label), what="the policy on nodes in force")
    yield actual_name
    applied.cluster.delete("Node", actual_name)


@pytest.mark.parametrize("name", NODE_CHANGES)
def test_the_compactors_token_changes_nothing_of_a_node_that_evicts_or_attracts_pods(
    applied: Installed, node: str, name: str
) -> None:
    stolen = thief(applied, "compactor")
    assert "trimtab-compactor-nodes" in denied(lambda: stolen.patch("Node", node, NODE_CHANGES[name]))


def test_the_compactor_cordons_annotates_and_taints_softly(applied: Installed, node: str) -> None:
    """And undoes it, with what else stands on the node as it was."""
    own = thief(applied, "compactor")
    soft = {"key": "trimtab.dev/drain-candidate", "value": "trimtab-system", "effect": "PreferNoSchedule"}
    _patch_as_read(applied, own, node, lambda taints: {"spec": {"taints": [*taints, soft]}})
    own.patch("Node", node, {"metadata": {"annotations": {NOTE: "{}"}}, "spec": {"unschedulable": True}})
    _patch_as_read(
        applied,
        own,
        node,
        lambda taints: {
            "metadata": {"annotations": {NOTE: None}},
            "spec": {"unschedulable": None, "taints": [taint for taint in taints if taint != soft]},
        },
    )
    assert NOTE not in applied.cluster.get("Node", node)["metadata"]["annotations"]


def _patch_as_read(applied: Installed, own: Cluster, node: str, changes: Callable[[Objects], Object]) -> None:
    """Patches the node with `changes` of its taints, bound to the version they were read from.

    The node lifecycle controller taints a cordoned node a moment later: a list that was read before would take that
    taint off, which the policy rightly denies. The version makes it a conflict, and the list is read again.
    """

    def patch() -> bool:
        described_node = applied.cluster.get("Node", node)
        body = changes(described_node["spec"].get("taints", []))
        body.setdefault("metadata", {})["resourceVersion"] = described_node["metadata"]["resourceVersion"]
        try:
            own.patch("Node", node, body)
        except ApiError as error:
            if error.status != 409:
                raise
            return False
        return True

    applied.cluster.eventually(patch, what="the node patched as it was read")


VPA_PATCHES: dict[str, tuple[str, Object]] = {
    "the status of a VPA of the VPA's own recommender": ("theirs", {"status": {"observedGeneration": 9}}),
    "the status of a VPA that names two recommenders": ("both", {"status": {"observedGeneration": 9}}),
    "a label of a VPA that names us, with its status": (
        "ours",
        {"metadata": {"labels": {"a": "b"}}, "status": {"observedGeneration": 9}},
    ),
}


@pytest.fixture
def right_to_patch_statuses(applied: Installed, ours: Cluster) -> Iterator[None]:
    """Of every VPA, as `trimtab install --vpa-recommender` grants it; the other tests of this cluster do without."""
    manifests = list(render_vpa_status_access("recommender", replace(applied.values, vpa_recommender=True)))
    for manifest in manifests:
        ours.apply(manifest)
    yield
    for manifest in manifests:
        ours.delete(manifest["kind"], manifest["metadata"]["name"])
    ours.delete("CustomResourceDefinition", real_vpa.definitions()[0]["metadata"]["name"])


@pytest.mark.usefixtures("right_to_patch_statuses")
def test_the_recommenders_token_changes_no_vpa_that_does_not_name_us_and_no_spec(
    applied: Installed, ours: Cluster
) -> None:
    install_crd(ours, real_vpa.definitions()[0])
    stolen, names = thief(applied, "recommender"), {"ours": ["trimtab"], "theirs": [], "both": ["trimtab", "default"]}
    for name, recommenders in names.items():
        ours.apply(real_vpa.autoscaler(name, recommenders=[{"name": one} for one in recommenders]))
    own = {"status": {"observedGeneration": 1}}
    ours.eventually(
        lambda: stolen.patch("VerticalPodAutoscaler", "ours", own, sub="status")["status"], what="the right in force"
    )
    stored = {name: ours.get("VerticalPodAutoscaler", name) for name in names}
    for name, patch in VPA_PATCHES.values():
        stolen_patch = lambda name=name, patch=patch: stolen.patch("VerticalPodAutoscaler", name, patch, sub="status")  # noqa: E731
        if name == "ours":
            stolen_patch()  # the API server takes nothing but the status
        else:
            assert "trimtab-recommender-vpa-status" in denied(stolen_patch)
    spec = {"spec": {"updatePolicy": {"updateMode": "Off"}}}
    for name in names:
        denied(lambda name=name: stolen.patch("VerticalPodAutoscaler", name, spec))
        denied(lambda name=name: stolen.delete("VerticalPodAutoscaler", name))
        after = ours.get("VerticalPodAutoscaler", name)
        assert after["spec"] == stored[name]["spec"]
        assert after["metadata"].get("labels") == stored[name]["metadata"].get("labels")
        assert name == "ours" or after.get("status") == stored[name].get("status")
    stolen.patch("VerticalPodAutoscaler", "ours", {**spec, **own}, sub="status")
    assert ours.get("VerticalPodAutoscaler", "ours")["spec"] == stored["ours"]["spec"], "a status takes no spec along"
    for name in names:
        ours.delete("VerticalPodAutoscaler", name)
