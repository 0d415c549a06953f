"""The report of misplaced pods: groups of pods that would cost less on other nodes, each with a PodPolicy that moves
them there."""

from collections.abc import Sequence
from typing import Any

from trimtab.cli.output import ReportPart, format_manifests
from trimtab.cluster.format_count import format_count
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pool import pool_source
from trimtab.cluster.pool_labels import POOL_LABELS
from trimtab.compaction.misplaced_pods import Misplaced, Misplacement
from trimtab.machines.prices import SPOT_LABELS
from trimtab.policy.policy_kind import API_VERSION, KIND
from trimtab.scheduling.cluster_model import ClusterModel

UNMOVABLE_POOL = "unmovable"
"""The name of the pool that the printed policy prefers for pods that may not move."""
EXCLUDED_NAMESPACES = frozenset({"kube-system", "kube-node-lease", "kube-public"})
"""The namespaces whose pods the webhook never changes."""
_MATCHED_OWNERS = {"ReplicaSet": ("Deployment",), "Job": ("CronJob", "Job")}
"""The kind of a pod's owner → the kinds of topmost owners that a policy matches for such a pod."""

CONTROLLER_LABELS = frozenset(
    {
        "pod-template-hash",
        "controller-revision-hash",
        "pod-template-generation",
        "statefulset.kubernetes.io/pod-name",
        "apps.kubernetes.io/pod-index",
        "controller-uid",
        "job-name",
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-name",
        "batch.kubernetes.io/job-completion-index",
    }
)
"""Labels that a controller sets on its pods with a new value for each new version or pod, so that a policy cannot
select by them."""


class MisplacedReport(ReportPart, frozen=True, kw_only=True):
    """A group of similar pods that cost more than necessary on the nodes where they run."""

    kind: str
    """The kind of group: `critical-on-spot`, `scattered`, `long-running-on-temporary`."""
    pods: list[str]
    """The pods, as namespace/name."""
    nodes: list[str]
    """The nodes of the pods."""
    text: str
    """Why the pods cost more where they are, as a sentence."""
    policy: str
    """A PodPolicy as YAML that moves the pods to cheaper nodes when they are created again; empty if no policy can."""


def report_misplaced(group: Misplaced, model: ClusterModel) -> MisplacedReport:
    return MisplacedReport(
        kind=group.kind.value,
        pods=[pod.key for pod in group.pods],
        nodes=[node.name for node in group.nodes],
        text=_describe_group(group),
        policy=_render_policy(group, model),
    )


def _describe_group(group: Misplaced) -> str:
    pods, nodes = format_count(len(group.pods), "pod"), format_count(len(group.nodes), "node")
    annotation = f" ({group.annotation[0]}: {group.annotation[1]})" if group.annotation else ""
    if group.kind is Misplacement.CRITICAL_ON_SPOT:
        return (
            f"{pods} that must not be interrupted ({group.why}{annotation}) run on {nodes} of spot instances, "
            "which the provider may reclaim"
        )
    if group.kind is Misplacement.SCATTERED:
        return (
            f"{pods} that may not be moved ({group.why}{annotation}) are spread over {nodes}, although their "
            f"requests would fit on {format_count(group.fewest, 'node')}"
        )
    return (
        f"{pods} that run for a long time are on {nodes} that otherwise run Jobs, so these nodes cannot be "
        "removed when the Jobs end"
    )


def _render_policy(group: Misplaced, model: ClusterModel) -> str:
    """Returns a PodPolicy for the group as YAML, or "" if none would help.

    The policy only prefers nodes: as long as the pool or the other machines do not exist, the pods run as before.
    """
    pods = [pod for pod in group.pods if pod.namespace not in EXCLUDED_NAMESPACES]
    placement = _build_placement(group, model)
    if not pods or not placement:
        return ""
    name = f"gather-{group.why}" if group.kind is Misplacement.SCATTERED else f"keep-{group.why or 'services'}-apart"
    spec: dict[str, Any] = {
        "description": _POLICY_DESCRIPTIONS[group.kind],
        "priority": 500,
        "match": _build_match(group, pods, model),
    }
    document = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name},
        "spec": {**spec, "actions": {"placement": placement}},
    }
    return format_manifests([document])


_POLICY_DESCRIPTIONS = {
    Misplacement.CRITICAL_ON_SPOT: "Pods that must not be interrupted prefer nodes that are not spot instances.",
    Misplacement.SCATTERED: f"Pods that may not be moved prefer the pool {UNMOVABLE_POOL}.",
    Misplacement.LONG_ON_TEMPORARY: "Pods that run for a long time prefer nodes other than the nodes of Jobs.",
}


def _build_match(group: Misplaced, pods: Sequence[PodInfo], model: ClusterModel) -> dict[str, Any]:
    if group.annotation is not None:
        return {"annotations": {group.annotation[0]: group.annotation[1]}}
    kinds = set(map(_owner_kind, pods))
    owners = sorted({owner for kind in kinds for owner in _MATCHED_OWNERS.get(kind, (kind,))})
    match: dict[str, Any] = {"namespaces": {"include": sorted({pod.namespace for pod in pods})}, "owners": owners}
    selected = _find_selector(pods, model)
    if selected is not None:
        key, values = selected
        match["podSelector"] = {"matchExpressions": [{"key": key, "operator": "In", "values": values}]}
    return match


def _find_selector(pods: Sequence[PodInfo], model: ClusterModel) -> tuple[str, list[str]] | None:
    """Returns a label and its values that select all of the pods and as few other pods as possible.

    Returns None if the pods have no label in common, or if every common label selects all other pods of their
    namespaces and owners, too.
    """
    shared = set.intersection(*({*pod.requirements.labels} for pod in pods)) - CONTROLLER_LABELS
    keys, alike = {pod.key for pod in pods}, {(pod.namespace, _owner_kind(pod)) for pod in pods}
    others = [pod for pod in model.pods if pod.key not in keys and (pod.namespace, _owner_kind(pod)) in alike]
    choices = []
    for key in sorted(shared):
        values = {pod.requirements.labels[key] for pod in pods}
        count = sum(pod.requirements.labels.get(key) in values for pod in others)
        if count < len(others):
            choices.append((count, len(values), key, sorted(values)))
    return min(choices)[2:] if choices else None


def _owner_kind(pod: PodInfo) -> str:
    return pod.owner.kind if pod.owner is not None else "Pod"


def _build_placement(group: Misplaced, model: ClusterModel) -> dict[str, Any]:
    if group.kind is Misplacement.SCATTERED:
        label = POOL_LABELS[0]
        return {
            "prefer": [{"label": label, "in": [UNMOVABLE_POOL], "weight": 100}],
            "tolerate": [{"key": label, "value": UNMOVABLE_POOL, "effect": "NoSchedule"}],
        }
    if group.kind is Misplacement.CRITICAL_ON_SPOT:
        spot_labels = {key: node.labels[key] for node in group.nodes for key in SPOT_LABELS if key in node.labels}
        return {"prefer": [{"label": key, "notIn": [text], "weight": 100} for key, text in sorted(spot_labels.items())]}
    pools = {pool_source(node) for node in group.nodes}
    keys = {key for _, key in pools}
    other_pools = {pool_source(node) for node in model.nodes} - pools
    if len(keys) != 1 or not keys <= {*POOL_LABELS} or not other_pools:
        return {}
    return {"prefer": [{"label": keys.pop(), "notIn": sorted(name for name, _ in pools), "weight": 100}]}
