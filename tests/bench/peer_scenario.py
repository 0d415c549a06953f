"""What every peer meets in `make bench-peers`: the same machines, workloads, budgets and times; values alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.controlplane import objects
from tests.controlplane.objects import Object
from trimtab.autoscaling.churn.churn_objects import NAMESPACE
from trimtab.autoscaling.churn.churn_script import MACHINES, Churn, ChurnOptions, ChurnWorkload, draw_churn
from trimtab.autoscaling.churn.pod_shapes import ChurnPodShape
from trimtab.autoscaling.churn.stand_in_rules import StandInFlags
from trimtab.cluster.node import INSTANCE_TYPE_LABEL, ZONE_LABEL

QUIET_SECONDS = 20
"""For how long a node must be unneeded (the stand-in, Trimtab), or without new pods (Karpenter's consolidateAfter)."""
COOLDOWN_SECONDS = 6 * QUIET_SECONDS
"""For how long Trimtab leaves a pod in peace that anyone has moved: as much longer than the stand-in's wait as its
hour is than the autoscaler's ten minutes. With the whole hour, a run of minutes ends while every node that is left has
such a pod, and Trimtab has not begun."""
PROVISION_SECONDS = 30
"""From the order of a machine until its node is there, with each peer."""
START_UP_SECONDS = 10
"""From the binding of a pod until it is ready."""
AT_ONCE = "10%"
"""The share of the nodes that are disrupted at the same time: the default budget of a NodePool."""
DO_NOT_DISRUPT = {"karpenter.sh/do-not-disrupt": "true", "cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
PROTECTED_COUNT = 2
"""How many workloads no peer may evict."""
FLAGS = StandInFlags(unneeded_seconds=QUIET_SECONDS, delay_after_add_seconds=QUIET_SECONDS, recheck_seconds=30)
"""Those of the stand-in. Its defaults are ten minutes, too long for a bench."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerScenario:
    """The cluster at the beginning, and the load that returns."""

    churn: Churn
    """Machines, nodes and workloads; it has no events."""
    protected: frozenset[str]
    """The workloads whose pods have the annotations of `DO_NOT_DISRUPT`."""
    grown: tuple[tuple[str, int], ...]
    """(workload, replicas) after the load has returned."""

    @property
    def at_once(self) -> int:
        """How many nodes are disrupted at the same time; rounded up, as by Karpenter."""
        return -(-len(self.churn.nodes) * int(AT_ONCE.rstrip("%")) // 100)


def draw_scenario(cores: float, shapes: Sequence[ChurnPodShape], seed: int = 1) -> PeerScenario:
    """Returns a cluster that is half full with about these cores of requests. When the load returns, every second
    workload has twice as many replicas."""
    options = ChurnOptions(seed=seed, hours=0, cores=cores, fill=0.5)
    churn = replace(draw_churn(options, shapes), events=())
    small = sorted((one for one in churn.workloads if one.replicas == 2), key=lambda one: one.shape.millicores)
    return PeerScenario(
        churn=churn,
        protected=frozenset(one.name for one in small[:PROTECTED_COUNT]),
        grown=tuple((one.name, 2 * one.replicas) for one in churn.workloads[::2]),
    )


def create_deployment(scenario: PeerScenario, workload: ChurnWorkload) -> Object:
    """Returns the Deployment of a workload."""
    item = objects.deployment(
        workload.name,
        replicas=workload.replicas,
        image="pause",
        cpu=f"{workload.shape.millicores}m",
        memory=f"{workload.shape.mebibytes}Mi",
        labels={},
        annotations=DO_NOT_DISRUPT if workload.name in scenario.protected else {},
        spec={},
    )
    item["metadata"]["namespace"] = NAMESPACE
    return item


def list_karpenter_types() -> list[Object]:
    """Returns the machines as Karpenter's kwok provider reads them from a file.

    The provider reserves 100m of cpu and 10Mi of memory of each machine (kwok/cloudprovider/helpers.go). They are added
    here, so that pods may request as much as on the machines of the other peers.
    """
    return [
        {
            "name": machine.instance_type,
            "architecture": "amd64",
            "operatingSystems": ["linux"],
            "resources": {
                "cpu": f"{machine.millicores + 100}m",
                "memory": f"{machine.mebibytes + 10}Mi",
                "pods": str(machine.pods),
            },
            "offerings": [
                {
                    "Price": machine.price / 1e6,
                    "Available": True,
                    "Requirements": [
                        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                        {"key": ZONE_LABEL, "operator": "In", "values": ["zone-a"]},
                    ],
                }
            ],
        }
        for machine in MACHINES
    ]


def create_node_pool(*, consolidates: bool) -> Object:
    """Returns the NodePool; until it consolidates, it only makes machines."""
    after = f"{QUIET_SECONDS}s" if consolidates else "Never"
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "pool"},
        "spec": {
            "template": {"spec": _describe_machine([machine.instance_type for machine in MACHINES])},
            "disruption": {
                "consolidationPolicy": "WhenEmptyOrUnderutilized",
                "consolidateAfter": after,
                "budgets": [{"nodes": AT_ONCE}],
            },
        },
    }


def create_node_claims(scenario: PeerScenario) -> list[Object]:
    """Returns one NodeClaim for each node of the beginning: Karpenter makes a machine of exactly this type of it."""
    machines = {machine.group: machine for machine in scenario.churn.machines}
    claims = []
    for number, group in enumerate(scenario.churn.nodes):
        machine = machines[group]
        requests = {"cpu": f"{machine.millicores}m", "memory": f"{machine.mebibytes}Mi", "pods": str(machine.pods)}
        claims.append(
            {
                "apiVersion": "karpenter.sh/v1",
                "kind": "NodeClaim",
                "metadata": {"name": f"first-{number:03d}", "labels": {"karpenter.sh/nodepool": "pool"}},
                "spec": {**_describe_machine([machine.instance_type]), "resources": {"requests": requests}},
            }
        )
    return claims


def _describe_machine(types: Sequence[str]) -> Object:
    return {
        "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
        "expireAfter": "Never",
        "requirements": [
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
            {"key": INSTANCE_TYPE_LABEL, "operator": "In", "values": list(types)},
        ],
    }
