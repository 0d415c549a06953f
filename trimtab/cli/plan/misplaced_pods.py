"""Pods that would be better elsewhere, as the report shows them, each with the PodPolicy that would gather them."""

from collections.abc import Sequence
from typing import Any

import yaml

from trimtab.cli.output import ReportPart
from trimtab.cli.plan.cost import counted
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pool import POOL_LABELS, pool_source
from trimtab.compaction.misplaced_pods import Misplaced, Misplacement
from trimtab.machines.prices import SPOT
from trimtab.policy.podpolicy import API_VERSION, KIND
from trimtab.scheduling.cluster_model import ClusterModel

HELD = "unmovable"
"""The pool that the printed policy gathers pods in."""
UNCHANGED = frozenset({"kube-system", "kube-node-lease", "kube-public"})
"""Namespaces whose pods the webhook never changes."""
_KINDS = {"ReplicaSet": ("Deployment",), "Job": ("CronJob", "Job")}
"""Owner of a pod → the kinds of top owners that policies match."""


class MisplacedReport(ReportPart, frozen=True, kw_only=True):
    """Pods alike that cost more where they are."""

    kind: str
    """`critical-on-spot`, `scattered`, `long-running-on-temporary`."""
    pods: list[str]
    nodes: list[str]
    text: str
    policy: str
    """A PodPolicy as YAML; empty where none would do."""


def report(found: Misplaced, world: ClusterModel) -> MisplacedReport:
    return MisplacedReport(
        kind=found.kind.value, pods=[pod.key for pod in found.pods], nodes=[node.name for node in found.nodes],
        text=_text(found), policy=_policy(found, world),
    )  # fmt: skip


def _text(found: Misplaced) -> str:
    pods, nodes = counted(len(found.pods), "pod"), counted(len(found.nodes), "node")
    said = f" ({found.annotation[0]}: {found.annotation[1]})" if found.annotation else ""
    if found.kind is Misplacement.CRITICAL_ON_SPOT:
        return (
            f"{pods} that must not be interrupted ({found.why}{said}) run on {nodes} on spot, which may be taken away"
        )
    if found.kind is Misplacement.SCATTERED:
        return (
            f"{pods} that may not move ({found.why}{said}) are scattered over {nodes}; by volume"
            f" {counted(found.fewest, 'node')} would hold them"
        )
    return f"{pods} that run for long are on {nodes} that are mostly there for Jobs, and keep them when the Jobs end"


def _policy(found: Misplaced, world: ClusterModel) -> str:
    """Only preferences: before the pool or the other machines exist, the pods run where they would have run."""
    pods = [pod for pod in found.pods if pod.namespace not in UNCHANGED]
    placement = _placement(found, world)
    if not pods or not placement:
        return ""
    name = f"gather-{found.why}" if found.kind is Misplacement.SCATTERED else f"keep-{found.why or 'services'}-apart"
    spec: dict[str, Any] = {"description": _DESCRIBED[found.kind], "priority": 500, "match": _match(found, pods)}
    document = {
        "apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name},
        "spec": {**spec, "actions": {"placement": placement}},
    }  # fmt: skip
    return yaml.safe_dump(document, sort_keys=False, width=120)


_DESCRIBED = {
    Misplacement.CRITICAL_ON_SPOT: "Pods that must not be interrupted prefer machines that are not on spot.",
    Misplacement.SCATTERED: f"Pods that may not move prefer the pool {HELD}.",
    Misplacement.LONG_ON_TEMPORARY: "Pods that run for long prefer other nodes than those of Jobs.",
}


def _match(found: Misplaced, pods: Sequence[PodInfo]) -> dict[str, Any]:
    if found.annotation is not None:
        return {"annotations": {found.annotation[0]: found.annotation[1]}}
    kinds = {pod.owner.kind if pod.owner is not None else "Pod" for pod in pods}
    owners = sorted({owner for kind in kinds for owner in _KINDS.get(kind, (kind,))})
    return {"namespaces": {"include": sorted({pod.namespace for pod in pods})}, "owners": owners}


def _placement(found: Misplaced, world: ClusterModel) -> dict[str, Any]:
    if found.kind is Misplacement.SCATTERED:
        label = POOL_LABELS[0]
        return {
            "prefer": [{"label": label, "in": [HELD], "weight": 100}],
            "tolerate": [{"key": label, "value": HELD, "effect": "NoSchedule"}],
        }
    if found.kind is Misplacement.CRITICAL_ON_SPOT:
        marks = {key: node.labels[key] for node in found.nodes for key in SPOT if key in node.labels}
        return {"prefer": [{"label": key, "notIn": [text], "weight": 100} for key, text in sorted(marks.items())]}
    pools = {pool_source(node) for node in found.nodes}
    keys = {key for _, key in pools}
    others = {pool_source(node) for node in world.nodes} - pools
    if len(keys) != 1 or not keys <= {*POOL_LABELS} or not others:
        return {}
    return {"prefer": [{"label": keys.pop(), "notIn": sorted(name for name, _ in pools), "weight": 100}]}
