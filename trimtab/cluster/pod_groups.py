"""The marks of groups of pods that live and die together: labels and annotations, as the controllers and schedulers
that know groups write them. A group without a mark is found by its owners (`pod_leaders`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class GroupMark:
    """Labels or annotations of a pod whose values together name the pod's group."""

    where: Literal["labels", "annotations"]
    keys: tuple[str, ...]
    source: str
    """Where the project says so."""


GROUP_MARKS = (
    GroupMark(
        "labels", ("scheduling.x-k8s.io/pod-group",),
        "kubernetes-sigs/scheduler-plugins, apis/scheduling/v1alpha1/types.go: PodGroupLabel",
    ),
    GroupMark(
        "labels", ("pod-group.scheduling.sigs.k8s.io",),
        "kubernetes-sigs/scheduler-plugins until 0.24, pkg/coscheduling/README.md",
    ),
    GroupMark(
        "labels", ("kueue.x-k8s.io/pod-group-name",),
        "kubernetes-sigs/kueue, pkg/controller/jobs/pod/constants: GroupNameLabel",
    ),
    GroupMark(
        "labels", ("leaderworkerset.sigs.k8s.io/group-key",),
        "kubernetes-sigs/lws, api/leaderworkerset/v1/leaderworkerset_types.go: GroupUniqueHashLabelKey",
    ),
    GroupMark(
        "labels", ("leaderworkerset.sigs.k8s.io/name", "leaderworkerset.sigs.k8s.io/group-index"),
        "kubernetes-sigs/lws, api/leaderworkerset/v1/leaderworkerset_types.go: SetNameLabelKey, GroupIndexLabelKey",
    ),
    GroupMark(
        "labels", ("jobset.sigs.k8s.io/jobset-name",),
        "kubernetes-sigs/jobset, api/jobset/v1alpha2/jobset_types.go: JobSetNameKey",
    ),
    GroupMark(
        "labels", ("ray.io/cluster",),
        "ray-project/kuberay, ray-operator/controllers/ray/utils/constant.go: RayClusterLabelKey",
    ),
    GroupMark(
        "annotations", ("scheduling.k8s.io/group-name",),
        "volcano-sh/apis, pkg/apis/scheduling/v1beta1/labels.go: KubeGroupNameAnnotationKey",
    ),
    GroupMark(
        "annotations", ("scheduling.volcano.sh/group-name",),
        "volcano-sh/apis, pkg/apis/scheduling/v1beta1/labels.go: VolcanoGroupNameAnnotationKey",
    ),
    GroupMark(
        "labels", ("volcano.sh/job-name",),
        "volcano-sh/apis, pkg/apis/batch/v1alpha1/labels.go: JobNameKey",
    ),
    GroupMark(
        "labels", ("training.kubeflow.org/job-name",),
        "kubeflow/training-operator and kubeflow/mpi-operator, pkg/apis/kubeflow.org: JobNameLabel",
    ),
    GroupMark(
        "labels", ("mpi-job-name",), "kubeflow/mpi-operator v1, pkg/controllers/v1: labelMPIJobName",
    ),
    GroupMark(
        "labels", ("spark-app-selector",),
        "apache/spark, resource-managers/kubernetes, Constants.scala: SPARK_APP_ID_LABEL",
    ),
    GroupMark(
        "labels", ("sparkoperator.k8s.io/app-name",),
        "kubeflow/spark-operator, pkg/common/spark.go: LabelSparkAppName",
    ),
    GroupMark(
        "labels", ("dask.org/cluster-name",),
        "dask/dask-kubernetes, dask_kubernetes/operator/controller/controller.py",
    ),
    GroupMark(
        "annotations", ("yunikorn.apache.org/app-id", "yunikorn.apache.org/task-group-name"),
        "apache/yunikorn-k8shim, pkg/common/constants/constants.go: AnnotationTaskGroupName",
    ),
    GroupMark(
        "annotations", ("gang.scheduling.koordinator.sh/name",),
        "koordinator-sh/koordinator, apis/extension/coscheduling.go: AnnotationGangName",
    ),
    GroupMark(
        "annotations", ("pod-group-name",),
        "NVIDIA/KAI-Scheduler, pkg/common/constants/constants.go: PodGroupAnnotationForPod",
    ),
    GroupMark(
        "labels", ("grove.io/podgang",),
        "ai-dynamo/grove, operator/api/common/labels.go: LabelPodGang",
    ),
)  # fmt: skip
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
