"""What would evicted pods be given by policies, were they admitted again now? As the compactor asks, from a snapshot.

The very same steps: policies, facts and templates are heard as if a watch told of them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from trimtab.cluster.api.meta import Shape, get
from trimtab.cluster.api.workload import Templated
from trimtab.cluster.documents import Document
from trimtab.cluster.mistake import Mistake
from trimtab.cluster.pool import LABEL as POOL
from trimtab.cluster.snapshot import ConfigMap, Snapshot, decode, kind_of
from trimtab.command import files
from trimtab.command.plan.readmitted import Readmission
from trimtab.compaction.drain.memory import LABEL as STATE
from trimtab.compactor.admitting import TEMPLATE, TEMPLATES, Heard, template
from trimtab.kube.state import Change, What
from trimtab.policy.document import KIND, Policies
from trimtab.policy.held import holds
from trimtab.policy.load import load_document, load_policies
from trimtab.policy.subject import Terms

OWNERS = tuple(kind.removesuffix(TEMPLATE) for kind in TEMPLATES)
"""Kinds that make a lost pod again, of their template."""


def readmission(documents: Sequence[Document], snapshot: Snapshot, paths: Sequence[str], terms: Terms) -> Readmission:
    """By the policies of these paths, else by those of the snapshot."""
    policies, notes, mistakes = _policies(documents, paths)
    if mistakes or not policies.all:
        return Readmission(notes=tuple(notes), mistakes=tuple(mistakes))
    heard = Heard(replace(terms, own_namespace=_home(snapshot, terms.own_namespace)), policies)
    for change in _facts(snapshot, heard.terms.own_namespace):
        heard.hear(change)
    made = list(_templates(documents))
    for change in made:
        heard.hear(change)
    whose = "given" if paths else "of the snapshot"
    notes.append(f"pods are planned with what {len(policies.all)} policies {whose} would give them again")
    if not made:
        notes.append("no pod templates are in the snapshot: policies were taken to change nothing")
    return Readmission(again=heard.again(), notes=tuple(notes))


def _policies(documents: Iterable[Document], paths: Sequence[str]) -> tuple[Policies, list[str], list[Mistake]]:
    """A broken one of the snapshot is told and left out, as the compactor does; one that was given is a mistake."""
    if paths:
        loaded = load_policies(files.read(paths))
        return loaded.policies, [], list(loaded.mistakes)
    found = [load_document(document) for document in documents if kind_of(document.value) == KIND]
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


def _facts(snapshot: Snapshot, home: str) -> Iterator[Change[Any]]:
    for kind, hold in holds(home).items():
        for found in snapshot.objects.get(kind, ()):
            yield _added(kind, found, hold(found))


def _templates(documents: Iterable[Document]) -> Iterator[Change[Any]]:
    """Of owners that were read whole."""
    for document in documents:
        kind, value = kind_of(document.value), document.value
        if kind in OWNERS and isinstance(value.get("spec"), dict) and value["spec"].get("template"):
            found = decode(document, Templated)
            if not isinstance(found, Mistake):
                yield _added(f"{kind}{TEMPLATE}", found, template(found))


def _added(kind: str, found: Shape, held: Any) -> Change[Any]:
    meta = found.metadata  # type: ignore[attr-defined]
    return Change(What.ADDED, kind, (meta.namespace, meta.name), None, held)
