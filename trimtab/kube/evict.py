"""An eviction, and its outcomes.

Measured on Kubernetes 1.36: success is 201 with a Status; an exhausted PodDisruptionBudget is 429 without Retry-After,
one that its controller has not observed yet is 429 with it; two budgets over one pod are 500; another pod under that
name is 409.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import msgspec

from trimtab.kube.errors import Conflict, NotFound, RequestRefused, TooManyRequests
from trimtab.kube.objects import Writer, decode_as
from trimtab.kube.resources import LIST_SOURCES, object_path

_TWO_BUDGETS = "more than one PodDisruptionBudget"
"""pkg/registry/core/pod/storage/eviction.go; the response has no reason and no details."""


_DENIALS = (400, 403, 422)
"""A denial by a webhook (400 unless it says otherwise), or a namespace that is being deleted (403): about this pod
alone."""


class EvictionStatus(StrEnum):
    EVICTED = "evicted"
    """The pod is terminating, or would be without a dry run."""
    GONE = "gone"
    """The pod does not exist any more."""
    ANOTHER = "another-pod"
    """A pod of that name exists, but it is a different one."""
    NO_ROOM = "no-room"
    """Its budget is exhausted; the server does not say for how long."""
    WAIT = "wait"
    """Try again after `retry_after`: a budget's status is being computed, or the server has too many requests."""
    DENIED = "denied"
    """An admission webhook or the namespace denies this eviction; a later attempt may succeed."""
    TWO_BUDGETS = "two-budgets"
    """The eviction API cannot evict the pod at all, now or later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionOutcome:
    """The outcome of an eviction, in the server's words where it refused."""

    eviction_status: EvictionStatus
    message: str = ""
    retry_after: float | None = None
    """Seconds; only with WAIT."""

    @property
    def is_done(self) -> bool:
        """Whether the pod is gone or terminating."""
        return self.eviction_status in (EvictionStatus.EVICTED, EvictionStatus.GONE, EvictionStatus.ANOTHER)


def evict(writer: Writer, namespace: str, name: str, uid: str, *, grace: int | None = None) -> EvictionOutcome:
    """Evict exactly this pod. `grace` overrides its termination grace period in seconds. Raises KubeFault for errors
    that are no outcome of an eviction.

    The pod is read first: for a pod with another uid the API server takes ten seconds to respond (it treats the
    precondition as a conflict that it retries; measured on 1.36). The precondition is sent all the same: should the pod
    be replaced in between, the request ends in Unreachable, and no other pod is evicted by mistake.
    """
    current_uid = _uid(writer, namespace, name)
    if current_uid != uid:
        return EvictionOutcome(eviction_status=EvictionStatus.ANOTHER if current_uid else EvictionStatus.GONE)
    options: dict[str, object] = {"preconditions": {"uid": uid}}
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    if writer.dry_run:
        options["dryRun"] = ["All"]
    meta = {"name": name, "namespace": namespace}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta, "deleteOptions": options}
    path = object_path(LIST_SOURCES["Pod"], namespace, name, "eviction")
    try:
        writer.write("POST", path, body, doing=f"evict Pod {namespace}/{name}")
    except NotFound as error:
        return EvictionOutcome(eviction_status=EvictionStatus.GONE, message=error.message)
    except Conflict as error:
        return _conflict(writer, namespace, name, uid, error)
    except TooManyRequests as error:
        return _too_many_requests(error)
    except RequestRefused as error:
        # The API server has no status of its own for this case: only the message tells it.
        if error.status == 500 and _TWO_BUDGETS in error.message:
            return EvictionOutcome(eviction_status=EvictionStatus.TWO_BUDGETS, message=error.message)
        if error.status in _DENIALS:
            return EvictionOutcome(eviction_status=EvictionStatus.DENIED, message=error.message)
        raise
    return EvictionOutcome(eviction_status=EvictionStatus.EVICTED)


def _uid(writer: Writer, namespace: str, name: str) -> str:
    """Returns the uid of the pod of this name, or an empty string if there is none."""
    doing = f"evict Pod {namespace}/{name}"
    deadline = writer.client.deadlines.write
    try:
        body = writer.client.request(
            "GET", object_path(LIST_SOURCES["Pod"], namespace, name), deadline=deadline, doing=doing
        )
    except NotFound:
        return ""
    pod: _Pod = decode_as(body, _Pod, doing)
    return pod.metadata.uid


class _Meta(msgspec.Struct):
    uid: str = ""


class _Pod(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


def _conflict(writer: Writer, namespace: str, name: str, uid: str, error: Conflict) -> EvictionOutcome:
    """Returns the outcome of a conflict: another pod by now, or a change of this very pod at the same moment, which
    then still exists."""
    current_uid = _uid(writer, namespace, name)
    if current_uid == uid:
        # The same pod, changed while the eviction wrote its status: the next attempt can succeed.
        return EvictionOutcome(eviction_status=EvictionStatus.WAIT, message=error.message, retry_after=1.0)
    return EvictionOutcome(
        eviction_status=EvictionStatus.ANOTHER if current_uid else EvictionStatus.GONE, message=error.message
    )


def _too_many_requests(error: TooManyRequests) -> EvictionOutcome:
    """Returns the outcome of a 429. Only Retry-After tells WAIT from NO_ROOM: the reason is TooManyRequests in both."""
    words = "; ".join(cause.message for cause in error.causes) or error.message
    if error.retry_after is None:
        return EvictionOutcome(eviction_status=EvictionStatus.NO_ROOM, message=words)
    return EvictionOutcome(eviction_status=EvictionStatus.WAIT, message=words, retry_after=error.retry_after)
