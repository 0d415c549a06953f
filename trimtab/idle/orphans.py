"""Finds objects to which nothing in the cluster refers: volumes, claims, load balancers, ConfigMaps, Secrets and nodes.

It only says that no pod refers to them: a program may still read an object through the API, and a client outside the
cluster may use it. Objects for which there is a sign of such a reader are listed separately, with the sign (see
`unjudged_objects`). Of a Secret, only its metadata is read.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from trimtab.cluster.api.core import Node
from trimtab.cluster.format_count import format_count
from trimtab.cluster.node_nature import NodeKind, nature_of_node
from trimtab.cluster.own_objects import is_own, own_namespaces
from trimtab.cluster.pool import CAPI_OWNER, OPENSHIFT_MACHINE
from trimtab.cluster.pool_labels import POOL_ANNOTATIONS, POOL_LABELS
from trimtab.cluster.quantity import NotAQuantity, to_whole_units
from trimtab.cluster.reason import Code, NotYet, Reason
from trimtab.cluster.timestamps import parse_timestamp
from trimtab.idle.object_mentions import Manifest, MentionIndex, Name, index_mentions, iterate_pod_specs, name_of
from trimtab.idle.unjudged_objects import (
    NAMED_ELSEWHERE,
    OWNER_DECIDES,
    SYSTEM_NAMESPACES,
    ReaderFacts,
    gather_reader_facts,
    reason_to_leave_out,
)

VOLUME_RELEASED = Code(
    "volume-released",
    "No claim can use the volume any more, but you still pay for it.",
    "Check its content, then delete the PersistentVolume and the disk. To use the volume again, clear its claimRef.",
)
CLAIM_UNMOUNTED = Code(
    "claim-unmounted",
    "No pod, pod template or other object names the claim.",
    "Check its content, then delete it. If you are not sure, create a VolumeSnapshot first.",
)
LOAD_BALANCER_WITHOUT_ENDPOINTS = Code(
    "load-balancer-without-endpoints",
    "The Service has a load balancer, but nothing behind it. It has no pod and no endpoint.",
    "Delete the Service, or use type ClusterIP until its pods exist.",
)
CONFIG_MAP_UNNAMED = Code(
    "config-map-no-pod-names",
    "No pod, pod template or other object names the ConfigMap.",
    "Ask the author of the ConfigMap, then delete it.",
)
SECRET_UNNAMED = Code(
    "secret-no-pod-names",
    "No pod, ServiceAccount, Ingress or other object names the Secret. Pod templates were read too.",
    "Ask its author, then delete the Secret and revoke its content.",
)
NODE_WITHOUT_GROUP = Code(
    "node-without-group",
    "The node belongs to no node group, so no autoscaler removes it. Other nodes have a group.",
    "Drain and delete the node, or label it with its group. Find out first who created the machine.",
)
NO_PODS_READ = Code(
    "orphans-need-pods",
    "Trimtab has not read the pods and their templates, which may name the object. It needs their environments too.",
    "Pass the output of `kubectl get pods,deployments,statefulsets,daemonsets,cronjobs -A -o yaml`, or --cluster live.",
)
NO_GROUPS_READ = Code(
    "orphans-need-node-groups",
    "No node shows its node group, so Trimtab cannot decide which one is an exception.",
    "Label the nodes with trimtab.dev/pool, if the machines have groups.",
)
PODS_MISSING = Code(
    "orphan-pods-missing",
    "A workload behind the load balancer should have pods, but has none now. Its number of replicas says so.",
    "Find out why the workload has no pods.",
)

_CODES = {"ConfigMap": CONFIG_MAP_UNNAMED, "Secret": SECRET_UNNAMED, "PersistentVolumeClaim": CLAIM_UNMOUNTED}
_MIN_PODS_OF_CAPTURE = 20
"""If at least this many pods have neither environment variables nor command lines, the capture was made without these
fields."""


@dataclass(frozen=True, slots=True)
class Orphan:
    """An object to which nothing refers."""

    name: Name
    reason: Reason
    created: int | None = None
    """The time of its creation, or None if it is unknown."""
    storage_bytes: int | None = None
    """The size of a volume or claim in bytes; None for other kinds, or if it is unknown."""
    storage_class: str = ""


@dataclass(frozen=True, slots=True)
class UnjudgedObject:
    """An object to which nothing refers, but which something probably or possibly reads."""

    name: Name
    reason: Reason


@dataclass(frozen=True, slots=True)
class OrphanReport:
    """Every orphan of a cluster, the objects that were left out, and the kinds that could not be checked at all."""

    orphans: tuple[Orphan, ...]
    unjudged: tuple[UnjudgedObject, ...]
    checked: Mapping[str, int]
    """Kind → the number of objects that were checked."""
    unknown: tuple[NotYet, ...]
    """The kinds that could not be checked, each with what is missing for the check."""


def find_orphans(
    manifests: Iterable[Manifest], *, own_domains: Iterable[str] = (), now: int | None = None, min_age_seconds: int = 0
) -> OrphanReport:
    """Returns every object to which nothing refers, sorted by kind, namespace and name.

    `manifests` are all objects as plain values, as kubectl prints them; of Secrets the metadata is enough. Objects that
    are younger than `min_age_seconds` at the time `now` are left out, and so are Trimtab's own. `own_domains` are label
    domains of the user's own organization.
    """
    objects = [manifest for manifest in manifests if isinstance(manifest, Mapping)]
    by_kind: dict[str, list[Manifest]] = defaultdict(list)
    for manifest in objects:
        by_kind[name_of(manifest)[0]].append(manifest)
    orphans: list[Orphan] = []
    unjudged: list[UnjudgedObject] = []
    unknown: list[NotYet] = []
    checked: Counter[str] = Counter()
    namespaces = own_namespaces(objects)
    own = {name_of(manifest) for manifest in objects if is_own(manifest, namespaces)}
    for finding in _iterate_findings(objects, by_kind, own_domains):
        if isinstance(finding, Orphan | UnjudgedObject) and finding.name in own:
            continue
        if isinstance(finding, Orphan):
            young = now is not None and finding.created is not None and now - finding.created < min_age_seconds
            if not young:
                orphans.append(finding)
        elif isinstance(finding, UnjudgedObject):
            unjudged.append(finding)
        elif isinstance(finding, NotYet):
            unknown.append(finding)
        else:
            checked[finding] += 1
    return OrphanReport(
        tuple(sorted(orphans, key=lambda orphan: orphan.name)),
        tuple(sorted(unjudged, key=lambda left: left.name)),
        dict(sorted(checked.items())),
        tuple(unknown),
    )


_Finding = Orphan | UnjudgedObject | NotYet | str
"""The result for one object. A str is the kind of an object that was checked and is in use."""


def _iterate_findings(
    objects: Sequence[Manifest], by_kind: Mapping[str, list[Manifest]], own_domains: Iterable[str]
) -> Iterator[_Finding]:
    missing = _missing_pods(objects)
    index, facts = index_mentions(objects), gather_reader_facts(objects, own_domains)
    yield from _volume_findings(by_kind.get("PersistentVolume", ()))
    if missing is None:
        yield from _claim_findings(by_kind, index)
        for kind in ("ConfigMap", "Secret"):
            yield from _config_findings(by_kind.get(kind, ()), index, facts)
    elif any(by_kind.get(kind) for kind in _CODES):
        yield missing
    yield from _load_balancer_findings(by_kind)
    yield from _node_findings(by_kind.get("Node", ()))


def _missing_pods(objects: Sequence[Manifest]) -> NotYet | None:
    """Returns what is missing to judge objects by the pods that name them, or None if nothing is missing. A capture
    made by Trimtab has no environment variables and no command lines, so it is unknown which objects they name."""
    specs = [spec for manifest in objects for spec in iterate_pod_specs(manifest)]
    if not specs:
        return NotYet(
            reason=NO_PODS_READ("no pod and no pod template was read"), have="none", need="pods and their templates"
        )
    if len(specs) >= _MIN_PODS_OF_CAPTURE and not any(map(_has_program, specs)):
        sentence = "the pods that were read have no environments and no command lines"
        return NotYet(
            reason=NO_PODS_READ(sentence),
            have="pods of a capture",
            need="pods in the form in which kubectl prints them",
        )
    return None


def _has_program(spec: Manifest) -> bool:
    containers = spec.get("containers")
    return any(
        key in container
        for container in (containers if isinstance(containers, list) else ())
        for key in ("env", "envFrom", "args", "command", "imagePullPolicy")
    )


def _config_findings(manifests: Iterable[Manifest], index: MentionIndex, facts: ReaderFacts) -> Iterator[_Finding]:
    objects = tuple(manifests)
    namesakes = Counter(name_of(manifest)[2] for manifest in objects)
    for manifest in objects:
        name = name_of(manifest)
        yield name[0]
        if index.find_mention(name, _mapping(_mapping(manifest.get("metadata")).get("labels"))) is not None:
            continue
        reason = reason_to_leave_out(manifest, facts)
        # Names of ConfigMaps are ordinary words more often than those of Secrets.
        is_unique = name[0] == "Secret" and namesakes[name[2]] == 1
        if reason is None and (who := index.find_mention_elsewhere(name, is_unique=is_unique)) is not None:
            reason = NAMED_ELSEWHERE(
                f"{who[0]} {who[1]}/{who[2]} contains the name" if who[1] else f"{who[0]} {who[2]} contains the name"
            )
        if reason is not None:
            yield UnjudgedObject(name, reason)
        else:
            yield Orphan(name, _CODES[name[0]]("no pod names this object"), _created(manifest))


def _volume_findings(manifests: Iterable[Manifest]) -> Iterator[_Finding]:
    for manifest in manifests:
        spec, phase = _mapping(manifest.get("spec")), _mapping(manifest.get("status")).get("phase")
        yield "PersistentVolume"
        if phase not in ("Released", "Failed") or _mapping(manifest.get("metadata")).get("deletionTimestamp"):
            continue
        claim = _mapping(spec.get("claimRef"))
        sentence = f"the volume is {phase}, and its claim {claim.get('namespace')}/{claim.get('name')} no longer exists"
        yield _storage_orphan(
            manifest,
            VOLUME_RELEASED(sentence),
            _mapping(spec.get("capacity")).get("storage"),
            spec.get("storageClassName"),
        )


def _claim_findings(by_kind: Mapping[str, list[Manifest]], index: MentionIndex) -> Iterator[_Finding]:
    templates = [
        (name_of(owner)[1], f"{name_of(template)[2]}-{name_of(owner)[2]}-")
        for owner in by_kind.get("StatefulSet", ())
        for template in _mapping(owner.get("spec")).get("volumeClaimTemplates") or ()
    ]
    for manifest in by_kind.get("PersistentVolumeClaim", ()):
        name = name_of(manifest)
        yield name[0]
        # Whether the claim has the name TEMPLATE-SET-N of an existing StatefulSet, which mounts the claim when it is
        # scaled up again.
        if index.find_mention(name) is not None or any(
            namespace == name[1] and name[2].startswith(prefix) and name[2].removeprefix(prefix).isdecimal()
            for namespace, prefix in templates
        ):
            continue
        metadata, spec, status = (_mapping(manifest.get(part)) for part in ("metadata", "spec", "status"))
        if metadata.get("ownerReferences") or metadata.get("deletionTimestamp"):
            yield UnjudgedObject(name, OWNER_DECIDES("the claim has an owner, or is being deleted"))
            continue
        requests = _mapping(_mapping(spec.get("resources")).get("requests"))
        size = _mapping(status.get("capacity")).get("storage") or requests.get("storage")
        yield _storage_orphan(manifest, CLAIM_UNMOUNTED("no pod names this claim"), size, spec.get("storageClassName"))


def _storage_orphan(manifest: Manifest, reason: Reason, size: Any, storage_class: Any) -> Orphan:
    try:
        size_bytes = None if size is None else to_whole_units(str(size))
    except NotAQuantity:
        size_bytes = None
    return Orphan(name_of(manifest), reason, _created(manifest), size_bytes, str(storage_class or ""))


def _load_balancer_findings(by_kind: Mapping[str, list[Manifest]]) -> Iterator[_Finding]:
    services = [
        service for service in by_kind.get("Service", ()) if _mapping(service.get("spec")).get("type") == "LoadBalancer"
    ]
    if not services:
        return
    if not any(by_kind.get(kind) for kind in ("EndpointSlice", "Endpoints", "Pod")):
        yield NotYet(
            reason=NO_PODS_READ("neither pods nor endpoints were read"), have="Services", need="Pods or EndpointSlices"
        )
        return
    backed = set(_iterate_backed_services(by_kind))
    for service in services:
        name = name_of(service)
        yield "Service"
        if name[1:] in backed or name[1] in SYSTEM_NAMESPACES:
            continue
        metadata = _mapping(service.get("metadata"))
        selector = _mapping(_mapping(service.get("spec")).get("selector"))
        workload, replicas = _workload_behind(name[1], selector, by_kind) if selector else ("", 0)
        if metadata.get("ownerReferences") or metadata.get("deletionTimestamp"):
            yield UnjudgedObject(name, OWNER_DECIDES("the Service has an owner, or is being deleted"))
        elif replicas:
            yield UnjudgedObject(
                name, PODS_MISSING(f"{workload} should have {format_count(replicas, 'pod')} behind the Service")
            )
        else:
            sentence = (
                f"no pod is behind the Service; {workload} has 0 replicas"
                if workload
                else "no pod is behind the Service"
            )
            yield Orphan(name, LOAD_BALANCER_WITHOUT_ENDPOINTS(sentence), _created(service))


def _iterate_backed_services(by_kind: Mapping[str, list[Manifest]]) -> Iterator[tuple[str, str]]:
    """Yields (namespace, name) of every Service that has an endpoint address, ready or not, or that selects a pod."""
    for piece in by_kind.get("EndpointSlice", ()):
        _, namespace, _ = name_of(piece)
        if piece.get("endpoints"):
            labels = _mapping(_mapping(piece.get("metadata")).get("labels"))
            yield namespace, str(labels.get("kubernetes.io/service-name"))
    for endpoints in by_kind.get("Endpoints", ()):
        _, namespace, own = name_of(endpoints)
        subsets = [_mapping(part) for part in endpoints.get("subsets") or ()]
        if any(part.get("addresses") or part.get("notReadyAddresses") for part in subsets):
            yield namespace, own
    pods: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for pod in by_kind.get("Pod", ()):
        if _mapping(pod.get("status")).get("phase") not in ("Succeeded", "Failed"):
            pods[name_of(pod)[1]].append(_mapping(_mapping(pod.get("metadata")).get("labels")))
    for service in by_kind.get("Service", ()):
        _, namespace, own = name_of(service)
        selector = _mapping(_mapping(service.get("spec")).get("selector"))
        if selector and any(selector.items() <= labels.items() for labels in pods[namespace]):
            yield namespace, own


def _workload_behind(
    namespace: str, selector: Mapping[str, Any], by_kind: Mapping[str, list[Manifest]]
) -> tuple[str, int]:
    """Returns (workload as text, its number of replicas) for a workload whose pods the selector would select; ("", 0)
    if there is none."""
    for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Rollout"):
        for owner in by_kind.get(kind, ()):
            template = _mapping(_mapping(owner.get("spec")).get("template"))
            labels = _mapping(_mapping(template.get("metadata")).get("labels"))
            if name_of(owner)[1] == namespace and selector.items() <= labels.items():
                replicas = _mapping(owner.get("spec")).get("replicas", 1)
                return f"{kind} {name_of(owner)[2]}", replicas if isinstance(replicas, int) else 1
    return "", 0


def _node_findings(manifests: Sequence[Manifest]) -> Iterator[_Finding]:
    machines = [node for node in manifests if not _is_kept_apart(node)]
    without = [node for node in machines if not _group_of_node(node)]
    if len(without) == len(machines):
        if machines:
            sentence, machine_count = "no node shows a node group", format_count(len(machines), "node")
            yield NotYet(reason=NO_GROUPS_READ(sentence), have=machine_count, need="a node with a group")
        return
    yield from ("Node" for _ in machines)
    for node in without:
        yield Orphan(
            name_of(node), NODE_WITHOUT_GROUP("the node shows no node group, but other nodes do"), _created(node)
        )


def _is_kept_apart(node: Manifest) -> bool:
    """Returns whether the node is in no pool by design: a control plane node, an edge node, or one of a serverless
    platform."""
    try:
        nature = nature_of_node(msgspec.convert(node, Node, strict=False))
    except msgspec.ValidationError:
        return False
    return any(nature.sign_of(kind) for kind in (NodeKind.CONTROL_PLANE, NodeKind.EDGE, NodeKind.SERVERLESS))


def _group_of_node(node: Manifest) -> bool:
    metadata = _mapping(node.get("metadata"))
    labels, annotations = _mapping(metadata.get("labels")), _mapping(metadata.get("annotations"))
    return any(key in labels for key in POOL_LABELS) or any(
        key in annotations for key in (CAPI_OWNER, OPENSHIFT_MACHINE, *POOL_ANNOTATIONS)
    )


def _created(manifest: Manifest) -> int | None:
    text = _mapping(manifest.get("metadata")).get("creationTimestamp")
    return parse_timestamp(text) if isinstance(text, str) else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
