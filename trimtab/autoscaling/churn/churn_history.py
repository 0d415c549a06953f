"""What a watch of nodes, pods and budgets showed, as values: the input of `churn_outcome`.

A live run and a simulation write the same history, so both are judged by the same function. A live run orders its
events by resourceVersion, because its three watches do not arrive in the order of the changes.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """A node as it is from now on."""

    at: float
    """Seconds of the cluster's time since the beginning, here and below."""
    name: str
    millicores: int
    """The allocatable cpu."""
    price: int
    """Micro-dollars an hour."""
    is_cordoned: bool = False
    is_cordoned_by_user: bool = False
    is_lost: bool = False
    """Whether the churn takes the machine away, so that its end is no decision of an autoscaler."""


@dataclass(frozen=True, slots=True)
class NodeGone:
    """A node was deleted."""

    at: float
    name: str


@dataclass(frozen=True, slots=True)
class PodSeen:
    """A pod as it is from now on."""

    at: float
    uid: str
    workload: str
    node: str = ""
    is_ready: bool = False
    is_evicted: bool = False
    """Whether the eviction API has asked it to go (the condition DisruptionTarget with its reason
    EvictionByEvictionAPI)."""
    is_leaving: bool = False
    """Whether it has a deletion timestamp."""


@dataclass(frozen=True, slots=True)
class PodGone:
    """A pod was deleted."""

    at: float
    uid: str


@dataclass(frozen=True, slots=True)
class BudgetSeen:
    """The budget of a workload as it is from now on."""

    at: float
    workload: str
    desired_healthy: int
    """The number of ready pods that it wants (status.desiredHealthy); 0 if the budget is gone."""


ChurnRecord = NodeSeen | NodeGone | PodSeen | PodGone | BudgetSeen
