"""A running pod as resizing sees it: what each container requests, what its node has given it, and how it runs.

A pod is resized through its `resize` subresource (stable since Kubernetes 1.35, on by default since 1.33). The kubelet
answers in the pod's status:

- condition PodResizePending, reason Deferred: the node has no room now, and the kubelet tries again;
- condition PodResizePending, reason Infeasible: this node can never do it;
- condition PodResizeInProgress: the kubelet has agreed and applies the resize; reason Error: applying it fails;
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
from trimtab.cluster.api.pod import Condition, Container, Pod
from trimtab.cluster.operating_system import runs_on_windows
from trimtab.cluster.owner import OwnerKey, controller_key
from trimtab.cluster.pod import FINISHED_PHASES, MIRROR_ANNOTATION
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.resources import QoS, limits_of, qos_class, requests_of
from trimtab.cluster.timestamps import Seconds, parse_timestamp

RESIZED_RESOURCES = ("cpu", "memory")
"""The resources that a kubelet can resize."""
PENDING, IN_PROGRESS = "PodResizePending", "PodResizeInProgress"
"""The two conditions of a pod in which the kubelet answers a resize."""
OOM_KILLED = "OOMKilled"
VPA_ANNOTATION = "vpaUpdates"
"""The annotation that the webhook of the VPA puts on pods whose requests it has set."""


class ResizeAnswer(StrEnum):
    """How the kubelet has answered the requests in a pod's spec."""

    UNSUPPORTED = "unsupported"
    """The kubelet does not report what the running containers have, so it cannot resize pods."""
    UNANSWERED = "unanswered"
    """The kubelet has not answered yet: the containers do not have what the spec requests, and the pod has no resize
    condition."""
    DEFERRED = "deferred"
    INFEASIBLE = "infeasible"
    IN_PROGRESS = "in-progress"
    FAILED = "failed"
    """The kubelet agreed to the resize, but fails to apply it."""
    DONE = "done"
    """The running containers have what the spec requests."""


class RunningContainer(msgspec.Struct, frozen=True, kw_only=True):
    """A container that runs as long as its pod (a main container or a sidecar), with its requests and limits."""

    name: str
    is_sidecar: bool = False
    """Whether the container is a sidecar: an init container with restartPolicy Always."""
    requests: ResourceList = {}
    """The requests as they are written in the pod's spec."""
    limits: ResourceList = {}
    restarted_by: tuple[str, ...] = ()
    """The resources whose resize restarts the container (resizePolicy RestartContainer)."""

    def request(self, resource: str) -> int | None:
        """Returns the request for a resource in the scheduler's units, or None if there is none or it is not a
        quantity."""
        return _amount_of(self.requests, resource)

    def limit(self, resource: str) -> int | None:
        """Returns the limit of a resource in the scheduler's units, or None if there is none or it is not a
        quantity."""
        return _amount_of(self.limits, resource)


class EndingContainer(msgspec.Struct, frozen=True, kw_only=True):
    """An init container that ends before the main containers start. kube-scheduler and the kubelet count its request
    for as long as the pod exists (KEP-753)."""

    requests: ResourceList = {}
    sidecar_count: int = 0
    """The number of sidecars that run at the same time as this container: those before it in the list."""


class ContainerRun(msgspec.Struct, frozen=True, kw_only=True):
    """How one container runs, according to the pod's status."""

    name: str
    restarts: int = 0
    oom_killed_at: Seconds | None = None
    """When the container was last killed because it ran out of memory, or None if its status shows no such kill."""
    has: ResourceList = {}
    """The requests that the running container really has; empty if its kubelet does not report them."""


class ResizablePod(msgspec.Struct, frozen=True, kw_only=True):
    """One pod on a node, with everything that decides whether and how it is resized."""

    name: str
    namespace: str
    uid: str
    node: str
    version: str
    """The pod's resourceVersion. The API server rejects a resize that was decided on an older version."""
    owner: OwnerKey | None
    """The pod's direct controller, or None if it has none."""
    phase: str
    qos: QoS
    containers: tuple[RunningContainer, ...]
    ending: tuple[EndingContainer, ...] = ()
    """The init containers that end before the main containers start, in their order."""
    runs: tuple[ContainerRun, ...] = ()
    answer: ResizeAnswer = ResizeAnswer.UNSUPPORTED
    message: str = ""
    """The kubelet's message, if it defers or refuses the resize or fails to apply it."""
    is_ready: bool = False
    ready_changed_at: Seconds | None = None
    """When the pod last became ready or stopped being ready."""
    started: Seconds | None = None
    is_terminating: bool = False
    obstacle: str = ""
    """Why Trimtab can never resize such a pod, as the end of a sentence that begins with the pod's name; empty if
    Trimtab can."""
    has_pod_level: bool = False
    """Whether the pod has pod-level requests, which hold for all its containers together."""
    vpa_updates: str = ""
    """The value of the annotation that the VPA's webhook writes; empty if there is none."""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def is_running(self) -> bool:
        """Whether the pod runs on its node and is not being deleted."""
        return self.phase == "Running" and bool(self.node) and not self.is_terminating

    @property
    def is_gone(self) -> bool:
        """Whether the pod has finished or is being deleted, so that it needs no resize any more."""
        return self.is_terminating or self.phase in FINISHED_PHASES

    def container(self, name: str) -> RunningContainer | None:
        """Returns the running container of this name, or None if there is none."""
        return next((container for container in self.containers if container.name == name), None)

    def held(self, container: str, resource: str) -> int | None:
        """Returns the larger of the container's request and what the running container has, in the scheduler's units,
        or None if neither is known."""
        own = self.container(container)
        run = next((run for run in self.runs if run.name == container), None)
        amounts = (
            own.request(resource) if own is not None else None,
            _amount_of(run.has, resource) if run is not None else None,
        )
        return max((amount for amount in amounts if amount is not None), default=None)

    def total_request(self, resource: str, amounts: Mapping[str, int]) -> int:
        """Returns the pod's request as its node would count it, with `amounts` (container → request) in place of the
        requests of these containers. Overhead is not included."""
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
        """Container → the number of its restarts."""
        return {run.name: run.restarts for run in self.runs}

    @property
    def last_oom_kill(self) -> Seconds | None:
        """The time of the last OOM kill of any container, or None if the status shows none."""
        return max((run.oom_killed_at for run in self.runs if run.oom_killed_at is not None), default=None)


@dataclass(slots=True)
class ResizablePodReader:
    """Makes `ResizablePod` objects from API objects. Equal parts of pods are stored once."""

    _shared: dict[Any, Any] = field(default_factory=dict)

    def read_pod(self, pod: Pod) -> ResizablePod:
        """Returns the `ResizablePod` for the pod of an API object."""
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
        runs = self._share(
            tuple(
                ContainerRun(
                    name=status.name,
                    restarts=status.restart_count,
                    oom_killed_at=max(
                        filter(None, (_oom_kill_in(status.state), _oom_kill_in(status.last_state))), default=None
                    ),
                    has=requests_of(status.resources),
                )
                for status in statuses
            )
        )
        annotations, controller = value_or(meta.annotations, {}), controller_key(meta, meta.namespace)
        ready = next((condition for condition in status.conditions if condition.type == "Ready"), None)
        answer, message = _read_answer(containers, runs, status.conditions)
        return ResizablePod(
            name=meta.name,
            namespace=meta.namespace,
            uid=meta.uid,
            node=spec.node_name,
            version=meta.resource_version,
            owner=None if controller is None else self._share(controller),
            phase=status.phase,
            qos=_qos_of(pod),
            containers=containers,
            ending=self._share(tuple(_read_ending(spec.init_containers))),
            runs=runs,
            answer=answer,
            message=message,
            is_ready=ready is not None and ready.status == "True",
            ready_changed_at=parse_timestamp(ready.last_transition_time) if ready is not None else None,
            started=parse_timestamp(status.start_time),
            is_terminating=meta.deletion_timestamp is not None,
            obstacle=_find_obstacle(pod, controller.kind if controller is not None else ""),
            has_pod_level=any(requests_of(spec.resources)) or any(limits_of(spec.resources)),
            vpa_updates=annotations.get(VPA_ANNOTATION, ""),
            labels=value_or(meta.labels, {}),
            annotations=annotations,
        )

    def _share(self, part: Any) -> Any:
        key = msgspec.json.encode(part) if not isinstance(part, OwnerKey) else part
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


def _oom_kill_in(state: Any) -> Seconds | None:
    """Returns the time at which a container ended by an OOM kill according to this state: 0 if the state has no time,
    None if the container did not end so."""
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
        return "is a static pod, which a file on its node defines"
    if runs_on_windows(pod.spec):
        return "runs on Windows, where the kubelet does not resize pods"
    return ""


def _read_answer(
    containers: tuple[RunningContainer, ...], runs: tuple[ContainerRun, ...], conditions: tuple[Condition, ...]
) -> tuple[ResizeAnswer, str]:
    """Returns the kubelet's answer to the resize, and the kubelet's message."""
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
    """Returns a `ResizablePod` for each of these pods that is on a node, sorted by namespace and name."""
    reader = ResizablePodReader()
    return tuple(
        sorted((reader.read_pod(pod) for pod in pods if pod.spec.node_name), key=lambda pod: (pod.namespace, pod.name))
    )
