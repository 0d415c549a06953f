"""Which pods would this manifest make?

A Pod is itself. Anything with a pod template (Deployment, StatefulSet, DaemonSet, Job, CronJob, and custom kinds
that have `spec.template.spec.containers`) stands for the pods its controller would create: names, owner and labels
as the real controllers write them.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from trimtab.cluster.api.meta import Metadata, OwnerReference, change, get
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.documents import Document
from trimtab.cluster.mistake import Mistake
from trimtab.cluster.owner import Owner
from trimtab.cluster.snapshot import decode, kind_of
from trimtab.cluster.yaml_text import Path
from trimtab.policy.facts import Facts

_SAFE = "bcdfghjklmnpqrstvwxz2456789"
"""The alphabet of generated names (apimachinery util/rand)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A manifest that makes pods."""

    document: Document
    kind: str
    name: str
    namespace: str
    path: Path
    """Where the pod stands in the document: () for a Pod, else the pod template."""
    pod: Pod
    """One pod as its controller would send it to the API server."""
    replicas: int = 1
    """How many of them; 1 where that is the cluster's to say (DaemonSet) or each run's (Job)."""
    owners: Mapping[tuple[str, str, str], Owner | None]
    """Owners that would exist with it, for the facts."""

    def facts(self, facts: Facts) -> Facts:
        """The facts of a cluster in which this manifest's controllers stand."""
        return replace(facts, owners={**facts.owners, **self.owners}) if self.owners else facts


def template(document: Document) -> Template | Mistake | None:
    """The pods of one document; None where it makes none; a Mistake where they cannot be read."""
    kind, path = kind_of(document.value), _path(document.value)
    if kind is None or path is None:
        return None
    inner = Document(file=document.file, index=document.index, value=_inside(document.value, path), node=None)
    pod = decode(inner, Pod)
    if isinstance(pod, Mistake):
        steps = tuple(_steps(pod.field))
        return document.mistake((*path, *steps), pod.expected, pod.came, pod.todo)
    return _template(document, kind, path, pod)


def _steps(field: str) -> list[str | int]:
    parts = field.replace("[", ".[").split(".")
    return [int(part[1:-1]) if part.startswith("[") else part for part in parts if part]


def _path(value: Any) -> Path | None:
    if kind_of(value) == "Pod":
        return ()
    for path in (("spec", "template"), ("spec", "jobTemplate", "spec", "template")):
        spec = _inside(value, (*path, "spec"))
        if isinstance(spec, dict) and isinstance(spec.get("containers"), list):
            return path
    return None


def _inside(value: Any, path: Path) -> Any:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _template(document: Document, kind: str, path: Path, pod: Pod) -> Template:
    outer = document.value.get("metadata") or {}
    name = str(outer.get("name") or outer.get("generateName") or "")
    namespace = str(outer.get("namespace") or "default")
    spec = document.value.get("spec") or {}
    replicas = spec.get("replicas") if isinstance(spec, dict) else None
    made, owners = (pod, {}) if not path else _owned(kind, name, namespace, pod)
    return Template(
        document=document, kind=kind, name=name, namespace=namespace, path=path, pod=made, owners=owners,
        replicas=replicas if isinstance(replicas, int) and kind not in ("DaemonSet", "Job") else 1,
    )  # fmt: skip


def _owned(kind: str, name: str, namespace: str, pod: Pod) -> tuple[Pod, dict[tuple[str, str, str], Owner | None]]:
    """The pod as the controller of this kind makes it, and the owners between the two."""
    top = Owner(kind, name)
    suffix = _hash(pod)
    if kind == "Deployment":
        middle, labels = Owner("ReplicaSet", f"{name}-{suffix}"), {"pod-template-hash": suffix}
    elif kind == "CronJob":
        middle, labels = Owner("Job", f"{name}-29383200"), {"batch.kubernetes.io/job-name": f"{name}-29383200"}
    elif kind == "Job":
        middle, labels = top, {"batch.kubernetes.io/job-name": name}
    else:
        middle, labels = top, {}
    owners: dict[tuple[str, str, str], Owner | None] = {(namespace, kind, name): None}
    if middle != top:
        owners[namespace, middle.kind, middle.name] = top
    return _with(pod, middle, labels, ordinal=kind == "StatefulSet"), owners


def _with(pod: Pod, owner: Owner, labels: dict[str, str], *, ordinal: bool) -> Pod:
    metadata: Metadata = pod.metadata
    written = {**get(metadata.labels, {}), **labels}
    return change(
        pod,
        metadata=change(
            metadata,
            name=f"{owner.name}-0" if ordinal else "",
            generate_name=f"{owner.name}-",
            labels=written or metadata.labels,
            owner_references=(OwnerReference(kind=owner.kind, name=owner.name, controller=True),),
        ),
    )


def _hash(pod: Pod) -> str:
    """Ten characters that change with the template, as the Deployment controller's do."""
    drawn = hashlib.blake2b(msgspec.json.encode(pod, order="sorted"), digest_size=10).digest()
    return "".join(_SAFE[byte % len(_SAFE)] for byte in drawn)
