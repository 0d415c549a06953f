"""Runs the stand-in for the cluster autoscaler on the cluster in memory."""

from dataclasses import dataclass, field, replace

from trimtab.autoscaling.churn import churn_objects as objects
from trimtab.autoscaling.churn.churn_cluster import ChurnCluster
from trimtab.autoscaling.churn.stand_in import scan_cluster
from trimtab.autoscaling.churn.stand_in_rules import StandInFlags
from trimtab.autoscaling.churn.stand_in_view import (
    GROUP_LABEL,
    AddNodes,
    BeginRemoval,
    DeleteNode,
    EvictFrom,
    GiveBack,
    MarkCandidate,
    StandInAction,
    StandInState,
    StandInView,
)
from trimtab.cluster.api.meta import change
from trimtab.cluster.autoscaler_flags import DELAY_AFTER_ADD, UNNEEDED_TIME
from trimtab.cluster.cluster_autoscaler import Autoscaler, NodeGroupStatus

MAX_GROUP_SIZE = 10_000


@dataclass(slots=True)
class ChurnStandIn:
    """Scans the cluster, and carries out what the scan decides."""

    cluster: ChurnCluster
    flags: StandInFlags
    state: StandInState = field(default_factory=StandInState)

    def run_scan(self) -> None:
        """Scans once."""
        cluster, scheduler = self.cluster, self.cluster.scheduler
        capacity = scheduler.refresh(cluster.nodes, cluster.pods.values())
        view = StandInView(
            now=cluster.timestamp,
            capacity=capacity,
            class_of=scheduler.class_of,
            pods_on={name: cluster.pods_on(name) for name in cluster.nodes},
            waiting=cluster.waiting,
            pdbs=cluster.budget_index,
            coming=tuple(cluster.templates[group] for group in cluster.coming),
        )
        scan = scan_cluster(self.state, view, self.flags, cluster.templates)
        self.state = scan.state
        for action in scan.actions:
            self._execute(action)

    def describe_autoscaler(self) -> Autoscaler:
        """Returns what an autoscaler in this state publishes about itself."""
        cluster, flags = self.cluster, self.flags
        names_by_group: dict[str, list[str]] = {group: [] for group in cluster.templates}
        for node in cluster.nodes.values():
            if group := node.labels.get(GROUP_LABEL, ""):
                names_by_group.setdefault(group, []).append(node.name)
        groups = tuple(
            NodeGroupStatus(
                name=group,
                healthy=True,
                scale_up="InProgress" if group in cluster.coming else "NoActivity",
                target=len(names) + cluster.coming.count(group),
                min_size=flags.min_size,
                max_size=MAX_GROUP_SIZE,
                registered=len(names),
                candidates=sum(name in self.state.unneeded for name in names),
            )
            for group, names in sorted(names_by_group.items())
        )
        return Autoscaler(
            scale_up="InProgress" if cluster.coming else "NoActivity",
            groups=groups,
            updated=cluster.timestamp,
            threshold=round(flags.threshold * 100),
            flags={
                UNNEEDED_TIME.name: f"{flags.unneeded_seconds:g}s",
                DELAY_AFTER_ADD.name: f"{flags.delay_after_add_seconds:g}s",
            },
        )

    def _execute(self, action: StandInAction) -> None:
        cluster = self.cluster
        match action:
            case AddNodes(group, count):
                for _ in range(count):
                    cluster.order_node(group)
            case MarkCandidate(name, is_candidate):
                taint = change(objects.CANDIDATE, value=str(cluster.timestamp))
                cluster.set_node(objects.with_taint(cluster.nodes[name], taint, present=is_candidate))
            case BeginRemoval(name):
                node = objects.with_taint(cluster.nodes[name], objects.CANDIDATE, present=False)
                node = objects.with_taint(node, objects.DELETION_TAINT, present=True)
                cluster.set_node(replace(node, is_cordoned=True))
            case GiveBack(name):
                node = objects.with_taint(cluster.nodes[name], objects.DELETION_TAINT, present=False)
                cluster.set_node(replace(node, is_cordoned=False))
            case EvictFrom(_, uid):
                cluster.evict_pod(uid)
            case DeleteNode(name):
                cluster.delete_node(name)
