"""Computes from a snapshot the requests that evicted pods would get when they are created again, as the compactor does.

Policies, VerticalPodAutoscalers and facts are passed to the compactor's own code as watch events, and pod templates as
they are. If there are VerticalPodAutoscalers, an owner whose pod template is not in the snapshot is assumed to create
pods like its present ones.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from trimtab.cluster.api.autoscaling import VerticalPodAutoscaler
from trimtab.cluster.api.meta import ApiObject, Metadata, value_or
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.api.workload import PodTemplateSpec
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.format_count import format_count, join_first
from trimtab.cluster.next_pod import TEMPLATED_OWNERS
from trimtab.cluster.owner import OwnerKey, controller_key
from trimtab.cluster.pool import Pool
from trimtab.cluster.pool_labels import POOL_LABEL as POOL
from trimtab.cluster.resizable_pod import read_resizable_pods
from trimtab.cluster.snapshot import ConfigMap, Snapshot
from trimtab.cluster.timestamps import Seconds
from trimtab.cluster.yaml_documents import Document
from trimtab.compaction.drain.pool_state import STATE_LABEL as STATE
from trimtab.compaction.resize.propose import ResizeContext, propose_resizes
from trimtab.compaction.resize.types import ResizeAdvice
from trimtab.compactor.readmission_state import ReadmissionState
from trimtab.inputs import live_cluster
from trimtab.inputs.owner_templates import Templates, complete_kinds, may_differ, owners_of_pods, read_templates
from trimtab.inputs.readmission import Readmission
from trimtab.kube.watch_state import ChangeType, WatchEvent
from trimtab.policy.load import load_document, load_policies
from trimtab.policy.pod_context import AdmissionSettings
from trimtab.policy.podpolicy import Policies
from trimtab.policy.policy_kind import KIND
from trimtab.policy.watched_facts import projections_by_kind
from trimtab.scheduling.cluster_model import Again, with_largest_requests


def build_readmission(
    documents: Sequence[Document],
    snapshot: Snapshot,
    paths: Sequence[str],
    terms: AdmissionSettings,
    now: Seconds | None,
    inventory: Inventory,
    pools: Sequence[Pool] | None = None,
) -> Readmission:
    """Returns the requests that pods would get from the templates of their owners, from policies and from VPAs if they
    were created again.

    The policies are those of `paths`, or else of the snapshot; the VPAs are those of the snapshot that act. `pools` are
    needed to propose resizes of running pods; without them none is proposed.
    """
    policies, notes, mistakes = load_planned_policies(documents, paths)
    all_vpas = snapshot.objects_of(VerticalPodAutoscaler)
    vpas = [vpa for vpa in all_vpas if vpa.spec.update_policy.update_mode != "Off"]
    if mistakes:
        return Readmission(notes=tuple(notes), mistakes=tuple(mistakes))
    templates = read_templates(documents, owners_of_pods(inventory))
    if not (policies.all or all_vpas or may_differ(inventory, snapshot, templates)):
        return Readmission(notes=tuple(notes))
    # No policy applies to pods of Trimtab's own namespace, so the namespace has to be that of the captured cluster.
    # The namespace of Trimtab: the namespace of the ConfigMaps of pools and of their state. Returns `default` if
    # there are no such ConfigMaps, or if they are in several namespaces.
    namespaces = {
        shape.metadata.namespace
        for shape in snapshot.objects_of(ConfigMap)
        if {POOL, STATE} & set(value_or(shape.metadata.labels, {}))
    }
    settings = replace(terms, own_namespace=min(namespaces) if len(namespaces) == 1 else terms.own_namespace)
    state = ReadmissionState(settings, policies, complete_kinds(snapshot))
    for event in _fact_events(snapshot, state.settings.own_namespace):
        state.apply_change(event)
    for owner, template in templates.items():
        state.put_template(owner, template)
    if policies.all:
        whose = "of --policies" if paths else "of the snapshot"
        count = format_count(len(policies.all), "policy", "policies")
        notes.append(f"the plan assumes the requests that pods get from {count} {whose} when they are created again")
        if not templates:
            notes.append("the snapshot contains no pod templates, so Trimtab assumes that policies change no pod")
    resizes = None
    if pools is not None:
        resizes = _propose_resizes(state, snapshot, inventory, pools, now)
    if all_vpas:
        # These pods are admitted already: they mostly have what policies set, but a VPA may recommend more by now.
        for owner, template in _templates_of_pods(snapshot, templates):
            state.put_template(owner, template, is_assumed=True)
        notes += _vpa_notes(vpas) if vpas else []
    lookup = with_largest_requests(inventory, state.requests_lookup(now))
    if lookup is not None and not (policies.all or all_vpas):
        notes += _template_notes(inventory, lookup)
    return Readmission(readmitted_requests=lookup, notes=tuple(notes), resizes=resizes)


def _template_notes(inventory: Inventory, lookup: Again) -> list[str]:
    larger = [pod for pod in inventory.pods if not pod.is_finished and isinstance(lookup(pod), Mapping)]
    if not larger:
        return []
    count, they = format_count(len(larger), "pod"), "it requests" if len(larger) == 1 else "they request"
    return [
        f"the plan counts {count} with what the next pods of the owners may request, because {they} less, as after a "
        "resize in place, before an update, or if an owner has several templates: "
        f"{join_first([pod.key for pod in larger], 3)}"
    ]


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


def _templates_of_pods(snapshot: Snapshot, templates: Templates) -> Iterator[tuple[OwnerKey, PodTemplateSpec]]:
    """Yields a template for each owner without a known one; the first of its pods by name serves as template."""
    first_pods: dict[OwnerKey, Pod] = {}
    # Sorted, so that a plan does not depend on the order of objects in the snapshot.
    for pod in sorted(snapshot.objects_of(Pod), key=lambda pod: pod.metadata.name):
        owner = controller_key(pod.metadata, pod.metadata.namespace)
        if owner is not None and owner.kind in TEMPLATED_OWNERS and owner not in templates:
            first_pods.setdefault(owner, pod)
    for owner, pod in first_pods.items():
        meta = Metadata(labels=pod.metadata.labels, annotations=pod.metadata.annotations)
        yield owner, PodTemplateSpec(metadata=meta, spec=pod.spec)


def load_planned_policies(
    documents: Iterable[Document], paths: Sequence[str]
) -> tuple[Policies, list[str], list[ConfigError]]:
    """Returns the policies of a plan, notes and mistakes: those of the files, or else those of the snapshot.

    An invalid policy in the snapshot is ignored and noted, as the compactor ignores it; an invalid policy in `paths` is
    a mistake.
    """
    if paths:
        loaded = load_policies(live_cluster.read_paths(paths))
        return loaded.policies, [], list(loaded.mistakes)
    readings = [load_document(document) for document in documents if document.kind == KIND]
    notes = [f"an invalid policy is ignored: {mistake}" for _, mistakes in readings for mistake in mistakes]
    return Policies.from_policies(*(policy for policy, _ in readings if policy is not None)), notes, []


def _fact_events(snapshot: Snapshot, own_namespace: str) -> Iterator[WatchEvent[Any]]:
    for kind, extract in projections_by_kind(own_namespace).items():
        for shape in snapshot.objects.get(kind, ()):
            yield _added_event(kind, shape, extract(shape))


def _added_event(kind: str, shape: ApiObject, content: Any) -> WatchEvent[Any]:
    meta = shape.metadata  # type: ignore[attr-defined]
    return WatchEvent(ChangeType.ADDED, kind, (meta.namespace, meta.name), None, content)
