"""Which pods on which nodes? Small worlds by the dice: nodes, pods that are there, pods that ask.

Worlds do not meet although they share a cluster: each has topology keys of its own, and only its own nodes are asked.
Equal seeds give equal worlds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.e2e import volumes

Object = dict[str, Any]

NAMESPACES: dict[str, dict[str, str]] = {
    "fit-red": {"team": "a", "stage": "prod"},
    "fit-blue": {"team": "b", "stage": "prod"},
    "fit-grey": {},
}
OVERHEADS = {"fit-light": {"cpu": "100m", "memory": "64Mi"}, "fit-heavy": {"cpu": "750m", "memory": "1Gi"}}
"""RuntimeClass → its overhead."""
GPU, HUGE = "example.com/gpu", "hugepages-2Mi"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
LINGER, DONE = "testbed.trimtab.dev/stops-after", "testbed.trimtab.dev/done"
PROBE = "testbed.trimtab.dev/asks"
"""The label of pods that ask."""
NUMBERS = ("1", "3", "5", "05", "1_0", "x", "5x", "0", "99999999999999999999")
"""Label values for Gt and Lt, not all of them numbers."""
EFFECTS = ("NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule")


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    kind: str
    pod: Object

    @property
    def name(self) -> str:
        return str(self.pod["metadata"]["name"])


@dataclass(slots=True)
class World:
    name: str
    dice: Random
    nodes: list[Object] = field(default_factory=list)
    bound: list[Object] = field(default_factory=list)
    """Pods that are on their node already."""
    probes: list[Probe] = field(default_factory=list)
    things: list[Object] = field(default_factory=list)
    """What pods speak of: volumes and their claims, attach limits, resource claims."""

    def key(self, level: str) -> str:
        return f"{self.name}.test/{level}"

    @property
    def keys(self) -> list[str]:
        return [self.key(level) for level in ("zone", "rack", "host")]


def world(seed: int, number: int) -> World:
    made = World(f"w{number}", Random(f"{seed}/{number}"))
    for index in range(made.dice.randint(4, 6)):
        made.nodes.append(_node(made, f"{made.name}-n{index}"))
    for index in range(made.dice.randint(4, 11)):
        made.bound.append(_bound(made, f"{made.name}-b{index}"))
    volumes.furnish(made)
    for kind, shape in KINDS.items():
        pod = _pod(made, f"{made.name}-{kind}")
        pod["metadata"]["labels"][PROBE] = "yes"
        _tolerate_most(made, pod)
        shape(made, pod)
        made.probes.append(Probe(kind=kind, pod=pod))
    return made


# ── nodes ────────────────────────────────────────────────────────────────────────────────────────────
def _node(at: World, name: str) -> Object:
    dice = at.dice
    labels = {"kubernetes.io/hostname": name, at.key("host"): name, at.key("zone"): f"z{dice.randint(1, 3)}"}
    if dice.random() < 0.8:
        labels[at.key("rack")] = f"r{dice.randint(1, 3)}"
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
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": spec,
        "status": {"capacity": amounts, "allocatable": amounts},
    }  # fmt: skip


def _taint(dice: Random) -> Object:
    value = dice.choice(("a", "b", ""))
    made = {"key": dice.choice(("team", "dedicated")), "effect": dice.choice(EFFECTS)}
    return {**made, "value": value} if value else made


# ── pods ─────────────────────────────────────────────────────────────────────────────────────────────
def pod(name: str, namespace: str, labels: Object) -> Object:
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"containers": [_container("main", {"cpu": "50m", "memory": "64Mi"})],
                 "terminationGracePeriodSeconds": 0},
    }  # fmt: skip


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
    pod["spec"] |= {
        "nodeName": dice.choice(at.nodes)["metadata"]["name"],
        "tolerations": [{"operator": "Exists"}],
    }
    if dice.random() < 0.5:
        dice.choice((_resources, _resources, _host_ports))(at, pod)
    if dice.random() < 0.5:
        _anti_affinity(at, pod)
    pod["metadata"]["annotations"] = dice.choice(({},) * 8 + ({LINGER: "3600s"}, {DONE: "yes"}))
    return pod


def lingers(pod: Object) -> bool:
    """It is asked to go, and takes its time."""
    return LINGER in pod["metadata"].get("annotations", ())


def done(pod: Object) -> bool:
    """It has succeeded and holds nothing any more."""
    return DONE in pod["metadata"].get("annotations", ())


def _tolerate_most(at: World, pod: Object) -> None:
    """Else taints would answer every question."""
    if at.dice.random() < 0.8:
        pod["spec"]["tolerations"] = [{"key": key, "operator": "Exists"} for key in ("team", "dedicated")]


def _container(name: str, requests: Object, limits: Object | None = None) -> Object:
    """Extended resources and huge pages have a limit that equals the request."""
    capped = {k: v for k, v in requests.items() if k in (GPU, HUGE)} | (limits or {})
    resources = {"requests": requests, **({"limits": capped} if capped else {})}
    return {"name": name, "image": "pause", "resources": resources}


# ── resources ────────────────────────────────────────────────────────────────────────────────────────
def _some(dice: Random) -> Object:
    drawn: Object = {}
    if dice.random() < 0.8:
        drawn["cpu"] = dice.choice(("100m", "0.5", "1", "1900m", "0"))
    if dice.random() < 0.8:
        drawn["memory"] = dice.choice(("128Mi", "1Gi", "1500M", "0", "1e9"))
    return drawn


def _resources(at: World, pod: Object) -> None:
    at.dice.choice((_plain, _storage, _extended, _init, _init, _pod_level, _overhead))(at, pod)


def _plain(at: World, pod: Object) -> None:
    pod["spec"]["containers"] = [_container(f"c{n}", _some(at.dice)) for n in range(at.dice.randint(1, 3))]


def _storage(at: World, pod: Object) -> None:
    amount = at.dice.choice(("1Gi", "4Gi", "6Gi", "11Gi"))
    pod["spec"]["containers"] = [_container("main", {**_some(at.dice), "ephemeral-storage": amount})]


def _extended(at: World, pod: Object) -> None:
    what = {GPU: at.dice.choice(("1", "2"))} if at.dice.random() < 0.6 else {HUGE: at.dice.choice(("32Mi", "64Mi"))}
    pod["spec"]["containers"] = [_container("main", {"cpu": "50m", "memory": "32Mi", **what})]


def _init(at: World, pod: Object) -> None:
    """Init containers and sidecars in any order: what counts is who runs beside whom."""
    starting = []
    for number in range(at.dice.randint(1, 4)):
        made = _container(f"i{number}", _some(at.dice))
        starting.append({**made, "restartPolicy": "Always"} if at.dice.random() < 0.5 else made)
    pod["spec"]["initContainers"] = starting
    if at.dice.random() < 0.5:
        _plain(at, pod)
    if at.dice.random() < 0.2:
        _overhead(at, pod)


def _pod_level(at: World, pod: Object) -> None:
    """The pod's own requests stand instead of its containers', which may be no larger together."""
    dice = at.dice
    pod["spec"]["containers"] = [_container(f"c{n}", {"cpu": "100m", "memory": "100Mi"}) for n in range(2)]
    pod["spec"]["resources"] = {"requests": {"cpu": dice.choice(("200m", "1", "2500m"))}}
    if dice.random() < 0.6:
        pod["spec"]["resources"]["requests"]["memory"] = dice.choice(("200Mi", "2Gi"))
    if dice.random() < 0.4:
        pod["spec"]["initContainers"] = [_container("i", {"cpu": "150m", "memory": "50Mi"})]
    if dice.random() < 0.3:
        _overhead(at, pod)


def _overhead(at: World, pod: Object) -> None:
    pod["spec"]["runtimeClassName"] = at.dice.choice(list(OVERHEADS))


def _slots(at: World, pod: Object) -> None:
    """Next to nothing, so that only a slot can lack."""
    pod["spec"]["containers"] = [{"name": "main", "image": "pause"}]


# ── nature ───────────────────────────────────────────────────────────────────────────────────────────
def _node_selector(at: World, pod: Object) -> None:
    dice = at.dice
    drawn = {"disk": dice.choice(("ssd", "hdd", "")), "arch": dice.choice(("x", "y")), at.key("zone"): "z1"}
    pod["spec"]["nodeSelector"] = {key: drawn[key] for key in dice.sample(sorted(drawn), dice.choice((1, 1, 2)))}


def _expression(at: World) -> Object:
    dice = at.dice
    operator = dice.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    if operator in ("Gt", "Lt"):
        return {"key": "gen", "operator": operator, "values": [dice.choice(("0", "2", "3", "05", "100", "1_0"))]}
    key, values = dice.choice((("disk", ("ssd", "hdd", "")), ("gen", NUMBERS), ("arch", ("x", "y")), ("no", ("n",))))
    if operator in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": operator}
    return {"key": key, "operator": operator, "values": dice.sample(values, dice.randint(1, min(2, len(values))))}


def _node_affinity(at: World, pod: Object) -> None:
    dice, terms = at.dice, []
    for _ in range(dice.randint(1, 3)):
        term: Object = {}
        if dice.random() < 0.8:
            term["matchExpressions"] = [_expression(at) for _ in range(dice.choice((1, 1, 2)))]
        if dice.random() < 0.3:
            term["matchFields"] = [_field(at) for _ in range(dice.choice((1, 1, 2)))]
        terms.append(term)
    _affinity(pod)["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": terms}}


def _field(at: World) -> Object:
    name = at.dice.choice([*(node["metadata"]["name"] for node in at.nodes), "nobody"])
    return {"key": "metadata.name", "operator": at.dice.choice(("In", "In", "NotIn")), "values": [name]}


def _affinity(pod: Object) -> Object:
    found: Object = pod["spec"].setdefault("affinity", {})
    return found


def _tolerations(at: World, pod: Object) -> None:
    dice, drawn = at.dice, []
    for _ in range(dice.randint(0, 3)):
        toleration: Object = {}
        if dice.random() < 0.85:
            toleration["key"] = dice.choice(("team", "dedicated"))
        effect = dice.choice(("", "NoSchedule", "NoExecute", "PreferNoSchedule"))
        if effect:
            toleration["effect"] = effect
        if "key" not in toleration or dice.random() < 0.3:
            toleration["operator"] = "Exists"
        else:
            toleration |= {"value": dice.choice(("a", "b", "")), "operator": dice.choice(("Equal", ""))}
        drawn.append(toleration)
    pod["spec"]["tolerations"] = drawn


def _cordons(at: World, pod: Object) -> None:
    """Some tolerate what keeps pods off a cordoned node."""
    key = at.dice.choice(("node.kubernetes.io/unschedulable", "other"))
    pod["spec"].setdefault("tolerations", []).append({"key": key, "operator": "Exists", "effect": "NoSchedule"})


# ── other pods ───────────────────────────────────────────────────────────────────────────────────────
def _host_ports(at: World, pod: Object) -> None:
    dice, spec = at.dice, pod["spec"]
    port: Object = {"containerPort": 8080, "hostPort": dice.choice((8080, 8080, 9090))}
    if dice.random() < 0.6:
        port["hostIP"] = dice.choice(("10.0.0.1", "10.0.0.2", "0.0.0.0", "127.0.0.1"))
    if dice.random() < 0.3:
        port["protocol"] = "UDP"
    how = dice.random()
    if how < 0.2:
        spec["hostNetwork"] = True
        spec["containers"][0]["ports"] = [{"containerPort": port["hostPort"]}]
    elif how < 0.4:
        sidecar = {**_container("side", {"cpu": "10m"}), "ports": [port]}
        spec["initContainers"] = [{**sidecar, "restartPolicy": "Always"} if dice.random() < 0.6 else sidecar]
    else:
        spec["containers"][0]["ports"] = [port]


def _selector(dice: Random, keys: tuple[str, ...] = ("app", "track")) -> Object:
    drawn: Object = {}
    how = dice.random()
    if how < 0.08:
        return drawn
    if how < 0.7:
        drawn["matchLabels"] = {"app": dice.choice(("web", "db", "job"))}
    if how > 0.5:
        key, values = dice.choice([pair for pair in _LABELS if pair[0] in keys])
        operator = dice.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        some = {"values": [dice.choice(values)]} if operator in ("In", "NotIn") else {}
        drawn["matchExpressions"] = [{"key": key, "operator": operator, **some}]
    return drawn


_LABELS = (("app", ("web", "db", "job")), ("track", ("blue", "green")))


def _term(at: World) -> Object:
    dice = at.dice
    term: Object = {"topologyKey": dice.choice(at.keys)}
    if dice.random() < 0.95:
        term["labelSelector"] = _selector(dice)
    how = dice.random()
    if how < 0.25:
        term["namespaces"] = dice.sample(sorted(NAMESPACES), dice.randint(1, 2))
    if 0.15 < how < 0.6:
        term["namespaceSelector"] = dice.choice((
            {}, {"matchLabels": {"team": "a"}}, {"matchLabels": {"stage": "prod"}}, {"matchLabels": {"team": "none"}},
            {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
            {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["fit-red"]}]},
        ))  # fmt: skip
    if "labelSelector" in term and dice.random() < 0.2:
        term[dice.choice(("matchLabelKeys", "mismatchLabelKeys"))] = [dice.choice(("hash", "absent"))]
    return term


def _pod_affinity(at: World, pod: Object) -> None:
    _affinity(pod)["podAffinity"] = {REQUIRED: [_term(at) for _ in range(at.dice.choice((1, 1, 2)))]}
    if at.dice.random() < 0.4:  # the first of its kind
        own = {"labelSelector": {"matchLabels": {"app": "first"}}, "topologyKey": at.dice.choice(at.keys)}
        pod["metadata"]["labels"]["app"] = "first"
        _affinity(pod)["podAffinity"] = {REQUIRED: [own]}


def _anti_affinity(at: World, pod: Object) -> None:
    _affinity(pod)["podAntiAffinity"] = {REQUIRED: [_term(at) for _ in range(at.dice.choice((1, 1, 2)))]}


def _theirs(at: World, pod: Object) -> None:
    """It asks for nothing: only what others hold against it can keep it off."""


def _spread(at: World, pod: Object) -> None:
    dice, constraints = at.dice, []
    for key in dice.sample(at.keys, dice.choice((1, 1, 1, 2))):
        made: Object = {"maxSkew": dice.choice((1, 1, 2)), "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
        if dice.random() < 0.95:
            made["labelSelector"] = _selector(dice)
            if dice.random() < 0.25:
                made["matchLabelKeys"] = [dice.choice(("hash", "absent"))]
        if dice.random() < 0.3:
            made["minDomains"] = dice.randint(1, 4)
        if dice.random() < 0.5:
            made["nodeAffinityPolicy"] = dice.choice(("Honor", "Ignore"))
        if dice.random() < 0.5:
            made["nodeTaintsPolicy"] = dice.choice(("Honor", "Ignore"))
        constraints.append(made)
    if dice.random() < 0.2:
        constraints.append({**made, "topologyKey": at.key("soft"), "whenUnsatisfiable": "ScheduleAnyway"})
        constraints[-1].pop("minDomains", None)
    pod["spec"]["topologySpreadConstraints"] = constraints


def _spread_and_nature(at: World, pod: Object) -> None:
    _spread(at, pod)
    at.dice.choice((_node_selector, _node_affinity, _tolerations, _cordons))(at, pod)


def _everything(at: World, pod: Object) -> None:
    shapes = (_resources, _node_affinity, _tolerations, _host_ports, _pod_affinity, _anti_affinity, _spread)
    for shape in at.dice.sample(shapes, at.dice.randint(2, 3)):
        shape(at, pod)


KINDS: dict[str, Callable[[World, Object], None]] = {
    "requests": _plain,
    "ephemeral-storage": _storage,
    "extended": _extended,
    "init-and-sidecars": _init,
    "pod-level": _pod_level,
    "overhead": _overhead,
    "slots": _slots,
    "node-selector": _node_selector,
    "node-affinity": _node_affinity,
    "taints": _tolerations,
    "cordon": _cordons,
    "host-ports": _host_ports,
    "affinity": _pod_affinity,
    "anti-affinity": _anti_affinity,
    "anti-affinity-of-others": _theirs,
    "spread": _spread,
    "spread-and-nature": _spread_and_nature,
    "everything": _everything,
    "volumes": volumes.reachable,
    "attach-limits": volumes.attached,
    "read-write-once-pod": volumes.alone,
    "resource-claims": volumes.devices,
}
"""What the question is about → how such a pod is drawn."""
