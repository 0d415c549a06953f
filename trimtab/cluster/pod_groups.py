"""Finds the groups of pods: pods that live and die together.

A group shows itself in two ways. The controllers and schedulers that know groups mark the pods (`GROUP_MARKS`). And
where a pod owns other pods, directly or through a controller, these end with it: all of them are one group, whoever
made them (`PodLeaders`). Pools may name further labels (`join_by_labels`). A group is of one namespace.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from trimtab.cluster.kinds import POD
from trimtab.cluster.owner import OwnerKey

if TYPE_CHECKING:
    from trimtab.cluster.pod import PodInfo


JOBSET_LABEL = "jobset.sigs.k8s.io/jobset-name"


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
        (JOBSET_LABEL,),
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


def join_by_labels(
    pods: Iterable[PodInfo], groups: Mapping[int, PodGroup], labels_of_nodes: Mapping[str, Collection[str]]
) -> dict[int, PodGroup]:
    """Returns the groups (`id` of a pod → its group), with those that the labels of pools add. Groups that such a label
    connects are one group. Pods of DaemonSets and static pods are left out: they stay on their nodes.

    labels_of_nodes: node → the labels that its pool names.
    """
    names = {label for labels in labels_of_nodes.values() for label in labels}
    sharing: dict[tuple[str, str, str], list[PodInfo]] = {}
    for pod in pods:
        labels = pod.requirements.labels
        for name in names & labels.keys():
            if labels[name] and not (pod.is_daemon or pod.is_static):
                sharing.setdefault((pod.namespace, name, labels[name]), []).append(pod)
    joined = dict(groups)
    for (namespace, name, value), members in sorted(sharing.items()):
        if any(name in labels_of_nodes.get(pod.node, ()) for pod in members):
            former = {joined[id(pod)] for pod in members if id(pod) in joined}
            group = min(former, default=PodGroup(namespace, f"{name}={value}"))
            if len(former) > 1:
                joined = {number: group if own in former else own for number, own in joined.items()}
            joined |= dict.fromkeys(map(id, members), group)
    return joined
