"""What stands in this cluster, ready to be planned with?

The nouns of one snapshot, made once: nodes by name, pods by namespace and name (so that the order in which a
snapshot was written changes nothing), budgets, claims, owners, and what could not be understood.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from trimtab.cluster import budget as budgets
from trimtab.cluster import node as nodes
from trimtab.cluster.api.budget import PodDisruptionBudget
from trimtab.cluster.api.meta import Labels, get
from trimtab.cluster.api.node import Node as NodeShape
from trimtab.cluster.api.pod import Pod as PodShape
from trimtab.cluster.api.rules import Namespace
from trimtab.cluster.api.storage import CSINode, PersistentVolume, PersistentVolumeClaim
from trimtab.cluster.api.workload import Workload
from trimtab.cluster.budget import Budget
from trimtab.cluster.claim import Claim, claims
from trimtab.cluster.node import Node
from trimtab.cluster.pod import Pod, Reader
from trimtab.cluster.snapshot import ConfigMap, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """What an owner wants and has."""

    wanted: int | None
    """None where it does not say (a DaemonSet, a Job)."""
    have: int
    ready: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Inventory:
    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    budgets: tuple[Budget, ...] = ()
    claims: Mapping[tuple[str, str], Claim] = field(default_factory=dict)
    """(namespace, name) → claim."""
    owners: Mapping[tuple[str, str, str], Scale] = field(default_factory=dict)
    """(namespace, kind, name) → its scale."""
    owner_kinds: frozenset[str] = frozenset()
    """Kinds of owners the snapshot shows: only of these is a missing owner a fact."""
    namespaces: Mapping[str, Labels] = field(default_factory=dict)
    config_maps: tuple[ConfigMap, ...] = ()
    twins: frozenset[str] = frozenset()
    """Names that more than one node carries."""
    doubles: Mapping[str, str] = field(default_factory=dict)
    """Node → a pod on it (namespace/name) of which the snapshot tells more than one thing."""
    notes: tuple[str, ...] = ()
    """What is odd about the snapshot, in words."""


def take(snapshot: Snapshot) -> Inventory:
    """Everything a planner needs of a snapshot."""
    reader = Reader()
    names = Counter(shape.metadata.name for shape in snapshot.all(NodeShape))
    storage = {shape.metadata.name: shape for shape in snapshot.all(CSINode)}
    found = {s.metadata.name: nodes.read(s, storage.get(s.metadata.name)) for s in snapshot.all(NodeShape)}
    pods = sorted((reader.pod(s) for s in snapshot.all(PodShape)), key=lambda pod: (pod.namespace, pod.name))
    guards = tuple(sorted(map(budgets.read, snapshot.all(PodDisruptionBudget)), key=lambda b: b.key))
    return Inventory(
        nodes=tuple(found[name] for name in sorted(found)),
        pods=tuple(pods),
        budgets=guards,
        claims=dict(claims(snapshot.all(PersistentVolumeClaim), snapshot.all(PersistentVolume))),
        owners={(s.metadata.namespace, kind, s.metadata.name): _scale(s) for kind, s in snapshot.workloads()},
        owner_kinds=frozenset(kind for kind, _ in snapshot.workloads()),
        namespaces={s.metadata.name: get(s.metadata.labels, {}) for s in snapshot.all(Namespace)},
        config_maps=snapshot.all(ConfigMap),
        twins=frozenset(name for name, count in names.items() if count > 1),
        doubles=_doubles(pods),
        notes=(*_notes(names, found, pods), *_broken(guards)),
    )


def _doubles(pods: Sequence[Pod]) -> dict[str, str]:
    """`pods` in order of their names."""
    return {
        pod.node: one.key
        for one, other in pairwise(pods)
        if one.name == other.name and one.namespace == other.namespace
        for pod in (one, other)
        if pod.node
    }


def _scale(shape: Workload) -> Scale:
    return Scale(wanted=get(shape.spec.replicas, None), have=shape.status.replicas, ready=shape.status.ready_replicas)


def _notes(names: Counter[str], found: Mapping[str, Node], pods: Sequence[Pod]) -> Iterable[str]:
    for name in sorted(name for name, count in names.items() if count > 1):
        yield f"{names[name]} nodes are called {name}: none of them is touched"
    for key in sorted(set(_doubles(pods).values())):
        yield f"pod {key} stands more than once, and differs: nothing is planned where it is"
    strays = Counter(pod.node for pod in pods if pod.node and pod.node not in found)
    for name in sorted(strays):
        yield f"{strays[name]} pods say they run on node {name}, which is not in the snapshot"


def _broken(found: Iterable[Budget]) -> Iterable[str]:
    for budget in found:
        if budget.broken:
            yield f"budget {budget.key} cannot be understood ({budget.broken}): no pod of its namespace is moved"
