"""Reads the checkpoints of VPAs as cpu usage, and reads the recommendations of VPAs.

The weights in a checkpoint are relative and decay, so newer days count for more than they do in Trimtab's own window.
Memory has one peak a day, from which neither P5 nor P95 can be computed, so checkpoints give no memory usage. A
recommendation is a number that the VPA itself computed: it is kept apart from usage, and is used if there is no usage.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from trimtab.cluster.api.autoscaling import TargetRef, VerticalPodAutoscaler
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.owner import kind_of_reference
from trimtab.cluster.recommendation import VpaRecommendation, vpa_recommendations
from trimtab.cluster.yaml_documents import read_documents
from trimtab.histogram import vpa
from trimtab.histogram.batch_history import BatchHistory, ContainerKey
from trimtab.histogram.histogram import bucket_of
from trimtab.histogram.vpa import CheckpointRejected
from trimtab.kube.errors import NotFound

if TYPE_CHECKING:
    from trimtab.kube.client import Client

PATHS = (
    "/apis/autoscaling.k8s.io/v1/verticalpodautoscalercheckpoints",
    "/apis/autoscaling.k8s.io/v1/verticalpodautoscalers",
)


class _CheckpointMetadata(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = "default"


class _CheckpointSpec(msgspec.Struct, frozen=True, rename="camel"):
    vpa_object_name: str = ""
    container_name: str = ""


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    kind: str = ""
    metadata: _CheckpointMetadata = _CheckpointMetadata()
    spec: _CheckpointSpec = _CheckpointSpec()
    status: vpa.CheckpointStatus = vpa.CheckpointStatus()


class _CheckpointList(msgspec.Struct, frozen=True):
    items: tuple[Checkpoint, ...] = ()


class _VpaList(msgspec.Struct, frozen=True):
    items: tuple[VerticalPodAutoscaler, ...] = ()


@dataclass(slots=True)
class CheckpointSource:
    """The checkpoints in one file or in a cluster."""

    checkpoints: list[Checkpoint] = field(default_factory=list)
    targets: dict[tuple[str, str], TargetRef] = field(default_factory=dict)
    """(namespace, VPA) → the workload that the VPA targets. A VPA that is not in the mapping is assumed to have the
    name of its Deployment."""
    vpa_recommendations: dict[tuple[ContainerKey, str], VpaRecommendation] = field(default_factory=dict)
    """(container, resource) → the recommendation in the status of its VPA."""
    mistakes: list[ConfigError] = field(default_factory=list)

    @classmethod
    def from_file(cls, file: str, content: bytes) -> CheckpointSource:
        """Returns the content of a file that `kubectl get vpacheckpoints,vpa -A -o yaml` printed."""
        reading = read_documents(file, content)
        source, vpa_count = cls(mistakes=list(reading.mistakes)), 0
        for document in reading.documents:
            kind = document.kind
            try:
                if kind == "VerticalPodAutoscalerCheckpoint":
                    source.checkpoints.append(msgspec.convert(document.value, Checkpoint))
                elif kind == "VerticalPodAutoscaler":
                    source.add_autoscaler(msgspec.convert(document.value, VerticalPodAutoscaler))
                    vpa_count += 1
            except msgspec.ValidationError as error:
                source.mistakes.append(document.error_at((), "a VPA or its checkpoint", str(error)))
        if not source.checkpoints and not source.vpa_recommendations and not source.mistakes:
            got = "VPAs that do not recommend anything yet" if vpa_count else "none"
            source.mistakes.append(
                ConfigError(file=file, expected="VPA checkpoints, or VPAs with a recommendation", got=got)
            )
        return source

    def add_autoscaler(self, vpa: VerticalPodAutoscaler) -> None:
        """Adds the target and the recommendations of a VPA."""
        namespace, target = vpa.metadata.namespace or "default", vpa.spec.target_ref
        self.targets[namespace, vpa.metadata.name] = target
        for container, resource, advice in vpa_recommendations(vpa):
            self.vpa_recommendations.setdefault(
                (ContainerKey(namespace, kind_of_reference(target), target.name, container), resource), advice
            )

    def add_to_batch(self, history: BatchHistory) -> None:
        """Adds every readable checkpoint to a history, as cpu usage on its last day, and the recommendations.
        Checkpoints that cannot be read are reported as errors."""
        history.vpa_recommendations |= self.vpa_recommendations
        for checkpoint in self.checkpoints:
            try:
                decoded = vpa.decode_checkpoint(checkpoint.status)
            except CheckpointRejected as error:
                name = f"{checkpoint.metadata.namespace}/{checkpoint.metadata.name}"
                self.mistakes.append(
                    ConfigError(file=name, expected="a checkpoint that a VPA would load", got=str(error))
                )
                continue
            history.add_bucket_counts(
                self._container_of(checkpoint), "cpu", _samples_by_bucket(decoded), decoded.first, decoded.last
            )

    def _container_of(self, checkpoint: Checkpoint) -> ContainerKey:
        namespace, vpa = checkpoint.metadata.namespace, checkpoint.spec.vpa_object_name
        target = self.targets.get((namespace, vpa), TargetRef(kind_name="Deployment", name=vpa))
        kind = kind_of_reference(target)
        return ContainerKey(namespace, kind, target.name, checkpoint.spec.container_name)


def _samples_by_bucket(decoded: vpa.CheckpointHistory) -> Counter[int]:
    """Returns bucket → number of samples: as many samples as the VPA counted, distributed like its weights, each in the
    middle of its bucket."""
    counts: Counter[int] = Counter()
    scale, total = decoded.cpu.scale, decoded.cpu.total
    for bucket, weight in decoded.cpu.weights.items():
        middle = (scale.bucket_start(bucket) + scale.bucket_start(bucket + 1)) / 2
        value_bucket = bucket_of(middle)
        if value_bucket is not None and total:
            counts[value_bucket] += round(weight / total * decoded.samples)
    return counts


def list_checkpoints(client: Client) -> CheckpointSource:
    """Returns the checkpoints of a cluster; empty if no VPA is installed."""
    source = CheckpointSource()
    try:
        source.checkpoints += msgspec.json.decode(client.get(PATHS[0]), type=_CheckpointList).items
        for vpa in msgspec.json.decode(client.get(PATHS[1]), type=_VpaList).items:
            source.add_autoscaler(vpa)
    except NotFound:
        return CheckpointSource()
    return source
