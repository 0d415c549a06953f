"""Objects of the churn as the product reads them: nodes, pods and budgets of the cluster in memory."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from zlib import crc32

from trimtab.autoscaling.churn.churn_script import ChurnMachine
from trimtab.autoscaling.churn.pod_shapes import ChurnPodShape
from trimtab.autoscaling.churn.stand_in_view import GROUP_LABEL
from trimtab.cluster.api.core import Taint
from trimtab.cluster.api.meta import LabelSelector
from trimtab.cluster.cluster_state import ReplicaCounts
from trimtab.cluster.kinds import JOB, REPLICA_SET
from trimtab.cluster.node import CANDIDATE_TAINT, HOSTNAME_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL, NodeInfo
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.pdb import Pdb
from trimtab.cluster.pod import PodInfo, SchedulingRequirements
from trimtab.cluster.schedulers import DEFAULT_SCHEDULER
from trimtab.cluster.timestamps import Seconds

NAMESPACE = "churn"
APP_LABEL = "app"
DELETION_TAINT = Taint(key="ToBeDeletedByClusterAutoscaler", effect="NoSchedule")
CANDIDATE = Taint(key=CANDIDATE_TAINT, effect="PreferNoSchedule")
SPOT_TAINT = Taint(key="churn/spot-loss", effect="NoSchedule")
"""The taint of a node that the cloud takes away soon."""


@dataclass(slots=True)
class ChurningWorkload:
    """A Deployment, or a Job."""

    name: str
    requirements: SchedulingRequirements
    number: int
    wanted: int
    is_job: bool = False
    max_unavailable: int | None = None
    generation: int = 0
    pods: dict[str, int] = field(default_factory=dict)
    """Uid of each pod that is not being deleted → its generation."""
    ready: int = 0
    """How many of the pods are ready."""

    def forget_pod(self, pod: PodInfo) -> bool:
        """Counts the pod no longer, and returns whether it was counted."""
        if self.pods.pop(pod.uid, None) is None:
            return False
        self.ready -= pod.is_ready
        return True

    def owner(self, generation: int) -> OwnerKey:
        """Returns the object that creates the pods of a generation."""
        if self.is_job:
            return OwnerKey(NAMESPACE, JOB, self.name)
        return OwnerKey(NAMESPACE, REPLICA_SET, f"{self.name}-{generation}")

    def count_replica_sets(self, counts: ReplicaCounts, pods: Mapping[str, PodInfo]) -> dict[OwnerKey, ReplicaCounts]:
        """Returns each object that creates pods of the workload, with its pods. `counts`: those of all; `pods`: by
        uid."""
        generations = set(self.pods.values())
        if len(generations) <= 1:
            return {self.owner(self.generation): counts}
        result: dict[OwnerKey, ReplicaCounts] = {}
        for generation in generations:
            uids = [uid for uid, number in self.pods.items() if number == generation]
            ready = sum(pods[uid].is_ready for uid in uids)
            result[self.owner(generation)] = ReplicaCounts(wanted=len(uids), have=len(uids), ready=ready)
        return result


def name_node(group: str, number: int, naming: int) -> str:
    """Returns the name of a node of this group. Within a group, names are in the order of time for the naming 0, and in
    an order of their own for another. The order of the groups stays: their nodes are not equal."""
    if not naming:
        return f"{group}-{number:04d}"
    return f"{group}-{crc32(f'{naming} {group} {number}'.encode()):08x}-{number:04d}"


def create_node(machine: ChurnMachine, name: str, created: Seconds) -> NodeInfo:
    """Returns a ready and empty node of this group."""
    amounts = {"cpu": machine.millicores, "memory": machine.mebibytes << 20, "pods": machine.pods}
    labels = {
        GROUP_LABEL: machine.group,
        INSTANCE_TYPE_LABEL: machine.instance_type,
        HOSTNAME_LABEL: name,
        ZONE_LABEL: "zone-a",
        "topology.kubernetes.io/region": "us-east-1",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "trimtab.dev/price": str(machine.price),
    }
    return NodeInfo(
        name=name,
        labels=labels,
        annotations={},
        taints=(),
        is_cordoned=False,
        allocatable=amounts,
        capacity=amounts,
        is_ready=True,
        created=created,
        provider_id=f"churn:{machine.group}/{name}",
        attachable_volumes={},
        uid=f"node-{name}",
        operating_system="linux",
        architecture="amd64",
    )


def with_taint(node: NodeInfo, taint: Taint, *, present: bool) -> NodeInfo:
    """Returns the node with, or without, the taint."""
    others = tuple(one for one in node.taints if one.key != taint.key)
    return replace(node, taints=(*others, taint) if present else others)


def create_requirements(name: str, shape: ChurnPodShape) -> SchedulingRequirements:
    """Returns what the scheduler considers about the pods of a workload: their requests alone."""
    return SchedulingRequirements(
        namespace=NAMESPACE,
        labels={APP_LABEL: name},
        requests={"cpu": shape.millicores, "memory": shape.mebibytes << 20},
        node_selector={},
        node_affinity=None,
        preferred_nodes=(),
        tolerations=(),
        required_affinity=(),
        required_anti_affinity=(),
        hard_spreads=(),
        soft_spreads=(),
        preferred_affinity=(),
        host_ports=(),
        scheduler=DEFAULT_SCHEDULER,
    )


def create_pod(
    name: str, requirements: SchedulingRequirements, owner: OwnerKey | None, created: Seconds, likeness: int = -1
) -> PodInfo:
    """Returns a pod that waits for a node; its uid is its name."""
    return PodInfo(
        name=name,
        namespace=NAMESPACE,
        uid=name,
        node="",
        requirements=requirements,
        owner=owner,
        annotations={},
        created=created,
        started=None,
        deletion_requested_at=None,
        grace_seconds=30,
        phase="Pending",
        is_ready=False,
        priority=0,
        local_volumes=(),
        claims=(),
        has_device_claims=False,
        likeness=likeness,
    )


def order_deletions(pods: Sequence[PodInfo]) -> list[str]:
    """Returns the uids of the pods of one workload in the order in which a controller deletes them: pods without a node
    first, then pods that are not ready, then those on nodes with most of them, then the youngest
    (controller.ActivePodsWithRanks)."""
    on_node = Counter(pod.node for pod in pods)

    def rank(pod: PodInfo) -> tuple[bool, bool, int, int, str]:
        return bool(pod.node), pod.is_ready, -on_node[pod.node], -(pod.created or 0), pod.uid

    return [pod.uid for pod in sorted(pods, key=rank)]


def create_budget(name: str, *, wanted: int, ready: int, max_unavailable: int) -> Pdb:
    """Returns the budget of a workload as the disruption controller keeps it."""
    desired = max(0, wanted - max_unavailable)
    return Pdb(
        namespace=NAMESPACE,
        name=name,
        selector=LabelSelector(match_labels={APP_LABEL: name}),
        allowed=max(0, ready - desired),
        max_allowed=min(wanted, max_unavailable),
        is_healthy=ready >= desired > 0,
        is_stale=False,
        selector_problem="",
        always_evictable=False,
    )
