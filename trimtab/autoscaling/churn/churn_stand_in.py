"""Runs the stand-in for the cluster autoscaler on the cluster in memory."""

from dataclasses import dataclass, field, replace

from trimtab.autoscaling.churn import churn_objects as objects
from trimtab.autoscaling.churn.churn_cluster import EPOCH, ChurnCluster
from trimtab.autoscaling.churn.stand_in import scan_cluster
from trimtab.autoscaling.churn.stand_in_rules import StandInFlags
from trimtab.autoscaling.churn.stand_in_view import (
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
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pdb import PdbIndex


@dataclass(slots=True)
class ChurnStandIn:
    """Scans the cluster, and carries out what the scan decides."""

    cluster: ChurnCluster
    flags: StandInFlags
    state: StandInState = field(default_factory=StandInState)
    templates: dict[str, NodeInfo] = field(init=False)

    def __post_init__(self) -> None:
        machines = self.cluster.churn.machines
        self.templates = {one.group: objects.create_node(one, f"new-{one.group}", EPOCH) for one in machines}

    def run_scan(self) -> None:
        """Scans once."""
        cluster, scheduler = self.cluster, self.cluster.scheduler
        capacity = scheduler.refresh(cluster.nodes, cluster.pods.values())
        view = StandInView(
            now=cluster.epoch + cluster.now,
            capacity=capacity,
            class_of={pod.uid: scheduler.class_of(pod) for pod in cluster.pods.values()},
            pods_on={name: cluster.pods_on(name) for name in cluster.nodes},
            waiting=cluster.waiting,
            pdbs=PdbIndex.from_pdbs(cluster.budgets),
            coming=tuple(self.templates[group] for group in cluster.coming),
        )
        scan = scan_cluster(self.state, view, self.flags, self.templates)
        self.state = scan.state
        for action in scan.actions:
            self._execute(action)

    def _execute(self, action: StandInAction) -> None:
        cluster = self.cluster
        match action:
            case AddNodes(group, count):
                for _ in range(count):
                    cluster.order_node(group)
            case MarkCandidate(name, is_candidate):
                cluster.set_node(objects.with_taint(cluster.nodes[name], objects.CANDIDATE, present=is_candidate))
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
