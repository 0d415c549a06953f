"""A pool that should go: how its nodes may be tainted, whether its pods may move, and the room that they need first.

The taint is `NoSchedule` only if both hold, else `PreferNoSchedule`, which keeps nobody out:

- every DaemonSet pod on the nodes tolerates it: otherwise a DaemonSet would lose its pod at the next update;
- no pod on the nodes, and no template of any owner (a CronJob, a workload without replicas), can only run there.

Room is made before anything is drained: placeholder pods of low priority, which may run on the new pool only, let the
cluster autoscaler buy nodes. They are deleted as soon as the pods of the next nodes would fit without them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from trimtab.cluster.api.core import Taint
from trimtab.cluster.cluster_autoscaler import NodeGroupStatus
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pod import PodInfo, SchedulingRequirements
from trimtab.cluster.reason import Code, Reason, Unreadable
from trimtab.scheduling.cluster_model import FreeCapacity, build_cluster_model
from trimtab.scheduling.filters import place_pods
from trimtab.scheduling.node_filters import node_rejection_reason, tolerates_taint
from trimtab.sizing.ranking.rank_types import Ranking

LEGACY_TAINT_KEY = "trimtab.dev/legacy"
PLACEHOLDER_LABEL = "trimtab.dev/placeholder"
PLACEHOLDER_PRIORITY = -10
"""The lowest priority for which the cluster autoscaler still adds nodes (--expendable-pods-priority-cutoff)."""

DAEMON_REJECTS_TAINT = Code(
    "daemon-does-not-tolerate-legacy",
    "A DaemonSet that runs on the nodes of the legacy pool does not tolerate their taint, so it is only "
    "PreferNoSchedule.",
    f"Let the DaemonSet tolerate {LEGACY_TAINT_KEY}.",
)
ONLY_ON_LEGACY = Code(
    "runs-only-on-legacy",
    "A pod, or the template of a workload, fits on no node outside the legacy pool, so its taint is only "
    "PreferNoSchedule.",
    "Change its node selector or affinity, or move its volume.",
)
TARGET_FULL = Code(
    "target-at-maximum",
    "The node group that should take the pods has as many nodes as it may have.",
    "Raise its maximum size.",
)
TARGET_OUT_OF_STOCK = Code(
    "target-in-backoff",
    "The cloud could not provide nodes for the node group that should take the pods.",
    "Wait, or choose another pool with `--to`.",
)
TARGET_NOT_BETTER = Code(
    "target-not-ranked-above",
    "The machine type of the new pool is not ranked above that of the legacy pool, so nothing would be saved.",
    "Look at `trimtab machines rank`.",
)


@dataclass(frozen=True, slots=True)
class LegacyTaint:
    """The taint for the nodes of a legacy pool, and why it is no stronger."""

    taint: Taint
    reasons: tuple[Reason, ...]
    """Empty if the effect is NoSchedule."""


def choose_taint(
    inventory: Inventory, legacy: Sequence[NodeInfo], templates: Mapping[str, SchedulingRequirements]
) -> LegacyTaint:
    """Returns the taint for these nodes.

    `templates`: the name of each owner → what its next pod requires, workloads without pods included.
    """
    strong = Taint(key=LEGACY_TAINT_KEY, value="true", effect="NoSchedule")
    names = {node.name for node in legacy}
    others = [without_legacy_taint(node) for node in inventory.nodes if node.name not in names and node.is_ready]
    plain = [without_legacy_taint(node) for node in legacy]
    reasons: dict[str, Reason] = {}
    for pod in inventory.pods:
        if pod.node not in names or pod.is_finished:
            continue
        if pod.is_daemon:
            if not any(tolerates_taint(one, strong) for one in pod.requirements.tolerations):
                owner = pod.owner.name if pod.owner else pod.name
                reasons[f"daemon {owner}"] = DAEMON_REJECTS_TAINT(
                    f"DaemonSet {pod.namespace}/{owner} does not tolerate {LEGACY_TAINT_KEY}"
                )
        elif not pod.is_static:
            volumes = [
                selector for claim in pod.claims
                if (found := inventory.claims.get((pod.namespace, claim))) is not None
                and (selector := found.nodes) is not None
            ]  # fmt: skip
            if not any(node_rejection_reason(pod.requirements, volumes, node) is None for node in others):
                reasons[f"pod {pod.key}"] = ONLY_ON_LEGACY(f"pod {pod.key} fits on no node outside the legacy pool")
    for name, asked in templates.items():
        fits_here = any(node_rejection_reason(asked, (), node) is None for node in plain)
        if fits_here and not any(node_rejection_reason(asked, (), node) is None for node in others):
            reasons[f"template {name}"] = ONLY_ON_LEGACY(f"pods of {name} fit on no node outside the legacy pool")
    weak = Taint(key=LEGACY_TAINT_KEY, value="true", effect="PreferNoSchedule")
    return LegacyTaint(weak if reasons else strong, tuple(reasons[key] for key in sorted(reasons)))


def without_legacy_taint(node: NodeInfo) -> NodeInfo:
    """Returns the node without taints of this migration."""
    kept = tuple(taint for taint in node.taints if taint.key != LEGACY_TAINT_KEY)
    return node if len(kept) == len(node.taints) else replace(node, taints=kept)


def find_refusals(
    groups: Iterable[NodeGroupStatus], ranking: Ranking | None, legacy_types: Iterable[str], target_types: Iterable[str]
) -> tuple[Reason, ...]:
    """Returns why nothing may move now; empty if it may.

    `groups`: the node groups of the new pool. `ranking`: None if the caller does not want the prices compared.
    """
    reasons: list[Reason] = []
    known = tuple(groups)
    if known and all(one.scale_up == "Backoff" for one in known):
        reasons.append(TARGET_OUT_OF_STOCK(f"group {known[0].name} is in Backoff"))
    full = [one for one in known if one.max_size is not None and (one.target or 0) >= one.max_size]
    if known and len(full) == len(known):
        reasons.append(TARGET_FULL(f"group {full[0].name} has {full[0].target} of {full[0].max_size} nodes"))
    if ranking is not None:
        order = {score.candidate.name: number for number, score in enumerate(ranking.scores)}
        worst_new = max((order.get(name, len(order)) for name in target_types), default=len(order))
        best_old = min((order.get(name, len(order)) for name in legacy_types), default=len(order))
        if worst_new >= best_old:
            names = ", ".join(sorted(target_types)) or "no known type"
            reasons.append(TARGET_NOT_BETTER(f"{names} is not ranked above {', '.join(sorted(legacy_types))}"))
    return tuple(reasons)


@dataclass(frozen=True, slots=True)
class MissingRoom:
    """The pods of the next legacy nodes that do not fit on the new pool yet."""

    nodes: tuple[str, ...]
    """The legacy nodes whose pods need the room; empty if no legacy node has pods."""
    pods: tuple[PodInfo, ...]
    """Empty if all of them fit: then the nodes may be drained."""


def find_missing_room(
    inventory: Inventory, legacy: Sequence[NodeInfo], target: Sequence[NodeInfo], prices: Mapping[str, int], batch: int
) -> MissingRoom:
    """Returns the pods of the next `batch` legacy nodes for which the new pool has no room, placeholders not counted.

    `prices`: node → micro-dollars an hour; the dearest nodes come first, unknown ones last.
    """
    by_node: dict[str, list[PodInfo]] = {}
    for pod in inventory.pods:
        if not (pod.is_finished or pod.is_daemon or pod.is_static or PLACEHOLDER_LABEL in pod.requirements.labels):
            by_node.setdefault(pod.node, []).append(pod)
    waiting = sorted((n for n in legacy if by_node.get(n.name)), key=lambda n: (-prices.get(n.name, 0), n.name))[:batch]
    moving = [msgspec.structs.replace(pod, node="") for node in waiting for pod in by_node[node.name]]
    names = {node.name for node in target}
    staying = [
        pod for pod in inventory.pods
        if pod.node in names and not pod.is_finished and PLACEHOLDER_LABEL not in pod.requirements.labels
    ]  # fmt: skip
    model = build_cluster_model(
        replace(inventory, nodes=tuple(target), pods=(*staying, *moving), reserved_pods=(), assumed_requests={})
    )
    capacity = FreeCapacity(model)
    places = place_pods(capacity, [pod_class for _, pod_class in model.pending_pods], range(len(target)))
    missing = [pod for (pod, _), place in zip(model.pending_pods, places, strict=True) if place is None]
    return MissingRoom(tuple(node.name for node in waiting), tuple(missing))


def render_placeholders(
    missing: Iterable[PodInfo],
    selector: Mapping[str, str],
    namespace: str,
    priority_class: str,
    taints: Iterable[Taint],
) -> list[dict[str, object]]:
    """Returns one placeholder pod for each pod without room: the same requests, on the new pool only."""
    tolerations = [{"key": taint.key, "operator": "Exists", "effect": taint.effect} for taint in taints]
    pods: list[dict[str, object]] = []
    for pod in missing:
        requests = pod.requirements.requests
        if isinstance(requests, Unreadable):
            continue
        amounts = {"cpu": f"{requests.get('cpu', 0)}m", "memory": str(requests.get("memory", 0))}
        container = {
            "name": "placeholder", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": amounts},
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        }  # fmt: skip
        pods.append({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": f"trimtab-placeholder-{pod.namespace}-{pod.name}"[:63].rstrip("-."), "namespace": namespace,
                "labels": {PLACEHOLDER_LABEL: "true"},
            },
            "spec": {
                "priorityClassName": priority_class, "nodeSelector": dict(selector), "tolerations": tolerations,
                "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False,
                "securityContext": {"runAsNonRoot": True, "runAsUser": 65534,
                                    "seccompProfile": {"type": "RuntimeDefault"}},
                "containers": [container],
            },
        })  # fmt: skip
    return pods
