"""Owners of pods with their pod templates, and PodDisruptionBudgets."""

from typing import Any

from trimtab.cluster.api.meta import UNSET, ApiObject, LabelSelector, Metadata, Revised, UnsetType
from trimtab.cluster.api.pod import Condition, PodSpec

FAILURE = "ReplicaFailure"
"""The type of the condition that an owner has when its controller cannot create a pod, because a quota, a LimitRange or
a webhook rejects it."""


class PodTemplateSpec(ApiObject, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()


# The default is that of the API server (SetDefaults_Deployment, apps/v1).
class RollingUpdate(ApiObject, frozen=True, kw_only=True):
    max_surge: int | str = "25%"


class Strategy(ApiObject, frozen=True, kw_only=True):
    type: str = ""
    rolling_update: RollingUpdate | None = None


class PodConditionPattern(ApiObject, frozen=True, kw_only=True):
    type: str = ""
    status: str = "True"


class PodFailureRule(ApiObject, frozen=True, kw_only=True):
    """What a Job does about a failed pod that has one of these conditions, or whose containers exited as
    `on_exit_codes` says; a rule has only one of both."""

    action: str = ""
    on_exit_codes: dict[str, Any] | None = None
    on_pod_conditions: tuple[PodConditionPattern, ...] = ()


class PodFailurePolicy(ApiObject, frozen=True, kw_only=True):
    rules: tuple[PodFailureRule, ...] = ()


class WorkloadSpec(ApiObject, frozen=True, kw_only=True):
    """The spec of a Deployment, ReplicaSet, StatefulSet, DaemonSet, Job, or any other owner with replicas and a
    selector."""

    replicas: int | UnsetType = UNSET
    selector: LabelSelector | UnsetType = UNSET
    strategy: Strategy = Strategy()
    """The update strategy; only a Deployment has this field."""
    paused: bool = False
    """Whether a Deployment's rollout is paused. Only a Deployment has this field."""
    parallelism: int | UnsetType = UNSET
    completions: int | UnsetType = UNSET
    suspend: bool = False
    """Whether a Job is suspended: it creates no pods. Only Jobs have this field, those before it from `parallelism` on,
    and those after it."""
    backoff_limit: int | UnsetType = UNSET
    backoff_limit_per_index: int | UnsetType = UNSET
    pod_failure_policy: PodFailurePolicy | None = None


class WorkloadStatus(ApiObject, frozen=True, kw_only=True):
    replicas: int = 0
    failed: int = 0
    """The number of failed pods of a Job. Only a Job has this field."""
    ready_replicas: int = 0
    available_replicas: int = 0
    """The number of pods that have been ready for `minReadySeconds`."""
    updated_replicas: int = 0
    observed_generation: int = 0
    desired_number_scheduled: int = 0
    updated_number_scheduled: int = 0
    """The number of nodes with an up-to-date pod. Only a DaemonSet has this field and `desired_number_scheduled`."""
    conditions: tuple[Condition, ...] = ()


# One struct for all owners: the fields that a kind does not have keep their defaults.
class Workload(ApiObject, frozen=True, kw_only=True):
    """An owner of pods. The selector of a ReplicationController, which is a plain map, is read as a LabelSelector (see
    `snapshot`)."""

    kind: str = ""
    api_version: str = ""
    metadata: Revised = Revised()
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


class DaemonSetSpec(WorkloadSpec, frozen=True, kw_only=True):
    template: PodTemplateSpec = PodTemplateSpec()


class DaemonSet(Workload, frozen=True, kw_only=True):
    """A DaemonSet with its pod template, because its pods use a part of each node."""

    spec: DaemonSetSpec = DaemonSetSpec()


class TemplatedSpec(ApiObject, frozen=True, kw_only=True):
    replicas: int | UnsetType = UNSET
    template: PodTemplateSpec = PodTemplateSpec()
    update_strategy: Strategy = Strategy()
    """Of these owners, only a StatefulSet has this field."""


class TemplatedStatus(ApiObject, frozen=True, kw_only=True):
    conditions: tuple[Condition, ...] = ()
    current_revision: str = ""
    """The revision of the pods that a StatefulSet has not replaced yet. Only StatefulSets have revisions."""
    update_revision: str = ""


class Templated(ApiObject, frozen=True, kw_only=True):
    """An owner of pods, with the template from which its controller creates the next pod."""

    metadata: Metadata = Metadata()
    spec: TemplatedSpec = TemplatedSpec()
    status: TemplatedStatus = TemplatedStatus()


class BudgetSpec(ApiObject, frozen=True, kw_only=True):
    min_available: int | str | UnsetType = UNSET
    max_unavailable: int | str | UnsetType = UNSET
    selector: LabelSelector | UnsetType | None = UNSET
    """The pods that the budget protects: an absent selector selects none; an empty one selects every pod of the
    namespace (policy/v1)."""
    unhealthy_pod_eviction_policy: str = ""


class BudgetStatus(ApiObject, frozen=True, kw_only=True):
    observed_generation: int | UnsetType = UNSET
    """The generation that the disruption controller has processed; UNSET until it has processed the budget once."""
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
