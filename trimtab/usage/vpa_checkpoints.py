"""What a VPA wrote down: its checkpoints, as cpu that was seen; its recommendations, as advice.

Weights are relative and fade, so newer days count more than in a window of ours. Of memory there is one peak a day:
no P5 or P95 comes from that, and none is made up. A recommendation is one number of the VPA's own: it is kept apart
from usage, and counts where nothing was seen.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import msgspec

from trimtab.cluster.api.autoscaling import TargetRef, VerticalPodAutoscaler
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.recommendation import VpaRecommendation, given
from trimtab.cluster.yaml_documents import read as read_documents
from trimtab.histogram import vpa
from trimtab.histogram.batch_history import BatchHistory, ContainerKey
from trimtab.histogram.histogram import number
from trimtab.histogram.vpa import CheckpointRejected
from trimtab.kube.client import Client
from trimtab.kube.errors import NotFound

PATHS = (
    "/apis/autoscaling.k8s.io/v1/verticalpodautoscalercheckpoints",
    "/apis/autoscaling.k8s.io/v1/verticalpodautoscalers",
)


class _Name(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = "default"


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    vpa_object_name: str = ""
    container_name: str = ""


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    kind: str = ""
    metadata: _Name = _Name()
    spec: _Spec = _Spec()
    status: vpa.CheckpointStatus = vpa.CheckpointStatus()


class _List(msgspec.Struct, frozen=True):
    items: tuple[Checkpoint, ...] = ()


class _VPAs(msgspec.Struct, frozen=True):
    items: tuple[VerticalPodAutoscaler, ...] = ()


@dataclass(slots=True)
class CheckpointSource:
    """Those of one file, or of a cluster."""

    found: list[Checkpoint] = field(default_factory=list)
    targets: dict[tuple[str, str], TargetRef] = field(default_factory=dict)
    """(namespace, VPA) → what it sizes; a VPA that is not known is taken to be named after its Deployment."""
    advice: dict[tuple[ContainerKey, str], VpaRecommendation] = field(default_factory=dict)
    """What their status recommends."""
    mistakes: list[ConfigError] = field(default_factory=list)

    @classmethod
    def of(cls, file: str, content: bytes) -> CheckpointSource:
        """What `kubectl get vpacheckpoints,vpa -A -o yaml` prints."""
        reading = read_documents(file, content)
        it, autoscalers = cls(mistakes=list(reading.mistakes)), 0
        for document in reading.documents:
            kind = document.kind
            try:
                if kind == "VerticalPodAutoscalerCheckpoint":
                    it.found.append(msgspec.convert(document.value, Checkpoint))
                elif kind == "VerticalPodAutoscaler":
                    it.autoscaler(msgspec.convert(document.value, VerticalPodAutoscaler))
                    autoscalers += 1
            except msgspec.ValidationError as error:
                it.mistakes.append(document.mistake((), "a VPA or its checkpoint", str(error)))
        if not it.found and not it.advice and not it.mistakes:
            got = "VPAs that recommend nothing yet" if autoscalers else "none"
            it.mistakes.append(ConfigError(file=file, expected="VPA checkpoints, or VPAs that recommend", got=got))
        return it

    def autoscaler(self, vpa: VerticalPodAutoscaler) -> None:
        """What it sizes, and what it says of it."""
        namespace, target = vpa.metadata.namespace or "default", vpa.spec.target_ref
        self.targets[namespace, vpa.metadata.name] = target
        for container, resource, advice in given(vpa):
            self.advice.setdefault((ContainerKey(namespace, target.kind, target.name, container), resource), advice)

    def pour(self, book: BatchHistory) -> None:
        """All that can be read, as cpu that was seen on its last day, and advice beside it; the rest is a mistake."""
        book.advice |= self.advice
        for one in self.found:
            try:
                known = vpa.read(one.status)
            except CheckpointRejected as error:
                name = f"{one.metadata.namespace}/{one.metadata.name}"
                self.mistakes.append(
                    ConfigError(file=name, expected="a checkpoint that a VPA would load", got=str(error))
                )
                continue
            book.pour(self._container(one), "cpu", _counted(known), known.first, known.last)

    def _container(self, one: Checkpoint) -> ContainerKey:
        namespace, vpa = one.metadata.namespace, one.spec.vpa_object_name
        target = self.targets.get((namespace, vpa), TargetRef(kind="Deployment", name=vpa))
        return ContainerKey(namespace, target.kind, target.name, one.spec.container_name)


def _counted(known: vpa.KnownContainers) -> Counter[int]:
    """As many samples as it counted, spread as its weights are, each in the middle of its bucket."""
    found: Counter[int] = Counter()
    scale, total = known.cpu.scale, known.cpu.total
    for bucket, weight in known.cpu.weights.items():
        middle = (scale.start(bucket) + scale.start(bucket + 1)) / 2
        where = number(middle)
        if where is not None and total:
            found[where] += round(weight / total * known.samples)
    return found


def listed(client: Client) -> CheckpointSource:
    """Of a cluster; empty where no VPA is installed."""
    found = CheckpointSource()
    try:
        found.found += msgspec.json.decode(client.get(PATHS[0]), type=_List).items
        for vpa in msgspec.json.decode(client.get(PATHS[1]), type=_VPAs).items:
            found.autoscaler(vpa)
    except NotFound:
        return CheckpointSource()
    return found
