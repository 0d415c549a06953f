"""Does a pod fit where we say it fits? Asked of the real scheduler, thousands of times.

Every probe is a pod nobody has placed; the scheduler tells on which nodes it could go, `scheduling.filters` tells
the same from what the API server held before. Where we say yes and the scheduler no, a drain would leave a pod without
a place: that must never be. The other way round costs a saving only; which kinds of it there are is in
docs/explanation/promises.md.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import pytest
import yaml

from tests.controlplane.api import ApiError
from tests.controlplane.binaries import Binaries
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.e2e import situation, situations
from tests.e2e.overheard import Verdicts, overhearing
from tests.e2e.situation import NAMESPACES, OVERHEADS, PROBE, REQUIRED, Object, Probe, World
from trimtab.cluster.cluster_state import snapshot_inventory
from trimtab.cluster.snapshot import build_snapshot
from trimtab.cluster.yaml_documents import Document
from trimtab.scheduling import cluster_model as packing
from trimtab.scheduling.cluster_model import FreeCapacity
from trimtab.scheduling.filters import fits_on_node, rejection_reason

SEED = int(os.environ.get("E2E_SEED", "1"))
WORLDS = int(os.environ.get("E2E_WORLDS", "40"))
"""Each has 4 to 6 nodes and a probe of every kind."""
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """One pod, one node, two answers."""

    world: World
    probe: Probe
    node: str
    ours: str
    """The code of our first reason against; "" is yes."""
    theirs: bool
    message: str
    """What the scheduler wrote into the pod's status."""


@pytest.fixture(scope="module")
def overheard(built: Binaries) -> Iterator[tuple[Cluster, Verdicts]]:
    """A cluster of our own whose scheduler tells all and does nothing."""
    with ControlPlane.start(built) as plane, overhearing(plane) as verdicts:
        yield Cluster(plane.kubeconfig, plane=plane), verdicts


@pytest.fixture(scope="module")
def judged(overheard: tuple[Cluster, Verdicts]) -> list[Situation]:
    cluster, verdicts = overheard
    worlds = [situations.world(SEED, number) for number in range(WORLDS)]
    _furnish(cluster, worlds, verdicts)
    stored = _items(cluster, "Node", "Namespace", "Pod", "PersistentVolume", "PersistentVolumeClaim", "CSINode")
    request = _asked(cluster, worlds)
    messages = _answered(cluster, len(request))
    return [situation for world in worlds for situation in _judge(world, stored, request, verdicts, messages)]


def test_we_never_say_fits_where_the_scheduler_says_no(judged: list[Situation]) -> None:
    counts = Counter((s.probe.kind, not s.ours, s.theirs) for s in judged)
    print(f"\n{'kind':24}{'both yes':>9}{'both no':>9}{'only we':>9}{'only it':>9}")
    for kind in situations.KINDS:
        row = [
            counts[kind, ours, theirs] for ours, theirs in ((True, True), (False, False), (True, False), (False, True))
        ]
        print(f"{kind:24}" + "".join(f"{number:9}" for number in row))
    wrong = [s for s in judged if not s.ours and not s.theirs]
    assert len(judged) >= 2000 or "E2E_WORLDS" in os.environ
    assert not wrong, _replay(wrong)


def test_what_we_refuse_and_the_scheduler_would_not_is_of_a_known_kind(judged: list[Situation]) -> None:
    stricter = [s for s in judged if s.ours and s.theirs]
    print(f"\n{dict(Counter(_stricter(s) for s in stricter))}")
    unknown = [s for s in stricter if not _stricter(s)]
    assert not unknown, _replay(unknown)


def _stricter(situation: Situation) -> str:
    """The documented kind of a refusal of ours that the scheduler does not share; "" where there is none."""
    spec = situation.probe.pod["spec"]
    node = next(node for node in situation.world.nodes if node["metadata"]["name"] == situation.node)
    if situation.ours == "node-takes-no-pods" and node["spec"].get("unschedulable"):
        return "a cordoned node, tolerated"
    if situation.ours == "csi-driver-missing":
        return "a driver that is registered on other nodes only"
    if situation.ours == "unknown-placement-rule" and "resourceClaims" in spec:
        return "resource claims"
    spreads = spec.get("topologySpreadConstraints", ())
    if situation.ours == "topology-spread" and any(spread.get("labelSelector") == {} for spread in spreads):
        return "a spread over all pods"
    if situation.ours != "affinity-not-met":
        return ""
    terms = spec["affinity"]["podAffinity"][REQUIRED]
    expressions = [e for term in terms for e in term.get("namespaceSelector", {}).get("matchExpressions", ())]
    if any(expression["operator"] in ("NotIn", "DoesNotExist") for expression in expressions):
        return "company by a negative namespace selector"
    return "company on its way out" if any(map(situations.lingers, situation.world.bound)) else ""


# ── the cluster ──────────────────────────────────────────────────────────────────────────────────────
def _furnish(cluster: Cluster, worlds: list[World], verdicts: Verdicts) -> None:
    """Everything but the probes stands, and the scheduler has seen it."""
    for name, labels in NAMESPACES.items():
        cluster.in_namespace(name)
        cluster.patch("Namespace", name, {"metadata": {"labels": labels}})
    for name, overhead in OVERHEADS.items():
        cluster.create(
            {
                "apiVersion": "node.k8s.io/v1",
                "kind": "RuntimeClass",
                "metadata": {"name": name},
                "handler": "fake",
                "overhead": {"podFixed": overhead},
            }
        )
    nodes = [node for world in worlds for node in world.nodes]
    bound = [pod for world in worlds for pod in world.bound]
    _all(cluster.create, nodes)
    _all(cluster.create, [thing for world in worlds for thing in world.things])
    cluster.eventually(lambda: all(map(_settled, cluster.list("Node"))), within=90, what="nodes settled", every=0.5)
    cluster.eventually(
        lambda: all(map(_claimed, cluster.list("PersistentVolumeClaim", everywhere=True))),
        within=90,
        what="claims bound",
        every=0.5,
    )
    _all(cluster.create, bound)
    cluster.eventually(
        lambda: all(pod["status"]["phase"] == "Running" for pod in cluster.list("Pod", everywhere=True)),
        within=90,
        what="pods running",
        every=0.5,
    )
    for pod in bound:
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        if situations.done(pod):
            cluster.patch("Pod", name, {"status": {"phase": "Succeeded"}}, namespace, "status")
        if situations.really_has(pod):
            cluster.patch("Pod", name, {"status": {"containerStatuses": _shrinking(pod)}}, namespace, "status")
        if situations.lingers(pod):
            cluster.delete("Pod", name, namespace, grace=3600)
    _seen(cluster, verdicts)


def _shrinking(pod: Object) -> list[Object]:
    """As a kubelet tells of a container whose spec and allocation are small already, and which is not."""
    requests = pod["spec"]["containers"][0]["resources"]["requests"]
    really = {"requests": {**requests, "cpu": situations.really_has(pod)}}
    rest = {"image": "pause", "imageID": "", "ready": True, "restartCount": 0}
    return [{"name": "main", **rest, "allocatedResources": requests, "resources": really}]


def _claimed(claim: Object) -> bool:
    return bool(claim["status"].get("phase") == "Bound")


def _settled(node: Object) -> bool:
    """Ready, and tainted as cordoned if it is, by the controllers."""
    taints = {taint["key"] for taint in node["spec"].get("taints", ()) if taint["key"].startswith("node.kubernetes.io")}
    expected = {"node.kubernetes.io/unschedulable"} if node["spec"].get("unschedulable") else set()
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", ()))
    return ready and taints == expected


def _seen(cluster: Cluster, verdicts: Verdicts) -> None:
    """What is made last is seen last: once a pod may go beside the last pod on the last node, all else is known."""
    key = "last.test/host"
    cluster.pool("last", nodes=1, labels={key: "last"})
    there = situation.pod("fit-last", "fit-red", {"app": "last"})
    there["spec"]["nodeName"] = "last-0"
    cluster.create(there)
    beside = situation.pod("fit-beside", "fit-red", {})
    term = {"labelSelector": {"matchLabels": {"app": "last"}}, "topologyKey": key}
    beside["spec"]["affinity"] = {"podAffinity": {REQUIRED: [term]}}
    cluster.create(beside)
    cluster.eventually(lambda: "fit-beside" in verdicts, within=60, what="the scheduler has seen everything")
    cluster.delete("Pod", "fit-beside", "fit-red", grace=0)


def _asked(cluster: Cluster, worlds: list[World]) -> dict[str, Object]:
    """Every probe as the API server stored it; the dice throw few that it refuses."""
    refused: list[str] = []

    def create(probe: Probe) -> Object | None:
        try:
            return cluster.create(probe.pod)
        except ApiError as error:
            refused.append(error.message)
            return None

    probes = [probe for world in worlds for probe in world.probes]
    request = {stored["metadata"]["name"]: stored for stored in _all(create, probes) if stored}
    assert len(refused) * 50 < len(probes), refused
    return request


def _answered(cluster: Cluster, number: int) -> dict[str, str]:
    """Probe → what its status says; every one was tried at least once."""
    results: dict[str, str] = {}

    def complete() -> bool:
        for pod in cluster.list("Pod", everywhere=True, selector=PROBE):
            for condition in pod["status"].get("conditions", ()):
                if condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable":
                    results.setdefault(pod["metadata"]["name"], condition["message"])
        return len(results) == number

    cluster.eventually(complete, within=180, what="every probe tried", every=2.0)
    return results


def _items(cluster: Cluster, *kinds: str) -> list[Object]:
    return [
        {**item, "kind": kind, "apiVersion": "storage.k8s.io/v1" if kind == "CSINode" else "v1"}
        for kind in kinds
        for item in cluster.list(kind, everywhere=True)
    ]


def _all(do: Callable[[T], R], values: Iterable[T]) -> list[R]:
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(do, values))


# ── the judgement ────────────────────────────────────────────────────────────────────────────────────
def _judge(
    world: World, stored: list[Object], request: dict[str, Object], verdicts: Verdicts, messages: dict[str, str]
) -> Iterator[Situation]:
    """Ours from what the API server held of this world, theirs as overheard; a verdict is the same every time."""
    own = [
        item for item in stored if item["kind"] == "Namespace" or item["metadata"]["name"].startswith(f"{world.name}-")
    ]
    tried = [probe for probe in world.probes if probe.name in request]
    probes = [{"apiVersion": "v1", "kind": "Pod", **request[probe.name]} for probe in tried]
    reading = build_snapshot(Document(file="api", index=n, value=item) for n, item in enumerate([*own, *probes]))
    assert not reading.mistakes, reading.mistakes
    ours = packing.build_cluster_model(snapshot_inventory(reading.snapshot))
    room, kinds = FreeCapacity(ours), {pod.name: kind for pod, kind in ours.pending_pods}
    for probe in tried:
        heard = set(verdicts.get(probe.name, ())) or {frozenset()}
        assert len(heard) == 1, f"the scheduler is of two minds about {probe.name}: {heard}"
        fits = next(iter(heard))
        for name, number in ours.node_numbers.items():
            reason = rejection_reason(room, kinds[probe.name], number)
            assert (reason is None) == fits_on_node(room, kinds[probe.name], number)
            yield Situation(
                world=world,
                probe=probe,
                node=name,
                ours=reason.code.name if reason else "",
                theirs=name in fits,
                message=messages[probe.name],
            )


def _replay(wrong: list[Situation]) -> str:
    """How many of what, a line for each, and the world of the first, to be applied or read offline."""
    result, lines = wrong[0], []
    for each in wrong:
        requests = {k: v for k, v in each.probe.pod["spec"].items() if k not in ("containers", "initContainers")}
        verdict = f"we say {each.ours or 'fits'}, the scheduler {'fits' if each.theirs else 'no'}"
        lines.append(f"{each.probe.name} on {each.node}: {verdict}: {requests}")
    spaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        for name, labels in NAMESPACES.items()
    ]
    world = [*spaces, *result.world.nodes, *result.world.things, *result.world.bound, result.probe.pod]
    counted = dict(Counter((s.probe.kind, s.ours) for s in wrong))
    head = (
        f"{len(wrong)} times, {counted}\n"
        + "\n".join(lines)
        + (
            "\nthe world of the first:\n"
            f"# seed {SEED}, pod {result.probe.name} ({result.probe.kind}) on node {result.node}\n"
            f"# ours: {result.ours or 'fits'}; scheduler: {'fits' if result.theirs else 'no'}: {result.message}\n"
        )
    )
    return head + yaml.safe_dump_all(world, sort_keys=False)
