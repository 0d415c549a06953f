"""A legacy pool, which is to be emptied: how its nodes may be tainted, whether its pods may move, and the room that
they first need on another pool.

The taint is `NoSchedule` only if both of these hold; otherwise it is `PreferNoSchedule`, which keeps no pod out:

- every DaemonSet pod on the nodes tolerates it: otherwise a DaemonSet would lose its pod at the next update;
- no pod on the nodes, and no template of any owner (a CronJob, a workload without replicas), can only run there.

Room is made before anything is drained: placeholder pods of low priority, which can run only on the new pool, make the
cluster autoscaler add nodes. Every pod of the next nodes gets a placeholder, even if there is room for the pod already,
because the placeholders of the others would take that room. The placeholders are deleted as soon as the pods of the
next nodes would fit without them. While a legacy node is drained none are created, because they would take the room of
the pods that are moving.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import msgspec

from trimtab.cluster.api.core import Taint
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.format_count import format_count
from trimtab.cluster.node import LEGACY_TAINT_KEY, NodeInfo
from trimtab.cluster.pod import PodInfo, SchedulingRequirements
from trimtab.cluster.reason import NotYet, Reason, Unreadable
from trimtab.compaction.replace import reasons as r
from trimtab.compaction.replace.migration import plan_migration
from trimtab.compaction.replace.node_templates import NodeTemplates
from trimtab.scheduling.cluster_model import FreeCapacity, build_cluster_model
from trimtab.scheduling.filters import place_pods
from trimtab.scheduling.node_filters import node_rejection_reason, tolerates_taint
from trimtab.scheduling.run_conditions import RunConditionsReader, unfit_reason

PLACEHOLDER_LABEL = "trimtab.dev/placeholder"
"""The label of a placeholder; its value is the name of the legacy pool, so that each migration has its own
placeholders."""
PLACEHOLDER_FOR_ANNOTATION = "trimtab.dev/placeholder-for"
"""The annotation with namespace/name of the pod for which the placeholder holds room."""
PLACEHOLDER_PRIORITY = -10
"""The lowest priority for which the cluster autoscaler still adds nodes (`--expendable-pods-priority-cutoff`)."""


@dataclass(frozen=True, slots=True)
class PlaceholderScope:
    """Recognises the placeholders of one migration. Those of other migrations count like any other pod."""

    pool: str
    """The name of the legacy pool."""
    namespace: str
    """The namespace in which pods with the label are placeholders. In other namespaces anyone may set the label."""

    def has_pod(self, pod: PodInfo) -> bool:
        """Returns whether the pod is a placeholder for a pod of the legacy pool."""
        return pod.namespace == self.namespace and pod.requirements.labels.get(PLACEHOLDER_LABEL) == self.pool


@dataclass(frozen=True, slots=True)
class LegacyTaint:
    """The taint for the nodes of a legacy pool, and why it is not a stronger one."""

    taint: Taint
    reasons: tuple[Reason, ...]
    """Why the effect is only PreferNoSchedule; empty if it is NoSchedule."""


def choose_taint(
    inventory: Inventory, legacy: Sequence[NodeInfo], templates: Mapping[str, SchedulingRequirements]
) -> LegacyTaint:
    """Returns the taint for these nodes.

    `templates`: name of each owner → what its next pod requires; workloads without pods are included.
    """
    strong = Taint(key=LEGACY_TAINT_KEY, value="true", effect="NoSchedule")
    names = {node.name for node in legacy}
    others = [without_legacy_taint(node) for node in inventory.machines if node.name not in names and node.is_ready]
    plain = [without_legacy_taint(node) for node in legacy]
    conditions_reader = RunConditionsReader(inventory)
    reasons: dict[str, Reason] = {}
    for pod in inventory.pods:
        if pod.node not in names or pod.is_finished:
            continue
        if pod.is_daemon:
            if not any(tolerates_taint(one, strong) for one in pod.requirements.tolerations):
                owner = pod.owner.name if pod.owner else pod.name
                reasons[f"daemon {owner}"] = r.DAEMON_REJECTS_TAINT(
                    f"DaemonSet {pod.namespace}/{owner} does not tolerate {LEGACY_TAINT_KEY}"
                )
        elif not pod.is_static:
            claims = inventory.known_claims_of((pod,))
            volumes = [claim.nodes for claim in claims if claim.nodes is not None]
            conditions = conditions_reader.conditions_of(pod, [claim.driver for claim in claims if claim.driver])
            if not any(
                node_rejection_reason(pod.requirements, volumes, node) is None
                and unfit_reason(conditions, node) is None
                for node in others
            ):
                reasons[f"pod {pod.key}"] = r.ONLY_ON_LEGACY(f"pod {pod.key} fits on no node outside the legacy pool")
    for name, asked in templates.items():
        fits_here = any(node_rejection_reason(asked, (), node) is None for node in plain)
        if fits_here and not any(node_rejection_reason(asked, (), node) is None for node in others):
            reasons[f"template {name}"] = r.ONLY_ON_LEGACY(f"pods of {name} fit on no node outside the legacy pool")
    weak = Taint(key=LEGACY_TAINT_KEY, value="true", effect="PreferNoSchedule")
    return LegacyTaint(weak if reasons else strong, tuple(reasons[key] for key in sorted(reasons)))


def without_legacy_taint(node: NodeInfo) -> NodeInfo:
    """Returns the node without the taint of legacy pools."""
    kept = tuple(taint for taint in node.taints if taint.key != LEGACY_TAINT_KEY)
    return node if len(kept) == len(node.taints) else replace(node, taints=kept)


def find_refusals(
    inventory: Inventory,
    legacy: Sequence[NodeInfo],
    target: Sequence[NodeInfo],
    known: NodeTemplates,
    *,
    lacks_room: bool,
    compares: bool,
) -> tuple[Reason, ...]:
    """Returns the reasons why no pod may move now; an empty tuple if pods may move.

    `target`: the nodes of the new pool. `known`: the templates of all node groups. `lacks_room`: whether the new pool
    needs more nodes, so that one of its groups has to give them. `compares`: whether the new nodes must cost less than
    the legacy ones, as for a replacement."""
    if not target:
        return (r.TARGET_EMPTY("the new pool has no node, so its labels, taints and machine type are not known"),)
    names = {node.name for node in target}
    groups = {name for name, members in known.members.items() if not names.isdisjoint(members)}
    templates = [one for one in known.templates if one.group in groups]
    if not templates and (lacks_room or compares):
        refusals = [known.refusals[name] for name in sorted(groups) if name in known.refusals]
        passing = (r.GROUP_AT_MAXIMUM, r.GROUP_IN_BACK_OFF)
        # Room that is there already can be used, whatever the group may still give.
        if lacks_room or not all(reason.code in passing for reason in refusals):
            return tuple(refusals) or (r.TARGET_NOT_BETTER("no node group is known of which the new nodes would be"),)
    if not compares or not templates:
        return ()
    by_group = {name: [one for one in templates if one.group == name] for name in sorted({t.group for t in templates})}
    migrations = [plan_migration(inventory, legacy, of_group) for of_group in by_group.values()]
    unknown = next((one for one in migrations if isinstance(one, NotYet)), None)
    if unknown is not None:
        return (r.TARGET_NOT_BETTER(f"it is not known whether a migration saves anything: {unknown.reason}"),)
    compared = [one for one in migrations if not isinstance(one, NotYet)]
    if any(one.saves > 0 for one in compared):
        return ()
    best = max(compared, key=lambda one: one.saves)
    new_nodes = format_count(best.new_nodes, "new node")
    return (
        r.TARGET_NOT_BETTER(
            f"{new_nodes} of node group {best.group} would cost ${best.price_after / 1e6:,.2f} an hour, and the legacy "
            f"nodes cost ${best.price_before / 1e6:,.2f}"
        ),
    )


@dataclass(frozen=True, slots=True)
class MissingRoom:
    """Which pods of the next legacy nodes have no room on the new pool yet."""

    nodes: tuple[str, ...]
    """The legacy nodes to be drained next; empty if no legacy node has pods."""
    moving: tuple[PodInfo, ...]
    """All pods of workloads on these nodes, without their node."""
    pods: tuple[PodInfo, ...]
    """The moving pods that do not fit on the new pool yet. If there are none, the nodes may be drained."""


def find_missing_room(
    inventory: Inventory,
    scope: PlaceholderScope,
    legacy: Sequence[NodeInfo],
    target: Sequence[NodeInfo],
    prices: Mapping[str, int],
    batch: int,
) -> MissingRoom:
    """Returns the pods of the next `batch` legacy nodes for which the new pool has no room. Placeholders do not count
    as using room.

    `legacy` are the nodes of the legacy pool. `prices`: node → micro-dollars an hour. The most expensive nodes come
    first, and nodes without a price last. Pods that wait for a node get the room before pods that still run.
    """
    workload = [pod for pod in inventory.pods if not (pod.is_finished or scope.has_pod(pod))]
    by_node: dict[str, list[PodInfo]] = {}
    for pod in workload:
        if not (pod.is_daemon or pod.is_static):
            by_node.setdefault(pod.node, []).append(pod)
    occupied = (node for node in legacy if node.name in by_node)
    dearest = sorted(occupied, key=lambda node: (-prices.get(node.name, 0), node.name))[:batch]
    moving = tuple(msgspec.structs.replace(pod, node="") for node in dearest for pod in by_node[node.name])
    names = {node.name for node in target}
    staying = [pod for pod in workload if pod.node in names]
    model = build_cluster_model(
        replace(
            inventory,
            nodes=tuple(target),
            pods=(*staying, *by_node.get("", ()), *moving),
            reserved_pods=(),
            assumed_requests={},
        )
    )
    capacity = FreeCapacity(model)
    keys = {pod.key for pod in moving}
    # False sorts first: pods that wait for a node take the room before those that still run.
    queue = sorted(model.pending_pods, key=lambda one: one[0].key in keys)
    places = place_pods(capacity, [pod_class for _, pod_class in queue], range(len(target)))
    missing = [pod for (pod, _), place in zip(queue, places, strict=True) if place is None and pod.key in keys]
    return MissingRoom(tuple(node.name for node in dearest), moving, tuple(missing))


def placeholder_name(pod: PodInfo) -> str:
    """Returns the name of the pod's placeholder. The name depends only on the pod, so it is the same in every run."""
    # Pods of one workload differ in the last characters of their names only, so that a name cut at a length would not
    # tell them apart.
    return f"trimtab-placeholder-{sha256(pod.key.encode()).hexdigest()[:16]}"


@dataclass(frozen=True, slots=True)
class PlaceholderChange:
    """The placeholders to create and to delete."""

    create: tuple[PodInfo, ...]
    """The pods for which a placeholder must be created."""
    delete: tuple[PodInfo, ...]
    """The placeholders to delete."""


def plan_placeholders(
    room: MissingRoom, scope: PlaceholderScope, pods: Iterable[PodInfo], *, is_draining: bool
) -> PlaceholderChange:
    """Returns which placeholders to create and which to delete:

    - once the pods of the next nodes have room without placeholders, all placeholders are deleted;
    - otherwise each of these pods has a placeholder, and no other pod has one;
    - while a legacy node is drained (`is_draining`), no placeholders are created.

    `pods` are those of the cluster. A placeholder that has finished is deleted, and created again at the next run.
    """
    present = {pod.name: pod for pod in pods if scope.has_pod(pod)}
    if not room.pods:
        return PlaceholderChange((), tuple(present.values()))
    needed = {placeholder_name(pod): pod for pod in room.moving}
    delete = tuple(pod for name, pod in present.items() if pod.is_finished or name not in needed)
    if is_draining and not present:
        return PlaceholderChange((), ())
    return PlaceholderChange(tuple(pod for name, pod in needed.items() if name not in present), delete)


def render_placeholders(
    pods: Iterable[PodInfo],
    scope: PlaceholderScope,
    selector: Mapping[str, str],
    priority_class: str,
    taints: Iterable[Taint],
) -> list[dict[str, object]]:
    """Returns the manifests of the placeholders for these pods. A placeholder has the requests of its pod, and can run
    only on nodes of the new pool.

    `selector` are node labels of the new pool, and `taints` the taints that all of its nodes have.
    """
    tolerations = [{"key": taint.key, "operator": "Exists", "effect": taint.effect} for taint in taints]
    placeholders: list[dict[str, object]] = []
    for pod in pods:
        requests = pod.requirements.requests
        if isinstance(requests, Unreadable):
            continue
        amounts = {"cpu": f"{requests.get('cpu', 0)}m", "memory": str(requests.get("memory", 0))}
        container = {
            "name": "placeholder",
            "image": "registry.k8s.io/pause:3.10",
            "resources": {"requests": amounts},
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        }
        placeholders.append(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": placeholder_name(pod),
                    "namespace": scope.namespace,
                    "labels": {PLACEHOLDER_LABEL: scope.pool},
                    "annotations": {PLACEHOLDER_FOR_ANNOTATION: pod.key},
                },
                "spec": {
                    "priorityClassName": priority_class,
                    "nodeSelector": dict(selector),
                    "tolerations": tolerations,
                    "terminationGracePeriodSeconds": 0,
                    "automountServiceAccountToken": False,
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": 65534,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [container],
                },
            }
        )
    return placeholders
