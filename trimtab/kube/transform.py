"""Reduces objects to the fields that are retained.

The retained fields are the same whether an object is watched, listed or captured, so that all three give the same
results: the fields of the shapes, in which environment variables and command lines are replaced by what they show of a
container's runtime (`api.pod.Container`), but without texts of programs (termination messages), and without
annotations that Trimtab does not read (`last-applied-configuration` repeats environment variables and command lines).
Equal parts are stored once: the pods of a workload share their spec, so that a pod needs about a kilobyte.

For pods in the form that the planner reads, use `ClusterInformers(…, holds={"Pod": PlannerPodTransform()})` and
`values_of("Pod")`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from typing import Any, ClassVar, TypeVar

import msgspec

from trimtab.cluster.api.autoscaling import PodTemplate
from trimtab.cluster.api.core import Node
from trimtab.cluster.api.meta import UNSET, ApiObject, Labels, Metadata, UnsetType, change, value_or
from trimtab.cluster.api.meta import change as changed
from trimtab.cluster.api.pod import (
    Condition,
    Container,
    ContainerStatus,
    Pod,
    PodSpec,
    Volume,
    downward_items,
)
from trimtab.cluster.api.pod import Pod as PodShape
from trimtab.cluster.api.workload import FAILURE, Templated, Workload
from trimtab.cluster.api.workload import PodTemplateSpec as Template
from trimtab.cluster.count_autoscalers import DELIVERY_MARKS
from trimtab.cluster.node_nature import SIGN_ANNOTATIONS
from trimtab.cluster.pod import PodInfo, PodReader
from trimtab.cluster.pod_groups import GROUP_ANNOTATIONS
from trimtab.cluster.runtime_signs import can_name_runtime

T = TypeVar("T")

RETAINED_DOMAINS = (
    "trimtab.dev",
    "kubernetes.io",
    "k8s.io",
    "karpenter.sh",
    "cluster.x-k8s.io",
    "machine.openshift.io",
)
"""Annotations of these domains and their subdomains are retained."""
DROPPED_PREFIXES = ("kubectl.kubernetes.io/", "kubernetes.io/change-cause")
"""Prefixes of kubectl's annotations, which hold whole manifests and its own command line (`--record`)."""
OPT_OUT_VALUE = "true"
"""An annotation with this value is retained whatever its name is, because pools define their own opt-out annotations
(`optOut`)."""
RETAINED_CONDITIONS = ("Ready", "PodScheduled", "DisruptionTarget", "PodResizePending", "PodResizeInProgress")
"""The conditions of a pod on which decisions depend."""
_MAX_SHARED_PARTS = 10_000
"""The number of different shared parts in memory. If there are more, all are forgotten and sharing begins anew, which
only costs memory."""


@dataclass(slots=True)
class FieldPruner:
    """Reduces objects to the retained fields. Equal parts become the same object. Not thread-safe."""

    _parts: dict[bytes, Any] = field(default_factory=dict)

    def __call__(self, shape: ApiObject) -> ApiObject:
        if isinstance(shape, Pod):
            conditions = tuple([_prune_condition(c) for c in shape.status.conditions if c.type in RETAINED_CONDITIONS])
            containers = tuple(map(_prune_container_status, shape.status.container_statuses))
            return changed(
                shape,
                metadata=self.prune_metadata(shape.metadata),
                spec=self._prune_spec(shape.spec),
                status=changed(
                    shape.status,
                    phase=sys.intern(shape.status.phase),
                    conditions=conditions,
                    container_statuses=self._shared(containers),
                    init_container_statuses=self._shared(_prune_init_statuses(shape.status.init_container_statuses)),
                ),
            )
        if isinstance(shape, Node):
            return changed(shape, metadata=self.prune_metadata(shape.metadata))
        if isinstance(shape, Templated):
            return changed(
                shape,
                metadata=self.prune_metadata(shape.metadata),
                spec=changed(shape.spec, template=self._prune_template(shape.spec.template)),
            )
        if isinstance(shape, PodTemplate):
            return changed(
                shape, metadata=self.prune_metadata(shape.metadata), template=self._prune_template(shape.template)
            )
        if isinstance(shape, Workload):
            # The status of a workload with only the condition that is read.
            return changed(
                shape,
                metadata=self.prune_metadata(shape.metadata),
                status=changed(
                    shape.status, conditions=tuple([c for c in shape.status.conditions if c.type == FAILURE])
                ),
            )
        return changed(shape, metadata=self.prune_metadata(shape.metadata))  # type: ignore[attr-defined]

    def _prune_template(self, template: Template) -> Template:
        return changed(template, metadata=self.prune_metadata(template.metadata), spec=self._prune_spec(template.spec))

    def _prune_spec(self, spec: PodSpec) -> PodSpec:
        """Returns the spec without its node and without volumes with generated names. The rest is the same for all pods
        of one template, and is shared."""
        # Node names repeat in every pod of a node: one string for all of them.
        node = sys.intern(spec.node_name)
        # Whether decisions depend on the volume. Volumes with tokens, configuration and secrets, which have random
        # names, do not matter.
        without_node = changed(
            spec,
            node_name="",
            containers=tuple(map(_prune_container, spec.containers)),
            init_containers=tuple(map(_prune_container, spec.init_containers)),
            volumes=tuple(
                [
                    _prune_volume(v)
                    for v in spec.volumes
                    if any(source(v) is not UNSET for source in _SOURCES)
                    or any(source.resource_field_ref is not None for source in downward_items(v))
                ]
            ),
        )
        shared_spec = self._shared(without_node)
        return changed(shared_spec, node_name=node) if node else shared_spec

    def prune_metadata(self, meta: Metadata) -> Metadata:
        """Returns the metadata of any object, with only the annotations that are read, and with repeated parts
        shared."""
        return changed(
            meta,
            namespace=sys.intern(meta.namespace),
            labels=self._shared(meta.labels),
            annotations=self.prune_annotations(meta.annotations),
            owner_references=self._shared(meta.owner_references),
            finalizers=self._shared(meta.finalizers),
        )

    def prune_annotations(self, annotations: Labels | UnsetType) -> Labels | UnsetType:
        """Returns the annotations that Trimtab reads."""
        return self._shared(_read_annotations(annotations))

    def _shared(self, part: T) -> T:
        """Returns the first part that was equal to this one, so that equal parts share one object."""
        if isinstance(part, UnsetType) or not part:
            return part
        key = _encode(part)
        shared = self._parts.get(key)
        if shared is None:
            if len(self._parts) >= _MAX_SHARED_PARTS:
                self._parts.clear()
            shared = self._parts[key] = part
        return shared


_encode = msgspec.json.Encoder().encode


def _read_annotations(annotations: Labels | UnsetType) -> Labels | UnsetType:
    if isinstance(annotations, UnsetType):
        return UNSET
    return {name: text for name, text in annotations.items() if _is_read(name) or text == OPT_OUT_VALUE} or UNSET


@lru_cache(4096)
def _is_read(name: str) -> bool:
    domain = name.partition("/")[0]
    return (
        name in GROUP_ANNOTATIONS
        or name in SIGN_ANNOTATIONS
        or name in DELIVERY_MARKS
        or can_name_runtime(name)
        or (
            not name.startswith(DROPPED_PREFIXES)
            and any(domain == d or domain.endswith(f".{d}") for d in RETAINED_DOMAINS)
        )
    )


def _prune_container(container: Container) -> Container:
    """Returns the container with those mounts only that need a feature of the node."""
    if not container.volume_mounts:
        return container
    mounts = tuple([mount for mount in container.volume_mounts if mount.recursive_read_only])
    return changed(container, volume_mounts=mounts)


_DOWNWARD = ("downward_api", "projected")
_SOURCES = tuple(attrgetter(name) for name in Volume.__struct_fields__ if name not in ("name", *_DOWNWARD))


def _prune_volume(volume: Volume) -> Volume:
    """Returns the volume without details: whether it has a host path, of which type, and its driver; not which path."""
    if volume.host_path is UNSET and volume.csi is UNSET and volume.ephemeral is UNSET:
        return volume
    bare: dict[str, Any] = {name: {} for name in ("host_path", "ephemeral") if value_or(getattr(volume, name), None)}
    host_path = value_or(volume.host_path, None)
    if kind := sys.intern(str(host_path.get("type") or "")) if isinstance(host_path, dict) else "":
        bare["host_path"] = {"type": kind}
    if isinstance(value_or(volume.csi, None), dict):
        bare["csi"] = {"driver": volume.csi.get("driver", "")}
    return changed(volume, **bare)


def _prune_condition(condition: Condition) -> Condition:
    """Returns the condition with its time and reason, but without its message: the scheduler's message names every
    node. Pods that were created together share the time."""
    since = condition.last_transition_time
    return Condition(
        type=sys.intern(condition.type),
        status=sys.intern(condition.status),
        reason=sys.intern(condition.reason),
        last_transition_time=since if since is None else sys.intern(since),
    )


def _prune_container_status(status: ContainerStatus) -> ContainerStatus:
    state, last = status.state, status.last_state
    if not last and isinstance(state, dict) and "running" in state:
        return changed(status, state=_RUNNING, last_state=UNSET)  # nearly every container
    return changed(status, state=_prune_state(state), last_state=_prune_state(last))


def _prune_init_statuses(statuses: tuple[ContainerStatus, ...]) -> tuple[ContainerStatus, ...]:
    """Returns the statuses of init containers, reduced to `allocatedResources`."""
    return tuple(
        [
            ContainerStatus(name=status.name, allocated_resources=status.allocated_resources)
            for status in statuses
            if status.allocated_resources
        ]
    )


_RUNNING: dict[str, Any] = {"running": {}}


def _prune_state(state: Any) -> Any:
    """Returns the state of a container as running, waiting or terminated with its reason, without start time and
    messages."""
    if not isinstance(state, dict):
        return state
    retained = ("reason", "exitCode", "finishedAt")
    return {
        phase: {name: value for name, value in details.items() if name in retained}
        for phase, details in state.items()
        if isinstance(details, dict)
    }


_MAX_PLANNER_PARTS = 20_000
"""The number of different requirements and owners that are shared in memory. If there are more, all are forgotten and
sharing begins anew."""


@dataclass(slots=True)
class PlannerPodTransform:
    """Turns a pod from the API server into a pod of the planner, with the same result as for a captured pod. Not
    thread-safe."""

    skip_env: ClassVar[bool] = True
    """The planner reads neither environment variables nor resize policies; see `ObjectStore.skip_env`."""
    max_parts: int = _MAX_PLANNER_PARTS
    _pruner: FieldPruner = field(default_factory=FieldPruner)
    _reader: PodReader = field(default_factory=PodReader)

    def __call__(self, shape: ApiObject) -> PodInfo:
        assert isinstance(shape, PodShape)
        reader = self._reader
        if max(len(reader.requirements_by_key), len(reader.likeness_numbers), len(reader.owners)) > self.max_parts:
            reader = self._reader = PodReader(first_likeness=reader.first_likeness + len(reader.likeness_numbers))
        metadata = change(shape.metadata, annotations=self._pruner.prune_annotations(shape.metadata.annotations))
        return reader.read_pod(change(shape, metadata=metadata))
