"""Makes a `LintSnapshot` from the documents of manifests or of a cluster.

Documents of kinds that no rule reads are ignored. A document that cannot be decoded is a mistake, unless its kind is a
custom one, because the `spec.template` of a custom kind need not be a pod template.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from trimtab.autoscaling.lint_snapshot import (
    DEFAULT_NAMESPACE,
    LintSnapshot,
    LintWorkload,
    MeasuredReservation,
    MonthlyPrice,
    subject_of,
)
from trimtab.autoscaling.objects import (
    KubeletConfiguration,
    LintNode,
    LintOwner,
    LintPod,
    LintPodSpec,
    LintTemplate,
    PolicyView,
    ServiceView,
)
from trimtab.autoscaling.rule import LintSubject
from trimtab.autoscaling.usage_history import UsageHistory
from trimtab.cluster.api.admissionregistration import EndpointSlice, MutatingWebhookConfiguration
from trimtab.cluster.api.autoscaling import CapacityBuffer, HorizontalPodAutoscaler, VerticalPodAutoscaler
from trimtab.cluster.api.core import LimitRange, Namespace, RuntimeClass
from trimtab.cluster.api.meta import ApiObject, Labels, change, value_or
from trimtab.cluster.api.workload import PodDisruptionBudget
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.kinds import POD, REPLICA_SET, GroupKind, built_in
from trimtab.cluster.operating_system import runs_on_windows
from trimtab.cluster.owner import kind_of_reference
from trimtab.cluster.pool_config import read_pools
from trimtab.cluster.pool_labels import POOL_LABEL
from trimtab.cluster.published_reservations import RESERVATIONS_KEY, RESERVATIONS_LABEL, decode_reservations
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.scaled_objects import KIND as SCALED_OBJECT
from trimtab.cluster.scaled_objects import add_keda_hpas, read_idle_replicas
from trimtab.cluster.snapshot import ConfigMap, decode_object
from trimtab.cluster.timestamps import Seconds
from trimtab.cluster.yaml_documents import Document, read_documents

OWNER_KINDS = (
    "Deployment",
    "StatefulSet",
    "DaemonSet",
    "ReplicaSet",
    "ReplicationController",
    "Job",
    "CronJob",
    "Rollout",
)
CLUSTER_KINDS = (
    "Node",
    "Namespace",
    "RuntimeClass",
    "MutatingWebhookConfiguration",
    "KubeletConfiguration",
    "PodPolicy",
)
"""Kinds whose objects have no namespace."""
SHAPES: dict[str, type[ApiObject]] = {
    **dict.fromkeys(OWNER_KINDS, LintOwner),
    "Pod": LintPod,
    "Node": LintNode,
    "Namespace": Namespace,
    "RuntimeClass": RuntimeClass,
    "LimitRange": LimitRange,
    "ConfigMap": ConfigMap,
    "Service": ServiceView,
    "HorizontalPodAutoscaler": HorizontalPodAutoscaler,
    "VerticalPodAutoscaler": VerticalPodAutoscaler,
    "PodDisruptionBudget": PodDisruptionBudget,
    "CapacityBuffer": CapacityBuffer,
    "MutatingWebhookConfiguration": MutatingWebhookConfiguration,
    "EndpointSlice": EndpointSlice,
    "KubeletConfiguration": KubeletConfiguration,
    "PodPolicy": PolicyView,
}
"""Kind → the struct into which its objects are decoded for the rules."""
LISTED_KINDS = tuple(kind for kind in SHAPES if kind not in ("Rollout", "KubeletConfiguration"))
"""Kinds that are listed in a live cluster. Secrets are not among them."""
_REVISION = "deployment.kubernetes.io/revision"
_VERSION = re.compile(r"v?1\.(\d+)")
S = TypeVar("S", bound=ApiObject)


@dataclass(slots=True)
class _Collected:
    """The objects of the documents by kind, collected while the documents are read."""

    objects: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    documents: dict[LintSubject, Document] = field(default_factory=dict)
    owners: dict[LintSubject, LintSubject] = field(default_factory=dict)
    mistakes: list[ConfigError] = field(default_factory=list)

    def objects_of(self, kind: str) -> tuple[Any, ...]:
        return tuple(self.objects.get(kind, ()))


@dataclass(frozen=True, slots=True)
class LintReading:
    """A snapshot for lint, and the mistakes in its documents."""

    snapshot: LintSnapshot
    mistakes: tuple[ConfigError, ...] = ()


def read_lint_snapshot(
    documents: Iterable[Document],
    *,
    is_live: bool = False,
    now: Seconds | None = None,
    minor: int | None = None,
    usage: UsageHistory | None = None,
    kinds: Iterable[str] = (),
    reservations: tuple[MeasuredReservation, ...] = (),
) -> LintReading:
    """Returns the snapshot of all documents. `kinds` are the kinds that were listed, even if there were no objects."""
    collected = _Collected()
    idle_replicas: dict[LintSubject, int] = {}
    for document in add_keda_hpas(documents):
        if document.kind == SCALED_OBJECT and (idle := read_idle_replicas(document)) is not None:
            target, replicas = idle
            idle_replicas[LintSubject(target.kind, target.namespace, target.name)] = replicas
        if document.kind is not None and document.kind in SHAPES:
            _collect_document(collected, document, document.kind)
    nodes: tuple[LintNode, ...] = collected.objects_of("Node")
    kubelets = (*collected.objects_of("KubeletConfiguration"), *_read_kubelet_maps(collected.objects_of("ConfigMap")))
    # The documents that are ConfigMaps of pools.
    snapshot = LintSnapshot(
        workloads=tuple(_read_workloads(collected)),
        hpas=collected.objects_of("HorizontalPodAutoscaler"),
        vpas=collected.objects_of("VerticalPodAutoscaler"),
        pdbs=collected.objects_of("PodDisruptionBudget"),
        pods=collected.objects_of("Pod"),
        nodes=nodes,
        namespaces=collected.objects_of("Namespace"),
        limit_ranges=collected.objects_of("LimitRange"),
        config_maps=collected.objects_of("ConfigMap"),
        services=collected.objects_of("Service"),
        buffers=collected.objects_of("CapacityBuffer"),
        mutating_webhooks=collected.objects_of("MutatingWebhookConfiguration"),
        endpoint_slices=collected.objects_of("EndpointSlice"),
        kubelets=kubelets,
        policies=collected.objects_of("PodPolicy"),
        pools=read_pools(
            [
                collected.documents[subject]
                for config_map in collected.objects_of("ConfigMap")
                if POOL_LABEL in value_or(config_map.metadata.labels, {})
                for subject in (subject_of("ConfigMap", config_map.metadata),)
            ]
        ).pools,
        kinds=frozenset((*collected.objects, *kinds)),
        is_live=is_live,
        minor=minor if minor is not None else _oldest_minor(nodes),
        now=now,
        usage=usage,
        reservations=reservations or tuple(_read_reservations(collected.objects_of("ConfigMap"))),
        documents=collected.documents,
        idle_replicas=idle_replicas,
        owners=collected.owners,
    )
    return LintReading(snapshot, tuple(collected.mistakes))


def _collect_document(collected: _Collected, document: Document, kind: GroupKind) -> None:
    decoded: Any = decode_object(document, SHAPES[kind])
    if isinstance(decoded, ConfigError):
        if kind != "Rollout":
            collected.mistakes.append(decoded)
        return
    if not decoded.metadata.name:
        # Files may have objects without a name, which the API server or a controller would give them.
        name = decoded.metadata.generate_name or f"document-{document.index + 1}"
        decoded = change(decoded, metadata=change(decoded.metadata, name=name))
    metadata = decoded.metadata
    namespace = "" if kind in CLUSTER_KINDS else metadata.namespace or DEFAULT_NAMESPACE
    subject = LintSubject(kind, namespace, metadata.name)
    # The same object in two files counts once; a later one replaces it, as when the files are applied in order.
    if subject in collected.documents:
        previous = collected.objects[kind]
        collected.objects[kind] = [
            shape
            for shape in previous
            if (shape.metadata.namespace or DEFAULT_NAMESPACE, shape.metadata.name)
            != (metadata.namespace or DEFAULT_NAMESPACE, metadata.name)
        ]
    collected.documents[subject] = document
    collected.objects[kind].append(decoded)
    if (owner := metadata.controller_owner) is not None:
        collected.owners[subject] = LintSubject(kind_of_reference(owner), namespace, owner.name)


def _read_kubelet_maps(config_maps: Iterable[ConfigMap]) -> Iterable[KubeletConfiguration]:
    """Yields the KubeletConfigurations that kubeadm keeps in ConfigMaps; each is named after its ConfigMap."""
    for config_map in config_maps:
        if config_map.metadata.name.startswith("kubelet-config") and "kubelet" in config_map.data:
            for document in read_documents(config_map.metadata.name, config_map.data["kubelet"].encode()).documents:
                decoded = decode_object(document, KubeletConfiguration)
                if not isinstance(decoded, ConfigError) and document.kind == "KubeletConfiguration":
                    yield change(decoded, metadata=config_map.metadata)


def _read_reservations(config_maps: Iterable[ConfigMap]) -> Iterable[MeasuredReservation]:
    """Yields the reservations that the recommender has measured and published, by pool and container runtime."""
    for config_map in config_maps:
        if RESERVATIONS_LABEL not in value_or(config_map.metadata.labels, {}):
            continue
        published = decode_reservations(config_map.data.get(RESERVATIONS_KEY, ""))
        for pool in () if isinstance(published, Unreadable) else published:
            yield MeasuredReservation(
                nodes=pool.pool, runtime=pool.runtime, cpu=pool.millicores, memory=pool.memory_bytes
            )


def _read_workloads(collected: _Collected) -> Iterable[LintWorkload]:
    """Yields the topmost controllers and the bare pods, as far as they have a pod template."""
    templates = _templates_by_owner(collected)
    selectors = {one.metadata.name: one.scheduling.node_selector for one in collected.objects_of("RuntimeClass")}
    for kind in OWNER_KINDS:
        for owner in collected.objects_of(kind):
            subject = LintSubject(built_in(kind), owner.metadata.namespace or DEFAULT_NAMESPACE, owner.metadata.name)
            if subject in collected.owners:
                continue
            template = owner.spec.job_template.spec.template if kind == "CronJob" else owner.spec.template
            if not template.spec.containers:
                template = templates.get(subject, template)
            if template.spec.containers:
                yield _build_workload(subject, owner, template, _is_windows(template.spec, selectors))
    for pod in collected.objects_of("Pod"):
        subject = LintSubject(POD, pod.metadata.namespace or DEFAULT_NAMESPACE, pod.metadata.name)
        if subject not in collected.owners and pod.spec.containers:
            yield LintWorkload(
                subject=subject,
                api_version="v1",
                metadata=pod.metadata,
                pod_labels=value_or(pod.metadata.labels, {}),
                pod_annotations=value_or(pod.metadata.annotations, {}),
                spec=pod.spec,
                template_path=("spec",),
                is_windows=_is_windows(pod.spec, selectors),
            )


def _templates_by_owner(collected: _Collected) -> dict[LintSubject, LintTemplate]:
    """Returns Deployment → the pod template of its newest ReplicaSet, because a capture has no templates of
    Deployments."""
    newest: dict[LintSubject, tuple[int, LintTemplate]] = {}
    for replica_set in collected.objects_of("ReplicaSet"):
        namespace = replica_set.metadata.namespace or DEFAULT_NAMESPACE
        owner = collected.owners.get(LintSubject(REPLICA_SET, namespace, replica_set.metadata.name))
        if owner is None or not replica_set.spec.template.spec.containers:
            continue
        annotations: Labels = value_or(replica_set.metadata.annotations, {})
        text = annotations.get(_REVISION, "0")
        revision = int(text) if text.isdecimal() and len(text) < 20 else 0
        if owner not in newest or newest[owner][0] < revision:
            newest[owner] = revision, replica_set.spec.template
    return {owner: template for owner, (_, template) in newest.items()}


def _is_windows(spec: LintPodSpec, class_selectors: Mapping[str, Labels]) -> bool:
    return runs_on_windows(spec, class_selectors.get(value_or(spec.runtime_class_name, ""), {}))


def _build_workload(subject: LintSubject, owner: LintOwner, template: LintTemplate, is_windows: bool) -> LintWorkload:
    job = subject.kind == "CronJob"
    metadata = template.metadata
    labels = {key: value for key, value in value_or(metadata.labels, {}).items() if key != "pod-template-hash"}
    return LintWorkload(
        subject=subject,
        api_version=owner.api_version,
        metadata=owner.metadata,
        pod_labels=labels,
        pod_annotations=value_or(metadata.annotations, {}),
        spec=template.spec,
        template_path=("spec", "jobTemplate", "spec", "template", "spec") if job else ("spec", "template", "spec"),
        replicas=value_or(owner.spec.replicas, None),
        status=owner.status,
        is_windows=is_windows,
    )


def _oldest_minor(nodes: Iterable[LintNode]) -> int | None:
    """Returns the minor version of the oldest kubelet, or None if there are no nodes. The API server is at least as
    new, because Kubernetes does not support nodes that are newer."""
    matches = [_VERSION.match(node.status.node_info.kubelet_version) for node in nodes]
    return min((int(match[1]) for match in matches if match is not None), default=None)


def parse_minor(text: str) -> int | None:
    """Returns the minor version in a text such as 1.36 or v1.36.2, or None if the text is not a version."""
    match = _VERSION.match(text)
    return int(match[1]) if match is not None else None


def with_usage(snapshot: LintSnapshot, usage: UsageHistory | None, price: MonthlyPrice | None = None) -> LintSnapshot:
    """Returns the snapshot with the known usage and the price added."""
    return replace(snapshot, usage=usage, price=price)


def reread_snapshot(snapshot: LintSnapshot, documents: Iterable[Document]) -> LintSnapshot:
    """Returns a snapshot of other documents, with what else is known about the cluster of the given one."""
    reading = read_lint_snapshot(
        documents,
        is_live=snapshot.is_live,
        now=snapshot.now,
        minor=snapshot.minor,
        usage=snapshot.usage,
        kinds=snapshot.kinds,
        reservations=snapshot.reservations,
    )
    return replace(reading.snapshot, price=snapshot.price)
