"""What do we keep of an object?

The same whether it is watched, listed or captured, so that all three give the same answers: what the shapes name,
without command lines, without what programs wrote (termination messages), without annotations nobody here reads
(`last-applied-configuration` repeats environments and command lines). And equal parts once: the pods of a workload
share what they ask for, which makes one pod about a kilobyte.

Pods held as plans take them: `ClusterInformers(…, holds={"Pod": Planned()})`, read with `watch.held("Pod")`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from typing import Any, TypeVar

import msgspec

from trimtab.cluster.api.autoscaling import PodTemplate
from trimtab.cluster.api.core import Node
from trimtab.cluster.api.meta import UNSET, ApiObject, Labels, Metadata, UnsetType, change, get
from trimtab.cluster.api.meta import change as changed
from trimtab.cluster.api.pod import (
    Condition,
    Container,
    ContainerStatus,
    DownwardItem,
    EnvSource,
    Pod,
    PodSpec,
    PodStatus,
    Volume,
    downward_items,
)
from trimtab.cluster.api.pod import Pod as PodShape
from trimtab.cluster.api.workload import FAILURE, Templated, TemplatedSpec, Workload, WorkloadStatus
from trimtab.cluster.api.workload import PodTemplateSpec as Template
from trimtab.cluster.pod import PodInfo, PodReader

T = TypeVar("T")

DOMAINS = ("trimtab.dev", "kubernetes.io", "k8s.io", "karpenter.sh", "cluster.x-k8s.io", "machine.openshift.io")
"""Annotations of these domains, and of what lies below them, are kept."""
NEVER = ("kubectl.kubernetes.io/", "kubernetes.io/change-cause")
"""What kubectl wrote down: whole manifests, and its own command line (`--record`)."""
YES = "true"
"""An annotation that says just this is kept whatever its name: pools name their own opt-outs (`optOut`)."""
CONDITIONS = ("Ready", "PodScheduled", "DisruptionTarget")
"""Of a pod, those that decide something."""
_COMMANDS = tuple(name for name in ("command", "args") if name in Container.__struct_fields__)
_MOST_SHARED = 10_000
"""Different parts remembered; beyond it sharing begins anew, and nothing is lost but memory."""


@dataclass(slots=True)
class FieldPruner:
    """Gives what is kept of an object. Remembers parts so that equal ones are the very same; not for two threads."""

    _parts: dict[bytes, Any] = field(default_factory=dict)

    def __call__(self, found: ApiObject) -> ApiObject:
        if isinstance(found, Pod):
            return self._pod(found)
        if isinstance(found, Node):
            return changed(found, metadata=self.metadata(found.metadata))
        if isinstance(found, Templated):
            return changed(found, metadata=self.metadata(found.metadata), spec=self._templated(found.spec))
        if isinstance(found, PodTemplate):
            return changed(found, metadata=self.metadata(found.metadata), template=self._template(found.template))
        if isinstance(found, Workload):
            return changed(found, metadata=self.metadata(found.metadata), status=_workload_status(found.status))
        return changed(found, metadata=self.metadata(found.metadata))  # type: ignore[attr-defined]

    def _pod(self, pod: Pod) -> Pod:
        return Pod(metadata=self.metadata(pod.metadata), spec=self._spec(pod.spec), status=self._status(pod.status))

    def _templated(self, spec: TemplatedSpec) -> TemplatedSpec:
        return changed(spec, template=self._template(spec.template))

    def _template(self, made: Template) -> Template:
        return changed(made, metadata=self.metadata(made.metadata), spec=self._spec(made.spec))

    def _spec(self, spec: PodSpec) -> PodSpec:
        """Everything but the node is the same for pods of one template, once nameless volumes are gone."""
        node = sys.intern(spec.node_name)
        bare = changed(
            spec,
            node_name="",
            containers=tuple(map(_container, spec.containers)),
            init_containers=tuple(map(_container, spec.init_containers)),
            volumes=tuple([_volume(v) for v in spec.volumes if _says_something(v)]),
        )
        template = self._shared(bare)
        return changed(template, node_name=node) if node else template

    def _status(self, status: PodStatus) -> PodStatus:
        conditions = tuple([_condition(c) for c in status.conditions if c.type in CONDITIONS])
        containers = tuple(map(_container_status, status.container_statuses))
        return changed(
            status,
            phase=sys.intern(status.phase),
            conditions=conditions,
            container_statuses=self._shared(containers),
            init_container_statuses=self._shared(_held(status.init_container_statuses)),
        )

    def metadata(self, meta: Metadata) -> Metadata:
        """Of any object: annotations that somebody reads, and everything that repeats held once."""
        return changed(
            meta,
            namespace=sys.intern(meta.namespace),
            labels=self._shared(meta.labels),
            annotations=self.annotations(meta.annotations),
            owner_references=self._shared(meta.owner_references),
            finalizers=self._shared(meta.finalizers),
        )

    def annotations(self, found: Labels | UnsetType) -> Labels | UnsetType:
        """Those that somebody reads."""
        return self._shared(_annotations(found))

    def _shared(self, part: T) -> T:
        """The first part that was equal to it."""
        if isinstance(part, UnsetType) or not part:
            return part
        key = _encode(part)
        found = self._parts.get(key)
        if found is None:
            if len(self._parts) >= _MOST_SHARED:
                self._parts.clear()
            found = self._parts[key] = part
        return found


_encode = msgspec.json.Encoder().encode


def _annotations(found: Labels | UnsetType) -> Labels | UnsetType:
    if isinstance(found, UnsetType):
        return UNSET
    return {name: text for name, text in found.items() if _read_here(name) or text == YES} or UNSET


@lru_cache(4096)
def _read_here(name: str) -> bool:
    domain = name.partition("/")[0]
    return not name.startswith(NEVER) and any(domain == d or domain.endswith(f".{d}") for d in DOMAINS)


def _container(container: Container) -> Container:
    """Without command lines; of the environment only the variables that tell a container its own resources."""
    if not container.env and not any(getattr(container, name) for name in _COMMANDS):
        return container
    env = tuple([variable for variable in container.env if _tells_resources(variable.value_from)])
    return changed(container, env=env, **dict.fromkeys(_COMMANDS, ()))


def _tells_resources(source: EnvSource | DownwardItem | None) -> bool:
    return source is not None and source.resource_field_ref is not None


def _says_something(volume: Volume) -> bool:
    """The token's volume, config and secrets say nothing to us, and their names are chance."""
    return any(source(volume) is not UNSET for source in _SOURCES) or any(map(_tells_resources, downward_items(volume)))


_DOWNWARD = ("downward_api", "projected")
_SOURCES = tuple(attrgetter(name) for name in Volume.__struct_fields__ if name not in ("name", *_DOWNWARD))


def _volume(volume: Volume) -> Volume:
    """That there is a host path or a driver counts; where it leads does not."""
    if volume.host_path is UNSET and volume.csi is UNSET and volume.ephemeral is UNSET:
        return volume
    bare: dict[str, Any] = {name: {} for name in ("host_path", "ephemeral") if get(getattr(volume, name), None)}
    if isinstance(get(volume.csi, None), dict):
        bare["csi"] = {"driver": volume.csi.get("driver", "")}
    return changed(volume, **bare)


def _workload_status(status: WorkloadStatus) -> WorkloadStatus:
    """Of its conditions only the one that somebody reads."""
    return changed(status, conditions=tuple([c for c in status.conditions if c.type == FAILURE]))


def _condition(condition: Condition) -> Condition:
    """Its time and reason are enough: the scheduler's words name every node. Pods made together share the time."""
    since = condition.last_transition_time
    return Condition(
        type=sys.intern(condition.type),
        status=sys.intern(condition.status),
        reason=sys.intern(condition.reason),
        last_transition_time=since if since is None else sys.intern(since),
    )


def _container_status(status: ContainerStatus) -> ContainerStatus:
    state, last = status.state, status.last_state
    if not last and isinstance(state, dict) and "running" in state:
        return changed(status, state=_RUNNING, last_state=UNSET)  # nearly all of them
    return changed(status, state=_state(state), last_state=_state(last))


def _held(inits: tuple[ContainerStatus, ...]) -> tuple[ContainerStatus, ...]:
    """Of init containers only what is set aside for them is read."""
    return tuple(
        [
            ContainerStatus(name=c.name, allocated_resources=c.allocated_resources)
            for c in inits
            if c.allocated_resources
        ]
    )


_RUNNING: dict[str, Any] = {"running": {}}


def _state(state: Any) -> Any:
    """Running, waiting or ended, and why; not since when, nor what it said."""
    if not isinstance(state, dict):
        return state
    told = ("reason", "exitCode", "finishedAt")
    return {
        how: {name: value for name, value in more.items() if name in told}
        for how, more in state.items() if isinstance(more, dict)
    }  # fmt: skip


_MOST_ASKS = 20_000
"""Different asks, and owners of alike pods, remembered for sharing; beyond it sharing begins anew."""


@dataclass(slots=True)
class PlannerPodTransform:
    """An API pod → the planner's, made as from a capture of it; not for two threads."""

    most: int = _MOST_ASKS
    _keeper: FieldPruner = field(default_factory=FieldPruner)
    _reader: PodReader = field(default_factory=PodReader)

    def __call__(self, found: ApiObject) -> PodInfo:
        assert isinstance(found, PodShape)
        reader = self._reader
        if max(len(reader.known), len(reader.likes), len(reader.owners)) > self.most:
            reader = self._reader = PodReader(first=reader.first + len(reader.likes))
        kept = change(found.metadata, annotations=self._keeper.annotations(found.metadata.annotations))
        return reader.pod(change(found, metadata=kept))
