"""What the laws of outcomes are tried on, on a real cluster: nodes of many kinds, and Deployments with rules around."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import msgspec
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.controlplane import objects
from tests.controlplane.api import ApiError
from tests.controlplane.cluster import Cluster
from tests.property import drawn_outcomes, drawn_worlds
from tests.property import strategies as some
from tests.property.drawn_parts import CPU, MEMORY
from trimtab.cluster.recommendation import ContainerUsage, Percentiles

Object = dict[str, Any]
SLOTS, REPLICAS, APP = 10, 3, "law"
SLOT = "law-slot"
CLASSES = {
    "kata": {
        "overhead": {"podFixed": {"cpu": "250m", "memory": "160Mi"}},
        "scheduling": {"nodeSelector": {"pool": "kata"}, "tolerations": [{"key": "kata", "operator": "Exists"}]},
    },
    "gvisor": {"overhead": {"podFixed": {"cpu": "50m"}}},
    "plain": {},
}
PRIORITIES = {"low": 10, "high": 1000, "usual": 100}
_TAINTS = ((), (), (), ("pool=batch:NoSchedule",), ("kata:NoSchedule",), ("spot:PreferNoSchedule",))
_SIZES = (("1", "2Gi"), ("4", "8Gi"), ("16", "4Gi"), ("2", "64Gi"))


def surroundings(cluster: Cluster) -> None:
    """Classes, and in each slot nodes of three kinds: of each as many as there are pods, so that none is in the way."""
    for name, more in CLASSES.items():
        kind = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": name}
        cluster.apply({**kind, "metadata": {"name": name}, **more})
    for name, value in PRIORITIES.items():
        cluster.apply(
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        )
    nodes = [node for slot in range(SLOTS) for node in _nodes(slot)]
    for node in nodes:
        cluster.create(node)
    names = [node["metadata"]["name"] for node in nodes]
    cluster.eventually(lambda: all(map(cluster.is_ready, names)), within=120, what="nodes Ready")


def _nodes(slot: int) -> list[Object]:
    chance, nodes = Random(slot), []
    for kind in range(3):
        cpu, memory = chance.choice(_SIZES)
        values = {"pool": chance.choice(["", "batch", "web", "kata"]), "zone": chance.choice(["", "a", "b"])}
        labels = {SLOT: str(slot)} | {name: value for name, value in values.items() if value}
        taints = [objects.taint(taint) for taint in chance.choice(_TAINTS)]
        for number in range(2 * REPLICAS):
            name = f"law-{slot}-{kind}-{number}"
            nodes.append(objects.node(name, cpu=cpu, memory=memory, pods=110, labels=labels, taints=taints))
    return nodes


@dataclass
class Case:
    """A Deployment, and what stands around it in its namespace."""

    slot: int
    manifest: Object
    rules: list[Object]
    peaks: dict[str, str]
    usage: dict[str, ContainerUsage]
    refused: list[str] = field(default_factory=list)
    """Rules that the API server did not take."""

    def deployment(self, namespace: str) -> Object:
        return {
            **copy.deepcopy(self.manifest),
            "metadata": {"name": APP, "namespace": namespace, "labels": {"app": APP}},
        }

    def in_slot(self, slot: int) -> Case:
        """The same for the nodes of a slot."""
        manifest = copy.deepcopy(self.manifest)
        manifest["spec"]["template"]["spec"]["nodeSelector"][SLOT] = str(slot)
        return replace(self, slot=slot, manifest=manifest)

    @property
    def replicas(self) -> int:
        return int(self.manifest["spec"]["replicas"])

    def settle(self, inside: Cluster) -> None:
        """The namespace with its rules; quotas in force on return."""
        quotas = []
        for rule in self.rules:
            try:
                inside.create(copy.deepcopy(rule))
            except ApiError:
                self.refused.append(rule["metadata"]["name"])  # min above max, and the like
                continue
            quotas += [rule] if rule["kind"] == "ResourceQuota" else []
        for quota in quotas:
            name, hard = quota["metadata"]["name"], quota["spec"]["hard"]
            inside.eventually(_in_force(inside, name, hard), what=f"quota {name} in force")


def _in_force(inside: Cluster, name: str, hard: Object) -> Callable[[], bool]:
    return lambda: bool(inside.get("ResourceQuota", name).get("status", {}).get("hard") == hard)


Drawn = tuple[list[Object], Case]
"""Policies, and a Deployment with its surroundings."""


def draw_world(number: int) -> Drawn:
    """The same for the same number, whichever others are drawn."""
    results: list[Drawn] = []

    # The first example of a run is always the simplest; those of one run resemble each other.
    @seed(number)
    @settings(
        max_examples=2, phases=[Phase.generate], deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(some.documents(modes=("apply",)), cases())
    def draw(documents: list[Object], case: Case) -> None:
        results.append((documents, case))

    draw()
    documents, case = results[-1]
    return documents, case.in_slot(number % SLOTS)


@st.composite
def cases(draw: Any) -> Case:
    rules = [draw(drawn_worlds.limit_ranges(f"bounds-{n}")) for n in range(draw(st.sampled_from([0, 0, 1])))]
    rules += [draw(drawn_outcomes.tight_quotas(f"quota-{n}")) for n in range(draw(st.sampled_from([0, 1, 1, 2])))]
    rules += [draw(drawn_worlds.vpas(f"vpa-{n}")) for n in range(draw(st.sampled_from([0, 0, 1])))]
    usage: dict[str, ContainerUsage] = {}
    peaks: dict[str, str] = {}
    for name in sorted(draw(st.sets(st.sampled_from(["app", "proxy"])))):
        low, high, most = sorted(draw(st.tuples(*[st.integers(0, len(CPU) - 1)] * 3)))
        cpu, memory = (Percentiles(p5=of[low], p95=of[high], max=of[most]) for of in (CPU, MEMORY))
        usage[name] = ContainerUsage(cpu=cpu, memory=memory, days=14.0)
        peaks[name] = MEMORY[most]
    replicas = draw(st.sampled_from([1, REPLICAS]))
    return Case(0, _workload(draw(some.manifests()), replicas), [_api(rule) for rule in rules], peaks, usage)


_GROUPS = {"VerticalPodAutoscaler": "autoscaling.k8s.io/v1", "LimitRange": "v1", "ResourceQuota": "v1"}


def _api(rule: Any) -> Object:
    """As it is sent to the API server. A VPA of a Job is one of the Deployment here."""
    kind = type(rule).__name__
    text: Object = msgspec.json.decode(msgspec.json.encode(rule))
    if kind == "VerticalPodAutoscaler":
        text["spec"]["targetRef"] = {"apiVersion": "apps/v1", "kind": "Deployment", "name": APP}
    status = {"status": text["status"]} if kind == "VerticalPodAutoscaler" and "status" in text else {}
    metadata = {"name": text["metadata"]["name"]}
    return {"apiVersion": _GROUPS[kind], "kind": kind, "metadata": metadata, "spec": text["spec"], **status}


def _workload(pod: Object, replicas: int) -> Object:
    """The pod as a Deployment's template, for the nodes of a slot. What a template may not say is left out."""
    pod = json.loads(json.dumps(pod))
    spec = {name: value for name, value in pod["spec"].items() if name not in ("nodeName", "overhead", "os")}
    spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), SLOT: "0"}
    spec["restartPolicy"] = "Always"
    labels = {**(pod["metadata"].get("labels") or {}), "app": APP}
    labels.pop("pod-template-hash", None)
    metadata = {"labels": labels, "annotations": pod["metadata"].get("annotations") or {}}
    template = {"metadata": metadata, "spec": spec}
    whole = {"replicas": replicas, "selector": {"matchLabels": {"app": APP}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "spec": whole}


def documents(result: list[Object], name: str) -> list[Object]:
    """Policies for the namespaces of one world."""
    objects = []
    for number, document in enumerate(result):
        spec = copy.deepcopy(document["spec"])
        spec["match"] = {**spec["match"], "namespaces": {"include": [f"{name}-ours"]}}
        objects.append({**document, "metadata": {"name": f"{name}-{number}"}, "spec": spec})
    return objects
