"""What is kept of an object, and is a capture the same as what was read?"""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace
from typing import Any

import msgspec
import pytest
import yaml
from msgspec import Raw

from tests.bench.population import pod as full_pod
from tests.reasons import has_facts
from trimtab.cluster import cluster_autoscaler
from trimtab.cluster.anonymize import hash_names
from trimtab.cluster.api.core import Node
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.api.storage import PersistentVolume
from trimtab.cluster.api.workload import Workload
from trimtab.cluster.next_pod import REVISION_LABEL
from trimtab.cluster.node_nature import SIGN_RULES, SignPlace, SignRule, nature_of_node
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.recommendation import PAYLOAD_KEY, RECOMMENDATIONS_LABEL, decode, encode
from trimtab.cluster.runtime_signs import add_label_signs, container_signs
from trimtab.cluster.snapshot import SHAPES_BY_KIND, Snapshot, load_snapshot
from trimtab.kube import decode as decoding
from trimtab.kube.capture import encode_capture, plain_objects
from trimtab.kube.reflector import Reflector
from trimtab.kube.resources import LIST_SOURCES, list_sources
from trimtab.kube.transform import FieldPruner, PlannerPodTransform

KUBECTL = "kubectl.kubernetes.io/last-applied-configuration"


def kept(value: dict[str, Any], kind: str = "Pod", keeper: FieldPruner | None = None) -> Any:
    api_object = decoding.decode_item(kind, Raw(json.dumps(value).encode()))
    assert not isinstance(api_object, decoding.UndecodableObject), api_object
    return (keeper or FieldPruner())(api_object)


def a_pod(name: str = "web-1", **metadata: Any) -> dict[str, Any]:
    pod = full_pod(3, "node-1", {})
    pod["metadata"] |= {"name": name, "namespace": "shop", "resourceVersion": "7", **metadata}
    pod["status"] = {
        "phase": "Running",
        "conditions": [
            {"type": "Ready", "status": "True", "message": "hunter2"},
            {"type": "Initialized", "status": "True"},
        ],
        "containerStatuses": [
            {"name": "main", "state": {"terminated": {"exitCode": 1, "message": "hunter2", "reason": "Error"}}}
        ],
    }
    return pod


def test_no_command_line_environment_message_or_manifest_is_kept() -> None:
    text = {
        KUBECTL: "hunter2",
        "kubernetes.io/change-cause": "kubectl set env A=hunter2",
        "example.com/token": "hunter2",
    }
    manifest = a_pod(annotations={**text, "trimtab.dev/do-not-disrupt": "true"})
    manifest["spec"]["containers"][0] |= {"command": ["hunter2"], "args": ["hunter2"]}
    manifest["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": "hunter2"}]
    reason = kept(manifest)
    assert b"hunter2" not in msgspec.json.encode(reason)
    assert reason.metadata.annotations == {"trimtab.dev/do-not-disrupt": "true"}
    assert [c.type for c in reason.status.conditions] == ["Ready"]
    assert reason.status.container_statuses[0].state == {"terminated": {"exitCode": 1, "reason": "Error"}}


def test_an_opt_out_of_a_pools_own_is_kept_and_parts_pods_that_were_alike() -> None:
    """A pool's `optOut` may name any annotation; one that says true is no secret."""
    reason = kept(
        {"metadata": {"name": "n", "annotations": {"example.com/keep": "true", "example.com/t": "x"}}}, "Node"
    )
    assert reason.metadata.annotations == {"example.com/keep": "true"}
    planned, pods = PlannerPodTransform(), []
    for notes in ({}, {"example.com/keep": "true"}, {"example.com/keep": "true"}):
        manifest = a_pod(annotations=notes)
        manifest["spec"]["volumes"] = []
        pods.append(planned(decoding.decode_item("Pod", Raw(json.dumps(manifest).encode()))))  # type: ignore[arg-type]
    assert pods[1].annotations == {"example.com/keep": "true"}
    assert pods[0].likeness != pods[1].likeness == pods[2].likeness


def test_volumes_that_say_nothing_are_not_kept_and_the_others_say_what_they_are() -> None:
    manifest = a_pod()
    manifest["spec"]["volumes"] = [
        {"name": "token-abc", "projected": {}},
        {"name": "here", "hostPath": {"path": "/somewhere"}},
        {"name": "socket", "hostPath": {"path": "/run/x.sock", "type": "Socket"}},
        {"name": "disk", "persistentVolumeClaim": {"claimName": "c"}},
        {"name": "tmp", "emptyDir": {}},
        {"name": "far", "csi": {"driver": "d", "volumeAttributes": {"secret": "x"}}},
    ]
    volumes = {volume.name: volume for volume in kept(manifest).spec.volumes}
    assert set(volumes) == {"here", "socket", "disk", "tmp", "far"}
    assert volumes["here"].host_path == {}
    assert volumes["socket"].host_path == {"type": "Socket"}
    assert volumes["far"].csi == {"driver": "d"}


def test_what_tells_a_container_its_own_resources_is_kept_and_no_other_variable_is() -> None:
    manifest = a_pod()
    field = {"containerName": "c", "resource": "limits.memory"}
    limits = {"name": "LIMIT", "valueFrom": {"resourceFieldRef": field}}
    manifest["spec"]["containers"][0]["env"] = [{"name": "SECRET", "value": "x"}, limits]
    files = {"items": [{"path": "limit", "resourceFieldRef": field}]}
    manifest["spec"]["volumes"] = [
        {"name": "limits", "downwardAPI": files},
        {"name": "labels", "downwardAPI": {"items": [{"path": "labels"}]}},
        {"name": "both", "projected": {"sources": [{"serviceAccountToken": {}}, {"downwardAPI": files}]}},
    ]
    spec = kept(manifest).spec
    assert [variable.value_from.resource_field_ref.resource for variable in spec.containers[0].env] == ["limits.memory"]
    assert [volume.name for volume in spec.volumes] == ["limits", "both"]


def test_pods_of_one_template_share_what_they_ask_for() -> None:
    keeper = FieldPruner()
    one, two = kept(a_pod("web-1"), keeper=keeper), kept(a_pod("web-2"), keeper=keeper)
    assert one.spec.containers is two.spec.containers
    assert one.metadata.labels is two.metadata.labels
    assert one.spec.node_name is two.spec.node_name


def test_what_is_watched_does_not_grow_with_the_changes() -> None:
    it: Reflector[Any] = Reflector(None, LIST_SOURCES["Pod"], FieldPruner())  # type: ignore[arg-type]
    lines = [json.dumps({"type": "MODIFIED", "object": a_pod(f"web-{n}")}).encode() for n in range(50)]

    def go(times: int) -> int:
        for number in range(times):
            it._apply_lines(lines[number % 50].replace(b'"7"', f'"{number}"'.encode()), None)
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = go(2000)
        assert go(4000) - before < 20_000
    finally:
        tracemalloc.stop()


def test_every_kind_of_a_snapshot_has_a_place() -> None:
    assert {source.kind for source in list_sources()} == set(SHAPES_BY_KIND)


def test_of_config_maps_only_ours_are_asked_for() -> None:
    sources = [source for source in list_sources() if source.kind == "ConfigMap"]
    assert all(source.label_selector or source.field_selector for source in sources)


def test_a_capture_reads_back_as_what_was_captured() -> None:
    controller = {"metadata": {"name": "old", "namespace": "shop"}, "spec": {"selector": {"app": "old"}}}
    nodes = {"metadata": {"name": "node-1"}, "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}
    snapshot = Snapshot(
        {
            "Pod": (kept(a_pod()),),
            "ReplicationController": (kept(controller, "ReplicationController"),),
            "Deployment": (kept({"metadata": {"name": "web"}, "spec": {"replicas": 3}}, "Deployment"),),
            "Node": (kept(nodes, "Node"),),
        }
    )
    reading = load_snapshot([("capture", encode_capture(snapshot))])
    assert reading.mistakes == ()
    assert reading.snapshot == replace(snapshot, is_capture=True)
    [old] = reading.snapshot.objects_of(Workload, "ReplicationController")
    assert old.spec.selector.match_labels == {"app": "old"}  # type: ignore[union-attr]


def test_an_owner_is_captured_with_its_template_where_that_was_read() -> None:
    """As kubectl would print it, but for command lines, environments, and annotations that nobody reads."""
    container = {
        "name": "c",
        "image": "web:1",
        "command": ["run", "--key=hunter2"],
        "env": [{"name": "A", "value": "b"}],
    }
    template = {
        "metadata": {"labels": {"app": "web"}, "annotations": {"x": "hunter2"}},
        "spec": {"containers": [container]},
    }
    web = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"replicas": 2, "template": template}}
    old = {"metadata": {"name": "old", "namespace": "shop"}, "spec": {"replicas": 0, "template": template}}
    snapshot = Snapshot(
        {
            "ReplicaSet": (kept(web, "ReplicaSet"), kept(old, "ReplicaSet")),
            "ReplicaSetTemplate": (kept(web, "ReplicaSetTemplate"), kept(old, "ReplicaSetTemplate")),
        }
    )
    first, second = plain_objects(snapshot)
    assert first["spec"]["template"]["metadata"] == {"labels": {"app": "web"}}
    assert first["spec"]["template"]["spec"]["containers"] == ({"name": "c", "image": "web:1"},)
    assert "template" not in second["spec"], "what wants no pods makes none"
    assert "hunter2" not in json.dumps([first, second])
    assert load_snapshot([("capture", encode_capture(snapshot))]).mistakes == ()


@pytest.mark.parametrize(
    ("strategy", "labels"), [("RollingUpdate", {"a": "b", REVISION_LABEL: "db-2"}), ("OnDelete", {"a": "b"})]
)
def test_a_template_of_a_rollout_is_captured_with_its_revision(strategy: str, labels: dict[str, str]) -> None:
    spec = {"template": {"metadata": {"labels": {"a": "b"}}}, "updateStrategy": {"type": strategy}}
    status = {"currentRevision": "db-1", "updateRevision": "db-2"}
    owner = {"metadata": {"name": "db", "namespace": "shop"}, "spec": spec, "status": status}
    kinds = ("StatefulSet", "StatefulSetTemplate")
    (first,) = plain_objects(Snapshot({kind: (kept(owner, kind),) for kind in kinds}))
    assert first["spec"]["template"]["metadata"]["labels"] == labels


def test_a_template_that_cannot_be_read_is_captured_as_its_owner_by_name() -> None:
    body = json.loads(encode_capture(Snapshot(), [Unreadable("ReplicaSetTemplate shop/web", "odd")]))
    assert (body["items"][0]["kind"], body["items"][0]["metadata"]["name"]) == ("ReplicaSet", "web")


# ── names ────────────────────────────────────────────────────────────────────────────────────────────


def test_hashed_names_keep_their_order_and_stay_the_same_everywhere() -> None:
    items = hash_names(plain_objects(Snapshot({"Pod": tuple(kept(a_pod(name)) for name in ("b", "a", "c"))})), b"salt")
    names = [item["metadata"]["name"] for item in items]
    assert sorted(names) == [names[1], names[0], names[2]]
    assert len({item["metadata"]["namespace"] for item in items}) == 1
    selector = items[0]["spec"]["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"]
    assert selector.items() <= items[0]["metadata"]["labels"].items()
    text = json.dumps(items)
    assert not any(f'"{name}"' in text for name in ("shop", "app-003", "team-3", "main", "node-1"))
    assert "topology.kubernetes.io/zone" in text


def test_what_is_kubernetes_own_stays_readable() -> None:
    node = {
        "metadata": {
            "name": "n1",
            "labels": {
                "topology.kubernetes.io/zone": "eu-1a",
                "node.kubernetes.io/instance-type": "m5.large",
                "kubernetes.io/hostname": "n1",
                "team": "blue",
            },
        }
    }
    [item] = hash_names(plain_objects(Snapshot({"Node": (kept(node, "Node"),)})), b"salt")
    labels = item["metadata"]["labels"]
    assert labels["topology.kubernetes.io/zone"] == "eu-1a"
    assert labels["node.kubernetes.io/instance-type"] == "m5.large"
    assert labels["kubernetes.io/hostname"] == item["metadata"]["name"] != "n1"
    assert labels["team"] != "blue"


def test_recommendations_follow_their_workloads() -> None:
    payload = encode(decode("", json.dumps({"schema": 1, "workloads": {"shop/Deployment/web": {"main": {}}}})))  # type: ignore[arg-type]
    usage = {
        "metadata": {"name": "r", "namespace": "ours", "labels": {RECOMMENDATIONS_LABEL: "v1"}},
        "data": {PAYLOAD_KEY: payload},
    }
    deployment = {"metadata": {"name": "web", "namespace": "shop"}}
    items = hash_names(
        plain_objects(
            Snapshot(
                {
                    "ConfigMap": (kept(usage, "ConfigMap"),),
                    "Deployment": (kept(deployment, "Deployment"),),
                    "Pod": (kept(a_pod()),),
                }
            )
        ),
        b"salt",
    )
    meta, pod = items[1]["metadata"], items[2]
    [(workload, containers)] = decode("", items[0]["data"][PAYLOAD_KEY]).items()  # type: ignore[union-attr]
    assert workload == f"{meta['namespace']}/Deployment/{meta['name']}"
    assert list(containers) == [pod["spec"]["containers"][0]["name"]]
    assert msgspec.convert(pod, Pod).metadata.namespace == meta["namespace"]


def test_config_maps_tell_no_names_and_nothing_of_others_annotations() -> None:
    message = {KUBECTL: "hunter2 blue", "example.com/token": "hunter2", "trimtab.dev/by": "blue"}
    state = {
        "metadata": {
            "name": "trimtab-state-x",
            "namespace": "blue",
            "annotations": message,
            "labels": {"trimtab.dev/state": "x", "team": "blue"},
        }
    }
    updated = {"cluster-autoscaler.kubernetes.io/last-updated": "2026-01-01 00:00:00 +0000 UTC"}
    status = {"metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system", "annotations": updated}}
    snapshot = Snapshot({"ConfigMap": tuple(kept(each, "ConfigMap") for each in (state, status))})
    assert b"hunter2" not in encode_capture(snapshot)
    assert b"blue" not in encode_capture(snapshot, salt=b"salt")
    items = hash_names(plain_objects(snapshot), b"salt")
    assert items[0]["metadata"]["labels"]["trimtab.dev/state"] == "x"
    assert items[1]["metadata"]["annotations"] == updated


def test_a_pool_selects_the_same_nodes_after_hashing() -> None:
    pool = {
        "metadata": {"name": "p", "namespace": "ours", "labels": {"trimtab.dev/pool": "batch"}},
        "data": {"pool.yaml": "nodes: {labels: {team: web}}"},
    }
    node = {"metadata": {"name": "n1", "labels": {"team": "web"}}}
    items = hash_names(
        plain_objects(Snapshot({"ConfigMap": (kept(pool, "ConfigMap"),), "Node": (kept(node, "Node"),)})), b"salt"
    )
    labels = items[1]["metadata"]["labels"]
    assert yaml.safe_load(items[0]["data"]["pool.yaml"]) == {"nodes": {"labels": labels}}
    assert labels != {"team": "web"}


STATUS = """time: 2026-01-02 15:04:05.9 +0000 UTC
clusterWide: {health: {status: Healthy}, scaleUp: {status: NoActivity}}
nodeGroups:
- name: https://compute.example/projects/hunter2/zones/z/instanceGroups/gke-batch-1234-grp
  health: {status: Unhealthy, cloudProviderTarget: 3, minSize: 1, maxSize: 9}
  scaleUp: {status: Backoff, backoffInfo: {errorMessage: no quota in hunter2}}
  scaleDown: {status: CandidatesPresent, candidates: 2}
- name: hunter2-pool
  health: {status: Healthy}
"""


def test_what_the_autoscaler_says_names_nobodys_project_and_decides_the_same() -> None:
    status = {"metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system"}, "data": {"status": STATUS}}
    node = {"metadata": {"name": "n1", "labels": {"cloud.google.com/gke-nodepool": "batch"}}}
    snapshot = Snapshot({"ConfigMap": (kept(status, "ConfigMap"),), "Node": (kept(node, "Node"),)})
    items = hash_names(plain_objects(snapshot), b"salt")
    assert "hunter2" not in json.dumps(items)
    before, after = cluster_autoscaler.parse_status(STATUS), cluster_autoscaler.parse_status(items[0]["data"]["status"])
    assert isinstance(before, cluster_autoscaler.Autoscaler)
    assert isinstance(after, cluster_autoscaler.Autoscaler)
    assert after.updated == before.updated
    [mine], [same] = before.groups_of_pool("batch"), after.groups_of_pool("batch")
    assert replace(mine, name="") == replace(same, name="")
    assert [replace(group, name="") for group in after.groups] == [replace(group, name="") for group in before.groups]


def test_a_status_that_cannot_be_read_stays_one_and_tells_nothing() -> None:
    status = {"metadata": {"name": "cluster-autoscaler-status"}, "data": {"status": "hunter2?", "more": "hunter2"}}
    [item] = hash_names(plain_objects(Snapshot({"ConfigMap": (kept(status, "ConfigMap"),)})), b"salt")
    assert "hunter2" not in json.dumps(item)
    assert not isinstance(cluster_autoscaler.parse_status(item["data"]["status"]), cluster_autoscaler.Autoscaler)


def test_neither_messages_nor_paths_nor_claims_of_devices_tell_a_name() -> None:
    pod = a_pod()
    pod["spec"]["resourceClaims"] = [
        {"name": "gpu", "resourceClaimName": "hunter2"},
        {"name": "b", "resourceClaimTemplateName": "hunter2"},
    ]
    ready = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "cni of hunter2 is not ready"}
    disk = {"metadata": {"name": "disk"}, "spec": {"local": {"path": "/mnt/hunter2"}}}
    home = {"metadata": {"name": "home"}, "spec": {"hostPath": {"path": "/home/hunter2"}}}
    snapshot = Snapshot(
        {
            "Pod": (kept(pod),),
            "Node": (kept({"metadata": {"name": "n1"}, "status": {"conditions": [ready]}}, "Node"),),
            "PersistentVolume": (kept(disk, "PersistentVolume"), kept(home, "PersistentVolume")),
        }
    )
    capture = encode_capture(snapshot, salt=b"salt")
    assert b"hunter2" not in capture
    reading = load_snapshot([("capture", capture)])
    assert reading.mistakes == ()
    assert [len(p.spec.resource_claims) for p in reading.snapshot.objects_of(Pod)] == [2]
    assert all(v.spec.local or v.spec.host_path for v in reading.snapshot.objects_of(PersistentVolume))


@pytest.mark.parametrize("salt", [None, b"salt"])
def test_what_cannot_be_read_is_a_mistake_for_whoever_reads_the_capture(salt: bytes | None) -> None:
    """A pod nobody sees is a node that looks empty: the file refuses as the cluster does."""
    wrong = []
    for kind, name in (("Pod", "odd"), ("Node", "odd"), ("ConfigMap", "ours")):
        meta = {"name": name, "namespace": "shop", "labels": {"a": 1}}
        api_object = decoding.decode_item(kind, Raw(json.dumps({"metadata": meta}).encode()))
        assert isinstance(api_object, decoding.UndecodableObject)
        wrong.append(api_object.unreadable)
    reading = load_snapshot([("capture", encode_capture(Snapshot({}), wrong, salt=salt))])
    assert [mistake.entry.split()[0] for mistake in reading.mistakes] == ["Pod", "Node", "ConfigMap"]
    assert all(has_facts(mistake.sentence, "trimtab capture", "able to read") for mistake in reading.mistakes)
    for name in ("shop", "odd"):
        assert (name in str(reading.mistakes)) is (salt is None)


@pytest.mark.parametrize("salt", [None, b"salt"])
def test_a_capture_says_that_it_has_all_namespaces(salt: bytes | None) -> None:
    text = encode_capture(Snapshot({"Pod": (kept(a_pod()),)}), salt=salt)
    assert load_snapshot([("capture.json", text)]).snapshot.is_capture


@pytest.mark.parametrize("salt", [None, b"salt"], ids=["names", "hashed"])
def test_a_capture_shows_which_limits_are_read_and_no_text(salt: bytes | None) -> None:
    given = a_pod(labels={"app.kubernetes.io/runtime": "java"})
    first = given["spec"]["containers"][0]
    first |= {"image": "shop.example.com/hunter2-nodejs:1", "args": ["--token=hunter2"]}
    first["env"] = [{"name": "JAVA_OPTS", "value": "-Dtoken.x=hunter2 -Xmx1g -XX:MaxRAMPercentage=75"}]
    text = encode_capture(Snapshot({"Pod": (kept(given),)}), salt=salt)
    [pod] = load_snapshot([("capture.json", text)]).snapshot.objects["Pod"]
    container = pod.spec.containers[0]
    signs = {sign.runtime: sign.frees for sign in container_signs(container.runtime_signs, container.image)}
    assert (signs, "token" in text.decode()) == ({"a JVM": ("memory",), "Node.js": ()}, False)
    assert add_label_signs((), pod.metadata.labels)[0].runtime == "a JVM"
    assert salt is None or b"hunter2" not in text


@pytest.mark.parametrize("rule", SIGN_RULES, ids=lambda rule: f"{rule.place} {rule.key}")
@pytest.mark.parametrize("salt", [None, b"0" * 32], ids=["names", "hashed"])
def test_a_capture_shows_what_a_node_is(rule: SignRule, salt: bytes | None) -> None:
    value = rule.values[0] if rule.values else "anything"
    node: dict[str, Any] = {"metadata": {"name": "n"}, "spec": {}}
    if rule.place is SignPlace.TAINT:
        node["spec"]["taints"] = [{"key": rule.key, "value": value, "effect": "NoSchedule"}]
    else:
        node["metadata"][f"{rule.place}s"] = {rule.key: value}
    content = encode_capture(Snapshot({"Node": (kept(node, "Node"),)}), salt=salt)
    (read,) = load_snapshot([("capture", content)]).snapshot.objects_of(Node)
    assert nature_of_node(read).sign_of(rule.kind) is not None
