"""Which pods on which nodes? Small worlds by the dice: nodes, pods that are there, pods that ask.

Worlds do not meet although they share a cluster: each has topology keys of its own, and only its own nodes are asked.
Equal seeds give equal worlds.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.e2e import situation_places as places
from tests.e2e import situation_sizes as sizes
from tests.e2e import volumes
from tests.e2e.situation import (
    DONE,
    EFFECTS,
    GPU,
    HUGE,
    LINGER,
    NAMESPACES,
    NUMBERS,
    PROBE,
    RESIZED,
    ZONE,
    Object,
    Probe,
    World,
    pod,
)


def world(seed: int, number: int) -> World:
    world = World(f"w{number}", Random(f"{seed}/{number}"))
    for index in range(world.dice.randint(4, 6)):
        world.nodes.append(_node(world, f"{world.name}-n{index}"))
    for index in range(world.dice.randint(4, 11)):
        world.bound.append(_bound(world, f"{world.name}-b{index}"))
    volumes.furnish(world)
    for kind, shape in KINDS.items():
        pod = _pod(world, f"{world.name}-{kind}")
        pod["metadata"]["labels"][PROBE] = "yes"
        _tolerate_most(world, pod)
        shape(world, pod)
        world.probes.append(Probe(kind=kind, pod=pod))
    return world


# ── nodes ────────────────────────────────────────────────────────────────────────────────────────────
def _node(at: World, name: str) -> Object:
    dice = at.dice
    labels = {"kubernetes.io/hostname": name, at.key("host"): name, at.key("zone"): f"z{dice.randint(1, 3)}"}
    if dice.random() < 0.8:
        labels[at.key("rack")] = f"r{dice.randint(1, 3)}"
    labels[ZONE] = at.of_zone(labels[at.key("zone")])
    for key, values in (("disk", ("ssd", "hdd", "")), ("gen", NUMBERS), ("arch", ("x", "y"))):
        if dice.random() < 0.8:
            labels[key] = dice.choice(values)
    amounts = {
        "cpu": dice.choice(("2", "3900m", "4")),
        "memory": dice.choice(("3Gi", "4Gi", "8000000k")),
        "ephemeral-storage": dice.choice(("5Gi", "10Gi")),
        "pods": dice.choice(("2", "4", "110", "110")),
    }
    if dice.random() < 0.5:
        amounts[GPU] = dice.choice(("1", "2"))
    if dice.random() < 0.5:
        amounts[HUGE] = "64Mi"
    spec: Object = {"taints": [_taint(dice) for _ in range(dice.choice((0, 0, 0, 1, 1, 2)))]}
    spec["taints"] = list({(t["key"], t["effect"]): t for t in spec["taints"]}.values())
    if dice.random() < 0.1:
        spec["unschedulable"] = True
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def _taint(dice: Random) -> Object:
    value = dice.choice(("a", "b", ""))
    item = {"key": dice.choice(("team", "dedicated")), "effect": dice.choice(EFFECTS)}
    return {**item, "value": value} if value else item


# ── pods ─────────────────────────────────────────────────────────────────────────────────────────────
def _pod(at: World, name: str) -> Object:
    dice = at.dice
    labels = {"app": dice.choice(("web", "db", "job"))}
    for key, values in (("track", ("blue", "green")), ("hash", ("1", "2"))):
        if dice.random() < 0.7:
            labels[key] = dice.choice(values)
    return pod(name, dice.choice(list(NAMESPACES)), labels)


def _bound(at: World, name: str) -> Object:
    """It tolerates everything, or else a NoExecute taint would evict it."""
    dice, pod = at.dice, _pod(at, name)
    pod["spec"] |= {"nodeName": dice.choice(at.nodes)["metadata"]["name"], "tolerations": [{"operator": "Exists"}]}
    if dice.random() < 0.5:
        dice.choice((sizes.resources, sizes.resources, places.host_ports))(at, pod)
    if dice.random() < 0.5:
        places.anti_affinity(at, pod)
    pod["metadata"]["annotations"] = dice.choice(({},) * 8 + ({LINGER: "3600s"}, {DONE: "yes"}, {RESIZED: "1700m"}))
    return pod


def lingers(pod: Object) -> bool:
    """It is asked to go, and takes its time."""
    return LINGER in pod["metadata"].get("annotations", ())


def really_has(pod: Object) -> str:
    """The cpu that it still holds while it shrinks; empty where it is not resized."""
    return str(pod["metadata"].get("annotations", {}).get(RESIZED, ""))


def done(pod: Object) -> bool:
    """It has succeeded and holds nothing any more."""
    return DONE in pod["metadata"].get("annotations", ())


def _tolerate_most(at: World, pod: Object) -> None:
    """Else taints would answer every question."""
    if at.dice.random() < 0.8:
        pod["spec"]["tolerations"] = [{"key": key, "operator": "Exists"} for key in ("team", "dedicated")]


def _spread_and_nature(at: World, pod: Object) -> None:
    places.spread(at, pod)
    at.dice.choice((places.node_selector, places.node_affinity, places.tolerations, places.cordons))(at, pod)


def _everything(at: World, pod: Object) -> None:
    shapes = (
        sizes.resources,
        places.node_affinity,
        places.tolerations,
        places.host_ports,
        places.pod_affinity,
        places.anti_affinity,
        places.spread,
    )
    for shape in at.dice.sample(shapes, at.dice.randint(2, 3)):
        shape(at, pod)


KINDS: dict[str, Callable[[World, Object], None]] = {
    "requests": sizes.plain,
    "ephemeral-storage": sizes.storage,
    "extended": sizes.extended,
    "init-and-sidecars": sizes.init,
    "pod-level": sizes.pod_level,
    "overhead": sizes.overhead,
    "slots": sizes.slots,
    "node-selector": places.node_selector,
    "node-affinity": places.node_affinity,
    "taints": places.tolerations,
    "cordon": places.cordons,
    "host-ports": places.host_ports,
    "affinity": places.pod_affinity,
    "anti-affinity": places.anti_affinity,
    "anti-affinity-of-others": places.theirs,
    "spread": places.spread,
    "spread-and-nature": _spread_and_nature,
    "everything": _everything,
    "volumes": volumes.reachable,
    "attach-limits": volumes.attached,
    "read-write-once-pod": volumes.alone,
    "resource-claims": volumes.devices,
}
"""What the question is about → how such a pod is drawn."""
