"""Volumes and devices by the dice: where they can be reached, how many a node holds, who has them for itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.e2e.situation import ZONE

if TYPE_CHECKING:
    from tests.e2e.situation import World

Object = dict[str, Any]
DRIVER, EBS = "disk.test.trimtab.dev", "ebs.csi.aws.com"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
ALONE = "ReadWriteOncePod"


def furnish(at: World) -> None:
    """Attach limits of most nodes; volumes of about half the pods that are there."""
    for node in at.nodes:
        if at.dice.random() < 0.7:
            at.things.append(_limits(node["metadata"]["name"], at.dice.choice((1, 2, 3))))
    for pod in at.bound:
        if at.dice.random() < 0.5:
            mode = ALONE if at.dice.random() < 0.4 else "ReadWriteOnce"
            old = mode != ALONE and at.dice.random() < 0.4
            _claim(at, pod, f"{pod['metadata']['name']}-v", mode=mode, old=old)


def reachable(at: World, pod: Object) -> None:
    """One or two volumes, each with a word on nodes or a zone in its labels; some live on a node."""
    for number in range(at.dice.choice((1, 1, 2))):
        _claim(
            at,
            pod,
            f"{pod['metadata']['name']}-v{number}",
            nodes=_nodes(at),
            local=at.dice.random() < 0.2,
            labels=_labels(at),
        )


def attached(at: World, pod: Object) -> None:
    """Only the number of volumes can be too much."""
    for number in range(at.dice.choice((1, 1, 2, 3))):
        _claim(at, pod, f"{pod['metadata']['name']}-v{number}", old=at.dice.random() < 0.4)


def alone(at: World, pod: Object) -> None:
    """A claim of its own, one that another pod has, or one that is not there."""
    name, how = f"{pod['metadata']['name']}-v", at.dice.random()
    records = [
        thing
        for thing in at.things
        if ALONE in thing["spec"].get("accessModes", ()) and "claimRef" not in thing["spec"]
    ]
    if how < 0.4 and records:
        claim = at.dice.choice(records)["metadata"]
        pod["metadata"]["namespace"], name = claim["namespace"], claim["name"]
        _mount(pod, name)
    elif how < 0.5:
        _mount(pod, name)
    else:
        _claim(at, pod, name, mode=ALONE)


def devices(at: World, pod: Object) -> None:
    """A resource claim that asks for nothing, so that it can be had anywhere. (One that is not there is not tried.)"""
    name = f"{pod['metadata']['name']}-c"
    pod["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimName": name}]
    at.things.append(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": pod["metadata"]["namespace"]},
            "spec": {"devices": {}},
        }
    )


def _limits(node: str, count: int) -> Object:
    """Of volumes of the old kind, too: the node says that CSI took them over."""
    drivers = [
        {"name": driver, "nodeID": node, "topologyKeys": [], "allocatable": {"count": count}}
        for driver in (DRIVER, EBS)
    ]
    metadata = {"name": node, "annotations": {MIGRATED: "kubernetes.io/aws-ebs"}}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": metadata, "spec": {"drivers": drivers}}


def _labels(at: World) -> Object:
    """Zones of a volume, by the old label or the new one, several in one."""
    if at.dice.random() < 0.6:
        return {}
    zones = at.dice.sample(("z1", "z2", "z3"), at.dice.choice((1, 2)))
    key = at.dice.choice((ZONE, ZONE, "failure-domain.beta.kubernetes.io/zone"))
    return {key: "__".join(at.of_zone(zone) for zone in zones)}


def _nodes(at: World) -> Object | None:
    """Node affinity of a volume: terms are ORed."""
    dice, terms = at.dice, []
    for _ in range(dice.choice((0, 1, 1, 2))):
        key, values = dice.choice(
            (
                (at.key("zone"), ["z1", "z2", "z3"]),
                (at.key("rack"), ["r1", "r2", "r3"]),
                (at.key("host"), [node["metadata"]["name"] for node in at.nodes]),
            )
        )
        operator = dice.choice(("In", "In", "NotIn", "Exists"))
        some = {"values": dice.sample(values, dice.randint(1, 2))} if operator != "Exists" else {}
        terms.append({"matchExpressions": [{"key": key, "operator": operator, **some}]})
    return {"required": {"nodeSelectorTerms": terms}} if terms else None


def _claim(
    at: World,
    pod: Object,
    name: str,
    *,
    nodes: Object | None = None,
    mode: str = "ReadWriteOnce",
    local: bool = False,
    old: bool = False,
    labels: Object | None = None,
) -> None:
    """A claim bound to a volume of its own."""
    space = pod["metadata"]["namespace"]
    source: Object = {"csi": {"driver": DRIVER, "volumeHandle": name}}
    if local and nodes is not None:
        source = {"local": {"path": "/data"}}
    elif old:
        source = {"awsElasticBlockStore": {"volumeID": f"vol-{name}"}}
    shared = {"accessModes": [mode], "storageClassName": ""}
    volume: Object = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {
            **source,
            **shared,
            "capacity": {"storage": "1Gi"},
            "claimRef": {"namespace": space, "name": name},
            "persistentVolumeReclaimPolicy": "Retain",
        },
    }
    if nodes is not None:
        volume["spec"]["nodeAffinity"] = nodes
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": space},
        "spec": {**shared, "volumeName": name, "resources": {"requests": {"storage": "1Gi"}}},
    }
    at.things += [volume, claim]
    _mount(pod, name)


def _mount(pod: Object, claim: str) -> None:
    volumes = pod["spec"].setdefault("volumes", [])
    volumes.append({"name": f"v{len(volumes)}", "persistentVolumeClaim": {"claimName": claim}})
