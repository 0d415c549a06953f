"""Finds the groups of pods: pods that live and die together.

A group shows itself in two ways. The controllers and schedulers that know groups mark the pods (`GROUP_MARKS`). And
where a pod owns other pods, directly or through a controller, these end with it: all of them are one group, whoever
made them (`PodLeaders`). A group is of one namespace.

A PodDisruptionBudget makes a group of the pods that it covers: it says how many of them may be unavailable at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from trimtab.cluster.kinds import POD
from trimtab.cluster.owner import OwnerKey

if TYPE_CHECKING:
    from trimtab.cluster.pod import PodInfo


from collections import defaultdict
from collections.abc import Iterable

from trimtab.cluster.api.meta import Labels, LabelSelector, value_or
from trimtab.cluster.api.workload import PodDisruptionBudget
from trimtab.cluster.selectors import candidate_entries, labels_match


@dataclass(frozen=True, slots=True)
class GroupMark:
    """Labels or annotations of a pod whose values together name the pod's group."""

    where: Literal["labels", "annotations"]
    keys: tuple[str, ...]
    source: str
    """Where the project says so."""


GROUP_MARKS = (
    GroupMark(
        "labels",
        ("scheduling.x-k8s.io/pod-group",),
        "kubernetes-sigs/scheduler-plugins, apis/scheduling/v1alpha1/types.go: PodGroupLabel",
    ),
    GroupMark(
        "labels",
        ("pod-group.scheduling.sigs.k8s.io",),
        "kubernetes-sigs/scheduler-plugins until 0.24, pkg/coscheduling/README.md",
    ),
    GroupMark(
        "labels",
        ("kueue.x-k8s.io/pod-group-name",),
        "kubernetes-sigs/kueue, pkg/controller/jobs/pod/constants: GroupNameLabel",
    ),
    GroupMark(
        "labels",
        ("leaderworkerset.sigs.k8s.io/group-key",),
        "kubernetes-sigs/lws, api/leaderworkerset/v1/leaderworkerset_types.go: GroupUniqueHashLabelKey",
    ),
    GroupMark(
        "labels",
        ("leaderworkerset.sigs.k8s.io/name", "leaderworkerset.sigs.k8s.io/group-index"),
        "kubernetes-sigs/lws, api/leaderworkerset/v1/leaderworkerset_types.go: SetNameLabelKey, GroupIndexLabelKey",
    ),
    GroupMark(
        "labels",
        ("jobset.sigs.k8s.io/jobset-name",),
        "kubernetes-sigs/jobset, api/jobset/v1alpha2/jobset_types.go: JobSetNameKey",
    ),
    GroupMark(
        "labels",
        ("ray.io/cluster",),
        "ray-project/kuberay, ray-operator/controllers/ray/utils/constant.go: RayClusterLabelKey",
    ),
    GroupMark(
        "annotations",
        ("scheduling.k8s.io/group-name",),
        "volcano-sh/apis, pkg/apis/scheduling/v1beta1/labels.go: KubeGroupNameAnnotationKey",
    ),
    GroupMark(
        "annotations",
        ("scheduling.volcano.sh/group-name",),
        "volcano-sh/apis, pkg/apis/scheduling/v1beta1/labels.go: VolcanoGroupNameAnnotationKey",
    ),
    GroupMark("labels", ("volcano.sh/job-name",), "volcano-sh/apis, pkg/apis/batch/v1alpha1/labels.go: JobNameKey"),
    GroupMark(
        "labels",
        ("training.kubeflow.org/job-name",),
        "kubeflow/training-operator and kubeflow/mpi-operator, pkg/apis/kubeflow.org: JobNameLabel",
    ),
    GroupMark("labels", ("mpi-job-name",), "kubeflow/mpi-operator v1, pkg/controllers/v1: labelMPIJobName"),
    GroupMark(
        "labels",
        ("spark-app-selector",),
        "apache/spark, resource-managers/kubernetes, Constants.scala: SPARK_APP_ID_LABEL",
    ),
    GroupMark(
        "labels", ("sparkoperator.k8s.io/app-name",), "kubeflow/spark-operator, pkg/common/spark.go: LabelSparkAppName"
    ),
    GroupMark(
        "labels", ("dask.org/cluster-name",), "dask/dask-kubernetes, dask_kubernetes/operator/controller/controller.py"
    ),
    GroupMark(
        "annotations",
        ("yunikorn.apache.org/app-id", "yunikorn.apache.org/task-group-name"),
        "apache/yunikorn-k8shim, pkg/common/constants/constants.go: AnnotationTaskGroupName",
    ),
    GroupMark(
        "annotations",
        ("gang.scheduling.koordinator.sh/name",),
        "koordinator-sh/koordinator, apis/extension/coscheduling.go: AnnotationGangName",
    ),
    GroupMark(
        "annotations",
        ("pod-group-name",),
        "NVIDIA/KAI-Scheduler, pkg/common/constants/constants.go: PodGroupAnnotationForPod",
    ),
    GroupMark("labels", ("grove.io/podgang",), "ai-dynamo/grove, operator/api/common/labels.go: LabelPodGang"),
)
"""The marks of known groups, in the order in which they count."""
_MARKS_BY_FIRST_KEY = {
    where: {mark.keys[0]: mark for mark in reversed(GROUP_MARKS) if mark.where == where}
    for where in ("labels", "annotations")
}
LEADER_ANNOTATION = "leaderworkerset.sigs.k8s.io/leader-name"
"""An annotation of the pods of a group, except its leader, with the name of the leader's pod (kubernetes-sigs/lws,
LeaderPodNameAnnotationKey)."""
GROUP_ANNOTATIONS = frozenset(
    {LEADER_ANNOTATION, *(key for mark in GROUP_MARKS if mark.where == "annotations" for key in mark.keys)}
)
"""The annotations that are read. They are retained when a pod is watched."""


def group_by_marks(labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    """Returns the name of the pod's group according to the pod's labels and annotations, or an empty string if they
    name none."""
    for where, marked in (("labels", labels), ("annotations", annotations)):
        # True for nearly every pod.
        if not marked or marked.keys().isdisjoint(_MARKS_BY_FIRST_KEY[where]):
            continue
        for mark in GROUP_MARKS:
            if mark.where == where and (values := [marked.get(key, "") for key in mark.keys]) and all(values):
                return "/".join(values)
    return ""


# Real chains are shorter; only a cycle of owner references is longer.
_MAX_CHAIN_LENGTH = 6


class PodGroup(NamedTuple):
    """The identity of a group."""

    namespace: str
    name: str
    """The name that the marks give, or "of pod NAME" for the group of a pod that owns the others."""


@dataclass(frozen=True, slots=True)
class PodLeaders:
    """The pods that own other pods, so that those end with them."""

    pod_above: Mapping[OwnerKey, OwnerKey] = field(default_factory=dict)
    """A workload, or a pod that another pod owns → the topmost pod in the chain of its owners."""

    @classmethod
    def from_controllers(cls, controllers: Mapping[OwnerKey, OwnerKey]) -> PodLeaders:
        """Returns the pods that lead, from the controllers of workloads and of pods that own something."""
        above = {owner: leader for owner in controllers if (leader := _topmost_pod(controllers, owner)) is not None}
        return cls(above)

    def leader_of(self, namespace: str, owner: OwnerKey | None, annotations: Mapping[str, str]) -> OwnerKey | None:
        """Returns the pod with which a pod with this owner ends, or None if there is none."""
        if owner is not None:
            if owner.kind == POD:
                return self.pod_above.get(owner, owner)
            if owner in self.pod_above:
                return self.pod_above[owner]
        name = annotations.get(LEADER_ANNOTATION, "")
        return OwnerKey(namespace, POD, name) if name else None


def _topmost_pod(controllers: Mapping[OwnerKey, OwnerKey], owner: OwnerKey) -> OwnerKey | None:
    """Returns the topmost pod above an object, or None if no pod is above it."""
    leader: OwnerKey | None = None
    # Owner references may form a circle: the API server does not check them.
    for _ in range(_MAX_CHAIN_LENGTH):
        above = controllers.get(owner)
        if above is None:
            break
        leader = above if above.kind == POD else leader
        owner = above
    return leader


def find_groups(pods: Sequence[PodInfo], leaders: PodLeaders) -> dict[int, PodGroup]:
    """Returns `id` of a pod → its group. Pods without a group are left out."""
    groups = {id(pod): PodGroup(pod.namespace, pod.pod_group) for pod in pods if pod.pod_group}
    followers: dict[OwnerKey, list[PodInfo]] = {}
    for pod in pods:
        if (leader := leaders.leader_of(pod.namespace, pod.owner, pod.annotations)) is not None:
            followers.setdefault(leader, []).append(pod)
    if not followers:
        return groups
    leading = {key: pod for pod in pods if (key := OwnerKey(pod.namespace, POD, pod.name)) in followers}
    for key, members in followers.items():
        members = [leading[key], *members] if key in leading else members
        # A mark of any member names the group of all.
        marked = next((groups[id(pod)] for pod in members if id(pod) in groups), None)
        for pod in members:
            groups.setdefault(id(pod), marked or PodGroup(key.namespace, f"of pod {key.name}"))
    return groups


OPERATORS = {"In", "NotIn", "Exists", "DoesNotExist"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pdb:
    """A PodDisruptionBudget as its current status describes it."""

    namespace: str
    name: str
    selector: LabelSelector | None
    """The selector of the budget's pods; None selects no pod."""
    allowed: int
    """The number of the budget's pods that may be evicted now."""
    max_allowed: int
    """The number of pods that may be evicted when all of the budget's pods are healthy. With 0, the budget never allows
    an eviction."""
    is_healthy: bool
    """Whether the budget wants at least one healthy pod and has as many as it wants.

    If so, the eviction API evicts pods that are not ready without counting them (registry/core/pod/storage/eviction.go,
    1.36). For a budget that wants no healthy pod, every evicted pod counts."""
    is_stale: bool
    """Whether the disruption controller has not observed the current version of the object yet, so that the numbers are
    out of date."""
    selector_problem: str
    """What is wrong with the selector; empty if it is valid."""
    always_evictable: bool
    """Whether pods that are not healthy may always be evicted (unhealthyPodEvictionPolicy: AlwaysAllow)."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    def allows_eviction(self, *, pod_is_ready: bool, spent: int = 0) -> bool:
        """Returns whether the eviction API would evict one of the budget's pods now. `spent`: the number of evictions
        that the budget's status does not count yet."""
        if self.is_stale or self.selector_problem:
            return False
        is_free = not pod_is_ready and (self.always_evictable or self.is_healthy)
        return is_free or self.allowed > spent


def pdb_from_api(shape: PodDisruptionBudget) -> Pdb:
    """Returns the budget that a PodDisruptionBudget object describes."""
    status, selector = shape.status, value_or(shape.spec.selector, None)
    observed_generation = value_or(status.observed_generation, None)
    return Pdb(
        namespace=shape.metadata.namespace,
        name=shape.metadata.name,
        selector=selector,
        # The status comes from files, too, where nothing has validated it.
        allowed=max(0, status.disruptions_allowed),
        max_allowed=max(0, status.expected_pods - status.desired_healthy),
        is_healthy=status.current_healthy >= status.desired_healthy > 0,
        # The eviction API refuses with 429 as long as the generation is not observed (eviction.go, 1.36).
        is_stale=observed_generation is None or observed_generation < shape.metadata.generation,
        selector_problem=_selector_problem(selector),
        always_evictable=shape.spec.unhealthy_pod_eviction_policy == "AlwaysAllow",
    )


def _selector_problem(selector: LabelSelector | None) -> str:
    """Returns what is wrong with a selector, or an empty string if it is valid."""
    for expression in selector.match_expressions if selector else ():
        if expression.operator not in OPERATORS:
            return f"operator {expression.operator!r} is not one of {', '.join(sorted(OPERATORS))}"
        if (expression.operator in ("In", "NotIn")) != bool(expression.values):
            return f"the operator {expression.operator} of {expression.key!r} does not allow its list of values"
    return ""


@dataclass(slots=True)
class PdbIndex:
    """Finds the budgets that cover a pod. Each budget is indexed by one label of its selector, so that a pod is
    compared with few budgets."""

    pdbs: tuple[Pdb, ...]
    by_label: dict[str, dict[str, dict[str, list[int]]]] = field(default_factory=dict)
    """Namespace → (key, value) of one label in the selector's matchLabels → positions of the budgets with this label in
    `pdbs`."""
    by_namespace: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Namespace → positions in `pdbs` of the budgets that are compared with every pod, because their selector has no
    matchLabels or is not valid."""

    @classmethod
    def from_pdbs(cls, budgets: Iterable[Pdb]) -> PdbIndex:
        """Returns an index of these budgets. A budget's number is its position in `budgets`."""
        index = cls(tuple(budgets))
        for number, budget in enumerate(index.pdbs):
            if budget.selector is None:
                continue
            # One label is enough to rule out most pods; `_selects` checks the whole selector.
            label = next(iter(sorted(budget.selector.match_labels.items())), None)
            if label is not None and not budget.selector_problem:
                key, value = label
                by_key = index.by_label.setdefault(budget.namespace, {})
                by_key.setdefault(key, {}).setdefault(value, []).append(number)
            else:
                index.by_namespace[budget.namespace].append(number)
        return index

    def matching_numbers(self, namespace: str, labels: Labels) -> tuple[int, ...]:
        """Returns the numbers of the budgets that select a pod with these labels. An invalid selector counts as
        selecting every pod, so that its pods are not evicted by mistake."""
        by_label = self.by_label.get(namespace)
        candidates = candidate_entries(by_label, labels) if by_label else []
        candidates += self.by_namespace.get(namespace, ())
        if len(candidates) <= 1:
            return tuple(candidates) if candidates and self._selects(self.pdbs[candidates[0]], labels) else ()
        return tuple(sorted(n for n in candidates if self._selects(self.pdbs[n], labels)))

    @staticmethod
    def _selects(budget: Pdb, labels: Labels) -> bool:
        # A selector that is not valid counts as matching, so that it blocks the pods of its namespace.
        return bool(budget.selector_problem) or (budget.selector is not None and labels_match(budget.selector, labels))
