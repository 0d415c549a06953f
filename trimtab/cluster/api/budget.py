"""How many pods of an application may be missing at once?"""

from trimtab.cluster.api.meta import UNSET, LabelSelector, Metadata, Shape, UnsetType


class BudgetSpec(Shape, frozen=True, kw_only=True):
    min_available: int | str | UnsetType = UNSET
    max_unavailable: int | str | UnsetType = UNSET
    selector: LabelSelector | UnsetType | None = UNSET
    """Absent selects nothing; empty selects every pod of the namespace (policy/v1)."""
    unhealthy_pod_eviction_policy: str = ""


class BudgetStatus(Shape, frozen=True, kw_only=True):
    observed_generation: int | UnsetType = UNSET
    """Absent as long as the disruption controller has never looked."""
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0


class BudgetMetadata(Metadata, frozen=True, kw_only=True):
    generation: int = 0


class PodDisruptionBudget(Shape, frozen=True, kw_only=True):
    metadata: BudgetMetadata = BudgetMetadata()
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()
