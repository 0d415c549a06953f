"""Computes from a snapshot the requests that evicted pods would get when they are created again, as the compactor does.

Policies, VerticalPodAutoscalers, facts and pod templates are passed to the compactor's own code as watch events. If
there are VerticalPodAutoscalers, an owner whose pod template is not in the snapshot is assumed to create pods like its
present one.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trimtab.cluster.api.autoscaling import VerticalPodAutoscaler
from trimtab.cluster.api.meta import ApiObject, Metadata, value_or
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.api.workload import PodTemplateSpec, Templated
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.format_count import format_count
from trimtab.cluster.owner import kind_of_reference
from trimtab.cluster.pool import Pool
from trimtab.cluster.pool_labels import POOL_LABEL as POOL
from trimtab.cluster.resizable_pod import read_resizable_pods
from trimtab.cluster.snapshot import ConfigMap, Snapshot, decode_object
from trimtab.cluster.timestamps import Seconds
from trimtab.cluster.yaml_documents import Document
from trimtab.compaction.drain.pool_state import STATE_LABEL as STATE
from trimtab.compaction.resize.propose import ResizeContext, propose_resizes
from trimtab.compaction.resize.types import ResizeAdvice
from trimtab.compactor.successor_requests import TEMPLATE, TEMPLATE_KINDS, ReadmissionState, keep_template
from trimtab.inputs import live_cluster
from trimtab.kube.watch_state import ChangeType, WatchEvent
from trimtab.policy.load import load_document, load_policies
from trimtab.policy.pod_context import AdmissionSettings
from trimtab.policy.podpolicy import KIND, Policies
from trimtab.policy.retained_facts import projections_by_kind
from trimtab.scheduling.cluster_model import Again


@dataclass(frozen=True, slots=True, kw_only=True)
class Readmission:
    """The requests that pods would get if they were created again, with the notes and mistakes of the policies."""

    readmitted_requests: Again | None = None
    """Returns the requests of a pod that is created again; None if there is no policy, so that pods keep their present
    requests."""
    notes: tuple[str, ...] = ()
    mistakes: tuple[ConfigError, ...] = ()
    resizes: ResizeAdvice | None = None
    """The resizes that policies permit for running pods, or None if no policy does, or if they were not requested."""


Key = tuple[str, str]
"""(namespace, name) of an object."""
TEMPLATE_OWNERS = tuple(kind.removesuffix(TEMPLATE) for kind in TEMPLATE_KINDS)
"""The kinds whose controller replaces a lost pod by a new one from its pod template."""


def build_readmission(
    documents: Sequence[Document],
    snapshot: Snapshot,
    paths: Sequence[str],
    terms: AdmissionSettings,
    now: Seconds | None,
    pools: Sequence[Pool] | None = None,
    inventory: Inventory | None = None,
) -> Readmission:
    """Returns the requests that pods would get from policies and from VPAs if they were created again.

    The policies are those of `paths`, or else of the snapshot; the VPAs are those of the snapshot that act. `pools` and
    `inventory` are needed to propose resizes of running pods; without them none is proposed.
    """
    policies, notes, mistakes = _load_policies(documents, paths)
    all_vpas = snapshot.objects_of(VerticalPodAutoscaler)
    vpas = [vpa for vpa in all_vpas if vpa.spec.update_policy.update_mode != "Off"]
    if mistakes or not (policies.all or all_vpas):
        return Readmission(notes=tuple(notes), mistakes=tuple(mistakes))
    # No policy applies to pods of Trimtab's own namespace, so the namespace has to be that of the captured cluster.
    state = ReadmissionState(
        replace(terms, own_namespace=_installation_namespace(snapshot, terms.own_namespace)), policies
    )
    for event in _fact_events(snapshot, state.settings.own_namespace):
        state.apply_change(event)
    templates = list(_template_events(documents))
    for event in templates:
        state.apply_change(event)
    if policies.all:
        whose = "of --policies" if paths else "of the snapshot"
        count = format_count(len(policies.all), "policy", "policies")
        notes.append(f"the plan assumes the requests that pods get from {count} {whose} when they are created again")
        if not templates:
            notes.append("the snapshot contains no pod templates, so Trimtab assumes that policies change no pod")
    resizes = None
    if pools is not None and inventory is not None:
        resizes = _propose_resizes(state, snapshot, inventory, pools, now)
    if all_vpas:
        # These pods are admitted already: they mostly have what policies set, but a VPA may recommend more by now.
        for event in _templates_of_pods(snapshot, {(event.kind, event.key) for event in templates}):
            state.apply_change(event)
        notes += _vpa_notes(vpas) if vpas else []
    return Readmission(readmitted_requests=state.requests_lookup(now), notes=tuple(notes), resizes=resizes)


def _propose_resizes(
    state: ReadmissionState, snapshot: Snapshot, inventory: Inventory, pools: Sequence[Pool], now: Seconds | None
) -> ResizeAdvice | None:
    """Returns the resizes that policies permit for pods in the snapshot, on the assumption that all kubelets support
    them."""
    wanted = state.running_requests_lookup(now)
    if wanted is None:
        return None
    context = ResizeContext(now=now, top_owner=state.top_owner_of, assumes_kubelets=True)
    return propose_resizes(read_resizable_pods(snapshot.objects_of(Pod)), wanted, inventory, pools, context=context)


def _vpa_notes(vpas: Sequence[VerticalPodAutoscaler]) -> list[str]:
    without_recommendation = sum(not vpa.status.recommendation.container_recommendations for vpa in vpas)
    count = "1 VerticalPodAutoscaler" if len(vpas) == 1 else f"{len(vpas)} VerticalPodAutoscalers"
    notes = [f"the plan assumes for each pod at least the requests that {count} would set"]
    if without_recommendation:
        notes.append(
            f"{without_recommendation} of the VerticalPodAutoscalers recommend nothing yet: their pods are not "
            "moved on the first day, and are then planned with their present requests"
        )
    return notes


def _templates_of_pods(snapshot: Snapshot, known_templates: Collection[tuple[str, Key]]) -> Iterator[WatchEvent[Any]]:
    """Yields an event for each owner without a known pod template; the first of its pods by name serves as template."""
    first_pods: dict[tuple[str, Key], Pod] = {}
    # Sorted, so that a plan does not depend on the order of objects in the snapshot.
    for pod in sorted(snapshot.objects_of(Pod), key=lambda pod: pod.metadata.name):
        owner = pod.metadata.controller_owner
        owner_kind = kind_of_reference(owner) if owner is not None else None
        if owner is not None and owner_kind in TEMPLATE_OWNERS:
            first_pods.setdefault((f"{owner_kind}{TEMPLATE}", (pod.metadata.namespace, owner.name)), pod)
    for (kind, key), pod in first_pods.items():
        if (kind, key) not in known_templates:
            meta = Metadata(labels=pod.metadata.labels, annotations=pod.metadata.annotations)
            yield WatchEvent(ChangeType.ADDED, kind, key, None, PodTemplateSpec(metadata=meta, spec=pod.spec))


def _load_policies(
    documents: Iterable[Document], paths: Sequence[str]
) -> tuple[Policies, list[str], list[ConfigError]]:
    """Returns the policies, notes and mistakes.

    An invalid policy in the snapshot is ignored and noted, as the compactor ignores it; an invalid policy in `paths` is
    a mistake.
    """
    if paths:
        loaded = load_policies(live_cluster.read_paths(paths))
        return loaded.policies, [], list(loaded.mistakes)
    readings = [load_document(document) for document in documents if document.kind == KIND]
    notes = [f"an invalid policy is ignored: {mistake}" for _, mistakes in readings for mistake in mistakes]
    return Policies.from_policies(*(policy for policy, _ in readings if policy is not None)), notes, []


def _installation_namespace(snapshot: Snapshot, default: str) -> str:
    """Returns the namespace of Trimtab: the namespace of the ConfigMaps of pools and of their state.

    Returns `default` if there are no such ConfigMaps, or if they are in several namespaces."""
    namespaces = {
        shape.metadata.namespace
        for shape in snapshot.objects_of(ConfigMap)
        if {POOL, STATE} & set(value_or(shape.metadata.labels, {}))
    }
    return min(namespaces) if len(namespaces) == 1 else default


def _fact_events(snapshot: Snapshot, own_namespace: str) -> Iterator[WatchEvent[Any]]:
    for kind, extract in projections_by_kind(own_namespace).items():
        for shape in snapshot.objects.get(kind, ()):
            yield _added_event(kind, shape, extract(shape))


def _template_events(documents: Iterable[Document]) -> Iterator[WatchEvent[Any]]:
    """Yields an event for every owner in the snapshot that has a pod template."""
    for document in documents:
        kind = document.kind
        spec = document.value.get("spec") if kind in TEMPLATE_OWNERS else None
        if isinstance(spec, dict) and spec.get("template"):
            owner = decode_object(document, Templated)
            if not isinstance(owner, ConfigError):
                yield _added_event(f"{kind}{TEMPLATE}", owner, keep_template(owner))


def _added_event(kind: str, shape: ApiObject, content: Any) -> WatchEvent[Any]:
    meta = shape.metadata  # type: ignore[attr-defined]
    return WatchEvent(ChangeType.ADDED, kind, (meta.namespace, meta.name), None, content)
