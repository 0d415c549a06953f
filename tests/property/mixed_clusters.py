"""Generated clusters as people have them: several autoscalers with flags of their own, strange owners, mixed machines,
volumes that end with their pods, long graces, quotas, DaemonSets that lack a pod, pods that are nominated to a node."""

import random

from tests.cluster_of import ZONE, Item, node, pod
from tests.property.drawn_owners import owned_by
from trimtab.cluster.api.meta import Metadata
from trimtab.cluster.cluster_autoscaler import UPDATED_ANNOTATION, Autoscaler, NodeGroupStatus, format_status
from trimtab.cluster.snapshot import ConfigMap

GROUPS = ("asg-a", "asg-b")
ARCH = "kubernetes.io/arch"
UPDATED = "2026-01-03T00:00:00Z"
YOUNG = "2026-01-02T23:30:00Z"
FLAGS = ("local-storage", "custom-controller-pods", "system-pods")
MOVABLE = "ReplicaSet", "StatefulSet"


def drawn_autoscalers(draw: random.Random) -> tuple[list[ConfigMap], list[list[str]]]:
    """Returns the statuses of one or two autoscalers, and the arguments of their processes."""
    shares = [GROUPS] if draw.random() < 0.4 else [GROUPS[:1], GROUPS[1:]]
    maps, processes = [], []
    for number, names in enumerate(shares):
        groups = tuple(
            NodeGroupStatus(
                name=name,
                healthy=True,
                scale_up="InProgress" if draw.random() < 0.05 else "NotNeeded",
                min_size=draw.choice([0, 0, 0, 3]),
                target=9,
            )
            for name in names
        )
        name = "cluster-autoscaler-status" if number == 0 else "status-spot"
        text = format_status(Autoscaler(groups=groups, healthy=draw.random() < 0.95))
        metadata = Metadata(name=name, namespace="kube-system", annotations={UPDATED_ANNOTATION: UPDATED})
        maps.append(ConfigMap(metadata=metadata, data={"status": text}))
        flags = [f"--skip-nodes-with-{flag}=false" for flag in FLAGS if draw.random() < 0.6]
        off = ["--scale-down-enabled=false"] if draw.random() < 0.05 else []
        processes.append([f"--status-config-map-name={name}", "--scale-down-utilization-threshold=0", *flags, *off])
    return maps, processes


def drawn_machine(draw: random.Random, name: str) -> Item:
    labels = {
        "asg": draw.choice(GROUPS),
        ZONE: draw.choice(["za", "zb"]),
        ARCH: draw.choice(["amd64"] * 15 + ["arm64"]),
    }
    if draw.random() < 0.05:
        labels["type"] = "virtual-kubelet"
    return node(name, labels=labels)


def drawn_workload(draw: random.Random, app: str, names: dict[str, Item]) -> list[Item]:
    kind = draw.choice(
        ["plain", "scratch", "path", "strange", "strange", "slow", "system", "system", "claim", "ephemeral"]
    )
    items: list[Item] = []
    for number in range(draw.choice([1, 2, 2, 3])):
        name, on = f"{app}-{number}", draw.choice(list(names))
        item = pod(name, on, draw.choice(["300m", "900m", "1900m"]), owner=draw.choice(MOVABLE[:1] * 3 + MOVABLE[1:]))
        if kind == "scratch":
            item["spec"]["volumes"] = [{"name": "s", "emptyDir": {}}]
        elif kind == "path":
            item["spec"]["volumes"] = [{"name": "s", "hostPath": {"path": "/d"}}]
        elif kind == "strange":
            item = owned_by(item, "apps.kruise.io/v1beta1", draw.choice(["StatefulSet", "CloneSet"]), app)
        elif kind == "slow":
            item["spec"]["terminationGracePeriodSeconds"] = draw.choice([600, 601, 21600])
        elif kind == "system":
            item["metadata"] |= {"namespace": "kube-system", "creationTimestamp": YOUNG}
        elif kind in ("claim", "ephemeral"):
            items += drawn_volume(item, kind, names[on]["metadata"]["labels"][ZONE], draw.random() < 0.3)
        items.append(item)
    return items


def drawn_volume(item: Item, kind: str, zone: str, binds_at_once: bool) -> list[Item]:
    """Gives the pod a volume of the zone, and returns the volume's objects."""
    name = item["metadata"]["name"]
    claim: Item = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": f"{name}-d", "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "volumeName": f"pv-{name}",
            "storageClassName": "now" if binds_at_once else "later",
        },
    }
    source: Item = {"persistentVolumeClaim": {"claimName": f"{name}-d"}}
    if kind == "ephemeral":
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"uid-{name}", "controller": True}
        claim["metadata"]["ownerReferences"] = [owner]
        source = {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
    item["spec"]["volumes"] = [{"name": "d", **source}]
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]
    volume: Item = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"pv-{name}"},
        "spec": {"csi": {"driver": "d"}, "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}},
    }
    return [claim, volume]


CLASSES: list[Item] = [
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "d",
        "volumeBindingMode": mode,
    }
    for name, mode in (("now", "Immediate"), ("later", "WaitForFirstConsumer"))
]


def drawn_daemon_set(draw: random.Random, names: list[str]) -> list[Item]:
    """A DaemonSet that wants a pod on every node and lacks some."""
    present = [name for name in names if draw.random() < 0.8]
    template = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "400m"}}}]}}
    daemon_set: Item = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "log", "namespace": "default"},
        "spec": {"template": template},
        "status": {"desiredNumberScheduled": len(names)},
    }
    return [daemon_set, *(pod(f"log-{name}", name, "400m", owner="DaemonSet", app="log") for name in present)]


def drawn_cluster(draw: random.Random) -> list[Item]:
    names = {f"n{number}": drawn_machine(draw, f"n{number}") for number in range(draw.randint(4, 8))}
    items: list[Item] = [*names.values(), *CLASSES]
    for app in range(draw.randint(2, 5)):
        items += drawn_workload(draw, f"app{app}", names)
    if draw.random() < 0.5:
        items += drawn_daemon_set(draw, list(names))
    if draw.random() < 0.2:
        full = draw.random() < 0.5
        count = sum(item["kind"] == "Pod" and item["metadata"]["namespace"] == "default" for item in items)
        hard = {"pods": str(count if full else count + 5)}
        items.append(
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": "q", "namespace": "default"},
                "spec": {"hard": hard},
                "status": {"hard": hard, "used": {"pods": str(count)}},
            }
        )
    if draw.random() < 0.3:
        urgent = pod("urgent-0", cpu=draw.choice(["1", "2"]), phase="Pending", ready=False)
        urgent["status"]["nominatedNodeName"] = draw.choice(list(names))
        items.append(urgent)
    return items
