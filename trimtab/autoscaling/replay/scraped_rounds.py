"""What kube-state-metrics showed of a cluster's past → the rounds that a series of captures of it would have.

A scrape shows when an object was there and what of it changed, so a round is written wherever something changed. What
kube-state-metrics does not show is not in the objects: see `missing_inputs`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import msgspec

from trimtab.cluster.capture_series import ClusterChange, ObjectKey, RoundGap
from trimtab.cluster.timestamps import Seconds, format_timestamp

GRACE_SECONDS = 30
"""The default of terminationGracePeriodSeconds, which kube-state-metrics does not show."""
_VERSIONS = {"Job": "batch/v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1"}

Amounts = Mapping[str, str]
"""Resource → quantity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapedPodLife:
    """A pod as its series show it."""

    namespace: str
    name: str
    uid: str
    """Empty if the label was dropped."""
    created: Seconds
    last: Seconds
    """When it was scraped last."""
    owner_kind: str = ""
    owner_name: str = ""
    node: str = ""
    bound: Seconds | None = None
    deletion: Seconds | None = None
    """Its deletionTimestamp: when it is killed if it does not end by itself."""
    finished: Seconds | None = None
    """When it had succeeded or failed."""
    requests: Mapping[str, Amounts] | None = None
    """Container → what it requests."""
    init_requests: Mapping[str, Amounts] | None = None
    node_selector: Mapping[str, str] | None = None
    tolerations: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapedNodeState:
    """A node from one moment on."""

    since: Seconds
    labels: Mapping[str, str]
    taints: tuple[tuple[str, str, str], ...] = ()
    """(key, value, effect)."""
    is_cordoned: bool = False
    is_ready: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapedNode:
    """A node as its series show it."""

    name: str
    created: Seconds
    last: Seconds
    allocatable: Amounts
    capacity: Amounts
    states: tuple[ScrapedNodeState, ...]
    """In the order of their times; at least one."""
    provider_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapedCluster:
    """A cluster from `begin` to `end`."""

    begin: Seconds
    end: Seconds
    step: int
    """The seconds between two rounds."""
    nodes: tuple[ScrapedNode, ...]
    pods: tuple[ScrapedPodLife, ...]
    top_owners: Mapping[tuple[str, str], tuple[str, str]]
    """(namespace, ReplicaSet) → (kind, name) of its own controller."""
    gaps: tuple[tuple[Seconds, Seconds], ...] = ()
    """(begin, end) of each time in which nothing was scraped."""
    budgets: tuple[str, ...] = ()
    """The names of the budgets, of which no more is known."""
    absent_metrics: tuple[str, ...] = ()
    """The metrics without a series that a replay can do without."""


def list_rounds(cluster: ScrapedCluster) -> Iterator[ClusterChange | RoundGap]:
    """Yields what changed from round to round, and each gap between them."""
    numbers = range(len(range(cluster.begin, cluster.end + 1, cluster.step)))
    changes: dict[int, dict[ObjectKey, _Version | None]] = defaultdict(dict)
    for key, lives in _list_lives(cluster):
        for number, version in _number_versions(cluster, lives):
            changes[number][key] = version
    gaps = list(cluster.gaps)
    for number in numbers:
        at = cluster.begin + number * cluster.step
        if any(begin < at < end for begin, end in gaps):
            # What changed meanwhile is part of the next round.
            changes[number + 1] = {**changes.pop(number, {}), **changes[number + 1]}
            continue
        while gaps and gaps[0][1] <= at:
            yield RoundGap(*gaps.pop(0))
        change = changes.pop(number, {})
        gone = tuple(key for key, one in change.items() if one is None)
        # Encoded here, and not before: the texts of a week are larger than what they are made of.
        yield ClusterChange(at, {key: one.encode() for key, one in change.items() if one is not None}, gone)


@dataclass(frozen=True, slots=True)
class _PodVersion:
    """A pod as it was from one moment on."""

    pod: ScrapedPodLife
    is_bound: bool = False
    is_finished: bool = False
    deletion: Seconds | None = None

    def encode(self) -> bytes:
        return _encode_pod(self.pod, is_bound=self.is_bound, is_finished=self.is_finished, deletion=self.deletion)


@dataclass(frozen=True, slots=True)
class _NodeVersion:
    node: ScrapedNode
    state: ScrapedNodeState
    deletion: None = None

    def encode(self) -> bytes:
        return _encode_node(self.node, self.state)


@dataclass(frozen=True, slots=True)
class _OwnerVersion:
    """A ReplicaSet and its controller."""

    namespace: str
    name: str
    controller: tuple[str, str]
    deletion: None = None

    def encode(self) -> bytes:
        metadata = {"namespace": self.namespace, "name": self.name, "ownerReferences": [_refer_to(*self.controller)]}
        return msgspec.json.encode({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata})


_Version = _PodVersion | _NodeVersion | _OwnerVersion
_Versions = list[tuple[Seconds, _Version | None]]
"""(since when, the object; None: it is gone), in the order of the times."""


def _number_versions(cluster: ScrapedCluster, lives: Iterable[_Versions]) -> Iterator[tuple[int, _Version | None]]:
    """Yields (number of a round, the object then) for the objects that had the same name one after the other. A version
    that another one follows within the same round is left out; but an object that was there is in a round before it is
    gone, is asked to go, or another one has its name."""
    rounds: list[tuple[int, _Version | None]] = []
    for versions in lives:
        for position, (at, version) in enumerate(versions):
            number = max(0, -(-(at - cluster.begin) // cluster.step))
            if rounds and number <= rounds[-1][0]:
                number, former = rounds[-1]
                is_end = version is None or version.deletion is not None or (not position and former is not None)
                if is_end:
                    number += 1
                else:
                    rounds.pop()
            rounds.append((number, version))
    yield from rounds


def _list_lives(cluster: ScrapedCluster) -> Iterator[tuple[ObjectKey, Iterable[_Versions]]]:
    """Yields the name of each object, and the versions of each object that had it, the earliest first."""
    for name, nodes in groupby(sorted(cluster.nodes, key=lambda one: (one.name, one.created)), lambda one: one.name):
        yield ("Node", "", name), (_list_node_versions(cluster, node) for node in nodes)
    pods = sorted(cluster.pods, key=lambda one: (one.namespace, one.name, one.created))
    for (namespace, name), same in groupby(pods, lambda one: (one.namespace, one.name)):
        yield ("Pod", namespace, name), (_list_pod_versions(cluster, pod) for pod in same)
    for (namespace, name), controller in cluster.top_owners.items():
        yield ("ReplicaSet", namespace, name), [[(cluster.begin, _OwnerVersion(namespace, name, controller))]]


def _list_ends(cluster: ScrapedCluster, last: Seconds) -> _Versions:
    """Returns the end of an object that was scraped last then; nothing if it was still there at the end."""
    if last >= cluster.end - cluster.step:
        return []
    # What was there before a gap and not after it ended in the gap, of which nothing is known.
    gap = next((end for begin, end in cluster.gaps if begin - cluster.step <= last < end), None)
    return [(last + 1 if gap is None else gap, None)]


def _list_node_versions(cluster: ScrapedCluster, node: ScrapedNode) -> _Versions:
    # The node has been there since it was created, and is scraped for the first time at some second after that.
    times = (node.created, *(max(node.created, one.since) for one in node.states[1:]))
    texts: _Versions = [(at, _NodeVersion(node, one)) for at, one in zip(times, node.states, strict=True)]
    return texts + _list_ends(cluster, node.last)


def _list_pod_versions(cluster: ScrapedCluster, pod: ScrapedPodLife) -> _Versions:
    versions: _Versions = [(pod.created, _PodVersion(pod))]
    if pod.bound is not None:
        versions.append((max(pod.created, pod.bound), _PodVersion(pod, is_bound=True)))
    ends = _list_ends(cluster, pod.last)
    if pod.finished is not None:
        versions.append((pod.finished, _PodVersion(pod, is_bound=pod.bound is not None, is_finished=True)))
    elif pod.deletion is not None and ends:
        versions.append((pod.last, _PodVersion(pod, is_bound=pod.bound is not None, deletion=pod.deletion)))
    return versions + ends


def _encode_pod(
    pod: ScrapedPodLife, *, is_bound: bool, is_finished: bool = False, deletion: Seconds | None = None
) -> bytes:
    metadata: dict[str, Any] = {
        "name": pod.name,
        "namespace": pod.namespace,
        "uid": pod.uid or f"{pod.namespace}/{pod.name}",
        "creationTimestamp": format_timestamp(pod.created),
    }
    if pod.owner_kind:
        metadata["ownerReferences"] = [_refer_to(pod.owner_kind, pod.owner_name)]
    if deletion is not None:
        metadata["deletionTimestamp"] = format_timestamp(deletion)
    spec: dict[str, Any] = {
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "containers": _encode_containers(pod.requests or {"app": {}}),
        "initContainers": _encode_containers(pod.init_requests or {}),
        "nodeSelector": dict(pod.node_selector or {}),
        "tolerations": [dict(one) for one in pod.tolerations],
    }
    status: dict[str, Any] = {"phase": "Succeeded" if is_finished else "Running" if is_bound else "Pending"}
    if is_bound and pod.bound is not None:
        spec["nodeName"] = pod.node
        bound = format_timestamp(pod.bound)
        status["startTime"] = bound
        status["conditions"] = [
            {"type": "Ready", "status": "True"},
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": bound},
        ]
    return msgspec.json.encode(
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}
    )


def _encode_containers(requests: Mapping[str, Amounts]) -> list[dict[str, Any]]:
    return [{"name": name, "resources": {"requests": dict(requests[name])}} for name in sorted(requests)]


def _encode_node(node: ScrapedNode, state: ScrapedNodeState) -> bytes:
    metadata = {
        "name": node.name,
        "uid": f"{node.name} of {node.created}",
        "labels": dict(state.labels),
        "creationTimestamp": format_timestamp(node.created),
    }
    spec = {
        "providerID": node.provider_id,
        "unschedulable": state.is_cordoned,
        "taints": [{"key": key, "value": text, "effect": effect} for key, text, effect in state.taints],
    }
    status = {
        "allocatable": dict(node.allocatable),
        "capacity": dict(node.capacity),
        "conditions": [{"type": "Ready", "status": "True" if state.is_ready else "False"}],
    }
    return msgspec.json.encode(
        {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}
    )


def _refer_to(kind: str, name: str) -> dict[str, Any]:
    version = _VERSIONS.get(kind, "apps/v1" if kind == "Deployment" else "v1")
    return {"apiVersion": version, "kind": kind, "name": name, "uid": f"{kind}/{name}", "controller": True}
