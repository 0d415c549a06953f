"""What owns pods, and what do its pods look like?

How many pods of an application may be missing at once?
"""

from trimtab.cluster.api.meta import UNSET, ApiObject, LabelSelector, Metadata, Revised, UnsetType
from trimtab.cluster.api.pod import Condition, PodSpec

FAILURE = "ReplicaFailure"
"""The condition of an owner whose controller cannot create a pod: a quota, a LimitRange or a webhook refuses it."""


class PodTemplateSpec(ApiObject, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()


class RollingUpdate(ApiObject, frozen=True, kw_only=True):
    max_surge: int | str = "25%"


class Strategy(ApiObject, frozen=True, kw_only=True):
    type: str = ""
    rolling_update: RollingUpdate | None = None


class WorkloadSpec(ApiObject, frozen=True, kw_only=True):
    """Deployment, ReplicaSet, StatefulSet, DaemonSet, Job and whatever else has replicas and a selector."""

    replicas: int | UnsetType = UNSET
    selector: LabelSelector | UnsetType = UNSET
    strategy: Strategy = Strategy()
    """Of a Deployment."""
    parallelism: int | UnsetType = UNSET
    completions: int | UnsetType = UNSET
    suspend: bool = False
    """Of a Job."""


class WorkloadStatus(ApiObject, frozen=True, kw_only=True):
    replicas: int = 0
    ready_replicas: int = 0
    updated_replicas: int = 0
    observed_generation: int = 0
    desired_number_scheduled: int = 0
    updated_number_scheduled: int = 0
    """Of a DaemonSet, like the one before."""
    conditions: tuple[Condition, ...] = ()


class Workload(ApiObject, frozen=True, kw_only=True):
    """Any owner. A ReplicationController's selector, a plain map, is read as its labels (see `snapshot`)."""

    kind: str = ""
    api_version: str = ""
    metadata: Revised = Revised()
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


class DaemonSetSpec(WorkloadSpec, frozen=True, kw_only=True):
    template: PodTemplateSpec = PodTemplateSpec()


class DaemonSet(Workload, frozen=True, kw_only=True):
    """With its template: its pods take a part of each node."""

    spec: DaemonSetSpec = DaemonSetSpec()


class TemplatedSpec(ApiObject, frozen=True, kw_only=True):
    replicas: int | UnsetType = UNSET
    template: PodTemplateSpec = PodTemplateSpec()


class Templated(ApiObject, frozen=True, kw_only=True):
    """An owner as whoever makes its next pod reads it."""

    metadata: Metadata = Metadata()
    spec: TemplatedSpec = TemplatedSpec()


class BudgetSpec(ApiObject, frozen=True, kw_only=True):
    min_available: int | str | UnsetType = UNSET
    max_unavailable: int | str | UnsetType = UNSET
    selector: LabelSelector | UnsetType | None = UNSET
    """Absent selects nothing; empty selects every pod of the namespace (policy/v1)."""
    unhealthy_pod_eviction_policy: str = ""


class BudgetStatus(ApiObject, frozen=True, kw_only=True):
    observed_generation: int | UnsetType = UNSET
    """Absent as long as the disruption controller has never looked."""
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0


class BudgetMetadata(Metadata, frozen=True, kw_only=True):
    generation: int = 0


class PodDisruptionBudget(ApiObject, frozen=True, kw_only=True):
    metadata: BudgetMetadata = BudgetMetadata()
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()
