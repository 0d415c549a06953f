"""The pods of manifests as the cluster would store them: for `trimtab plan --for FILE`.

Each pod passes the API server's admission with the policies of the cluster, so its priority, its overhead, the defaults
of LimitRanges and what policies change count. Objects of other kinds in the manifest, such as a PriorityClass or a
claim, count as objects of the cluster. A pod that would be refused, or whose class is not known, is a refusal with its
reason.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trimtab.admission.admission_context import AdmissionContext
from trimtab.admission.apiserver.outcome import PodRejected
from trimtab.admission.apiserver.pod_classes import BUILT_IN
from trimtab.admission.pod_templates import PodTemplateLocation, why_not_admitted
from trimtab.admission.preview import preview_admission
from trimtab.admission.template_owners import find_counted_owners
from trimtab.admission.total_quota_use import NewPods, list_small_quotas
from trimtab.cluster.api.core import PriorityClass, RuntimeClass
from trimtab.cluster.api.meta import UNSET, Metadata, SelectorRequirement, change, value_or
from trimtab.cluster.api.pod import (
    Affinity,
    ClaimVolume,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    Volume,
    required_node_terms,
)
from trimtab.cluster.api.storage import CSIDriver, PersistentVolume, PersistentVolumeClaim, StorageClass
from trimtab.cluster.claims import Claim, choose_default_class, read_claims
from trimtab.cluster.cluster_state import TOLERATED, Inventory, list_capacity_drivers
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.format_count import format_count, join_first
from trimtab.cluster.kinds import STATEFUL_SET, kind_name
from trimtab.cluster.node import ARCH_LABELS, OS_LABELS, NodeInfo
from trimtab.cluster.pod import PodInfo, PodReader
from trimtab.cluster.reason import Reason
from trimtab.cluster.snapshot import Snapshot, build_snapshot, decode_object
from trimtab.cluster.yaml_documents import Document, value_at
from trimtab.compaction.room import reasons as r
from trimtab.compaction.room.room_plan import NoRoom
from trimtab.inputs.command_faults import UsageError
from trimtab.inputs.owner_templates import complete_kinds
from trimtab.inputs.planned_requests import load_planned_policies
from trimtab.inputs.wanted_pods import WantedPods
from trimtab.policy.cluster_facts import ClusterFacts, from_snapshot
from trimtab.policy.pod_context import AdmissionSettings
from trimtab.scheduling.node_filters import node_rejection_reason


@dataclass(frozen=True, slots=True)
class _Claims:
    """The claims of the new pods that no object of the cluster is yet."""

    snapshot: Snapshot
    """The cluster with the objects of the manifests, but without pods."""
    inventory: Inventory
    shapes: dict[tuple[str, str], PersistentVolumeClaim] = field(default_factory=dict)

    def add_template(self, namespace: str, name: str, template: Any) -> None:
        """Adds the claim that a controller would create from this template, unless the claim exists already."""
        value = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": template.get("spec") or {}}
        shape = decode_object(Document(file="--for", index=0, value=value), PersistentVolumeClaim)
        if not isinstance(shape, ConfigError) and (namespace, name) not in self.inventory.claims:
            self.shapes[namespace, name] = change(shape, metadata=Metadata(name=name, namespace=namespace))

    def read_all(self) -> dict[tuple[str, str], Claim]:
        """Returns (namespace, name) → claim: those of the cluster, of the manifests, and from templates."""
        snapshot = self.snapshot
        for shape in snapshot.objects_of(PersistentVolumeClaim):
            key = (shape.metadata.namespace or "default", shape.metadata.name)
            if key not in self.inventory.claims:
                self.shapes.setdefault(key, change(shape, metadata=Metadata(name=key[1], namespace=key[0])))
        classes = snapshot.objects_of(StorageClass)
        shapes = [choose_default_class(shape, classes) for shape in self.shapes.values()]
        drivers = list_capacity_drivers(snapshot.objects_of(CSIDriver))
        more = read_claims(shapes, snapshot.objects_of(PersistentVolume), classes, drivers)
        return {**dict(more), **self.inventory.claims}


def admit_manifests(
    documents: Sequence[Document],
    templates: Sequence[PodTemplateLocation],
    cluster_documents: Sequence[Document],
    inventory: Inventory,
    policy_paths: Sequence[str],
    settings: AdmissionSettings,
) -> WantedPods:
    """Returns the pods of the manifests with all their replicas, as the cluster would store them.

    `documents`: the manifests, with objects of all kinds; `templates`: those of their pods. Raises UsageError with the
    mistakes in policies and in the manifests."""
    objects = build_snapshot([*(one for one in cluster_documents if one.kind != "Pod"), *documents])
    policies, notes, mistakes = load_planned_policies(cluster_documents, policy_paths)
    if mistakes or objects.mistakes:
        raise UsageError([*mistakes, *objects.mistakes])
    snapshot = objects.snapshot
    facts = replace(from_snapshot(snapshot), listed_kinds=complete_kinds(snapshot))
    counted = find_counted_owners(templates, facts)
    notes += [cause for document in documents if (cause := why_not_admitted(document)) is not None]
    own_templates = [template for template, owner in zip(templates, counted, strict=True) if owner is None]
    existing = {owner for owner in inventory.owners if owner in {template.key for template in own_templates}}
    notes += [
        f"{owner.described} exists already: its pods in the cluster count in addition to those of the manifest"
        for owner in sorted(existing)
    ]
    claims, reader = _Claims(snapshot, inventory), PodReader()
    pods: list[PodInfo] = []
    name_counts: Counter[str] = Counter()
    stored: list[NewPods] = []
    for template in own_templates:
        context = AdmissionContext(policies=policies, facts=_known_facts(template, facts), settings=settings)
        preview = preview_admission(template.pod, template.namespace, context)
        pod = preview.result
        reason = _refuse(pod, template) if isinstance(pod, PodRejected) else _find_unknown_class(pod.pod, context.facts)
        if reason is not None or isinstance(pod, PodRejected):
            name = f"{template.namespace}/{template.name or 'wanted'}"
            refusal = None if reason is None else NoRoom(pod=name, reason=reason, placed=0)
            return WantedPods(pods=(), inventory=inventory, refusal=refusal, notes=tuple(notes))
        placeable, platform_notes = _assume_platform(pod.pod, template, inventory)
        notes += platform_notes
        if is_daemon_set(template):
            named, node_notes = _pods_of_nodes(placeable, template, inventory, reader)
            notes += node_notes
        else:
            named = list(_number_replicas(placeable, template, claims, name_counts))
        if pod.pod.spec.scheduling_gates and named:
            notes.append(f"pods of {template.document.entry_name} wait for their scheduling gates first")
        pods += map(reader.read_pod, named)
        stored.append(NewPods(namespace=template.namespace, pod=pod.pod, count=len(named)))
    refusal = next(
        (NoRoom(pod="", reason=r.QUOTA_TOO_SMALL(text), placed=0) for text in list_small_quotas(stored, facts)), None
    )
    daemons = tuple(one for one in inventory.missing_daemons if one.owner not in existing)
    cluster = replace(inventory, claims=claims.read_all(), missing_daemons=daemons)
    return WantedPods(
        pods=tuple(pods) if refusal is None else (),
        inventory=cluster,
        refusal=refusal,
        notes=tuple(dict.fromkeys(notes)),
    )


def is_daemon_set(template: PodTemplateLocation) -> bool:
    """Returns whether the object has one pod for each node that it selects, such as a DaemonSet."""
    return bool(template.path) and kind_name(template.kind).endswith("DaemonSet")


def _known_facts(template: PodTemplateLocation, facts: ClusterFacts) -> ClusterFacts:
    """Returns the facts of the cluster with the owners of the pod. The PriorityClasses of the system exist even if no
    class was read."""
    facts = template.with_owners(facts)
    if value_or(template.pod.spec.priority_class_name, "") in BUILT_IN:
        return replace(facts, listed_kinds=facts.listed_kinds | {PriorityClass.__name__})
    return facts


def _refuse(rejection: PodRejected, template: PodTemplateLocation) -> Reason:
    return r.NOT_ADMITTED(f"a pod of {template.document.entry_name} would be refused: {rejection.message}")


def _find_unknown_class(pod: Pod, facts: ClusterFacts) -> Reason | None:
    """Returns why the priority or the overhead of the pod is not known, or None if both are."""
    named = (
        (PriorityClass.__name__, value_or(pod.spec.priority_class_name, ""), "priority"),
        (RuntimeClass.__name__, value_or(pod.spec.runtime_class_name, ""), "overhead"),
    )
    for kind, name, what in named:
        if name and kind not in facts.listed_kinds:
            return r.CLASS_NOT_KNOWN(
                f"the pod names the {kind} {name}, and the snapshot has no {kind}, so the pod's {what} is not known"
            )
    return None


def _assume_platform(pod: Pod, template: PodTemplateLocation, inventory: Inventory) -> tuple[Pod, list[str]]:
    """Returns the pod, which selects Linux if it names no operating system and the cluster has several; and notes about
    what its images decide. Most images are for Linux, and kube-scheduler does not look at them."""
    spec, name = pod.spec, template.document.entry_name
    named = {*value_or(spec.node_selector, {})}
    named |= {one.key for term in required_node_terms(spec) for one in value_or(term.match_expressions, ())}
    systems = {node.operating_system for node in inventory.nodes} - {""}
    notes = []
    if len(systems) > 1 and spec.os is UNSET and named.isdisjoint(OS_LABELS):
        notes.append(f"pods of {name} name no operating system, so Trimtab assumes Linux")
        selector = {**value_or(spec.node_selector, {}), OS_LABELS[0]: "linux"}
        pod = change(pod, spec=change(spec, node_selector=selector))
    architectures = sorted({node.architecture for node in inventory.nodes} - {""})
    if len(architectures) > 1 and named.isdisjoint(ARCH_LABELS):
        notes.append(
            f"pods of {name} name no architecture, so their images have to be for {join_first(architectures, 3)}"
        )
    return pod, notes


def _number_replicas(
    pod: Pod, template: PodTemplateLocation, claims: _Claims, name_counts: Counter[str]
) -> Iterator[Pod]:
    """Yields every replica as a pod of its own, with the claims that its controller makes for it. `name_counts`: the
    beginning of a name → how many pods have it already."""
    metadata: Metadata = pod.metadata
    is_numbered = kind_name(template.kind) == STATEFUL_SET
    base = template.name if is_numbered else metadata.name or f"{metadata.generate_name or 'wanted-'}".rstrip("-")
    start = value_at(template.document.value, ("spec", "ordinals", "start")) if is_numbered else name_counts[base]
    first = start if isinstance(start, int) else 0
    name_counts[base] += template.replicas
    claim_templates = value_at(template.document.value, (*template.path[:-1], "volumeClaimTemplates"))
    for number in range(first, first + template.replicas):
        name = f"{base}-{number}" if is_numbered or template.replicas > 1 or first else base
        volumes = {volume.name: volume for volume in value_or(pod.spec.volumes, ())}
        for one in claim_templates if template.path and isinstance(claim_templates, list) else ():
            label = str(value_at(one, ("metadata", "name")) or "")
            claim = f"{label}-{name}"
            volumes[label] = Volume(name=label, persistent_volume_claim=ClaimVolume(claim_name=claim))
            claims.add_template(template.namespace, claim, one)
        for volume in volumes.values():
            if isinstance(volume.ephemeral, Mapping):
                claim_template = volume.ephemeral.get("volumeClaimTemplate") or {}
                claims.add_template(template.namespace, f"{name}-{volume.name}", claim_template)
        named = change(metadata, name=name, namespace=template.namespace)
        yield change(pod, metadata=named, spec=change(pod.spec, node_name="", volumes=tuple(volumes.values())))


def _pods_of_nodes(
    pod: Pod, template: PodTemplateLocation, inventory: Inventory, reader: PodReader
) -> tuple[list[Pod], list[str]]:
    """Returns one pod for each node that the DaemonSet selects and on which it has none, and notes about nodes that
    take no pods. Its controller pins each pod to its node by name (pkg/controller/daemon/util)."""
    pod = change(pod, spec=change(pod.spec, tolerations=(*value_or(pod.spec.tolerations, ()), *TOLERATED)))
    requirements = reader.read_pod(change(pod, metadata=change(pod.metadata, namespace=template.namespace)))
    occupied = {one.node for one in inventory.pods if one.owner == template.key}
    selected = [
        node
        for node in inventory.nodes
        if node.name not in occupied and node_rejection_reason(requirements.requirements, (), node) is None
    ]
    closed = [node.name for node in selected if not node.is_staying]
    notes = []
    if closed:
        names, nodes = join_first(closed, 3), format_count(len(closed), "node")
        notes.append(f"{nodes} that {template.document.entry_name} selects take no pods at present: {names}")
    return [_pin(pod, template, node) for node in selected if node.is_staying], notes


def _pin(pod: Pod, template: PodTemplateLocation, node: NodeInfo) -> Pod:
    field_of_name = SelectorRequirement(key="metadata.name", operator="In", values=(node.name,))
    affinity = value_or(pod.spec.affinity, Affinity())
    own = value_or(affinity.node_affinity, NodeAffinity())
    required = value_or(own.required, None)
    terms: Iterable[NodeSelectorTerm] = required.node_selector_terms if required is not None else (NodeSelectorTerm(),)
    pinned = tuple(
        change(term, match_fields=(*value_or(term.match_fields, ()), field_of_name))
        for term in terms
        if required is None or value_or(term.match_expressions, ()) or value_or(term.match_fields, ())
    )
    affinity = change(affinity, node_affinity=change(own, required=NodeSelector(node_selector_terms=pinned)))
    named = change(pod.metadata, name=f"{template.name}-{node.name}", namespace=template.namespace)
    return change(pod, metadata=named, spec=change(pod.spec, node_name="", affinity=affinity))
