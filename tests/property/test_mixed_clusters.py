"""Over generated clusters as people have them, what a plan does is what the manifests, the autoscalers' flags and their
statuses allow, read here a second time with none of the planner's code."""

import os
import random
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import pytest
import yaml

from tests.cluster_of import ALL, NOW, ZONE, Item, cluster
from tests.property.mixed_clusters import ARCH, FLAGS, GROUPS, MOVABLE, drawn_autoscalers, drawn_cluster
from tests.property.test_fit_reading import millicores
from trimtab.cluster.several_autoscalers import read_statuses
from trimtab.cluster.snapshot import ConfigMap
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import make_plan
from trimtab.compaction.plan_types import Plan
from trimtab.scheduling.cluster_model import build_cluster_model

CLUSTERS = {"brief": 100, "usual": 100, "thorough": 2000}.get(os.environ.get("HYPOTHESIS_PROFILE", "usual"), 300)
PART = 50
"""The number of clusters of one test."""
MAX_GRACE = 600
POOLS = [
    replace(ALL, name=name, labels={"asg": name}, everything=False, max_grace=MAX_GRACE, jobs=False) for name in GROUPS
]


@dataclass(frozen=True)
class Reading:
    """What the manifests of a cluster say."""

    items: list[Item]
    statuses: list[tuple[Item, list[str]]]
    """(status of an autoscaler, arguments of its process)."""

    def of_kind(self, kind: str) -> list[Item]:
        return [item for item in self.items if item["kind"] == kind]

    @property
    def nodes(self) -> dict[str, Item]:
        return {item["metadata"]["name"]: item for item in self.of_kind("Node")}

    @property
    def pods(self) -> dict[str, Item]:
        return {f"{p['metadata']['namespace']}/{p['metadata']['name']}": p for p in self.of_kind("Pod")}

    def label(self, name: str, key: str) -> str:
        return str(self.nodes[name]["metadata"]["labels"].get(key, ""))

    def autoscaler_of(self, name: str) -> tuple[Item, list[str]]:
        """The autoscaler that reports the node's group; each group has one."""
        own = self.label(name, "asg")
        return next(one for one in self.statuses if own in [group["name"] for group in one[0]["nodeGroups"]])

    def is_off(self, name: str, flag: str) -> bool:
        return f"--skip-nodes-with-{flag}=false" in self.autoscaler_of(name)[1]

    def owner(self, item: Item) -> Item:
        reference: Item = item["metadata"]["ownerReferences"][0]
        return reference

    def siblings(self, item: Item) -> list[Item]:
        own = (item["metadata"]["namespace"], self.owner(item)["name"], self.owner(item)["kind"])
        return [
            other
            for other in self.of_kind("Pod")
            if (other["metadata"]["namespace"], self.owner(other)["name"], self.owner(other)["kind"]) == own
        ]

    def problems_of_move(self, item: Item, source: str, target: str) -> list[str]:
        volumes, owner = item["spec"].get("volumes", []), self.owner(item)
        is_local = any("emptyDir" in one or "hostPath" in one for one in volumes)
        is_known = owner["kind"] in MOVABLE and owner.get("apiVersion", "apps/v1") == "apps/v1"
        is_system = item["metadata"]["namespace"] == "kube-system"
        homes = {self.label(one["spec"]["nodeName"], ARCH) for one in self.siblings(item)}
        quotas = [one for one in self.of_kind("ResourceQuota") if one["spec"]["hard"] == one["status"]["used"]]
        zones = [self.label(name, ZONE) for name in (source, target)]
        is_single = len(self.siblings(item)) == 1 and owner["kind"] == "ReplicaSet" and not is_system
        return [
            text
            for text, holds in (
                ("local data", is_local and not self.is_off(source, FLAGS[0])),
                ("strange owner", not is_known and (owner["kind"] == "Job" or not self.is_off(source, FLAGS[1]))),
                ("young system pod", is_system and not self.is_off(source, FLAGS[2])),
                ("long grace", item["spec"].get("terminationGracePeriodSeconds", 30) > MAX_GRACE),
                ("architecture", self.label(target, ARCH) not in homes),
                ("virtual node", bool(self.label(target, "type"))),
                ("zone of a volume", self.must_stay_in_zone(item) and zones[0] != zones[1]),
                ("quota", is_single and bool(quotas)),
            )
            if holds
        ]

    def must_stay_in_zone(self, item: Item) -> bool:
        volumes = item["spec"].get("volumes", [])
        claims = {one["metadata"]["name"]: one for one in self.of_kind("PersistentVolumeClaim")}
        claim = claims.get(f"{item['metadata']['name']}-d")
        is_lasting = any("persistentVolumeClaim" in one for one in volumes)
        return claim is not None and (is_lasting or claim["spec"]["storageClassName"] == "now")

    def problems_of_drain(self, name: str, drained: Counter[str]) -> list[str]:
        status, arguments = self.autoscaler_of(name)
        own = self.label(name, "asg")
        group = next(one for one in status["nodeGroups"] if one["name"] == own)
        count = sum(self.label(other, "asg") == own and not self.label(other, "type") for other in self.nodes)
        return [
            text
            for text, holds in (
                ("virtual node", bool(self.label(name, "type"))),
                ("unhealthy", status["clusterWide"]["health"]["status"] != "Healthy"),
                ("scale-down is off", "--scale-down-enabled=false" in arguments),
                ("scaling up", group["scaleUp"]["status"] == "InProgress"),
                ("minimum", count - drained[own] < group["health"].get("minSize", 0)),
            )
            if holds
        ]

    def problems_of_rooms(self, targets: dict[str, str]) -> list[str]:
        before, after = Counter[str](), Counter[str]()
        for key, item in self.pods.items():
            place = item["spec"]["nodeName"]
            before[place] += millicores(item)
            after[targets.get(key) or place or item["status"].get("nominatedNodeName", "")] += millicores(item)
        daemons = {one["spec"]["nodeName"] for one in self.of_kind("Pod") if self.owner(one)["kind"] == "DaemonSet"}
        for name in self.nodes if self.of_kind("DaemonSet") else ():
            nominated = sum(
                millicores(one) for one in self.of_kind("Pod") if one["status"].get("nominatedNodeName") == name
            )
            if name not in daemons and before[name] + nominated + 400 <= 4000:
                after[name] += 400
        return [f"room on {name}" for name in set(targets.values()) if after[name] > 4000]


def read_status(one: ConfigMap) -> Any:
    return yaml.safe_load(one.data["status"])


def planned(seed: int) -> tuple[Plan, Reading]:
    draw = random.Random(seed)
    items, (maps, processes) = drawn_cluster(draw), drawn_autoscalers(draw)
    context = PlanningContext(now=NOW, autoscaler=read_statuses(maps, processes).autoscaler)
    plan = make_plan(build_cluster_model(cluster(*items)), POOLS, context)
    return plan, Reading(items, list(zip(map(read_status, maps), processes, strict=True)))


def problems(plan: Plan, reading: Reading) -> list[tuple[str, list[str]]]:
    drained = Counter(reading.label(step.node, "asg") for step in plan.all_steps)
    checks = [(step.node, reading.problems_of_drain(step.node, drained)) for step in plan.all_steps]
    checks += [
        (move.pod, reading.problems_of_move(reading.pods[move.pod], move.source, move.target))
        for move in plan.all_moves
    ]
    checks.append(("rooms", reading.problems_of_rooms({move.pod: move.target for move in plan.all_moves})))
    return [check for check in checks if check[1]]


@pytest.mark.parametrize("part", range(CLUSTERS // PART))
def test_a_plan_does_only_what_both_readings_allow(part: int) -> None:
    moves = 0
    for seed in range(part * PART, (part + 1) * PART):
        plan, reading = planned(seed)
        moves += len(plan.all_moves)
        assert problems(plan, reading) == [], seed
    assert moves, "no cluster of this part has a plan"


def test_the_generated_clusters_have_moves_of_every_kind() -> None:
    """A reading that finds nothing because nothing moves would prove nothing."""
    kinds = Counter[str]()
    for seed in range(150):
        plan, reading = planned(seed)
        for move in plan.all_moves:
            item = reading.pods[move.pod]
            kinds.update(name for one in item["spec"].get("volumes", []) for name in one if name != "name")
            kinds[str(reading.owner(item).get("apiVersion", "")).partition("/")[0]] += 1
            kinds[item["metadata"]["namespace"]] += 1
    assert {"emptyDir", "hostPath", "ephemeral", "apps.kruise.io", "kube-system", "default"} <= kinds.keys()
