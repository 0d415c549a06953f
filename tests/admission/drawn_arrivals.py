"""Pods that arrive one after the other, of one kind of owner, while the cluster changes between them.

Each arrival is nearly the one before: names, hashes, nodes, labels, annotations and variables are others, as
controllers and workflow engines make them, and now and then a field that decides is another, too. The same seed gives
the same arrivals on every machine.
"""

import copy
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from tests.build import (
    NAMESPACE,
    SIGNING,
    container_usage,
    facts,
    limit_range,
    namespace,
    node,
    priority_class,
    review,
    runtime_class,
    shard_of_usage,
    toleration,
    vpa,
    workload,
)
from tests.property.drawn_policies import EXAMPLES_OF_ACTIONS, load
from tests.property.drawn_revisions import DIFFERENCES
from trimtab.cluster.api.core import Taint
from trimtab.cluster.api.meta import change
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.pod_context import DEFAULT_SETTINGS, AdmissionSettings
from trimtab.policy.podpolicy import Policies

Dice = random.Random
Json = dict[str, Any]
NODES = ("n1", "n2", "n3", "n4", "node-5.internal", "batch")
"""One of them has the name of a node pool, and of a label's value."""
_HASHES = ("5d4f", "6b7c", "aaaa")
_TOKENS = ("aaaaa", "zz9zz")


class Arrival(NamedTuple):
    """One review, and what it is decided with."""

    body: bytes
    policies: Policies
    facts: ClusterFacts
    settings: AdmissionSettings


class Arrivals:
    """Draws arrivals of one kind. The cluster is one of a few that differ in one part each, so that what one decision
    read is another for the next one."""

    def __init__(self, kind: str, seed: int) -> None:
        self._dice, self._make = Dice(f"{kind} {seed}"), MAKERS[kind]
        decisive = _BY_NODE if kind == "daemonset" else _SPECS
        self._policies = [_draw_policies(self._dice, decisive) for _ in range(12)]
        self._worlds = _draw_worlds(self._dice)

    def draw(self, count: int) -> Iterator[Arrival]:
        """Yields this many arrivals."""
        dice = self._dice
        by, world, settings = self._policies[0], self._worlds[0], SIGNING
        for number in range(count):
            if number % 60 == 0:
                by, settings = dice.choice(self._policies), dice.choice((SIGNING, SIGNING, DEFAULT_SETTINGS))
                base = self._make(dice)
                extra = dice.choice(DIFFERENCES) if dice.random() < 0.3 else None
            if dice.random() < 0.15:
                world = dice.choice(self._worlds)
            pod = vary(dice, copy.deepcopy(base))
            if extra is not None and dice.random() < 0.3:
                pod = extra(pod)
            yield Arrival(encode(with_token(dice, pod), f"u-{number}"), by, world, settings)


def encode(pod: Json, uid: str) -> bytes:
    """As an API server sends it: without spaces."""
    return json.dumps(json.loads(review(pod, uid=uid)), separators=(",", ":")).encode()


def with_token(dice: Dice, pod: Json) -> Json:
    """The pod with its token volume."""
    volume = {"name": f"kube-api-access-{dice.choice(_TOKENS)}", "projected": {"sources": []}}
    return {**pod, "spec": {**pod["spec"], "volumes": [*(pod["spec"].get("volumes") or []), volume]}}


def _container(dice: Dice, name: str = "app") -> Json:
    amounts = dice.choice(
        [
            {"limits": {"cpu": "1"}},
            {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "128Mi"}},
            {"requests": {"cpu": "3"}},
            {},
        ]
    )
    return {"name": name, "image": dice.choice(["web:1", "registry.example/team/web:1"]), "resources": amounts}


def _pod(dice: Dice, owner: Json | None, *, is_named: bool) -> Json:
    containers = [_container(dice)] + ([_container(dice, "proxy")] if dice.random() < 0.4 else [])
    labels = {"app": dice.choice(["web", "batch"]), "tier": "untrusted", "run": "x"}
    annotations = {"note": "x", "run": "x"}
    if dice.random() < 0.2:
        annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] = "true"
    spec = {"containers": containers, "serviceAccountName": dice.choice(["default", "ci-1"])}
    if dice.random() < 0.2:
        spec["volumes"] = [{"name": "data", "emptyDir": {}}, {"name": "host", "hostPath": {"path": "/x"}}]
    if dice.random() < 0.2:
        spec["runtimeClassName"] = dice.choice(["kata", "plain"])
    metadata = {"labels": labels, "annotations": annotations}
    metadata |= {"ownerReferences": [owner]} if owner else {}
    return {"metadata": {**({"name": ""} if is_named else {"generateName": ""}), **metadata}, "spec": spec}


def _owner(version: str, kind: str) -> Json:
    return {"apiVersion": version, "kind": kind, "name": "", "uid": "", "controller": True}


def _pinned(dice: Dice) -> Json:
    pod = _pod(dice, _owner("apps/v1", "DaemonSet"), is_named=False)
    term: Json = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    weird = dice.random()
    if weird < 0.1:
        term["matchExpressions"] = [{"key": "pool", "operator": "Exists"}]
    terms = [term]
    if 0.1 < weird < 0.15:
        terms.append({"matchExpressions": [{"key": "pool", "operator": "In", "values": ["web"]}]})
    if 0.15 < weird < 0.2:
        terms.append(copy.deepcopy(term))
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    if 0.2 < weird < 0.3:
        preference = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [{"weight": 1, "preference": preference}]
    if 0.3 < weird < 0.35:
        term["matchFields"][0]["operator"] = "NotIn"
    pod["spec"] |= {"affinity": {"nodeAffinity": affinity}, "tolerations": [{"operator": "Exists"}]}
    if 0.35 < weird < 0.4:
        pod["spec"]["tolerations"] = []
    if 0.4 < weird < 0.5:
        pod["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "n1"}
    return pod


MAKERS: dict[str, Callable[[Dice], Json]] = {
    "daemonset": _pinned,
    "replicaset": lambda dice: _pod(dice, _owner("apps/v1", "ReplicaSet"), is_named=False),
    "statefulset": lambda dice: _pod(dice, _owner("apps/v1", "StatefulSet"), is_named=True),
    "job": lambda dice: _pod(dice, _owner("batch/v1", "Job"), is_named=False),
    "workflow": lambda dice: _pod(
        dice,
        _owner(
            *dice.choice(
                [("argoproj.io/v1alpha1", "Workflow"), ("tekton.dev/v1", "TaskRun"), ("v1", "Pod"), ("x.io/v1", "Job")]
            )
        ),
        is_named=True,
    ),
    "bare": lambda dice: _pod(dice, None, is_named=dice.random() < 0.7),
}
"""Kind → makes a pod of it, without names."""

_NAMES = {
    "ReplicaSet": [f"web-{one}" for one in _HASHES],
    "StatefulSet": ["web", "shop"],
    "DaemonSet": ["agent", "agent", "agent", "proxy"],
    "Job": ["work-28000001", "work-28000002", "lone-a", "lone-b", "lone-28000003"],
}
_RUNS = ["nightly-x7k2p", "nightly-b4c9d", "nightly-zz9zz", 'we"b']


def vary(dice: Dice, pod: Json) -> Json:
    """The pod of another run, revision or node: with other names, and with these in labels, annotations, variables and
    arguments, as the templates of some teams write them there."""
    metadata, spec = pod["metadata"], pod["spec"]
    [owner] = metadata.get("ownerReferences") or [None]
    name = dice.choice(_RUNS)
    if owner is not None:
        name = owner["name"] = dice.choice(_NAMES.get(owner["kind"], _RUNS))
        owner["uid"] = f"u-{name}"
    if "name" in metadata:
        metadata["name"] = f"{name}-{dice.randrange(3)}"
    else:
        metadata["generateName"] = f"{name}-"
    labels, annotations = metadata["labels"], metadata["annotations"]
    labels["pod-template-hash"] = name.rpartition("-")[2]
    pinned = dice.choice(NODES)
    spec = pod["spec"] = json.loads(json.dumps(spec).replace('["n1"]', f'["{pinned}"]'))
    if dice.random() < 0.5:
        return pod
    for values, choices in (
        (labels, {"run": [name, pinned, "x", "x"], "tier": ["untrusted", "untrusted", "web"]}),
        (annotations, {"run": [name, metadata.get("name", name), pinned, "x"], "note": ["x", "x", "x", "y"]}),
    ):
        for key, options in choices.items():
            values[key] = dice.choice(options)
    if dice.random() < 0.05:
        labels["trimtab.dev/opt-out"] = dice.choice(["true", "false"])
    for container in spec["containers"]:
        container["env"] = [{"name": "NAME", "value": dice.choice([name, pinned, "x"])}, *_options(dice)]
        container["args"] = [dice.choice(["--x", f"--name={name}", "-Xmx1g"])]
        if dice.random() < 0.1:
            container["image"] = (
                f"{container['image'].rpartition(':')[0]}:{dice.choice(['1', '2', name.strip(chr(34))])}"
            )
    if dice.random() < 0.05:
        spec["nodeSelector"] = {"kubernetes.io/hostname": pinned}
    return pod


def _options(dice: Dice) -> list[Json]:
    return (
        [{"name": "JAVA_OPTS", "value": dice.choice(["-Xmx1g", "-XX:MaxRAMPercentage=75"])}]
        if dice.random() < 0.1
        else []
    )


_FILL = {"requests": {"cpu": {"from": "usage", "otherwise": "10m"}, "memory": {"from": "usage", "otherwise": "32Mi"}}}
_KNOWN = {"requests": {"cpu": {"from": "usage"}, "memory": {"from": "usage"}}}
_HERE = {"namespaces": {"include": ["team-*"]}}
_OWN_SPECS: tuple[Json, ...] = (
    {"actions": _FILL},
    {"actions": _KNOWN},
    {"actions": _FILL, "rollout": 50},
    {"actions": {"labels": {"add": {"cost": "low"}}}, "rollout": 25},
    {"actions": {"annotations": {"add": {"seen": "yes"}}}, "rollout": 75},
    {"actions": {"limits": {"cpu": "remove", "memory": "remove"}}},
    {"actions": {"limits": {"cpu": "remove", "memory": "remove", "unknownRuntime": "keep"}}},
    {"actions": {"labels": {"add": {"cost": "high"}}}, "match": {"owners": ["Job/*1", "Pod/*-0", "DaemonSet/agent"]}},
    {"actions": {"labels": {"add": {"cost": "pods"}}}, "match": {"owners": ["Pod/nightly-x*", "Workflow/*2p"]}},
    {"actions": _FILL, "match": {"exclude": [{"owners": ["Pod/*-1", "TaskRun/*9d", "ReplicaSet/*c", "Job/lone-b"]}]}},
    {"actions": {"priorityClass": {"name": "low", "override": True}}, "match": {"podLabels": {"run": "n*"}}},
    {"actions": {"labels": {"add": {"cost": "low"}}}, "match": {"annotations": {"run": "*-0"}}},
    {"actions": {"annotations": {"add": {"note": "y"}, "override": True}}},
    {"actions": {"labels": {"add": {}, "fromPod": {"team": {"label": "tier", "among": ["web", "untrusted"]}}}}},
    {"actions": {"placement": {"nodeSelector": {"pool": "batch"}}}, "match": {"owners": ["DaemonSet", "Job", "Pod"]}},
    {
        "actions": {
            "placement": {"requireAny": [[{"label": "pool", "in": ["web"]}], [{"label": "zone", "in": ["a"]}]]}
        },
        "match": {"owners": ["DaemonSet", "Pod"]},
    },
    {
        "actions": {"placement": {"require": [{"label": "kubernetes.io/hostname", "in": ["n1", "n2"]}]}},
        "match": {"owners": ["DaemonSet", "Workflow"]},
    },
    {"actions": {"placement": {"tolerate": [{"key": "pool"}]}}, "match": {"owners": ["*"]}},
    {
        "actions": {"requests": {"cpu": {"from": "policy", "otherwise": "3500m", "when": "always"}}},
        "guaranteed": "change",
    },
    {"actions": {"requests": {"memory": {"from": "policy", "otherwise": "3Gi", "when": "always"}}}},
    {"actions": {"runtimeClass": {"name": "kata", "override": True}}, "match": {"podLabels": {"tier": "untrusted"}}},
    {"actions": {"safeToEvictVolumes": {"hostPaths": True}}},
    {"actions": {"terminationGracePeriod": {"maxSeconds": 20}}, "optOut": "pod"},
    {"actions": {"topologySpread": {"constraints": [{"topologyKey": "zone"}], "by": ["run", "app"]}}},
    {"actions": {"labels": {"add": {"cost": "low"}, "required": True}}, "match": _HERE},
    {"actions": {"limits": {"cpu": "remove"}}, "match": {"containers": {"images": ["*:1"]}}},
    {"actions": {"labels": {"add": {"vpa": "yes"}}}, "match": {"vpa": "managed"}},
    {"actions": {"emptyDirs": {"sizeLimit": "1Gi"}}, "mode": "warn"},
)
_SPECS: tuple[Json, ...] = (
    *_OWN_SPECS,
    *(
        {"actions": {key: example}}
        for key, example in EXAMPLES_OF_ACTIONS.items()
        if not any(key in spec["actions"] for spec in _OWN_SPECS)
    ),
)
"""These, and the example of every action that none of them has."""


_BY_NODE = tuple(
    {"actions": {"requests": {resource: {"from": "policy", "otherwise": amount, "when": "always"}}}, **more}
    for resource, amount in (("cpu", "3500m"), ("memory", "3Gi"))
    for more in ({}, {"guaranteed": "change"})
)
"""What only some of the nodes have room for."""


def _draw_policies(dice: Dice, decisive: tuple[Json, ...]) -> Policies:
    specs = [dice.choice(decisive), *dice.sample(_SPECS, dice.randint(0, 4))]
    return load(
        [
            {
                "apiVersion": "trimtab.dev/v1alpha1",
                "kind": "PodPolicy",
                "metadata": {"name": f"p{number}"},
                "spec": spec,
            }
            for number, spec in enumerate(specs)
        ]
    )


_SHAPES = (
    {"labels": {"pool": "web", "zone": "a"}, "cpu": "4", "memory": "8Gi"},
    {"labels": {"pool": "batch", "zone": "b"}, "cpu": "4", "memory": "8Gi"},
    {"labels": {"pool": "web", "zone": "a"}, "cpu": "2", "memory": "2Gi"},
    {
        "labels": {"zone": "b"},
        "cpu": "16",
        "memory": "64Gi",
        "taints": (Taint(key="pool", value="", effect="NoSchedule"),),
    },
)


def _nodes(dice: Dice) -> list[Any]:
    """Some of the nodes, of several shapes; one may be cordoned, and two may have one label of a host."""
    nodes = []
    for name in dice.sample(NODES, dice.choice((0, 1, 4, len(NODES)))):
        shape = dice.choice(_SHAPES)
        host = "n1" if dice.random() < 0.05 else name
        labels = {**shape["labels"], "kubernetes.io/hostname": host}
        made = node(name, labels=labels, pods="110", **{key: shape[key] for key in shape if key != "labels"})
        is_cordoned = dice.random() < 0.1
        nodes.append(change(made, spec=change(made.spec, unschedulable=True)) if is_cordoned else made)
    return nodes


_CLASSES = (
    runtime_class("kata", overhead={"cpu": "250m"}, tolerations=(toleration("kata", operator="Exists"),)),
    runtime_class("plain"),
    priority_class("low", 10),
)
_OWNERS = (
    ("ReplicaSet/web-5d4f", "Deployment/web"),
    ("ReplicaSet/web-6b7c", "Deployment/web"),
    ("Deployment/web", ""),
    ("CronJob/work", ""),
    ("CronJob/lone", ""),
    ("Job/work-28000001", "CronJob/work"),
    ("Job/lone-a", ""),
    ("Job/lone-b", "CronJob/work"),
    ("DaemonSet/agent", ""),
    ("StatefulSet/web", ""),
)
_USED = (*[name for name, _ in _OWNERS], "Workflow.argoproj.io/nightly-x7k2p", "Pod/nightly-b4c9d", "Job/lone-28000003")


def _known_usage(dice: Dice) -> list[Any]:
    known = dice.sample(_USED, dice.randint(0, 3))
    return [
        shard_of_usage(
            {"app": container_usage({"cpu": ("10m", dice.choice(["90m", "2"])), "memory": ("32Mi", "256Mi")})},
            name,
            f"{number:02d}",
        )
        for number, name in enumerate(known)
    ]


def _objects(dice: Dice) -> dict[str, list[Any]]:
    """The objects of a cluster by the part of the facts that they decide."""
    owners = dice.sample(_OWNERS, dice.randint(2, len(_OWNERS)))
    return {
        "nodes": _nodes(dice),
        "recommendations": _known_usage(dice),
        "owners": [
            workload(name, owner=above, created="2026-01-01T00:00:00Z" if dice.random() < 0.5 else None)
            for name, above in owners
        ],
        "namespaces": [
            namespace(NAMESPACE, **dice.choice([{}, {}, {}, {"team": "a"}, {"trimtab.dev/opt-out": "true"}]))
        ],
        "limit_ranges": [limit_range(default={"cpu": "500m"})] if dice.random() < 0.2 else [],
        "vpas": [vpa(dice.choice(["Job/lone-a", "CronJob/work", "DaemonSet/agent", "Deployment/web"]))]
        if dice.random() < 0.4
        else [],
    }


_PARTS = {
    "nodes": ("nodes", "machines", "largest_node"),
    "recommendations": ("recommendations",),
    "owners": ("owners", "replicas", "updated", "created"),
    "namespaces": ("namespaces",),
    "limit_ranges": ("limit_ranges", "bounds"),
    "vpas": ("vpas",),
}
"""Part of a cluster → the fields of the facts that are of it."""


def _draw_worlds(dice: Dice) -> list[ClusterFacts]:
    """Clusters, each of which differs from one before in one part; the other parts are the very same objects."""

    def build(parts: dict[str, list[Any]]) -> ClusterFacts:
        return facts(*_CLASSES, *(one for part in parts.values() for one in part))

    worlds = [build(_objects(dice))]
    for _ in range(30):
        other, part = build(_objects(dice)), dice.choice(tuple(_PARTS))
        fields = {name: getattr(other, name) for name in _PARTS[part]}
        worlds.append(replace(dice.choice(worlds[-6:]), **fields))
    return worlds
