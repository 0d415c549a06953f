"""Over generated clusters of mixed machines, a second reading of the documentation agrees about where pods may move."""

import os
import random
from typing import Any

import pytest

from tests.cluster_of import ALL, Item, cluster, node, pod
from tests.property.fit_reading import World, comes_back, is_virtual
from trimtab.compaction.plan import make_plan
from trimtab.scheduling.cluster_model import FreeCapacity, build_cluster_model
from trimtab.scheduling.filters import fits_on_node, rejection_reason

CLUSTERS = {"brief": 100, "usual": 100, "thorough": 2000}.get(os.environ.get("HYPOTHESIS_PROFILE", "usual"), 300)
KATA: Item = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "vm"}, "handler": "kata"}
PART = 50
"""The number of clusters of one test."""
ARCH, OS = "kubernetes.io/arch", "kubernetes.io/os"
DRIVER = "disk.example"
FEATURES = ("RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport", "GuaranteedQoSPodCPUResize")
OF_ROOM = {"no-room", "node-takes-no-pods"}


def drawn_node(draw: random.Random, name: str) -> Item:
    system = draw.choice(["linux"] * 4 + ["windows"])
    labels = {ARCH: draw.choice(["amd64", "amd64", "arm64"]), OS: system, "lane": draw.choice("xy")}
    taints, more = [], dict[str, Any]()
    kind = draw.choice(["machine"] * 6 + ["virtual", "fargate", "edge", "hybrid"])
    if kind == "virtual":
        labels["type"] = "virtual-kubelet"
        if draw.random() < 0.5:
            taints.append({"key": "virtual-kubelet.io/provider", "value": "azure", "effect": "NoSchedule"})
            more["taints"] = taints
    elif kind in ("fargate", "hybrid"):
        labels["eks.amazonaws.com/compute-type"] = kind
    elif kind == "edge":
        labels["openyurt.io/is-edge-worker"] = "true"
    if labels[ARCH] == "arm64" and draw.random() < 0.3:
        more["taints"] = [*taints, {"key": ARCH, "value": "arm64", "effect": "NoSchedule"}]
    if draw.random() < 0.5:
        handlers = ["", "runc", *(["kata"] if draw.random() < 0.6 else [])]
        features = {"recursiveReadOnlyMounts": draw.random() < 0.7, "userNamespaces": draw.random() < 0.8}
        more["status"] = {"runtimeHandlers": [{"name": one, "features": features} for one in handlers]}
    if draw.random() < 0.3:
        declared = [one for one in FEATURES if draw.random() < 0.6]
        more["status"] = {**more.get("status", {}), "declaredFeatures": declared}
    return node(name, labels=labels, **more)


def drawn_spec(draw: random.Random) -> Item:
    spec: Item = {}
    if draw.random() < 0.2:
        spec["os"] = {"name": draw.choice(["linux", "windows"])}
    if draw.random() < 0.3:
        key, value = draw.choice([(OS, "linux"), (ARCH, "amd64"), ("type", "virtual-kubelet"), ("lane", "x")])
        spec["nodeSelector"] = {key: value}
    if draw.random() < 0.2:
        terms = [
            {
                "matchExpressions": [
                    draw.choice(
                        [
                            {"key": ARCH, "operator": "In", "values": ["amd64", "arm64"]},
                            {"key": "lane", "operator": "Exists"},
                            {"key": "type", "operator": "DoesNotExist"},
                            {
                                "key": "eks.amazonaws.com/compute-type",
                                "operator": "In",
                                "values": ["fargate", "hybrid"],
                            },
                        ]
                    )
                ]
            }
            for _ in range(draw.choice([1, 1, 2]))
        ]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        spec["affinity"] = {"nodeAffinity": required}
    if draw.random() < 0.4:
        usual = [
            {"key": ARCH, "operator": "Exists"},
            {"key": ARCH, "value": "arm64", "effect": "NoSchedule"},
            {"key": "virtual-kubelet.io/provider", "operator": "Exists"},
        ]
        # These may return to the node that they leave, so few nodes with them can be drained.
        returning = [
            {"operator": "Exists"},
            {"key": "node.kubernetes.io/unschedulable", "effect": draw.choice(["NoSchedule", "NoExecute"])},
        ]
        spec["tolerations"] = [draw.choice(4 * usual + returning)]
    if draw.random() < 0.2:
        spec["runtimeClassName"] = "vm"
    if draw.random() < 0.1:
        spec |= {"hostNetwork": True, "hostUsers": False}
    if draw.random() < 0.1:
        spec["volumes"] = [{"name": "s", "csi": {"driver": DRIVER}}]
    return spec


def drawn_container(draw: random.Random) -> Item:
    """What a container needs of its node."""
    more: Item = {}
    if draw.random() < 0.15:
        kind = draw.choice(["Enabled", "Enabled", "IfPossible"])
        more["volumeMounts"] = [{"name": "s", "mountPath": "/s", "recursiveReadOnly": kind}]
    if draw.random() < 0.1:
        more["restartPolicyRules"] = [{"action": "RestartAllContainers"}]
    return more


def drawn_world(seed: int) -> list[Item]:
    draw = random.Random(seed)
    names = [f"n{number}" for number in range(draw.randint(3, 7))]
    items: list[Item] = [drawn_node(draw, name) for name in names]
    items.append(KATA)
    if draw.random() < 0.5:
        prevents = {"preventPodSchedulingIfMissing": draw.random() < 0.5}
        items.append(
            {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": DRIVER}, "spec": prevents}
        )
    if draw.random() < 0.5:
        for name in names:
            if draw.random() < 0.8:
                drivers = [{"name": DRIVER, "nodeID": name}] if draw.random() < 0.7 else None
                items.append(
                    {
                        "apiVersion": "storage.k8s.io/v1",
                        "kind": "CSINode",
                        "metadata": {"name": name},
                        "spec": {"drivers": drivers},
                    }
                )
    for app in range(draw.randint(2, 5)):
        spec, container = drawn_spec(draw), drawn_container(draw)
        for number in range(draw.randint(1, 3)):
            own = dict(spec)
            if draw.random() < 0.15:
                claim = f"d-{app}-{number}"
                own["volumes"] = [{"name": "d", "persistentVolumeClaim": {"claimName": claim}}]
                items += [
                    {
                        "apiVersion": "v1",
                        "kind": "PersistentVolumeClaim",
                        "metadata": {"name": claim, "namespace": "default"},
                        "spec": {"volumeName": f"pv-{claim}", "accessModes": ["ReadWriteOnce"]},
                    },
                    {
                        "apiVersion": "v1",
                        "kind": "PersistentVolume",
                        "metadata": {"name": f"pv-{claim}"},
                        "spec": {"csi": {"driver": DRIVER, "volumeHandle": claim}, "accessModes": ["ReadWriteOnce"]},
                    },
                ]
            cpu = draw.choice(["300m", "900m", "1900m"])
            ready = draw.random() < 0.85
            item = pod(f"app{app}-{number}", draw.choice(names), cpu, app=f"app{app}", ready=ready, spec=own)
            item["spec"]["containers"][0] |= container
            items.append(item)
    if draw.random() < 0.5:
        urgent = pod("urgent-0", cpu=draw.choice(["1", "2", "3500m"]), phase="Pending", ready=False)
        urgent["status"]["nominatedNodeName"] = draw.choice(names)
        items.append(urgent)
    return items


def millicores(item: Item) -> int:
    cpu = item["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    return int(cpu.removesuffix("m")) if cpu.endswith("m") else int(cpu) * 1000


def seeds(part: int) -> range:
    return range(part * PART, (part + 1) * PART)


@pytest.mark.parametrize("part", range(CLUSTERS // PART))
def test_both_readings_agree_about_every_pod_on_every_node(part: int) -> None:
    for seed in seeds(part):
        items = drawn_world(seed)
        world, model = World(items), build_cluster_model(cluster(*items))
        capacity = FreeCapacity(model)
        manifests = {item["metadata"]["name"]: item for item in world.pods}
        for pod_info, pod_class in zip(model.pods, model.successor_class_of, strict=True):
            for number, place in enumerate(model.nodes):
                reason = rejection_reason(capacity, pod_class, number)
                assert fits_on_node(capacity, pod_class, number) is (reason is None)
                fits = reason is None or reason.code.name in OF_ROOM
                assert fits is world.may_move(manifests[pod_info.name], world.nodes[place.name]), (
                    seed,
                    pod_info.key,
                    place.name,
                    str(reason),
                )


@pytest.mark.parametrize("part", range(CLUSTERS // PART))
def test_a_plan_moves_pods_only_where_they_run_and_the_scheduler_cannot_do_harm(part: int) -> None:
    moves = 0
    for seed in seeds(part):
        items = drawn_world(seed)
        world = World(items)
        plan = make_plan(build_cluster_model(cluster(*items)), [ALL])
        manifests = {f"default/{item['metadata']['name']}": item for item in world.pods}
        used = dict.fromkeys(world.nodes, 0)
        for item in world.pods:
            if item["spec"]["nodeName"]:
                used[item["spec"]["nodeName"]] += millicores(item)
        drained = {step.node for step in plan.all_steps}
        assert not any(is_virtual(world.nodes[name]) for name in drained), seed
        for move in plan.all_moves:
            moves += 1
            manifest = manifests[move.pod]
            assert world.may_move(manifest, world.nodes[move.target]), (seed, move)
            assert not comes_back(manifest, world.nodes[move.source]), (seed, move)
            for name, place in world.nodes.items():
                has_room = 4000 - used[name] >= millicores(manifest)
                assert name == move.source or not (has_room and world.is_accident(manifest, place)), (seed, move, name)
        _check_rooms(world, {move.pod: move.target for move in plan.all_moves}, seed)
    assert moves, "no cluster of this part has a plan"


def _check_rooms(world: World, targets: dict[str, str], seed: int) -> None:
    """Checks that the pods that a plan moves leave room for the pods that are nominated to their new nodes."""
    after = dict.fromkeys(world.nodes, 0)
    for item in world.pods:
        nominated = item["status"].get("nominatedNodeName", "")
        place = targets.get(f"default/{item['metadata']['name']}") or item["spec"]["nodeName"] or nominated
        after[place] += millicores(item)
    assert all(after[name] <= 4000 for name in set(targets.values())), seed
