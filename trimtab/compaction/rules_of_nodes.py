"""Which rules about evictions hold on a node: those of the cluster autoscaler that looks after it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from trimtab.cluster.autoscaler_evictions import DEFAULT_RULES, EvictionRules, read_eviction_rules
from trimtab.cluster.cluster_autoscaler import Autoscaler
from trimtab.cluster.cluster_state import ReplicaCounts
from trimtab.cluster.kinds import REPLICA_SET, REPLICATION_CONTROLLER
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pool import Pool
from trimtab.cluster.several_autoscalers import autoscaler_of_node


@dataclass(slots=True)
class RulesOfNodes:
    """The rules that hold on each node; they are calculated when they are first needed."""

    nodes: tuple[NodeInfo, ...]
    autoscaler: Autoscaler | None
    """The cluster autoscaler, whose flags say which pods it evicts; None if it is unknown."""
    _rules: dict[tuple[int, str], EvictionRules] = field(default_factory=dict)
    """(id of a pool, node) → rules; the node is empty if the cluster has one autoscaler."""
    _nodes_by_name: dict[str, NodeInfo] = field(default_factory=dict)

    def on_node(self, node: str, pool: Pool) -> EvictionRules:
        """Returns the rules of the autoscaler that looks after this node of the pool."""
        if self.autoscaler is None:
            return DEFAULT_RULES
        key = (id(pool), node if self.autoscaler.members else "")
        if key not in self._rules:
            if not self._nodes_by_name:
                self._nodes_by_name.update((one.name, one) for one in self.nodes)
            one = self._nodes_by_name.get(node)
            own = self.autoscaler if one is None else autoscaler_of_node(self.autoscaler, one, pool.name)
            self._rules[key] = read_eviction_rules(own)
        return self._rules[key]


def has_too_few_replicas(pod: PodInfo, owners: Mapping[OwnerKey, ReplicaCounts], rules: EvictionRules) -> bool:
    """Returns whether the autoscaler keeps the pod's node because the pod's ReplicaSet or ReplicationController wants
    fewer replicas than the autoscaler's minimum."""
    if not rules.min_replicas or pod.owner is None or pod.owner.kind not in (REPLICA_SET, REPLICATION_CONTROLLER):
        return False
    scale = owners.get(pod.owner)
    return scale is not None and scale.wanted is not None and scale.wanted < rules.min_replicas
