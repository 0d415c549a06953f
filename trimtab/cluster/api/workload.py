"""What owns pods, and what do its pods look like?"""

from trimtab.cluster.api.meta import UNSET, LabelSelector, Metadata, Shape, UnsetType
from trimtab.cluster.api.pod import PodSpec


class PodTemplate(Shape, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()


class WorkloadSpec(Shape, frozen=True, kw_only=True):
    """Deployment, ReplicaSet, StatefulSet, DaemonSet, Job and whatever else has replicas and a selector."""

    replicas: int | UnsetType = UNSET
    selector: LabelSelector | UnsetType = UNSET


class WorkloadStatus(Shape, frozen=True, kw_only=True):
    replicas: int = 0
    ready_replicas: int = 0


class Workload(Shape, frozen=True, kw_only=True):
    """Any owner. A ReplicationController's selector, a plain map, is read as its labels (see `snapshot`)."""

    kind: str = ""
    api_version: str = ""
    metadata: Metadata = Metadata()
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


class TemplatedSpec(Shape, frozen=True, kw_only=True):
    replicas: int | UnsetType = UNSET
    template: PodTemplate = PodTemplate()


class Templated(Shape, frozen=True, kw_only=True):
    """An owner as whoever makes its next pod reads it."""

    metadata: Metadata = Metadata()
    spec: TemplatedSpec = TemplatedSpec()
