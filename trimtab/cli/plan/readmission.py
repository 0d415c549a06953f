"""What would evicted pods ask for, were they admitted again now? As the compactor asks, from a snapshot.

The very same steps: policies, VPAs, facts and templates are heard as if a watch told of them. Where VPAs act, an owner
whose template is not in the snapshot is taken to make pods like the one it has.

What came of asking policies about successors.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trimtab.cli import live_cluster
from trimtab.cluster.api.autoscaling import VerticalPodAutoscaler
from trimtab.cluster.api.meta import ApiObject, Metadata, get
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.api.workload import PodTemplateSpec, Templated
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.pool import LABEL as POOL
from trimtab.cluster.snapshot import ConfigMap, Snapshot, decode
from trimtab.cluster.timestamps import Seconds
from trimtab.cluster.yaml_documents import Document
from trimtab.compaction.drain.pool_state import LABEL as STATE
from trimtab.compactor.readmission import TEMPLATE, TEMPLATES, ReadmissionState, template
from trimtab.kube.watch_state import ChangeType, WatchEvent
from trimtab.policy.load import load_document, load_policies
from trimtab.policy.pod_context import AdmissionSettings
from trimtab.policy.podpolicy import KIND, Policies
from trimtab.policy.retained_facts import holds
from trimtab.scheduling.cluster_model import Again


@dataclass(frozen=True, slots=True, kw_only=True)
class Readmission:
    again: Again | None = None
    """None: no policy stands, pods ask again for what they ask now."""
    notes: tuple[str, ...] = ()
    mistakes: tuple[ConfigError, ...] = ()


Key = tuple[str, str]
"""(namespace, name)."""
OWNERS = tuple(kind.removesuffix(TEMPLATE) for kind in TEMPLATES)
"""Kinds that make a lost pod again, of their template."""


def readmission(
    documents: Sequence[Document],
    snapshot: Snapshot,
    paths: Sequence[str],
    terms: AdmissionSettings,
    now: Seconds | None,
) -> Readmission:
    """By the policies of these paths, else by those of the snapshot; and by the snapshot's VPAs that act."""
    policies, notes, mistakes = _policies(documents, paths)
    vpas = [found for found in snapshot.all(VerticalPodAutoscaler) if found.spec.update_policy.update_mode != "Off"]
    if mistakes or not (policies.all or vpas):
        return Readmission(notes=tuple(notes), mistakes=tuple(mistakes))
    heard = ReadmissionState(replace(terms, own_namespace=_home(snapshot, terms.own_namespace)), policies)
    for change in _facts(snapshot, heard.terms.own_namespace):
        heard.hear(change)
    made = list(_templates(documents))
    for change in made:
        heard.hear(change)
    if policies.all:
        whose = "given" if paths else "of the snapshot"
        notes.append(f"pods are planned with what {len(policies.all)} policies {whose} would give them again")
        if not made:
            notes.append("no pod templates are in the snapshot: policies were taken to change nothing")
    if vpas:
        # These pods were admitted already: what policies say of them mostly stands in them, what a VPA says may not.
        for change in _templates_of_pods(snapshot, {(change.kind, change.key) for change in made}):
            heard.hear(change)
        notes += _vpa_notes(vpas)
    return Readmission(again=heard.again(now), notes=tuple(notes))


def _vpa_notes(vpas: Sequence[VerticalPodAutoscaler]) -> list[str]:
    silent = sum(not found.status.recommendation.container_recommendations for found in vpas)
    notes = [f"pods are planned with at least what {len(vpas)} VerticalPodAutoscalers that act would give them"]
    if silent:
        notes.append(
            f"{silent} of them recommend nothing: their pods stay for the first day, then they are planned with what"
            " they ask for now"
        )
    return notes


def _templates_of_pods(snapshot: Snapshot, known: Collection[tuple[str, Key]]) -> Iterator[WatchEvent[Any]]:
    """For each owner whose template is not known the pod of it that comes first by name, as if it were the template."""
    first: dict[tuple[str, Key], Pod] = {}
    for pod in sorted(snapshot.all(Pod), key=lambda pod: pod.metadata.name):
        above = pod.metadata.controller
        if above is not None and above.kind in OWNERS:
            first.setdefault((f"{above.kind}{TEMPLATE}", (pod.metadata.namespace, above.name)), pod)
    for (kind, key), pod in first.items():
        if (kind, key) not in known:
            meta = Metadata(labels=pod.metadata.labels, annotations=pod.metadata.annotations)
            yield WatchEvent(ChangeType.ADDED, kind, key, None, PodTemplateSpec(metadata=meta, spec=pod.spec))


def _policies(documents: Iterable[Document], paths: Sequence[str]) -> tuple[Policies, list[str], list[ConfigError]]:
    """A broken one of the snapshot is told and left out, as the compactor does; one that was given is a mistake."""
    if paths:
        loaded = load_policies(live_cluster.read(paths))
        return loaded.policies, [], list(loaded.mistakes)
    found = [load_document(document) for document in documents if document.kind == KIND]
    notes = [f"left out: {mistake}" for _, mistakes in found for mistake in mistakes]
    return Policies.of(*(policy for policy, _ in found if policy is not None)), notes, []


def _home(snapshot: Snapshot, otherwise: str) -> str:
    """Our own namespace: where pools or their state lie."""
    ours = {
        shape.metadata.namespace
        for shape in snapshot.all(ConfigMap)
        if {POOL, STATE} & set(get(shape.metadata.labels, {}))
    }
    return min(ours) if len(ours) == 1 else otherwise


def _facts(snapshot: Snapshot, home: str) -> Iterator[WatchEvent[Any]]:
    for kind, hold in holds(home).items():
        for found in snapshot.objects.get(kind, ()):
            yield _added(kind, found, hold(found))


def _templates(documents: Iterable[Document]) -> Iterator[WatchEvent[Any]]:
    """Of owners that were read whole."""
    for document in documents:
        kind = document.kind
        spec = document.value.get("spec") if kind in OWNERS else None
        if isinstance(spec, dict) and spec.get("template"):
            found = decode(document, Templated)
            if not isinstance(found, ConfigError):
                yield _added(f"{kind}{TEMPLATE}", found, template(found))


def _added(kind: str, found: ApiObject, held: Any) -> WatchEvent[Any]:
    meta = found.metadata  # type: ignore[attr-defined]
    return WatchEvent(ChangeType.ADDED, kind, (meta.namespace, meta.name), None, held)
