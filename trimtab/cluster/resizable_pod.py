"""A running pod as a resize reads it: what each container requests, what its node has given it, and how it runs.

A pod is resized through its `resize` subresource (stable since Kubernetes 1.35, on by default since 1.33). The kubelet
answers in the pod's status:

- condition PodResizePending, reason Deferred: the node has no room now, and the kubelet tries again;
- condition PodResizePending, reason Infeasible: this node can never do it;
- condition PodResizeInProgress: the kubelet has agreed and applies the resize; reason Error: that fails;
- neither condition, and `status.containerStatuses[].resources` equals the spec: the resize is done.

A kubelet that does not report `resources` cannot resize, and the API server rejects a resize of its pods.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import msgspec

from trimtab.cluster import quantity
from trimtab.cluster.api.meta import ResourceList, value_or
from trimtab.cluster.api.pod import Condition, Container, ContainerStatus, Pod
from trimtab.cluster.owner import Owner
from trimtab.cluster.pod import FINISHED_PHASES, MIRROR_ANNOTATION
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.resources import QoS, limits_of, qos_class, requests_of
from trimtab.cluster.timestamps import Seconds, parse_timestamp

RESIZED_RESOURCES = ("cpu", "memory")
"""The resources that a kubelet can resize."""
PENDING, IN_PROGRESS = "PodResizePending", "PodResizeInProgress"
"""The conditions in which the kubelet answers."""
OOM_KILLED = "OOMKilled"
VPA_ANNOTATION = "vpaUpdates"
"""The annotation of the VPA's webhook on pods whose requests it wrote."""


class ResizeAnswer(StrEnum):
    """The kubelet's answer to the requests in the pod's spec."""

    UNSUPPORTED = "unsupported"
    """It does not report what containers have, so it cannot resize."""
    UNANSWERED = "unanswered"
    """It has not answered yet: what the containers have differs from the spec, and there is no condition."""
    DEFERRED = "deferred"
    INFEASIBLE = "infeasible"
    IN_PROGRESS = "in-progress"
    FAILED = "failed"
    """It agreed, and applying the resize fails."""
    DONE = "done"
    """The containers have what the spec says."""


class RunningContainer(msgspec.Struct, frozen=True, kw_only=True):
    """What one container that runs as long as its pod requests: a main container or a sidecar."""

    name: str
    is_sidecar: bool = False
    """It is among the init containers, with restartPolicy Always."""
    requests: ResourceList = {}
    """As written in the pod's spec."""
    limits: ResourceList = {}
    restarted_by: tuple[str, ...] = ()
    """The resources whose change restarts the container (resizePolicy RestartContainer)."""

    def request(self, resource: str) -> int | None:
        """Returns the request in the scheduler's numbers, or None if there is none, or it is not a quantity."""
        return _amount_of(self.requests, resource)

    def limit(self, resource: str) -> int | None:
        """Returns the limit in the scheduler's numbers, or None if there is none, or it is not a quantity."""
        return _amount_of(self.limits, resource)


class EndingContainer(msgspec.Struct, frozen=True, kw_only=True):
    """An init container that ends before the main containers start. kube-scheduler and the kubelet count the pod with
    its request for as long as the pod exists (KEP-753)."""

    requests: ResourceList = {}
    sidecar_count: int = 0
    """How many sidecars run at the same time: those before it in the list."""


class ContainerRun(msgspec.Struct, frozen=True, kw_only=True):
    """How one container runs, by its status."""

    name: str
    restarts: int = 0
    oom_killed_at: Seconds | None = None
    """When it was last killed because it ran out of memory, as far as its status still says."""
    has: ResourceList = {}
    """The requests that it really has; empty if its kubelet does not report them."""


class ResizablePod(msgspec.Struct, frozen=True, kw_only=True):
    """One pod on a node, with what decides about its resize."""

    name: str
    namespace: str
    uid: str
    node: str
    version: str
    """Its resourceVersion: a resize that was decided on an older version is rejected."""
    owner: Owner | None
    """Its nearest controller."""
    phase: str
    qos: QoS
    containers: tuple[RunningContainer, ...]
    ending: tuple[EndingContainer, ...] = ()
    """The init containers that end, in their order."""
    runs: tuple[ContainerRun, ...] = ()
    answer: ResizeAnswer = ResizeAnswer.UNSUPPORTED
    message: str = ""
    """The kubelet's own words, where it defers, refuses or fails."""
    is_ready: bool = False
    ready_changed_at: Seconds | None = None
    """When it became ready, or stopped to be."""
    started: Seconds | None = None
    is_terminating: bool = False
    obstacle: str = ""
    """Why such a pod can never be resized by Trimtab, as a sentence without its subject; empty if it can."""
    has_pod_level: bool = False
    """It requests resources for all containers together."""
    vpa_updates: str = ""
    """The annotation of the VPA's webhook."""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def is_running(self) -> bool:
        """Whether it runs on its node and is not being deleted."""
        return self.phase == "Running" and bool(self.node) and not self.is_terminating

    @property
    def is_gone(self) -> bool:
        """Whether nothing needs to be done for it any more: it has finished, or is being deleted."""
        return self.is_terminating or self.phase in FINISHED_PHASES

    def container(self, name: str) -> RunningContainer | None:
        """Returns the container of this name."""
        return next((container for container in self.containers if container.name == name), None)

    def held(self, container: str, resource: str) -> int | None:
        """Returns the larger of what the container requests and what it has, in the scheduler's numbers, or None if
        neither is known."""
        own = self.container(container)
        run = next((run for run in self.runs if run.name == container), None)
        amounts = (
            own.request(resource) if own is not None else None,
            _amount_of(run.has, resource) if run is not None else None,
        )
        return max((amount for amount in amounts if amount is not None), default=None)

    def total_request(self, resource: str, amounts: Mapping[str, int]) -> int:
        """Returns the request by which the node counts the pod if its containers requested these amounts (container →
        amount; the others request what they do). Overhead is not included."""
        running = [
            (amounts.get(container.name, container.request(resource) or 0), container.is_sidecar)
            for container in self.containers
        ]
        sidecars = [amount for amount, is_sidecar in running if is_sidecar]
        starting = (
            (_amount_of(each.requests, resource) or 0) + sum(sidecars[: each.sidecar_count]) for each in self.ending
        )
        return max(sum(amount for amount, _ in running), *starting, 0)

    @property
    def restarts(self) -> Mapping[str, int]:
        """Container → how often it was restarted."""
        return {run.name: run.restarts for run in self.runs}

    @property
    def last_oom_kill(self) -> Seconds | None:
        """The time of the last OOM kill of any container, or None if its status names none."""
        return max((run.oom_killed_at for run in self.runs if run.oom_killed_at is not None), default=None)


@dataclass(slots=True)
class ResizablePodReader:
    """Makes a `ResizablePod` of an API object; equal parts of pods are stored once."""

    _shared: dict[Any, Any] = field(default_factory=dict)

    def read_pod(self, pod: Pod) -> ResizablePod:
        """Returns the running pod."""
        meta, spec, status = pod.metadata, pod.spec, pod.status
        containers = self._share(
            (
                *(_read_container(container, is_sidecar=False) for container in spec.containers),
                *(
                    _read_container(container, is_sidecar=True)
                    for container in spec.init_containers
                    if container.restart_policy == "Always"
                ),
            )
        )
        names = {container.name for container in containers}
        statuses = [*status.container_statuses, *(s for s in status.init_container_statuses if s.name in names)]
        runs = self._share(tuple(map(_read_run, statuses)))
        annotations, controller = value_or(meta.annotations, {}), meta.controller_owner
        ready = next((condition for condition in status.conditions if condition.type == "Ready"), None)
        answer, message = _read_answer(containers, runs, status.conditions)
        return ResizablePod(
            name=meta.name, namespace=meta.namespace, uid=meta.uid, node=spec.node_name, version=meta.resource_version,
            owner=None if controller is None else self._share(Owner(controller.kind, controller.name)),
            phase=status.phase, qos=_qos_of(pod), containers=containers,
            ending=self._share(tuple(_read_ending(spec.init_containers))), runs=runs, answer=answer, message=message,
            is_ready=ready is not None and ready.status == "True",
            ready_changed_at=parse_timestamp(ready.last_transition_time) if ready is not None else None,
            started=parse_timestamp(status.start_time), is_terminating=meta.deletion_timestamp is not None,
            obstacle=_find_obstacle(pod, controller.kind if controller is not None else ""),
            has_pod_level=any(requests_of(spec.resources)) or any(limits_of(spec.resources)),
            vpa_updates=annotations.get(VPA_ANNOTATION, ""),
            labels=value_or(meta.labels, {}), annotations=annotations,
        )  # fmt: skip

    def _share(self, part: Any) -> Any:
        key = msgspec.json.encode(part) if not isinstance(part, Owner) else part
        if len(self._shared) > _MAX_SHARED_PARTS:
            self._shared.clear()
        return self._shared.setdefault(key, part)


_MAX_SHARED_PARTS = 50_000


def _amount_of(quantities: ResourceList, resource: str) -> int | None:
    try:
        return quantity.scheduler_value(resource, quantities[resource]) if resource in quantities else None
    except NotAQuantity:
        return None


def _read_container(container: Container, *, is_sidecar: bool) -> RunningContainer:
    return RunningContainer(
        name=container.name,
        is_sidecar=is_sidecar,
        requests=requests_of(container.resources),
        limits=limits_of(container.resources),
        restarted_by=tuple(
            policy.resource_name for policy in container.resize_policy if policy.restart_policy == "RestartContainer"
        ),
    )


def _read_ending(init_containers: Iterable[Container]) -> Iterator[EndingContainer]:
    sidecar_count = 0
    for container in init_containers:
        if container.restart_policy == "Always":
            sidecar_count += 1
        elif requests := requests_of(container.resources):
            yield EndingContainer(requests=requests, sidecar_count=sidecar_count)


def _read_run(status: ContainerStatus) -> ContainerRun:
    return ContainerRun(
        name=status.name,
        restarts=status.restart_count,
        oom_killed_at=max(
            filter(None, (_oom_kill_in(status.state), _oom_kill_in(status.last_state))),
            default=None,
        ),
        has=requests_of(status.resources),
    )


def _oom_kill_in(state: Any) -> Seconds | None:
    """Returns the time of an OOM kill by this state: 0 if it names no time, None if there was no OOM kill."""
    terminated = state.get("terminated") if isinstance(state, dict) else None
    if not isinstance(terminated, dict) or terminated.get("reason") != OOM_KILLED:
        return None
    finished = terminated.get("finishedAt")
    return parse_timestamp(finished) if isinstance(finished, str) else None


def _qos_of(pod: Pod) -> QoS:
    try:
        return qos_class(pod.spec)
    except NotAQuantity:
        # Taken for Guaranteed, such a pod is never resized.
        return QoS.GUARANTEED


def _find_obstacle(pod: Pod, owner_kind: str) -> str:
    if MIRROR_ANNOTATION in value_or(pod.metadata.annotations, {}) or owner_kind == "Node":
        return "is a static pod, which a file of its node describes"
    operating_system = value_or(pod.spec.os, None)
    if operating_system is not None and operating_system.name == "windows":
        return "runs on Windows, where the kubelet does not resize pods"
    return ""


def _read_answer(
    containers: tuple[RunningContainer, ...],
    runs: tuple[ContainerRun, ...],
    conditions: tuple[Condition, ...],
) -> tuple[ResizeAnswer, str]:
    """Returns the kubelet's answer, and its words."""
    by_type = {condition.type: condition for condition in conditions if condition.status == "True"}
    pending, in_progress = by_type.get(PENDING), by_type.get(IN_PROGRESS)
    if pending is not None:
        infeasible = pending.reason == "Infeasible"
        return ResizeAnswer.INFEASIBLE if infeasible else ResizeAnswer.DEFERRED, pending.message
    if in_progress is not None:
        failed = in_progress.reason == "Error"
        return ResizeAnswer.FAILED if failed else ResizeAnswer.IN_PROGRESS, in_progress.message
    has = {run.name: run.has for run in runs}
    if not any(has.values()):
        return ResizeAnswer.UNSUPPORTED, ""
    is_done = all(
        _amount_of(container.requests, resource) == _amount_of(has.get(container.name, {}), resource)
        for container in containers
        for resource in RESIZED_RESOURCES
        if has.get(container.name)
    )
    return ResizeAnswer.DONE if is_done else ResizeAnswer.UNANSWERED, ""


def read_resizable_pods(pods: Iterable[Pod]) -> tuple[ResizablePod, ...]:
    """Returns the running pods of these API objects, by namespace and name."""
    reader = ResizablePodReader()
    return tuple(
        sorted((reader.read_pod(pod) for pod in pods if pod.spec.node_name), key=lambda pod: (pod.namespace, pod.name))
    )
