"""Workloads with strange owners: other groups' kinds with the names of built-in ones, other versions of a group, owners
without a version, chains of owners through pods, groups of pods by their marks."""

from typing import Any

from hypothesis import strategies as st

from tests.cluster_of import SAFE, Item, budget, pod
from trimtab.cluster.pod_groups import GROUP_MARKS

FOREIGN_GROUPS = ("apps.kruise.io/v1beta1", "batch.volcano.sh/v1alpha1", "example.dev/v1")
BUILT_IN = {"ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "ReplicationController": "v1"}
SAME_GROUP = {
    "ReplicaSet": ("apps/v1", "apps/v1beta2", "extensions/v1beta1", ""),
    "StatefulSet": ("apps/v1", "apps/v1beta1", ""),
    "ReplicationController": ("v1", ""),
}
"""Kind → the versions that an owner reference to the same object may name; empty: none."""
FOREIGN_KINDS = (*BUILT_IN, "DaemonSet", "Job", "Node", "Pod", "Database")


def owned_by(item: Item, version: str, kind: str, name: str) -> Item:
    reference = {"kind": kind, "name": name, "uid": f"uid-{kind}-{name}", "controller": True}
    references = [{"apiVersion": version, **reference} if version else reference]
    return {**item, "metadata": {**item["metadata"], "ownerReferences": references}}


def counted(kind: str, version: str, name: str, wanted: int, ready: int, owner: Item | None = None) -> Item:
    metadata: Item = {"name": name, "namespace": "default", "ownerReferences": [owner] if owner else []}
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": metadata,
        "spec": {"replicas": wanted},
        "status": {"replicas": wanted, "readyReplicas": ready},
    }


def foreign_copy(item: Item, version: str = "example.dev/v1") -> Item:
    """The same object of another group."""
    return {**item, "apiVersion": version}


@st.composite
def built_in_workloads(draw: st.DrawFn, app: str, names: list[str]) -> list[Item]:
    """Pods of a built-in controller, which the snapshot may hold, whole or not."""
    kind = draw(st.sampled_from(sorted(BUILT_IN)))
    count = draw(st.integers(1, 4))
    pods = [owned_by(pod(f"{app}-{n}", draw(st.sampled_from(names))), BUILT_IN[kind], kind, app) for n in range(count)]
    ready = draw(st.integers(0, count))
    return [*pods, *([counted(kind, BUILT_IN[kind], app, count, ready)] if draw(st.booleans()) else [])]


@st.composite
def foreign_workloads(draw: st.DrawFn, app: str, names: list[str]) -> list[Item]:
    """Pods of an owner of another group. An object of this identity, and a built-in one of its name, may exist."""
    version, kind = draw(st.sampled_from(FOREIGN_GROUPS)), draw(st.sampled_from(FOREIGN_KINDS))
    notes = {SAFE: "true"} if draw(st.booleans()) else {}
    pods = [
        owned_by(pod(f"{app}-{n}", draw(st.sampled_from(names)), annotations=notes), version, kind, app)
        for n in range(draw(st.integers(1, 3)))
    ]
    others = [
        counted(kind, version, app, 5, 1),
        counted("StatefulSet", "apps/v1", app, 5, 1),
        counted("ReplicaSet", "apps/v1", app, 1, 1),
        budget(app, draw(st.integers(0, 2))),
    ]
    return [*pods, *(other for other in others if draw(st.booleans()))]


@st.composite
def led_workloads(draw: st.DrawFn, app: str, names: list[str]) -> list[Item]:
    """A leader, and pods that belong to it directly or through a StatefulSet of its own."""
    leader = owned_by(pod(f"{app}-0", draw(st.sampled_from(names))), "apps/v1", "StatefulSet", app)
    above = {"apiVersion": "v1", "kind": "Pod", "name": f"{app}-0", "controller": True}
    through = draw(st.booleans())
    owner = ("apps/v1", "StatefulSet", f"{app}-0") if through else ("v1", "Pod", f"{app}-0")
    notes = {SAFE: "true"} if draw(st.booleans()) else {}
    workers = [
        owned_by(pod(f"{app}-0-{n}", draw(st.sampled_from(names)), annotations=notes), *owner)
        for n in range(draw(st.integers(1, 3)))
    ]
    return [leader, *workers, *([counted("StatefulSet", "apps/v1", f"{app}-0", 3, 3, above)] if through else [])]


@st.composite
def marked_workloads(draw: st.DrawFn, app: str, names: list[str]) -> list[Item]:
    """Pods with the marks of one or two groups."""
    mark = draw(st.sampled_from(GROUP_MARKS))
    pods = []
    for n in range(draw(st.integers(2, 4))):
        marks: dict[str, Any] = {mark.where: dict.fromkeys(mark.keys, draw(st.sampled_from(["one", "two"])))}
        pods.append(pod(f"{app}-{n}", draw(st.sampled_from(names)), app=app, **marks))
    return pods


def strange_workloads(app: str, names: list[str]) -> st.SearchStrategy[list[Item]]:
    return st.one_of(
        built_in_workloads(app, names),
        foreign_workloads(app, names),
        led_workloads(app, names),
        marked_workloads(app, names),
    )
